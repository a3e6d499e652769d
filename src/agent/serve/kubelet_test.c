// SPDX-License-Identifier: Apache-2.0
// Tests of the kubelet API: which callers are admitted, how often the API server is asked about
// them, and which call each path becomes. The API server is a port that knows two tokens.
#include "agent/serve/kubelet.h"

#include "agent/serve/kubelet_access.h"
#include "base/vec.h"
#include "codec/json.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND_NS ((int64_t)1000000000)

struct asked {
    uint64_t id;
    struct port_sink sink;
    char *answer; /* JSON; NULL: a failure */
    const struct api_kind *kind;
};

struct rig {
    struct port port; /* first member: the port is the rig */
    struct hk_clock_manual clock;
    struct net_loop *loop;
    struct kubelet *kubelet;
    struct node_api api;
    HK_VEC(struct asked) asked;
    uint64_t last;
    struct hk_buf
        log; /* "tokenreviews good\n", "subjectaccessreviews alice get nodes/proxy n1\n" */
    struct hk_buf calls; /* "log d/p/c tail=1\n" */
    bool down;           /* every answer of the API server is a failure */
};

/* ---- the API server ---- */

static const char *text_at(const struct json *v, const char *path, struct hk_arena *mem)
{
    return hk_arena_str(mem, json_str(json_at(v, path), HK_STR(""))).s;
}

static char *token_answer(struct rig *r, const struct json *body, struct hk_arena *mem)
{
    const char *token = text_at(body, "spec.token", mem);
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    hk_buf_addf(&r->log, "tokenreviews %s\n", token);
    if (strcmp(token, "good") != 0 && strcmp(token, "weak") != 0) {
        return hk_strdup("{\"status\":{\"authenticated\":false}}");
    }
    hk_buf_addf(&out,
                "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"%s\",\"groups\":"
                "[\"g\"]}}}",
                strcmp(token, "good") == 0 ? "alice" : "bob");
    return hk_strdup(out.data);
}

static char *access_answer(struct rig *r, const struct json *body, struct hk_arena *mem)
{
    const char *user = text_at(body, "spec.user", mem), *deed = "spec.resourceAttributes";
    const struct json *what = json_at(body, deed);

    hk_buf_addf(&r->log, "subjectaccessreviews %s %s %s/%s %s\n", user, text_at(what, "verb", mem),
                text_at(what, "resource", mem), text_at(what, "subresource", mem),
                text_at(what, "name", mem));
    return hk_strdup(strcmp(user, "alice") == 0 ? "{\"status\":{\"allowed\":true}}"
                                                : "{\"status\":{\"allowed\":false}}");
}

static uint64_t rig_submit(struct port *p, const struct port_request *q, struct port_sink sink)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct rig *r = (struct rig *)p;
    struct asked a = {.id = ++r->last, .sink = sink, .kind = q->kind};

    assert_int_equal(q->verb, PORT_CREATE);
    if (!r->down) {
        a.answer = strcmp(q->kind->plural, "tokenreviews") == 0 ? token_answer(r, q->body, &mem)
                                                                : access_answer(r, q->body, &mem);
    }
    hk_vec_push(&r->asked, a);
    return a.id;
}

static void rig_cancel(struct port *p, uint64_t call)
{
    struct rig *r = (struct rig *)p;

    for (uint32_t i = 0; i < r->asked.len; i++) {
        if (r->asked.at[i].id == call) {
            hk_free(r->asked.at[i].answer);
            hk_vec_swap_remove(&r->asked, i);
            return;
        }
    }
}

static void answer(struct asked *a)
{
    struct hk_err err = {.text = "no answer"};
    struct port_msg m = {.type = PORT_DONE, .call = a->id, .rc = -HK_EIO, .err = &err};

    if (a->answer) {
        assert_int_equal(api_object_parse(a->kind, hk_str(a->answer), &m.obj, &err), 0);
        m.rc = 0;
    }
    a->sink.on_msg(a->sink.ctx, &m);
    api_object_unref(m.obj);
    hk_free(a->answer);
}

static uint32_t rig_poll(struct port *p, uint32_t max)
{
    struct rig *r = (struct rig *)p;
    uint32_t n = 0;

    for (; r->asked.len > 0; n++) {
        struct asked a = r->asked.at[0];

        hk_vec_swap_remove(&r->asked, 0);
        answer(&a);
    }
    return n;
}

static const struct port_ops rig_ops = {
    .name = "rig", .submit = rig_submit, .cancel = rig_cancel, .poll = rig_poll};

/* ---- the node ---- */

static void serve(void *ctx, const struct node_call *call)
{
    struct rig *r = ctx;
    struct hk_buf body = {0};

    assert_true(call->kubelet);
    hk_buf_addf(&r->calls, "%.*s %.*s/%.*s/%.*s %.*s\n", HK_FMT(call->sub), HK_FMT(call->ns),
                HK_FMT(call->pod), HK_FMT(call->container), HK_FMT(call->query));
    hk_buf_adds(&body, "served");
    http_reply(call->http, 200, NULL, 0, &body);
}

static void write_pods(void *ctx, struct hk_buf *out)
{
    hk_buf_adds(out, "{\"kind\":\"Pod\"}");
}

static int begin(void **state)
{
    struct rig *r = hk_zalloc(sizeof(*r));

    *state = r;
    r->port.ops = &rig_ops;
    hk_clock_manual_init(&r->clock, SECOND_NS);
    r->loop = net_loop_new(hk_clock_system());
    r->api = (struct node_api){.serve = serve, .ctx = r};
    return kubelet_new(&(struct kubelet_opts){.loop = r->loop,
                                              .clock = &r->clock.clock,
                                              .port = &r->port,
                                              .addr = HK_STR("127.0.0.1"),
                                              .node = "n1",
                                              .api = &r->api,
                                              .write_pods = write_pods,
                                              .ctx = r},
                       &r->kubelet, NULL);
}

static int end(void **state)
{
    struct rig *r = *state;

    kubelet_free(r->kubelet);
    net_loop_free(r->loop);
    hk_vec_fini(&r->asked);
    hk_buf_fini(&r->log);
    hk_buf_fini(&r->calls);
    hk_free(r);
    return 0;
}

/* ---- the client ---- */

static int dial(const struct rig *r)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons(kubelet_port(r->kubelet)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

static int send_request(const struct rig *r, const char *line, const char *token)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const int fd = dial(r);

    hk_buf_addf(&text, "%s HTTP/1.1\r\nHost: n1\r\nConnection: close\r\n", line);
    if (token) {
        hk_buf_addf(&text, "Authorization: Bearer %s\r\n", token);
    }
    hk_buf_adds(&text, "\r\n");
    assert_int_equal(send(fd, text.data, text.len, MSG_NOSIGNAL), (ssize_t)text.len);
    return fd;
}

/* Returns the status; the body follows the headers in ret. */
static int ask(struct rig *r, const char *line, const char *token, struct hk_buf *ret)
{
    const int fd = send_request(r, line, token);
    char part[4096];
    ssize_t n = -1;

    for (int turns = 0; n != 0 && turns < 1000; turns++) {
        assert_int_equal(net_loop_turn(r->loop, 10, NULL), 0);
        port_poll(&r->port, 10);
        n = recv(fd, part, sizeof(part), MSG_DONTWAIT);
        if (n > 0) {
            hk_buf_addstr(ret, (struct hk_str){part, (size_t)n});
        }
    }
    close(fd);
    assert_int_equal(n, 0);
    assert_true(ret->len > 12);
    return (ret->data[9] - '0') * 100 + (ret->data[10] - '0') * 10 + ret->data[11] - '0';
}

static int status_of(struct rig *r, const char *line, const char *token)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    return ask(r, line, token, &text);
}

static uint32_t count_lines(const struct hk_buf *b)
{
    uint32_t n = 0;

    for (size_t i = 0; i < b->len; i++) {
        n += b->data[i] == '\n';
    }
    return n;
}

/* ---- the tests ---- */

static void test_who_does_not_say_who_he_is_gets_nothing(void **state)
{
    struct rig *r = *state;

    assert_int_equal(status_of(r, "GET /healthz", NULL), 401);
    assert_int_equal(status_of(r, "GET /containerLogs/d/p/c", NULL), 401);
    assert_int_equal(status_of(r, "GET /nothing", NULL), 401);
    assert_int_equal(r->log.len, 0);
    assert_int_equal(r->calls.len, 0);
}

static void test_the_api_server_says_who_it_is_and_what_he_may(void **state)
{
    struct rig *r = *state;

    assert_int_equal(status_of(r, "GET /healthz", "good"), 200);
    assert_string_equal(r->log.data, "tokenreviews good\n"
                                     "subjectaccessreviews alice get nodes/proxy n1\n");
    assert_int_equal(status_of(r, "GET /healthz", "weak"), 403);
    assert_int_equal(status_of(r, "GET /healthz", "other"), 401);
    assert_int_equal(r->calls.len, 0);
}

static void test_what_it_said_is_believed_for_a_while(void **state)
{
    struct rig *r = *state;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(status_of(r, "GET /healthz", "good"), 200);
        assert_int_equal(status_of(r, "GET /healthz", "weak"), 403);
    }
    assert_int_equal(count_lines(&r->log), 4);
    /* Another verb needs another review. */
    assert_int_equal(status_of(r, "POST /healthz", "good"), 405);
    assert_int_equal(count_lines(&r->log), 6);
    r->clock.now_ns += 11 * SECOND_NS;
    assert_int_equal(status_of(r, "GET /healthz", "weak"), 403);
    assert_int_equal(status_of(r, "GET /healthz", "good"), 200);
    assert_int_equal(count_lines(&r->log), 8);
    r->clock.now_ns += 50 * SECOND_NS;
    assert_int_equal(status_of(r, "GET /healthz", "good"), 200);
    assert_int_equal(count_lines(&r->log), 10);
}

static void test_while_it_cannot_be_asked_nobody_is_let_in(void **state)
{
    struct rig *r = *state;

    r->down = true;
    assert_int_equal(status_of(r, "GET /healthz", "good"), 500);
    r->down = false;
    assert_int_equal(status_of(r, "GET /healthz", "good"), 200);
}

static void test_many_who_try_do_not_fill_the_memory(void **state)
{
    struct rig *r = *state;
    char token[32];

    for (int i = 0; i < 300; i++) {
        snprintf(token, sizeof(token), "guess-%d", i);
        assert_int_equal(status_of(r, "GET /healthz", token), 401);
    }
    assert_int_equal(count_lines(&r->log), 300);
    /* The first one has been dropped, the last one not. */
    assert_int_equal(status_of(r, "GET /healthz", "guess-299"), 401);
    assert_int_equal(count_lines(&r->log), 300);
    assert_int_equal(status_of(r, "GET /healthz", "guess-0"), 401);
    assert_int_equal(count_lines(&r->log), 301);
}

static void test_paths_become_calls(void **state)
{
    static const struct {
        const char *line;
        int status;
        const char *call;
    } cases[] = {
        {"GET /containerLogs/d/p/c?tailLines=1&follow=true", 200,
         "log d/p/c tailLines=1&follow=true\n"},
        {"GET /containerLogs/d/p/a%2Db", 200, "log d/p/a-b \n"},
        {"GET /exec/d/p/c?command=ls&output=1", 200, "exec d/p/c command=ls&output=1\n"},
        {"POST /exec/d/p/c?command=ls", 200, "exec d/p/c command=ls\n"},
        {"GET /exec/d/p/some-uid/c?command=ls", 200, "exec d/p/c command=ls\n"},
        {"POST /portForward/d/p", 200, "portforward d/p/ \n"},
        {"GET /attach/d/p/c?input=1", 200, "attach d/p/c input=1\n"},
        {"GET /containerLogs/d/p", 404, ""},
        {"GET /containerLogs/d/p/c/e/f/g/h", 404, ""},
        {"GET /containerLogs/d/p/%zz", 404, ""},
        {"GET /run/d/p/c?cmd=ls", 404, ""},
        {"GET /", 404, ""},
        {"PUT /containerLogs/d/p/c", 405, ""},
    };
    struct rig *r = *state;

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        hk_buf_clear(&r->calls);
        assert_int_equal(status_of(r, cases[i].line, "good"), cases[i].status);
        assert_string_equal(hk_buf_str(&r->calls).s, cases[i].call);
    }
}

static void test_pods_are_a_list(void **state)
{
    struct rig *r = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    assert_int_equal(ask(r, "GET /pods", "good", &text), 200);
    assert_non_null(strstr(text.data, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},"
                                      "\"items\":[{\"kind\":\"Pod\"}]}"));
}

static void test_a_server_may_end_while_somebody_waits(void **state)
{
    struct rig *r = *state;
    const int fd = send_request(r, "GET /healthz", "good");

    for (int turns = 0; r->asked.len == 0 && turns < 1000; turns++) {
        assert_int_equal(net_loop_turn(r->loop, 10, NULL), 0);
    }
    assert_int_equal(r->asked.len, 1);
    kubelet_free(hk_take(r->kubelet));
    assert_int_equal(r->asked.len, 0);
    close(fd);
}

/* ---- certificates ---- */

static int verdict;

static void on_verdict(void *ctx, int status, const char *why)
{
    verdict = status;
}

static void test_a_certificate_says_who_it_is(void **state)
{
    static const char *const orgs[] = {"g1", "g2"};
    struct rig *r = *state;
    const struct kubelet_caller alice = {.cn = "alice", .orgs = orgs, .norgs = 2},
                                bob = {.cn = "bob"};
    struct kubelet_access *a = kubelet_access_new(
        &(struct kubelet_access_opts){.port = &r->port, .clock = &r->clock.clock, .node = ""});

    kubelet_access_ask(a, &alice, on_verdict, NULL);
    port_poll(&r->port, 10);
    assert_int_equal(verdict, 200);
    assert_string_equal(r->log.data, "subjectaccessreviews alice get nodes/proxy \n");
    kubelet_access_ask(a, &bob, on_verdict, NULL);
    port_poll(&r->port, 10);
    assert_int_equal(verdict, 403);
    kubelet_access_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_does_not_say_who_he_is_gets_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_the_api_server_says_who_it_is_and_what_he_may, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_what_it_said_is_believed_for_a_while, begin, end),
        cmocka_unit_test_setup_teardown(test_while_it_cannot_be_asked_nobody_is_let_in, begin, end),
        cmocka_unit_test_setup_teardown(test_many_who_try_do_not_fill_the_memory, begin, end),
        cmocka_unit_test_setup_teardown(test_paths_become_calls, begin, end),
        cmocka_unit_test_setup_teardown(test_pods_are_a_list, begin, end),
        cmocka_unit_test_setup_teardown(test_a_server_may_end_while_somebody_waits, begin, end),
        cmocka_unit_test_setup_teardown(test_a_certificate_says_who_it_is, begin, end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
