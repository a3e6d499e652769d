// SPDX-License-Identifier: Apache-2.0
// Tests of reading container logs: tail, since, limits, rotation and following.
#include "agent/serve/log.c"

#include "agent/agent_priv.h"
#include "agent/rig_test.h"

#define AT(second, stream, tag, text)                                                              \
    "2026-01-02T10:00:" second ".000000000Z " stream " " tag " " text "\n"

static void write_log(struct rig *r, const char *name, const char *text)
{
    struct hk_err err = {0};
    char path[128];

    snprintf(path, sizeof(path), "%s/pods/u-a/c.%s", r->dir, name);
    assert_int_equal(hk_write_file(path, hk_str(text), &err), 0);
}

static void start(struct rig *r)
{
    rig_init(r);
    rig_pod(r, "a",
            "  containers:\n"
            "  - {name: c, image: i, command: [work]}\n");
}

static struct node_call call_of(const char *pod, const char *query)
{
    return (struct node_call){
        .ns = HK_STR("d"), .pod = hk_str(pod), .sub = HK_STR("log"), .query = hk_str(query)};
}

/* What a reader gets until the stream ends or sleeps, in small pieces; or the error text. */
static const char *answer(struct rig *r, const char *pod, const char *query)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct node_call call = call_of(pod, query);
    struct hk_err err = {0};
    struct pod_log *l;

    if (open_log(&r->agent->serve, &call, &l, &err) < 0) {
        return hk_arena_str(&r->text, hk_str(err.text)).s;
    }
    while (pod_log_fill_stream(l, &out, 10) && !l->asleep) {
    }
    pod_log_on_stream_end(l);
    return hk_arena_str(&r->text, hk_buf_str(&out)).s;
}

static void test_what_is_asked_for_is_shown(void **state)
{
    static const struct {
        const char *query, *want;
    } cases[] = {
        {"", "one\ntwo and a half\n\nfour\n"},
        {"container=c", "one\ntwo and a half\n\nfour\n"},
        {"tailLines=1", "four\n"},
        {"tailLines=3", "two and a half\n\nfour\n"},
        {"tailLines=0", ""},
        {"tailLines=99", "one\ntwo and a half\n\nfour\n"},
        {"limitBytes=6", "one\ntw"},
        {"limitBytes=0", ""},
        {"sinceSeconds=2", "\nfour\n"},
        {"sinceTime=2026-01-02T10%3A00%3A04Z", "four\n"},
        {"timestamps=true&tailLines=3",
         "2026-01-02T10:00:02.000000000Z two and a half\n2026-01-02T10:00:03.000000000Z \n"
         "2026-01-02T10:00:04.000000000Z four\n"},
        {"follow=true&tailLines=1", "four\n"},
        {"tailLines=x", "tailLines: 'x', want a whole number"},
        {"container=z", "container z is not valid for pod a"},
        {"previous=true", "previous terminated container \"c\" in pod \"a\" not found"},
    };
    struct rig r;

    start(&r);
    rig_set_now(&r, RIG_START_NS + 5 * RIG_SECOND_NS);
    write_log(&r, "0.log",
              AT("01", "stdout", "F", "one") AT("02", "stdout", "P", "two and")
                  AT("02", "stdout", "F", " a half") AT("03", "stderr", "F", "")
                      AT("04", "stdout", "F", "four"));
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_string_equal(answer(&r, "a", cases[i].query), cases[i].want);
    }
    assert_string_equal(answer(&r, "b", ""), "pods \"b\" not found on this node");
    rig_fini(&r);
}

static void test_a_full_file_goes_before_the_new_one(void **state)
{
    struct rig r;

    start(&r);
    write_log(&r, "0.log.1", AT("01", "stdout", "F", "one") AT("02", "stdout", "F", "two"));
    write_log(&r, "0.log", AT("03", "stdout", "F", "three"));
    assert_string_equal(answer(&r, "a", ""), "one\ntwo\nthree\n");
    assert_string_equal(answer(&r, "a", "tailLines=2"), "two\nthree\n");
    rig_fini(&r);
}

/* A reader that asks for more than exists learns how much is missing; others see no notice. */
static void test_what_was_rotated_away_is_announced(void **state)
{
#define GONE "hekla: 3 lines (12 bytes) before this were removed by rotation\n"
    static const struct {
        const char *query, *want;
    } cases[] = {
        {"", GONE "one\ntwo\nthree\n"},
        {"tailLines=99", GONE "one\ntwo\nthree\n"},
        {"tailLines=3", GONE "one\ntwo\nthree\n"},
        {"tailLines=2", "two\nthree\n"},
        {"sinceTime=2026-01-02T09:00:00Z", GONE "one\ntwo\nthree\n"},
        {"sinceTime=2026-01-02T10:00:02Z", "two\nthree\n"},
        {"limitBytes=5", "hekla"},
        {"timestamps=true&tailLines=1", "2026-01-02T10:00:03.000000000Z three\n"},
        {"timestamps=true&limitBytes=63",
         "2026-01-02T10:00:01.000000000Z hekla: 3 lines (12 bytes) before"},
    };
    struct rig r;

    start(&r);
    write_log(&r, "0.log.1", AT("01", "stdout", "F", "one") AT("02", "stdout", "F", "two"));
    write_log(&r, "0.log", AT("03", "stdout", "F", "three"));
    write_log(&r, "0.log.lost", "3 12\n");
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_string_equal(answer(&r, "a", cases[i].query), cases[i].want);
    }
    rig_fini(&r);
}

static void test_the_attempt_before_has_a_log_of_its_own(void **state)
{
    struct rig r;

    start(&r);
    write_log(&r, "0.log", AT("01", "stdout", "F", "first"));
    rig_end(&r, "c", 1);
    write_log(&r, "1.log", AT("02", "stdout", "F", "second"));
    assert_string_equal(answer(&r, "a", ""), "second\n");
    assert_string_equal(answer(&r, "a", "previous=true"), "first\n");
    rig_fini(&r);
}

static void test_who_follows_sees_what_comes_until_the_end(void **state)
{
    const struct node_call call = call_of("a", "follow=true");
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_err err = {0};
    struct pod_log *l;
    struct rig r;

    start(&r);
    assert_int_equal(open_log(&r.agent->serve, &call, &l, &err), 0);
    assert_true(pod_log_fill_stream(l, &out, 100));
    assert_true(l->asleep);
    write_log(&r, "0.log", AT("01", "stdout", "F", "one") "2026-01-02T10:00:02Z std");
    assert_true(has_more(l));
    assert_true(pod_log_fill_stream(l, &out, 100));
    assert_string_equal(out.data, "one\n");
    assert_true(l->asleep);
    assert_false(has_more(l));
    rig_end(&r, "c", 0);
    assert_false(may_grow(l));
    assert_false(pod_log_fill_stream(l, &out, 100));
    assert_string_equal(out.data, "one\n");
    pod_log_on_stream_end(l);
    rig_fini(&r);
}

static void rename_log(struct rig *r, const char *from, const char *to)
{
    char a[128], b[128];

    snprintf(a, sizeof(a), "%s/pods/u-a/c.%s", r->dir, from);
    snprintf(b, sizeof(b), "%s/pods/u-a/c.%s", r->dir, to);
    assert_int_equal(rename(a, b), 0);
}

static void append_log(struct rig *r, const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/pods/u-a/c.%s", r->dir, name);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* Output appended right before a rotation, and a file created and rotated between two reads. */
static void test_who_follows_misses_nothing_of_full_files(void **state)
{
    const struct node_call call = call_of("a", "follow=true");
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_err err = {0};
    struct pod_log *l;
    struct rig r;

    start(&r);
    append_log(&r, "0.log", AT("01", "stdout", "F", "one"));
    assert_int_equal(open_log(&r.agent->serve, &call, &l, &err), 0);
    assert_true(read_more(l));
    emit_lines(l, &out);
    assert_false(read_more(l));
    append_log(&r, "0.log", AT("02", "stdout", "F", "two"));
    rename_log(&r, "0.log", "0.log.1");
    append_log(&r, "0.log", AT("03", "stdout", "F", "three"));
    assert_true(next_file(l));
    assert_true(pod_log_fill_stream(l, &out, 100));
    append_log(&r, "0.log", AT("04", "stdout", "F", "four"));
    assert_true(pod_log_fill_stream(l, &out, 1));
    rename_log(&r, "0.log", "0.log.1");
    append_log(&r, "0.log", AT("05", "stdout", "F", "five"));
    rename_log(&r, "0.log", "0.log.1");
    append_log(&r, "0.log", AT("06", "stdout", "F", "six"));
    assert_true(pod_log_fill_stream(l, &out, 100));
    assert_string_equal(out.data, "one\ntwo\nthree\nfour\nfive\nsix\n");
    pod_log_on_stream_end(l);
    rig_fini(&r);
}

/* Two files are rotated away while the reader is at the one before: one is still readable. */
static void test_who_follows_too_slowly_hears_what_is_missing(void **state)
{
    const struct node_call call = call_of("a", "follow=true");
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_err err = {0};
    struct pod_log *l;
    struct rig r;

    start(&r);
    append_log(&r, "0.log", AT("01", "stdout", "F", "one"));
    assert_int_equal(open_log(&r.agent->serve, &call, &l, &err), 0);
    assert_true(pod_log_fill_stream(l, &out, 100));
    rename_log(&r, "0.log", "0.log.1");
    append_log(&r, "0.log", AT("02", "stdout", "F", "two"));
    write_log(&r, "0.log.lost", "1 4\n"); /* "one", which was read */
    rename_log(&r, "0.log", "0.log.1");
    append_log(&r, "0.log", AT("03", "stdout", "F", "three"));
    write_log(&r, "0.log.lost", "2 8\n"); /* and "two", which was not */
    rename_log(&r, "0.log", "0.log.1");
    append_log(&r, "0.log", AT("04", "stdout", "F", "four"));
    assert_true(pod_log_fill_stream(l, &out, 1000));
    assert_string_equal(out.data,
                        "one\nhekla: 1 lines (4 bytes) before this were removed by rotation\n"
                        "three\nfour\n");
    pod_log_on_stream_end(l);
    rig_fini(&r);
}

static void test_what_is_no_log_costs_no_memory(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf junk = {0};
    const struct node_call call = call_of("a", "");
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_err err = {0};
    struct pod_log *l;
    struct rig r;

    start(&r);
    hk_buf_reserve(&junk, 1 << 20);
    memset(junk.data, 'x', 1 << 20);
    junk.len = 1 << 20;
    hk_buf_adds(&junk, "\n" AT("01", "stdout", "F", "one"));
    write_log(&r, "0.log", junk.data);
    assert_int_equal(open_log(&r.agent->serve, &call, &l, &err), 0);
    while (pod_log_fill_stream(l, &out, 10)) {
        assert_in_range(l->carry.len, 0, 2 * RECORD_MAX);
    }
    assert_string_equal(out.data, "one\n");
    pod_log_on_stream_end(l);
    rig_fini(&r);
}

static void test_a_pod_of_many_containers_wants_a_choice(void **state)
{
    struct rig r;

    rig_init(&r);
    rig_pod(&r, "a",
            "  containers:\n"
            "  - {name: c, image: i, command: [work]}\n"
            "  - {name: e, image: i, command: [work]}\n");
    assert_string_equal(answer(&r, "a", ""),
                        "a container name must be specified for pod a, choose one of: [c e]");
    rig_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_asked_for_is_shown),
        cmocka_unit_test(test_a_full_file_goes_before_the_new_one),
        cmocka_unit_test(test_what_was_rotated_away_is_announced),
        cmocka_unit_test(test_the_attempt_before_has_a_log_of_its_own),
        cmocka_unit_test(test_who_follows_sees_what_comes_until_the_end),
        cmocka_unit_test(test_who_follows_misses_nothing_of_full_files),
        cmocka_unit_test(test_who_follows_too_slowly_hears_what_is_missing),
        cmocka_unit_test(test_what_is_no_log_costs_no_memory),
        cmocka_unit_test(test_a_pod_of_many_containers_wants_a_choice),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
