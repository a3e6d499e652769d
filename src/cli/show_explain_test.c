// SPDX-License-Identifier: Apache-2.0
// The page of `hekla explain`, from its JSON documents.
#include "cli/show_explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct {
    const char *doc, *page;
} cases[] = {
    {"{\"namespace\":\"x\",\"name\":\"j\",\"state\":\"waiting\",\"summary\":\"waits: 3 at once\","
     "\"priority\":7,\"waitedSeconds\":75,\"wants\":{\"cpu\":\"3\"},"
     "\"queue\":{\"name\":\"q\",\"state\":\"Open\",\"weight\":2,\"allocated\":{\"cpu\":\"4\"},"
     "\"deserved\":{\"cpu\":\"5\"},\"capability\":{\"cpu\":\"6\"}},"
     "\"gang\":{\"minimum\":3,\"waiting\":3},"
     "\"reasons\":[{\"task\":\"w\",\"pods\":3,\"fit\":1,\"nodes\":4,\"refusals\":["
     "{\"nodes\":3,\"text\":\"Insufficient "
     "cpu\",\"wants\":\"1\",\"mostFree\":\"500m\",\"mostFreeOn\":\"n3\"},"
     "{\"nodes\":1,\"text\":\"Insufficient "
     "gpu\",\"wants\":\"1\",\"mostFree\":\"0\",\"mostFreeOn\":\"n1\"}]}],"
     "\"ahead\":{\"inQueue\":1,\"inCluster\":3,\"jobs\":["
     "{\"name\":\"x/first\",\"why\":\"priority 9 over "
     "7\",\"holds\":{},\"waitsFor\":{\"cpu\":\"2\"}},"
     "{\"name\":\"y/b\",\"why\":\"created earlier\",\"holds\":{\"cpu\":\"1\"},\"waitsFor\":{}}]},"
     "\"changes\":[{\"text\":\"job x/a ends\",\"evicts\":[],\"delays\":[]},"
     "{\"text\":\"it has priority class high "
     "(9)\",\"evicts\":[\"x/v-0\",\"x/v-1\"],\"delays\":[\"x/first\"]}],"
     "\"tried\":5,\"cut\":true,\"notes\":[\"pdbs were left out: forbidden\"]}",
     "x/j waits: 3 at once.\n"
     "  queue    q (weight 2, Open) holds cpu 4; deserves cpu 5; at most cpu 6\n"
     "  waited   75s\n"
     "  wants    cpu 3, to start; priority 7\n"
     "\n"
     "Why\n"
     "  task w: 3 pods, 1 would find a place, then no more:\n"
     "    3 of 4 nodes: Insufficient cpu (a pod wants 1, at most 500m is free now, on n3)\n"
     "    1 of 4 nodes: Insufficient gpu (a pod wants 1, nothing is free now)\n"
     "\n"
     "Ahead of it: 3 jobs, 1 in its queue\n"
     "  x/first  priority 9 over 7; waits for cpu 2\n"
     "  y/b      created earlier; waits for nothing, holds cpu 1\n"
     "  and 1 more\n"
     "\n"
     "It starts if one of these happens\n"
     "  - job x/a ends\n"
     "  - it has priority class high (9); then evicted: x/v-0, x/v-1; then later: x/first\n"
     "  5 changes tried in the scheduler, one at a time; there are more.\n"
     "\n"
     "note: pdbs were left out: forbidden\n"},
    {"{\"namespace\":\"x\",\"name\":\"j\",\"state\":\"waiting\",\"summary\":\"waits: queue 'q' is "
     "at its "
     "limit\",\"limits\":["
     "{\"limit\":\"capability\",\"resource\":\"cpu\",\"wants\":\"1\",\"holds\":\"2\",\"promised\":"
     "\"1\",\"most\":\"2\"},"
     "{\"limit\":\"deserved\",\"resource\":\"memory\",\"wants\":\"1Gi\",\"holds\":\"2Gi\","
     "\"promised\":\"0\",\"most\":\"2Gi\"},"
     "{\"limit\":\"cluster\",\"resource\":\"gpu\",\"wants\":\"1\",\"holds\":\"2\",\"promised\":"
     "\"0\",\"most\":\"2\"}],"
     "\"changes\":[],\"tried\":1}",
     "x/j waits: queue 'q' is at its limit.\n"
     "\n"
     "Why\n"
     "  cpu: it wants 1, and the queue holds 2 of at most 2, 1 is promised\n"
     "  memory: it wants 1Gi, and the queue holds 2Gi of 2Gi that it deserves\n"
     "  gpu: it wants 1, and of 2 in the cluster 2 is taken\n"
     "\n"
     "No single change lets it start: 1 change tried in the scheduler, one at a time.\n"},
    {"{\"namespace\":\"x\",\"name\":\"j\",\"state\":\"ended\",\"phase\":\"Failed\",\"summary\":"
     "\"has failed\","
     "\"tookSeconds\":40,\"retries\":2,\"maxRetry\":3,"
     "\"failure\":{\"pod\":\"j-w-0\",\"task\":\"w\",\"exitCode\":3},\"changes\":[],\"tried\":"
     "0}",
     "x/j has failed.\n"
     "  took     40s\n"
     "  failure  pod j-w-0 of task w: exit code 3\n"
     "  retries  2 of 3\n"},
    {"{\"name\":\"f\",\"namespace\":\"x\",\"state\":\"running\",\"summary\":\"is in "
     "progress\",\"steps\":["
     "{\"step\":\"one\",\"job\":\"f-one\",\"phase\":\"Running\"},"
     "{\"step\":\"three\",\"waitsFor\":[{\"step\":\"one\",\"phase\":\"Running\",\"probes\":[\"tcp "
     "w:9\"]}]},"
     "{\"step\":\"two\",\"waitsFor\":[]}],\"changes\":[]}",
     "x/f is in progress.\n"
     "  one    Running (job f-one)\n"
     "  three  waits for one (Running; until done or tcp w:9)\n"
     "  two    starts next\n"},
};

static void test_pages(void **state)
{
    const struct term plain = {0};

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
        struct json doc;
        assert_int_equal(json_parse(hk_str(cases[k].doc), 0, &a, &doc, NULL), 0);
        show_explain(&doc, &plain, &out);
        assert_string_equal(out.data, cases[k].page);
    }
}

static void test_colours(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct term t = {.is = true, .colour = true, .columns = 80, .rows = 24};
    struct json doc;

    assert_int_equal(
        json_parse(HK_STR("{\"name\":\"j\",\"state\":\"waiting\",\"summary\":\"waits\"}"), 0, &a,
                   &doc, NULL),
        0);
    show_explain(&doc, &t, &out);
    assert_string_equal(out.data, "\033[1mj\033[0m \033[33mwaits\033[0m.\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_colours),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
