// SPDX-License-Identifier: Apache-2.0
// Bundles: the members that a gang can spare, and those whose loss breaks it.
#include "scheduler/actions/bundle.h"

#include "scheduler/plugins/rig_test.h"

#include <math.h>

enum { MAX = 8 };

struct local {
    task_id at[MAX];
    uint32_t n;
};

static struct local members(struct rig *r, const char *role, uint32_t n)
{
    struct local l = {.n = n};

    for (uint32_t k = 0; k < n; k++) {
        const char name[] = {'t', (char)('1' + k), '\0'};
        l.at[k] = rig_task(r, "v", name, .req = "cpu=1", .role = role, .status = TASK_RUNNING,
                           .node = "n", .priority = (int32_t)k);
    }
    return l;
}

static const char *names(struct rig *r, const struct bundle *b)
{
    return rig_names(r, &(struct victims){.out = b->at, .nout = b->n});
}

static void open(struct rig *r)
{
    rig_node(r, "n", "cpu=10 pods=20");
    rig_queue(r, "q");
}

static void gang_spares_what_is_above_its_minimum(void **state)
{
    static const struct {
        int32_t min;
        bool roles;
        uint32_t running;
        const char *safe, *whole;
    } cases[] = {
        {3, true, 5, "t1 t2", "t3 t4 t5"}, {2, false, 4, "t1 t2", "t3 t4"},
        {5, false, 3, "t1 t2 t3", ""}, /* already below its minimum: nothing left to break */
        {3, false, 3, "", "t1 t2 t3"},     {0, false, 2, "t1 t2", ""},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        RIG(r);
        open(&r);
        const struct role_min role = {hk_intern(&r.m.str, HK_STR("worker")), cases[i].min};
        const job_id j =
            rig_job(&r, "v", "q", .min = cases[i].min, .roles = &role, .nrole = cases[i].roles);
        const struct local l = members(&r, "worker", cases[i].running);
        struct bundle b[2];

        rig_open(&r, "gang", "");
        const uint32_t n = bundle_split(&r.m, r.ssn.mem, j, l.at, l.n, b);
        const bool safe = cases[i].safe[0], whole = cases[i].whole[0];
        assert_int_equal(n, safe + whole);
        if (safe) {
            assert_true(b[0].safe);
            assert_string_equal(names(&r, &b[0]), cases[i].safe);
        }
        if (whole) {
            assert_false(b[n - 1].safe);
            assert_string_equal(names(&r, &b[n - 1]), cases[i].whole);
        }
    }
}

/* Three sub-jobs of two, two of them needed: one may break. */
static void group_spares_sub_jobs_above_its_minimum(void **state)
{
    RIG(r);
    task_id first[3];
    struct bundle b[2];

    open(&r);
    const uint32_t key = hk_intern(&r.m.str, HK_STR("part"));
    const struct policy_desc policy = {
        .name = HK_STR("p"), .size = 2, .min_groups = 2, .keys = &key, .nkey = 1};
    const job_id j = rig_job(&r, "v", "q", .min = 4, .policies = &policy, .npolicy = 1);
    for (uint32_t k = 0; k < 6; k++) {
        const char name[] = {'t', (char)('1' + k), '\0'};
        const char part[] = {(char)('a' + k / 2), '\0'};
        const struct label label = {key, hk_intern(&r.m.str, hk_str(part))};
        const task_id t = rig_task(&r, "v", name, .req = "cpu=1", .status = TASK_RUNNING,
                                   .node = "n", .labels = &label, .nlabel = 1);
        if (k % 2 == 0) {
            first[k / 2] = t;
        }
    }
    rig_open(&r, "gang", "");
    assert_int_equal(bundle_split(&r.m, r.ssn.mem, j, first, 3, b), 2);
    assert_string_equal(names(&r, &b[0]), "t1");
    assert_string_equal(names(&r, &b[1]), "t3 t5");
}

static bool is_first(const void *ctx, task_id t)
{
    return t.i == *(const uint32_t *)ctx;
}

static void refused_tasks_shrink_safe_bundles_and_drop_whole_ones(void **state)
{
    RIG(r);
    open(&r);
    rig_job(&r, "v", "q", .min = 1);
    struct local l = members(&r, NULL, 3);
    struct bundle safe = {.safe = true, .at = l.at, .n = 2};
    struct bundle whole = {.at = l.at + 1, .n = 2}, kept = {.at = l.at, .n = 1};

    rig_open(&r, "gang", "");
    bundle_restrict(&whole, is_first, &l.at[0].i);
    assert_int_equal(whole.n, 0);
    bundle_restrict(&kept, is_first, &l.at[0].i);
    assert_int_equal(kept.n, 1);
    bundle_restrict(&safe, is_first, &l.at[0].i);
    assert_string_equal(names(&r, &safe), "t1");
}

static void return_weighs_local_use_against_global_loss(void **state)
{
    RIG(r);
    open(&r);
    const job_id j = rig_job(&r, "v", "q", .min = 1);
    struct local l = members(&r, NULL, 4);
    int64_t need[DIM_MAX] = {[DIM_CPU] = 4000};
    struct bundle b = {.job = j, .at = l.at, .n = 2};

    rig_open(&r, "gang", "");
    const struct demand d = {need, r.m.dims.n};
    assert_true(fabs(bundle_roi(&r.m, &b, &d) - 0.5) < 1e-9); /* 2 of 4 requested, 4 of 4 lost */
    need[DIM_CPU] = 1000;
    assert_true(fabs(bundle_roi(&r.m, &b, &d) - 0.25) < 1e-9); /* no more than requested counts */
    b.safe = true;
    assert_true(isinf(bundle_roi(&r.m, &b, &d)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gang_spares_what_is_above_its_minimum),
        cmocka_unit_test(group_spares_sub_jobs_above_its_minimum),
        cmocka_unit_test(refused_tasks_shrink_safe_bundles_and_drop_whole_ones),
        cmocka_unit_test(return_weighs_local_use_against_global_loss),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
