// SPDX-License-Identifier: Apache-2.0
// Certificates in files: valid changes are used, and half of a change is ignored.
#include "net/cert_files.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW INT64_C(1800000000)
#define SETTLED_NS (INT64_C(1000) * 1000 * 1000)

static char dir[] = "/tmp/hekla-cert-files-XXXXXX";
static char cert_path[64], key_path[64], ca_path[64];
static struct cert_pair ca, old, new;

static void make(struct cert_pair *ret)
{
    const struct cert_opts o = {.cn = "server", .server = true, .now_s = NOW, .days = 1};

    assert_int_equal(cert_make(&o, &ca, ret, NULL), 0);
}

static int begin(void **state)
{
    const struct cert_opts o = {.cn = "ca", .now_s = NOW, .days = 1};

    assert_non_null(mkdtemp(dir));
    snprintf(cert_path, sizeof(cert_path), "%s/crt", dir);
    snprintf(key_path, sizeof(key_path), "%s/key", dir);
    snprintf(ca_path, sizeof(ca_path), "%s/ca", dir);
    assert_int_equal(cert_make_ca(&o, &ca, NULL), 0);
    make(&old);
    make(&new);
    return 0;
}

static int end(void **state)
{
    cert_pair_fini(&ca);
    cert_pair_fini(&old);
    cert_pair_fini(&new);
    unlink(cert_path);
    unlink(key_path);
    unlink(ca_path);
    return rmdir(dir);
}

static void put(const char *path, const char *text)
{
    assert_int_equal(hk_write_file(path, hk_str(text), NULL), 0);
}

static void count(void *ctx)
{
    ++*(int *)ctx;
}

/* Runs the loop so that writes are noticed, and lets the settle time pass. */
static void turn(struct net_loop *l, struct hk_clock_manual *clock)
{
    assert_int_equal(net_loop_turn(l, -1, NULL), 0);
    clock->now_ns += SETTLED_NS;
    assert_int_equal(net_loop_turn(l, 0, NULL), 0);
}

static void test_a_change_counts_once_it_is_whole(void **state)
{
    struct hk_clock_manual clock;
    struct net_loop *l;
    struct cert_files *c = NULL;
    int changes = 0;

    hk_clock_manual_init(&clock, 0);
    l = net_loop_new(&clock.clock);
    put(cert_path, old.cert_pem);
    put(key_path, old.key_pem);
    put(ca_path, ca.cert_pem);
    assert_int_equal(cert_files_new(&(struct cert_files_opts){.loop = l,
                                                              .cert_file = cert_path,
                                                              .key_file = key_path,
                                                              .ca_file = ca_path,
                                                              .changed = count,
                                                              .ctx = &changes},
                                    &c, NULL),
                     0);
    assert_string_equal(cert_files_now(c)->pair.cert_pem, old.cert_pem);
    assert_string_equal(cert_files_now(c)->ca_pem, ca.cert_pem);

    put(cert_path, new.cert_pem); /* its key is not there yet */
    turn(l, &clock);
    assert_int_equal(changes, 0);
    assert_string_equal(cert_files_now(c)->pair.cert_pem, old.cert_pem);

    put(key_path, new.key_pem);
    turn(l, &clock);
    assert_int_equal(changes, 1);
    assert_string_equal(cert_files_now(c)->pair.cert_pem, new.cert_pem);
    assert_string_equal(cert_files_now(c)->pair.key_pem, new.key_pem);

    put(key_path, new.key_pem); /* the same again */
    turn(l, &clock);
    assert_int_equal(changes, 1);

    put(ca_path, new.cert_pem);
    turn(l, &clock);
    assert_int_equal(changes, 2);
    assert_string_equal(cert_files_now(c)->ca_pem, new.cert_pem);

    cert_files_free(c);
    net_loop_free(l);
}

static void test_unusable_files_are_reported_at_once(void **state)
{
    struct net_loop *l = net_loop_new(hk_clock_system());
    struct cert_files_opts o = {.loop = l, .cert_file = cert_path, .key_file = key_path};
    struct cert_files *c = NULL;
    struct hk_err err = {0};

    put(cert_path, old.cert_pem);
    put(key_path, new.key_pem);
    assert_int_equal(cert_files_new(&o, &c, &err), -HK_EINVAL);
    assert_non_null(strstr(err.text, cert_path));
    o.key_file = "/nowhere/key";
    assert_true(cert_files_new(&o, &c, &err) < 0);
    assert_non_null(strstr(err.text, "/nowhere"));
    net_loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_change_counts_once_it_is_whole),
        cmocka_unit_test(test_unusable_files_are_reported_at_once),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, begin, end);
}
