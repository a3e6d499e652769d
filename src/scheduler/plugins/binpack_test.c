// SPDX-License-Identifier: Apache-2.0
// The scores of upstream's tests, and edge cases, on nodes made by hand.

#include "scheduler/plugins/binpack.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { FOO = 3, GPU = 4, NDIM = 5, NNODE = 600 };
#define GI ((int64_t)1 << 30)

struct world {
    struct model m;
    struct session ssn;
    struct task task;
    struct shape shape;
    struct amount req[NDIM];
    int64_t alloc[NDIM][NNODE], used[NDIM][NNODE];
    node_id nodes[NNODE];
    double score[NNODE];
};

static int setup(void **state)
{
    static const char *const names[NDIM] = {"cpu", "memory", "pods", "example.com/foo",
                                            "nvidia.com/gpu"};
    struct world *w = hk_zalloc(sizeof(*w));

    w->ssn.m = &w->m;
    w->m.tasks.at = &w->task;
    w->m.shapes.at = &w->shape;
    w->shape.req = w->req;
    w->m.dims.n = NDIM;
    for (uint32_t d = 0; d < NDIM; d++) {
        w->m.dims.text[d] = hk_str(names[d]);
        w->m.nodes.alloc.col[d] = w->alloc[d];
        w->m.nodes.used.col[d] = w->used[d];
    }
    for (uint32_t i = 0; i < NNODE; i++) {
        w->nodes[i] = (node_id){NNODE - 1 - i};
    }
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    hk_free(*state);
    return 0;
}

static void set_request(struct world *w, const int64_t req[NDIM])
{
    w->shape.nreq = 0;
    for (uint32_t d = 0; d < NDIM; d++) {
        if (req[d] > 0) {
            w->req[w->shape.nreq++] = (struct amount){d, req[d]};
        }
    }
}

static void set_node(struct world *w, uint32_t n, const int64_t alloc[NDIM],
                     const int64_t used[NDIM])
{
    for (uint32_t d = 0; d < NDIM; d++) {
        w->alloc[d][n] = alloc[d];
        w->used[d][n] = used[d];
    }
}

static void assert_near(double got, double want, size_t k)
{
    if (fabs(got - want) > 0.005) {
        fail_msg("case %zu: got %f, want %f", k, got, want);
    }
}

static void a_node_scores_by_how_full_it_would_be(void **state)
{
    static const struct opt_pair weights[] = {
        {{"example.com/foo", 15}, 8}, {{"nvidia.com/gpu", 14}, 23}, {{"pods", 4}, -7}};
    static const struct {
        int64_t weight, cpu, memory;
        const char *resources;
        int64_t req[NDIM], alloc[NDIM], used[NDIM];
        double want;
    } cases[] = {
        {10, 2, 3, "", {1000, GI}, {2000, 4 * GI}, {1000, GI}, 700},
        {10, 2, 3, "", {1000, GI}, {4000, 16 * GI}, {0}, 137.5},
        {10, 2, 3, "example.com/foo", {3000, 4 * GI, 1, 3000}, {4000, 16 * GI}, {0}, 173.08},
        {1,
         1,
         1,
         "nvidia.com/gpu",
         {2000, 10 * GI, 1, 0, 2000},
         {4000, 16 * GI, 110, 0, 4000},
         {0},
         50.5},
        {10, 2, 3, "", {1000}, {2000}, {1500}, 0},
        /* just fits: no epsilon either way */
        {1, 1, 1, "", {1000}, {2000}, {1000}, 100},
        {1, 1, 1, "", {1000}, {2000}, {1001}, 0},
        /* a resource without weight neither counts nor excludes */
        {1, 0, 1, "", {3000, GI}, {2000, 2 * GI}, {0}, 50},
        {1, 0, 0, "", {1000, GI}, {2000, 2 * GI}, {0}, 0},
        {1, -5, 1, "", {1000, GI}, {2000, 4 * GI}, {0}, 37.5},
        {-2, 1, 1, "", {1000}, {2000}, {0}, -100},
        {0, 1, 1, "", {1000}, {2000}, {0}, 0},
        /* foo is requested but not listed */
        {1, 1, 1, "", {1000, 0, 1, 3000}, {2000, 0, 0, 1000}, {0}, 50},
        /* pods only when listed; a negative weight means 1; blanks and unknown names are skipped */
        {1, 1, 1, " pods ,, nobody.io/x", {1000, 0, 1}, {2000, 0, 4}, {0}, 37.5},
        /* cpu and memory keep their own weights */
        {1, 3, 1, "cpu", {1000, GI}, {2000, 4 * GI}, {0}, 43.75},
    };
    struct world *w = *state;

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        struct binpack b = {.weight = cases[k].weight,
                            .cpu = cases[k].cpu,
                            .memory = cases[k].memory,
                            .resources = hk_str(cases[k].resources),
                            .weights = {weights, HK_LEN(weights)}};
        set_request(w, cases[k].req);
        set_node(w, 7, cases[k].alloc, cases[k].used);
        w->score[0] = 1; /* the plugin adds to the score of others */
        binpack_open(&w->ssn, &b);
        assert_int_equal(binpack_score(&w->ssn, &b, (task_id){0}, &(node_id){7}, 1, w->score), 0);
        assert_near(w->score[0], 1 + cases[k].want, k);
    }
}

static void many_nodes_score_as_one(void **state)
{
    struct world *w = *state;
    struct binpack b = {.weight = 10, .cpu = 2, .memory = 3};
    const int64_t req[NDIM] = {1000, GI};
    double one;

    for (uint32_t n = 0; n < NNODE; n++) {
        const int64_t alloc[NDIM] = {1000 + n * 10, (n % 7) * GI};
        const int64_t used[NDIM] = {n * 5, (n % 3) * GI};
        set_node(w, n, alloc, used);
    }
    set_request(w, req);
    binpack_open(&w->ssn, &b);
    assert_int_equal(binpack_score(&w->ssn, &b, (task_id){0}, w->nodes, NNODE, w->score), 0);
    for (uint32_t i = 0; i < NNODE; i++) {
        one = 0;
        binpack_score(&w->ssn, &b, (task_id){0}, &w->nodes[i], 1, &one);
        assert_true(w->score[i] == one);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_node_scores_by_how_full_it_would_be),
        TEST(many_nodes_score_as_one),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
