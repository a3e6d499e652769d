// SPDX-License-Identifier: Apache-2.0
// The certificate of a node: made once, kept while it serves, replaced before it does not.
#include "host/agent_certs.h"

#include "base/file.h"
#include "net/cert.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOW_S = 1767225600, DAY_S = 86400 }; /* 2026-01-01 */

struct fixture {
    char dir[32];
    struct hk_buf cert, key; /* paths */
};

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    snprintf(f->dir, sizeof(f->dir), "/tmp/certs-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    unlink(f->cert.data);
    unlink(f->key.data);
    rmdir(f->dir);
    hk_buf_fini(&f->cert);
    hk_buf_fini(&f->key);
    hk_free(f);
    return 0;
}

/* The certificate with its authority that a node of that name has at that time. */
static char *keep(struct fixture *f, const char *second_name, int64_t now_s)
{
    const char *const names[] = {"n1", second_name};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_err err = {0};

    hk_buf_clear(&f->cert);
    hk_buf_clear(&f->key);
    if (agent_certs_keep(
            &(struct agent_certs_opts){.dir = f->dir, .names = names, .nnames = 2, .now_s = now_s},
            &f->cert, &f->key, &err) < 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(hk_read_file(f->cert.data, 1 << 16, &text, &err), 0);
    return hk_strdup(text.data);
}

static void it_serves_all_names_of_the_node(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_freep) char *cert = keep(f, "127.0.0.1", NOW_S);
    const char *ca = cert + cert_first(cert);

    assert_true(cert_serves(cert, ca, "n1"));
    assert_true(cert_serves(cert, ca, "127.0.0.1"));
    assert_false(cert_serves(cert, ca, "n2"));
}

static void it_stays_the_same(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_freep) char *first = keep(f, "127.0.0.1", NOW_S);
    HK_AUTO(hk_freep) char *later = keep(f, "127.0.0.1", NOW_S + 365 * DAY_S);

    assert_string_equal(later, first);
}

static void another_name_needs_another_one(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_freep) char *first = keep(f, "127.0.0.1", NOW_S);
    HK_AUTO(hk_freep) char *moved = keep(f, "127.0.0.2", NOW_S);

    assert_string_not_equal(moved, first);
    assert_true(cert_serves(moved, moved + cert_first(moved), "127.0.0.2"));
}

static void it_is_replaced_a_month_before_it_expires(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_freep) char *first = keep(f, "127.0.0.1", NOW_S);
    HK_AUTO(hk_freep) char *before = keep(f, "127.0.0.1", NOW_S + 3619 * (int64_t)DAY_S);
    HK_AUTO(hk_freep) char *then = keep(f, "127.0.0.1", NOW_S + 3621 * (int64_t)DAY_S);

    assert_string_equal(before, first);
    assert_string_not_equal(then, first);
}

static void a_damaged_pair_is_replaced(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_freep) char *first = keep(f, "127.0.0.1", NOW_S);

    assert_int_equal(hk_write_file(f->cert.data, HK_STR("not a certificate"), NULL), 0);
    HK_AUTO(hk_freep) char *second = keep(f, "127.0.0.1", NOW_S);
    assert_true(cert_serves(second, second + cert_first(second), "n1"));
    assert_string_not_equal(second, first);
    unlink(f->key.data);
    HK_AUTO(hk_freep) char *third = keep(f, "127.0.0.1", NOW_S);
    assert_string_not_equal(third, second);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_serves_all_names_of_the_node), TEST(it_stays_the_same),
        TEST(another_name_needs_another_one),  TEST(it_is_replaced_a_month_before_it_expires),
        TEST(a_damaged_pair_is_replaced),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("host/agent_certs", tests, NULL, NULL);
}
