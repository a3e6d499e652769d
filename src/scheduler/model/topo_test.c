// SPDX-License-Identifier: Apache-2.0
// Topology counters, compared with known answers for small clusters and with a recount after every
// step of a long random history.
#include "base/clock.h"
#include "scheduler/model/fixture_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int set_up(void **state)
{
    struct model *m = hk_zalloc(sizeof(*m));

    model_init(m);
    *state = m;
    return 0;
}

static int tear_down(void **state)
{
    model_fini(*state);
    hk_free(*state);
    return 0;
}

static void assert_counts_true(const struct model *m)
{
    struct hk_err err = {0};

    if (topo_check(m, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static node_id put_node(struct model *m, const char *name, const char *labels)
{
    return fx_node(
        m,
        (struct fx_node){
            .name = name, .labels = labels, .cpu_milli = 64000, .mem_bytes = 1 << 30, .pods = 110});
}

static task_id put_pod(struct model *m, const char *name, const char *labels, const char *node,
                       const cons_id *c)
{
    return fx_pod(m, (struct fx_pod){.name = name, .labels = labels, .node = node, .cons = c});
}

/* Constraints with one required affinity term per "selector@key". */
static cons_id affinity(struct model *m, const char *sel1, const char *key1, const char *sel2,
                        const char *key2)
{
    struct cons *c = fx_draft();
    const struct pod_term t[] = {fx_term(m, c, sel1, key1, 0),
                                 fx_term(m, c, sel2 ? sel2 : "", key2 ? key2 : "", 0)};

    c->naff = sel2 ? 2 : 1;
    c->aff = fx_terms(c, c->naff, t);
    return fx_cons(m, c);
}

static cons_id anti_affinity(struct model *m, const char *sel, const char *key)
{
    struct cons *c = fx_draft();
    const struct pod_term t = fx_term(m, c, sel, key, 0);

    c->nanti = 1;
    c->anti = fx_terms(c, 1, &t);
    return fx_cons(m, c);
}

static cons_id spread(struct model *m, const char *sel, const char *key, bool honor_taints)
{
    struct cons *c = fx_draft();
    struct spread *s = hk_arena_zalloc(&c->mem, sizeof(*s));

    *s = (struct spread){.topo_key = fx_str(m, key),
                         .max_skew = 1,
                         .min_domains = 1,
                         .hard = true,
                         .honor_affinity = true,
                         .honor_taints = honor_taints,
                         .sel = fx_sel(m, c, sel)};
    c->nspread = 1;
    c->spread = s;
    return fx_cons(m, c);
}

static void test_nothing_is_followed_until_asked(void **state)
{
    struct model *m = *state;

    put_node(m, "n1", "zone=a");
    const task_id t = put_pod(m, "p1", "app=web", "n1", NULL);

    assert_null(topo_plan(m, t));
    assert_null(topo_ident(m, model_task(m, t)->ident));
}

static void test_pods_before_and_after_the_question_count(void **state)
{
    struct model *m = *state;
    const node_id n1 = put_node(m, "n1", "zone=a"), n2 = put_node(m, "n2", "zone=a"),
                  n3 = put_node(m, "n3", "zone=b"), n4 = put_node(m, "n4", "");
    const cons_id c = affinity(m, "app=web", "zone", NULL, NULL);

    put_pod(m, "before", "app=web", "n1", NULL);
    put_pod(m, "other", "app=db", "n1", NULL);
    put_pod(m, "nowhere", "app=web", "n4", NULL);
    const task_id asks = put_pod(m, "asks", "", NULL, &c);
    const struct topo_plan *p = topo_plan(m, asks);
    assert_int_equal(p->naff, 1);
    assert_int_equal(topo_count(p->aff[0], n2), 1);

    const task_id after = put_pod(m, "after", "app=web tier=1", "n2", NULL);
    assert_int_equal(topo_count(p->aff[0], n1), 2);
    assert_int_equal(topo_count(p->aff[0], n3), 0);
    assert_int_equal(topo_count(p->aff[0], n4), 0);
    assert_int_equal(p->aff[0]->total, 2);

    model_task_del(m, after);
    assert_int_equal(topo_count(p->aff[0], n1), 1);
    assert_counts_true(m);
}

static void test_affinity_counts_pods_that_match_all_terms(void **state)
{
    struct model *m = *state;
    const node_id n1 = put_node(m, "n1", "zone=a host=n1");
    const cons_id c = affinity(m, "app=a", "zone", "tier=b", "host");

    put_pod(m, "p1", "app=a", "n1", NULL);
    put_pod(m, "p2", "tier=b", "n1", NULL);
    const struct topo_plan *p = topo_plan(m, put_pod(m, "asks", "", NULL, &c));
    assert_int_equal(p->naff, 2);
    assert_int_equal(p->aff[0]->total + p->aff[1]->total, 0);

    put_pod(m, "p3", "app=a tier=b", "n1", NULL);
    assert_int_equal(topo_count(p->aff[0], n1), 1);
    assert_int_equal(topo_count(p->aff[1], n1), 1);
    assert_counts_true(m);
}

static void test_relabelled_node_takes_its_pods_along(void **state)
{
    struct model *m = *state;
    const node_id n1 = put_node(m, "n1", "zone=a"), n2 = put_node(m, "n2", "zone=b");
    const cons_id c = affinity(m, "app=web", "zone", NULL, NULL);

    put_pod(m, "p1", "app=web", "n1", NULL);
    const struct topo_plan *p = topo_plan(m, put_pod(m, "asks", "", NULL, &c));

    put_node(m, "n1", "zone=b");
    assert_int_equal(topo_count(p->aff[0], n2), 1);
    put_node(m, "n1", "");
    assert_int_equal(topo_count(p->aff[0], n2), 0);
    assert_int_equal(p->aff[0]->total, 0);
    put_node(m, "n1", "zone=c");
    assert_int_equal(topo_count(p->aff[0], n1), 1);
    model_node_del(m, n1);
    assert_int_equal(p->aff[0]->total, 0);
    assert_counts_true(m);
}

static void test_terms_of_placed_and_waiting_pods_are_in_play(void **state)
{
    struct model *m = *state;
    const node_id n1 = put_node(m, "n1", "host=n1"), n2 = put_node(m, "n2", "host=n2");
    const cons_id c = anti_affinity(m, "app=web", "host");
    const task_id owner = put_pod(m, "owner", "app=db", NULL, &c);
    const task_id web = put_pod(m, "web", "app=web", NULL, NULL);
    const task_id other = put_pod(m, "other", "app=x", NULL, NULL);

    const struct topo_ident *i = topo_ident(m, model_task(m, web)->ident);
    assert_int_equal(i->anti.len, 1);
    assert_int_equal(topo_count(i->anti.at[0], n1), 0);
    assert_int_equal(topo_ident(m, model_task(m, other)->ident)->anti.len, 0);

    model_task_move(m, owner, TASK_ALLOCATED, n1);
    i = topo_ident(m, model_task(m, web)->ident);
    assert_int_equal(topo_count(i->anti.at[0], n1), 1);
    assert_int_equal(topo_count(i->anti.at[0], n2), 0);

    model_task_view(m, owner, false);
    assert_int_equal(i->anti.at[0]->total, 0);
    model_task_view(m, owner, true);
    assert_int_equal(i->anti.at[0]->total, 1);
    assert_counts_true(m);
}

static void test_counters_die_with_their_cons(void **state)
{
    struct model *m = *state;
    const cons_id c = anti_affinity(m, "app=web", "host");

    put_node(m, "n1", "host=n1");
    const task_id owner = put_pod(m, "owner", "app=db", "n1", &c);
    const task_id web = put_pod(m, "web", "app=web", "n1", NULL);
    topo_plan(m, owner);
    assert_int_equal(topo_ident(m, model_task(m, web)->ident)->adds.len, 1);

    model_task_del(m, owner);
    assert_int_equal(topo_ident(m, model_task(m, web)->ident)->adds.len, 0);
    assert_int_equal(topo_ident(m, model_task(m, web)->ident)->anti.len, 0);
    assert_counts_true(m);
}

static void test_namespace_selectors_follow_namespace_labels(void **state)
{
    struct model *m = *state;
    struct cons *draft = fx_draft();
    struct pod_term t = fx_term(m, draft, "app=db", "host", 0);
    const struct label team = {fx_str(m, "team"), fx_str(m, "x")};

    t.nns = 0;
    t.has_ns_sel = true;
    t.ns_sel = fx_sel(m, draft, "team=x");
    draft->nanti = 1;
    draft->anti = fx_terms(draft, 1, &t);
    const cons_id c = fx_cons(m, draft);
    put_node(m, "n1", "host=n1");
    const task_id owner = put_pod(m, "owner", "", "n1", &c);
    const task_id db =
        fx_pod(m, (struct fx_pod){.name = "db", .ns = "ns2", .labels = "app=db", .node = "n1"});
    const struct topo_plan *p = topo_plan(m, owner);

    assert_int_equal(p->anti[0]->total, 0);
    assert_int_equal(topo_ident(m, model_task(m, db)->ident)->anti.len, 0);
    model_namespace_put(m, fx_str(m, "ns2"), &team, 1);
    topo_namespace_changed(m);
    assert_int_equal(p->anti[0]->total, 1);
    assert_int_equal(topo_ident(m, model_task(m, db)->ident)->anti.len, 1);
    assert_counts_true(m);
}

/* A namespace selector with only NotIn matches every namespace in an incoming pod's term, but not
 * in the term of a placed pod. */
static void test_negative_namespace_selector_is_lopsided(void **state)
{
    struct model *m = *state;
    struct cons *draft = fx_draft();
    struct pod_term t = fx_term(m, draft, "app=db", "host", 0);
    const struct label team = {fx_str(m, "team"), fx_str(m, "x")};

    t.nns = 0;
    t.has_ns_sel = true;
    t.ns_sel = fx_sel(m, draft, "team=x");
    ((struct label_req *)t.ns_sel.at)->op = OP_NOT_IN;
    draft->nanti = 1;
    draft->anti = fx_terms(draft, 1, &t);
    const cons_id c = fx_cons(m, draft);
    model_namespace_put(m, fx_str(m, "ns2"), &team, 1);
    put_node(m, "n1", "host=n1");
    const task_id owner = put_pod(m, "owner", "", "n1", &c);
    const task_id db =
        fx_pod(m, (struct fx_pod){.name = "db", .ns = "ns2", .labels = "app=db", .node = "n1"});

    assert_int_equal(topo_plan(m, owner)->anti[0]->total, 1);
    assert_int_equal(topo_ident(m, model_task(m, db)->ident)->anti.len, 0);
}

static void test_spread_leaves_out_nodes_and_terminating_pods(void **state)
{
    struct model *m = *state;
    const struct taint taint = {.key = fx_str(m, "k"), .effect = EFFECT_NO_SCHEDULE};
    const cons_id c = spread(m, "app=web", "zone", true);
    const node_id n1 = put_node(m, "n1", "zone=a");

    fx_node(m, (struct fx_node){.name = "n2", .labels = "zone=b", .taints = &taint, .ntaint = 1});
    put_node(m, "n3", "");
    put_pod(m, "p1", "app=web", "n1", NULL);
    put_pod(m, "p2", "app=web", "n2", NULL);
    fx_pod(m, (struct fx_pod){.name = "p3", .ns = "far", .labels = "app=web", .node = "n1"});
    fx_pod(m, (struct fx_pod){
                  .name = "p4", .labels = "app=web", .node = "n1", .flags = TASK_TERMINATING});
    struct topo_counter *s = topo_plan(m, put_pod(m, "asks", "app=web", NULL, &c))->spread[0];

    assert_int_equal(topo_count(s, n1), 1);
    assert_int_equal(s->total, 1);
    assert_int_equal(s->ndomain, 1);
    assert_int_equal(topo_min(s), 1);
    put_node(m, "n2", "zone=b");
    assert_int_equal(s->ndomain, 2);
    assert_int_equal(s->total, 2);
    put_node(m, "n3", "zone=c");
    assert_int_equal(topo_min(s), 0);
    assert_counts_true(m);

    /* A pod that is already counted is deleted. */
    fx_pod(m, (struct fx_pod){
                  .name = "p1", .labels = "app=web", .node = "n1", .flags = TASK_TERMINATING});
    assert_int_equal(topo_count(s, n1), 0);
    assert_counts_true(m);
}

/* ---- a long history ---- */

enum { NNODE = 9, NPOD = 40, NCONS = 6, STEPS = 4000 };

static const char *const pod_labels[] = {"app=a",        "app=b",  "app=a tier=x",
                                         "app=b tier=x", "tier=y", ""};
static const char *const node_labels[] = {"zone=a host=%u", "zone=b host=%u", "zone=c", "host=%u",
                                          ""};

static cons_id random_cons(struct model *m, struct hk_rand *r)
{
    static const char *const keys[] = {"zone", "host", "kubernetes.io/hostname"};
    struct cons *c = fx_draft();
    struct spread *s = hk_arena_zalloc(&c->mem, 2 * sizeof(*s));

    const struct pod_term t[] = {
        fx_term(m, c, pod_labels[hk_rand_below(r, 6)], keys[hk_rand_below(r, 2)], 7),
        fx_term(m, c, pod_labels[hk_rand_below(r, 6)], keys[hk_rand_below(r, 2)], 3),
    };
    c->naff = hk_rand_below(r, 3);
    c->aff = fx_terms(c, 2, t);
    c->nanti = hk_rand_below(r, 2);
    c->anti = fx_terms(c, 2, t);
    c->npref_aff = hk_rand_below(r, 2);
    c->pref_aff = fx_terms(c, 2, t);
    c->npref_anti = hk_rand_below(r, 2);
    c->pref_anti = fx_terms(c, 2, t);
    c->nspread = hk_rand_below(r, 3);
    for (uint32_t k = 0; k < c->nspread; k++) {
        s[k] = (struct spread){.topo_key = fx_str(m, keys[hk_rand_below(r, 3)]),
                               .max_skew = 1,
                               .hard = hk_rand_below(r, 2),
                               .honor_taints = hk_rand_below(r, 2),
                               .sel = fx_sel(m, c, pod_labels[hk_rand_below(r, 6)])};
    }
    c->spread = s;
    return fx_cons(m, c);
}

static void random_node(struct model *m, struct hk_rand *r)
{
    const uint32_t k = hk_rand_below(r, NNODE);
    const struct taint taint = {.key = fx_str(m, "k"), .effect = EFFECT_NO_EXECUTE};
    char name[16], labels[64];

    snprintf(name, sizeof(name), "n%u", k);
    const node_id have = model_node_find(m, hk_str(name));
    if (!id_none(have) && hk_rand_below(r, 4) == 0) {
        model_node_del(m, have);
        return;
    }
    const char *form = node_labels[hk_rand_below(r, HK_LEN(node_labels))];
    const char *percent = strchr(form, '%');
    snprintf(labels, sizeof(labels), "%.*s%s", percent ? (int)(percent - form) : (int)strlen(form),
             form, percent ? name : "");
    fx_node(m,
            (struct fx_node){
                .name = name, .labels = labels, .taints = &taint, .ntaint = hk_rand_below(r, 2)});
}

static void random_pod(struct model *m, struct hk_rand *r, const cons_id *cons)
{
    char name[16], node[16];

    snprintf(name, sizeof(name), "p%u", hk_rand_below(r, NPOD));
    snprintf(node, sizeof(node), "n%u", hk_rand_below(r, NNODE));
    const task_id have = model_task_find(m, HK_STR("ns"), hk_str(name));
    if (!id_none(have) && hk_rand_below(r, 2) == 0) {
        model_task_del(m, have);
        return;
    }
    if (!id_none(have) && !id_none(model_task(m, have)->node)) {
        model_task_view(m, have, hk_rand_below(r, 2));
        return;
    }
    fx_pod(m, (struct fx_pod){.name = name,
                              .labels = pod_labels[hk_rand_below(r, HK_LEN(pod_labels))],
                              .node = node,
                              .cons = hk_rand_below(r, 2) ? &cons[hk_rand_below(r, NCONS)] : NULL,
                              .flags = hk_rand_below(r, 4) == 0 ? TASK_TERMINATING : 0});
}

static int32_t recounted_min(const struct topo_counter *c)
{
    int32_t min = INT32_MAX;

    for (uint32_t d = 0; d < c->key->len; d++) {
        const int32_t have = topo_at(c, d);
        min = c->in_domain[d] > 0 && have < min ? have : min;
    }
    return c->ndomain > 0 ? min : 0;
}

static void test_counts_stay_true_through_a_long_history(void **state)
{
    struct model *m = *state;
    struct hk_rand r;
    cons_id cons[NCONS];
    task_id keeper[NCONS];
    char name[16];

    hk_rand_seed(&r, 42);
    for (uint32_t step = 0; step < STEPS; step++) {
        const uint32_t k = step % NCONS;
        if (step < NCONS || step % 97 == 0) {
            /* The keeper holds the last reference once other pods with the constraint are gone: ids
             * get reused. */
            snprintf(name, sizeof(name), "keeper%u", k);
            cons[k] = random_cons(m, &r);
            keeper[k] = put_pod(m, name, "app=a", NULL, &cons[k]);
        } else if (hk_rand_below(&r, 4) == 0) {
            random_node(m, &r);
        } else if (step > NCONS) {
            random_pod(m, &r, cons);
        }
        const struct topo_plan *p = topo_plan(m, keeper[k]);
        for (uint32_t s = 0; p && s < p->nspread; s++) {
            if (p->spread[s]->included) {
                assert_int_equal(topo_min(p->spread[s]), recounted_min(p->spread[s]));
            }
        }
        assert_counts_true(m);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_nothing_is_followed_until_asked),
        CASE(test_pods_before_and_after_the_question_count),
        CASE(test_affinity_counts_pods_that_match_all_terms),
        CASE(test_relabelled_node_takes_its_pods_along),
        CASE(test_terms_of_placed_and_waiting_pods_are_in_play),
        CASE(test_counters_die_with_their_cons),
        CASE(test_namespace_selectors_follow_namespace_labels),
        CASE(test_negative_namespace_selector_is_lopsided),
        CASE(test_spread_leaves_out_nodes_and_terminating_pods),
        CASE(test_counts_stay_true_through_a_long_history),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
