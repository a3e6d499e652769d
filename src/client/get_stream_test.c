// SPDX-License-Identifier: Apache-2.0
// Streams of bytes: they arrive unchanged, end with the server or the connection, and do not block
// other calls.
#include "client/get_stream.h"

#include "client/script_test.h"

struct fixture {
    struct rig rig;
    struct script script;
    struct client *client;
};

static int begin(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));
    struct kubeconfig k = {0};
    char server[64];

    *state = f;
    hk_rand_seed(&f->rig.rand, 1);
    f->rig.loop = net_loop_new(hk_clock_system());
    script_open(&f->script, f->rig.loop);
    snprintf(server, sizeof(server), "http://127.0.0.1:%u", f->script.port);
    const struct kubeconfig_opts at = {.server = server, .token = "t"};
    assert_int_equal(kubeconfig_load(&at, &k, NULL), 0);
    struct client_opts o = rig_client_opts(&f->rig);
    o.retries = 2;
    o.connections = 1;
    assert_int_equal(client_new(&o, &k, &f->client, NULL), 0);
    f->rig.port = client_port(f->client);
    return 0;
}

static int end(void **state)
{
    struct fixture *f = *state;

    port_free(f->rig.port);
    script_close(&f->script);
    net_loop_free(f->rig.loop);
    hk_arena_fini(&f->rig.mem);
    hk_free(f);
    return 0;
}

struct stream_heard {
    struct hk_buf bytes;
    bool done;
    int rc;
    struct client *holds; /* pause after the first bytes; NULL: no pause */
    uint64_t call;
};

static void on_bytes(void *ctx, struct hk_str bytes)
{
    struct stream_heard *h = ctx;

    hk_buf_addstr(&h->bytes, bytes);
    if (h->holds) {
        get_stream_hold(h->holds, h->call);
    }
}

static void on_done(void *ctx, const struct port_msg *m)
{
    struct stream_heard *h = ctx;

    assert_int_equal(m->type, PORT_DONE);
    h->done = true;
    h->rc = m->rc;
}

static uint64_t listen_to(struct fixture *f, struct stream_heard *h)
{
    return get_stream_open(f->client, &(struct get_stream){.kind = api_kind(API_POD),
                                                           .path = "/api/v1/x/log?follow=true",
                                                           .on_bytes = on_bytes,
                                                           .done = {on_done, h}});
}

#define STREAM "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define REFUSAL                                                                                    \
    "HTTP/1.1 400 Bad\r\nContent-Length: 82\r\n\r\n"                                               \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"BadRequest\"," \
    "\"code\":400}  "

static void test_how_streams_end(void **state)
{
    static const struct {
        const char *what;
        struct script_line line;
        const char *bytes;
        int rc;
        uint32_t requests;
    } cases[] = {
        {"whole", {STREAM "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n", SCRIPT_KEEP}, "onetwo", 0, 1},
        {"empty", {STREAM "0\r\n\r\n", SCRIPT_KEEP}, "", 0, 1},
        {"broken off", {STREAM "3\r\none\r\n", SCRIPT_CLOSE}, "one", -HK_EIO, 1},
        {"refused", {REFUSAL, SCRIPT_KEEP}, "", -HK_EINVAL, 1},
        {"never begun", {NULL, SCRIPT_RESET}, "", -HK_EIO, 3}, /* may be repeated */
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct stream_heard h = {0};

        script_play(&f->script, &cases[i].line, 1);
        listen_to(f, &h);
        rig_until(&f->rig, h.done);
        if (h.rc != cases[i].rc || f->script.requests != cases[i].requests ||
            !hk_str_is(hk_buf_str(&h.bytes), cases[i].bytes)) {
            fail_msg("%s: rc %d, want %d; %u requests, want %u; bytes '%.*s'", cases[i].what, h.rc,
                     cases[i].rc, f->script.requests, cases[i].requests,
                     HK_FMT(hk_buf_str(&h.bytes)));
        }
        hk_buf_fini(&h.bytes);
    }
}

static void test_a_stream_does_not_delay_other_calls(void **state)
{
    static const struct script_line lines[] = {
        {STREAM "3\r\none\r\n", SCRIPT_KEEP},
        {STREAM "3\r\ntwo\r\n", SCRIPT_KEEP},
        {"HTTP/1.1 200 OK\r\nContent-Length: 62\r\n\r\n"
         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}",
         SCRIPT_KEEP}};
    struct fixture *f = *state;
    struct stream_heard first = {0}, second = {0};
    const struct port_request get = {.verb = PORT_GET,
                                     .kind = api_kind(API_CONFIGMAP),
                                     .ns = HK_STR("default"),
                                     .name = HK_STR("a")};

    script_play(&f->script, lines, HK_LEN(lines));
    listen_to(f, &first);
    rig_until(&f->rig, first.bytes.len == 3);
    const uint64_t call = listen_to(f, &second);
    rig_until(&f->rig, second.bytes.len == 3);
    struct outcome out = rig_ask(&f->rig, &get); /* using the only connection for calls */
    assert_int_equal(out.rc, 0);
    port_cancel(f->rig.port, call);
    assert_false(first.done || second.done);
    outcome_fini(&out);
    hk_buf_fini(&first.bytes);
    hk_buf_fini(&second.bytes);
}

static void test_a_paused_reader_gets_the_rest_when_it_continues(void **state)
{
    static const struct script_line line = {STREAM "3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n",
                                            SCRIPT_KEEP};
    struct fixture *f = *state;
    struct stream_heard h = {.holds = f->client};

    script_play(&f->script, &line, 1);
    h.call = listen_to(f, &h);
    rig_until(&f->rig, h.bytes.len > 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(net_loop_turn(f->rig.loop, 1, NULL), 0);
        port_poll(f->rig.port, 10);
    }
    assert_int_equal(h.bytes.len, 3);
    assert_false(h.done);
    h.holds = NULL;
    get_stream_go_on(f->client, h.call);
    rig_until(&f->rig, h.done);
    assert_int_equal(h.rc, 0);
    assert_true(hk_str_is(hk_buf_str(&h.bytes), "onetwo"));
    get_stream_go_on(f->client, h.call); /* the stream is over: nothing happens */
    hk_buf_fini(&h.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_how_streams_end, begin, end),
        cmocka_unit_test_setup_teardown(test_a_stream_does_not_delay_other_calls, begin, end),
        cmocka_unit_test_setup_teardown(test_a_paused_reader_gets_the_rest_when_it_continues, begin,
                                        end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
