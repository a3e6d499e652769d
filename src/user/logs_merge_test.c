// SPDX-License-Identifier: Apache-2.0
// Existing logs come out in order of time, whatever the order and the pieces in which they arrived.
#include "user/logs_merge.c" /* what arrives, and printing, without a server */

#include "user/rig_test.h"

enum { PODS = 2 };

struct fixture {
    struct rig *rig;
    struct logs_opts o;
    struct merge m;
};

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));
    void *rig;

    rig_setup(&rig);
    f->rig = rig;
    f->o.how.prefix = true;
    rig_put(f->rig, "{apiVersion: v1, kind: Pod, metadata: {name: j-a-0, namespace: d}}\n---\n"
                    "{apiVersion: v1, kind: Pod, metadata: {name: j-a-1, namespace: d}}");
    f->m = (struct merge){.u = &f->rig->user, .o = &f->o, .n = PODS};
    f->m.spool = open_spool(&f->rig->err);
    f->m.sources = hk_zalloc_array(PODS, sizeof(*f->m.sources));
    for (uint32_t i = 0; i < PODS; i++) {
        const char *name = i == 0 ? "j-a-0" : "j-a-1";
        f->m.sources[i] =
            (struct source){.m = &f->m,
                            .pod = (struct api_object *)port_mem_peek(
                                f->rig->mem, api_kind(API_POD), HK_STR("d"), hk_str(name))};
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    void *rig = f->rig;

    merge_fini(&f->m);
    rig_teardown(&rig);
    hk_free(f);
    return 0;
}

/* A time of the morning, in seconds. */
#define AT(second) "2026-01-01T08:00:" second "Z "

static void arrive(struct fixture *f, uint32_t source, const char *bytes)
{
    logs_merge_on_bytes(&f->m.sources[source], hk_str(bytes));
}

static const char *merged(struct fixture *f)
{
    capture_begin(&f->rig->printed);
    const int rc = print_merged(&f->m, HK_STR("j"), &f->rig->err);
    capture_end(&f->rig->printed);
    assert_int_equal(rc, 0);
    return f->rig->printed.out;
}

static void lines_are_in_order_of_time(void **state)
{
    struct fixture *f = *state;

    arrive(f, 0, AT("01") "one\n" AT("04") "four\n");
    arrive(f, 1, AT("02") "two\n" AT("03") "three\n");
    assert_string_equal(merged(f), "[a-0] one\n[a-1] two\n[a-1] three\n[a-0] four\n");
}

static void pieces_of_several_logs_may_alternate(void **state)
{
    struct fixture *f = *state;

    arrive(f, 0, AT("01") "a");
    arrive(f, 1, AT("02") "b");
    arrive(f, 0, "A\n2026-01-01T08:00:0");
    arrive(f, 1, "B\n");
    arrive(f, 0, "3Z last\n");
    assert_int_equal(f->m.sources[0].extents.len, 3);
    assert_string_equal(merged(f), "[a-0] aA\n[a-1] bB\n[a-0] last\n");
}

static void equal_times_are_in_order_of_the_pods(void **state)
{
    struct fixture *f = *state;

    arrive(f, 1, AT("01") "b\n");
    arrive(f, 0, AT("01") "a\n");
    assert_string_equal(merged(f), "[a-0] a\n[a-1] b\n");
}

static void a_line_without_a_time_follows_the_line_before(void **state)
{
    struct fixture *f = *state;

    arrive(f, 0, AT("01") "one\nno time\n");
    arrive(f, 1, AT("02") "two\n");
    assert_string_equal(merged(f), "[a-0] one\n[a-0] no time\n[a-1] two\n");
}

static void a_last_line_may_lack_its_newline(void **state)
{
    struct fixture *f = *state;

    arrive(f, 0, AT("02") "cut");
    arrive(f, 1, AT("01") "whole\n");
    assert_string_equal(merged(f), "[a-1] whole\n[a-0] cut\n");
}

static void an_empty_log_prints_nothing(void **state)
{
    struct fixture *f = *state;

    arrive(f, 1, AT("01") "alone\n");
    assert_string_equal(merged(f), "[a-1] alone\n");
}

static void a_line_may_be_longer_than_a_read(void **state)
{
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};

    hk_buf_adds(&line, AT("01"));
    for (int i = 0; i < READ_BYTES / 8; i++) {
        hk_buf_adds(&line, i == 0 ? "begin..." : "12345678");
    }
    hk_buf_adds(&line, "end\n" AT("02") "next\n");
    f->o.how.prefix = false;
    arrive(f, 0, line.data);
    f->rig->printed.out[0] = '\0';
    capture_begin(&f->rig->printed);
    const int rc = print_merged(&f->m, HK_STR("j"), &f->rig->err);
    const off_t n = lseek(f->rig->printed.files[0], 0, SEEK_END);
    capture_end(&f->rig->printed);
    assert_int_equal(rc, 0);
    assert_int_equal(n, READ_BYTES + strlen("end\nnext\n"));
}

/* ---- failures ---- */

static const struct verb logs = {.name = "logs"};

static void fail_source(struct fixture *f, uint32_t i, const char *why)
{
    f->m.sources[i].rc = hk_fail(&f->m.sources[i].err, HK_EIO, "%s", why);
}

static void an_unreadable_log_is_reported(void **state)
{
    struct fixture *f = *state;

    fail_source(f, 1, "no route");
    capture_begin(&f->rig->printed);
    const int rc = logs_merge_report(&f->m, &logs, &f->rig->err);
    capture_end(&f->rig->printed);
    assert_int_equal(rc, 0);
    assert_string_equal(f->rig->printed.complaints,
                        "hekla: logs: cannot read the log of pod 'j-a-1': no route\n");
}

static void it_is_an_error_if_none_can_be_read(void **state)
{
    struct fixture *f = *state;

    fail_source(f, 0, "no route");
    fail_source(f, 1, "refused");
    capture_begin(&f->rig->printed);
    const int rc = logs_merge_report(&f->m, &logs, &f->rig->err);
    capture_end(&f->rig->printed);
    assert_int_equal(rc, -HK_EIO);
    assert_string_equal(f->rig->printed.complaints,
                        "hekla: logs: cannot read the log of pod 'j-a-0': no route\n");
    assert_string_equal(f->rig->err.text, "cannot read the log of pod 'j-a-1': refused");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(lines_are_in_order_of_time),
        TEST(pieces_of_several_logs_may_alternate),
        TEST(equal_times_are_in_order_of_the_pods),
        TEST(a_line_without_a_time_follows_the_line_before),
        TEST(a_last_line_may_lack_its_newline),
        TEST(an_empty_log_prints_nothing),
        TEST(a_line_may_be_longer_than_a_read),
        TEST(an_unreadable_log_is_reported),
        TEST(it_is_an_error_if_none_can_be_read),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("user/logs_merge", tests, NULL, NULL);
}
