// SPDX-License-Identifier: Apache-2.0
// pdb: which candidates of an ordered list the budgets permit to evict.
#include "scheduler/plugins/rig_test.h"

extern const struct plugin plugin_pdb;

enum { NO_PDB = -1 };

static const struct {
    const char *about;
    int32_t allowed;
    const char *disrupted; /* pod already charged to the budget */
    const char *ns;
    bool empty_selector;
    const char *want;
} cases[] = {
    {"no budget", NO_PDB, NULL, "ns", false, "t1 t2 bare"},
    {"nothing left", 0, NULL, "ns", false, "bare"},
    {"one left", 1, NULL, "ns", false, "t1 bare"},
    {"one left, t1 charged before", 1, "t1", "ns", false, "t1 t2 bare"},
    {"another namespace", 0, NULL, "elsewhere", false, "t1 t2 bare"},
    {"a selector without requirements", 0, NULL, "ns", true, "t1 t2 bare"},
};

static void budgets_limit_victims(void **state)
{
    for (size_t k = 0; k < HK_LEN(cases); k++) {
        RIG(r);
        const struct label app = {hk_intern(&r.m.str, HK_STR("app")),
                                  hk_intern(&r.m.str, HK_STR("web"))};
        const struct label_req req = {.key = app.key, .op = OP_IN, .n = 1, .vals = &app.val};
        const uint32_t charged =
            cases[k].disrupted ? hk_intern(&r.m.str, hk_str(cases[k].disrupted)) : 0;

        rig_node(&r, "n", "cpu=10 pods=20");
        if (cases[k].allowed != NO_PDB) {
            model_pdb_put(&r.m, &(struct pdb_desc){
                                    .ns = hk_str(cases[k].ns),
                                    .name = HK_STR("budget"),
                                    .sel = {.n = !cases[k].empty_selector, .at = &req},
                                    .allowed = cases[k].allowed,
                                    .disrupted = &charged,
                                    .ndisrupted = charged != 0,
                                });
        }
        rig_queue(&r, "q");
        rig_job(&r, "j", "q");
        const task_id t1 = rig_task(&r, "j", "t1", .status = TASK_RUNNING, .node = "n",
                                    .labels = &app, .nlabel = 1);
        const task_id t2 = rig_task(&r, "j", "t2", .status = TASK_RUNNING, .node = "n",
                                    .labels = &app, .nlabel = 1);
        const task_id bare =
            rig_task(&r, "j", "bare", .status = TASK_RUNNING, .node = "n", .flags = TASK_NO_LABELS);
        rig_open(&r, "pdb", "");

        print_message("# case %zu: %s\n", k, cases[k].about);
        RIG_VICTIMS(v, t1, t2, bare);
        assert_int_equal(plugin_pdb.preemptable(&r.ssn, NULL, t1, &v), PERMIT);
        assert_string_equal(rig_names(&r, &v), cases[k].want);
        v.nout = 0; /* each call counts budgets from the start */
        assert_int_equal(plugin_pdb.reclaimable(&r.ssn, NULL, t1, &v), PERMIT);
        assert_string_equal(rig_names(&r, &v), cases[k].want);
        v.nout = 0;
        plugin_pdb.victim_tasks(&r.ssn, NULL, &v);
        assert_string_equal(rig_names(&r, &v), cases[k].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(budgets_limit_victims),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
