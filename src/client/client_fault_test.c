// SPDX-License-Identifier: Apache-2.0
// The client with faulty servers: which calls are repeated and which must not be, the result of
// each failure, streams that break off, stall or send invalid data, and calls cancelled in every
// state.
#include "client/script_test.h"

#include <poll.h>

/* The system clock plus an offset that the test sets. */
struct skewed_clock {
    struct hk_clock clock;
    int64_t skew_ns;
};

struct fixture {
    struct rig rig;
    struct script script;
    struct skewed_clock clock;
};

static int64_t skewed_ns(struct hk_clock *c)
{
    return hk_clock_system()->mono_ns(hk_clock_system()) + ((struct skewed_clock *)c)->skew_ns;
}

static int begin(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    *state = f;
    hk_rand_seed(&f->rig.rand, 1);
    f->clock.clock = (struct hk_clock){.wall_ns = skewed_ns, .mono_ns = skewed_ns};
    f->rig.loop = net_loop_new(&f->clock.clock);
    script_open(&f->script, f->rig.loop);
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

static struct kubeconfig plain_config(struct fixture *f)
{
    struct kubeconfig k = {0};
    char server[64];

    snprintf(server, sizeof(server), "http://127.0.0.1:%u", f->script.port);
    const struct kubeconfig_opts o = {.server = server, .token = "t"};
    assert_int_equal(kubeconfig_load(&o, &k, NULL), 0);
    return k;
}

static struct client_opts opts(struct fixture *f)
{
    struct client_opts o = rig_client_opts(&f->rig);

    o.retries = 2;
    return o;
}

static void connect_with(struct fixture *f, const struct client_opts *o)
{
    port_free(f->rig.port);
    rig_client(&f->rig, o, plain_config(f));
}

/* ---- answers ---- */

#define OBJECT "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}"
#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 62\r\n\r\n" OBJECT
#define EMPTY(head) "HTTP/1.1 " head "\r\nContent-Length: 0\r\n\r\n"
#define LATER EMPTY("429 Too Many Requests\r\nRetry-After: 0")
#define FORBIDDEN                                                                                  \
    "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 65\r\n\r\n"                                 \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":429}"
#define STREAM "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static const struct port_request get_a = {
    .verb = PORT_GET, .ns = HK_STR("default"), .name = HK_STR("a")};
static const struct port_request create_a = {.verb = PORT_CREATE, .ns = HK_STR("default")};
static const struct port_request delete_a = {
    .verb = PORT_DELETE, .ns = HK_STR("default"), .name = HK_STR("a")};
static const struct port_request evict_a = {
    .verb = PORT_CREATE, .ns = HK_STR("default"), .name = HK_STR("a"), .subresource = "eviction"};
static const struct port_request list_all = {.verb = PORT_LIST, .ns = HK_STR("default")};
static const struct port_request watch_all = {.verb = PORT_WATCH, .ns = HK_STR("default")};

static struct port_request filled(struct fixture *f, const struct port_request *from)
{
    struct port_request req = *from;

    req.kind = api_kind(API_CONFIGMAP);
    if (req.verb == PORT_CREATE) {
        req.body = rig_json(&f->rig.mem, "{'metadata':{'name':'a'}}");
    }
    return req;
}

static struct outcome ask(struct fixture *f, const struct port_request *from)
{
    const struct port_request req = filled(f, from);

    return rig_ask(&f->rig, &req);
}

static void test_which_failures_are_retried(void **state)
{
    static const struct {
        const char *what;
        const struct port_request *req;
        struct script_line lines[3];
        uint32_t nlines;
        int rc;            /* hk_code */
        uint32_t requests; /* requests received */
    } cases[] = {
        {"an answer is an answer", &get_a, {{OK_ANSWER, SCRIPT_KEEP}}, 1, 0, 1},
        {"a read whose connection closed", &get_a, {{NULL, SCRIPT_CLOSE}, {OK_ANSWER, 0}}, 2, 0, 2},
        {"a read whose connection broke", &get_a, {{NULL, SCRIPT_RESET}, {OK_ANSWER, 0}}, 2, 0, 2},
        {"a read cut short",
         &get_a,
         {{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"kind\"", SCRIPT_CLOSE},
          {OK_ANSWER, 0}},
         2,
         0,
         2},
        {"a list cut short in a chunk",
         &list_all,
         {{STREAM "20\r\n{\"kind\"", SCRIPT_CLOSE}, {STREAM "2\r\n{}\r\n0\r\n\r\n", 0}},
         2,
         0,
         2},
        {"a read that never works", &get_a, {{NULL, SCRIPT_CLOSE}}, 1, HK_EIO, 3},
        {"a write whose connection closed", &create_a, {{NULL, SCRIPT_CLOSE}}, 1, HK_EIO, 1},
        {"a write whose connection broke", &create_a, {{NULL, SCRIPT_RESET}}, 1, HK_EIO, 1},
        {"a write whose answer was cut",
         &create_a,
         {{"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{", SCRIPT_CLOSE}},
         1,
         HK_EIO,
         1},
        {"a deletion whose connection closed", &delete_a, {{NULL, SCRIPT_CLOSE}}, 1, HK_EIO, 1},
        {"a write put off", &create_a, {{LATER, 0}, {LATER, 0}, {OK_ANSWER, 0}}, 3, 0, 3},
        {"a write put off for ever", &create_a, {{LATER, 0}}, 1, HK_EBUSY, 3},
        {"a write the server was not ready for",
         &create_a,
         {{EMPTY("503 No\r\nRetry-After: 0"), 0}, {OK_ANSWER, 0}},
         2,
         0,
         2},
        {"a write in trouble", &create_a, {{EMPTY("503 No"), 0}}, 1, HK_EBUSY, 1},
        {"a read in trouble", &get_a, {{EMPTY("503 No"), 0}, {OK_ANSWER, 0}}, 2, 0, 2},
        {"an eviction a budget forbids", &evict_a, {{FORBIDDEN, 0}}, 1, HK_EBUSY, 1},
        {"an eviction put off", &evict_a, {{LATER, 0}, {FORBIDDEN, 0}}, 2, HK_EBUSY, 2},
        {"a server that failed", &get_a, {{EMPTY("500 Oops"), 0}}, 1, HK_EIO, 1},
        {"a server that failed in a write", &create_a, {{EMPTY("500 Oops"), 0}}, 1, HK_EIO, 1},
        {"no such page", &get_a, {{EMPTY("404 No"), 0}}, 1, HK_ENOTFOUND, 1},
        {"no credentials to renew", &get_a, {{EMPTY("401 Who"), 0}}, 1, HK_EDENIED, 1},
        {"a page that moved", &get_a, {{EMPTY("302 There\r\nLocation: /x"), 0}}, 1, HK_EIO, 1},
        {"words that are no HTTP", &create_a, {{"hello\r\n\r\n", SCRIPT_CLOSE}}, 1, HK_EIO, 1},
        {"words that are no JSON",
         &get_a,
         {{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 0}},
         1,
         HK_EIO,
         1},
        {"a Status that is not whole",
         &create_a,
         {{"HTTP/1.1 201 Created\r\nContent-Length: 34\r\n\r\n"
           "{\"kind\":\"Status\",\"apiVersion\":\"v1\"",
           0}},
         1,
         HK_EIO,
         1},
        {"a list that is none",
         &list_all,
         {{"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{\"items\":[1]}", 0}},
         1,
         HK_EIO,
         1},
        {"a watch put off", &watch_all, {{LATER, 0}}, 1, HK_EBUSY, 1},
        {"a watch of the forgotten", &watch_all, {{EMPTY("410 Gone"), 0}}, 1, HK_EGONE, 1},
        {"a watch whose connection closed", &watch_all, {{NULL, SCRIPT_CLOSE}}, 1, HK_EIO, 1},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct client_opts o = opts(f);
        connect_with(f, &o);
        script_play(&f->script, cases[i].lines, cases[i].nlines);
        struct outcome out = ask(f, cases[i].req);
        if (out.rc != -cases[i].rc || f->script.requests != cases[i].requests) {
            fail_msg("%s: want %d after %u requests, have %d (%s) after %u", cases[i].what,
                     -cases[i].rc, cases[i].requests, out.rc, out.text, f->script.requests);
        }
        outcome_fini(&out);
    }
}

/* libcurl repeats requests by itself when a reused connection dies; writes must not be. */
static void test_a_write_on_a_kept_connection_is_sent_once(void **state)
{
    static const struct script_line lines[] = {{OK_ANSWER, SCRIPT_KEEP}, {NULL, SCRIPT_CLOSE}};
    static const struct port_request *const writes[] = {&create_a, &delete_a};
    struct fixture *f = *state;

    for (size_t i = 0; i < HK_LEN(writes); i++) {
        const struct client_opts o = opts(f);
        connect_with(f, &o);
        script_play(&f->script, lines, 2);
        struct outcome out = ask(f, &get_a);
        assert_int_equal(out.rc, 0);
        outcome_fini(&out);
        out = ask(f, writes[i]);
        assert_int_equal(out.rc, -HK_EIO);
        assert_int_equal(out.code, 0);
        assert_int_equal(f->script.requests, 2);
        assert_int_equal(f->script.reused, 1);
    }
}

static void test_a_write_that_was_not_sent_says_so(void **state)
{
    struct fixture *f = *state;
    const struct client_opts o = opts(f);

    connect_with(f, &o);
    script_deaf(&f->script);
    struct outcome out = ask(f, &create_a);
    assert_int_equal(out.rc, -HK_EBUSY);
    out = ask(f, &get_a);
    assert_int_equal(out.rc, -HK_EIO);
}

static void test_silence_times_out(void **state)
{
    static const struct script_line silence = {NULL, SCRIPT_KEEP};
    static const struct port_request *const reqs[] = {&get_a, &create_a, &watch_all};
    struct fixture *f = *state;
    struct client_opts o = opts(f);

    o.request_timeout_ms = 300;
    connect_with(f, &o);
    for (size_t i = 0; i < HK_LEN(reqs); i++) {
        const struct port_request req = filled(f, reqs[i]);
        struct outcome out = {0};
        script_play(&f->script, &silence, 1);
        port_submit(f->rig.port, &req, (struct port_sink){outcome_on_msg, &out});
        rig_until(&f->rig, f->script.requests == 1);
        f->clock.skew_ns += req.verb == PORT_WATCH ? (int64_t)3600 * 1000000000 : 0;
        rig_until(&f->rig, out.done);
        assert_int_equal(out.rc, -HK_ETIMEOUT);
        assert_int_equal(f->script.requests, 1);
    }
}

static void test_the_size_of_an_answer_is_limited(void **state)
{
    static const struct script_line line = {OK_ANSWER, SCRIPT_KEEP};
    struct fixture *f = *state;
    struct client_opts o = opts(f);

    o.max_answer_bytes = 20;
    connect_with(f, &o);
    script_play(&f->script, &line, 1);
    assert_int_equal(ask(f, &get_a).rc, -HK_ELIMIT);
    assert_int_equal(f->script.requests, 1);
    assert_int_equal(ask(f, &create_a).rc, -HK_EIO);
}

/* ---- streams ---- */

#define EVENT(type, name)                                                                          \
    "{\"type\":\"" type "\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","             \
    "\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"7\"}}}"
#define BOOKMARK                                                                                   \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","             \
    "\"metadata\":{\"resourceVersion\":\"9\",\"annotations\":{"                                    \
    "\"k8s.io/initial-events-end\":\"true\"}}}}"
#define EXPIRED                                                                                    \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","                   \
    "\"status\":\"Failure\",\"reason\":\"Expired\",\"message\":\"too old\",\"code\":410}}"
#define UNCHUNKED "HTTP/1.1 200 OK\r\n\r\n"

static void test_how_streams_end(void **state)
{
    static const struct {
        const char *what;
        struct script_line line;
        const char *heard;
        int rc;
    } cases[] = {
        {"the server's time is up",
         {UNCHUNKED EVENT("ADDED", "a") "\n" EVENT("MODIFIED", "a") "\n", SCRIPT_CLOSE},
         "+a ~a",
         0},
        {"events need no lines",
         {UNCHUNKED EVENT("ADDED", "a") EVENT("DELETED", "a") "  ", SCRIPT_CLOSE},
         "+a -a",
         0},
        {"a proper end of chunks", {STREAM "0\r\n\r\n", SCRIPT_KEEP}, "", 0},
        {"cut between chunks", {STREAM "1\r\n \r\n", SCRIPT_CLOSE}, "", -HK_EIO},
        {"cut in an event",
         {UNCHUNKED EVENT("ADDED", "a") "{\"type\":", SCRIPT_CLOSE},
         "+a",
         -HK_EIO},
        {"reset", {UNCHUNKED EVENT("ADDED", "a"), SCRIPT_RESET}, NULL, -HK_EIO},
        {"too old", {UNCHUNKED EVENT("ADDED", "a") EXPIRED, SCRIPT_KEEP}, "+a", -HK_EGONE},
        {"garbage between", {UNCHUNKED EVENT("ADDED", "a") "x", SCRIPT_KEEP}, "+a", -HK_EIO},
        {"garbage inside",
         {UNCHUNKED "{\"type\":\"ADDED\",\"object\":{nonsense}}", SCRIPT_KEEP},
         "",
         -HK_EIO},
        {"a type unheard of", {UNCHUNKED EVENT("SHOUTED", "a"), SCRIPT_KEEP}, "", -HK_EIO},
        {"too much of an event",
         {UNCHUNKED EVENT("ADDED", "0123456789012345678901234567890123456789012345678901234567890"
                                   "0123456789012345678901234567890123456789012345678901234567890"),
          SCRIPT_KEEP},
         "",
         -HK_ELIMIT},
        {"a bookmark nobody asked for", {UNCHUNKED BOOKMARK, SCRIPT_CLOSE}, "", 0},
    };
    struct fixture *f = *state;
    struct client_opts o = opts(f);

    o.max_event_bytes = 200;
    connect_with(f, &o);
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct port_request req = filled(f, &watch_all);
        struct heard h = {0};
        script_play(&f->script, &cases[i].line, 1);
        port_submit(f->rig.port, &req, (struct port_sink){heard_on_msg, &h});
        rig_until(&f->rig, h.done);
        const char *heard = hk_buf_str(&h.text).s;
        if (h.rc != cases[i].rc || (cases[i].heard && strcmp(heard, cases[i].heard) != 0)) {
            fail_msg("%s: want '%s' and %d, have '%s' and %d", cases[i].what, cases[i].heard,
                     cases[i].rc, heard, h.rc);
        }
        heard_fini(&h);
    }
}

static void test_bookmarks_are_sent_on_request(void **state)
{
    static const struct script_line line = {UNCHUNKED BOOKMARK, SCRIPT_CLOSE};
    struct fixture *f = *state;
    const struct client_opts o = opts(f);
    struct port_request req = filled(f, &watch_all);

    connect_with(f, &o);
    for (int asked = 0; asked < 2; asked++) {
        struct heard h = {0};
        req.bookmarks = asked == 0;
        req.initial = asked == 0 ? PORT_INITIAL_AUTO : PORT_INITIAL_SEND;
        script_play(&f->script, &line, 1);
        port_submit(f->rig.port, &req, (struct port_sink){heard_on_msg, &h});
        rig_until(&f->rig, h.done);
        assert_string_equal(h.text.data, ".");
        assert_int_equal(h.rv, 9);
        assert_true(h.initial_end);
        heard_fini(&h);
    }
}

/* Runs the loop without polling until messages wait. */
static void await_messages(struct fixture *f)
{
    const int64_t deadline = net_loop_now_ns(f->rig.loop) + (int64_t)RIG_PATIENCE_MS * 1000000;
    struct pollfd readable = {.fd = port_fd(f->rig.port), .events = POLLIN};
    struct hk_err err = {0};

    while (poll(&readable, 1, 0) == 0 && net_loop_now_ns(f->rig.loop) < deadline) {
        assert_int_equal(net_loop_turn(f->rig.loop, 2, &err), 0);
    }
    assert_true(readable.revents & POLLIN);
}

/* A reader that does not poll uses limited memory: further data waits in the socket, and the
 * resulting silence does not count as a stall. */
static void test_a_stream_waits_for_its_reader(void **state)
{
    enum { EVENTS = 400 };
    struct fixture *f = *state;
    struct client_opts o = opts(f);
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct heard h = {0};
    const struct port_request req = filled(f, &watch_all);
    struct hk_err err = {0};

    o.max_waiting_bytes = 16384;
    connect_with(f, &o);
    hk_buf_adds(&text, UNCHUNKED);
    for (int i = 0; i < EVENTS; i++) {
        hk_buf_adds(&text, EVENT("ADDED", "a") "\n");
    }
    const struct script_line line = {text.data, SCRIPT_CLOSE};
    script_play(&f->script, &line, 1);
    port_submit(f->rig.port, &req, (struct port_sink){heard_on_msg, &h});
    await_messages(f);
    f->clock.skew_ns += (int64_t)3600 * 1000000000;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(net_loop_turn(f->rig.loop, 0, &err), 0);
    }
    assert_in_range(port_poll(f->rig.port, UINT32_MAX), 1, EVENTS - 1);
    rig_until(&f->rig, h.done);
    assert_int_equal(h.rc, 0);
    assert_int_equal(h.events, EVENTS);
    heard_fini(&h);
}

/* ---- headers of a request ---- */

static void test_headers_identify_the_user(void **state)
{
    static const struct script_line line = {OK_ANSWER, SCRIPT_KEEP};
    static const struct {
        const char *cluster, *user;
        const char *want[6];
    } cases[] = {
        {"",
         "token: t",
         {"\r\nAuthorization: Bearer t\r\n", "\r\nUser-Agent: tester\r\n",
          "POST /api/v1/namespaces/default/configmaps?", "\r\nAccept: application/json\r\n",
          "\r\nContent-Type: application/json\r\n", "\r\n\r\n{\"metadata\":{\"name\":\"a\"}}"}},
        {"", "username: me, password: pw", {"\r\nAuthorization: Basic bWU6cHc=\r\n"}},
        {"",
         "token: t, as: a, as-uid: i, as-groups: [g, h], as-user-extra: {'k/1': [v]}",
         {"\r\nImpersonate-User: a\r\n", "\r\nImpersonate-Uid: i\r\n",
          "\r\nImpersonate-Group: g\r\n", "\r\nImpersonate-Group: h\r\n",
          "\r\nImpersonate-Extra-k%2F1: v\r\n"}},
        {"/prefix", "token: t", {"POST /prefix/api/v1/namespaces/default/configmaps?"}},
    };
    struct fixture *f = *state;
    struct client_opts o = opts(f);

    o.user_agent = "tester";
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        struct kubeconfig k = {0};
        hk_buf_addf(&text,
                    "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
                    "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%u%s'}}]\n"
                    "users: [{name: u, user: {%s}}]\n",
                    f->script.port, cases[i].cluster, cases[i].user);
        assert_int_equal(
            kubeconfig_parse(hk_buf_str(&text), "/", &(struct kubeconfig_opts){0}, &k, NULL), 0);
        port_free(f->rig.port);
        rig_client(&f->rig, &o, k);
        script_play(&f->script, &line, 1);
        struct outcome out = ask(f, &create_a);
        assert_int_equal(out.rc, 0);
        outcome_fini(&out);
        for (size_t w = 0; w < HK_LEN(cases[i].want) && cases[i].want[w]; w++) {
            if (!strstr(f->script.last.data, cases[i].want[w])) {
                fail_msg("want '%s' in '%s'", cases[i].want[w], f->script.last.data);
            }
        }
    }
}

static void test_a_proxy_is_asked(void **state)
{
    static const struct script_line line = {OK_ANSWER, SCRIPT_KEEP};
    struct fixture *f = *state;
    const struct client_opts o = opts(f);
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct kubeconfig k = {0};

    hk_buf_addf(&text,
                "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                "clusters: [{name: k, cluster: {server: 'http://far.invalid:99', proxy-url: "
                "'http://127.0.0.1:%u'}}]\n",
                f->script.port);
    assert_int_equal(
        kubeconfig_parse(hk_buf_str(&text), "/", &(struct kubeconfig_opts){0}, &k, NULL), 0);
    rig_client(&f->rig, &o, k);
    script_play(&f->script, &line, 1);
    struct outcome out = ask(f, &get_a);
    assert_int_equal(out.rc, 0);
    outcome_fini(&out);
    assert_string_equal(f->script.log.data,
                        "GET http://far.invalid:99/api/v1/namespaces/default/configmaps/a\n");
}

/* ---- the line ---- */

static void test_what_goes_first(void **state)
{
    static const struct script_line lines[] = {{NULL, SCRIPT_KEEP}, {OK_ANSWER, SCRIPT_KEEP}};
    struct fixture *f = *state;
    struct client_opts o = opts(f);
    struct outcome outs[5] = {0};
    struct port_request req = filled(f, &create_a), blocker = filled(f, &get_a);

    o.connections = 1;
    connect_with(f, &o);
    script_play(&f->script, lines, 2);
    const uint64_t first = port_submit(f->rig.port, &blocker, (struct port_sink){0});
    rig_until(&f->rig, f->script.requests == 1);
    const struct {
        enum api_kind_id kind;
        const char *sub;
    } order[] = {{API_EVENT, NULL},
                 {API_CONFIGMAP, NULL},
                 {API_POD, NULL},
                 {API_LEASE, NULL},
                 {API_POD, "binding"}};
    for (size_t i = 0; i < HK_LEN(order); i++) {
        req.kind = api_kind(order[i].kind);
        req.subresource = order[i].sub;
        req.name = order[i].sub ? HK_STR("p") : HK_STR("");
        port_submit(f->rig.port, &req, (struct port_sink){outcome_on_msg, &outs[i]});
    }
    hk_buf_clear(&f->script.log);
    port_cancel(f->rig.port, first);
    rig_until(&f->rig, outs[0].done);
    assert_string_equal(
        f->script.log.data,
        "POST /apis/coordination.k8s.io/v1/namespaces/default/leases?fieldValidation=Ignore\n"
        "POST /api/v1/namespaces/default/pods/p/binding?fieldValidation=Ignore\n"
        "POST /api/v1/namespaces/default/configmaps?fieldValidation=Ignore\n"
        "POST /api/v1/namespaces/default/pods?fieldValidation=Ignore\n"
        "POST /api/v1/namespaces/default/events?fieldValidation=Ignore\n");
    for (size_t i = 0; i < HK_LEN(outs); i++) {
        assert_true(outs[i].done);
        outcome_fini(&outs[i]);
    }
}

static bool says_flag(void *ctx)
{
    return *(const bool *)ctx;
}

static void test_writes_that_were_barred_meanwhile(void **state)
{
    static const struct script_line lines[] = {{NULL, SCRIPT_KEEP}, {OK_ANSWER, SCRIPT_KEEP}};
    struct fixture *f = *state;
    struct client_opts o = opts(f);
    struct outcome outs[3] = {0};
    struct port_request req = filled(f, &create_a), blocker = filled(f, &get_a);
    bool may_write = true;

    o.connections = 1;
    o.may_write = says_flag;
    o.ctx = &may_write;
    connect_with(f, &o);
    script_play(&f->script, lines, 2);
    const uint64_t first = port_submit(f->rig.port, &blocker, (struct port_sink){0});
    rig_until(&f->rig, f->script.requests == 1);
    port_submit(f->rig.port, &req, (struct port_sink){outcome_on_msg, &outs[0]});
    port_submit(f->rig.port, &blocker, (struct port_sink){outcome_on_msg, &outs[1]});
    req.kind = api_kind(API_LEASE);
    port_submit(f->rig.port, &req, (struct port_sink){outcome_on_msg, &outs[2]});
    may_write = false; /* while they wait */
    hk_buf_clear(&f->script.log);
    port_cancel(f->rig.port, first);
    rig_until(&f->rig, outs[0].done && outs[1].done && outs[2].done);
    assert_string_equal(
        f->script.log.data,
        "POST /apis/coordination.k8s.io/v1/namespaces/default/leases?fieldValidation=Ignore\n"
        "GET /api/v1/namespaces/default/configmaps/a\n");
    assert_int_equal(outs[0].rc, -HK_EDENIED);
    assert_int_equal(outs[1].rc, 0);
    for (size_t i = 0; i < HK_LEN(outs); i++) {
        outcome_fini(&outs[i]);
    }
}

static void test_leases_do_not_wait_for_other_calls(void **state)
{
    static const struct script_line lines[] = {{NULL, SCRIPT_KEEP}, {OK_ANSWER, SCRIPT_KEEP}};
    struct fixture *f = *state;
    struct client_opts o = opts(f);
    struct outcome out = {0};
    struct port_request renewal = filled(f, &create_a), slow = filled(f, &get_a);

    o.connections = 1;
    o.qps = 0.001;
    o.burst = 1;
    connect_with(f, &o);
    script_play(&f->script, lines, 2);
    port_submit(f->rig.port, &slow, (struct port_sink){0}); /* never answered */
    rig_until(&f->rig, f->script.requests == 1);
    renewal.kind = api_kind(API_LEASE);
    port_submit(f->rig.port, &renewal, (struct port_sink){outcome_on_msg, &out});
    rig_until(&f->rig, out.done);
    outcome_fini(&out);
}

static void test_the_rate_is_kept(void **state)
{
    static const struct script_line line = {OK_ANSWER, SCRIPT_KEEP};
    struct fixture *f = *state;
    struct client_opts o = opts(f);
    struct outcome outs[3] = {0}, watched = {0};
    const struct port_request req = filled(f, &get_a), watch = filled(f, &watch_all);

    o.qps = 0.001;
    o.burst = 2;
    connect_with(f, &o);
    script_play(&f->script, &line, 1);
    for (size_t i = 0; i < HK_LEN(outs); i++) {
        port_submit(f->rig.port, &req, (struct port_sink){outcome_on_msg, &outs[i]});
    }
    rig_until(&f->rig, outs[0].done && outs[1].done);
    port_submit(f->rig.port, &watch, (struct port_sink){outcome_on_msg, &watched});
    rig_until(&f->rig, f->script.requests == 3); /* watches are not counted */
    assert_false(outs[2].done);
    outcome_fini(&outs[0]);
    outcome_fini(&outs[1]);
}

/* With a server that does not answer: leases do not wait for calls, nor calls for leases, and
 * neither uses more connections than allowed. */
static void test_leases_have_slots_of_their_own(void **state)
{
    static const struct script_line silence = {NULL, SCRIPT_KEEP};
    struct fixture *f = *state;
    struct client_opts o = opts(f);
    struct port_request get = filled(f, &get_a), lease = get;
    const struct port_sink nobody = {0};

    o.connections = 2;
    connect_with(f, &o);
    script_play(&f->script, &silence, 1);
    lease.kind = api_kind(API_LEASE);
    for (int i = 0; i < 4; i++) {
        port_submit(f->rig.port, &lease, nobody);
    }
    for (int i = 0; i < 4; i++) {
        port_submit(f->rig.port, &get, nobody);
    }
    rig_until(&f->rig, f->script.requests == 4);
    for (int i = 0; i < 20; i++) {
        rig_turn(&f->rig);
    }
    assert_int_equal(f->script.requests, 4);
    assert_int_equal(f->script.conns.len, 4);
    assert_non_null(strstr(f->script.log.data, "/leases/a"));
    assert_non_null(strstr(f->script.log.data, "/configmaps/a"));
}

/* ---- cancelling ---- */

static void on_unwanted(void *ctx, const struct port_msg *m)
{
    fail_msg("a cancelled call spoke");
}

static void test_cancel_in_every_state(void **state)
{
    static const struct script_line silence = {NULL, SCRIPT_KEEP},
                                    answer = {OK_ANSWER, SCRIPT_KEEP},
                                    wait = {EMPTY("429 No\r\nRetry-After: 200"), SCRIPT_KEEP},
                                    stream = {UNCHUNKED EVENT("ADDED", "a"), SCRIPT_KEEP};
    struct fixture *f = *state;
    const struct port_request get = filled(f, &get_a), watch = filled(f, &watch_all);
    const struct port_sink sink = {on_unwanted, NULL};
    const struct client_opts o = opts(f);

    connect_with(f, &o);
    /* waiting */
    port_cancel(f->rig.port, port_submit(f->rig.port, &get, sink));
    /* sent */
    script_play(&f->script, &silence, 1);
    uint64_t call = port_submit(f->rig.port, &get, sink);
    rig_until(&f->rig, f->script.requests == 1);
    port_cancel(f->rig.port, call);
    /* between two attempts */
    script_play(&f->script, &wait, 1);
    call = port_submit(f->rig.port, &get, sink);
    rig_until(&f->rig, f->script.requests == 1);
    for (int i = 0; i < 20; i++) {
        rig_turn(&f->rig);
    }
    port_cancel(f->rig.port, call);
    /* answered, and a stream with an event, both not yet delivered */
    for (int i = 0; i < 2; i++) {
        script_play(&f->script, i == 0 ? &answer : &stream, 1);
        call = port_submit(f->rig.port, i == 0 ? &get : &watch, sink);
        await_messages(f);
        port_cancel(f->rig.port, call);
        assert_int_equal(port_poll(f->rig.port, UINT32_MAX), 0);
    }
    port_cancel(f->rig.port, call);
}

enum { FILLERS = 8 };

/* A port on which connections never complete: its queue is full. Returns the port; the caller
 * closes the descriptors. */
static uint16_t full_listener(int *listener, int fillers[FILLERS])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);

    *listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*listener, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(*listener, 0), 0);
    assert_int_equal(getsockname(*listener, (struct sockaddr *)&at, &n), 0);
    for (int i = 0; i < FILLERS; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(fillers[i], (struct sockaddr *)&at, n);
    }
    return ntohs(at.sin_port);
}

/* libcurl closes a socket that never connected without a callback. */
static void test_cancel_while_connecting(void **state)
{
    struct fixture *f = *state;
    const struct port_request get = filled(f, &get_a);
    const struct port_sink sink = {on_unwanted, NULL};
    const struct client_opts o = opts(f);
    const uint16_t usual = f->script.port;
    int listener, fillers[FILLERS];

    f->script.port = full_listener(&listener, fillers);
    connect_with(f, &o);
    f->script.port = usual;
    for (int round = 0; round < 3; round++) {
        const uint64_t call = port_submit(f->rig.port, &get, sink);
        for (int i = 0; i < 20; i++) {
            rig_turn(&f->rig);
        }
        port_cancel(f->rig.port, call);
    }
    port_submit(f->rig.port, &get, sink);
    for (int i = 0; i < 20; i++) {
        rig_turn(&f->rig);
    }
    port_free(f->rig.port);
    f->rig.port = NULL;
    close(listener);
    for (int i = 0; i < FILLERS; i++) {
        close(fillers[i]);
    }
}

static void test_the_end_drops_everything(void **state)
{
    static const struct script_line silence = {NULL, SCRIPT_KEEP};
    struct fixture *f = *state;
    const struct port_request get = filled(f, &get_a), watch = filled(f, &watch_all);
    const struct port_sink sink = {on_unwanted, NULL};
    const struct client_opts o = opts(f);

    connect_with(f, &o);
    script_play(&f->script, &silence, 1);
    port_submit(f->rig.port, &get, sink);
    port_submit(f->rig.port, &watch, sink);
    rig_until(&f->rig, f->script.requests == 2);
    for (int i = 0; i < 50; i++) {
        port_submit(f->rig.port, &get, sink);
    }
    rig_turn(&f->rig);
    port_free(f->rig.port);
    f->rig.port = NULL;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_which_failures_are_retried),
        TEST(test_a_write_on_a_kept_connection_is_sent_once),
        TEST(test_a_write_that_was_not_sent_says_so),
        TEST(test_silence_times_out),
        TEST(test_the_size_of_an_answer_is_limited),
        TEST(test_how_streams_end),
        TEST(test_bookmarks_are_sent_on_request),
        TEST(test_a_stream_waits_for_its_reader),
        TEST(test_headers_identify_the_user),
        TEST(test_a_proxy_is_asked),
        TEST(test_what_goes_first),
        TEST(test_writes_that_were_barred_meanwhile),
        TEST(test_leases_do_not_wait_for_other_calls),
        TEST(test_the_rate_is_kept),
        TEST(test_leases_have_slots_of_their_own),
        TEST(test_cancel_in_every_state),
        TEST(test_cancel_while_connecting),
        TEST(test_the_end_drops_everything),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
