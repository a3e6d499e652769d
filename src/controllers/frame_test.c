// SPDX-License-Identifier: Apache-2.0
// The framework of the controllers, tested with a tiny controller: a Queue's weight is the number
// of PodGroups NAME-0, NAME-1, ... that it must own, and a ConfigMap NAME contains that number.
#include "controllers/pass.h"

#include "api/port_mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct owner_digest {
    int64_t weight;
};

static bool owner_digest(const struct json *root, void *digest)
{
    ((struct owner_digest *)digest)->weight = json_int(json_at(root, "spec.weight"), 0);
    return true;
}

static struct hk_str owner_of(const struct json *root)
{
    return json_str(json_at(root, "spec.queue"), HK_STR(""));
}

static bool part_digest(const struct json *root, void *digest)
{
    return false;
}

static const struct mirror_type owners = {
    .kind = API_QUEUE,
    .required = true,
    .digest_size = sizeof(struct owner_digest),
    .digest = owner_digest,
};
static const struct mirror_type parts = {
    .kind = API_PODGROUP, .required = true, .digest = part_digest, .index = {owner_of}};

struct toy {
    struct ensured memo;
    uint32_t passes, errors;
    int last_rc;
};

static void owner_changed(struct ctl *c, const struct mirror_change *ch)
{
    ctl_add(c, HK_STR(""), mirror_name(ch->mirror, ch->row));
}

static void part_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct json *queue = ch->root ? json_at(ch->root, "spec.queue") : NULL;

    ctl_add(c, HK_STR(""), json_str(queue, HK_STR("q")));
}

static const struct ctl_watch watches[] = {{&owners, owner_changed}, {&parts, part_changed}, {0}};

static void make_map(void *ctx, struct hk_arena *a, struct json *body)
{
    struct json *data = json_set_object(body, a, "data");

    json_set_cstr(data, a, "n", hk_arena_printf(a, "%d", *(int *)ctx));
}

static bool correct_map(void *ctx, struct hk_arena *a, struct json *obj)
{
    char *want = hk_arena_printf(a, "%d", *(int *)ctx);

    if (hk_str_is(json_str(json_at(obj, "data.n"), HK_STR("")), want)) {
        return false;
    }
    make_map(ctx, a, obj);
    return true;
}

/* The duration of a pass, on the rig's clock. */
static int64_t toy_cost_ns;
static struct hk_clock_manual *toy_clock;

static void toy_reconcile(struct ctl *c, struct pass *t)
{
    struct toy *toy = c->state;
    struct mirror *qs = ctl_mirror(c, API_QUEUE), *pgs = ctl_mirror(c, API_PODGROUP);
    const uint32_t q = mirror_find(qs, HK_STR(""), t->name);
    const struct owner_digest *d;
    int want;

    toy->passes++;
    toy_clock->now_ns += toy_cost_ns;
    toy->errors += t->nerror;
    toy->last_rc = t->nerror > 0 ? t->errors[0].rc : toy->last_rc;
    if (q == HK_NONE) {
        return;
    }
    d = mirror_digest(qs, q);
    want = (int)d->weight;
    if (!pass_ensure(t, &toy->memo,
                     &(struct ensure){.kind = api_kind(API_CONFIGMAP),
                                      .ns = HK_STR("d"),
                                      .name = t->name,
                                      .want = (uint64_t)want + 1,
                                      .make = make_map,
                                      .correct = correct_map,
                                      .ctx = &want})) {
        return;
    }
    for (int64_t i = 0; i < want; i++) {
        const struct hk_str name =
            hk_str(hk_arena_printf(t->mem, "%.*s-%d", HK_FMT(t->name), (int)i));
        struct json body;
        char *text;

        if (mirror_find(pgs, HK_STR("d"), name) != HK_NONE) {
            continue;
        }
        text = hk_arena_printf(t->mem,
                               "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":"
                               "\"PodGroup\",\"metadata\":{\"namespace\":\"d\",\"name\":\"%.*s\"},"
                               "\"spec\":{\"queue\":\"%.*s\"}}",
                               HK_FMT(name), HK_FMT(t->name));
        assert_int_equal(json_parse(hk_str(text), 0, t->mem, &body, NULL), 0);
        pass_create(t, api_kind(API_PODGROUP), &body);
    }
    for (uint32_t r = mirror_first(pgs, 0, t->name); r != HK_NONE; r = mirror_next(pgs, 0, r)) {
        const struct hk_str name = mirror_name(pgs, r);
        int64_t i;

        if (hk_str_int((struct hk_str){name.s + t->name.n + 1, name.n - t->name.n - 1}, &i) &&
            i >= want) {
            pass_delete(t, api_kind(API_PODGROUP), HK_STR("d"), name, mirror_uid(pgs, r),
                        PORT_PROPAGATE_DEFAULT);
        }
    }
}

static void toy_close(struct ctl *c)
{
    ensured_fini(&((struct toy *)c->state)->memo);
}

static const struct ctl_type toy_type = {.name = "toy",
                                         .watches = watches,
                                         .state_size = sizeof(struct toy),
                                         .reconcile = toy_reconcile,
                                         .close = toy_close};

/* ---- the rig ---- */

struct rig {
    struct port_mem *mem;
    struct hk_clock_manual clock;
    struct manager *m;
};

static void rig_manager(struct rig *r)
{
    static const struct ctl_type *const types[] = {&toy_type};

    r->m = manager_new(&(struct manager_opts){
        .port = port_mem_port(r->mem), .clock = &r->clock.clock, .types = types, .ntype = 1});
}

static void rig_init(struct rig *r)
{
    hk_clock_manual_init(&r->clock, 1000000000);
    toy_clock = &r->clock;
    toy_cost_ns = 0;
    r->mem = port_mem_new(1000000000);
    rig_manager(r);
}

static void rig_fini(struct rig *r)
{
    manager_free(r->m);
    port_free(port_mem_port(r->mem));
}

/* Runs until nothing is left to do at this time. */
static void settle(struct rig *r)
{
    for (int i = 0; i < 1000; i++) {
        const int64_t next_ns = manager_run(r->m);

        if (next_ns > r->clock.now_ns && manager_idle(r->m) &&
            port_poll(port_mem_port(r->mem), 1) == 0) {
            return;
        }
    }
    fail_msg("never at rest");
}

/* The same, advancing the clock to the timers. */
static void settle_in_time(struct rig *r, int64_t ns)
{
    const int64_t end_ns = r->clock.now_ns + ns;

    for (;;) {
        int64_t next_ns;

        settle(r);
        next_ns = manager_run(r->m);
        if (next_ns > end_ns) {
            return;
        }
        r->clock.now_ns = HK_MAX(next_ns, r->clock.now_ns);
    }
}

static void put_queue(struct rig *r, const char *name, int weight)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct hk_err err = {0};
    struct json doc;
    char *text =
        hk_arena_printf(&a,
                        "{\"apiVersion\":\"scheduling.volcano.sh/v1beta1\",\"kind\":"
                        "\"Queue\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"weight\":%d}}",
                        name, weight);

    assert_int_equal(json_parse(hk_str(text), 0, &a, &doc, &err), 0);
    if (port_mem_put(r->mem, &doc, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static bool has_part(struct rig *r, const char *name)
{
    return port_mem_peek(r->mem, api_kind(API_PODGROUP), HK_STR("d"), hk_str(name)) != NULL;
}

static uint32_t parts_of(struct rig *r, const char *owner)
{
    uint32_t n = 0;
    char name[32];

    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "%s-%d", owner, i);
        n += has_part(r, name);
    }
    return n;
}

/* ---- tests ---- */

static void each_part_is_made_once(void **state)
{
    struct rig r;

    rig_init(&r);
    put_queue(&r, "q", 3);
    settle(&r);
    assert_int_equal(parts_of(&r, "q"), 3);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 4); /* with the ConfigMap */
    assert_int_equal(manager_metrics(r.m)->failures, 0);
    rig_fini(&r);
}

static void more_than_a_pass_may_ask_for_takes_several(void **state)
{
    struct rig r;

    rig_init(&r);
    put_queue(&r, "q", 1300);
    settle(&r);
    assert_int_equal(parts_of(&r, "q"), 1300);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 1301);
    rig_fini(&r);
}

static void shrinking_deletes_and_updates_the_map(void **state)
{
    struct rig r;
    const struct api_object *map;

    rig_init(&r);
    put_queue(&r, "q", 3);
    settle(&r);
    put_queue(&r, "q", 1);
    settle(&r);
    assert_int_equal(parts_of(&r, "q"), 1);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_DELETE], 2);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_UPDATE], 1);
    map = port_mem_peek(r.mem, api_kind(API_CONFIGMAP), HK_STR("d"), HK_STR("q"));
    assert_true(hk_str_is(json_str(json_at(&map->root, "data.n"), HK_STR("")), "1"));
    rig_fini(&r);
}

static void a_failed_write_is_repeated_after_a_pause(void **state)
{
    struct rig r;

    rig_init(&r);
    port_mem_fail(r.mem, PORT_CREATE, 2, HK_EBUSY);
    put_queue(&r, "q", 1);
    settle(&r);
    assert_int_equal(parts_of(&r, "q"), 0);
    assert_int_equal(manager_metrics(r.m)->failures, 1);
    settle_in_time(&r, 10000000);
    assert_int_equal(parts_of(&r, "q"), 1);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 3);
    rig_fini(&r);
}

/* Without the pause, each deleted part would cause another attempt. */
static void a_namespace_that_ends_is_left_alone(void **state)
{
    struct rig r;
    uint64_t made;
    char name[8];

    rig_init(&r);
    put_queue(&r, "q", 20);
    settle(&r);
    made = manager_metrics(r.m)->writes[PORT_CREATE];
    port_mem_end_namespace(r.mem, "d");
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "q-%d", i);
        assert_true(port_mem_remove(r.mem, api_kind(API_PODGROUP), HK_STR("d"), hk_str(name)));
        settle_in_time(&r, 100000000);
    }
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE] - made, 1);
    port_mem_end_namespace(r.mem, "");
    settle_in_time(&r, (int64_t)20 * 1000000000);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE] - made, 21);
    assert_int_equal(parts_of(&r, "q"), 20);
    rig_fini(&r);
}

static void a_new_process_finds_the_place_and_writes_nothing(void **state)
{
    struct rig r;

    rig_init(&r);
    put_queue(&r, "q", 3);
    settle(&r);
    manager_free(r.m);
    rig_manager(&r);
    settle(&r);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_CREATE], 0);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_UPDATE], 0);
    assert_int_equal(manager_metrics(r.m)->writes[PORT_DELETE], 0);
    rig_fini(&r);
}

static void objects_deleted_between_watches_are_created_again(void **state)
{
    struct rig r;

    rig_init(&r);
    put_queue(&r, "q", 2);
    settle(&r);
    port_mem_end_watches(r.mem, HK_EIO);
    assert_true(port_mem_remove(r.mem, api_kind(API_PODGROUP), HK_STR("d"), HK_STR("q-0")));
    port_mem_compact(r.mem);
    settle_in_time(&r, (int64_t)10 * 1000000000);
    assert_int_equal(parts_of(&r, "q"), 2);
    rig_fini(&r);
}

static void draining_finishes_calls_in_flight_and_starts_none(void **state)
{
    struct rig r;

    rig_init(&r);
    settle(&r);
    put_queue(&r, "q", 2);
    (void)manager_run(r.m); /* the ConfigMap was requested */
    assert_false(manager_drained(r.m));
    manager_drain(r.m);
    port_mem_log_clear(r.mem);
    for (int i = 0; i < 10; i++) {
        (void)manager_run(r.m);
    }
    assert_true(manager_drained(r.m));
    assert_int_equal(port_mem_log(r.mem).n, 0);
    rig_fini(&r);
}

/* Changes the queue twice per millisecond; returns the number of passes in a second. */
static uint64_t passes_of_a_second(struct rig *r, int64_t cost_ns)
{
    const uint64_t before = manager_metrics(r->m)->passes;
    const int64_t end_ns = r->clock.now_ns + 1000000000;

    toy_cost_ns = cost_ns;
    for (int i = 0; r->clock.now_ns < end_ns; i++) {
        put_queue(r, "q", 1 + i % 2);
        settle(r);
        r->clock.now_ns += 500000;
    }
    toy_cost_ns = 0;
    return manager_metrics(r->m)->passes - before;
}

static void a_key_whose_passes_take_long_gets_a_quarter_of_the_time(void **state)
{
    struct rig r;
    uint64_t n;

    rig_init(&r);
    put_queue(&r, "q", 1);
    settle(&r);
    n = passes_of_a_second(&r, 10000000);
    if (n < 15 || n > 30) {
        fail_msg("%d passes of 10 ms within a second, expected about 25", (int)n);
    }
    assert_true(passes_of_a_second(&r, 100000) > 500);
    put_queue(&r, "q", 7);
    settle_in_time(&r, 1000000000);
    assert_int_equal(parts_of(&r, "q"), 7); /* changes during a rest are not lost */
    rig_fini(&r);
}

/* One call of manager_run ends soon, however many keys wait. */
static void many_long_passes_leave_room_between_them(void **state)
{
    char name[32];
    struct rig r;

    rig_init(&r);
    settle(&r);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "q%d", i);
        put_queue(&r, name, 0);
    }
    toy_cost_ns = 6000000;
    for (uint64_t before = 0; manager_metrics(r.m)->passes < 40;) {
        (void)manager_run(r.m);
        assert_in_range(manager_metrics(r.m)->passes - before, 0, 1);
        before = manager_metrics(r.m)->passes;
    }
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_is_made_once),
        cmocka_unit_test(more_than_a_pass_may_ask_for_takes_several),
        cmocka_unit_test(shrinking_deletes_and_updates_the_map),
        cmocka_unit_test(a_failed_write_is_repeated_after_a_pause),
        cmocka_unit_test(a_namespace_that_ends_is_left_alone),
        cmocka_unit_test(a_new_process_finds_the_place_and_writes_nothing),
        cmocka_unit_test(objects_deleted_between_watches_are_created_again),
        cmocka_unit_test(draining_finishes_calls_in_flight_and_starts_none),
        cmocka_unit_test(a_key_whose_passes_take_long_gets_a_quarter_of_the_time),
        cmocka_unit_test(many_long_passes_leave_room_between_them),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
