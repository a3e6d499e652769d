// SPDX-License-Identifier: Apache-2.0
// Feature gates: Volcano's defaults, and --feature-gates with Kubernetes' rules and messages.
#include "daemon/gates.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct option_row row = {.name = "feature-gates"};

static int parse(struct gates *g, const char *value, struct hk_err *err)
{
    return gates_parse(g, &row, value, err);
}

static void defaults_are_volcanos(void **state)
{
    const struct gates g = gates_default();

    assert_true(g.on[GATE_VOLCANO_JOB_SUPPORT]);
    assert_true(g.on[GATE_PRIORITY_CLASS]);
    assert_false(g.on[GATE_CSI_STORAGE]);
    assert_false(g.on[GATE_SCHEDULING_GATES_QUEUE_ADMISSION]);
}

static void named_gates_are_set(void **state)
{
    struct gates g = gates_default();
    struct hk_err err = {0};

    assert_int_equal(parse(&g, " PriorityClass = false , CSIStorage=true,, ", &err), 0);
    assert_false(g.on[GATE_PRIORITY_CLASS]);
    assert_true(g.on[GATE_CSI_STORAGE]);
    assert_true(g.on[GATE_VOLCANO_JOB_SUPPORT]); /* as it was */
}

static void all_alpha_sets_the_gates_that_are_not_named(void **state)
{
    struct gates g = gates_default();
    struct hk_err err = {0};

    assert_int_equal(parse(&g, "PriorityClass=false,AllAlpha=true,AllBeta=false", &err), 0);
    assert_false(g.on[GATE_PRIORITY_CLASS]);
    assert_true(g.on[GATE_CSI_STORAGE]);
    assert_true(g.on[GATE_SCHEDULING_GATES_QUEUE_ADMISSION]);
}

static const struct {
    const char *value, *error;
} refused[] = {
    {"NoSuchGate=true", "option --feature-gates is 'NoSuchGate=true': unrecognized feature gate: "
                        "NoSuchGate"},
    {"CSIStorage", "option --feature-gates is 'CSIStorage': missing bool value for CSIStorage"},
    {"CSIStorage=yes", "option --feature-gates is 'CSIStorage=yes': invalid value of "
                       "CSIStorage=yes, err: strconv.ParseBool: parsing \"yes\": invalid syntax"},
};

static void mistakes_have_kubernetes_messages(void **state)
{
    for (size_t i = 0; i < HK_LEN(refused); i++) {
        struct gates g = gates_default();
        struct hk_err err = {0};
        assert_int_equal(parse(&g, refused[i].value, &err), -HK_EINVAL);
        assert_string_equal(err.text, refused[i].error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_volcanos),
        cmocka_unit_test(named_gates_are_set),
        cmocka_unit_test(all_alpha_sets_the_gates_that_are_not_named),
        cmocka_unit_test(mistakes_have_kubernetes_messages),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("daemon/gates", tests, NULL, NULL);
}
