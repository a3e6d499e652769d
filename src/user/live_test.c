// SPDX-License-Identifier: Apache-2.0
// Live lists: they hold what the cluster holds, in order, and tell the owner what changed.
#include "user/live.h"

#include "user/rig_test.h"

#define POD(ns, name, phase)                                                                       \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name ", namespace: " ns ", labels: {app: "     \
    "x}}, status: {phase: " phase "}}\n---\n"

/* What the owner was told: "+d/a" or "-d/a". */
static struct hk_buf told;

static void on_changed(void *ctx, struct hk_str ns, struct hk_str name, struct api_object *o)
{
    hk_buf_addf(&told, "%s%.*s/%.*s ", o ? "+" : "-", HK_FMT(ns), HK_FMT(name));
}

static const char *told_so_far(void)
{
    static char text[256];

    snprintf(text, sizeof(text), "%s", told.data ? told.data : "");
    hk_buf_fini(&told);
    return text;
}

static const char *held(const struct live *l)
{
    static char text[256];
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < l->at.len; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s/%.*s ", HK_FMT(l->at.at[i]->ns),
                              HK_FMT(l->at.at[i]->name));
    }
    return text;
}

/* Until no message waits. */
static void turn(struct rig *g, struct live *l)
{
    struct live *const all[] = {l};

    for (int i = 0; i < 4; i++) {
        assert_int_equal(live_turn(&g->user, all, 1, 0, &g->err), 0);
    }
}

static void sync_one(struct rig *g, struct live *l, const struct live_opts *o)
{
    struct live *const all[] = {l};

    live_init(l, &g->user, o);
    assert_int_equal(live_sync(&g->user, all, 1, &g->err), 0);
}

static void a_synced_list_holds_all_objects_in_order(void **state)
{
    struct rig *g = *state;
    HK_AUTO(live_fini) struct live l = {0};

    rig_put(g, POD("e", "a", "Running") POD("d", "b", "Running") POD("d", "a", "Running"));
    sync_one(g, &l, &(struct live_opts){.kind = API_POD, .ns = "", .changed = on_changed});
    assert_string_equal(held(&l), "d/a d/b e/a ");
    assert_string_equal(told_so_far(), "+e/a +d/b +d/a ");
    assert_true(l.dirty);
    assert_non_null(live_find(&l, HK_STR("d"), HK_STR("b")));
    assert_null(live_find(&l, HK_STR("e"), HK_STR("b")));
}

static void changes_arrive_by_the_watch(void **state)
{
    struct rig *g = *state;
    HK_AUTO(live_fini) struct live l = {0};

    rig_put(g, POD("d", "a", "Pending"));
    sync_one(g, &l, &(struct live_opts){.kind = API_POD, .ns = "d", .changed = on_changed});
    turn(g, &l);
    told_so_far();
    l.dirty = false;

    rig_put(g, POD("d", "a", "Running") POD("d", "b", "Pending") POD("e", "c", "Pending"));
    rig_remove(g, API_POD, "b");
    turn(g, &l);
    assert_string_equal(told_so_far(), "+d/a +d/b -d/b ");
    assert_string_equal(held(&l), "d/a ");
    assert_true(l.dirty);
    const struct api_object *a = live_find(&l, HK_STR("d"), HK_STR("a"));
    assert_true(hk_str_is(json_str_at(&a->root, "status.phase"), "Running"));
}

static void selectors_bound_the_list(void **state)
{
    struct rig *g = *state;
    HK_AUTO(live_fini) struct live one = {0}, none = {0};

    rig_put(g, POD("d", "a", "Running") POD("d", "b", "Running"));
    sync_one(g, &one, &(struct live_opts){.kind = API_POD, .ns = "d", .field = "metadata.name=b"});
    sync_one(g, &none, &(struct live_opts){.kind = API_POD, .ns = "d", .label = "app=y"});
    assert_string_equal(held(&one), "d/b ");
    assert_string_equal(held(&none), "");
}

static void removals_between_two_watches_are_noticed(void **state)
{
    struct rig *g = *state;
    HK_AUTO(live_fini) struct live l = {0};

    rig_put(g, POD("d", "a", "Running") POD("d", "b", "Running"));
    sync_one(g, &l, &(struct live_opts){.kind = API_POD, .ns = "d", .changed = on_changed});
    turn(g, &l);
    told_so_far();

    rig_remove(g, API_POD, "a"); /* the event is forgotten before it is delivered */
    port_mem_compact(g->mem);
    port_mem_end_watches(g->mem, HK_EGONE);
    turn(g, &l);
    assert_string_equal(held(&l), "d/b ");
}

static void interrupt(struct rig *g)
{
    g->user.interrupted = true;
}

static void an_interrupt_ends_the_wait_for_the_first_list(void **state)
{
    struct rig *g = *state;
    HK_AUTO(live_fini) struct live l = {0};
    struct live *const all[] = {&l};

    port_mem_fail(g->mem, PORT_LIST, 1, HK_EIO); /* the next attempt comes after a pause */
    rig_later(g, 5, interrupt);
    live_init(&l, &g->user, &(struct live_opts){.kind = API_POD, .ns = "d"});
    assert_int_equal(live_sync(&g->user, all, 1, &g->err), 0);
    assert_false(l.feed.synced);
}

static void a_server_that_stays_away_is_an_error(void **state)
{
    struct rig *g = *state;
    HK_AUTO(live_fini) struct live l = {0};
    struct live *const all[] = {&l};

    live_init(&l, &g->user, &(struct live_opts){.kind = API_POD, .ns = "d"});
    l.feed.failures = 8;
    assert_int_equal(live_turn(&g->user, all, 1, -1, &g->err), -HK_EIO);
    assert_string_equal(g->err.text, "lost the server: watching pods failed 8 times in a row");
}

static int forget(void **state)
{
    hk_buf_fini(&told);
    return rig_teardown(state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, forget)
    const struct CMUnitTest tests[] = {
        TEST(a_synced_list_holds_all_objects_in_order),
        TEST(changes_arrive_by_the_watch),
        TEST(selectors_bound_the_list),
        TEST(removals_between_two_watches_are_noticed),
        TEST(an_interrupt_ends_the_wait_for_the_first_list),
        TEST(a_server_that_stays_away_is_an_error),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("user/live", tests, NULL, NULL);
}
