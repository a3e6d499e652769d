// SPDX-License-Identifier: Apache-2.0
// sla: deadlines from the argument and from jobs, and the decisions that follow.
#include "scheduler/plugins/rig_test.h"

extern const struct plugin plugin_sla;

#define MINUTE (60 * 1000000000LL)

#define CONF(arg)                                                                                  \
    "actions: allocate\n"                                                                          \
    "tiers:\n"                                                                                     \
    "- plugins:\n"                                                                                 \
    "  - name: sla\n"                                                                              \
    "    arguments: {" arg "}\n"

struct world {
    struct rig r;
    job_id plain, own; /* created together; own may wait an hour */
};

static void world_init(struct world *w, const char *conf, int64_t age_ns)
{
    rig_init(&w->r);
    rig_queue(&w->r, "q");
    w->plain = rig_job(&w->r, "plain", "q", .creation_ns = 1000);
    w->own = rig_job(&w->r, "own", "q", .creation_ns = 1000, .waiting_ns = 60 * MINUTE);
    rig_open_at(&w->r, conf, 1000 + age_ns);
}

static void world_fini(struct world *w)
{
    rig_fini(&w->r);
}

static void the_earlier_deadline_goes_first(void **state)
{
    static const struct {
        const char *conf;
        int order; /* order of plain relative to own */
    } cases[] = {
        {CONF("sla-waiting-time: 3m"), -1},
        {CONF("sla-waiting-time: 2h"), 1},
        {CONF("sla-waiting-time: 1h"), 0},
        {CONF("sla-waiting-time: 1"), 1},   /* not a duration: no limit for all */
        {CONF("sla-waiting-time: -3m"), 1}, /* nor is a negative one */
        {CONF(""), 1},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(world_fini) struct world w;

        world_init(&w, cases[k].conf, 0);
        print_message("# case %zu\n", k);
        assert_int_equal(plugin_sla.job_order(&w.r.ssn, rig_self(&w.r), w.plain, w.own),
                         cases[k].order);
    }
}

static void a_job_is_let_in_when_its_time_is_up(void **state)
{
    static const struct {
        int64_t age_ns;
        enum vote plain, own;
    } cases[] = {
        {0, ABSTAIN, ABSTAIN},
        {3 * MINUTE - 1, ABSTAIN, ABSTAIN},
        {3 * MINUTE, PERMIT, ABSTAIN},
        {60 * MINUTE, PERMIT, PERMIT},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(world_fini) struct world w;

        world_init(&w, CONF("sla-waiting-time: 3m"), cases[k].age_ns);
        assert_int_equal(plugin_sla.job_enqueueable(&w.r.ssn, rig_self(&w.r), w.plain),
                         cases[k].plain);
        assert_int_equal(plugin_sla.job_pipelined(&w.r.ssn, rig_self(&w.r), w.plain),
                         cases[k].plain);
        assert_int_equal(plugin_sla.job_enqueueable(&w.r.ssn, rig_self(&w.r), w.own), cases[k].own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_earlier_deadline_goes_first),
        cmocka_unit_test(a_job_is_let_in_when_its_time_is_up),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
