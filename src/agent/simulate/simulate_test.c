// SPDX-License-Identifier: Apache-2.0
// Simulated containers: when and how they end, and in which order the ends are reported.
#include "agent/simulate/simulate.h"

#include "base/vec.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SEC ((int64_t)1000000000)
#define BEGIN (1000 * SEC)

struct ended {
    uint64_t id;
    struct runtime_end end;
    char message[64];
};

struct rig {
    struct hk_clock_manual clock;
    struct hk_rand rand;
    struct runtime *r;
    struct simulate_fate fate; /* outcome of the next container */
    char asked[64];            /* the container it was requested for */
    HK_VEC(struct ended) ends;
};

static void on_end(void *ctx, uint64_t container, const struct runtime_end *end)
{
    struct rig *rig = ctx;
    struct ended e = {.id = container, .end = *end};

    snprintf(e.message, sizeof(e.message), "%s", end->message);
    hk_vec_push(&rig->ends, e);
}

static void fate_of(void *ctx, struct hk_rand *rand, const struct runtime_pod *pod,
                    const struct runtime_container *c, struct simulate_fate *ret)
{
    struct rig *rig = ctx;

    assert_ptr_equal(rand, &rig->rand);
    snprintf(rig->asked, sizeof(rig->asked), "%s/%s/%s.%u", pod->ns, pod->name, c->name,
             c->attempt);
    *ret = rig->fate;
}

static int rig_setup(void **state)
{
    struct rig *rig = hk_zalloc(sizeof(*rig));
    const struct simulate_opts o = {
        .clock = &rig->clock.clock,
        .rand = &rig->rand,
        .sink = {.on_end = on_end, .ctx = rig},
        .fate = fate_of,
        .ctx = rig,
    };

    hk_clock_manual_init(&rig->clock, BEGIN);
    hk_rand_seed(&rig->rand, 1);
    rig->r = simulate_runtime_new(&o);
    *state = rig;
    return 0;
}

static int rig_teardown(void **state)
{
    struct rig *rig = *state;

    rig->r->ops->free(rig->r);
    hk_vec_fini(&rig->ends);
    hk_free(rig);
    return 0;
}

static void pod_start(struct rig *rig, const char *uid)
{
    const struct runtime_pod pod = {.uid = uid, .ns = "default", .name = "p"};
    struct hk_err err = {0};

    assert_int_equal(rig->r->ops->pod_start(rig->r, &pod, &err), 0);
}

static uint64_t start(struct rig *rig, const char *uid, const char *name, struct simulate_fate fate)
{
    const struct runtime_container c = {.pod_uid = uid, .name = name};
    struct hk_err err = {0};
    uint64_t id = 0;

    rig->fate = fate;
    assert_int_equal(rig->r->ops->start(rig->r, &c, &id, &err), 0);
    return id;
}

static void count_pod(void *ctx, const char *uid)
{
    ++*(int *)ctx;
}

static int pods(struct rig *rig)
{
    int n = 0;

    rig->r->ops->each_pod(rig->r, count_pod, &n);
    return n;
}

static void test_containers_end_in_order_of_time(void **state)
{
    static const int64_t durations_s[] = {5, 1, 3, 1};
    static const size_t order[] = {1, 3, 2, 0};
    struct rig *rig = *state;
    uint64_t ids[HK_LEN(durations_s)];

    pod_start(rig, "u1");
    for (size_t k = 0; k < HK_LEN(ids); k++) {
        ids[k] = start(rig, "u1", "c",
                       (struct simulate_fate){.duration_ns = durations_s[k] * SEC, .code = (int)k});
    }
    assert_string_equal(rig->asked, "default/p/c.0");
    assert_int_equal(simulate_run(rig->r), BEGIN + SEC);
    assert_int_equal(rig->ends.len, 0);
    rig->clock.now_ns = BEGIN + SEC;
    assert_int_equal(simulate_run(rig->r), BEGIN + 3 * SEC);
    assert_int_equal(rig->ends.len, 2);
    rig->clock.now_ns = BEGIN + 10 * SEC;
    assert_int_equal(simulate_run(rig->r), INT64_MAX);
    assert_int_equal(rig->ends.len, HK_LEN(ids));
    for (size_t k = 0; k < HK_LEN(ids); k++) {
        const struct runtime_end *end = &rig->ends.at[k].end;
        assert_int_equal(rig->ends.at[k].id, ids[order[k]]);
        assert_int_equal(end->code, order[k]);
        assert_int_equal(end->end_ns - end->start_ns, durations_s[order[k]] * SEC);
    }
}

static void test_what_never_ran_says_why(void **state)
{
    struct rig *rig = *state;

    pod_start(rig, "u1");
    start(rig, "u1", "c", (struct simulate_fate){.never_ran = "no such image"});
    simulate_run(rig->r);
    assert_int_equal(rig->ends.len, 1);
    assert_true(rig->ends.at[0].end.never_ran);
    assert_int_equal(rig->ends.at[0].end.code, 128);
    assert_string_equal(rig->ends.at[0].message, "no such image");
}

static void test_signals_end_containers(void **state)
{
    static const struct {
        struct simulate_fate fate;
        int signo, code;
        int64_t after_s; /* -1: it keeps running */
    } cases[] = {
        {{.duration_ns = -1}, SIGTERM, 143, 0},
        {{.duration_ns = -1}, SIGKILL, 137, 0},
        {{.duration_ns = 9 * SEC, .code = 4, .term_duration_ns = 2 * SEC}, SIGTERM, 143, 2},
        {{.duration_ns = SEC, .code = 4, .term_duration_ns = 2 * SEC}, SIGTERM, 4, 1},
        {{.duration_ns = -1, .ignores_term = true}, SIGTERM, 0, -1},
        {{.duration_ns = -1, .ignores_term = true}, SIGKILL, 137, 0},
    };
    struct rig *rig = *state;

    pod_start(rig, "u1");
    for (size_t k = 0; k < HK_LEN(cases); k++) {
        const uint64_t id = start(rig, "u1", "c", cases[k].fate);
        hk_vec_clear(&rig->ends);
        rig->r->ops->kill(rig->r, id, cases[k].signo);
        rig->clock.now_ns += 20 * SEC;
        simulate_run(rig->r);
        assert_int_equal(rig->ends.len, cases[k].after_s >= 0);
        if (rig->ends.len > 0) {
            const struct runtime_end *end = &rig->ends.at[0].end;
            assert_int_equal(end->code, cases[k].code);
            assert_int_equal(end->end_ns - end->start_ns, cases[k].after_s * SEC);
        }
        rig->r->ops->kill(rig->r, id, SIGKILL);
        simulate_run(rig->r);
        assert_int_equal(rig->ends.len, 1);
    }
}

static void test_a_stopped_pod_is_gone_and_its_containers_told(void **state)
{
    struct rig *rig = *state;

    pod_start(rig, "u1");
    pod_start(rig, "u2");
    start(rig, "u1", "a", (struct simulate_fate){.duration_ns = -1});
    start(rig, "u1", "b", (struct simulate_fate){.duration_ns = SEC});
    const uint64_t other = start(rig, "u2", "a", (struct simulate_fate){.duration_ns = SEC});
    assert_int_equal(pods(rig), 2);
    rig->r->ops->pod_stop(rig->r, "u1");
    assert_int_equal(pods(rig), 1);
    simulate_run(rig->r);
    assert_int_equal(rig->ends.len, 2);
    assert_int_equal(rig->ends.at[0].end.code, 137);
    assert_int_equal(rig->ends.at[1].end.code, 137);
    rig->clock.now_ns += SEC;
    simulate_run(rig->r);
    assert_int_equal(rig->ends.len, 3);
    assert_int_equal(rig->ends.at[2].id, other);

    /* The same uid again is another pod. */
    pod_start(rig, "u1");
    start(rig, "u1", "a", (struct simulate_fate){.code = 3});
    simulate_run(rig->r);
    assert_int_equal(rig->ends.at[3].end.code, 3);
}

static void test_running_containers_are_found(void **state)
{
    struct rig *rig = *state;
    struct hk_err err = {0};
    uint64_t id = 0;

    pod_start(rig, "u1");
    const uint64_t started = start(rig, "u1", "a", (struct simulate_fate){.duration_ns = -1});
    assert_int_equal(rig->r->ops->adopt(rig->r, "u1", "a", 0, &id, &err), 0);
    assert_int_equal(id, started);
    assert_int_equal(rig->r->ops->adopt(rig->r, "u1", "a", 1, &id, &err), -HK_ENOTFOUND);
    assert_int_equal(rig->r->ops->adopt(rig->r, "u2", "a", 0, &id, &err), -HK_ENOTFOUND);
}

static void test_commands_beside_succeed_at_once(void **state)
{
    static const char *const argv[] = {"true", NULL};
    struct rig *rig = *state;
    struct hk_err err = {0};
    uint64_t id = 0;

    pod_start(rig, "u1");
    const uint64_t of = start(rig, "u1", "a", (struct simulate_fate){.duration_ns = -1});
    assert_int_equal(rig->r->ops->exec(rig->r, of, argv, -1, -1, -1, &id, &err), 0);
    simulate_run(rig->r);
    assert_int_equal(rig->ends.len, 1);
    assert_int_equal(rig->ends.at[0].id, id);
    assert_int_equal(rig->ends.at[0].end.code, 0);
    assert_int_equal(rig->r->ops->exec(rig->r, id, argv, -1, -1, -1, &id, &err), -HK_ENOTFOUND);
}

#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(test_containers_end_in_order_of_time),
        WITH_RIG(test_what_never_ran_says_why),
        WITH_RIG(test_signals_end_containers),
        WITH_RIG(test_a_stopped_pod_is_gone_and_its_containers_told),
        WITH_RIG(test_running_containers_are_found),
        WITH_RIG(test_commands_beside_succeed_at_once),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
