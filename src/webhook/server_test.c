// SPDX-License-Identifier: Apache-2.0
// The admission server over TLS: its answers, and a change of certificate while it runs.
#include "webhook/rig_test.h"
#include "webhook/server.h"

#define REVIEW                                                                                     \
    "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":"   \
    "\"7\",\"operation\":\"CREATE\",\"resource\":{\"group\":\"\",\"version\":\"v1\","              \
    "\"resource\":\"pods\"},\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":"      \
    "{\"name\":\"p\"},\"spec\":{\"containers\":[]}}}}"

struct rig {
    struct net_loop *loop;
    struct cert_pair ca, first, second;
    struct volcano_options options;
    struct webhook_server *server;
};

static int64_t now_s(void)
{
    return hk_clock_system()->wall_ns(hk_clock_system()) / 1000000000;
}

static int begin(void **state)
{
    struct rig *r = hk_zalloc(sizeof(*r));
    struct hk_err err = {0};

    r->loop = net_loop_new(hk_clock_system());
    rig_make_ca(now_s(), &r->ca);
    rig_make_cert(&r->ca, now_s(), &r->first);
    rig_make_cert(&r->ca, now_s(), &r->second);
    assert_int_equal(
        volcano_parse_enabled(HK_STR("/pods/validate,/pods/mutate"), &r->options.disabled, &err),
        0);
    const struct webhook_server_opts o = {.loop = r->loop,
                                          .clock = hk_clock_system(),
                                          .addr = HK_STR("127.0.0.1"),
                                          .health = true,
                                          .health_addr = HK_STR("127.0.0.1"),
                                          .cert_pem = r->first.cert_pem,
                                          .key_pem = r->first.key_pem,
                                          .options = &r->options};
    if (webhook_server_new(&o, &r->server, &err) < 0) {
        fail_msg("%s", err.text);
    }
    *state = r;
    return 0;
}

static int end(void **state)
{
    struct rig *r = *state;

    webhook_server_stop(r->server, 0);
    webhook_server_free(r->server);
    net_loop_free(r->loop);
    cert_pair_fini(&r->ca);
    cert_pair_fini(&r->first);
    cert_pair_fini(&r->second);
    hk_free(r);
    return 0;
}

static void requests_are_answered(void **state)
{
    static const struct {
        const char *method, *path, *type, *body;
        const char *status, *holds;
    } rows[] = {
        {"POST", "/pods/validate", "application/json", REVIEW, "200", "\"allowed\":true"},
        {"POST", "/pods/validate?timeout=10s", "application/json", REVIEW, "200",
         "\"allowed\":true"},
        {"POST", "/pods/validate", "application/json", "", "200", "json parse error"},
        {"POST", "/pods/validate", "application/json", "{}", "200", "\"allowed\":false"},
        {"POST", "/pods/validate", "application/json; charset=utf-8", REVIEW, "200",
         "Content-Length: 0"},
        {"POST", "/pods/validate", "application/yaml", REVIEW, "200", "Content-Length: 0"},
        {"GET", "/pods/validate", "", "", "405", "Allow: POST"},
        {"PUT", "/pods/validate", "application/json", REVIEW, "405", "Allow: POST"},
        {"POST", "/", "application/json", REVIEW, "404", "\"code\":404"},
        {"POST", "/pods/validate/", "application/json", REVIEW, "404", "\"code\":404"},
        {"POST", "/pods%2fvalidate", "application/json", REVIEW, "404", "\"code\":404"},
        {"POST", "/jobs/validate", "application/json", REVIEW, "404", "\"code\":404"},
        {"GET", "/healthz", "", "", "404", "\"code\":404"},
    };
    const struct rig *r = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf answer = {0};
    struct rig_client c;

    rig_connect(&c, r->loop, webhook_server_port(r->server));
    for (size_t i = 0; i < HK_LEN(rows); i++) {
        rig_ask(&c, rows[i].method, rows[i].path, rows[i].type, hk_str(rows[i].body), &answer);
        if (strncmp(answer.data + 9, rows[i].status, 3) != 0 ||
            !strstr(answer.data, rows[i].holds)) {
            fail_msg("%s %s:\nexpected: %s, %s\n  actual: %s", rows[i].method, rows[i].path,
                     rows[i].status, rows[i].holds, answer.data);
        }
    }
    rig_hang_up(&c);
}

static void bodies_are_bounded(void **state)
{
    const struct rig *r = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf answer = {0}, body = {0};
    struct rig_client c;

    hk_buf_reserve(&body, (3 << 20) + 1);
    while (body.len <= 3 << 20) {
        hk_buf_addc(&body, ' ');
    }
    rig_connect(&c, r->loop, webhook_server_port(r->server));
    rig_ask(&c, "POST", "/pods/validate", "application/json", hk_buf_str(&body), &answer);
    assert_non_null(strstr(answer.data, " 413 "));
    assert_non_null(strstr(answer.data, "request body too large"));
    rig_ask(&c, "POST", "/pods/validate", "application/json", (struct hk_str){body.data, 3 << 20},
            &answer);
    assert_non_null(strstr(answer.data, " 200 "));
    rig_hang_up(&c);
}

static void health_has_its_own_address(void **state)
{
    const struct rig *r = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf answer = {0};
    struct rig_client c;

    rig_connect(&c, r->loop, webhook_server_health_port(r->server));
    assert_true(rig_shows(&c, r->first.cert_pem));
    rig_ask(&c, "GET", "/healthz", "", HK_STR(""), &answer);
    assert_non_null(strstr(answer.data, "\r\n\r\nok"));
    rig_ask(&c, "POST", "/pods/validate", "application/json", HK_STR(REVIEW), &answer);
    assert_non_null(strstr(answer.data, " 404 "));
    rig_hang_up(&c);
}

static void a_new_certificate_is_for_new_connections(void **state)
{
    const struct rig *r = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf answer = {0};
    struct rig_client old, new;
    struct hk_err err = {0};

    rig_connect(&old, r->loop, webhook_server_port(r->server));
    assert_true(rig_shows(&old, r->first.cert_pem));
    assert_int_equal(webhook_server_become(r->server, r->second.cert_pem, r->second.key_pem, &err),
                     0);
    rig_connect(&new, r->loop, webhook_server_port(r->server));
    assert_true(rig_shows(&new, r->second.cert_pem));
    rig_ask(&old, "POST", "/pods/validate", "application/json", HK_STR(REVIEW), &answer);
    assert_non_null(strstr(answer.data, "\"allowed\":true"));
    rig_ask(&new, "POST", "/pods/validate", "application/json", HK_STR(REVIEW), &answer);
    assert_non_null(strstr(answer.data, "\"allowed\":true"));
    rig_hang_up(&old);
    rig_hang_up(&new);
}

static void a_pair_that_does_not_belong_together_changes_nothing(void **state)
{
    const struct rig *r = *state;
    struct hk_err err = {0};
    struct rig_client c;

    assert_int_equal(webhook_server_become(r->server, r->second.cert_pem, r->first.key_pem, &err),
                     -HK_EINVAL);
    assert_string_equal(err.text, "the key does not belong to the certificate");
    assert_int_equal(webhook_server_become(r->server, "rubbish", r->first.key_pem, &err),
                     -HK_EINVAL);
    assert_int_equal(webhook_server_become(r->server, r->first.cert_pem, "", &err), -HK_EINVAL);
    rig_connect(&c, r->loop, webhook_server_port(r->server));
    assert_true(rig_shows(&c, r->first.cert_pem));
    rig_hang_up(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_are_answered, begin, end),
        cmocka_unit_test_setup_teardown(bodies_are_bounded, begin, end),
        cmocka_unit_test_setup_teardown(health_has_its_own_address, begin, end),
        cmocka_unit_test_setup_teardown(a_new_certificate_is_for_new_connections, begin, end),
        cmocka_unit_test_setup_teardown(a_pair_that_does_not_belong_together_changes_nothing, begin,
                                        end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
