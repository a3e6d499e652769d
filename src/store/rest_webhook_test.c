// SPDX-License-Identifier: Apache-2.0
// Admission webhooks of others, asked by a caller that answers as the path of the URL says:
//
//   /allow          allowed                       /silent   never answers
//   /deny           403 with a message            /garbage  no review
//   /mute           refuses without a word        /down     no connection
//   /warn           allowed with a warning        /broken   HTTP 500
//   /set/KEY        adds data.KEY = "1"           /liar     another uid
//   /spoil          patch that does not apply     /name     tries to change name, uid and data.name
#include "api/webhook_caller.h"
#include "codec/base64.h"
#include "store/rest_rig_test.h"

struct fake_post {
    uint64_t id;
    const char *path;
    const char *address;
    struct json review;
    webhook_done_fn *done;
    void *arg;
};

struct fake {
    struct rig g;
    struct webhook_caller caller;
    struct hk_arena mem;
    uint64_t last_id;
    uint32_t cancelled;
    HK_VEC(struct fake_post) posts; /* not answered */
    struct hk_buf log;              /* "PATH OPERATION NAME; " for each post */
};

/* ---- the webhooks ---- */

static uint64_t fake_post(void *ctx, const struct webhook_post *p, webhook_done_fn *done, void *arg)
{
    struct fake *f = ctx;
    struct fake_post t = {.id = ++f->last_id, .done = done, .arg = arg};
    const char *path = strchr(p->url + strlen("https://"), '/');

    t.path = hk_arena_strndup(&f->mem, path, strcspn(path, "?"));
    t.address = p->address ? hk_arena_strndup(&f->mem, p->address, strlen(p->address)) : NULL;
    assert_int_equal(json_parse(hk_arena_str(&f->mem, p->body), 0, &f->mem, &t.review, NULL), 0);
    const struct json *req = json_get(&t.review, "request");
    hk_buf_addf(&f->log, "%s %.*s %.*s; ", t.path, HK_FMT(json_str_field(req, "operation")),
                HK_FMT(json_str_field(req, "name")));
    hk_vec_push(&f->posts, t);
    return t.id;
}

static void fake_cancel(void *ctx, uint64_t id)
{
    struct fake *f = ctx;

    for (uint32_t i = 0; i < f->posts.len; i++) {
        if (f->posts.at[i].id == id) {
            hk_vec_swap_remove(&f->posts, i);
            f->cancelled++;
            return;
        }
    }
}

static void write_answer(const struct fake_post *t, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf patch = {0}, coded = {0};
    const struct hk_str path = hk_str(t->path);
    const bool liar = strcmp(t->path, "/liar") == 0;
    const struct hk_str uid = json_str(json_at(&t->review, "request.uid"), HK_STR(""));

    hk_buf_addf(out,
                "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"response\":"
                "{\"uid\":\"%.*s\",\"allowed\":%s",
                liar ? 3 : (int)uid.n, uid.s,
                strcmp(t->path, "/deny") == 0 || strcmp(t->path, "/mute") == 0 ? "false" : "true");
    if (strcmp(t->path, "/deny") == 0) {
        hk_buf_adds(out, ",\"status\":{\"code\":403,\"reason\":\"Forbidden\",\"message\":\"no\"}");
    }
    if (strcmp(t->path, "/warn") == 0) {
        hk_buf_adds(out, ",\"warnings\":[\"mind\\nthe gap\"]");
    }
    if (hk_str_starts(path, "/set/")) {
        hk_buf_addf(&patch, "[{\"op\":\"add\",\"path\":\"/data/%s\",\"value\":\"1\"}]",
                    t->path + 5);
    } else if (strcmp(t->path, "/spoil") == 0) {
        hk_buf_adds(&patch, "[{\"op\":\"remove\",\"path\":\"/none\"}]");
    } else if (strcmp(t->path, "/name") == 0) {
        hk_buf_adds(&patch, "[{\"op\":\"add\",\"path\":\"/metadata/name\",\"value\":\"other\"},"
                            "{\"op\":\"add\",\"path\":\"/metadata/uid\",\"value\":\"x\"},"
                            "{\"op\":\"add\",\"path\":\"/data/name\",\"value\":\"1\"}]");
    }
    if (patch.len > 0) {
        base64_write(hk_buf_str(&patch), &coded);
        hk_buf_addf(out, ",\"patchType\":\"JSONPatch\",\"patch\":\"%s\"", coded.data);
    }
    hk_buf_adds(out, "}}");
}

static void fake_answer(struct fake *f, uint32_t i)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct fake_post t = f->posts.at[i];
    struct webhook_reply reply = {.http = 200};

    memmove(f->posts.at + i, f->posts.at + i + 1, (f->posts.len - i - 1) * sizeof(t));
    f->posts.len--;
    if (strcmp(t.path, "/garbage") == 0) {
        reply.body = HK_STR("<html>");
    } else if (strcmp(t.path, "/broken") == 0) {
        reply = (struct webhook_reply){.http = 500, .body = HK_STR("oops\n")};
    } else if (strcmp(t.path, "/down") == 0) {
        reply = (struct webhook_reply){.why = "connection refused"};
    } else {
        write_answer(&t, &text);
        reply.body = hk_buf_str(&text);
    }
    t.done(t.arg, &reply);
}

/* The text at a dotted path; lives as long as the fake. */
static const char *text_at(struct fake *f, const struct json *v, const char *path)
{
    return hk_arena_str(&f->mem, json_str(json_at(v, path), HK_STR(""))).s;
}

/* Answers what is asked until nothing happens any more. */
static void fake_settle(struct fake *f)
{
    bool answered = true;

    while (answered) {
        rig_settle(&f->g);
        answered = false;
        for (uint32_t i = 0; i < f->posts.len && !answered; i++) {
            if (strcmp(f->posts.at[i].path, "/silent") != 0) {
                fake_answer(f, i);
                answered = true;
            }
        }
    }
}

/* ---- requests ---- */

static void submit(struct fake *f, struct port_request req, const char *kind, const char *body,
                   struct answer *ret)
{
    req.kind = rig_kind(&f->g, kind);
    req.body = body ? rig_json(&f->g, body) : NULL;
    *ret = (struct answer){0};
    port_submit(f->g.port, &req, (struct port_sink){rig_on_msg, ret});
}

static struct answer ask(struct fake *f, struct port_request req, const char *kind,
                         const char *body)
{
    struct answer a;

    submit(f, req, kind, body, &a);
    fake_settle(f);
    assert_true(a.done);
    return a;
}

static const struct port_request create = {.verb = PORT_CREATE, .ns = HK_STR("default")};

static struct port_request on(enum port_verb verb, const char *name)
{
    return (struct port_request){.verb = verb, .ns = HK_STR("default"), .name = hk_str(name)};
}

static struct answer create_map(struct fake *f, const char *name)
{
    return ask(f, create, "ConfigMap",
               hk_arena_printf(&f->mem, "{'metadata':{'name':'%s'},'data':{'z':'0'}}", name));
}

/* A configuration with one webhook; more is JSON with a leading comma. */
static void configure(struct fake *f, const char *kind, const char *name, const char *path,
                      const char *more)
{
    const char *body = hk_arena_printf(
        &f->mem,
        "{'metadata':{'name':'%s'},'webhooks':[{'name':'%s.example.com','clientConfig':"
        "{'url':'https://hook.example%s'},'sideEffects':'None','admissionReviewVersions':['v1'],"
        "'rules':[{'operations':['*'],'apiGroups':['*'],'apiVersions':['*'],"
        "'resources':['configmaps']}]%s}]}",
        name, name, path, more);
    struct answer a = ask(f, (struct port_request){.verb = PORT_CREATE}, kind, body);

    if (a.code != 201) {
        print_error("%s\n", a.message);
    }
    assert_int_equal(a.code, 201);
    answer_fini(&a);
}

#define MUTATING "MutatingWebhookConfiguration"
#define VALIDATING "ValidatingWebhookConfiguration"

static void expect(struct fake *f, struct answer *a, int code, const char *message)
{
    if (a->code != code) {
        print_error("want %d, have %d %s\n", code, a->code, a->message);
    }
    assert_int_equal(a->code, code);
    assert_string_equal(a->message, message);
    answer_fini(a);
}

static void expect_log(struct fake *f, const char *want)
{
    assert_string_equal(hk_buf_str(&f->log).s, want);
    hk_buf_clear(&f->log);
}

static int open_fake(void **state)
{
    struct fake *f = hk_zalloc(sizeof(*f));

    rig_open(&f->g, true);
    f->caller = (struct webhook_caller){.ctx = f, .post = fake_post, .cancel = fake_cancel};
    rig_settle(&f->g);
    rest_call_webhooks(f->g.rest, &f->caller);
    *state = f;
    return 0;
}

static int close_fake(void **state)
{
    struct fake *f = *state;

    rig_close(&f->g);
    hk_arena_fini(&f->mem);
    hk_vec_fini(&f->posts);
    hk_buf_fini(&f->log);
    hk_free(f);
    return 0;
}

/* ---- stories ---- */

static void test_order(void **state)
{
    struct fake *f = *state;

    configure(f, VALIDATING, "a-judge", "/allow", "");
    configure(f, MUTATING, "c-later", "/set/c", "");
    configure(f, MUTATING, "b-first", "/set/b", "");
    struct answer a = create_map(f, "one");
    assert_string_equal(rig_look(&f->g, a.obj, "data"), "{\"z\":\"0\",\"b\":\"1\",\"c\":\"1\"}");
    expect(f, &a, 201, "");
    expect_log(f, "/set/b CREATE one; /set/c CREATE one; /allow CREATE one; ");
}

static void test_validating_see_what_was_changed(void **state)
{
    struct fake *f = *state;

    configure(f, MUTATING, "m", "/set/b", "");
    configure(f, VALIDATING, "v", "/silent", "");
    struct answer a;
    submit(f, create, "ConfigMap", "{'metadata':{'name':'one'},'data':{'a':'0'}}", &a);
    fake_settle(f);
    assert_false(a.done);
    assert_int_equal(f->posts.len, 1);
    const struct json *req = json_get(&f->posts.at[0].review, "request");
    HK_AUTO(hk_buf_fini) struct hk_buf data = {0};
    json_write(json_at(req, "object.data"), &data);
    assert_string_equal(data.data, "{\"a\":\"0\",\"b\":\"1\"}");
    assert_int_equal(json_get(req, "oldObject")->type, JSON_NULL);
    assert_string_equal(text_at(f, req, "kind.kind"), "ConfigMap");
    assert_string_equal(text_at(f, req, "resource.resource"), "configmaps");
    assert_string_equal(text_at(f, req, "userInfo.username"), "system:apiserver");
    f->posts.at[0].path = "/allow";
    fake_settle(f);
    expect(f, &a, 201, "");
}

static void test_reinvocation(void **state)
{
    struct fake *f = *state;

    configure(f, MUTATING, "a", "/set/a", ",'reinvocationPolicy':'IfNeeded'");
    configure(f, MUTATING, "b", "/set/b", ",'reinvocationPolicy':'IfNeeded'");
    configure(f, MUTATING, "c", "/allow", ",'reinvocationPolicy':'IfNeeded'");
    struct answer a = create_map(f, "one");
    expect(f, &a, 201, "");
    /* b changed the object after a; nobody changed it after b and c */
    expect_log(f, "/set/a CREATE one; /set/b CREATE one; /allow CREATE one; /set/a CREATE one; ");
    a = ask(f, create, "ConfigMap", "{'metadata':{'name':'two'},'data':{'a':'1','b':'1'}}");
    expect(f, &a, 201, "");
    expect_log(f, "/set/a CREATE two; /set/b CREATE two; /allow CREATE two; ");
}

static void test_refusals(void **state)
{
    struct fake *f = *state;

    configure(f, VALIDATING, "v", "/deny", ",'objectSelector':{'matchLabels':{'how':'deny'}}");
    configure(f, VALIDATING, "w", "/mute", ",'objectSelector':{'matchLabels':{'how':'mute'}}");
    struct answer a =
        ask(f, create, "ConfigMap", "{'metadata':{'name':'a','labels':{'how':'deny'}}}");
    assert_string_equal(a.reason, "Forbidden");
    expect(f, &a, 403, "admission webhook \"v.example.com\" denied the request: no");
    a = ask(f, create, "ConfigMap", "{'metadata':{'name':'a','labels':{'how':'mute'}}}");
    assert_string_equal(a.reason, "");
    expect(f, &a, 400,
           "admission webhook \"w.example.com\" denied the request without explanation");
    a = create_map(f, "a");
    expect(f, &a, 201, "");
}

static void test_failures(void **state)
{
    static const struct {
        const char *path, *why;
    } cases[] = {
        {"/garbage", "received invalid webhook response: line 1, column 1: unexpected '<'"},
        {"/broken", "failed to call webhook: an error on the server (\"oops\") has prevented the "
                    "request from succeeding"},
        {"/down", "failed to call webhook: Post \"https://hook.example/down?timeout=10s\": "
                  "connection refused"},
    };
    struct fake *f = *state;
    char name[8];

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        snprintf(name, sizeof(name), "h%zu", i);
        configure(f, VALIDATING, name, cases[i].path, "");
        struct answer a = create_map(f, name);
        assert_string_equal(a.reason, "InternalError");
        HK_AUTO(hk_buf_fini) struct hk_buf want = {0};
        hk_buf_addf(&want,
                    "Internal error occurred: failed calling webhook \"%s.example.com\": ", name);
        if (i > 0) {
            hk_buf_adds(&want, cases[i].why);
            assert_string_equal(a.message, want.data);
        } else {
            hk_buf_adds(&want, "received invalid webhook response: ");
            assert_true(hk_str_starts(hk_str(a.message), want.data));
        }
        assert_int_equal(a.code, 500);
        answer_fini(&a);
        a = ask(f, (struct port_request){.verb = PORT_DELETE, .name = hk_str(name)}, VALIDATING,
                NULL);
        expect(f, &a, 200, "");
        configure(f, VALIDATING, name, cases[i].path, ",'failurePolicy':'Ignore'");
        a = create_map(f, name);
        expect(f, &a, 201, "");
    }
}

static void test_wrong_uid_and_bad_patch(void **state)
{
    struct fake *f = *state;

    configure(f, MUTATING, "m", "/liar", ",'objectSelector':{'matchLabels':{'how':'liar'}}");
    configure(f, MUTATING, "n", "/spoil",
              ",'failurePolicy':'Ignore','objectSelector':{'matchLabels':{'how':'spoil'}}");
    struct answer a =
        ask(f, create, "ConfigMap", "{'metadata':{'name':'a','labels':{'how':'liar'}}}");
    assert_non_null(strstr(a.message, "expected response.uid="));
    assert_int_equal(a.code, 500);
    answer_fini(&a);
    /* A patch that does not apply is no failed call: the policy does not ignore it. */
    a = ask(f, create, "ConfigMap", "{'metadata':{'name':'a','labels':{'how':'spoil'}}}");
    assert_int_equal(a.code, 500);
    answer_fini(&a);
    assert_false(rig_has(&f->g, "ConfigMap", "default", "a"));
}

static void test_patches_keep_the_identity(void **state)
{
    struct fake *f = *state;

    configure(f, MUTATING, "m", "/name", "");
    struct answer a = create_map(f, "one");
    assert_string_equal(rig_look(&f->g, a.obj, "metadata.name"), "one");
    assert_int_equal(strlen(rig_look(&f->g, a.obj, "metadata.uid")), 36);
    assert_string_equal(rig_look(&f->g, a.obj, "data.name"), "1");
    expect(f, &a, 201, "");
}

static void test_generated_names(void **state)
{
    struct fake *f = *state;

    configure(f, MUTATING, "m", "/set/m", "");
    configure(f, VALIDATING, "v", "/allow", "");
    struct answer a =
        ask(f, create, "ConfigMap", "{'metadata':{'generateName':'gen-'},'data':{'z':'0'}}");
    const char *name = rig_look(&f->g, a.obj, "metadata.name");
    assert_string_equal(rig_look(&f->g, a.obj, "data.m"), "1");
    assert_true(rig_has(&f->g, "ConfigMap", "default", name));
    HK_AUTO(hk_buf_fini) struct hk_buf want = {0};
    hk_buf_addf(&want, "/set/m CREATE ; /allow CREATE %s; ", name);
    expect_log(f, want.data);
    expect(f, &a, 201, "");
}

static void test_warnings(void **state)
{
    struct fake *f = *state;

    configure(f, VALIDATING, "v", "/warn", "");
    configure(f, VALIDATING, "w", "/warn", "");
    struct answer a = create_map(f, "one");
    assert_string_equal(a.warnings, "mind the gap; ");
    expect(f, &a, 201, "");
}

static void test_silent_webhook_delays_nobody_else(void **state)
{
    struct fake *f = *state;
    struct answer a;

    configure(f, VALIDATING, "v", "/silent", ",'timeoutSeconds':3");
    submit(f, create, "ConfigMap", "{'metadata':{'name':'a'}}", &a);
    fake_settle(f);
    assert_false(a.done);
    struct answer b = ask(f, create, "Secret", "{'metadata':{'name':'b'}}");
    expect(f, &b, 201, "");
    rig_sleep(&f->g, 2);
    assert_false(a.done);
    rig_sleep(&f->g, 1);
    assert_true(a.done);
    assert_int_equal(f->cancelled, 1);
    expect(f, &a, 500,
           "Internal error occurred: failed calling webhook \"v.example.com\": failed to call "
           "webhook: Post \"https://hook.example/silent?timeout=3s\": context deadline exceeded");
}

enum { CROWD = 70, AT_ONCE = 64 };

static void test_calls_in_flight_are_limited(void **state)
{
    struct fake *f = *state;
    struct answer a[CROWD];

    configure(f, VALIDATING, "v", "/silent", ",'timeoutSeconds':30");
    for (int i = 0; i < CROWD; i++) {
        submit(f, create, "ConfigMap", hk_arena_printf(&f->mem, "{'metadata':{'name':'m%d'}}", i),
               &a[i]);
    }
    fake_settle(f);
    assert_int_equal(f->posts.len, AT_ONCE);
    f->posts.at[0].path = "/allow";
    fake_settle(f);
    assert_true(a[0].done);
    assert_int_equal(f->posts.len, AT_ONCE); /* the next one was sent */
    rig_sleep(&f->g, 30);
    for (int i = 0; i < CROWD; i++) {
        assert_true(a[i].done); /* those in the queue, too */
        assert_int_equal(a[i].code, i == 0 ? 201 : 500);
        answer_fini(&a[i]);
    }
}

static void test_dry_run(void **state)
{
    struct fake *f = *state;
    struct port_request req = create;

    configure(f, MUTATING, "m", "/set/m", "");
    req.dry_run = true;
    struct answer a = ask(f, req, "ConfigMap", "{'metadata':{'name':'one'},'data':{'z':'0'}}");
    assert_string_equal(rig_look(&f->g, a.obj, "data.m"), "1");
    expect(f, &a, 201, "");
    assert_false(rig_has(&f->g, "ConfigMap", "default", "one"));
}

static void test_update_by_somebody_else_while_waiting(void **state)
{
    struct fake *f = *state;
    struct answer a, b;

    struct answer made = create_map(f, "one");
    expect(f, &made, 201, "");
    configure(f, MUTATING, "m", "/silent", ",'objectSelector':{'matchLabels':{'slow':'yes'}}");
    struct port_request patch = on(PORT_PATCH, "one");
    patch.patch = PORT_PATCH_MERGE;
    submit(f, patch, "ConfigMap", "{'metadata':{'labels':{'slow':'yes'}},'data':{'a':'1'}}", &a);
    fake_settle(f);
    assert_int_equal(f->posts.len, 1);
    /* The other write wins: the first is asked again about the newest state. */
    configure(f, VALIDATING, "none", "/allow", ",'objectSelector':{'matchLabels':{'x':'y'}}");
    struct json body;
    f->posts.at[0].path = "/held";
    b = (struct answer){0};
    struct port_request quick = on(PORT_PATCH, "one");
    quick.patch = PORT_PATCH_MERGE;
    quick.kind = rig_kind(&f->g, "ConfigMap");
    body = *rig_json(&f->g, "{'data':{'b':'2'}}");
    quick.body = &body;
    port_submit(f->g.port, &quick, (struct port_sink){rig_on_msg, &b});
    rig_settle(&f->g);
    expect(f, &b, 200, "");
    fake_answer(f, 0);
    rig_settle(&f->g);
    assert_false(a.done);
    assert_int_equal(f->posts.len, 1);
    const struct json *data = json_at(&f->posts.at[0].review, "request.object.data");
    assert_string_equal(text_at(f, data, "b"), "2");
    fake_answer(f, 0);
    rig_settle(&f->g);
    assert_true(a.done);
    assert_string_equal(rig_look(&f->g, a.obj, "data"), "{\"z\":\"0\",\"b\":\"2\",\"a\":\"1\"}");
    expect(f, &a, 200, "");
}

static void test_stale_update_fails(void **state)
{
    struct fake *f = *state;
    struct answer a;

    struct answer made = create_map(f, "one");
    const char *body = hk_arena_printf(
        &f->mem, "{'metadata':{'name':'one','resourceVersion':'%s'},'data':{'a':'1'}}",
        rig_look(&f->g, made.obj, "metadata.resourceVersion"));
    expect(f, &made, 201, "");
    configure(f, VALIDATING, "v", "/silent", "");
    submit(f, on(PORT_UPDATE, "one"), "ConfigMap", body, &a);
    fake_settle(f);
    assert_int_equal(f->posts.len, 1);
    rest_call_webhooks(f->g.rest, NULL); /* the other write asks nobody */
    struct answer b =
        ask(f, on(PORT_UPDATE, "one"), "ConfigMap", "{'metadata':{'name':'one'},'data':{'b':'2'}}");
    expect(f, &b, 200, "");
    rest_call_webhooks(f->g.rest, &f->caller);
    f->posts.at[0].path = "/allow";
    fake_settle(f);
    assert_true(a.done);
    assert_string_equal(a.reason, "Conflict");
    assert_int_equal(a.code, 409);
    answer_fini(&a);
}

static void test_deletions(void **state)
{
    struct fake *f = *state;

    for (int i = 0; i < 3; i++) {
        struct answer made =
            ask(f, create, "ConfigMap",
                hk_arena_printf(&f->mem,
                                "{'metadata':{'name':'m%d','labels':{'n':'%d','all':'x'}}}", i, i));
        expect(f, &made, 201, "");
    }
    configure(f, VALIDATING, "v", "/deny", ",'objectSelector':{'matchLabels':{'n':'1'}}");
    configure(f, VALIDATING, "w", "/allow", "");
    struct answer a = ask(f, on(PORT_DELETE, "m1"), "ConfigMap", NULL);
    expect(f, &a, 403, "admission webhook \"v.example.com\" denied the request: no");
    expect_log(f, "/deny DELETE m1; /allow DELETE m1; ");
    struct port_request all = on(PORT_DELETE_COLLECTION, "");
    all.label_selector = HK_STR("all=x");
    a = ask(f, all, "ConfigMap", NULL);
    expect(f, &a, 403, "admission webhook \"v.example.com\" denied the request: no");
    expect_log(f, "/allow DELETE m0; /deny DELETE m1; /allow DELETE m1; ");
    assert_false(rig_has(&f->g, "ConfigMap", "default", "m0"));
    assert_true(rig_has(&f->g, "ConfigMap", "default", "m1"));
    assert_true(rig_has(&f->g, "ConfigMap", "default", "m2"));
    all.label_selector = HK_STR("n=2");
    a = ask(f, all, "ConfigMap", NULL);
    expect(f, &a, 200, "");
    assert_false(rig_has(&f->g, "ConfigMap", "default", "m2"));
}

static void test_webhooks_do_not_guard_themselves(void **state)
{
    struct fake *f = *state;

    configure(f, VALIDATING, "v", "/deny",
              ",'rules':[{'operations':['*'],'apiGroups':['*'],'apiVersions':['*'],"
              "'resources':['*/*']}]");
    struct answer a = create_map(f, "a");
    expect(f, &a, 403, "admission webhook \"v.example.com\" denied the request: no");
    a = ask(f, (struct port_request){.verb = PORT_DELETE, .name = HK_STR("v")}, VALIDATING, NULL);
    expect(f, &a, 200, "");
    a = create_map(f, "a");
    expect(f, &a, 201, "");
}

/* Which rules concern the creation of a ConfigMap in the namespace default. */
static void test_rules(void **state)
{
    static const struct {
        const char *rule;
        bool asked;
    } cases[] = {
        {"'operations':['CREATE'],'apiGroups':[''],'apiVersions':['v1'],'resources':['configmaps']",
         true},
        {"'operations':['*'],'apiGroups':['*'],'apiVersions':['*'],'resources':['*']", true},
        {"'operations':['*'],'apiGroups':['*'],'apiVersions':['*'],'resources':['*/*']", true},
        {"'operations':['*'],'apiGroups':['*'],'apiVersions':['*'],'resources':['configmaps/*']",
         true},
        {"'operations':['*'],'apiGroups':['*'],'apiVersions':['*'],'resources':['*/status']",
         false},
        {"'operations':['UPDATE','DELETE'],'apiGroups':['*'],'apiVersions':['*'],"
         "'resources':['*']",
         false},
        {"'operations':['*'],'apiGroups':['apps'],'apiVersions':['*'],'resources':['*']", false},
        {"'operations':['*'],'apiGroups':['*'],'apiVersions':['v2'],'resources':['*']", false},
        {"'operations':['*'],'apiGroups':['*'],'apiVersions':['*'],'resources':['secrets']", false},
        {"'operations':['*'],'apiGroups':['*'],'apiVersions':['*'],'resources':['*'],"
         "'scope':'Namespaced'",
         true},
        {"'operations':['*'],'apiGroups':['*'],'apiVersions':['*'],'resources':['*'],"
         "'scope':'Cluster'",
         false},
    };
    struct fake *f = *state;
    char name[8];

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        snprintf(name, sizeof(name), "r%zu", i);
        configure(f, VALIDATING, name, "/allow",
                  hk_arena_printf(&f->mem, ",'rules':[{%s}]", cases[i].rule));
        struct answer a = create_map(f, name);
        expect(f, &a, 201, "");
        if ((f->log.len > 0) != cases[i].asked) {
            print_error("{%s}: want it %s\n", cases[i].rule, cases[i].asked ? "asked" : "left out");
        }
        assert_int_equal(f->log.len > 0, cases[i].asked);
        a = ask(f, (struct port_request){.verb = PORT_DELETE, .name = hk_str(name)}, VALIDATING,
                NULL);
        expect(f, &a, 200, "");
        hk_buf_clear(&f->log);
    }
}

static void test_equivalent_versions(void **state)
{
    static const char rule[] =
        ",'rules':[{'operations':['*'],'apiGroups':['policy'],'apiVersions':['v1'],"
        "'resources':['poddisruptionbudgets']}]%s";
    struct fake *f = *state;
    const struct rest_kind *old = rest_kind_find(f->g.rest, HK_STR("policy"), HK_STR("v1beta1"),
                                                 HK_STR("poddisruptionbudgets"));
    const struct json *body =
        rig_json(&f->g, "{'metadata':{'name':'p'},'spec':{'minAvailable':1}}");
    struct port_request req = create;
    struct answer a = {0};

    configure(f, VALIDATING, "equal", "/silent", hk_arena_printf(&f->mem, rule, ""));
    configure(f, VALIDATING, "exact", "/never",
              hk_arena_printf(&f->mem, rule, ",'matchPolicy':'Exact'"));
    req.kind = old->kind;
    req.body = body;
    port_submit(f->g.port, &req, (struct port_sink){rig_on_msg, &a});
    rig_settle(&f->g);
    expect_log(f, "/silent CREATE p; ");
    const struct json *asked = json_get(&f->posts.at[0].review, "request");
    assert_string_equal(text_at(f, asked, "kind.version"), "v1");
    assert_string_equal(text_at(f, asked, "requestKind.version"), "v1beta1");
    assert_string_equal(text_at(f, asked, "object.apiVersion"), "policy/v1");
    f->posts.at[0].path = "/allow";
    fake_settle(f);
    assert_true(a.done);
    expect(f, &a, 201, "");
}

static void test_namespace_selectors(void **state)
{
    struct fake *f = *state;

    configure(f, VALIDATING, "v", "/allow",
              ",'namespaceSelector':{'matchExpressions':[{'key':'guard','operator':'In',"
              "'values':['yes']}]},'rules':[{'operations':['*'],'apiGroups':['*'],"
              "'apiVersions':['*'],'resources':['*']}]");
    struct answer a = create_map(f, "a");
    expect(f, &a, 201, "");
    expect_log(f, "");
    struct port_request cluster = {.verb = PORT_CREATE};
    a = ask(f, cluster, "Namespace", "{'metadata':{'name':'guarded','labels':{'guard':'yes'}}}");
    expect(f, &a, 201, "");
    expect_log(f, "/allow CREATE guarded; /allow CREATE default; "); /* its ServiceAccount */
    struct port_request there = create;
    there.ns = HK_STR("guarded");
    a = ask(f, there, "ConfigMap", "{'metadata':{'name':'a'}}");
    expect(f, &a, 201, "");
    expect_log(f, "/allow CREATE a; ");
    /* An object without a namespace is never exempt. */
    a = ask(f, cluster, "PriorityClass", "{'metadata':{'name':'p'},'value':1}");
    expect(f, &a, 201, "");
    expect_log(f, "/allow CREATE p; ");
}

static void test_subresources_show_their_own_kinds(void **state)
{
    struct fake *f = *state;
    const struct json *asked;
    struct answer a;

    a = ask(f, create, "Deployment",
            "{'metadata':{'name':'d'},'spec':{'replicas':1,'selector':{'matchLabels':{'a':'b'}},"
            "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c',"
            "'image':'i'}]}}}}");
    expect(f, &a, 201, "");
    configure(f, VALIDATING, "v", "/silent",
              ",'rules':[{'operations':['*'],'apiGroups':['apps'],'apiVersions':['*'],"
              "'resources':['deployments','deployments/scale']}]");
    struct port_request scale = on(PORT_PATCH, "d");
    scale.subresource = "scale";
    scale.patch = PORT_PATCH_MERGE;
    submit(f, scale, "Deployment", "{'spec':{'replicas':3}}", &a);
    rig_settle(&f->g);
    expect_log(f, "/silent UPDATE d; "); /* once: not as a Deployment, too */
    asked = json_get(&f->posts.at[0].review, "request");
    assert_string_equal(text_at(f, asked, "kind.kind"), "Scale");
    assert_string_equal(text_at(f, asked, "subResource"), "scale");
    assert_int_equal(json_int(json_at(asked, "object.spec.replicas"), 0), 3);
    assert_int_equal(json_int(json_at(asked, "oldObject.spec.replicas"), 0), 1);
    f->posts.at[0].path = "/allow";
    fake_settle(f);
    assert_true(a.done);
    assert_string_equal(rig_look(&f->g, a.obj, "spec.replicas"), "3");
    expect(f, &a, 200, "");
}

static void test_services(void **state)
{
    static const char config[] =
        "{'metadata':{'name':'s'},'webhooks':[{'name':'s.example.com','clientConfig':{'service':"
        "{'namespace':'default','name':'hook','path':'/silent'}},'sideEffects':'None',"
        "'admissionReviewVersions':['v1'],'rules':[{'operations':['*'],'apiGroups':[''],"
        "'apiVersions':['v1'],'resources':['configmaps']}]}]}";
    struct fake *f = *state;
    struct answer a = ask(f, (struct port_request){.verb = PORT_CREATE}, VALIDATING, config);

    expect(f, &a, 201, "");
    a = create_map(f, "a");
    expect(
        f, &a, 500,
        "Internal error occurred: failed calling webhook \"s.example.com\": failed to call "
        "webhook: Post \"https://hook.default.svc:443/silent?timeout=10s\": service \"hook\" not "
        "found");
    a = ask(f, create, "Service",
            "{'metadata':{'name':'hook'},'spec':{'clusterIP':'None','ports':[{'port':443,"
            "'targetPort':8443}]}}");
    expect(f, &a, 201, "");
    a = create_map(f, "a");
    assert_non_null(strstr(a.message, "no endpoints available for service \"hook\""));
    assert_int_equal(a.code, 500);
    answer_fini(&a);
    a = ask(f, create, "EndpointSlice",
            "{'metadata':{'name':'hook-1','labels':{'kubernetes.io/service-name':'hook'}},"
            "'addressType':'IPv4','endpoints':[{'addresses':['127.0.0.9'],'conditions':"
            "{'ready':false}},{'addresses':['127.0.0.7']}],'ports':[{'name':'','port':8443}]}");
    expect(f, &a, 201, "");
    submit(f, create, "ConfigMap", "{'metadata':{'name':'a'}}", &a);
    rig_settle(&f->g);
    assert_int_equal(f->posts.len, 1);
    assert_string_equal(f->posts.at[0].address, "127.0.0.7:8443");
    f->posts.at[0].path = "/allow";
    fake_settle(f);
    expect(f, &a, 201, "");
}

static void test_cancelled_call_asks_no_more(void **state)
{
    struct fake *f = *state;
    struct port_request req = create;
    struct answer a = {0};

    configure(f, VALIDATING, "v", "/silent", "");
    req.kind = rig_kind(&f->g, "ConfigMap");
    req.body = rig_json(&f->g, "{'metadata':{'name':'a'}}");
    const uint64_t id = port_submit(f->g.port, &req, (struct port_sink){rig_on_msg, &a});
    rig_settle(&f->g);
    assert_int_equal(f->posts.len, 1);
    port_cancel(f->g.port, id);
    rig_settle(&f->g);
    assert_int_equal(f->cancelled, 1);
    assert_false(a.done);
    assert_false(rig_has(&f->g, "ConfigMap", "default", "a"));
}

static void test_end_while_a_call_waits(void **state)
{
    struct fake *f = *state;
    struct answer a;

    configure(f, VALIDATING, "v", "/silent", "");
    submit(f, create, "ConfigMap", "{'metadata':{'name':'a'}}", &a);
    rig_settle(&f->g);
    assert_int_equal(f->posts.len, 1);
    /* close_fake() frees the port, which cancels the call */
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, open_fake, close_fake)

/* ---- policies beside webhooks ---- */

#define POLICY_FOR(resource)                                                                       \
    "'matchConstraints':{'resourceRules':[{'operations':['*'],'apiGroups':[''],"                   \
    "'apiVersions':['v1'],'resources':['" resource "']}]}"

static void make(struct fake *f, const char *kind, const char *name, const char *spec)
{
    struct answer a =
        ask(f, (struct port_request){.verb = PORT_CREATE}, kind,
            hk_arena_printf(&f->mem, "{'metadata':{'name':'%s'},'spec':{%s}}", name, spec));

    expect(f, &a, 201, "");
}

/* A mutating policy that counts the members of data in data.n. */
static void make_counter(struct fake *f, const char *again)
{
    make(f, "MutatingAdmissionPolicy", "count",
         hk_arena_printf(&f->mem,
                         POLICY_FOR("configmaps") ",'reinvocationPolicy':'%s','mutations':[{"
                                                  "'patchType':'ApplyConfiguration',"
                                                  "'applyConfiguration':{'expression':'Object{"
                                                  "data: Object.data{n: string(object.data"
                                                  ".size())}}'}}]",
                         again));
    make(f, "MutatingAdmissionPolicyBinding", "count", "'policyName':'count'");
}

static void test_policies_come_before_webhooks(void **state)
{
    struct fake *f = *state;

    configure(f, MUTATING, "m", "/set/b", "");
    make_counter(f, "Never");
    struct answer a = create_map(f, "one");
    assert_string_equal(rig_look(&f->g, a.obj, "data"), "{\"z\":\"0\",\"n\":\"1\",\"b\":\"1\"}");
    expect(f, &a, 201, "");
    expect_log(f, "/set/b CREATE one; ");
}

static void test_policies_see_what_webhooks_change(void **state)
{
    struct fake *f = *state;

    configure(f, MUTATING, "m", "/set/b", ",'reinvocationPolicy':'IfNeeded'");
    make_counter(f, "IfNeeded");
    struct answer a = create_map(f, "one");
    /* z alone; then z, n and b: the policy ran again, and the webhook after it */
    assert_string_equal(rig_look(&f->g, a.obj, "data"), "{\"z\":\"0\",\"n\":\"3\",\"b\":\"1\"}");
    expect(f, &a, 201, "");
    expect_log(f, "/set/b CREATE one; /set/b CREATE one; ");
}

static void test_a_refusing_policy_spares_the_webhooks(void **state)
{
    struct fake *f = *state;

    configure(f, VALIDATING, "v", "/allow", "");
    make(f, "ValidatingAdmissionPolicy", "p",
         POLICY_FOR("configmaps") ",'validations':[{'expression':'object == null || "
                                  "!has(object.data)','message':'no data'}]");
    make(f, "ValidatingAdmissionPolicyBinding", "b",
         "'policyName':'p','validationActions':['Deny']");
    struct answer a = create_map(f, "one");
    assert_string_equal(a.reason, "Invalid");
    assert_string_equal(a.details, "configmaps/one");
    expect(f, &a, 422,
           "configmaps \"one\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied "
           "request: no data");
    expect_log(f, "");
    a = ask(f, create, "ConfigMap", "{'metadata':{'name':'one'}}");
    expect(f, &a, 201, "");
    a = ask(f, on(PORT_DELETE, "one"), "ConfigMap", NULL);
    expect(f, &a, 200, "");
    expect_log(f, "/allow CREATE one; /allow DELETE one; ");
}

/* A warning of a policy outlives the turns that webhooks make. */
static void test_policies_warn_once(void **state)
{
    struct fake *f = *state;

    configure(f, VALIDATING, "v", "/warn", "");
    make(f, "ValidatingAdmissionPolicy", "p",
         POLICY_FOR("configmaps") ",'validations':[{'expression':'false','message':'hm'}]");
    make(f, "ValidatingAdmissionPolicyBinding", "b",
         "'policyName':'p','validationActions':['Warn']");
    struct answer a = create_map(f, "one");
    assert_string_equal(a.warnings,
                        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': hm; "
                        "mind the gap; ");
    expect(f, &a, 201, "");
}

static void test_conditions(void **state)
{
    struct fake *f = *state;

    configure(f, MUTATING, "m", "/set/b",
              ",'matchConditions':[{'name':'c','expression':'object != null && object.metadata"
              ".name != \\u0027skip\\u0027'},{'name':'d','expression':'!has(object.data.bad) || "
              "object.data.worse > 1'}]");
    struct answer a = create_map(f, "one");
    expect(f, &a, 201, "");
    a = create_map(f, "skip");
    expect(f, &a, 201, "");
    expect_log(f, "/set/b CREATE one; ");
    a = ask(f, create, "ConfigMap", "{'metadata':{'name':'two'},'data':{'bad':'1'}}");
    assert_string_equal(a.reason, "Forbidden");
    expect(f, &a, 403,
           "configmaps \"two\" is forbidden: expression '!has(object.data.bad) || "
           "object.data.worse > 1' resulted in error: no such key: worse");
    /* one condition that is false decides, whatever the others are */
    a = ask(f, create, "ConfigMap", "{'metadata':{'name':'skip2','generateName':'x'}}");
    answer_fini(&a);
    hk_buf_clear(&f->log);
    a = ask(f, on(PORT_DELETE, "skip"), "ConfigMap", NULL);
    expect(f, &a, 200, "");
    expect_log(f, "");
}

static void test_connect(void **state)
{
    struct fake *f = *state;
    const struct port_request exec = {
        .verb = PORT_CREATE, .ns = HK_STR("default"), .name = HK_STR("p"), .subresource = "exec"};
    static const char options[] =
        "{'kind':'PodExecOptions','apiVersion':'v1','command':['sh'],'stdin':true}";

    make(f, "ValidatingAdmissionPolicy", "p",
         POLICY_FOR("pods/exec") ",'validations':[{'expression':'request.operation == "
                                 "\\u0027CONNECT\\u0027 && request.kind.kind == "
                                 "\\u0027PodExecOptions\\u0027 && object.command[0] != "
                                 "\\u0027sh\\u0027','message':'no shells'}]");
    make(f, "ValidatingAdmissionPolicyBinding", "b",
         "'policyName':'p','validationActions':['Deny']");
    struct answer a = ask(f, exec, "Pod", options);
    expect(
        f, &a, 422,
        "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
        "no shells");
    a = ask(f, exec, "Pod", "{'kind':'PodExecOptions','apiVersion':'v1','command':['ls']}");
    expect(f, &a, 200, "");
    struct port_request attach = exec;
    attach.subresource = "attach";
    a = ask(f, attach, "Pod", "{'kind':'PodAttachOptions','apiVersion':'v1'}");
    expect(f, &a, 200, "");
}

static void test_connect_asks_webhooks(void **state)
{
    struct fake *f = *state;
    const char *body =
        "{'metadata':{'name':'v'},'webhooks':[{'name':'v.example.com','clientConfig':"
        "{'url':'https://hook.example/deny'},'sideEffects':'None','admissionReviewVersions':['v1'],"
        "'rules':[{'operations':['CONNECT'],'apiGroups':[''],'apiVersions':['v1'],"
        "'resources':['pods/*']}]}]}";
    struct answer a = ask(f, (struct port_request){.verb = PORT_CREATE}, VALIDATING, body);
    expect(f, &a, 201, "");
    a = ask(f,
            (struct port_request){.verb = PORT_CREATE,
                                  .ns = HK_STR("default"),
                                  .name = HK_STR("p"),
                                  .subresource = "portforward"},
            "Pod", "{'kind':'PodPortForwardOptions','apiVersion':'v1','ports':[80]}");
    expect(f, &a, 403, "admission webhook \"v.example.com\" denied the request: no");
    expect_log(f, "/deny CONNECT p; ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(test_order),
        STORY(test_policies_come_before_webhooks),
        STORY(test_policies_see_what_webhooks_change),
        STORY(test_a_refusing_policy_spares_the_webhooks),
        STORY(test_policies_warn_once),
        STORY(test_conditions),
        STORY(test_connect),
        STORY(test_connect_asks_webhooks),
        STORY(test_validating_see_what_was_changed),
        STORY(test_reinvocation),
        STORY(test_refusals),
        STORY(test_failures),
        STORY(test_wrong_uid_and_bad_patch),
        STORY(test_patches_keep_the_identity),
        STORY(test_generated_names),
        STORY(test_warnings),
        STORY(test_silent_webhook_delays_nobody_else),
        STORY(test_calls_in_flight_are_limited),
        STORY(test_dry_run),
        STORY(test_update_by_somebody_else_while_waiting),
        STORY(test_stale_update_fails),
        STORY(test_deletions),
        STORY(test_webhooks_do_not_guard_themselves),
        STORY(test_rules),
        STORY(test_equivalent_versions),
        STORY(test_namespace_selectors),
        STORY(test_subresources_show_their_own_kinds),
        STORY(test_services),
        STORY(test_cancelled_call_asks_no_more),
        STORY(test_end_while_a_call_waits),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
