// SPDX-License-Identifier: Apache-2.0
// Conversion webhooks, asked by a caller that answers when the test says so: what goes out in one
// review, who shares it, and that nothing hangs or is written when a webhook, a definition or an object
// changes meanwhile. tests/e2e/conversion.t has the messages, over TLS.
#include "api/webhook_caller.h"
#include "store/rest_rig_test.h"

#define NS HK_STR("default")

struct review {
    uint64_t id;
    struct json doc;
    webhook_done_fn *done;
    void *arg;
};

struct fake {
    struct rig g;
    struct webhook_caller caller;
    struct hk_arena mem;
    uint64_t last_id;
    uint32_t asked, cancelled;
    HK_VEC(struct review) reviews; /* not answered */
};

/* ---- the webhook: v1 has spec.a, v2 has spec.b ---- */

static uint64_t fake_post(void *ctx, const struct webhook_post *p, webhook_done_fn *done, void *arg)
{
    struct fake *f = ctx;
    struct review t = {.id = ++f->last_id, .done = done, .arg = arg};

    assert_int_equal(json_parse(hk_arena_str(&f->mem, p->body), 0, &f->mem, &t.doc, NULL), 0);
    f->asked++;
    hk_vec_push(&f->reviews, t);
    return t.id;
}

static void fake_cancel(void *ctx, uint64_t id)
{
    struct fake *f = ctx;

    for (uint32_t i = 0; i < f->reviews.len; i++) {
        if (f->reviews.at[i].id == id) {
            hk_vec_swap_remove(&f->reviews, i);
            f->cancelled++;
            return;
        }
    }
}

static struct json convert(struct fake *f, const struct json *obj, struct hk_str version)
{
    struct hk_arena *a = &f->mem;
    struct json doc = json_clone(obj, a);
    const bool to_v2 = hk_str_ends(version, "v2");
    struct json spec = json_clone_as(json_get(&doc, "spec"), JSON_OBJECT, a);
    const struct json *v = json_get(&spec, to_v2 ? "a" : "b");

    if (v) {
        json_set(&spec, a, to_v2 ? "b" : "a", *v);
        json_del(&spec, to_v2 ? "a" : "b");
    }
    json_set(&doc, a, "spec", spec);
    json_set_str(&doc, a, "apiVersion", version);
    return doc;
}

/* why NULL: succeeds. */
static void fake_answer(struct fake *f, const char *why)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct review t = f->reviews.at[0];
    const struct json *q = json_get(&t.doc, "request");
    const struct json *objects = json_get(q, "objects");

    memmove(f->reviews.at, f->reviews.at + 1, (f->reviews.len - 1) * sizeof(t));
    f->reviews.len--;
    hk_buf_addf(&text,
                "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"ConversionReview\","
                "\"response\":{\"uid\":\"%.*s\",\"result\":{\"status\":\"%s\",\"message\":\"%s\"},"
                "\"convertedObjects\":[",
                HK_FMT(json_str_field(q, "uid")), why ? "Failure" : "Success", why ? why : "");
    for (uint32_t i = 0; i < objects->len; i++) {
        const struct json doc =
            convert(f, &objects->items[i], json_str_field(q, "desiredAPIVersion"));
        hk_buf_adds(&text, i > 0 ? "," : "");
        json_write(&doc, &text);
    }
    hk_buf_adds(&text, "]}}");
    t.done(t.arg, &(struct webhook_reply){.http = 200, .body = hk_buf_str(&text)});
}

static void fake_settle(struct fake *f)
{
    rig_settle(&f->g);
    while (f->reviews.len > 0) {
        fake_answer(f, NULL);
        rig_settle(&f->g);
    }
}

/* ---- requests ---- */

static const struct api_kind *version_of(struct fake *f, const char *version)
{
    return rest_kind_find(f->g.rest, HK_STR("example.com"), hk_str(version), HK_STR("things"))
        ->kind;
}

static void submit(struct fake *f, struct port_request req, const char *version, struct answer *ret)
{
    req.kind = version_of(f, version);
    req.ns = NS;
    *ret = (struct answer){0};
    port_submit(f->g.port, &req, (struct port_sink){rig_on_msg, ret});
    rig_settle(&f->g);
}

static struct port_request get(const char *name)
{
    return (struct port_request){.verb = PORT_GET, .name = hk_str(name)};
}

static struct port_request create(struct fake *f, const char *name, const char *spec)
{
    return (struct port_request){
        .verb = PORT_CREATE,
        .body = rig_json(
            &f->g, hk_arena_printf(&f->mem, "{'metadata':{'name':'%s'},'spec':%s}", name, spec))};
}

/* Expects the answer, and the value at the path if there is one. */
static void expect(struct fake *f, struct answer *a, int code, const char *path, const char *want)
{
    assert_true(a->done);
    if (a->code != code) {
        fail_msg("expected %d, got %d %s", code, a->code, a->message);
    }
    if (path) {
        assert_string_equal(rig_look(&f->g, a->obj, path), want);
    }
    answer_fini(a);
}

static void define(struct fake *f, enum port_verb verb)
{
    const char *body = hk_arena_printf(
        &f->mem,
        "{'metadata':{'name':'things.example.com'},'spec':{'group':'example.com',"
        "'scope':'Namespaced','names':{'plural':'things','kind':'Thing'},"
        "'conversion':{'strategy':'Webhook','webhook':{'conversionReviewVersions':['v1'],"
        "'clientConfig':{'url':'https://%s.example/'}}},'versions':["
        "{'name':'v2','served':true,'storage':true},{'name':'v1','served':true,'storage':false}]}}",
        verb == PORT_CREATE ? "hook" : "other");
    const struct port_request req = {.verb = verb,
                                     .patch = PORT_PATCH_MERGE,
                                     .name = HK_STR("things.example.com"),
                                     .kind = rig_kind(&f->g, "CustomResourceDefinition"),
                                     .body = rig_json(&f->g, body)};
    struct answer a = rig_ask(&f->g, &req);

    expect(f, &a, verb == PORT_CREATE ? 201 : 200, NULL, NULL);
}

static int set_up(void **state)
{
    struct fake *f = hk_zalloc(sizeof(*f));

    rig_open(&f->g, false);
    f->caller = (struct webhook_caller){.ctx = f, .post = fake_post, .cancel = fake_cancel};
    rest_call_webhooks(f->g.rest, &f->caller);
    define(f, PORT_CREATE);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fake *f = *state;

    rig_close(&f->g);
    hk_vec_fini(&f->reviews);
    hk_arena_fini(&f->mem);
    hk_free(f);
    return 0;
}

static void put(struct fake *f, const char *name)
{
    struct answer a;

    submit(f, create(f, name, "{'b':1}"), "v2", &a);
    expect(f, &a, 201, "spec.b", "1");
}

/* ---- tests ---- */

static void test_a_write_waits_for_both_directions(void **state)
{
    struct fake *f = *state;
    struct answer a;

    submit(f, create(f, "x", "{'a':7}"), "v1", &a);
    assert_false(a.done);
    fake_answer(f, NULL);
    rig_settle(&f->g);
    assert_false(a.done); /* the answer is converted before anything is stored */
    fake_answer(f, NULL);
    rig_settle(&f->g);
    expect(f, &a, 201, "spec.a", "7");
    assert_int_equal(f->asked, 2);
    submit(f, get("x"), "v1", &a); /* still known */
    expect(f, &a, 200, "spec.a", "7");
    submit(f, get("x"), "v2", &a);
    expect(f, &a, 200, "spec.b", "7");
    assert_int_equal(f->asked, 2);
}

static void test_a_failed_way_back_writes_nothing(void **state)
{
    struct fake *f = *state;
    struct answer a;

    submit(f, create(f, "x", "{'a':7}"), "v1", &a);
    fake_answer(f, NULL);
    rig_settle(&f->g);
    fake_answer(f, "no way back");
    rig_settle(&f->g);
    assert_string_equal(a.message,
                        "conversion webhook for example.com/v2, Kind=Thing failed: no way back");
    expect(f, &a, 500, NULL, NULL);
    submit(f, get("x"), "v2", &a);
    expect(f, &a, 404, NULL, NULL);
}

static void test_readers_of_one_state_share_its_conversion(void **state)
{
    struct fake *f = *state;
    struct answer a, b, list;

    put(f, "x");
    submit(f, get("x"), "v1", &a);
    submit(f, get("x"), "v1", &b);
    submit(f, (struct port_request){.verb = PORT_LIST}, "v1", &list);
    assert_int_equal(f->asked, 1);
    fake_answer(f, NULL);
    rig_settle(&f->g);
    expect(f, &a, 200, "spec.a", "1");
    expect(f, &b, 200, "spec.a", "1");
    assert_string_equal(list.names, "x");
    expect(f, &list, 200, NULL, NULL);
}

static void test_a_list_asks_for_all_objects_at_once(void **state)
{
    struct fake *f = *state;
    struct answer list;

    put(f, "x");
    put(f, "y");
    put(f, "z");
    submit(f, (struct port_request){.verb = PORT_LIST}, "v1", &list);
    assert_int_equal(f->asked, 1);
    assert_int_equal(json_len(json_at(&f->reviews.at[0].doc, "request.objects")), 3);
    fake_settle(f);
    assert_string_equal(list.names, "x y z");
    expect(f, &list, 200, NULL, NULL);
}

static void test_a_failed_review_is_repeated_one_by_one(void **state)
{
    struct fake *f = *state;
    struct answer a, b;

    put(f, "x");
    put(f, "y");
    const struct port_request x = {
        .verb = PORT_GET, .kind = version_of(f, "v1"), .ns = NS, .name = HK_STR("x")};
    const struct port_request y = {
        .verb = PORT_GET, .kind = version_of(f, "v1"), .ns = NS, .name = HK_STR("y")};
    a = b = (struct answer){0};
    port_submit(f->g.port, &x, (struct port_sink){rig_on_msg, &a});
    port_submit(f->g.port, &y, (struct port_sink){rig_on_msg, &b});
    rig_settle(&f->g);
    assert_int_equal(f->asked, 1);
    fake_answer(f, "one of them is bad");
    rig_settle(&f->g);
    assert_int_equal(f->reviews.len, 2);
    fake_answer(f, "x is bad");
    fake_answer(f, NULL);
    rig_settle(&f->g);
    expect(f, &a, 500, NULL, NULL);
    expect(f, &b, 200, "spec.a", "1");
}

static void test_a_failure_is_not_kept(void **state)
{
    struct fake *f = *state;
    struct answer a;

    put(f, "x");
    submit(f, get("x"), "v1", &a);
    fake_answer(f, "not now");
    rig_settle(&f->g);
    expect(f, &a, 500, NULL, NULL);
    submit(f, get("x"), "v1", &a);
    fake_settle(f);
    expect(f, &a, 200, "spec.a", "1");
}

static void test_a_silent_webhook_is_given_up(void **state)
{
    struct fake *f = *state;
    struct answer a;

    put(f, "x");
    submit(f, get("x"), "v1", &a);
    rig_sleep(&f->g, 29);
    assert_false(a.done);
    rig_sleep(&f->g, 2);
    assert_int_equal(f->cancelled, 1);
    expect(f, &a, 500, NULL, NULL);
}

static void test_a_write_over_a_changed_object_starts_again(void **state)
{
    struct fake *f = *state;
    const struct port_request patch = {
        .verb = PORT_PATCH, .name = HK_STR("x"), .patch = PORT_PATCH_MERGE};
    struct port_request mine = patch, other = patch;
    struct answer a, b;

    put(f, "x");
    mine.body = rig_json(&f->g, "{'spec':{'mine':true}}");
    other.body = rig_json(&f->g, "{'spec':{'other':true}}");
    submit(f, mine, "v1", &a);
    fake_answer(f, NULL); /* the state it reads */
    rig_settle(&f->g);
    submit(f, other, "v2", &b);
    expect(f, &b, 200, NULL, NULL);
    fake_settle(f);
    expect(f, &a, 200, "spec", "{\"other\":true,\"mine\":true,\"a\":1}");
}

static void test_a_deletion_by_collection_converts_each_object(void **state)
{
    struct fake *f = *state;
    struct answer a;

    put(f, "x");
    put(f, "y");
    submit(f, (struct port_request){.verb = PORT_DELETE_COLLECTION}, "v1", &a);
    fake_settle(f);
    assert_true(a.done);
    answer_fini(&a);
    submit(f, (struct port_request){.verb = PORT_LIST}, "v2", &a);
    assert_string_equal(a.names, "");
    expect(f, &a, 200, NULL, NULL);
}

static void test_cancelled_calls_and_a_new_definition_leave_nothing(void **state)
{
    struct fake *f = *state;
    struct port_request list = {.verb = PORT_LIST, .kind = version_of(f, "v1"), .ns = NS};
    struct answer a = {0}, b;

    put(f, "x");
    const uint64_t id = port_submit(f->g.port, &list, (struct port_sink){rig_on_msg, &a});
    rig_settle(&f->g);
    port_cancel(f->g.port, id);
    submit(f, get("x"), "v1", &b);
    define(f, PORT_PATCH); /* while the webhook is asked by the former definition */
    fake_settle(f);
    assert_false(a.done);
    expect(f, &b, 200, "spec.a", "1");
    put(f, "y");
    submit(f, get("y"), "v1", &b); /* never answered */
    assert_false(b.done);
}

/* ---- watches ---- */

struct seen {
    char text[512];
    int code;
};

static void on_event(void *ctx, const struct port_msg *m)
{
    static const char *const types[] = {
        [PORT_ADDED] = "+", [PORT_MODIFIED] = "~", [PORT_DELETED] = "-"};
    struct seen *s = ctx;

    if (m->type == PORT_DONE) {
        s->code = m->status ? m->status->code : 200;
    } else if (m->type != PORT_BOOKMARK) {
        rig_add(s->text, sizeof(s->text), "%s%.*s:%lld ", types[m->type], HK_FMT(m->obj->name),
                (long long)json_int(json_at(&m->obj->root, "spec.a"), -1));
    }
}

static uint64_t watch(struct fake *f, struct seen *s)
{
    const struct port_request req = {
        .verb = PORT_WATCH, .kind = version_of(f, "v1"), .ns = NS, .initial = PORT_INITIAL_SEND};

    *s = (struct seen){0};
    const uint64_t id = port_submit(f->g.port, &req, (struct port_sink){on_event, s});
    rig_settle(&f->g);
    return id;
}

static void test_watches_share_conversions_and_keep_the_order(void **state)
{
    struct fake *f = *state;
    struct seen one, two;
    struct answer a;

    put(f, "x");
    put(f, "y");
    watch(f, &one);
    watch(f, &two);
    assert_int_equal(f->asked, 1);
    assert_string_equal(one.text, "");
    fake_settle(f);
    put(f, "z");
    submit(f, (struct port_request){.verb = PORT_DELETE, .name = HK_STR("x")}, "v2", &a);
    expect(f, &a, 200, NULL, NULL);
    fake_settle(f);
    assert_string_equal(one.text, "+x:1 +y:1 +z:1 -x:1 ");
    assert_string_equal(two.text, one.text);
}

static void test_a_watch_ends_when_a_conversion_fails(void **state)
{
    struct fake *f = *state;
    struct seen s;

    put(f, "x");
    watch(f, &s);
    fake_answer(f, "not this one");
    rig_settle(&f->g);
    assert_int_equal(s.code, 500);
    assert_string_equal(s.text, "");
}

static void test_a_cancelled_watch_waits_for_nothing(void **state)
{
    struct fake *f = *state;
    struct seen s;

    put(f, "x");
    port_cancel(f->g.port, watch(f, &s));
    fake_settle(f);
    assert_string_equal(s.text, "");
    watch(f, &s); /* and one is still waiting when the store closes */
    put(f, "y");
    rig_settle(&f->g);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_write_waits_for_both_directions),
        TEST(a_failed_way_back_writes_nothing),
        TEST(readers_of_one_state_share_its_conversion),
        TEST(a_list_asks_for_all_objects_at_once),
        TEST(a_failed_review_is_repeated_one_by_one),
        TEST(a_failure_is_not_kept),
        TEST(a_silent_webhook_is_given_up),
        TEST(a_write_over_a_changed_object_starts_again),
        TEST(a_deletion_by_collection_converts_each_object),
        TEST(cancelled_calls_and_a_new_definition_leave_nothing),
        TEST(watches_share_conversions_and_keep_the_order),
        TEST(a_watch_ends_when_a_conversion_fails),
        TEST(a_cancelled_watch_waits_for_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
