// SPDX-License-Identifier: Apache-2.0
// Posts to a real server over TLS, which answers 401 to everybody without credentials: what counts
// here is whom the poster trusts, where it connects, and when it gives up.
#include "client/poster.h"
#include "client/rig_test.h"

enum { PATIENCE_TURNS = 2000, TURN_MS = 10, MAX_REPLY = 4096 };

struct posted {
    int calls, http;
    char why[256];
    size_t body;
};

static void on_reply(void *arg, const struct webhook_reply *reply)
{
    struct posted *o = arg;

    o->calls++;
    o->http = reply->http;
    o->body = reply->body.n;
    snprintf(o->why, sizeof(o->why), "%s", reply->why ? reply->why : "");
}

static void turn(struct rig *g)
{
    assert_int_equal(net_loop_turn(g->loop, TURN_MS, NULL), 0);
}

static struct posted post(struct rig *g, size_t max_reply, const struct webhook_post *p)
{
    struct poster *poster = poster_new(g->loop, max_reply);
    const struct webhook_caller *caller = poster_caller(poster);
    struct posted o = {0};

    caller->post(caller->ctx, p, on_reply, &o);
    assert_int_equal(o.calls, 0); /* never from inside post */
    for (int i = 0; i < PATIENCE_TURNS && o.calls == 0; i++) {
        turn(g);
    }
    assert_int_equal(o.calls, 1);
    poster_free(poster);
    return o;
}

static void test_answer(void **state)
{
    struct rig *g = *state;
    char url[128];

    snprintf(url, sizeof(url), "https://127.0.0.1:%u/hook?timeout=1s", g->tcp_port);
    const struct posted o =
        post(g, MAX_REPLY,
             &(struct webhook_post){.url = url, .ca_pem = g->ca.cert_pem, .body = HK_STR("{}")});
    assert_string_equal(o.why, "");
    assert_int_equal(o.http, 401);
    assert_true(o.body > 0);
}

static void test_address_of_a_service(void **state)
{
    struct rig *g = *state;
    char address[64];

    snprintf(address, sizeof(address), "127.0.0.1:%u", g->tcp_port);
    struct webhook_post p = {.url = "https://kubernetes.default:443/hook",
                             .address = address,
                             .ca_pem = g->ca.cert_pem,
                             .body = HK_STR("{}")};
    struct posted o = post(g, MAX_REPLY, &p);
    assert_string_equal(o.why, "");
    assert_int_equal(o.http, 401);
    p.url = "https://other.default.svc:443/hook"; /* the certificate has another name */
    o = post(g, MAX_REPLY, &p);
    assert_int_equal(o.http, 0);
    assert_non_null(strstr(o.why, "other.default.svc"));
}

static void test_whom_not_to_trust(void **state)
{
    struct rig *g = *state;
    const struct cert_opts other = {.cn = "other", .now_s = rig_now_s(), .days = 1};
    struct cert_pair ca;
    char url[128];

    assert_int_equal(cert_make_ca(&other, &ca, NULL), 0);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/hook", g->tcp_port);
    struct webhook_post p = {.url = url, .ca_pem = ca.cert_pem, .body = HK_STR("{}")};
    struct posted o = post(g, MAX_REPLY, &p);
    assert_int_equal(o.http, 0);
    assert_non_null(strstr(o.why, "certificate"));
    p.ca_pem = NULL; /* nor do the system's authorities know it */
    o = post(g, MAX_REPLY, &p);
    assert_int_equal(o.http, 0);
    assert_non_null(strstr(o.why, "certificate"));
    p.url = "http://127.0.0.1:1/hook";
    o = post(g, MAX_REPLY, &p);
    assert_int_equal(o.http, 0);
    assert_non_null(strstr(o.why, "http"));
    cert_pair_fini(&ca);
}

static void test_long_answers(void **state)
{
    struct rig *g = *state;
    char url[128];

    snprintf(url, sizeof(url), "https://127.0.0.1:%u/hook", g->tcp_port);
    const struct posted o = post(
        g, 10, &(struct webhook_post){.url = url, .ca_pem = g->ca.cert_pem, .body = HK_STR("{}")});
    assert_int_equal(o.http, 0);
    assert_string_equal(o.why, "the answer is longer than 10 bytes");
}

static void test_cancelled_post(void **state)
{
    struct rig *g = *state;
    struct poster *poster = poster_new(g->loop, MAX_REPLY);
    const struct webhook_caller *caller = poster_caller(poster);
    struct posted o = {0};
    char url[128];

    snprintf(url, sizeof(url), "https://127.0.0.1:%u/hook", g->tcp_port);
    const struct webhook_post p = {.url = url, .ca_pem = g->ca.cert_pem, .body = HK_STR("{}")};
    const uint64_t id = caller->post(caller->ctx, &p, on_reply, &o);
    turn(g);
    caller->cancel(caller->ctx, id);
    caller->cancel(caller->ctx, id); /* unknown by now */
    for (int i = 0; i < 10; i++) {
        turn(g);
    }
    assert_int_equal(o.calls, 0);
    caller->post(caller->ctx, &p, on_reply, &o);
    poster_free(poster); /* cancels the other one */
}

static int setup(void **state)
{
    struct rig *g = hk_zalloc(sizeof(*g));

    rig_open(g, 100);
    *state = g;
    return 0;
}

static int teardown(void **state)
{
    rig_close(*state);
    hk_free(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answer),       TEST(address_of_a_service), TEST(whom_not_to_trust),
        TEST(long_answers), TEST(cancelled_post),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
