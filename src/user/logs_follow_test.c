// SPDX-License-Identifier: Apache-2.0
// Followed logs: lines wait a moment for older ones of other pods, a reopened stream repeats
// nothing, and following knows when nothing more can come.
#include "user/logs_follow.c" /* streams without a server */

#include "user/rig_test.h"

struct fixture {
    struct rig *rig;
    struct logs_opts o;
    struct logs_target t;
    struct follow f;
    struct source s[2];
};

static int setup(void **state)
{
    struct fixture *x = hk_zalloc(sizeof(*x));
    void *rig;

    rig_setup(&rig);
    x->rig = rig;
    x->o = (struct logs_opts)LOGS_OPTS_DEFAULT;
    x->o.how.prefix = true;
    x->t = (struct logs_target){.ns = HK_STR("d"), .job = HK_STR("j"), .pod = HK_STR("")};
    x->f = (struct follow){.u = &x->rig->user, .o = &x->o, .t = &x->t, .open = 2};
    x->s[0] =
        (struct source){.f = &x->f, .pod = hk_strdup("j-a-0"), .uid = hk_strdup("u0"), .call = 1};
    x->s[1] = (struct source){
        .f = &x->f, .pod = hk_strdup("j-a-1"), .uid = hk_strdup("u1"), .call = 2, .rank = 1};
    hk_vec_push(&x->f.sources, &x->s[0]);
    hk_vec_push(&x->f.sources, &x->s[1]);
    *state = x;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    void *rig = x->rig;

    for (uint32_t i = 0; i < x->f.waiting.len; i++) {
        hk_free(x->f.waiting.at[i].text);
    }
    hk_vec_fini(&x->f.waiting);
    hk_vec_fini(&x->f.sources);
    for (size_t i = 0; i < HK_LEN(x->s); i++) {
        hk_buf_fini(&x->s[i].carry);
        hk_free(x->s[i].pod);
        hk_free(x->s[i].uid);
    }
    rig_teardown(&rig);
    hk_free(x);
    return 0;
}

#define AT(second) "2026-01-01T08:00:" second "Z "

static void arrive(struct source *s, const char *bytes)
{
    logs_follow_on_bytes(s, hk_str(bytes));
}

static void end_stream(struct source *s, int rc)
{
    const struct hk_err err = {.code = rc < 0 ? (enum hk_code) - rc : 0};

    logs_follow_on_done(s, &(struct port_msg){.type = PORT_DONE, .rc = rc, .err = &err});
}

/* The stream is open again, as logs_follow_open_source leaves it. */
static void reopen(struct source *s)
{
    s->again_ns = 0;
    s->known_ns = s->last_ns;
    s->known = s->same;
}

static const char *printed(struct fixture *x)
{
    capture_begin(&x->rig->printed);
    const int rc = logs_follow_flush(&x->f, &x->rig->err);
    capture_end(&x->rig->printed);
    assert_int_equal(rc, 0);
    return x->rig->printed.out;
}

/* ---- order ---- */

static void lines_wait_for_older_ones_of_other_pods(void **state)
{
    struct fixture *x = *state;

    arrive(&x->s[1], AT("02") "second\n");
    assert_false(is_time(&x->f));
    arrive(&x->s[0], AT("01") "first\n" AT("03") "third\n");
    assert_string_equal(printed(x), "[a-0] first\n[a-1] second\n[a-0] third\n");
    assert_string_equal(printed(x), ""); /* once */
}

static void equal_times_keep_the_order_of_arrival(void **state)
{
    struct fixture *x = *state;

    arrive(&x->s[1], AT("01") "b1\n" AT("01") "b2\n");
    arrive(&x->s[0], AT("01") "a\n");
    assert_string_equal(printed(x), "[a-1] b1\n[a-1] b2\n[a-0] a\n");
}

static void a_line_waits_for_its_end(void **state)
{
    struct fixture *x = *state;

    arrive(&x->s[0], AT("01") "ha");
    assert_string_equal(printed(x), "");
    arrive(&x->s[0], "lf\n");
    assert_string_equal(printed(x), "[a-0] half\n");
}

static void much_output_does_not_wait(void **state)
{
    struct fixture *x = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};

    hk_buf_adds(&line, AT("01"));
    while (line.len < AT_MOST) {
        hk_buf_adds(&line, "0123456789abcdef");
    }
    hk_buf_addc(&line, '\n');
    assert_false(is_time(&x->f));
    arrive(&x->s[0], line.data);
    assert_true(is_time(&x->f));
}

/* ---- streams that end ---- */

static void a_stream_that_ends_prints_its_unfinished_line(void **state)
{
    struct fixture *x = *state;

    arrive(&x->s[0], AT("01") "no newline");
    end_stream(&x->s[0], 0);
    assert_string_equal(printed(x), "[a-0] no newline\n");
    assert_int_equal(x->f.open, 1);
    assert_int_equal(x->s[0].again_ns, 0);
}

static void a_refused_stream_is_over(void **state)
{
    struct fixture *x = *state;

    end_stream(&x->s[0], -HK_ENOTFOUND);
    assert_int_equal(x->f.open, 1);
    assert_int_equal(x->s[0].again_ns, 0);
}

static void a_broken_stream_is_opened_again_after_a_pause(void **state)
{
    struct fixture *x = *state;

    arrive(&x->s[0], AT("01") "one\n" AT("02") "unfini");
    end_stream(&x->s[0], -HK_EIO);
    assert_int_equal(x->f.open, 2); /* more may come */
    assert_true(x->s[0].again_ns > logs_follow_now(&x->f));
    assert_string_equal(printed(x), "[a-0] one\n"); /* the server sends the rest again */
}

static void a_reopened_stream_repeats_nothing(void **state)
{
    struct fixture *x = *state;

    arrive(&x->s[0], AT("01") "one\n" AT("02") "two\n" AT("02") "two again\n");
    assert_string_equal(printed(x), "[a-0] one\n[a-0] two\n[a-0] two again\n");
    end_stream(&x->s[0], -HK_EIO);
    reopen(&x->s[0]);
    arrive(&x->s[0], AT("01") "one\n" AT("02") "two\n" AT("02") "two again\n" AT("02") "new\n" AT(
                         "03") "three\n");
    assert_string_equal(printed(x), "[a-0] new\n[a-0] three\n");
}

/* ---- what is followed ---- */

static void a_restart_of_a_known_container_is_new(void **state)
{
    struct fixture *x = *state;

    x->s[0].starts = 1;
    assert_true(logs_follow_is_known(&x->f, HK_STR("u0"), 0));
    assert_true(logs_follow_is_known(&x->f, HK_STR("u0"), 1));
    assert_false(logs_follow_is_known(&x->f, HK_STR("u0"), 2));
    assert_false(logs_follow_is_known(&x->f, HK_STR("u9"), 0)); /* a pod with the same name */
}

static void a_restarted_pod_keeps_its_colour(void **state)
{
    struct fixture *x = *state;

    x->f.nranks = 2;
    assert_int_equal(logs_follow_rank_of(&x->f, HK_STR("j-a-1")), 1);
    assert_int_equal(logs_follow_rank_of(&x->f, HK_STR("j-a-2")), 2);
}

static const struct {
    const char *job;
    bool over;
} ends[] = {
    {"{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j, namespace: d}, "
     "status: {state: {phase: Running}}}",
     false},
    {"{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j, namespace: d}, "
     "status: {state: {phase: Completed}}}",
     true},
    {NULL, true}, /* deleted */
};

static void following_ends_with_the_job(void **state)
{
    struct fixture *x = *state;

    for (size_t i = 0; i < HK_LEN(ends); i++) {
        struct live *const all[] = {&x->f.jobs};
        if (ends[i].job) {
            rig_put(x->rig, ends[i].job);
        } else {
            rig_remove(x->rig, API_JOB, "j");
        }
        live_init(&x->f.jobs, &x->rig->user, &(struct live_opts){.kind = API_JOB, .ns = "d"});
        assert_false(logs_follow_is_over(&x->f)); /* not listed yet */
        assert_int_equal(live_sync(&x->rig->user, all, 1, &x->rig->err), 0);
        assert_int_equal(logs_follow_is_over(&x->f), ends[i].over);
        live_fini(&x->f.jobs);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(lines_wait_for_older_ones_of_other_pods),
        TEST(equal_times_keep_the_order_of_arrival),
        TEST(a_line_waits_for_its_end),
        TEST(much_output_does_not_wait),
        TEST(a_stream_that_ends_prints_its_unfinished_line),
        TEST(a_refused_stream_is_over),
        TEST(a_broken_stream_is_opened_again_after_a_pause),
        TEST(a_reopened_stream_repeats_nothing),
        TEST(a_restart_of_a_known_container_is_new),
        TEST(a_restarted_pod_keeps_its_colour),
        TEST(following_ends_with_the_job),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("user/logs_follow", tests, NULL, NULL);
}
