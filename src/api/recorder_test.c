// SPDX-License-Identifier: Apache-2.0
// Which Events the recorder writes and which it only counts, and its limits.
#include "api/recorder.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "api/port_mem.h"

#define START_NS (INT64_C(1704164645) * 1000000000)
#define FIVE_MINUTES_NS (INT64_C(300) * 1000000000)

/* The recorder's limits. */
enum {
    RING_LEN = 4096,
    BACKLOG_MAX = 16384,
    BACKLOG_NORMAL_MAX = 512,
    FLIGHT_MAX = 8,
    MESSAGE_MAX = 1024
};

struct fixture {
    struct hk_clock_manual clock;
    struct port_mem *mem;
    struct port *port;
    struct recorder *r;
    struct hk_buf events;
};

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    hk_clock_manual_init(&f->clock, START_NS);
    f->mem = port_mem_new(START_NS);
    f->port = port_mem_port(f->mem);
    f->r = recorder_new(f->port, &f->clock.clock, HK_STR("tester"));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    recorder_free(f->r);
    recorder_free(NULL);
    port_free(f->port);
    hk_buf_fini(&f->events);
    hk_free(f);
    return 0;
}

static void note_on(struct recorder *r, const char *name, const char *message)
{
    const struct recorder_about about = {
        .kind = api_kind(API_POD), .ns = HK_STR("d"), .name = hk_str(name), .uid = HK_STR("u")};

    recorder_note(r, &about, true, "Odd", hk_str(message));
}

static void note(struct fixture *f, const char *name, const char *message)
{
    note_on(f->r, name, message);
}

/* Notes events about n pods, from "p0" on. */
static void note_many(struct fixture *f, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%u", i);
        note(f, name, "m");
    }
}

static void settle(struct fixture *f)
{
    while (port_poll(f->port, 100) > 0) {
    }
    assert_int_equal(recorder_len(f->r), 0);
}

static void move_clock(struct fixture *f, int64_t ns)
{
    f->clock.now_ns += ns;
}

static void add_event(void *ctx, const struct api_object *o)
{
    struct fixture *f = ctx;

    hk_buf_addf(&f->events, "%.*s %.*s x%lld\n",
                HK_FMT(json_str(json_at(&o->root, "involvedObject.name"), HK_STR("-"))),
                HK_FMT(json_str(json_get(&o->root, "message"), HK_STR("-"))),
                (long long)json_int(json_get(&o->root, "count"), 0));
}

/* "object message xCount" for each event written, in order. */
static const char *events(struct fixture *f)
{
    hk_buf_clear(&f->events);
    hk_buf_adds(&f->events, "");
    port_mem_each(f->mem, api_kind(API_EVENT), add_event, f);
    return f->events.data;
}

static void count_event(void *ctx, const struct api_object *o)
{
    unsigned *n = ctx;

    (*n)++;
}

static unsigned count_events(struct fixture *f)
{
    unsigned n = 0;

    port_mem_each(f->mem, api_kind(API_EVENT), count_event, &n);
    return n;
}

static void keep_event(void *ctx, const struct api_object *o)
{
    const struct api_object **ret = ctx;

    *ret = o;
}

static const struct api_object *last_event(struct fixture *f)
{
    const struct api_object *o = NULL;

    port_mem_each(f->mem, api_kind(API_EVENT), keep_event, &o);
    assert_non_null(o);
    return o;
}

static void assert_field(const struct api_object *o, const char *path, const char *want)
{
    const struct hk_str seen = json_str(json_at(&o->root, path), HK_STR("-"));

    if (!hk_str_eq(seen, hk_str(want))) {
        fail_msg("%s: expected '%s', got '%.*s'", path, want, HK_FMT(seen));
    }
}

static void an_event_names_its_object_and_reason(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *path, *want;
    } cases[] = {
        {"metadata.namespace", "d"},
        {"metadata.name", "a.17a668b730013201"}, /* the start and one, in hex */
        {"involvedObject.apiVersion", "v1"},
        {"involvedObject.kind", "Pod"},
        {"involvedObject.namespace", "d"},
        {"involvedObject.name", "a"},
        {"involvedObject.uid", "u"},
        {"type", "Warning"},
        {"reason", "Odd"},
        {"message", "m"},
        {"source.component", "tester"},
        {"reportingComponent", "tester"},
        {"reportingInstance", ""},
        {"firstTimestamp", "2024-01-02T03:04:05Z"},
        {"lastTimestamp", "2024-01-02T03:04:05Z"},
    };

    note(f, "a", "m");
    settle(f);
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_field(last_event(f), cases[i].path, cases[i].want);
    }
}

static void repeated_events_are_counted(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 3; i++) {
        note(f, "a", "m");
        settle(f);
    }
    move_clock(f, FIVE_MINUTES_NS - 1);
    note(f, "a", "m");
    settle(f);
    assert_string_equal(events(f), "a m x1\n");

    port_mem_log_clear(f->mem);
    move_clock(f, 1);
    note(f, "a", "m");
    settle(f);
    assert_string_equal(events(f), "a m x5\n");
    assert_true(hk_str_starts(port_mem_log(f->mem), "patch events d/a."));
    assert_field(last_event(f), "firstTimestamp", "2024-01-02T03:04:05Z");
    assert_field(last_event(f), "lastTimestamp", "2024-01-02T03:09:05Z");

    note(f, "a", "m"); /* the five minutes start again */
    settle(f);
    assert_string_equal(events(f), "a m x5\n");
}

static void counting_needs_no_memory(void **state)
{
    struct fixture *f = *state;

    note(f, "a", "m");
    settle(f);
    const uint64_t calls = hk_alloc_calls();
    for (int i = 0; i < 100; i++) {
        note(f, "a", "m");
    }
    assert_int_equal(hk_alloc_calls() - calls, 0);
}

static void different_events_are_not_merged(void **state)
{
    struct fixture *f = *state;
    struct recorder_about about = {
        .kind = api_kind(API_POD), .ns = HK_STR("d"), .name = HK_STR("a"), .uid = HK_STR("u")};

    recorder_note(f->r, &about, true, "Odd", HK_STR("m"));
    recorder_note(f->r, &about, true, "Odd", HK_STR("another"));
    recorder_note(f->r, &about, true, "Even", HK_STR("m"));
    recorder_note(f->r, &about, false, "Odd", HK_STR("m"));
    about.uid = HK_STR("v");
    recorder_note(f->r, &about, true, "Odd", HK_STR("m"));
    about.ns = HK_STR("e");
    recorder_note(f->r, &about, true, "Odd", HK_STR("m"));
    about.kind = api_kind(API_PODGROUP);
    recorder_note(f->r, &about, true, "Odd", HK_STR("m"));
    settle(f);
    assert_int_equal(count_events(f), 7);
}

static void the_ring_forgets(void **state)
{
    struct fixture *f = *state;

    note(f, "a", "m");
    note_many(f, RING_LEN - 1);
    settle(f);
    note(f, "a", "m");
    settle(f);
    assert_int_equal(count_events(f), RING_LEN); /* it was the oldest, and still in the ring */

    note(f, "b", "m");
    note(f, "a", "m");
    settle(f);
    assert_int_equal(count_events(f), RING_LEN + 2);
}

static void few_are_under_way(void **state)
{
    struct fixture *f = *state;

    note_many(f, FLIGHT_MAX + 8);
    assert_int_equal(recorder_len(f->r), FLIGHT_MAX + 8);
    assert_int_equal(count_events(f), FLIGHT_MAX);
    assert_int_equal(port_poll(f->port, 1), 1); /* each answer starts one more write */
    assert_int_equal(count_events(f), FLIGHT_MAX + 1);
    settle(f);
    assert_int_equal(count_events(f), FLIGHT_MAX + 8);
}

static void the_backlog_is_bounded(void **state)
{
    struct fixture *f = *state;

    note_many(f, FLIGHT_MAX + BACKLOG_MAX);
    assert_int_equal(recorder_len(f->r), FLIGHT_MAX + BACKLOG_MAX);
    note(f, "late", "m");
    assert_int_equal(recorder_len(f->r), FLIGHT_MAX + BACKLOG_MAX);
    settle(f);
    note(f, "late", "m"); /* the ring does not contain it */
    settle(f);
    assert_non_null(strstr(events(f), "late m x1\n"));
}

static void good_news_is_dropped_sooner(void **state)
{
    struct fixture *f = *state;
    const struct recorder_about about = {api_kind(API_POD), HK_STR("d"), HK_STR("late"),
                                         HK_STR("")};

    note_many(f, FLIGHT_MAX + BACKLOG_NORMAL_MAX);
    recorder_note(f->r, &about, false, "Fine", HK_STR("m"));
    assert_int_equal(recorder_len(f->r), FLIGHT_MAX + BACKLOG_NORMAL_MAX);
    recorder_note(f->r, &about, true, "Bad", HK_STR("m"));
    assert_int_equal(recorder_len(f->r), FLIGHT_MAX + BACKLOG_NORMAL_MAX + 1);
    settle(f);
}

static void after_a_failed_write_the_next_event_is_new(void **state)
{
    struct fixture *f = *state;

    port_mem_fail(f->mem, PORT_CREATE, 1, HK_EIO);
    note(f, "a", "m");
    settle(f);
    assert_string_equal(events(f), "");
    note(f, "a", "m");
    settle(f);
    assert_string_equal(events(f), "a m x1\n");

    port_mem_fail(f->mem, PORT_PATCH, 1, HK_ENOTFOUND);
    move_clock(f, FIVE_MINUTES_NS);
    note(f, "a", "m");
    settle(f);
    assert_string_equal(events(f), "a m x1\n");
    note(f, "a", "m");
    settle(f);
    assert_string_equal(events(f), "a m x1\na m x1\n");
}

static void long_messages_are_cut_between_characters(void **state)
{
    struct fixture *f = *state;
    static const struct {
        size_t ascii; /* before a character of two bytes and more text */
        size_t want;
    } cases[] = {
        {MESSAGE_MAX - 2, MESSAGE_MAX},
        {MESSAGE_MAX - 1, MESSAGE_MAX - 1},
        {MESSAGE_MAX, MESSAGE_MAX},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        char text[MESSAGE_MAX + 16];
        memset(text, 'x', cases[i].ascii);
        snprintf(text + cases[i].ascii, sizeof(text) - cases[i].ascii, "\xc3\xa9 more");
        note(f, "a", text);
        settle(f);
        const struct hk_str seen = json_str(json_get(&last_event(f)->root, "message"), HK_STR(""));
        assert_int_equal(seen.n, cases[i].want);
        assert_memory_equal(seen.s, text, seen.n);
    }
}

static void cluster_scoped_objects_go_to_default(void **state)
{
    struct fixture *f = *state;
    const struct recorder_about about = {.kind = api_kind(API_QUEUE), .name = HK_STR("q")};

    recorder_note(f->r, &about, false, "Odd", HK_STR("m"));
    settle(f);
    assert_field(last_event(f), "metadata.namespace", "default");
    assert_field(last_event(f), "involvedObject.name", "q");
    assert_field(last_event(f), "involvedObject.apiVersion", "scheduling.volcano.sh/v1beta1");
    assert_null(json_at(&last_event(f)->root, "involvedObject.namespace"));
    assert_null(json_at(&last_event(f)->root, "involvedObject.uid"));

    move_clock(f, FIVE_MINUTES_NS);
    recorder_note(f->r, &about, false, "Odd", HK_STR("m"));
    settle(f);
    assert_string_equal(events(f), "q m x2\n");
}

/* ---- a port that answers on request ---- */

struct slow_port {
    struct port port;
    struct port_sink sink;
    uint64_t calls;
    unsigned cancelled;
};

static uint64_t slow_submit(struct port *p, const struct port_request *req, struct port_sink sink)
{
    struct slow_port *s = (struct slow_port *)p;

    s->sink = sink;
    return ++s->calls;
}

static void slow_cancel(struct port *p, uint64_t call)
{
    ((struct slow_port *)p)->cancelled++;
}

static void slow_answer(struct slow_port *s, uint64_t call)
{
    s->sink.on_msg(s->sink.ctx, &(struct port_msg){.type = PORT_DONE, .call = call});
}

static void second_answers_are_ignored(void **state)
{
    struct fixture *f = *state;
    static const struct port_ops ops = {
        .name = "slow", .submit = slow_submit, .cancel = slow_cancel};
    struct slow_port s = {.port.ops = &ops};
    struct recorder *r = recorder_new(&s.port, &f->clock.clock, HK_STR("tester"));

    note_on(r, "a", "m");
    note_on(r, "b", "m");
    assert_int_equal(recorder_len(r), 2);
    slow_answer(&s, 1);
    slow_answer(&s, 1);
    assert_int_equal(recorder_len(r), 1);
    note_on(r, "c", "m"); /* uses the slot of the first, but ignores its answers */
    slow_answer(&s, 1);
    assert_int_equal(recorder_len(r), 2);
    recorder_free(r);
    assert_int_equal(s.cancelled, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_event_names_its_object_and_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(repeated_events_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(counting_needs_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(different_events_are_not_merged, setup, teardown),
        cmocka_unit_test_setup_teardown(the_ring_forgets, setup, teardown),
        cmocka_unit_test_setup_teardown(few_are_under_way, setup, teardown),
        cmocka_unit_test_setup_teardown(the_backlog_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(good_news_is_dropped_sooner, setup, teardown),
        cmocka_unit_test_setup_teardown(after_a_failed_write_the_next_event_is_new, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(long_messages_are_cut_between_characters, setup, teardown),
        cmocka_unit_test_setup_teardown(cluster_scoped_objects_go_to_default, setup, teardown),
        cmocka_unit_test_setup_teardown(second_answers_are_ignored, setup, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("api/recorder", tests, NULL, NULL);
}
