// SPDX-License-Identifier: Apache-2.0
// The guarantees of the port, in the port for tests: one outcome per call, ordered watches,
// conflicts, injected failures.
#include "api/port_mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { NOW_S = 1704164645 };

struct fixture {
    struct port_mem *mem;
    struct port *port;
    struct hk_arena arena;
    struct hk_buf seen; /* one word per message */
    struct api_object *last;
    struct port_sink sink;
};

static const char *msg_word(const struct port_msg *m)
{
    static const char *const words[] = {"done", "added", "modified", "deleted", "bookmark"};
    return words[m->type];
}

/* "call:word[/code]:name@rv", and the names of a list. */
static void on_msg(void *ctx, const struct port_msg *m)
{
    struct fixture *f = ctx;

    hk_buf_addf(&f->seen, "%llu:%s", (unsigned long long)m->call, msg_word(m));
    if (m->rc < 0) {
        hk_buf_addf(&f->seen, "/%s", hk_code_reason(-m->rc));
    }
    if (m->obj) {
        hk_buf_addf(&f->seen, ":%.*s", HK_FMT(m->obj->name));
        api_object_unref(f->last);
        f->last = api_object_ref(m->obj);
    }
    for (uint32_t i = 0; i < m->nitems; i++) {
        hk_buf_addf(&f->seen, "%s%.*s", i > 0 ? "," : ":", HK_FMT(m->items[i]->name));
    }
    if (m->rc == 0) {
        hk_buf_addf(&f->seen, "@%llu", (unsigned long long)m->rv);
    }
    if (m->cont.n > 0) {
        hk_buf_addf(&f->seen, "+%.*s", HK_FMT(m->cont));
    }
    hk_buf_addc(&f->seen, ' ');
}

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    f->mem = port_mem_new((int64_t)NOW_S * 1000000000);
    f->port = port_mem_port(f->mem);
    f->sink = (struct port_sink){on_msg, f};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    api_object_unref(f->last);
    port_free(f->port);
    port_free(NULL);
    hk_buf_fini(&f->seen);
    hk_arena_fini(&f->arena);
    hk_free(f);
    return 0;
}

static const struct json *parse(struct fixture *f, const char *text)
{
    struct json *v = hk_arena_alloc(&f->arena, sizeof(*v));
    struct hk_err err = {0};

    if (json_parse(hk_str(text), 0, &f->arena, v, &err) < 0) {
        fail_msg("test JSON: %s", err.text);
    }
    return v;
}

static void put(struct fixture *f, const char *text)
{
    struct hk_err err = {0};

    if (port_mem_put(f->mem, parse(f, text), &err) < 0) {
        fail_msg("put: %s", err.text);
    }
}

static void expect(struct fixture *f, const char *messages)
{
    while (port_poll(f->port, 1) > 0) {
    }
    assert_string_equal(f->seen.data ? f->seen.data : "", messages);
    hk_buf_clear(&f->seen);
}

#define POD(name, more)                                                                            \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name                       \
    "\",\"namespace\":\"d\"" more "}}"
#define D HK_STR("d")

static const struct api_kind *pods(void)
{
    return api_kind(API_POD);
}

static const char *field(const struct api_object *o, const char *path)
{
    const struct json *v = o ? json_at(&o->root, path) : NULL;
    static char text[128];

    snprintf(text, sizeof(text), "%.*s", HK_FMT(json_str(v, HK_STR("-"))));
    return text;
}

static void outcomes_wait_for_poll(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(port_create(f->port, pods(), D, parse(f, POD("a", "")), f->sink), 1);
    assert_int_equal(f->seen.len, 0);
    assert_int_equal(port_poll(f->port, 10), 1);
    assert_int_equal(port_poll(f->port, 10), 0);
    expect(f, "1:done:a@1 ");
    assert_int_equal(port_fd(f->port), -1);
}

static void created_objects_get_an_identity(void **state)
{
    struct fixture *f = *state;

    port_create(f->port, pods(), D,
                parse(f, "{\"metadata\":{\"generateName\":\"g-\"},\"status\":{\"phase\":\"X\"}}"),
                f->sink);
    expect(f, "1:done:g-00001@1 ");
    assert_string_equal(field(f->last, "metadata.uid"), "00000000-0000-0000-0000-000000000001");
    assert_string_equal(field(f->last, "metadata.creationTimestamp"), "2024-01-02T03:04:05Z");
    assert_string_equal(field(f->last, "metadata.namespace"), "d");
    assert_string_equal(field(f->last, "status.phase"), "-");
}

static void get_list_and_their_failures(void **state)
{
    struct fixture *f = *state;

    put(f, POD("a", ",\"labels\":{\"x\":\"1\"}"));
    put(f, POD("b", ",\"labels\":{\"x\":\"2\"}"));
    put(f, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}");
    port_get(f->port, pods(), D, HK_STR("a"), f->sink);
    port_get(f->port, pods(), D, HK_STR("z"), f->sink);
    port_get(f->port, pods(), HK_STR(""), HK_STR("a"), f->sink);
    port_list(f->port, pods(), HK_STR(""), f->sink);
    port_list(f->port, pods(), HK_STR("other"), f->sink);
    expect(f, "1:done:a@1 2:done/NotFound 3:done/Invalid 4:done:a,b@3 5:done@3 ");

    struct port_request req = {.verb = PORT_LIST, .kind = pods(), .label_selector = HK_STR("x=2")};
    port_submit(f->port, &req, f->sink);
    req.label_selector = HK_STR("x in");
    port_submit(f->port, &req, f->sink);
    req.label_selector = HK_STR("");
    req.field_selector = HK_STR("metadata.name!=b");
    port_submit(f->port, &req, f->sink);
    expect(f, "6:done:b@3 7:done/Invalid 8:done:a@3 ");
}

static void long_lists_come_in_pages(void **state)
{
    struct fixture *f = *state;
    struct port_request req = {.verb = PORT_LIST, .kind = pods(), .limit = 2};
    char cont[16] = "";

    put(f, POD("a", ""));
    put(f, POD("b", ""));
    put(f, POD("c", ""));
    port_submit(f->port, &req, f->sink);
    assert_int_equal(port_poll(f->port, 1), 1);
    assert_int_equal(sscanf(f->seen.data, "1:done:a,b@3+%15s", cont), 1);
    hk_buf_clear(&f->seen);
    req.cont = hk_str(cont);
    port_submit(f->port, &req, f->sink);
    req.cont = HK_STR("what");
    port_submit(f->port, &req, f->sink);
    expect(f, "2:done:c@3 3:done/Invalid ");
}

static void stale_updates_conflict(void **state)
{
    struct fixture *f = *state;

    put(f, POD("a", ""));
    put(f, POD("a", ",\"labels\":{\"x\":\"1\"}"));
    port_update(f->port, pods(), NULL, parse(f, POD("a", ",\"resourceVersion\":\"1\"")), f->sink);
    port_update(f->port, pods(), NULL, parse(f, POD("a", ",\"resourceVersion\":\"2\"")), f->sink);
    port_update(f->port, pods(), NULL, parse(f, POD("z", "")), f->sink);
    port_create(f->port, pods(), D, parse(f, POD("a", "")), f->sink);
    expect(f, "1:done/Conflict 2:done:a@3 3:done/NotFound 4:done/AlreadyExists ");
}

static void writes_without_change_keep_the_revision(void **state)
{
    struct fixture *f = *state;

    put(f, POD("a", ""));
    port_update(f->port, pods(), NULL, parse(f, POD("a", "")), f->sink);
    expect(f, "1:done:a@1 ");
}

static void status_is_written_apart(void **state)
{
    struct fixture *f = *state;
    const struct json *body =
        parse(f, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
                 "\"namespace\":\"d\"},\"spec\":{\"s\":\"new\"},\"status\":{\"t\":\"new\"}}");

    put(f, POD("a", ""));
    port_update(f->port, pods(), "status", body, f->sink);
    expect(f, "1:done:a@2 ");
    assert_string_equal(field(f->last, "status.t"), "new");
    assert_string_equal(field(f->last, "spec.s"), "-");

    port_update(f->port, pods(), NULL, parse(f, POD("a", ",\"labels\":{\"l\":\"1\"}")), f->sink);
    expect(f, "2:done:a@3 ");
    assert_string_equal(field(f->last, "status.t"), "new");
    assert_string_equal(field(f->last, "metadata.labels.l"), "1");

    port_update(f->port, api_kind(API_PODGROUP), "status", parse(f, POD("a", "")), f->sink);
    expect(f, "3:done/MethodNotAllowed ");
}

static void merge_patches_apply(void **state)
{
    struct fixture *f = *state;
    struct port_request req = {.verb = PORT_PATCH,
                               .kind = pods(),
                               .ns = D,
                               .name = HK_STR("a"),
                               .patch = PORT_PATCH_MERGE};

    put(f, POD("a", ",\"labels\":{\"x\":\"1\",\"y\":\"2\"}"));
    req.body = parse(f, "{\"metadata\":{\"labels\":{\"x\":null,\"z\":\"3\"}}}");
    port_submit(f->port, &req, f->sink);
    expect(f, "1:done:a@2 ");
    assert_string_equal(field(f->last, "metadata.labels.x"), "-");
    assert_string_equal(field(f->last, "metadata.labels.y"), "2");
    assert_string_equal(field(f->last, "metadata.labels.z"), "3");
    req.patch = PORT_PATCH_APPLY;
    req.body = parse(f, "{\"metadata\":{\"labels\":{\"z\":\"4\"}}}");
    port_submit(f->port, &req, f->sink);
    expect(f, "2:done:a@3 ");
    assert_string_equal(field(f->last, "metadata.labels.y"), "2");
    assert_string_equal(field(f->last, "metadata.labels.z"), "4");
}

static void deletes_check_their_preconditions(void **state)
{
    struct fixture *f = *state;
    struct port_request req = {.verb = PORT_DELETE, .kind = pods(), .ns = D, .name = HK_STR("a")};

    put(f, POD("a", ",\"uid\":\"u\""));
    req.if_uid = HK_STR("v");
    port_submit(f->port, &req, f->sink);
    req.if_uid = HK_STR("u");
    req.if_rv = 9;
    port_submit(f->port, &req, f->sink);
    req.if_rv = 1;
    port_submit(f->port, &req, f->sink);
    port_delete(f->port, pods(), D, HK_STR("a"), f->sink);
    expect(f, "1:done/Conflict 2:done/Conflict 3:done@0 4:done/NotFound ");
    assert_null(port_mem_peek(f->mem, pods(), D, HK_STR("a")));
}

static void binding_sets_the_node_once(void **state)
{
    struct fixture *f = *state;
    const struct port_request req = {
        .verb = PORT_CREATE,
        .kind = pods(),
        .ns = D,
        .name = HK_STR("a"),
        .subresource = "binding",
        .body = parse(f, "{\"metadata\":{\"annotations\":{\"k\":\"v\"}},"
                         "\"target\":{\"name\":\"n1\"}}"),
    };

    port_submit(f->port, &req, f->sink);
    put(f, POD("a", ""));
    port_submit(f->port, &req, f->sink);
    port_submit(f->port, &req, f->sink);
    expect(f, "1:done/NotFound 2:done:a@2 3:done/Conflict ");
    assert_string_equal(field(f->last, "spec.nodeName"), "n1");
    assert_string_equal(field(f->last, "metadata.annotations.k"), "v");
}

static void bound_pods_linger_until_their_node_ends_them(void **state)
{
    struct fixture *f = *state;
    const struct port_request evict = {
        .verb = PORT_CREATE,
        .kind = pods(),
        .ns = D,
        .name = HK_STR("a"),
        .subresource = "eviction",
        .body = parse(f, "{}"),
    };

    put(f, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":"
           "\"d\"},\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Running\"}}");
    port_submit(f->port, &evict, f->sink);
    port_submit(f->port, &evict, f->sink);
    expect(f, "1:done:a@2 2:done:a@2 ");
    assert_string_equal(field(f->last, "metadata.deletionTimestamp"), "2024-01-02T03:04:05Z");
    assert_true(port_mem_remove(f->mem, pods(), D, HK_STR("a")));
    assert_false(port_mem_remove(f->mem, pods(), D, HK_STR("a")));
    assert_int_equal(port_mem_rv(f->mem), 3);
}

static void watches_get_changes_in_order(void **state)
{
    struct fixture *f = *state;

    port_watch(f->port, pods(), D, 0, f->sink);
    put(f, POD("a", ""));
    put(f, POD("a", ",\"labels\":{\"x\":\"1\"}"));
    put(f, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}");
    port_mem_remove(f->mem, pods(), D, HK_STR("a"));
    expect(f, "1:added:a@1 1:modified:a@2 1:deleted:a@4 ");
    assert_string_equal(field(f->last, "metadata.resourceVersion"), "4");
}

static void watches_resume_from_a_revision(void **state)
{
    struct fixture *f = *state;

    put(f, POD("a", ""));
    put(f, POD("b", ""));
    port_watch(f->port, pods(), D, 0, f->sink);
    port_watch(f->port, pods(), D, 1, f->sink);
    port_watch(f->port, pods(), D, 2, f->sink);
    put(f, POD("c", ""));
    expect(f, "1:added:a@1 1:added:b@2 2:added:b@2 1:added:c@3 2:added:c@3 3:added:c@3 ");
}

static void watches_see_objects_enter_and_leave_their_selection(void **state)
{
    struct fixture *f = *state;
    const struct port_request req = {
        .verb = PORT_WATCH, .kind = pods(), .ns = D, .label_selector = HK_STR("x=1")};

    port_submit(f->port, &req, f->sink);
    put(f, POD("a", ""));
    put(f, POD("a", ",\"labels\":{\"x\":\"1\"}"));
    put(f, POD("a", ",\"labels\":{\"x\":\"1\",\"y\":\"1\"}"));
    put(f, POD("a", ",\"labels\":{\"x\":\"2\"}"));
    expect(f, "1:added:a@2 1:modified:a@3 1:deleted:a@4 ");
}

static void compacted_revisions_are_gone(void **state)
{
    struct fixture *f = *state;

    put(f, POD("a", ""));
    put(f, POD("b", ""));
    port_mem_compact(f->mem);
    port_watch(f->port, pods(), D, 1, f->sink);
    port_watch(f->port, pods(), D, 2, f->sink);
    put(f, POD("c", ""));
    expect(f, "1:done/Expired 2:added:c@3 ");
}

static void watches_end_bookmark_and_cancel(void **state)
{
    struct fixture *f = *state;

    put(f, POD("a", ""));
    const uint64_t one = port_watch(f->port, pods(), D, 1, f->sink);
    port_watch(f->port, pods(), D, 1, f->sink);
    port_mem_bookmark(f->mem);
    put(f, POD("b", ""));
    port_cancel(f->port, one);
    port_cancel(f->port, 99);
    port_mem_end_watches(f->mem, HK_EIO);
    put(f, POD("c", ""));
    expect(f, "2:bookmark@1 2:added:b@2 2:done/InternalError ");
}

static void failures_strike_the_nth_call_of_a_verb(void **state)
{
    struct fixture *f = *state;

    port_mem_fail(f->mem, PORT_CREATE, 2, HK_ETIMEOUT);
    port_mem_fail(f->mem, PORT_WATCH, 1, HK_EBUSY);
    port_create(f->port, pods(), D, parse(f, POD("a", "")), f->sink);
    port_get(f->port, pods(), D, HK_STR("a"), f->sink);
    port_create(f->port, pods(), D, parse(f, POD("b", "")), f->sink);
    port_create(f->port, pods(), D, parse(f, POD("c", "")), f->sink);
    port_watch(f->port, pods(), D, 0, f->sink);
    expect(f, "1:done:a@1 2:done:a@1 3:done/Timeout 4:done:c@2 5:done/TooManyRequests ");
    assert_null(port_mem_peek(f->mem, pods(), D, HK_STR("b")));
}

static void calls_are_logged(void **state)
{
    struct fixture *f = *state;
    const struct port_request bind = {.verb = PORT_CREATE,
                                      .kind = pods(),
                                      .ns = D,
                                      .name = HK_STR("a"),
                                      .subresource = "binding",
                                      .body = parse(f, "{}")};

    port_list(f->port, api_kind(API_QUEUE), HK_STR(""), (struct port_sink){0});
    port_submit(f->port, &bind, (struct port_sink){0});
    port_delete(f->port, api_kind(API_NODE), HK_STR(""), HK_STR("n"), (struct port_sink){0});
    assert_string_equal(port_mem_log(f->mem).s, "list queues\n"
                                                "create pods/binding d/a\n"
                                                "delete nodes n\n");
    port_mem_log_clear(f->mem);
    assert_int_equal(port_mem_log(f->mem).n, 0);
    expect(f, "");
}

static void time_is_the_owners(void **state)
{
    struct fixture *f = *state;

    port_mem_set_now(f->mem, (int64_t)(NOW_S + 60) * 1000000000);
    port_create(f->port, pods(), D, parse(f, POD("a", "")), f->sink);
    expect(f, "1:done:a@1 ");
    assert_string_equal(field(f->last, "metadata.creationTimestamp"), "2024-01-02T03:05:05Z");
}

static void on_done_create_b(void *ctx, const struct port_msg *m)
{
    struct fixture *f = ctx;
    port_create(f->port, pods(), D, parse(f, POD("b", "")), f->sink);
}

static void callbacks_may_submit(void **state)
{
    struct fixture *f = *state;

    port_create(f->port, pods(), D, parse(f, POD("a", "")),
                (struct port_sink){on_done_create_b, f});
    expect(f, "2:done:b@2 ");
}

static void undelivered_messages_are_freed_with_the_port(void **state)
{
    struct fixture *f = *state;

    put(f, POD("a", ""));
    port_watch(f->port, pods(), D, 0, f->sink);
    port_list(f->port, pods(), D, f->sink);
    port_get(f->port, pods(), D, HK_STR("z"), f->sink);
    assert_int_equal(f->seen.len, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(outcomes_wait_for_poll),
        TEST(created_objects_get_an_identity),
        TEST(get_list_and_their_failures),
        TEST(long_lists_come_in_pages),
        TEST(stale_updates_conflict),
        TEST(writes_without_change_keep_the_revision),
        TEST(status_is_written_apart),
        TEST(merge_patches_apply),
        TEST(deletes_check_their_preconditions),
        TEST(binding_sets_the_node_once),
        TEST(bound_pods_linger_until_their_node_ends_them),
        TEST(watches_get_changes_in_order),
        TEST(watches_resume_from_a_revision),
        TEST(watches_see_objects_enter_and_leave_their_selection),
        TEST(compacted_revisions_are_gone),
        TEST(watches_end_bookmark_and_cancel),
        TEST(failures_strike_the_nth_call_of_a_verb),
        TEST(calls_are_logged),
        TEST(time_is_the_owners),
        TEST(callbacks_may_submit),
        TEST(undelivered_messages_are_freed_with_the_port),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("api/port_mem", tests, NULL, NULL);
}
