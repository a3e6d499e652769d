// SPDX-License-Identifier: Apache-2.0
// Credentials: created once, kept afterwards, renewed when they no longer fit.
#include "apiserver/setup.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const names[] = {
    "ca.crt",     "ca.key",     "server.crt",         "server.key",        "sa.key",
    "tokens.csv", "kubeconfig", "front-proxy-ca.crt", "front-proxy-ca.key"};

static int make_dir(void **state)
{
    char *dir = hk_strdup("/tmp/hekla-setup-XXXXXX");

    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char path[128];

    for (size_t k = 0; k < HK_LEN(names); k++) {
        snprintf(path, sizeof(path), "%s/%s", (char *)*state, names[k]);
        unlink(path);
    }
    const int rc = rmdir(*state);
    hk_free(*state);
    return rc;
}

static void load(const char *dir, const char *addr, int64_t now_s, struct setup *ret)
{
    struct hk_clock_manual clock;
    struct hk_err err = {0};

    hk_clock_manual_init(&clock, now_s * 1000000000);
    if (setup_load(dir, addr, NULL, &clock.clock, ret, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static void test_a_second_start_keeps_everything(void **state)
{
    HK_AUTO(setup_fini) struct setup first = {0}, second = {0};

    load(*state, "127.0.0.1", 1800000000, &first);
    load(*state, "127.0.0.1", 1800000000, &second);
    assert_string_equal(first.ca.cert_pem, second.ca.cert_pem);
    assert_string_equal(first.serving.cert_pem, second.serving.cert_pem);
    assert_string_equal(first.front_ca.cert_pem, second.front_ca.cert_pem);
    assert_string_not_equal(first.front_ca.cert_pem, first.ca.cert_pem);
    assert_string_equal(first.admin_token, second.admin_token);
    assert_int_equal(strlen(first.admin_token), 64);
}

static void test_the_serving_certificate_follows_address_and_time(void **state)
{
    HK_AUTO(setup_fini) struct setup first = {0}, moved = {0}, later = {0};

    load(*state, "127.0.0.1", 1800000000, &first);
    assert_false(cert_serves(first.serving.cert_pem, first.ca.cert_pem, "192.0.2.7"));
    load(*state, "192.0.2.7", 1800000000, &moved);
    assert_true(cert_serves(moved.serving.cert_pem, moved.ca.cert_pem, "192.0.2.7"));
    assert_string_equal(first.ca.cert_pem, moved.ca.cert_pem);
    load(*state, "192.0.2.7", 1800000000 + 5 * 365 * 86400, &later);
    assert_string_not_equal(moved.serving.cert_pem, later.serving.cert_pem);
    assert_string_equal(moved.ca.cert_pem, later.ca.cert_pem);
}

static void test_the_kubeconfig_names_server_and_token(void **state)
{
    HK_AUTO(setup_fini) struct setup s = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    char path[128];
    struct hk_err err = {0};

    load(*state, "127.0.0.1", 1800000000, &s);
    assert_int_equal(setup_write_kubeconfig(&s, *state, "https://127.0.0.1:7", &err), 0);
    snprintf(path, sizeof(path), "%s/kubeconfig", (char *)*state);
    assert_int_equal(hk_read_file(path, 1 << 20, &text, &err), 0);
    assert_non_null(strstr(text.data, "server: https://127.0.0.1:7\n"));
    assert_non_null(strstr(text.data, s.admin_token));
}

static void test_tokens_without_an_administrator_are_refused(void **state)
{
    struct setup s = {0};
    struct hk_clock_manual clock;
    struct hk_err err = {0};
    char path[128];

    hk_clock_manual_init(&clock, INT64_C(1800000000) * 1000000000);
    snprintf(path, sizeof(path), "%s/tokens.csv", (char *)*state);
    assert_int_equal(hk_write_file(path, HK_STR("t,bob,1,dev\n"), &err), 0);
    assert_int_equal(setup_load(*state, "127.0.0.1", NULL, &clock.clock, &s, &err), -HK_EINVAL);
    assert_non_null(strstr(err.text, "no user of the group system:masters"));
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(test_a_second_start_keeps_everything),
        IN_DIR(test_the_serving_certificate_follows_address_and_time),
        IN_DIR(test_the_kubeconfig_names_server_and_token),
        IN_DIR(test_tokens_without_an_administrator_are_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
