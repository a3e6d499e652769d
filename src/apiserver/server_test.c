// SPDX-License-Identifier: Apache-2.0
// The server over a socket: verbs and their codes, Status bodies, lists, watches, credentials.
// Store, rest and server are real, in memory and without TLS.
#include "apiserver/server_priv.h"
#include "codec/yaml.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 5000 };

#define CONFIGMAPS "/api/v1/namespaces/default/configmaps"

/* The wall clock stands still, so that an age is the same in two answers that are compared. */
struct still_clock {
    struct hk_clock clock; /* first, so that the callbacks find the rest */
    int64_t wall_ns;
};

static int64_t still_wall_ns(struct hk_clock *c)
{
    return ((const struct still_clock *)c)->wall_ns;
}

static int64_t still_mono_ns(struct hk_clock *c)
{
    struct hk_clock *system = hk_clock_system();

    return system->mono_ns(system);
}

struct fixture {
    struct hk_rand rand;
    struct still_clock clock;
    struct net_loop *loop;
    struct store *store;
    struct rest *rest;
    struct auth *auth;
    struct server *server;
    int fd; /* kept alive between requests */
    struct hk_buf in;
};

static int begin(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));
    struct hk_err err = {0};

    *state = f;
    hk_rand_seed(&f->rand, 1);
    f->clock = (struct still_clock){
        .clock = {.wall_ns = still_wall_ns, .mono_ns = still_mono_ns},
        .wall_ns = hk_clock_system()->wall_ns(hk_clock_system()),
    };
    f->loop = net_loop_new(hk_clock_system());
    f->fd = -1;
    if (store_open(&(struct store_opts){0}, &f->store, &err) < 0 ||
        auth_parse(HK_STR("secret,admin,1,system:masters\nweak,bob,2,dev\n"), &f->auth, &err) < 0) {
        return -1;
    }
    f->rest = rest_new(
        &(struct rest_opts){.store = f->store, .clock = &f->clock.clock, .rand = &f->rand});
    const struct server_opts o = {
        .loop = f->loop,
        .rest = f->rest,
        .store = f->store,
        .clock = &f->clock.clock,
        .rand = &f->rand,
        .addr = HK_STR("127.0.0.1"),
        .auth = f->auth,
    };
    return server_new(&o, &f->server, &err);
}

static int end(void **state)
{
    struct fixture *f = *state;

    if (f->fd >= 0) {
        close(f->fd);
    }
    server_stop(f->server, PATIENCE_MS);
    server_free(f->server);
    rest_free(f->rest);
    store_close(f->store);
    auth_free(f->auth);
    net_loop_free(f->loop);
    hk_buf_fini(&f->in);
    hk_free(f);
    return 0;
}

/* ---- the client ---- */

static int dial(struct fixture *f)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(server_port(f->server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (const void *)&to, sizeof(to)), 0);
    return fd;
}

static void turn(struct fixture *f, int fd, struct hk_buf *in)
{
    struct hk_err err = {0};
    char chunk[8192];

    assert_int_equal(net_loop_turn(f->loop, 2, &err), 0);
    const ssize_t n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);
    if (n > 0) {
        hk_buf_add(in, chunk, (size_t)n);
    } else if (n == 0) {
        fail_msg("the server closed after '%s'", hk_buf_str(in).s);
    }
}

static void read_until(struct fixture *f, int fd, struct hk_buf *in, const char *want)
{
    const int64_t deadline = net_loop_now_ns(f->loop) + (int64_t)PATIENCE_MS * 1000000;

    while (!hk_str_contains(hk_buf_str(in), want)) {
        turn(f, fd, in);
        if (net_loop_now_ns(f->loop) > deadline) {
            fail_msg("expected '%s' in '%s'", want, hk_buf_str(in).s);
        }
    }
}

static bool answer_whole(const struct hk_buf *in)
{
    const char *length = in->len > 0 ? strstr(in->data, "Content-Length: ") : NULL;
    const char *body = in->len > 0 ? strstr(in->data, "\r\n\r\n") : NULL;

    if (body && strstr(in->data, "Transfer-Encoding: chunked")) {
        return hk_str_ends(hk_buf_str(in), "\r\n0\r\n\r\n");
    }
    return length && body &&
           in->len - (size_t)(body + 4 - in->data) == strtoul(length + 16, NULL, 10);
}

static void ask(int fd, const char *method, const char *target, const char *headers,
                const char *body)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    hk_buf_addf(&out, "%s %s HTTP/1.1\r\nHost: x\r\n%s", method, target, headers);
    if (body) {
        hk_buf_addf(&out, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    } else {
        hk_buf_adds(&out, "\r\n");
    }
    assert_int_equal(send(fd, out.data, out.len, MSG_NOSIGNAL), out.len);
}

#define TOKEN "Authorization: Bearer secret\r\n"

/* The whole answer, head and body, and its code. */
static int call(struct fixture *f, const char *method, const char *target, const char *headers,
                const char *body)
{
    const int64_t deadline = net_loop_now_ns(f->loop) + (int64_t)PATIENCE_MS * 1000000;

    if (f->fd < 0) {
        f->fd = dial(f);
    }
    hk_buf_clear(&f->in);
    ask(f->fd, method, target, headers, body);
    while (!answer_whole(&f->in)) {
        turn(f, f->fd, &f->in);
        if (net_loop_now_ns(f->loop) > deadline) {
            fail_msg("%s %s: no whole answer: '%s'", method, target, hk_buf_str(&f->in).s);
        }
    }
    return (int)strtol(f->in.data + strlen("HTTP/1.1 "), NULL, 10);
}

static void expect(struct fixture *f, const char *method, const char *target, const char *body,
                   int code, const char *want)
{
    const int got = call(f, method, target, TOKEN, body);

    if (got != code || !hk_str_contains(hk_buf_str(&f->in), want)) {
        fail_msg("%s %s: expected %d with '%s', got '%s'", method, target, code, want, f->in.data);
    }
}

static void make(struct fixture *f, const char *name)
{
    char body[128];

    snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"},\"data\":{\"k\":\"v\"}}", name);
    expect(f, "POST", CONFIGMAPS, body, 201, "\"resourceVersion\":");
}

/* ---- tests ---- */

static void test_an_object_lives_and_dies(void **state)
{
    struct fixture *f = *state;

    make(f, "a");
    assert_true(hk_str_contains(hk_buf_str(&f->in), "Content-Type: application/json"));
    expect(f, "GET", CONFIGMAPS "/a", NULL, 200, "\"data\":{\"k\":\"v\"}");
    expect(f, "POST", CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}", 409, "\"AlreadyExists\"");
    expect(f, "PUT", CONFIGMAPS "/a", "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"w\"}}", 200,
           "\"data\":{\"k\":\"w\"}");
    expect(f, "GET", CONFIGMAPS, NULL, 200, "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\"");
    expect(f, "DELETE", CONFIGMAPS "/a", NULL, 200, "\"status\":\"Success\"");
    expect(f, "GET", CONFIGMAPS "/a", NULL, 404, "configmaps \\\"a\\\" not found");
}

static void test_patches_go_by_their_content_type(void **state)
{
    struct fixture *f = *state;

    make(f, "a");
    assert_int_equal(call(f, "PATCH", CONFIGMAPS "/a",
                          TOKEN "Content-Type: application/merge-patch+json\r\n",
                          "{\"data\":{\"k\":null,\"n\":\"1\"}}"),
                     200);
    assert_true(hk_str_contains(hk_buf_str(&f->in), "\"data\":{\"n\":\"1\"}"));
    assert_int_equal(call(f, "PATCH", CONFIGMAPS "/a",
                          TOKEN "Content-Type: application/json-patch+json; charset=utf-8\r\n",
                          "[{\"op\":\"add\",\"path\":\"/data/m\",\"value\":\"2\"}]"),
                     200);
    assert_true(hk_str_contains(hk_buf_str(&f->in), "\"m\":\"2\""));
    assert_int_equal(
        call(f, "PATCH", CONFIGMAPS "/a", TOKEN "Content-Type: application/json\r\n", "{}"), 415);
    assert_int_equal(call(f, "PATCH", CONFIGMAPS "/a?force=true",
                          TOKEN "Content-Type: application/merge-patch+json\r\n", "{}"),
                     422);
}

static void test_yaml_is_read_and_written(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(call(f, "POST", CONFIGMAPS,
                          TOKEN "Content-Type: application/yaml\r\nAccept: application/yaml\r\n",
                          "metadata:\n  name: yam\ndata:\n  k: \"1\"\n"),
                     201);
    assert_true(hk_str_contains(hk_buf_str(&f->in), "kind: ConfigMap\n"));
}

/* ---- long lists ---- */

enum { LONG_OBJECTS = 12, LONG_BYTES = 40000 };

/* The body of the answer, joined if it was chunked. */
static void answer_body(const struct hk_buf *in, struct hk_buf *out)
{
    const char *at = strstr(in->data, "\r\n\r\n") + 4;

    hk_buf_clear(out);
    if (!strstr(in->data, "Transfer-Encoding: chunked")) {
        hk_buf_adds(out, at);
        return;
    }
    for (size_t n; (n = strtoul(at, NULL, 16)) > 0; at += n + 2) {
        at = strstr(at, "\r\n") + 2;
        hk_buf_add(out, at, n);
    }
}

static void make_large(struct fixture *f, uint32_t i)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_addf(&body, "{\"metadata\":{\"name\":\"m-%02u\"},\"data\":{\"none\":\"\",\"k\":\"", i);
    for (uint32_t k = 0; k < LONG_BYTES / 10; k++) {
        hk_buf_adds(&body, k % 10 == 9 ? "line: [1]\\n" : "123456789 ");
    }
    hk_buf_adds(&body, "\"}}");
    expect(f, "POST", CONFIGMAPS, body.data, 201, "\"resourceVersion\":");
}

/* A long list as indented JSON or YAML has the same contents as its compact form and is written in
 * slices; a counter shows how much was processed in each. */
static void test_long_lists_for_people_come_in_slices(void **state)
{
    static const struct {
        const char *target, *form, *type;
        bool yaml;
    } cases[] = {
        {CONFIGMAPS "?pretty=true", "application/json", "Content-Type: application/json", false},
        {CONFIGMAPS, "application/yaml", "Content-Type: application/yaml", true},
        {CONFIGMAPS "?pretty=true&includeObject=Object",
         "application/json;as=Table;g=meta.k8s.io;v=v1", "Content-Type: application/json", false},
        {CONFIGMAPS "?pretty=true",
         "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
         "Content-Type: application/json", false},
    };
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0}, want = {0}, compact = {0}, headers = {0};
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct fixture *f = *state;
    struct counters *c = &f->server->counters;

    for (uint32_t i = 0; i < LONG_OBJECTS; i++) {
        make_large(f, i);
    }
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct json v;
        hk_buf_clear(&headers);
        hk_buf_addf(&headers, TOKEN "Accept: %s\r\n", cases[i].yaml ? "*/*" : cases[i].form);
        hk_buf_clear(&compact);
        hk_buf_adds(&compact, cases[i].target);
        char *pretty = strstr(compact.data, "=true");
        if (pretty) {
            memcpy(pretty, "=0&x=", strlen("=true"));
        }
        assert_int_equal(call(f, "GET", compact.data, headers.data, NULL), 200);
        answer_body(&f->in, &compact);
        assert_int_equal(json_parse(hk_buf_str(&compact), 0, &mem, &v, NULL), 0);
        hk_buf_clear(&want);
        if (cases[i].yaml) {
            yaml_write(&v, &want);
        } else {
            json_write_pretty(&v, 2, &want);
        }
        hk_buf_clear(&headers);
        hk_buf_addf(&headers, TOKEN "Accept: %s\r\n", cases[i].form);
        c->list_slices = c->list_slice_bytes_max = 0;
        assert_int_equal(call(f, "GET", cases[i].target, headers.data, NULL), 200);
        assert_non_null(strstr(f->in.data, cases[i].type));
        answer_body(&f->in, &got);
        assert_string_equal(got.data, want.data);
        assert_in_range(c->list_slice_bytes_max, LONG_BYTES, 64 * 1024 + LONG_BYTES + 1000);
        assert_in_range(c->list_slices, LONG_OBJECTS / 3, 100 * LONG_OBJECTS);
    }
}

static void test_refusals_have_kubernetes_words(void **state)
{
    static const struct {
        const char *method, *target, *body;
        int code;
        const char *want;
    } cases[] = {
        {"GET", "/nothing", NULL, 404, "the server could not find the requested resource"},
        {"GET", "/api/v1/unknowns", NULL, 404, "the server could not find the requested resource"},
        {"GET", "/api/v1/configmaps/a", NULL, 404, "could not find the requested resource"},
        {"GET", "/api/v1/namespaces/x/nodes", NULL, 404, "could not find the requested resource"},
        {"GET", CONFIGMAPS "/a/status", NULL, 404, "could not find the requested resource"},
        {"GET", CONFIGMAPS "/a%2Fb", NULL, 400, "invalid path segment"},
        {"GET", CONFIGMAPS "?limit=-1", NULL, 400, "invalid limit"},
        {"GET", CONFIGMAPS "?resourceVersion=x", NULL, 400, "invalid resource version"},
        {"GET", CONFIGMAPS "?resourceVersionMatch=Exact", NULL, 422,
         "forbidden unless resourceVersion is provided"},
        {"GET", CONFIGMAPS "?sendInitialEvents=true", NULL, 422, "forbidden for list"},
        {"GET", CONFIGMAPS "?watch=1&sendInitialEvents=true", NULL, 422, "NotOlderThan"},
        {"POST", "/api/v1/configmaps", "{}", 405, "create is not supported on resources of kind"},
        {"POST", CONFIGMAPS, "{", 400, "the object provided is unrecognized"},
        {"POST", CONFIGMAPS, "[]", 400, "it is a JSON array"},
        {"POST", CONFIGMAPS, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", 400,
         "Pod in version \\\"v1\\\" cannot be handled as a ConfigMap"},
        {"POST", CONFIGMAPS, "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v2\"}", 400,
         "the API version in the data (v2) does not match the expected API version (v1)"},
        {"POST", CONFIGMAPS "?dryRun=Some", "{}", 422, "supported values: \\\"All\\\""},
        {"POST", CONFIGMAPS "?fieldValidation=Maybe", "{}", 422, "fieldValidation"},
        {"POST", CONFIGMAPS "?fieldValidation=Strict",
         "{\"metadata\":{\"name\":\"a\",\"name\":\"b\"},\"odd\":[{\"x\":1,\"x\":2}]}", 400,
         "ConfigMap in version \\\"v1\\\" cannot be handled as a ConfigMap: strict decoding error: "
         "unknown field \\\"odd\\\", duplicate field \\\"metadata.name\\\", duplicate field "
         "\\\"odd[0].x\\\""},
        {"PUT", CONFIGMAPS, "{}", 405, "update is not supported"},
        {"BREW", CONFIGMAPS, NULL, 405, "BREW"},
        {"DELETE", CONFIGMAPS "/a?propagationPolicy=Sideways", NULL, 422, "Unsupported value"},
        {"DELETE", CONFIGMAPS "/a", "{\"propagationPolicy\":\"Orphan\",\"orphanDependents\":true}",
         422, "cannot be both set"},
        {"GET", "/api/v1/namespaces/default/pods/p/log", NULL, 501,
         "\"reason\":\"NotImplemented\""},
        {"POST", "/version", "{}", 200, "gitVersion"},
        {"POST", "/metrics", "{}", 405, "MethodNotAllowed"},
    };
    struct fixture *f = *state;

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        expect(f, cases[k].method, cases[k].target, cases[k].body, cases[k].code, cases[k].want);
    }
}

static void test_credentials_decide(void **state)
{
    static const struct {
        const char *target, *headers;
        int code;
    } cases[] = {
        {"/healthz", "", 200},
        {"/readyz?verbose", "", 200},
        {"/livez/ping", "", 200},
        {"/livez/none", "", 401},
        {"/version", "", 200},
        {"/metrics", "", 401},
        {CONFIGMAPS, "", 401},
        {CONFIGMAPS, "Authorization: Bearer wrong\r\n", 401},
        {CONFIGMAPS, "Authorization: Basic secret\r\n", 401},
        {CONFIGMAPS, "Authorization: bearer secret\r\n", 200},
        {CONFIGMAPS, "Authorization: Bearer weak\r\n", 403},
        {CONFIGMAPS, TOKEN "Impersonate-User: bob\r\n", 403},
        {CONFIGMAPS, TOKEN "Accept: text/html\r\n", 406},
        {CONFIGMAPS,
         TOKEN "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1\r\n", 406},
        {"/metrics", TOKEN, 200},
    };
    struct fixture *f = *state;

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        const int got = call(f, "GET", cases[k].target, cases[k].headers, NULL);
        if (got != cases[k].code) {
            fail_msg("%s with '%s': expected %d, got '%s'", cases[k].target, cases[k].headers,
                     cases[k].code, f->in.data);
        }
    }
}

static void test_fields_that_come_twice_are_told(void **state)
{
    struct fixture *f = *state;

    expect(f, "POST", CONFIGMAPS,
           "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"1\",\"k\":\"2\"}}", 201,
           "Warning: 299 - \"duplicate field \\\"data.k\\\"\"");
    assert_true(hk_str_contains(hk_buf_str(&f->in), "\"data\":{\"k\":\"2\"}"));
    expect(f, "POST", CONFIGMAPS "?fieldValidation=Ignore",
           "{\"metadata\":{\"name\":\"b\"},\"data\":{\"k\":\"1\",\"k\":\"2\"}}", 201,
           "\"k\":\"2\"");
    assert_false(hk_str_contains(hk_buf_str(&f->in), "Warning"));
}

static void test_one_may_act_as_another(void **state)
{
    static const struct {
        const char *headers;
        int code;
        const char *want;
    } cases[] = {
        {TOKEN "Impersonate-User: bob\r\n", 403,
         "configmaps is forbidden: User \\\"bob\\\" cannot list resource \\\"configmaps\\\" in API "
         "group \\\"\\\" in the namespace \\\"default\\\""},
        {TOKEN "Impersonate-User: bob\r\nImpersonate-Group: dev\r\nImpersonate-Group: "
               "system:masters\r\n",
         200, "ConfigMapList"},
        {TOKEN "Impersonate-Group: dev\r\n", 500, "without impersonating a user"},
        {"Authorization: Bearer weak\r\nImpersonate-User: admin\r\n", 403,
         "users \\\"admin\\\" is forbidden: User \\\"bob\\\" cannot impersonate resource "
         "\\\"users\\\" in API group \\\"\\\" at the cluster scope"},
        {"Authorization: Bearer weak\r\nImpersonate-User: system:serviceaccount:a:b\r\n", 403,
         "serviceaccounts \\\"b\\\" is forbidden: User \\\"bob\\\" cannot impersonate resource "
         "\\\"serviceaccounts\\\" in API group \\\"\\\" in the namespace \\\"a\\\""},
    };
    struct fixture *f = *state;

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        const int got = call(f, "GET", CONFIGMAPS, cases[k].headers, NULL);
        if (got != cases[k].code || !hk_str_contains(hk_buf_str(&f->in), cases[k].want)) {
            fail_msg("'%s': expected %d with '%s', got '%s'", cases[k].headers, cases[k].code,
                     cases[k].want, f->in.data);
        }
    }
}

static void test_reviews_are_answered_and_not_kept(void **state)
{
    struct fixture *f = *state;

    expect(f, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
           "{\"spec\":{\"resourceAttributes\":{\"verb\":\"create\",\"resource\":\"pods\"}}}", 201,
           "\"allowed\":true");
    expect(f, "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
           "{\"spec\":{\"namespace\":\"default\"}}", 201, "\"resourceRules\":[{\"verbs\":[\"*\"]");
    expect(f, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
           "{\"spec\":{\"user\":\"eve\",\"groups\":[\"dev\"]}}", 201, "\"allowed\":false");
    expect(f, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}", 201,
           "\"userInfo\":{\"username\":\"admin\",\"uid\":\"1\",\"groups\":"
           "[\"system:masters\",\"system:authenticated\"]}");
    expect(f, "POST", "/apis/authentication.k8s.io/v1/tokenreviews",
           "{\"spec\":{\"token\":\"weak\"}}", 201, "\"username\":\"bob\"");
}

static void test_lists_come_as_metadata_too(void **state)
{
    struct fixture *f = *state;

    make(f, "a");
    assert_int_equal(
        call(f, "GET", CONFIGMAPS,
             TOKEN "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1\r\n",
             NULL),
        200);
    assert_true(hk_str_contains(hk_buf_str(&f->in), "{\"kind\":\"PartialObjectMetadataList\""));
    assert_true(hk_str_contains(hk_buf_str(&f->in), "\"name\":\"a\""));
    assert_false(hk_str_contains(hk_buf_str(&f->in), "\"data\""));
}

static void test_pages_follow_one_another(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf next = {0};

    make(f, "a");
    make(f, "b");
    make(f, "c");
    expect(f, "GET", CONFIGMAPS "?limit=2", NULL, 200, "\"name\":\"b\"");
    assert_false(hk_str_contains(hk_buf_str(&f->in), "\"name\":\"c\""));
    const char *token = strstr(f->in.data, "\"continue\":\"");
    assert_non_null(token);
    token += strlen("\"continue\":\"");
    hk_buf_addf(&next, "%s?limit=2&continue=%.*s", CONFIGMAPS, (int)strcspn(token, "\""), token);
    expect(f, "GET", next.data, NULL, 200, "\"name\":\"c\"");
    assert_false(hk_str_contains(hk_buf_str(&f->in), "\"name\":\"a\""));
    assert_false(hk_str_contains(hk_buf_str(&f->in), "\"continue\""));
}

static void test_a_watch_shows_what_was_and_what_comes(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf events = {0};

    make(f, "a");
    const int fd = dial(f);
    ask(fd, "GET", CONFIGMAPS "?watch=true", TOKEN, NULL);
    read_until(f, fd, &events, "{\"type\":\"ADDED\",\"object\":{");
    read_until(f, fd, &events, "\"name\":\"a\"");
    make(f, "b");
    read_until(f, fd, &events, "\"name\":\"b\"");
    expect(f, "DELETE", CONFIGMAPS "/b", NULL, 200, "Success");
    read_until(f, fd, &events, "{\"type\":\"DELETED\",\"object\":{");
    close(fd);
}

static void test_a_watch_with_initial_events_marks_their_end(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf events = {0};

    make(f, "a");
    const int fd = dial(f);
    ask(fd, "GET",
        CONFIGMAPS "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                   "&allowWatchBookmarks=true",
        TOKEN, NULL);
    read_until(f, fd, &events, "\"k8s.io/initial-events-end\":\"true\"");
    assert_true(hk_str_contains(hk_buf_str(&events), "\"name\":\"a\""));
    close(fd);
}

static void test_a_watch_ends_when_its_time_is_up(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf events = {0};

    const int fd = dial(f);
    ask(fd, "GET", CONFIGMAPS "?watch=true&timeoutSeconds=1&allowWatchBookmarks=true", TOKEN, NULL);
    read_until(f, fd, &events, "0\r\n\r\n");
    assert_true(hk_str_contains(hk_buf_str(&events), "\"type\":\"BOOKMARK\""));
    close(fd);
}

static void test_a_watch_with_a_broken_selector_is_refused(void **state)
{
    struct fixture *f = *state;

    expect(f, "GET", CONFIGMAPS "?watch=true&labelSelector=%3D%3D", NULL, 400, "BadRequest");
}

static void test_people_get_indented_text(void **state)
{
    struct fixture *f = *state;

    make(f, "a");
    assert_int_equal(call(f, "GET", CONFIGMAPS "/a", TOKEN "User-Agent: curl/8\r\n", NULL), 200);
    assert_true(hk_str_contains(hk_buf_str(&f->in), "\n  \"kind\": \"ConfigMap\""));
    assert_int_equal(
        call(f, "GET", CONFIGMAPS "/a?pretty=false", TOKEN "User-Agent: curl/8\r\n", NULL), 200);
    assert_false(hk_str_contains(hk_buf_str(&f->in), "\n  \"kind\""));
}

static void test_caches_keep_openapi_by_its_hash(void **state)
{
    static const char mark[] = "/openapi/v3/api/v1?hash=";
    struct fixture *f = *state;
    char target[64], known[128];

    expect(f, "GET", "/openapi/v3", NULL, 200, "Cache-Control: no-cache, private");
    const char *url = strstr(f->in.data, mark);
    assert_non_null(url);
    snprintf(target, sizeof(target), "%.*s", (int)strcspn(url, "\""), url);
    snprintf(known, sizeof(known), TOKEN "If-None-Match: \"%s\"\r\n", strchr(target, '=') + 1);
    expect(f, "GET", target, NULL, 200, "Cache-Control: public, immutable\r\nExpires: ");
    assert_int_equal(call(f, "GET", "/openapi/v3/api/v1", known, NULL), 304);
    assert_true(hk_str_contains(hk_buf_str(&f->in), "ETag: "));
    expect(f, "GET", "/openapi/v3/api/v1?hash=old", NULL, 301, "Location: ");
    assert_true(hk_str_contains(hk_buf_str(&f->in), target));
    expect(f, "GET", "/openapi/v3/apis/nobody/v1", NULL, 404, "NotFound");
    expect(f, "POST", "/openapi/v2", "{}", 405, "MethodNotAllowed");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_object_lives_and_dies),
        TEST(test_patches_go_by_their_content_type),
        TEST(test_yaml_is_read_and_written),
        TEST(test_long_lists_for_people_come_in_slices),
        TEST(test_refusals_have_kubernetes_words),
        TEST(test_credentials_decide),
        TEST(test_fields_that_come_twice_are_told),
        TEST(test_one_may_act_as_another),
        TEST(test_reviews_are_answered_and_not_kept),
        TEST(test_lists_come_as_metadata_too),
        TEST(test_pages_follow_one_another),
        TEST(test_a_watch_shows_what_was_and_what_comes),
        TEST(test_a_watch_with_initial_events_marks_their_end),
        TEST(test_a_watch_ends_when_its_time_is_up),
        TEST(test_a_watch_with_a_broken_selector_is_refused),
        TEST(test_people_get_indented_text),
        TEST(test_caches_keep_openapi_by_its_hash),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
