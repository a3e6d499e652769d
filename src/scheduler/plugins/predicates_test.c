// SPDX-License-Identifier: Apache-2.0
// The filters: which nodes pass, and the messages for those that do not.
#include "scheduler/model/volumes.h"
#include "scheduler/plugins/fixture_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

extern const struct plugin plugin_predicates;

static int set_up(void **state)
{
    *state = fx_plugin_new(&plugin_predicates);
    return 0;
}

/* The answer for one node: "" when it passes, else its reasons joined by "; ". */
static const char *answer(struct fx_plugin *f, task_id t, node_id n, enum filter_mode mode)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    uint64_t never[4] = {0};
    struct fit_log log = {.mem = &f->mem, .never = never, .never_words = 4};
    const uint32_t kept = f->p->filter(&f->ssn, f->self, t, mode, &n, 1, &log);

    assert_int_equal(kept, log.nnodes == 0);
    for (uint32_t k = 0; k < log.n; k++) {
        hk_buf_adds(&b, k > 0 ? "; " : "");
        reason_write(&f->m, log.at[k].why, &b);
    }
    return hk_arena_strndup(&f->mem, b.data ? b.data : "", b.len);
}

#define assert_answer(f, t, n, want) assert_string_equal(answer(f, t, n, FILTER_PLACE), want)

#define FULL "node(s) pod number exceeded"
#define CORDONED "node(s) were unschedulable"
#define AFFINITY "node(s) didn't match Pod's node affinity/selector"
#define TAINTED "node(s) had untolerated taint(s)"
#define PORTS "node(s) didn't have free ports for the requested pod ports"
#define POD_AFFINITY "node(s) didn't match pod affinity rules"
#define ANTI "node(s) didn't match pod anti-affinity rules"
#define EXISTING "node(s) didn't satisfy existing pods anti-affinity rules"
#define SKEW "node(s) didn't match pod topology spread constraints"

/* ---- pod count and what nodes offer ---- */

static void test_plain_pods_fill_a_node_to_its_pod_count(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n = fx_node(&f->m, (struct fx_node){.name = "n1", .labels = "", .pods = 2});
    const task_id t = put_pod(f, "p3", "", NULL, NULL);

    put_pod(f, "p1", "", "n1", NULL);
    assert_answer(f, t, n, "");
    put_pod(f, "p2", "", "n1", NULL);
    assert_answer(f, t, n, FULL);
    assert_string_equal(answer(f, t, n, FILTER_EVICT), "");
}

static void test_passing_nodes_keep_their_order(void **state)
{
    struct fx_plugin *f = *state;
    node_id nodes[4];
    const char *const names[] = {"n0", "n1", "n2", "n3"};

    for (uint32_t k = 0; k < 4; k++) {
        nodes[k] = fx_node(&f->m, (struct fx_node){.name = names[k],
                                                   .labels = "",
                                                   .pods = 9,
                                                   .flags = k == 1 ? NODE_UNSCHEDULABLE : 0});
    }
    const task_id t = put_pod(f, "p", "", NULL, NULL);
    assert_int_equal(f->p->filter(&f->ssn, f->self, t, FILTER_PLACE, nodes, 4, NULL), 3);
    assert_int_equal(nodes[0].i, 0);
    assert_int_equal(nodes[1].i, 2);
    assert_int_equal(nodes[2].i, 3);
}

static void test_static_filters_stop_at_the_first(void **state)
{
    struct fx_plugin *f = *state;
    const struct taint taint = {.key = fx_str(&f->m, "k"), .effect = EFFECT_NO_SCHEDULE};
    struct cons *draft = fx_draft();
    struct label *sel = hk_arena_alloc(&draft->mem, sizeof(*sel));

    draft->nsel = fx_labels(&f->m, "disk=ssd", sel, 1);
    draft->sel = sel;
    const cons_id c = fx_cons(&f->m, draft);
    const task_id t = put_pod(f, "p", "", NULL, &c), plain = put_pod(f, "q", "", NULL, NULL);
    const node_id n = fx_node(
        &f->m,
        (struct fx_node){.name = "n", .labels = "", .pods = 9, .taints = &taint, .ntaint = 1});
    const node_id full = fx_node(
        &f->m, (struct fx_node){.name = "full", .labels = "", .taints = &taint, .ntaint = 1});
    const node_id cordoned = fx_node(&f->m, (struct fx_node){.name = "c",
                                                             .labels = "",
                                                             .pods = 9,
                                                             .taints = &taint,
                                                             .ntaint = 1,
                                                             .flags = NODE_UNSCHEDULABLE});

    assert_answer(f, t, n, AFFINITY);
    assert_answer(f, plain, n, TAINTED);
    assert_answer(f, plain, full, FULL "; " TAINTED);
    assert_answer(f, t, cordoned, CORDONED);
    assert_string_equal(answer(f, plain, n, FILTER_EVICT), TAINTED);

    fx_set(f, "predicate.NodeAffinityEnable", "false");
    assert_answer(f, t, n, TAINTED);
    fx_set(f, "predicate.TaintTolerationEnable", "false");
    assert_answer(f, t, n, "");
    assert_answer(f, t, cordoned, CORDONED);
}

static void test_conflicting_node_names_refuse_everywhere(void **state)
{
    struct fx_plugin *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct cons *draft = fx_draft();
    struct reason why;

    draft->has_terms = draft->name_conflict = true;
    const cons_id c = fx_cons(&f->m, draft);
    const task_id t = put_pod(f, "p", "", NULL, &c);
    assert_false(f->p->pre_predicate(&f->ssn, f->self, t, &why));
    reason_write(&f->m, why, &text);
    assert_string_equal(text.data,
                        "plugin NodeAffinity pre-predicates failed pod affinity terms conflict");
}

static void test_forgotten_node_is_refused_for_good(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n = put_node(f, "n1", "");

    put_pod(f, "p1", "", "n1", NULL);
    const task_id t = put_pod(f, "p2", "", NULL, NULL);
    model_node_del(&f->m, n);
    assert_string_equal(answer(f, t, n, FILTER_EVICT), "node info not found");
}

/* ---- ports ---- */

static cons_id port(struct fx_plugin *f, const char *ip, uint16_t number, uint8_t proto)
{
    struct cons *c = fx_draft();
    struct host_port *p = hk_arena_zalloc(&c->mem, sizeof(*p));

    *p = (struct host_port){.ip = fx_str(&f->m, ip), .port = number, .proto = proto};
    c->nport = 1;
    c->port = p;
    return fx_cons(&f->m, c);
}

static void test_host_ports_clash_by_number_protocol_and_address(void **state)
{
    static const struct {
        const char *want_ip, *used_ip;
        uint16_t want, used;
        uint8_t want_proto, used_proto;
        const char *answer;
    } cases[] = {
        {"127.0.0.1", "0.0.0.0", 80, 80, 0, 0, PORTS},
        {"127.0.0.1", "10.0.0.1", 80, 80, 0, 0, ""},
        {"0.0.0.0", "0.0.0.0", 80, 80, 1, 0, ""},
        {"0.0.0.0", "10.0.0.1", 80, 80, 0, 0, PORTS},
        {"0.0.0.0", "0.0.0.0", 8080, 8080, 0, 0, PORTS},
        {"0.0.0.0", "0.0.0.0", 8080, 8081, 0, 0, ""},
        {"::", "10.0.0.1", 80, 80, 0, 0, ""}, /* not a wildcard */
    };

    for (uint32_t k = 0; k < HK_LEN(cases); k++) {
        struct fx_plugin f;
        fx_plugin_init(&f, &plugin_predicates);
        const node_id n = put_node(&f, "n1", "");
        const cons_id used = port(&f, cases[k].used_ip, cases[k].used, cases[k].used_proto);
        const cons_id want = port(&f, cases[k].want_ip, cases[k].want, cases[k].want_proto);
        put_pod(&f, "p1", "", "n1", &used);
        assert_answer(&f, put_pod(&f, "p2", "", NULL, &want), n, cases[k].answer);
        fx_plugin_fini(&f);
    }
}

/* ---- pods among themselves ---- */

static cons_id terms(struct fx_plugin *f, bool anti, const char *sel1, const char *sel2,
                     const char *key)
{
    struct cons *c = fx_draft();
    const struct pod_term t[] = {fx_term(&f->m, c, sel1, key, 0),
                                 fx_term(&f->m, c, sel2 ? sel2 : "", key, 0)};
    const uint32_t n = sel2 ? 2 : 1;

    if (anti) {
        c->nanti = n;
        c->anti = fx_terms(c, n, t);
    } else {
        c->naff = n;
        c->aff = fx_terms(c, n, t);
    }
    return fx_cons(&f->m, c);
}

static void test_first_pod_of_a_group_may_start_it(void **state)
{
    struct fx_plugin *f = *state;
    const node_id a = put_node(f, "a", "zone=a"), b = put_node(f, "b", "zone=b"),
                  bare = put_node(f, "bare", "");
    const cons_id c = terms(f, false, "app=web", NULL, "zone");
    const task_id t = put_pod(f, "web", "app=web", NULL, &c);
    const task_id stranger = put_pod(f, "db", "app=db", NULL, &c);

    assert_answer(f, t, a, "");
    assert_answer(f, t, bare, POD_AFFINITY);
    assert_answer(f, stranger, a, POD_AFFINITY);

    put_pod(f, "running", "app=web", "a", NULL);
    assert_answer(f, t, a, "");
    assert_answer(f, t, b, POD_AFFINITY);
    assert_answer(f, stranger, a, "");
    assert_string_equal(answer(f, t, b, FILTER_EVICT), POD_AFFINITY);

    fx_set(f, "predicate.PodAffinityEnable", "false");
    assert_answer(f, t, b, "");
}

static void test_one_pod_must_match_all_affinity_terms(void **state)
{
    struct fx_plugin *f = *state;
    const node_id z = put_node(f, "z", "zone=z");
    const cons_id c = terms(f, false, "app=a", "tier=b", "zone");
    const task_id t = put_pod(f, "asks", "", NULL, &c);

    put_pod(f, "pa", "app=a", "z", NULL);
    put_pod(f, "pb", "tier=b", "z", NULL);
    assert_answer(f, t, z, POD_AFFINITY);
    put_pod(f, "pab", "app=a tier=b", "z", NULL);
    assert_answer(f, t, z, "");
}

static void test_anti_affinity_works_both_ways(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n1 = put_node(f, "n1", "host=n1"), n2 = put_node(f, "n2", "host=n2");
    const cons_id c = terms(f, true, "app=web", NULL, "host");
    const task_id guard = put_pod(f, "guard", "app=db", NULL, &c);
    const task_id web = put_pod(f, "web", "app=web", NULL, NULL);

    model_task_move(&f->m, web, TASK_ALLOCATED, n1);
    assert_answer(f, guard, n1, ANTI);
    assert_answer(f, guard, n2, "");
    model_task_move(&f->m, web, TASK_PENDING, NO_NODE);

    /* Placed in this session: upstream would not see it. */
    model_task_move(&f->m, guard, TASK_PIPELINED, n1);
    assert_answer(f, web, n1, EXISTING);
    assert_answer(f, web, n2, "");
    assert_string_equal(answer(f, web, n1, FILTER_EVICT), "");

    model_task_move(&f->m, guard, TASK_PENDING, NO_NODE);
    assert_answer(f, web, n1, "");
}

static void test_reasons_that_eviction_can_mend_add_up(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n = put_node(f, "n1", "host=n1");
    struct cons *draft = fx_draft();
    const struct pod_term t = fx_term(&f->m, draft, "app=web", "host", 0);
    struct host_port *p = hk_arena_zalloc(&draft->mem, sizeof(*p));

    *p = (struct host_port){.ip = fx_str(&f->m, "0.0.0.0"), .port = 80};
    draft->nport = 1;
    draft->port = p;
    draft->nanti = 1;
    draft->anti = fx_terms(draft, 1, &t);
    const cons_id c = fx_cons(&f->m, draft);
    put_pod(f, "p1", "app=web", "n1", &c);
    assert_answer(f, put_pod(f, "p2", "app=web", NULL, &c), n, PORTS "; " ANTI);
}

/* ---- spread ---- */

static cons_id spread(struct fx_plugin *f, int32_t min_domains, bool honor_taints)
{
    struct cons *c = fx_draft();
    struct spread *s = hk_arena_zalloc(&c->mem, sizeof(*s));

    *s = (struct spread){.topo_key = fx_str(&f->m, "zone"),
                         .max_skew = 1,
                         .min_domains = min_domains,
                         .hard = true,
                         .honor_affinity = true,
                         .honor_taints = honor_taints,
                         .sel = fx_sel(&f->m, c, "app=web")};
    c->nspread = 1;
    c->spread = s;
    return fx_cons(&f->m, c);
}

static void run_on(struct fx_plugin *f, const char *node, uint32_t n)
{
    char name[32];

    for (uint32_t k = 0; k < n; k++) {
        snprintf(name, sizeof(name), "%s-%u", node, k);
        put_pod(f, name, "app=web", node, NULL);
    }
}

static void test_skew_is_kept_within_bounds(void **state)
{
    struct fx_plugin *f = *state;
    const node_id a = put_node(f, "a", "zone=a"), b = put_node(f, "b", "zone=b"),
                  bare = put_node(f, "bare", "");
    const cons_id c = spread(f, 1, false), wide = spread(f, 4, false);
    const task_id t = put_pod(f, "t", "app=web", NULL, &c),
                  w = put_pod(f, "w", "app=web", NULL, &wide);

    put_node(f, "c", "zone=c");
    run_on(f, "a", 3);
    run_on(f, "b", 1);
    run_on(f, "c", 1);
    assert_answer(f, t, a, SKEW);
    assert_answer(f, t, b, "");
    assert_answer(f, t, bare, SKEW " (missing required label)");
    assert_answer(f, w, b, SKEW);
    assert_string_equal(answer(f, t, a, FILTER_EVICT), "");

    fx_set(f, "predicate.PodTopologySpreadEnable", "false");
    assert_answer(f, t, a, "");
}

static void test_tainted_zone_counts_unless_taints_are_honoured(void **state)
{
    struct fx_plugin *f = *state;
    const struct taint taint = {.key = fx_str(&f->m, "k"), .effect = EFFECT_NO_SCHEDULE};
    const node_id a = put_node(f, "a", "zone=a"), b = put_node(f, "b", "zone=b");
    const cons_id ignore = spread(f, 1, false), honour = spread(f, 1, true);
    const task_id i = put_pod(f, "i", "app=web", NULL, &ignore),
                  h = put_pod(f, "h", "app=web", NULL, &honour);

    fx_node(&f->m, (struct fx_node){
                       .name = "c", .labels = "zone=c", .pods = 9, .taints = &taint, .ntaint = 1});
    run_on(f, "a", 1);
    run_on(f, "b", 1);
    assert_answer(f, i, a, SKEW);
    assert_answer(f, i, b, SKEW);
    assert_answer(f, h, a, "");
    assert_answer(f, h, b, "");
}

/* ---- volumes ---- */

static cons_id claim(struct fx_plugin *f, enum binding_mode mode)
{
    struct model *m = &f->m;
    struct cons *c = fx_draft();
    uint32_t *key = hk_arena_alloc(&c->mem, sizeof(*key));

    *key = fx_str(m, "ns/data");
    volumes_class_put(m, &(struct storage_class_desc){.name = fx_str(m, "disk"),
                                                      .provisioner = fx_str(m, "example.com/disk"),
                                                      .mode = mode});
    volumes_claim_put(m,
                      &(struct claim_desc){.key = *key, .class_ = fx_str(m, "disk"), .request = 1});
    c->nclaim = 1;
    c->claim = key;
    c->claim_ephemeral = hk_arena_zalloc(&c->mem, sizeof(bool));
    return fx_cons(m, c);
}

static void test_zone_speaks_before_binding_of_an_unbound_claim(void **state)
{
    struct fx_plugin *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const cons_id c = claim(f, BINDING_IMMEDIATE);
    const task_id t = put_pod(f, "p", "", NULL, &c);
    struct reason why;

    assert_false(f->p->pre_predicate(&f->ssn, f->self, t, &why));
    reason_write(&f->m, why, &text);
    assert_string_equal(text.data,
                        "plugin VolumeZone pre-predicates failed PersistentVolume had no name");

    fx_set(f, "predicate.VolumeZoneEnable", "false");
    hk_buf_clear(&text);
    assert_false(f->p->pre_predicate(&f->ssn, f->self, t, &why));
    reason_write(&f->m, why, &text);
    assert_string_equal(text.data, "plugin VolumeBinding pre-predicates failed pod has unbound "
                                   "immediate PersistentVolumeClaims");

    fx_set(f, "predicate.VolumeBindingEnable", "false");
    assert_true(f->p->pre_predicate(&f->ssn, f->self, t, &why));
}

static void test_volumes_are_held_for_allocated_tasks_only(void **state)
{
    struct fx_plugin *f = *state;
    const node_id n = put_node(f, "n1", "");
    const cons_id c = claim(f, BINDING_WAIT);
    const task_id t = put_pod(f, "p", "", NULL, &c);
    struct volume_bind bind;

    assert_answer(f, t, n, "");
    assert_false(f->p->filter_local(&f->ssn, f->self, t));
    model_task_move(&f->m, t, TASK_PIPELINED, n);
    assert_true(f->p->allocate(&f->ssn, f->self, t));
    assert_int_equal(volumes_reserved(&f->m, t, &bind, 1), 0);

    model_task_move(&f->m, t, TASK_ALLOCATED, n);
    assert_true(f->p->allocate(&f->ssn, f->self, t));
    assert_int_equal(volumes_reserved(&f->m, t, &bind, 1), 1);
    f->p->deallocate(&f->ssn, f->self, t);
    assert_int_equal(volumes_reserved(&f->m, t, &bind, 1), 0);
}

/* ---- what a placement can change ---- */

static void test_answers_are_local_unless_pods_look_at_pods(void **state)
{
    struct fx_plugin *f = *state;
    const task_id plain = put_pod(f, "plain", "app=web", NULL, NULL);
    const cons_id used = port(f, "0.0.0.0", 80, 0);
    const task_id with_port = put_pod(f, "port", "", NULL, &used);

    assert_true(f->p->filter_local(&f->ssn, f->self, plain));
    assert_true(f->p->filter_local(&f->ssn, f->self, with_port));

    const cons_id even = spread(f, 1, false);
    const task_id spreads = put_pod(f, "spreads", "", NULL, &even);
    assert_false(f->p->filter_local(&f->ssn, f->self, spreads));

    /* Still pending, but its term would apply to the plain pod once it is placed. */
    const cons_id c = terms(f, true, "app=web", NULL, "host");
    const task_id guard = put_pod(f, "guard", "app=db", NULL, &c);
    assert_false(f->p->filter_local(&f->ssn, f->self, guard));
    assert_false(f->p->filter_local(&f->ssn, f->self, plain));
    assert_true(f->p->filter_local(&f->ssn, f->self, with_port));

    fx_set(f, "predicate.PodAffinityEnable", "false");
    assert_true(f->p->filter_local(&f->ssn, f->self, plain));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, fx_plugin_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_plain_pods_fill_a_node_to_its_pod_count),
        CASE(test_passing_nodes_keep_their_order),
        CASE(test_static_filters_stop_at_the_first),
        CASE(test_conflicting_node_names_refuse_everywhere),
        CASE(test_forgotten_node_is_refused_for_good),
        cmocka_unit_test(test_host_ports_clash_by_number_protocol_and_address),
        CASE(test_first_pod_of_a_group_may_start_it),
        CASE(test_one_pod_must_match_all_affinity_terms),
        CASE(test_anti_affinity_works_both_ways),
        CASE(test_reasons_that_eviction_can_mend_add_up),
        CASE(test_skew_is_kept_within_bounds),
        CASE(test_tainted_zone_counts_unless_taints_are_honoured),
        CASE(test_zone_speaks_before_binding_of_an_unbound_claim),
        CASE(test_volumes_are_held_for_allocated_tasks_only),
        CASE(test_answers_are_local_unless_pods_look_at_pods),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
