// SPDX-License-Identifier: Apache-2.0
// Every scorer compared with numbers computed by hand, one scorer enabled at a time, and the block
// arithmetic compared with the plain one.
#include "base/clock.h"
#include "scheduler/plugins/fixture_test.h"
#include "scheduler/plugins/resources.h"
#include "scheduler/plugins/spread.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

extern const struct plugin plugin_nodeorder;

#define GI ((int64_t)1 << 30)
#define MI ((int64_t)1 << 20)

/* Disables all scorers. */
static int set_up(void **state)
{
    struct fx_plugin *f = fx_plugin_new(&plugin_nodeorder);

    for (uint32_t k = 0; k < f->p->nopt; k++) {
        fx_set(f, f->p->opts[k].key, "0");
    }
    *state = f;
    return 0;
}

static node_id put_sized(struct fx_plugin *f, const char *name, int64_t cpu_milli,
                         int64_t mem_bytes)
{
    return fx_node(&f->m, (struct fx_node){.name = name,
                                           .labels = "",
                                           .cpu_milli = cpu_milli,
                                           .mem_bytes = mem_bytes,
                                           .pods = 110});
}

static void assert_scores(struct fx_plugin *f, task_id t, const node_id *nodes, uint32_t n,
                          const double *want)
{
    double have[8] = {0};

    if (f->p->open) {
        f->p->open(&f->ssn, f->self);
    }
    assert_int_equal(f->p->score(&f->ssn, f->self, t, nodes, n, have), 0);
    for (uint32_t k = 0; k < n; k++) {
        if (have[k] != want[k]) {
            fail_msg("node %u: score %g, want %g", k, have[k], want[k]);
        }
    }
}

#define assert_scored(f, t, nodes, ...)                                                            \
    assert_scores(f, t, nodes, HK_LEN(nodes), (const double[]){__VA_ARGS__})

/* ---- resources ---- */

static void test_least_and_most_allocated(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n[] = {put_sized(f, "n1", 2000, 4 * GI), put_sized(f, "n2", 4000, 8 * GI)};
    const task_id t =
        fx_pod(&f->m, (struct fx_pod){.name = "p", .cpu_milli = 1000, .mem_bytes = 1000000000});

    fx_set(f, "leastrequested.weight", "1");
    assert_scored(f, t, n, 63, 81);
    fx_set(f, "leastrequested.weight", "-2");
    assert_scored(f, t, n, -126, -162);
    fx_set(f, "leastrequested.weight", "0");
    fx_set(f, "mostrequested.weight", "1");
    assert_scored(f, t, n, 36, 18);
}

static void test_what_does_not_fit_scores_by_what_is_left(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n[] = {put_sized(f, "small", 1000, 4 * GI), put_sized(f, "no-cpu", 0, 4 * GI),
                         put_sized(f, "nothing", 0, 0)};
    const task_id t =
        fx_pod(&f->m, (struct fx_pod){.name = "p", .cpu_milli = 2000, .mem_bytes = GI});

    fx_set(f, "leastrequested.weight", "1");
    assert_scored(f, t, n, 37, 75, 0);
    fx_set(f, "leastrequested.weight", "0");
    fx_set(f, "mostrequested.weight", "1");
    assert_scored(f, t, n, 62, 25, 0);
}

static void test_balanced_allocation(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n[] = {put_sized(f, "n1", 2000, 2 * GI), put_sized(f, "n2", 4000, 2 * GI)};
    const task_id t =
        fx_pod(&f->m, (struct fx_pod){.name = "p", .cpu_milli = 1000, .mem_bytes = GI});
    const task_id none = fx_pod(&f->m, (struct fx_pod){.name = "none"});

    fx_set(f, "balancedresource.weight", "1");
    assert_scored(f, t, n, 75, 68);
    assert_scored(f, none, n, 0, 0);
}

/* Fractions with the pod 1/4, 1/2, 1/2: std 0.1179, 88; without it all zero, 100: 50 + 38/2. */
static void test_gpus_are_part_of_the_balance_of_those_who_ask(void **state)
{
    struct fx_plugin *f = *state;
    struct hk_err err = {0};
    uint32_t gpu;

    assert_int_equal(model_dim(&f->m, HK_STR("nvidia.com/gpu"), &gpu, &err), 0);
    const node_id n[] = {fx_node(&f->m, (struct fx_node){.name = "n1",
                                                         .labels = "",
                                                         .cpu_milli = 4000,
                                                         .mem_bytes = 2 * GI,
                                                         .pods = 110,
                                                         .extra_dim = gpu,
                                                         .extra = 2000})};
    const task_id with = fx_pod(
        &f->m,
        (struct fx_pod){
            .name = "with", .cpu_milli = 1000, .mem_bytes = GI, .extra_dim = gpu, .extra = 1000});
    const task_id without =
        fx_pod(&f->m, (struct fx_pod){.name = "without", .cpu_milli = 1000, .mem_bytes = GI});

    fx_set(f, "balancedresource.weight", "1");
    assert_scored(f, with, n, 69);
    assert_scored(f, without, n, 68);
}

/* A random amount, sometimes at the limit of exact doubles. */
static int64_t amount(struct hk_rand *r, int64_t max)
{
    switch (hk_rand_below(r, 12)) {
    case 0:
        return 0;
    case 1:
        return max;
    case 2:
        return ((int64_t)1 << 46) - 2 + hk_rand_below(r, 4);
    case 3:
        return (int64_t)1 << 50;
    default:
        return (int64_t)(hk_rand_u64(r) % (uint64_t)max) + 1;
    }
}

enum { ROWS = 301 };

static void random_columns(struct model *m, struct hk_rand *r, bool rare)
{
    static const int64_t max[] = {128000, 512 * GI, 0, 8000};

    for (uint32_t n = 0; n < ROWS; n++) {
        for (uint32_t d = 0; d < 4; d++) {
            const int64_t top = d == DIM_PODS ? 110 : max[d];
            m->nodes.kalloc.col[d][n] = rare ? amount(r, top) : top;
            m->nodes.kused.col[d][n] =
                rare ? amount(r, top) : hk_rand_below(r, (uint32_t)(top >> 16) + 9);
        }
        m->nodes.nz_cpu[n] = m->nodes.kused.col[DIM_CPU][n] + 100;
        m->nodes.nz_mem[n] = m->nodes.kused.col[DIM_MEM][n] + 200 * MI;
    }
}

/* Fewer than eight nodes are scored one by one in integers; more in blocks of doubles. */
static void test_blocks_score_as_single_nodes_do(void **state)
{
    struct fx_plugin *f = *state;
    struct hk_err err = {0};
    struct hk_rand r;
    uint32_t gpu;
    node_id nodes[ROWS];
    double block[ROWS], single[ROWS];
    char name[16];

    assert_int_equal(model_dim(&f->m, HK_STR("nvidia.com/gpu"), &gpu, &err), 0);
    for (uint32_t k = 0; k < ROWS; k++) {
        snprintf(name, sizeof(name), "n%u", k);
        nodes[k] = put_node(f, name, "");
    }
    hk_rand_seed(&r, 7);
    for (uint32_t round = 0; round < 60; round++) {
        const struct resource_weights w = {1 + round % 3, round % 2, 2, gpu};
        struct amount req[] = {{DIM_CPU, amount(&r, 4000)}, {DIM_MEM, amount(&r, GI)}, {gpu, 1000}};
        const struct shape s = {
            .req = req, .nreq = 2 + round % 2, .nz_cpu = req[0].v, .nz_mem = req[1].v};
        random_columns(&f->m, &r, round % 3 == 0);
        memset(block, 0, sizeof(block));
        memset(single, 0, sizeof(single));
        resources_score(&f->m, &s, &w, nodes, ROWS, block);
        for (uint32_t k = 0; k < ROWS; k++) {
            resources_score(&f->m, &s, &w, &nodes[k], 1, &single[k]);
            if (block[k] != single[k]) {
                fail_msg("round %u, node %u: %g in a block, %g alone", round, k, block[k],
                         single[k]);
            }
        }
    }
}

/* ---- preferences and taints ---- */

static cons_id preferences(struct fx_plugin *f, const char *sel1, int32_t w1, const char *sel2,
                           int32_t w2)
{
    struct cons *c = fx_draft();
    struct node_term *t = hk_arena_zalloc(&c->mem, 2 * sizeof(*t));
    const struct label_sel a = fx_sel(&f->m, c, sel1), b = fx_sel(&f->m, c, sel2);

    t[0] = (struct node_term){.nreq = a.n, .req = a.at, .weight = w1};
    t[1] = (struct node_term){.nreq = b.n, .req = b.at, .weight = w2};
    c->npref = 2;
    c->pref = t;
    return fx_cons(&f->m, c);
}

static void test_preferred_node_affinity(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n[] = {put_node(f, "n1", "disk=hdd"), put_node(f, "n2", "disk=ssd"),
                         put_node(f, "n3", "")};
    const cons_id c = preferences(f, "disk=hdd", 30, "disk=ssd", 80);
    const cons_id nowhere = preferences(f, "disk=a", 30, "disk=b", 80);
    const task_id t = put_pod(f, "p", "", NULL, &c);

    fx_set(f, "nodeaffinity.weight", "1");
    assert_scored(f, t, n, 37, 100, 0);
    assert_scored(f, put_pod(f, "q", "", NULL, &nowhere), n, 0, 0, 0);
    assert_scored(f, put_pod(f, "r", "", NULL, NULL), n, 0, 0, 0);
    fx_set(f, "nodeaffinity.weight", "2");
    assert_scored(f, t, n, 74, 200, 0);
}

static void test_erroneous_preference_cancels_all_scores(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n = put_node(f, "n1", "");
    struct cons *draft = fx_draft();
    double score = 0;

    draft->pref_error = true;
    const cons_id c = fx_cons(&f->m, draft);
    const task_id t = put_pod(f, "p", "", NULL, &c);
    assert_int_equal(f->p->score(&f->ssn, f->self, t, &n, 1, &score), 0);
    fx_set(f, "nodeaffinity.weight", "2");
    assert_true(f->p->score(&f->ssn, f->self, t, &n, 1, &score) < 0);
}

static void test_prefer_no_schedule_taints(void **state)
{
    struct fx_plugin *f = *state;
    const struct taint taint[] = {
        {.key = fx_str(&f->m, "a"), .effect = EFFECT_PREFER_NO_SCHEDULE},
        {.key = fx_str(&f->m, "b"), .effect = EFFECT_PREFER_NO_SCHEDULE},
        {.key = fx_str(&f->m, "c"), .effect = EFFECT_NO_SCHEDULE},
    };
    struct cons *draft = fx_draft();
    struct toleration *tol = hk_arena_zalloc(&draft->mem, sizeof(*tol));
    const task_id t = put_pod(f, "p", "", NULL, NULL);
    const node_id plain[] = {put_node(f, "n1", ""), put_node(f, "n0", "")};

    fx_set(f, "tainttoleration.weight", "3");
    assert_scored(f, t, plain, 300, 300);
    assert_true(f->p->score_local(&f->ssn, f->self, t));

    const node_id n[] = {
        plain[0],
        fx_node(&f->m, (struct fx_node){.name = "n2", .labels = "", .taints = taint, .ntaint = 1}),
        fx_node(&f->m, (struct fx_node){.name = "n3", .labels = "", .taints = taint, .ntaint = 3})};
    fx_set(f, "tainttoleration.weight", "1");
    assert_scored(f, t, n, 100, 50, 0);
    assert_false(f->p->score_local(&f->ssn, f->self, t));

    *tol = (struct toleration){.key = fx_str(&f->m, "a"), .exists = true, .any_effect = true};
    draft->ntol = 1;
    draft->tol = tol;
    const cons_id c = fx_cons(&f->m, draft);
    assert_scored(f, put_pod(f, "q", "", NULL, &c), n, 100, 100, 0);
}

/* ---- pods among themselves ---- */

static cons_id preferred_term(struct fx_plugin *f, bool anti, int32_t weight)
{
    struct cons *c = fx_draft();
    const struct pod_term t = fx_term(&f->m, c, "app=web", "host", weight);

    if (anti) {
        c->npref_anti = 1;
        c->pref_anti = fx_terms(c, 1, &t);
    } else {
        c->npref_aff = 1;
        c->pref_aff = fx_terms(c, 1, &t);
    }
    return fx_cons(&f->m, c);
}

static void test_preferred_pod_affinity(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n[] = {put_node(f, "n1", "host=n1"), put_node(f, "n2", "host=n2"),
                         put_node(f, "n3", "host=n3")};
    const cons_id near = preferred_term(f, false, 50);
    const task_id t = put_pod(f, "p", "", NULL, &near);

    fx_set(f, "podaffinity.weight", "1");
    assert_scored(f, t, n, 0, 0, 0);
    put_pod(f, "w1", "app=web", "n1", NULL);
    put_pod(f, "w2", "app=web", "n1", NULL);
    put_pod(f, "w3", "app=web", "n2", NULL);
    assert_scored(f, t, n, 100, 50, 0);
}

static void test_preferred_pod_anti_affinity(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n[] = {put_node(f, "n1", "host=n1"), put_node(f, "n2", "host=n2")};
    const cons_id apart = preferred_term(f, true, 10);

    fx_set(f, "podaffinity.weight", "1");
    put_pod(f, "w1", "app=web", "n1", NULL);
    assert_scored(f, put_pod(f, "p", "", NULL, &apart), n, 0, 100);
}

static void test_terms_of_placed_pods_draw_others_near(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n[] = {put_node(f, "n1", "host=n1"), put_node(f, "n2", "host=n2")};
    const cons_id near = preferred_term(f, false, 5);
    const task_id web = put_pod(f, "web", "app=web", NULL, NULL);
    const task_id other = put_pod(f, "other", "app=db", NULL, NULL);

    fx_set(f, "podaffinity.weight", "2");
    put_pod(f, "fan", "", "n2", &near);
    assert_scored(f, web, n, 0, 200);
    assert_scored(f, other, n, 0, 0);
    assert_false(f->p->score_local(&f->ssn, f->self, web));
    assert_true(f->p->score_local(&f->ssn, f->self, other));
}

/* ---- spread ---- */

static cons_id soft_spread(struct fx_plugin *f, bool system_default)
{
    struct cons *c = fx_draft();
    struct spread *s = hk_arena_zalloc(&c->mem, 2 * sizeof(*s));
    const uint32_t n = system_default ? 2 : 1;

    s[n - 1] = (struct spread){.topo_key = fx_str(&f->m, "topology.kubernetes.io/zone"),
                               .max_skew = system_default ? 5 : 1,
                               .system_default = system_default,
                               .honor_affinity = true,
                               .sel = fx_sel(&f->m, c, "app=web")};
    if (system_default) {
        s[0] = s[1];
        s[0].topo_key = fx_str(&f->m, "kubernetes.io/hostname");
        s[0].max_skew = 3;
    }
    c->nspread = n;
    c->spread = s;
    return fx_cons(&f->m, c);
}

static void test_soft_spread(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n[] = {put_node(f, "a", "topology.kubernetes.io/zone=a"),
                         put_node(f, "b", "topology.kubernetes.io/zone=b"),
                         put_node(f, "c", "topology.kubernetes.io/zone=c"),
                         put_node(f, "bare", "")};
    const cons_id c = soft_spread(f, false);
    const task_id t = put_pod(f, "p", "app=web", NULL, &c);

    fx_set(f, "podtopologyspread.weight", "1");
    assert_scored(f, t, n, 100, 100, 100, 0);
    put_pod(f, "w1", "app=web", "a", NULL);
    put_pod(f, "w2", "app=web", "a", NULL);
    put_pod(f, "w3", "app=web", "b", NULL);
    assert_scored(f, t, n, 0, 33, 100, 0);
    assert_false(f->p->score_local(&f->ssn, f->self, t));
    fx_set(f, "podtopologyspread.weight", "0");
    assert_true(f->p->score_local(&f->ssn, f->self, t));
}

/* Three nodes, zones {a, none}: host weight ln 5, zone weight ln 4.
 * n1: 2 ln 5 + 2 + 3 ln 4 + 4 = 13.4; n2: ln 5 + 2 + 3 ln 4 + 4 = 11.8; n3: 2. */
static void test_default_spread_keeps_nodes_without_a_zone(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n[] = {
        put_node(f, "n1", "topology.kubernetes.io/zone=a kubernetes.io/hostname=n1"),
        put_node(f, "n2", "topology.kubernetes.io/zone=a kubernetes.io/hostname=n2"),
        put_node(f, "n3", "kubernetes.io/hostname=n3")};
    const cons_id c = soft_spread(f, true);

    fx_set(f, "podtopologyspread.weight", "1");
    put_pod(f, "w1", "app=web", "n1", NULL);
    put_pod(f, "w2", "app=web", "n1", NULL);
    put_pod(f, "w3", "app=web", "n2", NULL);
    assert_scored(f, put_pod(f, "p", "app=web", NULL, &c), n, 100 * 2 / 13, 100 * 3 / 13, 100);
}

static void test_logarithm_is_the_usual_one(void **state)
{
    static const struct {
        double x, ln;
    } cases[] = {
        {1, 0},
        {2, 0.6931471805599453},
        {3, 1.0986122886681098},
        {5, 1.6094379124341003},
        {10, 2.302585092994046},
        {5002, 8.517593111437565},
    };

    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        const double have = spread_log(cases[k].x);
        if (have < cases[k].ln - 2e-15 || have > cases[k].ln + 2e-15) {
            fail_msg("ln %g: %.17g, want %.17g", cases[k].x, have, cases[k].ln);
        }
    }
}

/* ---- images ---- */

static void test_image_locality(void **state)
{
    struct fx_plugin *f = *state;
    const uint32_t rare = fx_str(&f->m, "rare:latest"), common = fx_str(&f->m, "common:1");
    const struct image_have images[] = {{common, 800 * MI}, {rare, 500 * MI}};
    struct cons *a = fx_draft(), *b = fx_draft(), *c = fx_draft();
    const uint32_t unknown = fx_str(&f->m, "unknown:1");
    node_id n[4];
    char name[8];

    for (uint32_t k = 0; k < 4; k++) {
        snprintf(name, sizeof(name), "n%u", k);
        n[k] = fx_node(&f->m,
                       (struct fx_node){
                           .name = name, .labels = "", .images = images, .nimage = k == 1 ? 2 : 1});
    }
    *a = (struct cons){.mem = a->mem, .image = &rare, .nimage = 1, .nimage_containers = 1};
    *b = (struct cons){.mem = b->mem, .image = &common, .nimage = 1, .nimage_containers = 1};
    *c = (struct cons){.mem = c->mem, .image = &unknown, .nimage = 1, .nimage_containers = 1};
    const cons_id wants_rare = fx_cons(&f->m, a), wants_common = fx_cons(&f->m, b),
                  wants_unknown = fx_cons(&f->m, c);

    fx_set(f, "imagelocality.weight", "1");
    assert_scored(f, put_pod(f, "p", "", NULL, &wants_rare), n, 0, 10, 0, 0);
    assert_scored(f, put_pod(f, "q", "", NULL, &wants_common), n, 79, 79, 79, 79);
    assert_scored(f, put_pod(f, "r", "", NULL, &wants_unknown), n, 0, 0, 0, 0);
}

/* ---- together ---- */

static void test_default_weights_add_up(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n[] = {put_sized(f, "n1", 2000, 2 * GI), put_sized(f, "n2", 4000, 2 * GI)};
    const task_id t =
        fx_pod(&f->m, (struct fx_pod){.name = "p", .cpu_milli = 1000, .mem_bytes = GI});

    for (uint32_t k = 0; k < f->p->nopt; k++) {
        fx_set(f, f->p->opts[k].key, f->p->opts[k].dflt);
    }
    /* least 50 and 62, balanced 75 and 68, no taints anywhere 3 x 100 */
    assert_scored(f, t, n, 50 + 75 + 300, 62 + 68 + 300);
    assert_true(f->p->score_local(&f->ssn, f->self, t));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, fx_plugin_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_least_and_most_allocated),
        CASE(test_what_does_not_fit_scores_by_what_is_left),
        CASE(test_balanced_allocation),
        CASE(test_gpus_are_part_of_the_balance_of_those_who_ask),
        CASE(test_blocks_score_as_single_nodes_do),
        CASE(test_preferred_node_affinity),
        CASE(test_erroneous_preference_cancels_all_scores),
        CASE(test_prefer_no_schedule_taints),
        CASE(test_preferred_pod_affinity),
        CASE(test_preferred_pod_anti_affinity),
        CASE(test_terms_of_placed_pods_draw_others_near),
        CASE(test_soft_spread),
        CASE(test_default_spread_keeps_nodes_without_a_zone),
        cmocka_unit_test(test_logarithm_is_the_usual_one),
        CASE(test_image_locality),
        CASE(test_default_weights_add_up),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
