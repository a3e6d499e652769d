// SPDX-License-Identifier: Apache-2.0
// Watches: their first events, later changes, and their end.
#include "store/rest_story_test.h"

/* Events of a watch as text: "+a ~a -a !" for added, modified, deleted, bookmark. */
struct log {
    char text[2048];
    uint64_t rv;
    int rc;
    uint32_t cancel_at; /* cancel the watch after this many messages */
    uint32_t n;
    struct port *port;
};

static void on_event(void *ctx, const struct port_msg *m)
{
    struct log *l = ctx;
    static const char *const marks[] = {
        [PORT_DONE] = ".",    [PORT_ADDED] = "+",    [PORT_MODIFIED] = "~",
        [PORT_DELETED] = "-", [PORT_BOOKMARK] = "!",
    };

    rig_add(l->text, sizeof(l->text), "%s%s%.*s%s", l->text[0] != '\0' ? " " : "", marks[m->type],
            m->obj ? (int)m->obj->name.n : 0, m->obj ? m->obj->name.s : "",
            m->initial_end ? "end" : "");
    if (m->type == PORT_DONE) {
        l->rc = m->rc;
    }
    assert_true(m->type == PORT_DONE || m->type == PORT_ADDED || m->rv >= l->rv);
    l->rv = m->rv;
    if (m->obj) {
        assert_int_equal(m->obj->rv, m->rv);
    }
    if (++l->n == l->cancel_at) {
        port_cancel(l->port, m->call);
    }
}

static uint64_t watch(struct rig *g, struct log *l, struct port_request req)
{
    req.verb = PORT_WATCH;
    req.kind = rig_kind(g, "ConfigMap");
    req.ns = NS;
    l->port = g->port;
    const uint64_t call = port_submit(g->port, &req, (struct port_sink){on_event, l});
    rig_settle(g);
    return call;
}

static const struct step some[] = {
    {"ConfigMap", CREATE, "{'metadata':{'name':'a','labels':{'x':'1'}}}", 201},
    {"ConfigMap", CREATE, "{'metadata':{'name':'b'}}", 201},
};

static const struct step changes[] = {
    {"ConfigMap", CREATE, "{'metadata':{'name':'c'}}", 201},
    {"ConfigMap", MERGE("b"), "{'metadata':{'labels':{'x':'1'}}}", 200},
    {"ConfigMap", MERGE("a"), "{'data':{'k':'v'}}", 200},
    {"ConfigMap", MERGE("a"), "{'data':{'k':'v'}}", 200}, /* changes nothing */
    {"ConfigMap", MERGE("a"), "{'metadata':{'labels':{'x':'2'}}}", 200},
    {"ConfigMap", DELETE("b"), NULL, 200},
};

static void test_a_watch_without_a_revision_begins_with_existing_objects(void **state)
{
    struct log l = {0};

    rig_story(*state, some);
    watch(*state, &l, (struct port_request){0});
    assert_string_equal(l.text, "+a +b");
    rig_story(*state, changes);
    assert_string_equal(l.text, "+a +b +c ~b ~a ~a -b");
}

static void test_a_watch_from_a_revision_replays(void **state)
{
    struct rig *g = *state;
    struct log l = {0};

    rig_story(g, some);
    const uint64_t rv = store_rv(g->store);
    rig_story(g, changes);
    watch(g, &l, (struct port_request){.rv = rv});
    assert_string_equal(l.text, "+c ~b ~a ~a -b");
}

static void test_types_are_relative_to_the_selection(void **state)
{
    struct log l = {0};

    rig_story(*state, some);
    watch(*state, &l, (struct port_request){.label_selector = HK_STR("x=1")});
    assert_string_equal(l.text, "+a");
    rig_story(*state, changes);
    assert_string_equal(l.text, "+a +b ~a -a -b");
}

static void test_one_object_is_watched_by_name(void **state)
{
    struct log l = {0};

    rig_story(*state, some);
    watch(*state, &l, (struct port_request){.field_selector = HK_STR("metadata.name=b")});
    rig_story(*state, changes);
    assert_string_equal(l.text, "+b ~b -b");
}

static void test_initial_events_end_with_a_bookmark(void **state)
{
    struct log l = {0};
    struct log skip = {0};

    rig_story(*state, some);
    watch(*state, &l, (struct port_request){.initial = PORT_INITIAL_SEND});
    assert_string_equal(l.text, "+a +b !end");
    watch(*state, &skip, (struct port_request){.initial = PORT_INITIAL_SKIP});
    assert_string_equal(skip.text, "");
    rig_story(*state, changes);
    assert_string_equal(l.text, "+a +b !end +c ~b ~a ~a -b");
    assert_string_equal(skip.text, "+c ~b ~a ~a -b");
}

static void test_bookmarks_come_every_minute_when_asked_for(void **state)
{
    struct rig *g = *state;
    struct log asked = {0};
    struct log not = {0};
    static const struct step other[] = {
        {"Secret", CREATE, "{'metadata':{'name':'s'}}", 201},
    };

    watch(g, &asked, (struct port_request){.bookmarks = true});
    watch(g, &not, (struct port_request){0});
    rig_sleep(g, 59);
    assert_string_equal(asked.text, "");
    rig_story(g, other);
    rig_sleep(g, 1);
    assert_string_equal(asked.text, "!");
    assert_int_equal(asked.rv, store_rv(g->store));
    assert_int_equal(rest_next_ns(g->rest), g->clock.now_ns + 60LL * 1000000000);
    rig_sleep(g, 60);
    assert_string_equal(asked.text, "! !");
    assert_string_equal(not .text, "");
}

static void churn(struct rig *g, int n)
{
    for (int i = 0; i < n; i++) {
        const struct port_request req = {
            .verb = PORT_PATCH,
            .kind = rig_kind(g, "ConfigMap"),
            .ns = NS,
            .name = HK_STR("a"),
            .patch = PORT_PATCH_MERGE,
            .body = rig_json(g, hk_arena_printf(&g->mem, "{'data':{'n':'%d'}}", ++g->count)),
        };
        port_submit(g->port, &req, (struct port_sink){0});
    }
    store_flush(g->store);
}

static void test_a_revision_out_of_history_is_refused(void **state)
{
    struct rig *g = *state;
    struct log l = {0};

    rig_story(g, some);
    const uint64_t rv = store_rv(g->store);
    churn(g, 1200);
    watch(g, &l, (struct port_request){.rv = rv});
    assert_string_equal(l.text, ".");
    assert_int_equal(l.rc, -HK_EGONE);
}

/* Even with many changes in other resources. */
static void test_a_quiet_watch_stays_in_history(void **state)
{
    struct rig *g = *state;
    struct log l = {0};
    static const struct step quiet[] = {
        {"Secret", CREATE, "{'metadata':{'name':'s'}}", 201},
    };
    const struct port_request req = {.verb = PORT_WATCH, .kind = rig_kind(g, "Secret"), .ns = NS};

    rig_story(g, some);
    port_submit(g->port, &req, (struct port_sink){on_event, &l});
    rig_settle(g);
    for (int i = 0; i < 4; i++) {
        churn(g, 400);
        rig_settle(g);
    }
    rig_story(g, quiet);
    assert_string_equal(l.text, "+s");
}

static void test_a_watch_may_end_itself(void **state)
{
    struct log l = {.cancel_at = 2};

    rig_story(*state, some);
    rig_story(*state, changes);
    watch(*state, &l, (struct port_request){.rv = 1});
    const size_t n = strlen(l.text);
    rig_step(*state, &some[1], __func__, 0);
    assert_int_equal(strlen(l.text), n);
    assert_int_equal(l.n, 2);
}

static void wake(void *ctx)
{
    ++*(int *)ctx;
}

/* As the HTTP server reads: at its own speed, with one wakeup for new events. */
static void test_a_pulled_watch_may_fall_behind(void **state)
{
    struct rig *g = *state;
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const struct port_request req = {
        .verb = PORT_WATCH, .kind = rig_kind(g, "ConfigMap"), .ns = NS, .text_only = true};
    struct rest_watch *w = NULL;
    struct port_status status = {0};
    struct port_msg m;
    int woken = 0;

    rig_story(g, some);
    assert_int_equal(rest_watch_open(g->rest, &req, wake, &woken, &mem, &w, &status), 0);
    assert_int_equal(rest_watch_next(w, &m), REST_NEXT_EVENT);
    assert_int_equal(m.type, PORT_ADDED);
    assert_true(hk_str_contains(m.obj->text, "\"name\":\"a\""));
    assert_int_equal(rest_watch_next(w, &m), REST_NEXT_EVENT);
    assert_int_equal(rest_watch_next(w, &m), REST_NEXT_NONE);
    assert_int_equal(woken, 0);
    rig_story(g, changes);
    assert_int_equal(woken, 1);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(rest_watch_next(w, &m), REST_NEXT_EVENT);
    }
    assert_int_equal(m.type, PORT_DELETED);
    assert_int_equal(rest_watch_next(w, &m), REST_NEXT_NONE);
    assert_int_equal(rest_watch_rv(w), store_rv(g->store));
    churn(g, 1);
    rig_settle(g);
    assert_int_equal(woken, 2);
    churn(g, 1200);
    rig_settle(g);
    assert_int_equal(rest_watch_next(w, &m), REST_NEXT_GONE);
    assert_int_equal(m.status->code, 410);
    rest_watch_close(w);

    struct port_request old = req;
    old.rv = 1;
    assert_int_equal(rest_watch_open(g->rest, &old, wake, &woken, &mem, &w, &status), -HK_EGONE);
    assert_string_equal(status.reason, "Expired");
    assert_true(hk_str_starts(hk_str(status.message), "too old resource version: 1 ("));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_watch_without_a_revision_begins_with_existing_objects),
        TEST(a_watch_from_a_revision_replays),
        TEST(types_are_relative_to_the_selection),
        TEST(one_object_is_watched_by_name),
        TEST(initial_events_end_with_a_bookmark),
        TEST(bookmarks_come_every_minute_when_asked_for),
        TEST(a_revision_out_of_history_is_refused),
        TEST(a_quiet_watch_stays_in_history),
        TEST(a_watch_may_end_itself),
        TEST(a_pulled_watch_may_fall_behind),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
