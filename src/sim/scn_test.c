// SPDX-License-Identifier: Apache-2.0
// The scenario runner: what it accepts, what it refuses, and its messages.
#include "sim/scn_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct scn_tally run(const char *text, struct hk_buf *out)
{
    const struct scn_opts o = {.max_objects = 100, .max_cycles = 20};
    struct scn_tally tally = {0};

    scn_run("t.scn", hk_str(text), &o, &tally, out);
    return tally;
}

#define ONE_POD "node n1 cpu=2 mem=2Gi\njob j min=1\ntask j/0 cpu=1 mem=1Gi\n"

static const struct {
    const char *text;
    const char *says; /* NULL: the scenario passes */
} cases[] = {
    {"", NULL},
    {"# only a title\n", NULL},
    {ONE_POD "cycle\nexpect bound j/0=n1\nexpect bound j count=1\nexpect binds count=1\n", NULL},
    {ONE_POD "cycle\nexpect bound j/0=n0|n1\nexpect order j/0\nexpect evicted none\n", NULL},
    {ONE_POD "cycle\nexpect idle n1 cpu=1 mem=1Gi pods=9\n", NULL},
    {ONE_POD "cycle\nexpect queue default allocated cpu=1 mem=1Gi deserved cpu=1 share=1\n", NULL},
    {ONE_POD "world off\ncycle\nexpect phase j Inqueue\nsettle\ncycle\nexpect phase j Running\n",
     NULL},
    {ONE_POD "cycle\ndone j/0\ncycle\nexpect phase j Completed\nexpect idle n1 cpu=2\n", NULL},
    {ONE_POD "cycle\ndelete task j/0\nexpect idle n1 cpu=2\n", NULL},
    {ONE_POD
     "node n1 unschedulable\ncycle\nexpect pending j/0\nnode n1 unschedulable=false\ncycle\n"
     "expect bound j\n",
     NULL},
    {ONE_POD "task j/0 <<EOF\nspec: {nodeSelector: {zone: a}}\nEOF\ncycle\nexpect pending j\n"
             "node n1 label:zone=a\ncycle\nexpect bound j\n",
     NULL},
    {"pod p cpu=-1\nexpect problem \"negative\"\n", NULL},
    {"object <<EOF\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
     "status: {allocatable: {cpu: 1}}\nEOF\nexpect idle n1 cpu=1\n",
     NULL},
    {"conf actions=allocate plugins=gang(enableJobReady=false);binpack(binpack.weight=5)\ncycle\n",
     NULL},

    {ONE_POD "cycle\nexpect bound j/0=n2\n",
     "t.scn:5: expected j/0 bound to n2, it is Running on n1"},
    {ONE_POD "cycle\nexpect pending j\n", "t.scn:5: expected j/0 pending, it is Running on n1"},
    {ONE_POD "cycle\nexpect idle n1 cpu=2\n", "t.scn:5: expected cpu=2 idle on n1, got 1"},
    {ONE_POD "cycle\nexpect evicted j/0\n", "expected j/0 evicted; evicted: none"},
    {ONE_POD "cycle\nexpect phase j Completed\n", "expected j Completed, it is Inqueue"},
    {ONE_POD "cycle\nexpect binds none\n", "expected 0 binds in the last cycle, got 1"},
    {ONE_POD "cycle\nexpect bound j/1\n", "no task or job 'j/1'"},
    {"pod p cpu=-1\n", "Pod ns/p was refused"},
    {"frob\n", "t.scn:1: unknown statement 'frob'"},
    {"node n1 colour=red\n", "t.scn:1: node has no 'colour'"},
    {"node\n", "want node NAME"},
    {"queue q weight=heavy\n", "'weight' is 'heavy', want a whole number"},
    {"task t cpu=1\n", "want JOB/NAME"},
    {"node n[1-\n", "has no ]"},
    {"node n[2-1]\n", "is no range"},
    {"pod p[1-101]\n", "more than 100 objects"},
    {"cycle 21\n", "more than 20 cycles"},
    {"expect\n", "want expect"},
    {"expect luck today\n", "nothing is expected by the word 'luck'"},
    {"node \"n1\n", "t.scn:1: a quote is not closed"},
    {"\nobject <<EOF\nkind: x\n", "t.scn:2: the text begun with << has no end"},
    {"object <<EOF\na: [1\nb: }\nEOF\n", "line 3"},
    {"conf actions=dance\n", "unknown action 'dance'"},
    {"conf actions=allocate plugins=nonsense\n", "unknown plugin 'nonsense'"},
    {"scenario\n", "want scenario \"name\""},
    {"advance soon\n", "want advance and a duration"},
    {"delete node n1\n", "no node 'n1'"},
    {"done j/0\n", "no task 'j/0'"},
};

static void test_cases(void **state)
{
    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        const struct scn_tally tally = run(cases[k].text, &out);
        const bool ok = tally.run == 1 && tally.failed == (cases[k].says != NULL) &&
                        (!cases[k].says || hk_str_contains(hk_buf_str(&out), cases[k].says));
        if (!ok) {
            print_error("case %zu: %s\nexpected: %s\ngot: %s\n", k, cases[k].text,
                        cases[k].says ? cases[k].says : "holds", out.data);
        }
        assert_true(ok);
    }
}

static void test_scenarios_share_what_stands_before_them(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct scn_tally tally = run("node n1 cpu=1 mem=1Gi\n"
                                       "scenario \"one\"\njob j min=1\ntask j/0 cpu=1\ncycle\n"
                                       "expect bound j\n"
                                       "scenario \"two\"\ncycle\nexpect idle n1 cpu=1\n",
                                       &out);

    assert_int_equal(tally.run, 2);
    assert_int_equal(tally.failed, 0);
    assert_string_equal(out.data, "ok 1 - t.scn: one\nok 2 - t.scn: two\n");
}

static void test_a_failure_shows_tables_and_decisions(void **state)
{
    static const char *const parts[] = {"# Queues\n", "# Nodes (used / allocatable)\n", "# Jobs\n",
                                        "# Tasks\n", "# bind      ns/j-0 -> n1\n"};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    run(ONE_POD "cycle\nexpect pending j\n", &out);
    for (size_t k = 0; k < HK_LEN(parts); k++) {
        assert_non_null(strstr(out.data, parts[k]));
    }
}

/* A word for a kind that the scheduler ignores would describe nothing. */
static void test_every_word_is_a_kind_that_the_scheduler_reads(void **state)
{
    for (size_t i = 0; scn_kind_at(i); i++) {
        const struct scn_kind *kind = scn_kind_at(i);
        if (!ingest_reads(api_kind(kind->id))) {
            fail_msg("'%s' describes %s, which the scheduler does not read", kind->word,
                     api_kind(kind->id)->plural);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_scenarios_share_what_stands_before_them),
        cmocka_unit_test(test_a_failure_shows_tables_and_decisions),
        cmocka_unit_test(test_every_word_is_a_kind_that_the_scheduler_reads),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
