// SPDX-License-Identifier: Apache-2.0
// Volume limits, zones, binding and reservations over a model of four nodes made by hand.

#include "scheduler/model/volumes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { NNODE = 4, NTASK = 6, MAX = 8 };
#define GI ((int64_t)1 << 30)

/* Task i has shape i and constraints i; nodes are n0 to n3. */
struct world {
    struct model m;
    struct task tasks[NTASK];
    struct shape shapes[NTASK];
    struct cons cons[NTASK], *cons_at[NTASK];
    uint32_t claim[NTASK][MAX];
    bool ephemeral[NTASK][MAX];
    struct labels labels[NNODE];
    struct label label[NNODE][MAX];
    uint32_t name[NNODE];
    task_id first[NNODE];
};

static uint32_t id(struct world *w, const char *s)
{
    return hk_intern(&w->m.str, hk_str(s));
}

static int cmp_label(const void *a, const void *b)
{
    const struct label *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

/* Reads "key=value key=value". */
static struct labels labels_of(struct world *w, struct label *at, const char *text)
{
    struct hk_str rest = hk_str(text), part;
    uint32_t n = 0;

    while (*text && hk_str_cut(&rest, ' ', &part)) {
        struct hk_str key;
        hk_str_cut(&part, '=', &key);
        at[n].key = hk_intern(&w->m.str, key);
        at[n++].val = hk_intern(&w->m.str, part);
    }
    qsort(at, n, sizeof(*at), cmp_label);
    return (struct labels){at, n};
}

static void set_node(struct world *w, uint32_t n, const char *labels)
{
    w->labels[n] = labels_of(w, w->label[n], labels);
}

static int setup(void **state)
{
    struct world *w = hk_zalloc(sizeof(*w));

    w->m.volumes = volumes_new();
    w->m.tasks.at = w->tasks;
    w->m.tasks.len = NTASK;
    w->m.shapes.at = w->shapes;
    w->m.cons.at = w->cons_at;
    w->m.nodes.labels = w->labels;
    w->m.nodes.name = w->name;
    w->m.nodes.first = w->first;
    for (uint32_t i = 0; i < NTASK; i++) {
        char name[8];
        snprintf(name, sizeof(name), "p%u", i);
        w->tasks[i] =
            (struct task){.used = true, .shape = {i}, .flags = TASK_IN_VIEW, .node_next = NO_TASK};
        w->tasks[i].ns = id(w, "ns");
        w->tasks[i].name = id(w, name);
        w->tasks[i].uid = id(w, name);
        w->shapes[i].cons = (cons_id){i};
        w->cons[i].claim = w->claim[i];
        w->cons[i].claim_ephemeral = w->ephemeral[i];
        w->cons_at[i] = &w->cons[i];
    }
    for (uint32_t i = 0; i < NNODE; i++) {
        char label[16];
        snprintf(label, sizeof(label), "host=n%u", i);
        set_node(w, i, label);
        w->name[i] = id(w, label + 5);
        w->first[i] = NO_TASK;
    }
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    volumes_free(w->m.volumes);
    hk_vec_fini(&w->m.words);
    hk_map_fini(&w->m.word_age);
    hk_intern_fini(&w->m.str);
    hk_free(w);
    return 0;
}

/* Gives the task the claims "a b": ns/a and ns/b. A '!' in front makes one ephemeral. */
static void set_claims(struct world *w, uint32_t t, const char *names)
{
    struct hk_str rest = hk_str(names), part;

    w->cons[t].nclaim = 0;
    while (*names && hk_str_cut(&rest, ' ', &part)) {
        const bool ephemeral = part.s[0] == '!';
        char key[32];
        snprintf(key, sizeof(key), "ns/%.*s", (int)(part.n - ephemeral), part.s + ephemeral);
        w->ephemeral[t][w->cons[t].nclaim] = ephemeral;
        w->claim[t][w->cons[t].nclaim++] = id(w, key);
    }
}

static void put_on(struct world *w, uint32_t t, uint32_t n)
{
    w->tasks[t].node = (node_id){n};
    w->tasks[t].node_next = w->first[n];
    w->first[n] = (task_id){t};
}

/* ---- objects; cases set further fields ---- */

static struct claim_desc claim_of(struct world *w, const char *key, const char *class_,
                                  int64_t size)
{
    return (struct claim_desc){
        .key = id(w, key),
        .uid = id(w, key),
        .class_ = id(w, class_),
        .access = VOLUME_RWO,
        .request = size,
    };
}

static void put_claim(struct world *w, const char *key, const char *class_, int64_t size)
{
    const struct claim_desc d = claim_of(w, key, class_, size);

    volumes_claim_put(&w->m, &d);
}

static void put_bound(struct world *w, const char *key, const char *pv)
{
    struct claim_desc d = claim_of(w, key, "", GI);

    d.volume = id(w, pv);
    d.bind_completed = true;
    volumes_claim_put(&w->m, &d);
}

static struct pv_desc pv_of(struct world *w, const char *name, const char *class_, int64_t size)
{
    return (struct pv_desc){
        .name = id(w, name),
        .class_ = id(w, class_),
        .available = true,
        .access = VOLUME_RWO | VOLUME_ROX,
        .capacity = size,
    };
}

/* host: the only node that can reach it, NULL for all. */
static void put_pv_desc(struct world *w, struct pv_desc *d, const char *host)
{
    const uint32_t val = host ? id(w, host) : 0;
    const struct label_req req = {.key = id(w, "host"), .op = OP_IN, .n = 1, .vals = &val};
    const struct node_term term = {.req = &req, .nreq = 1};

    if (host) {
        d->has_terms = true;
        d->term = &term;
        d->nterm = 1;
    }
    volumes_pv_put(&w->m, d);
}

static void put_pv(struct world *w, const char *name, const char *class_, int64_t size,
                   const char *host)
{
    struct pv_desc d = pv_of(w, name, class_, size);

    put_pv_desc(w, &d, host);
}

static void put_csi_pv(struct world *w, const char *name, const char *driver, const char *handle)
{
    struct pv_desc d = pv_of(w, name, "", GI);

    d.driver = id(w, driver);
    d.handle = id(w, handle);
    put_pv_desc(w, &d, NULL);
}

static void put_class(struct world *w, const char *name, const char *provisioner,
                      enum binding_mode mode)
{
    const struct storage_class_desc d = {
        .name = id(w, name),
        .provisioner = id(w, provisioner),
        .mode = mode,
    };

    volumes_class_put(&w->m, &d);
}

/* ---- asking ---- */

#define T(n) ((task_id){n})
#define N(n) ((node_id){n})

static const char *words(struct world *w, struct reason r)
{
    static const char *const names[REASON_N] = {
        [REASON_NONE] = "",
        [REASON_VOLUME_COUNT] = "count",
        [REASON_VOLUME_ZONE] = "zone",
        [REASON_VOLUME_AFFINITY] = "affinity",
        [REASON_VOLUME_BIND] = "bind",
        [REASON_VOLUME_CAPACITY] = "capacity",
        [REASON_VOLUME_GONE] = "gone",
    };

    return r.code == REASON_TEXT ? model_str(&w->m, r.arg).s : names[r.code];
}

static void assert_pre(struct world *w, bool (*pre)(struct model *, task_id, struct reason *),
                       const char *want)
{
    struct reason why = {0};
    const bool ok = pre(&w->m, T(0), &why);

    assert_string_equal(words(w, why), want ? want : "");
    assert_int_equal(ok, want == NULL);
}

#define assert_limits(w, t, n, want)                                                               \
    assert_string_equal(words(w, volumes_filter_limits(&(w)->m, T(t), N(n))), want)
#define assert_zone(w, t, n, want)                                                                 \
    assert_string_equal(words(w, volumes_filter_zone(&(w)->m, T(t), N(n))), want)

/* want: the reasons, separated by blanks. */
static void assert_binding(struct world *w, uint32_t t, uint32_t n, const char *want)
{
    struct reason why[4];
    char got[128] = "";
    const uint32_t nwhy = volumes_filter_binding(&w->m, T(t), N(n), why);

    for (uint32_t i = 0; i < nwhy; i++) {
        const size_t at = strlen(got);
        snprintf(got + at, sizeof(got) - at, "%s%s", i ? " " : "", words(w, why[i]));
    }
    assert_string_equal(got, want);
}

/* want: the volume that the task reserved for the claim, "" when it will be provisioned. */
static void assert_reserved(struct world *w, uint32_t t, const char *claim, const char *want)
{
    struct volume_bind b[MAX];
    const uint32_t n = volumes_reserved(&w->m, T(t), b, MAX);

    for (uint32_t i = 0; i < n; i++) {
        if (b[i].claim == id(w, claim)) {
            assert_string_equal(model_str(&w->m, b[i].pv).s, want);
            return;
        }
    }
    fail_msg("task %u holds nothing for %s, want '%s'", t, claim, want);
}

static void a_task_without_claims_is_not_asked(void **state)
{
    struct world *w = *state;

    assert_false(volumes_asked(&w->m, T(0)));
    w->shapes[0].cons = NO_CONS;
    assert_false(volumes_asked(&w->m, T(0)));
    assert_pre(w, volumes_pre_zone, NULL);
    assert_pre(w, volumes_pre_binding, NULL);
    assert_zone(w, 0, 0, "");
    assert_binding(w, 0, 0, "");
    assert_true(volumes_reserve(&w->m, T(0), N(0)));
    assert_true(volumes_bound(&w->m, T(0)));
    set_claims(w, 1, "a");
    assert_true(volumes_asked(&w->m, T(1)));
}

/* ---- limits ---- */

static void set_limit(struct world *w, uint32_t node, int32_t count)
{
    const struct csi_limit limit = {id(w, "csi"), count};

    volumes_csi_node_put(&w->m, w->name[node], &limit, 1);
}

static void attach(struct world *w, const char *name, const char *attacher, uint32_t node,
                   const char *pv)
{
    const struct attachment_desc d = {id(w, name), id(w, attacher), w->name[node], id(w, pv)};

    volumes_attachment_put(&w->m, &d);
}

/* Task 1 on node 0 uses va, vb and vc; the claims a to e name the volumes va to ve. */
static void limits_world(struct world *w)
{
    static const char *const letters[] = {"a", "b", "c", "d", "e"};

    for (size_t i = 0; i < HK_LEN(letters); i++) {
        char key[8], pv[8];
        snprintf(key, sizeof(key), "ns/%s", letters[i]);
        snprintf(pv, sizeof(pv), "v%s", letters[i]);
        put_csi_pv(w, pv, "csi", pv);
        put_bound(w, key, pv);
    }
    set_claims(w, 1, "a b c");
    put_on(w, 1, 0);
}

/* Three in use, one more attached, one wanted, four allowed. */
static void volumes_of_pods_attachments_and_the_task_add_up(void **state)
{
    struct world *w = *state;

    limits_world(w);
    set_claims(w, 0, "d");
    set_limit(w, 0, 4);
    assert_limits(w, 0, 0, "");
    attach(w, "va-1", "csi", 0, "ve");
    assert_limits(w, 0, 0, "count");
    set_limit(w, 0, 5);
    assert_limits(w, 0, 0, "");
    set_limit(w, 0, 4);
    volumes_attachment_del(&w->m, id(w, "va-1"));
    assert_limits(w, 0, 0, "");
}

static void a_volume_counts_once(void **state)
{
    struct world *w = *state;

    limits_world(w);
    set_limit(w, 0, 4);
    set_claims(w, 2, "a b"); /* a second pod with the same volumes */
    put_on(w, 2, 0);
    set_claims(w, 0, "c d d"); /* c is there already */
    assert_limits(w, 0, 0, "");
    attach(w, "x", "csi", 0, "va"); /* attached for pod 1 */
    assert_limits(w, 0, 0, "");
    set_claims(w, 0, "d e");
    assert_limits(w, 0, 0, "count");
}

static void a_volume_known_by_attachment_alone_counts_twice(void **state)
{
    struct world *w = *state;

    limits_world(w);
    set_limit(w, 0, 4);
    set_claims(w, 0, "d");
    attach(w, "x", "csi", 0, "vd");
    assert_limits(w, 0, 0, "count");
}

static void attachments_that_name_no_csi_volume_do_not_count(void **state)
{
    struct world *w = *state;

    limits_world(w);
    put_pv(w, "local", "", GI, NULL);
    set_limit(w, 0, 4);
    set_claims(w, 0, "d");
    attach(w, "1", "csi", 0, "local");
    attach(w, "2", "csi", 0, "missing");
    attach(w, "3", "", 0, "ve");
    attach(w, "4", "csi", 1, "ve"); /* another node */
    attach(w, "5", "other", 0, "ve");
    assert_limits(w, 0, 0, "");
    attach(w, "4", "csi", 0, "ve"); /* moved here */
    assert_limits(w, 0, 0, "count");
    volumes_attachment_del(&w->m, id(w, "2"));
    volumes_attachment_del(&w->m, id(w, "4"));
    volumes_attachment_del(&w->m, id(w, "nobody"));
    assert_limits(w, 0, 0, "");
}

static void without_limits_every_node_passes(void **state)
{
    struct world *w = *state;

    limits_world(w);
    set_claims(w, 0, "d");
    assert_limits(w, 0, 0, "");
    set_limit(w, 0, 0);
    assert_limits(w, 0, 0, "count");
    volumes_csi_node_put(&w->m, w->name[0], NULL, 0);
    assert_limits(w, 0, 0, "");
    set_limit(w, 0, 0);
    volumes_csi_node_del(&w->m, w->name[0]);
    assert_limits(w, 0, 0, "");
}

static void an_unbound_claim_counts_for_its_provisioner(void **state)
{
    struct world *w = *state;

    limits_world(w);
    set_limit(w, 0, 3);
    put_claim(w, "ns/new", "fast", GI);
    set_claims(w, 0, "new");
    assert_limits(w, 0, 0, ""); /* no such class: not counted */
    put_class(w, "fast", "csi", BINDING_WAIT);
    assert_limits(w, 0, 0, "count");
    put_class(w, "fast", "other", BINDING_WAIT);
    assert_limits(w, 0, 0, "");
}

static void a_missing_claim_refuses_the_new_pod_but_not_for_old_ones(void **state)
{
    struct world *w = *state;

    limits_world(w);
    set_limit(w, 0, 3);
    set_claims(w, 0, "nobody");
    assert_limits(w, 0, 0, "looking up PVC ns/nobody: persistentvolumeclaim \"nobody\" not found");
    set_claims(w, 1, "nobody b c");
    set_claims(w, 0, "d");
    assert_limits(w, 0, 0, "");
}

static void pods_out_of_view_hold_no_volumes(void **state)
{
    struct world *w = *state;

    limits_world(w);
    set_limit(w, 0, 3);
    set_claims(w, 0, "d");
    assert_limits(w, 0, 0, "count");
    w->tasks[1].flags &= (uint16_t)~TASK_IN_VIEW;
    assert_limits(w, 0, 0, "");
}

/* ---- zones ---- */

static void put_zoned(struct world *w, const char *name, const char *labels)
{
    struct label at[MAX];
    struct pv_desc d = pv_of(w, name, "", GI);

    d.labels = labels_of(w, at, labels);
    put_pv_desc(w, &d, NULL);
}

static void a_volume_of_two_zones_goes_to_either(void **state)
{
    struct world *w = *state;

    put_zoned(w, "v", "topology.kubernetes.io/zone=a__b");
    put_bound(w, "ns/c", "v");
    set_claims(w, 0, "c");
    set_node(w, 0, "topology.kubernetes.io/zone=b");
    set_node(w, 1, "topology.kubernetes.io/zone=c");
    set_node(w, 2, "topology.kubernetes.io/region=r");
    assert_zone(w, 0, 0, "");
    assert_zone(w, 0, 1, "zone");
    assert_zone(w, 0, 2, "zone"); /* has a region label, so a missing zone fails */
    assert_zone(w, 0, 3, "");     /* none of the four labels */
}

static void a_beta_label_is_satisfied_by_the_stable_one(void **state)
{
    struct world *w = *state;

    put_zoned(w, "v",
              "failure-domain.beta.kubernetes.io/zone=a "
              "failure-domain.beta.kubernetes.io/region=r");
    put_bound(w, "ns/c", "v");
    set_claims(w, 0, "c");
    set_node(w, 0, "topology.kubernetes.io/zone=a topology.kubernetes.io/region=r");
    set_node(w, 1,
             "failure-domain.beta.kubernetes.io/zone=a "
             "failure-domain.beta.kubernetes.io/region=r");
    set_node(w, 2, "topology.kubernetes.io/zone=a topology.kubernetes.io/region=q");
    assert_zone(w, 0, 0, "");
    assert_zone(w, 0, 1, "");
    assert_zone(w, 0, 2, "zone");
    put_zoned(w, "v", "topology.kubernetes.io/zone=a");
    assert_zone(w, 0, 1, "zone"); /* but not vice versa */
    put_zoned(w, "v", "app=x");
    assert_zone(w, 0, 2, "");
}

static void zones_of_ephemeral_claims_do_not_matter(void **state)
{
    struct world *w = *state;

    put_zoned(w, "v", "topology.kubernetes.io/zone=a");
    put_bound(w, "ns/c", "v");
    set_node(w, 0, "topology.kubernetes.io/zone=b");
    set_claims(w, 0, "c");
    assert_zone(w, 0, 0, "zone");
    set_claims(w, 0, "!c");
    assert_zone(w, 0, 0, "");
    set_claims(w, 0, "!nobody");
    assert_pre(w, volumes_pre_zone, NULL);
}

static void zones_cannot_be_told_without_a_volume(void **state)
{
#define ZONE "plugin VolumeZone pre-predicates failed "
    struct world *w = *state;

    set_claims(w, 0, "c");
    assert_pre(w, volumes_pre_zone, ZONE "persistentvolumeclaim \"c\" not found");
    put_claim(w, "ns/c", "", GI);
    assert_pre(w, volumes_pre_zone,
               ZONE "PersistentVolumeClaim had no pv name and storageClass name");
    put_claim(w, "ns/c", "fast", GI);
    assert_pre(w, volumes_pre_zone, ZONE "storageclass.storage.k8s.io \"fast\" not found");
    put_class(w, "fast", "csi", BINDING_UNSET);
    assert_pre(w, volumes_pre_zone, ZONE "VolumeBindingMode not set for StorageClass \"fast\"");
    put_class(w, "fast", "csi", BINDING_IMMEDIATE);
    assert_pre(w, volumes_pre_zone, ZONE "PersistentVolume had no name");
    put_class(w, "fast", "csi", BINDING_WAIT);
    assert_pre(w, volumes_pre_zone, NULL);
    put_bound(w, "ns/c", "v");
    assert_pre(w, volumes_pre_zone, ZONE "persistentvolume \"v\" not found");
    put_pv(w, "v", "", GI, NULL);
    assert_pre(w, volumes_pre_zone, NULL);
}

/* ---- binding ---- */

static void binding_says_what_is_wrong_with_a_claim(void **state)
{
#define BIND "plugin VolumeBinding pre-predicates failed "
    struct world *w = *state;
    struct claim_desc d = claim_of(w, "ns/c", "fast", GI);

    set_claims(w, 0, "!c");
    assert_pre(w, volumes_pre_binding,
               BIND "waiting for ephemeral volume controller to create the persistentvolumeclaim "
                    "\"c\"");
    set_claims(w, 0, "c");
    assert_pre(w, volumes_pre_binding, BIND "persistentvolumeclaim \"c\" not found");
    d.lost = true;
    d.volume = id(w, "v");
    volumes_claim_put(&w->m, &d);
    assert_pre(w, volumes_pre_binding,
               BIND "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"v\"");
    d.lost = false;
    d.deleting = true;
    volumes_claim_put(&w->m, &d);
    assert_pre(w, volumes_pre_binding, BIND "persistentvolumeclaim \"c\" is being deleted");
    d.deleting = false;
    volumes_claim_put(&w->m, &d); /* a volume, but not bound to it yet */
    assert_pre(w, volumes_pre_binding, BIND "pod has unbound immediate PersistentVolumeClaims");
    put_class(w, "fast", "csi", BINDING_WAIT);
    assert_pre(w, volumes_pre_binding, BIND "pod has unbound immediate PersistentVolumeClaims");
    d.volume = 0;
    volumes_claim_put(&w->m, &d);
    assert_pre(w, volumes_pre_binding, NULL);
    put_class(w, "fast", "csi", BINDING_IMMEDIATE);
    assert_pre(w, volumes_pre_binding, BIND "pod has unbound immediate PersistentVolumeClaims");
    put_class(w, "fast", "csi", BINDING_UNSET);
    assert_pre(w, volumes_pre_binding, BIND "VolumeBindingMode not set for StorageClass \"fast\"");
    volumes_class_del(&w->m, id(w, "fast"));
    assert_pre(w, volumes_pre_binding, BIND "pod has unbound immediate PersistentVolumeClaims");
}

static void an_ephemeral_claim_must_belong_to_the_pod(void **state)
{
    struct world *w = *state;
    struct claim_desc d = claim_of(w, "ns/c", "fast", GI);

    put_class(w, "fast", "csi", BINDING_WAIT);
    volumes_claim_put(&w->m, &d);
    set_claims(w, 0, "!c");
    assert_pre(w, volumes_pre_binding,
               BIND "PVC ns/c was not created for pod ns/p0 (pod is not owner)");
    assert_limits(w, 0, 0, "PVC ns/c was not created for pod ns/p0 (pod is not owner)");
    d.owner = w->tasks[0].uid;
    volumes_claim_put(&w->m, &d);
    assert_pre(w, volumes_pre_binding, NULL);
    assert_limits(w, 0, 0, "");
}

static void a_bound_volume_keeps_its_pod_near(void **state)
{
    struct world *w = *state;

    put_bound(w, "ns/c", "v");
    set_claims(w, 0, "c");
    assert_binding(w, 0, 0, "gone");
    assert_false(volumes_reserve(&w->m, T(0), N(0)));
    put_pv(w, "v", "", GI, "n1");
    assert_binding(w, 0, 0, "affinity");
    assert_binding(w, 0, 1, "");
    assert_true(volumes_bound(&w->m, T(0)));
    assert_true(volumes_reserve(&w->m, T(0), N(1)));
    assert_int_equal(volumes_reserved(&w->m, T(0), NULL, 0), 0);
}

static void the_smallest_claims_take_the_smallest_volumes(void **state)
{
    struct world *w = *state;

    put_class(w, "local", "kubernetes.io/no-provisioner", BINDING_WAIT);
    put_claim(w, "ns/large", "local", 5 * GI);
    put_claim(w, "ns/small", "local", GI);
    put_pv(w, "ten", "local", 10 * GI, "n0");
    put_pv(w, "two", "local", 2 * GI, "n0");
    set_claims(w, 0, "large small");
    assert_binding(w, 0, 0, "");
    assert_true(volumes_reserve(&w->m, T(0), N(0)));
    assert_int_equal(volumes_reserved(&w->m, T(0), NULL, 0), 2);
    assert_reserved(w, 0, "ns/small", "two");
    assert_reserved(w, 0, "ns/large", "ten");
    assert_false(volumes_bound(&w->m, T(0)));
}

static void without_a_free_volume_a_local_claim_does_not_bind(void **state)
{
    struct world *w = *state;

    put_class(w, "local", "kubernetes.io/no-provisioner", BINDING_WAIT);
    put_claim(w, "ns/c", "local", GI);
    put_pv(w, "v", "local", GI, "n1");
    set_claims(w, 0, "c");
    assert_binding(w, 0, 0, "bind");
    assert_binding(w, 0, 1, "");
}

static void every_wish_of_a_claim_is_checked(void **state)
{
    struct world *w = *state;
    struct label at[MAX];
    const struct label_req want_ssd = {
        .key = id(w, "disk"), .op = OP_IN, .n = 1, .vals = (uint32_t[]){id(w, "ssd")}};
    struct claim_desc c = claim_of(w, "ns/c", "local", 2 * GI);

    put_class(w, "local", "kubernetes.io/no-provisioner", BINDING_WAIT);
    c.has_sel = true;
    c.sel = (struct label_sel){.n = 1, .at = &want_ssd};
    volumes_claim_put(&w->m, &c);
    set_claims(w, 0, "c");
    const struct pv_desc good = {
        .name = id(w, "v"),
        .class_ = id(w, "local"),
        .available = true,
        .access = VOLUME_RWO,
        .capacity = 2 * GI,
        .labels = labels_of(w, at, "disk=ssd"),
    };
    struct pv_desc d;
#define ONE_WRONG(change)                                                                          \
    d = good;                                                                                      \
    change;                                                                                        \
    volumes_pv_put(&w->m, &d);                                                                     \
    assert_binding(w, 0, 0, "bind");                                                               \
    volumes_pv_put(&w->m, &good);                                                                  \
    assert_binding(w, 0, 0, "")

    ONE_WRONG(d.class_ = id(w, "other"));
    ONE_WRONG(d.available = false);
    ONE_WRONG(d.access = VOLUME_RWX);
    ONE_WRONG(d.capacity = 2 * GI - 1);
    ONE_WRONG(d.block = true);
    ONE_WRONG(d.deleting = true);
    ONE_WRONG(d.attributes_class = id(w, "gold"));
    ONE_WRONG(d.labels.n = 0);
    ONE_WRONG(d.has_terms = true);
    ONE_WRONG(d.ref = id(w, "ns/another"));
    ONE_WRONG((d.ref = id(w, "ns/c"), d.ref_uid = id(w, "older")));
    volumes_pv_del(&w->m, id(w, "v"));
    assert_binding(w, 0, 0, "bind");
}

static void a_volume_made_for_the_claim_wins_over_a_smaller_one(void **state)
{
    struct world *w = *state;
    struct pv_desc mine = pv_of(w, "mine", "local", 9 * GI);

    put_class(w, "local", "kubernetes.io/no-provisioner", BINDING_WAIT);
    put_claim(w, "ns/c", "local", GI);
    put_pv(w, "small", "local", GI, NULL);
    mine.ref = id(w, "ns/c");
    mine.available = false;
    put_pv_desc(w, &mine, "n0");
    set_claims(w, 0, "c");
    assert_true(volumes_reserve(&w->m, T(0), N(0)));
    assert_reserved(w, 0, "ns/c", "mine");
    volumes_unreserve(&w->m, T(0));
    assert_binding(w, 0, 1, "bind"); /* unreachable, and the small one does not suffice */
    mine.capacity = GI - 1;
    put_pv_desc(w, &mine, "n0");
    assert_true(volumes_reserve(&w->m, T(0), N(1)));
    assert_reserved(w, 0, "ns/c", "small");
}

static void what_no_volume_serves_is_provisioned_where_the_class_allows(void **state)
{
    struct world *w = *state;
    const uint32_t n1 = id(w, "n1");
    const struct label_req req = {.key = id(w, "host"), .op = OP_IN, .n = 1, .vals = &n1};
    const struct node_term terms[] = {{.nreq = 0}, {.req = &req, .nreq = 1}};
    const struct storage_class_desc d = {.name = id(w, "fast"),
                                         .provisioner = id(w, "csi"),
                                         .mode = BINDING_WAIT,
                                         .topology = terms,
                                         .ntopology = 2};

    put_class(w, "fast", "csi", BINDING_WAIT);
    put_claim(w, "ns/c", "fast", GI);
    set_claims(w, 0, "c");
    assert_binding(w, 0, 0, "");
    volumes_class_put(&w->m, &d);
    assert_binding(w, 0, 0, "bind"); /* an empty term allows nothing */
    assert_binding(w, 0, 1, "");
    assert_true(volumes_reserve(&w->m, T(0), N(1)));
    assert_reserved(w, 0, "ns/c", "");
}

static void a_selected_node_binds_the_claim_to_it(void **state)
{
    struct world *w = *state;
    struct claim_desc d = claim_of(w, "ns/c", "fast", GI);

    put_class(w, "fast", "csi", BINDING_WAIT);
    put_pv(w, "v", "fast", GI, NULL);
    d.selected_node = w->name[1];
    volumes_claim_put(&w->m, &d);
    set_claims(w, 0, "c");
    assert_binding(w, 0, 0, "bind");
    assert_true(volumes_reserve(&w->m, T(0), N(1)));
    assert_reserved(w, 0, "ns/c", ""); /* provisioned, although a volume is free */
}

static void storage_capacity_is_checked_for_drivers_that_track_it(void **state)
{
    struct world *w = *state;
    const uint32_t n0 = id(w, "n0");
    const struct label_req req = {.key = id(w, "host"), .op = OP_IN, .n = 1, .vals = &n0};
    struct csi_capacity_desc d = {.key = id(w, "ns/cap"),
                                  .class_ = id(w, "fast"),
                                  .topology = {.n = 1, .at = &req},
                                  .limit = GI};

    put_class(w, "fast", "csi", BINDING_WAIT);
    put_claim(w, "ns/c", "fast", GI);
    set_claims(w, 0, "c");
    assert_binding(w, 0, 0, "");
    volumes_csi_driver_put(&w->m, id(w, "csi"), false);
    assert_binding(w, 0, 0, "");
    volumes_csi_driver_put(&w->m, id(w, "csi"), true);
    assert_binding(w, 0, 0, "capacity");
    volumes_csi_capacity_put(&w->m, &d);
    assert_binding(w, 0, 0, "");
    assert_binding(w, 0, 1, "capacity");
    d.limit = GI - 1;
    volumes_csi_capacity_put(&w->m, &d);
    assert_binding(w, 0, 0, "capacity");
    d.limit = GI;
    d.topology = (struct label_sel){.nothing = true};
    volumes_csi_capacity_put(&w->m, &d);
    assert_binding(w, 0, 0, "capacity");
    d.topology = (struct label_sel){0};
    volumes_csi_capacity_put(&w->m, &d);
    assert_binding(w, 0, 1, "");
    volumes_csi_capacity_del(&w->m, d.key);
    assert_binding(w, 0, 1, "capacity");
    volumes_csi_driver_del(&w->m, id(w, "csi"));
    assert_binding(w, 0, 1, "");
}

static void reasons_come_together_in_upstreams_order(void **state)
{
    struct world *w = *state;

    put_class(w, "local", "kubernetes.io/no-provisioner", BINDING_WAIT);
    put_claim(w, "ns/wait", "local", GI);
    put_bound(w, "ns/far", "v");
    put_bound(w, "ns/lost", "nowhere");
    put_pv(w, "v", "", GI, "n1");
    set_claims(w, 0, "wait far");
    assert_binding(w, 0, 0, "affinity bind");
    set_claims(w, 0, "wait lost");
    assert_binding(w, 0, 0, "bind gone");
    set_claims(w, 0, "lost far"); /* the first failing claim decides */
    assert_binding(w, 0, 0, "gone");
}

/* ---- reservations ---- */

static void a_reserved_volume_is_not_promised_twice(void **state)
{
    struct world *w = *state;

    put_class(w, "local", "kubernetes.io/no-provisioner", BINDING_WAIT);
    put_claim(w, "ns/a", "local", GI);
    put_claim(w, "ns/b", "local", GI);
    put_pv(w, "v1", "local", GI, "n0");
    put_pv(w, "v2", "local", 2 * GI, "n0");
    set_claims(w, 0, "a");
    set_claims(w, 1, "b");
    set_claims(w, 2, "b a");
    assert_true(volumes_reserve(&w->m, T(0), N(0)));
    assert_true(volumes_reserve(&w->m, T(1), N(0)));
    assert_reserved(w, 0, "ns/a", "v1");
    assert_reserved(w, 1, "ns/b", "v2");
    volumes_unreserve(&w->m, T(0));
    volumes_unreserve(&w->m, T(0)); /* a second call is harmless */
    assert_int_equal(volumes_reserved(&w->m, T(0), NULL, 0), 0);
    assert_true(volumes_reserve(&w->m, T(2), N(0)));
    assert_reserved(w, 2, "ns/b", "v2");
    assert_reserved(w, 2, "ns/a", "v1");
    put_claim(w, "ns/c", "local", GI);
    set_claims(w, 3, "c");
    assert_false(volumes_reserve(&w->m, T(3), N(0)));
    assert_int_equal(volumes_reserved(&w->m, T(3), NULL, 0), 0);
}

static void a_shared_claim_is_held_until_its_last_pod_lets_go(void **state)
{
    struct world *w = *state;

    put_class(w, "fast", "csi", BINDING_WAIT);
    put_claim(w, "ns/a", "fast", GI);
    put_pv(w, "v", "fast", GI, "n0");
    for (uint32_t t = 0; t < 3; t++) {
        set_claims(w, t, "a");
    }
    assert_true(volumes_reserve(&w->m, T(0), N(0)));
    assert_true(volumes_reserve(&w->m, T(1), N(0)));
    assert_binding(w, 2, 1, "bind"); /* no second volume for the same claim elsewhere */
    volumes_unreserve(&w->m, T(0));
    assert_binding(w, 2, 1, "bind");
    volumes_unreserve(&w->m, T(1));
    assert_true(volumes_reserve(&w->m, T(2), N(1)));
    assert_reserved(w, 2, "ns/a", "");
    assert_binding(w, 0, 0, "bind"); /* the claim now belongs to node 1 */
    assert_binding(w, 0, 1, "");
}

static void a_new_reservation_replaces_the_old(void **state)
{
    struct world *w = *state;

    put_class(w, "local", "kubernetes.io/no-provisioner", BINDING_WAIT);
    put_claim(w, "ns/a", "local", GI);
    put_pv(w, "v0", "local", GI, "n0");
    put_pv(w, "v1", "local", GI, "n1");
    set_claims(w, 0, "a");
    assert_true(volumes_reserve(&w->m, T(0), N(0)));
    assert_true(volumes_reserve(&w->m, T(0), N(1)));
    assert_int_equal(volumes_reserved(&w->m, T(0), NULL, 0), 1);
    assert_reserved(w, 0, "ns/a", "v1");
}

static void reservations_survive_objects_that_go_and_come(void **state)
{
    struct world *w = *state;
    struct pv_desc d = pv_of(w, "v", "local", GI);

    put_class(w, "local", "kubernetes.io/no-provisioner", BINDING_WAIT);
    put_claim(w, "ns/a", "local", GI);
    put_claim(w, "ns/b", "local", GI);
    put_pv_desc(w, &d, NULL);
    set_claims(w, 0, "a");
    set_claims(w, 1, "b");
    assert_true(volumes_reserve(&w->m, T(0), N(0)));
    volumes_pv_del(&w->m, d.name);
    volumes_claim_del(&w->m, id(w, "ns/a"));
    put_pv(w, "v", "local", GI, NULL); /* a new object of the same name is free */
    assert_binding(w, 1, 0, "");
    volumes_unreserve(&w->m, T(0));
    put_claim(w, "ns/a", "local", GI);
    assert_true(volumes_reserve(&w->m, T(0), N(0)));
    assert_binding(w, 1, 0, "bind");

    d.ref = id(w, "ns/b"); /* another client was faster: the API wins */
    put_pv_desc(w, &d, NULL);
    assert_binding(w, 1, 0, "");
    volumes_pv_del(&w->m, id(w, "nobody"));
    volumes_claim_del(&w->m, id(w, "nobody"));
}

/* The order of arrival must not matter; equal sizes are tried by name. */
static void volumes_of_a_class_are_tried_by_size_then_name(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *name;
        int64_t size;
    } pvs[] = {{"z", 3}, {"m", 1}, {"b", 2}, {"a", 2}, {"y", 1}};

    put_class(w, "local", "kubernetes.io/no-provisioner", BINDING_WAIT);
    for (size_t i = 0; i < HK_LEN(pvs); i++) {
        put_pv(w, pvs[i].name, "local", pvs[i].size * GI, NULL);
    }
    put_pv(w, "y", "local", 4 * GI, NULL); /* grew */
    for (uint32_t t = 0; t < 5; t++) {
        char key[16];
        snprintf(key, sizeof(key), "ns/c%u", t);
        put_claim(w, key, "local", GI);
        set_claims(w, t, key + 3);
        assert_true(volumes_reserve(&w->m, T(t), N(0)));
        assert_reserved(w, t, key, (const char *[]){"m", "a", "b", "z", "y"}[t]);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_task_without_claims_is_not_asked),
        TEST(volumes_of_pods_attachments_and_the_task_add_up),
        TEST(a_volume_counts_once),
        TEST(a_volume_known_by_attachment_alone_counts_twice),
        TEST(attachments_that_name_no_csi_volume_do_not_count),
        TEST(without_limits_every_node_passes),
        TEST(an_unbound_claim_counts_for_its_provisioner),
        TEST(a_missing_claim_refuses_the_new_pod_but_not_for_old_ones),
        TEST(pods_out_of_view_hold_no_volumes),
        TEST(a_volume_of_two_zones_goes_to_either),
        TEST(a_beta_label_is_satisfied_by_the_stable_one),
        TEST(zones_of_ephemeral_claims_do_not_matter),
        TEST(zones_cannot_be_told_without_a_volume),
        TEST(binding_says_what_is_wrong_with_a_claim),
        TEST(an_ephemeral_claim_must_belong_to_the_pod),
        TEST(a_bound_volume_keeps_its_pod_near),
        TEST(the_smallest_claims_take_the_smallest_volumes),
        TEST(without_a_free_volume_a_local_claim_does_not_bind),
        TEST(every_wish_of_a_claim_is_checked),
        TEST(a_volume_made_for_the_claim_wins_over_a_smaller_one),
        TEST(what_no_volume_serves_is_provisioned_where_the_class_allows),
        TEST(a_selected_node_binds_the_claim_to_it),
        TEST(storage_capacity_is_checked_for_drivers_that_track_it),
        TEST(reasons_come_together_in_upstreams_order),
        TEST(a_reserved_volume_is_not_promised_twice),
        TEST(a_shared_claim_is_held_until_its_last_pod_lets_go),
        TEST(a_new_reservation_replaces_the_old),
        TEST(reservations_survive_objects_that_go_and_come),
        TEST(volumes_of_a_class_are_tried_by_size_then_name),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
