// SPDX-License-Identifier: Apache-2.0
// resourcequota: a job's minimum compared with the quotas of its namespace.
#include "scheduler/plugins/rig_test.h"

extern const struct plugin plugin_resourcequota;

enum { NITEM = 3 };

struct line { /* milli-units; hard < 0: the quota does not list it */
    const char *name;
    int64_t hard, used, asked;
};

static const struct {
    const char *about;
    struct line at[NITEM];
    const char *refused; /* NULL: admitted */
} cases[] = {
    {"fits", {{"cpu", 2000, 0, 2000}, {"memory", 2000000, 0, 2000000}}, NULL},
    {"does not fit",
     {{"memory", 2000, 0, 20000}, {"cpu", 2000, 0, 20000}},
     "resource quota insufficient, requested: map[cpu:20 memory:20], used: map[cpu:0 memory:0], "
     "limited: map[cpu:2 memory:2]"},
    {"counts what is used and speaks of that alone",
     {{"pods", 10000, 9000, 2000}, {"cpu", 8000, 0, 4000}},
     "resource quota insufficient, requested: map[pods:2], used: map[pods:9], limited: "
     "map[pods:10]"},
    {"shows fractions in milli",
     {{"cpu", 1500, 250, 1500}},
     "resource quota insufficient, requested: map[cpu:1500m], used: map[cpu:250m], limited: "
     "map[cpu:1500m]"},
    {"names are literal", {{"requests.cpu", 1000, 0, 0}, {"cpu", -1, 0, 9000}}, NULL},
    {"amounts past all bounds do not wrap",
     {{"cpu", INT64_MAX - 1, INT64_MAX - 1, INT64_MAX}},
     "resource quota insufficient, requested: map[cpu:9223372036854775807m], used: "
     "map[cpu:9223372036854775806m], limited: map[cpu:9223372036854775806m]"},
};

static uint32_t fill(struct rig *r, const struct line *at, struct quota_item *items,
                     struct min_item *min)
{
    uint32_t n = 0;

    for (; n < NITEM && at[n].name; n++) {
        const uint32_t name = hk_intern(&r->m.str, hk_str(at[n].name));

        items[n] = (struct quota_item){.name = name,
                                       .hard_milli = at[n].hard,
                                       .used_milli = at[n].used,
                                       .has_hard = at[n].hard >= 0,
                                       .has_used = true};
        min[n] = (struct min_item){name, at[n].asked};
    }
    return n;
}

static void quotas_hold_back_what_does_not_fit(void **state)
{
    for (size_t k = 0; k < HK_LEN(cases); k++) {
        RIG(r);
        struct quota_item items[NITEM];
        struct min_item min[NITEM];
        const uint32_t n = fill(&r, cases[k].at, items, min);

        model_quota_put(&r.m, &(struct quota_desc){HK_STR("other"), HK_STR("none"), items, 0});
        model_quota_put(&r.m, &(struct quota_desc){HK_STR("ns"), HK_STR("quota"), items, n});
        rig_queue(&r, "q");
        const job_id j = rig_job(&r, "j", "q", .items = min, .nitem = n);
        const job_id unbound = rig_job(&r, "f", "q", .ns = "free", .items = min, .nitem = n);
        const job_id none = rig_job(&r, "none", "q");
        rig_open(&r, "resourcequota", "");

        print_message("# case %zu: %s\n", k, cases[k].about);
        assert_int_equal(plugin_resourcequota.job_enqueueable(&r.ssn, rig_self(&r), j),
                         cases[k].refused ? REJECT : PERMIT);
        if (cases[k].refused) {
            assert_string_equal(r.ssn.job_msg[j.i], cases[k].refused);
        }
        assert_int_equal(plugin_resourcequota.job_enqueueable(&r.ssn, rig_self(&r), unbound),
                         PERMIT);
        assert_int_equal(plugin_resourcequota.job_enqueueable(&r.ssn, rig_self(&r), none), PERMIT);
    }
}

static void what_the_session_admits_counts_in_its_namespace(void **state)
{
    RIG(r);
    const struct line at[NITEM] = {{"cpu", 1000, 0, 1000}};
    struct quota_item items[NITEM];
    struct min_item min[NITEM];
    const uint32_t n = fill(&r, at, items, min);

    model_quota_put(&r.m, &(struct quota_desc){HK_STR("ns"), HK_STR("quota"), items, n});
    model_quota_put(&r.m, &(struct quota_desc){HK_STR("two"), HK_STR("quota"), items, n});
    rig_queue(&r, "q");
    const job_id a = rig_job(&r, "a", "q", .items = min, .nitem = n);
    const job_id b = rig_job(&r, "b", "q", .items = min, .nitem = n);
    const job_id c = rig_job(&r, "c", "q", .ns = "two", .items = min, .nitem = n);
    rig_open(&r, "resourcequota", "");

    assert_int_equal(plugin_resourcequota.job_enqueueable(&r.ssn, rig_self(&r), a), PERMIT);
    plugin_resourcequota.job_enqueued(&r.ssn, rig_self(&r), a);
    assert_int_equal(plugin_resourcequota.job_enqueueable(&r.ssn, rig_self(&r), b), REJECT);
    assert_string_equal(r.ssn.job_msg[b.i],
                        "resource quota insufficient, requested: map[cpu:1], used: map[cpu:0], "
                        "limited: map[cpu:1]");
    assert_int_equal(plugin_resourcequota.job_enqueueable(&r.ssn, rig_self(&r), c), PERMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotas_hold_back_what_does_not_fit),
        cmocka_unit_test(what_the_session_admits_counts_in_its_namespace),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
