// SPDX-License-Identifier: Apache-2.0
// One test suite for every implementation of the port: objects in memory, the store in process, and
// a server over TLS through the client. The caller must not see a difference.
//
// If HEKLA_TEST_KUBECONFIG names an administrator's kubeconfig, the suite also runs against that
// cluster, in its own namespaces, which are deleted afterwards.
#include "client/rig_test.h"

#include "api/port_mem.h"

#include <stdlib.h>

enum maker_type { MAKER_MEM, MAKER_STORE, MAKER_CLIENT, MAKER_CLUSTER };

struct maker {
    enum maker_type type;
    struct rig rig; /* store, and server if there is a client; for a cluster only the client */
    struct port_mem *mem;
    struct port *port;
    char ns[64];
};

static struct outcome ask(struct maker *k, enum api_kind_id kind, struct port_request req,
                          const char *body);
static void await_account(struct maker *k);

/* ---- implementations ---- */

static void open_mem(struct maker *k)
{
    k->mem = port_mem_new(rig_now_s() * 1000000000);
    k->port = port_mem_port(k->mem);
}

static void open_store(struct maker *k)
{
    struct rig *g = &k->rig;

    hk_rand_seed(&g->rand, 1);
    assert_int_equal(store_open(&(struct store_opts){.ring_events = 16}, &g->store, NULL), 0);
    g->rest = rest_new(
        &(struct rest_opts){.store = g->store, .clock = hk_clock_system(), .rand = &g->rand});
    k->port = rest_port(g->rest);
}

static void open_client(struct maker *k)
{
    rig_open(&k->rig, 16);
    const struct client_opts o = rig_client_opts(&k->rig);
    k->port = rig_client(&k->rig, &o, rig_config(&k->rig, NULL, NULL));
}

static void open_cluster(struct maker *k)
{
    const struct kubeconfig_opts where = {.path = getenv("HEKLA_TEST_KUBECONFIG")};
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
    struct kubeconfig config = {0};
    struct rig *g = &k->rig;
    struct hk_err err = {0};

    hk_rand_seed(&g->rand, (uint64_t)hk_clock_system()->wall_ns(hk_clock_system()));
    g->loop = net_loop_new(hk_clock_system());
    if (kubeconfig_load(&where, &config, &err) < 0) {
        fail_msg("%s", err.text);
    }
    const struct client_opts o = rig_client_opts(g);
    k->port = rig_client(g, &o, config);
    snprintf(k->ns, sizeof(k->ns), "hekla-port-%llx", (unsigned long long)hk_rand_u64(&g->rand));
    hk_buf_addf(&body, "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'%s'}}", k->ns);
    const struct outcome made =
        ask(k, API_NAMESPACE, (struct port_request){.verb = PORT_CREATE}, body.data);
    if (made.rc < 0) {
        fail_msg("%s", made.text);
    }
    api_object_unref(made.obj);
    await_account(k);
}

static void close_cluster(struct maker *k)
{
    struct outcome o = ask(k, API_NAMESPACE,
                           (struct port_request){.verb = PORT_DELETE, .name = hk_str(k->ns)}, NULL);

    assert_int_equal(o.rc, 0);
    outcome_fini(&o);
    port_free(k->port);
    net_loop_free(k->rig.loop);
    hk_arena_fini(&k->rig.mem);
}

static void open_maker(struct maker *k)
{
    static void (*const open[])(struct maker *) = {
        [MAKER_MEM] = open_mem,
        [MAKER_STORE] = open_store,
        [MAKER_CLIENT] = open_client,
        [MAKER_CLUSTER] = open_cluster,
    };

    snprintf(k->ns, sizeof(k->ns), "default");
    open[k->type](k);
}

static void close_maker(struct maker *k)
{
    switch (k->type) {
    case MAKER_MEM:
        port_free(k->port);
        hk_arena_fini(&k->rig.mem);
        break;
    case MAKER_STORE:
        rest_free(k->rig.rest);
        store_close(k->rig.store);
        hk_arena_fini(&k->rig.mem);
        break;
    case MAKER_CLIENT:
        rig_close(&k->rig);
        break;
    case MAKER_CLUSTER:
        close_cluster(k);
        break;
    }
}

static void turn(struct maker *k)
{
    struct hk_err err = {0};

    if (k->type == MAKER_STORE) {
        store_flush(k->rig.store);
    }
    if (k->rig.loop) {
        assert_int_equal(net_loop_turn(k->rig.loop, 2, &err), 0);
    }
    port_poll(k->port, 100);
}

/* Other implementations need time, but all of them finish. */
#define until(k, cond)                                                                             \
    do {                                                                                           \
        struct hk_clock *clock_ = hk_clock_system();                                               \
        const int64_t deadline_ = clock_->mono_ns(clock_) + (int64_t)RIG_PATIENCE_MS * 1000000;    \
        while (!(cond)) {                                                                          \
            turn(k);                                                                               \
            if (clock_->mono_ns(clock_) > deadline_) {                                             \
                fail_msg("%s: never came true: %s", (k)->port->ops->name, #cond);                  \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* ---- the steps ---- */

/* In requests: the namespace of the implementation. */
#define NS HK_STR("*")
#define CM(name_) "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'" name_ "'}}"
#define POD                                                                                        \
    "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','labels':{'app':'x'}},"                \
    "'spec':{'containers':[{'name':'c','image':'i'}]}}"
#define BINDING                                                                                    \
    "{'apiVersion':'v1','kind':'Binding','metadata':{'name':'p'},"                                 \
    "'target':{'kind':'Node','name':'n1'}}"

struct step {
    const char *what;
    enum api_kind_id kind;
    struct port_request req; /* without kind and body */
    const char *body;
    int rc;             /* hk_code */
    const char *see[4]; /* pairs of path and value in the answered object */
    const char *names;  /* of a list */
};

static const struct step steps[] = {
    {"an object is made",
     API_CONFIGMAP,
     {.verb = PORT_CREATE, .ns = NS},
     "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','labels':{'l':'1'}},"
     "'data':{'k':'v'}}",
     0,
     {"data.k", "v", "metadata.name", "a"},
     NULL},
    {"but once", API_CONFIGMAP, {.verb = PORT_CREATE, .ns = NS}, CM("a"), HK_EEXIST, {0}, NULL},
    {"it is there",
     API_CONFIGMAP,
     {.verb = PORT_GET, .ns = NS, .name = HK_STR("a")},
     NULL,
     0,
     {"kind", "ConfigMap", "data.k", "v"},
     NULL},
    {"another is not",
     API_CONFIGMAP,
     {.verb = PORT_GET, .ns = NS, .name = HK_STR("z")},
     NULL,
     HK_ENOTFOUND,
     {0},
     NULL},
    {"a name is needed",
     API_CONFIGMAP,
     {.verb = PORT_CREATE, .ns = NS},
     "{'apiVersion':'v1','kind':'ConfigMap','metadata':{}}",
     HK_EINVAL,
     {0},
     NULL},
    {"a namespace too",
     API_CONFIGMAP,
     {.verb = PORT_GET, .name = HK_STR("a")},
     NULL,
     -1,
     {0},
     NULL},
    {"a stale update is refused",
     API_CONFIGMAP,
     {.verb = PORT_UPDATE, .ns = NS, .name = HK_STR("a")},
     "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','resourceVersion':'999999'}"
     "}",
     HK_ECONFLICT,
     {0},
     NULL},
    {"a fresh one is taken",
     API_CONFIGMAP,
     {.verb = PORT_UPDATE, .ns = NS, .name = HK_STR("a")},
     "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','labels':{'l':'1'}},"
     "'data':{'k':'w'}}",
     0,
     {"data.k", "w"},
     NULL},
    {"a merge patch merges",
     API_CONFIGMAP,
     {.verb = PORT_PATCH, .ns = NS, .name = HK_STR("a"), .patch = PORT_PATCH_MERGE},
     "{'data':{'k':null,'m':'1'}}",
     0,
     {"data.k", "-", "data.m", "1"},
     NULL},
    {"a strategic one too",
     API_CONFIGMAP,
     {.verb = PORT_PATCH, .ns = NS, .name = HK_STR("a"), .patch = PORT_PATCH_STRATEGIC},
     "{'data':{'n':'2'}}",
     0,
     {"data.m", "1", "data.n", "2"},
     NULL},
    {"nothing is patched where nothing is",
     API_CONFIGMAP,
     {.verb = PORT_PATCH, .ns = NS, .name = HK_STR("z"), .patch = PORT_PATCH_MERGE},
     "{}",
     HK_ENOTFOUND,
     {0},
     NULL},
    {"a rehearsal leaves nothing",
     API_CONFIGMAP,
     {.verb = PORT_CREATE, .ns = NS, .dry_run = true},
     CM("dry"),
     0,
     {0},
     NULL},
    {"nothing at all",
     API_CONFIGMAP,
     {.verb = PORT_GET, .ns = NS, .name = HK_STR("dry")},
     NULL,
     HK_ENOTFOUND,
     {0},
     NULL},
    {"a second object", API_CONFIGMAP, {.verb = PORT_CREATE, .ns = NS}, CM("b"), 0, {0}, NULL},
    {"a third object", API_CONFIGMAP, {.verb = PORT_CREATE, .ns = NS}, CM("c"), 0, {0}, NULL},
    {"a list selects by label",
     API_CONFIGMAP,
     {.verb = PORT_LIST, .ns = NS, .label_selector = HK_STR("l=1")},
     NULL,
     0,
     {0},
     "a"},
    {"and by name",
     API_CONFIGMAP,
     {.verb = PORT_LIST, .ns = NS, .field_selector = HK_STR("metadata.name=b")},
     NULL,
     0,
     {0},
     "b"},
    {"a selector must be one",
     API_CONFIGMAP,
     {.verb = PORT_LIST, .ns = NS, .label_selector = HK_STR("a in (")},
     NULL,
     HK_EINVAL,
     {0},
     NULL},
    {"a delete minds the uid",
     API_CONFIGMAP,
     {.verb = PORT_DELETE, .ns = NS, .name = HK_STR("b"), .if_uid = HK_STR("other")},
     NULL,
     HK_ECONFLICT,
     {0},
     NULL},
    {"a delete deletes",
     API_CONFIGMAP,
     {.verb = PORT_DELETE, .ns = NS, .name = HK_STR("b")},
     NULL,
     0,
     {0},
     NULL},
    {"but once",
     API_CONFIGMAP,
     {.verb = PORT_DELETE, .ns = NS, .name = HK_STR("b")},
     NULL,
     HK_ENOTFOUND,
     {0},
     NULL},
    {"a pod is made",
     API_POD,
     {.verb = PORT_CREATE, .ns = NS},
     POD,
     0,
     {"spec.nodeName", "-"},
     NULL},
    {"it is bound",
     API_POD,
     {.verb = PORT_CREATE, .ns = NS, .name = HK_STR("p"), .subresource = "binding"},
     BINDING,
     0,
     {0},
     NULL},
    {"but once",
     API_POD,
     {.verb = PORT_CREATE, .ns = NS, .name = HK_STR("p"), .subresource = "binding"},
     BINDING,
     HK_ECONFLICT,
     {0},
     NULL},
    {"it stands on its node",
     API_POD,
     {.verb = PORT_GET, .ns = NS, .name = HK_STR("p")},
     NULL,
     0,
     {"spec.nodeName", "n1"},
     NULL},
    {"its status is apart",
     API_POD,
     {.verb = PORT_PATCH,
      .ns = NS,
      .name = HK_STR("p"),
      .subresource = "status",
      .patch = PORT_PATCH_MERGE},
     "{'status':{'phase':'Running'}}",
     0,
     {"status.phase", "Running", "spec.nodeName", "n1"},
     NULL},
    {"a bound pod is not gone at once",
     API_POD,
     {.verb = PORT_DELETE, .ns = NS, .name = HK_STR("p")},
     NULL,
     0,
     {0},
     NULL},
    {"it is ending",
     API_POD,
     {.verb = PORT_GET, .ns = NS, .name = HK_STR("p")},
     NULL,
     0,
     {"status.phase", "Running"},
     NULL},
    {"until its node says so",
     API_POD,
     {.verb = PORT_DELETE, .ns = NS, .name = HK_STR("p"), .has_grace = true},
     NULL,
     0,
     {0},
     NULL},
    {"and then it is",
     API_POD,
     {.verb = PORT_GET, .ns = NS, .name = HK_STR("p")},
     NULL,
     HK_ENOTFOUND,
     {0},
     NULL},
};

/* A cluster adds one ConfigMap to every namespace. */
static struct port_request at_home(const struct maker *k, struct port_request req)
{
    const bool many = req.verb == PORT_LIST || req.verb == PORT_WATCH;

    if (hk_str_is(req.ns, "*")) {
        req.ns = hk_str(k->ns);
    }
    if (many && req.field_selector.n == 0) {
        req.field_selector = HK_STR("metadata.name!=kube-root-ca.crt");
    }
    return req;
}

static uint64_t submit(struct maker *k, struct port_request req, struct port_sink sink)
{
    req = at_home(k, req);
    return port_submit(k->port, &req, sink);
}

static struct outcome ask(struct maker *k, enum api_kind_id kind, struct port_request req,
                          const char *body)
{
    struct outcome o = {0};

    req.kind = api_kind(kind);
    req.body = body ? rig_json(&k->rig.mem, body) : NULL;
    submit(k, req, (struct port_sink){outcome_on_msg, &o});
    assert_false(o.done); /* never from inside port_submit */
    until(k, o.done);
    return o;
}

static void run_step(struct maker *k, const struct step *s)
{
    struct outcome o = ask(k, s->kind, s->req, s->body);
    const int want = s->rc < 0 ? o.rc < 0 : -s->rc, have = s->rc < 0 ? 1 : o.rc;

    if (want != have) {
        fail_msg("%s: %s: want %d, have %d %s", k->port->ops->name, s->what, -s->rc, o.rc, o.text);
    }
    for (size_t i = 0; i + 1 < HK_LEN(s->see) && s->see[i]; i += 2) {
        const char *value = rig_look(&k->rig.mem, o.obj, s->see[i]);
        if (strcmp(value, s->see[i + 1]) != 0) {
            fail_msg("%s: %s: %s: want '%s', have '%s'", k->port->ops->name, s->what, s->see[i],
                     s->see[i + 1], value);
        }
    }
    if (s->names) {
        assert_string_equal(o.names, s->names);
    }
    outcome_fini(&o);
}

static void play_steps(struct maker *k)
{
    for (size_t i = 0; i < HK_LEN(steps); i++) {
        run_step(k, &steps[i]);
    }
}

/* ---- tests of several calls ---- */

static void make(struct maker *k, const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_addf(&body, "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'%s'}}", name);
    struct outcome o =
        ask(k, API_CONFIGMAP, (struct port_request){.verb = PORT_CREATE, .ns = NS}, body.data);
    assert_int_equal(o.rc, 0);
    outcome_fini(&o);
}

static void play_pages(struct maker *k)
{
    struct port_request req = {.verb = PORT_LIST, .ns = NS, .limit = 2};
    HK_AUTO(hk_buf_fini) struct hk_buf names = {0};
    char cont[512] = "";

    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof(name), "n%d", i);
        make(k, name);
    }
    do {
        req.cont = hk_str(cont);
        struct outcome o = ask(k, API_CONFIGMAP, req, NULL);
        assert_int_equal(o.rc, 0);
        assert_true(o.nitems <= 2);
        hk_buf_addf(&names, "%s ", o.names);
        snprintf(cont, sizeof(cont), "%s", o.cont);
    } while (cont[0] != '\0');
    assert_string_equal(names.data, "n0 n1 n2 n3 n4 ");
}

static uint64_t rv_now(struct maker *k)
{
    const struct outcome o =
        ask(k, API_CONFIGMAP, (struct port_request){.verb = PORT_LIST, .ns = NS}, NULL);

    return o.rv;
}

static void expect_heard(struct maker *k, struct heard *h, const char *want)
{
    until(k, h->text.len >= strlen(want));
    assert_string_equal(hk_buf_str(&h->text).s, want);
}

/* Pods need the service account that a controller creates in every namespace. */
static void await_account(struct maker *k)
{
    const struct port_request req = {
        .verb = PORT_WATCH, .kind = api_kind(API_SERVICE_ACCOUNT), .ns = NS};
    struct heard h = {0};
    const uint64_t call = submit(k, req, (struct port_sink){heard_on_msg, &h});

    expect_heard(k, &h, "+default");
    port_cancel(k->port, call);
    heard_fini(&h);
}

static void change(struct maker *k, const char *name, enum port_verb verb, const char *body)
{
    const struct port_request req = {
        .verb = verb, .ns = NS, .name = hk_str(name), .patch = PORT_PATCH_MERGE};
    struct outcome o = ask(k, API_CONFIGMAP, req, body);

    assert_int_equal(o.rc, 0);
    outcome_fini(&o);
}

static void play_watch(struct maker *k)
{
    struct heard h = {0}, picky = {0};
    struct port_request req = {.verb = PORT_WATCH, .kind = api_kind(API_CONFIGMAP), .ns = NS};

    make(k, "first");
    req.rv = rv_now(k);
    make(k, "a"); /* before any watch */
    const uint64_t call = submit(k, req, (struct port_sink){heard_on_msg, &h});
    req.label_selector = HK_STR("l=1");
    const uint64_t other = submit(k, req, (struct port_sink){heard_on_msg, &picky});
    make(k, "b");
    change(k, "a", PORT_PATCH, "{'metadata':{'labels':{'l':'1'}}}");
    change(k, "a", PORT_PATCH, "{'data':{'k':'v'}}");
    change(k, "b", PORT_DELETE, NULL);
    change(k, "a", PORT_PATCH, "{'metadata':{'labels':{'l':'2'}}}");
    expect_heard(k, &h, "+a +b ~a ~a -b ~a");
    expect_heard(k, &picky, "+a ~a -a");
    port_cancel(k->port, call);
    port_cancel(k->port, other);
    change(k, "a", PORT_DELETE, NULL);
    assert_string_equal(h.text.data, "+a +b ~a ~a -b ~a");
    heard_fini(&h);
    heard_fini(&picky);
}

static void play_watch_from_nothing(struct maker *k)
{
    struct heard h = {0};
    const struct port_request req = {.verb = PORT_WATCH, .kind = api_kind(API_CONFIGMAP), .ns = NS};

    make(k, "a");
    make(k, "b");
    const uint64_t call = submit(k, req, (struct port_sink){heard_on_msg, &h});
    expect_heard(k, &h, "+a +b");
    make(k, "c");
    expect_heard(k, &h, "+a +b +c");
    port_cancel(k->port, call);
    heard_fini(&h);
}

static void play_old_watch(struct maker *k)
{
    struct heard h = {0};
    struct port_request req = {.verb = PORT_WATCH, .kind = api_kind(API_CONFIGMAP), .ns = NS};

    make(k, "a");
    req.rv = rv_now(k);
    for (int i = 0; i < 40; i++) {
        char body[64];
        snprintf(body, sizeof(body), "{'data':{'k':'%d'}}", i);
        change(k, "a", PORT_PATCH, body);
    }
    if (k->type == MAKER_MEM) {
        port_mem_compact(k->mem);
    } else if (k->type == MAKER_CLUSTER) {
        req.rv = 1; /* its history has more than forty events, or all if it is new */
    }
    const uint64_t call = submit(k, req, (struct port_sink){heard_on_msg, &h});
    until(k, h.done || (k->type == MAKER_CLUSTER && h.events > 0));
    if (h.done) {
        assert_int_equal(h.rc, -HK_EGONE);
        assert_int_equal(h.events, 0);
    }
    port_cancel(k->port, call);
    heard_fini(&h);
}

static void on_unwanted(void *ctx, const struct port_msg *m)
{
    fail_msg("a cancelled call spoke");
}

static void play_cancel(struct maker *k)
{
    const struct port_request list = {.verb = PORT_LIST, .kind = api_kind(API_CONFIGMAP), .ns = NS};
    struct port_request watch = list;

    watch.verb = PORT_WATCH;
    make(k, "a");
    const uint64_t a = submit(k, list, (struct port_sink){on_unwanted, NULL});
    const uint64_t b = submit(k, watch, (struct port_sink){on_unwanted, NULL});
    assert_true(a != 0 && b != 0 && a != b);
    port_cancel(k->port, a);
    port_cancel(k->port, b);
    port_cancel(k->port, b);
    port_cancel(k->port, 12345678);
    submit(k, list, (struct port_sink){0}); /* without a callback */
    make(k, "b");
}

/* A write from the callback of another. */
struct chain {
    struct maker *k;
    int left;
};

static void on_link(void *ctx, const struct port_msg *m)
{
    struct chain *c = ctx;
    char body[128];

    assert_int_equal(m->rc, 0);
    if (c->left-- > 0) {
        snprintf(body, sizeof(body),
                 "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'l%d'}}", c->left);
        port_create(c->k->port, api_kind(API_CONFIGMAP), hk_str(c->k->ns),
                    rig_json(&c->k->rig.mem, body), (struct port_sink){on_link, c});
    }
}

static void play_chain(struct maker *k)
{
    struct chain c = {k, 5};

    port_list(k->port, api_kind(API_CONFIGMAP), hk_str(k->ns), (struct port_sink){on_link, &c});
    until(k, c.left < 0);
}

/* ---- all implementations, all tests ---- */

static void play(enum maker_type type)
{
    static void (*const stories[])(struct maker * k) = {
        play_steps,     play_pages,  play_watch, play_watch_from_nothing,
        play_old_watch, play_cancel, play_chain,
    };

    for (size_t i = 0; i < HK_LEN(stories); i++) {
        struct maker k = {.type = type};
        open_maker(&k);
        stories[i](&k);
        close_maker(&k);
    }
}

static void test_objects_in_memory(void **state)
{
    play(MAKER_MEM);
}

static void test_the_store(void **state)
{
    play(MAKER_STORE);
}

static void test_the_client(void **state)
{
    play(MAKER_CLIENT);
}

static void test_a_cluster(void **state)
{
    play(MAKER_CLUSTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_in_memory),
        cmocka_unit_test(test_the_store),
        cmocka_unit_test(test_the_client),
    };
    const struct CMUnitTest with_cluster[] = {
        tests[0],
        tests[1],
        tests[2],
        cmocka_unit_test(test_a_cluster),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return getenv("HEKLA_TEST_KUBECONFIG") ? cmocka_run_group_tests(with_cluster, NULL, NULL)
                                           : cmocka_run_group_tests(tests, NULL, NULL);
}
