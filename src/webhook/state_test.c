// SPDX-License-Identifier: Apache-2.0
// What the rules see of the cluster as it changes, mainly the children of queues.
#include "webhook/state.h"

#include "api/port_mem.h"
#include "base/clock.h"
#include "codec/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct rig {
    struct hk_clock_manual clock;
    struct port_mem *mem;
    struct webhook_state *state;
    struct hk_arena arena;
};

static int begin(void **state)
{
    struct rig *r = hk_zalloc(sizeof(*r));

    hk_clock_manual_init(&r->clock, 0);
    r->mem = port_mem_new(0);
    r->state = webhook_state_new(&(struct webhook_state_opts){.port = port_mem_port(r->mem),
                                                              .clock = &r->clock.clock,
                                                              .queues = true,
                                                              .namespaces = true});
    *state = r;
    return 0;
}

static int end(void **state)
{
    struct rig *r = *state;

    webhook_state_free(r->state);
    port_free(port_mem_port(r->mem));
    hk_arena_fini(&r->arena);
    hk_free(r);
    return 0;
}

/* Handles all waiting messages. */
static void pump(struct rig *r)
{
    do {
        r->clock.now_ns += (int64_t)60 * 1000000000;
        (void)webhook_state_tick(r->state, r->clock.now_ns);
    } while (port_poll(port_mem_port(r->mem), 100) > 0);
}

static void put(struct rig *r, const char *kind, const char *name, const char *parent)
{
    struct yaml_docs docs = {0};
    struct hk_err err = {0};
    const bool queue = strcmp(kind, "Queue") == 0;
    const char *text = hk_arena_printf(
        &r->arena, "{apiVersion: %s, kind: %s, metadata: {name: %s}, spec: {parent: %s}}",
        queue ? "scheduling.volcano.sh/v1beta1" : "v1", kind, name, parent);

    assert_int_equal(yaml_parse(hk_str(text), 0, &r->arena, &docs, &err), 0);
    if (port_mem_put(r->mem, &docs.at[0], &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static bool add_name(void *arg, const struct json *obj)
{
    hk_buf_addf(arg, "%.*s ", HK_FMT(json_str(json_at(obj, "metadata.name"), HK_STR("?"))));
    return true;
}

static void expect_children(struct rig *r, const char *parent, const char *want)
{
    const struct admission_lookup *l = webhook_state_lookup(r->state);
    HK_AUTO(hk_buf_fini) struct hk_buf got = {0};

    l->each_child(l->ctx, hk_str(parent), add_name, &got);
    if (strcmp(hk_buf_str(&got).s, want) != 0) {
        fail_msg("children of '%s': expected '%s', actual '%s'", parent, want, hk_buf_str(&got).s);
    }
}

static void objects_are_found_by_name(void **state)
{
    struct rig *r = *state;
    const struct admission_lookup *l = webhook_state_lookup(r->state);

    assert_false(webhook_state_synced(r->state));
    put(r, "Queue", "both", "root");
    put(r, "Namespace", "both", "''");
    put(r, "Namespace", "ns", "''");
    pump(r);
    assert_true(webhook_state_synced(r->state));
    assert_non_null(l->get(l->ctx, api_kind(API_QUEUE), HK_STR(""), HK_STR("both")));
    assert_non_null(l->get(l->ctx, api_kind(API_NAMESPACE), HK_STR(""), HK_STR("ns")));
    assert_null(l->get(l->ctx, api_kind(API_QUEUE), HK_STR(""), HK_STR("ns")));
    assert_null(l->get(l->ctx, api_kind(API_POD), HK_STR(""), HK_STR("both")));
    assert_true(port_mem_remove(r->mem, api_kind(API_QUEUE), HK_STR(""), HK_STR("both")));
    pump(r);
    assert_null(l->get(l->ctx, api_kind(API_QUEUE), HK_STR(""), HK_STR("both")));
    assert_non_null(l->get(l->ctx, api_kind(API_NAMESPACE), HK_STR(""), HK_STR("both")));
}

static void children_follow_their_parents(void **state)
{
    struct rig *r = *state;

    put(r, "Queue", "a", "root");
    put(r, "Queue", "b", "root");
    put(r, "Queue", "c", "root");
    put(r, "Queue", "orphan", "''");
    pump(r);
    expect_children(r, "root", "c b a ");
    expect_children(r, "", "");
    expect_children(r, "nobody", "");

    put(r, "Queue", "b", "a"); /* from the middle */
    pump(r);
    expect_children(r, "root", "c a ");
    expect_children(r, "a", "b ");

    put(r, "Queue", "c", "a"); /* from the front */
    put(r, "Queue", "b", "''");
    pump(r);
    expect_children(r, "root", "a ");
    expect_children(r, "a", "c ");

    assert_true(port_mem_remove(r->mem, api_kind(API_QUEUE), HK_STR(""), HK_STR("a")));
    pump(r);
    expect_children(r, "root", "");
    expect_children(r, "a", "c ");

    put(r, "Queue", "d", "a"); /* under the deleted a */
    pump(r);
    expect_children(r, "a", "d c ");
}

static void a_new_list_drops_what_is_gone(void **state)
{
    struct rig *r = *state;

    put(r, "Queue", "a", "root");
    put(r, "Queue", "b", "root");
    pump(r);
    assert_true(port_mem_remove(r->mem, api_kind(API_QUEUE), HK_STR(""), HK_STR("b")));
    port_mem_compact(r->mem);
    port_mem_end_watches(r->mem, HK_EGONE);
    pump(r);
    expect_children(r, "root", "a ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(objects_are_found_by_name, begin, end),
        cmocka_unit_test_setup_teardown(children_follow_their_parents, begin, end),
        cmocka_unit_test_setup_teardown(a_new_list_drops_what_is_gone, begin, end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
