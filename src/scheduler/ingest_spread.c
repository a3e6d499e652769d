// SPDX-License-Identifier: Apache-2.0
// Default spreading: a pod without constraints of its own is spread over hosts and zones among the
// pods selected by the same Services and by its controller (docs/reference/plugins.md section 4.6).
// Services may arrive or change after their pods, so changes are collected and the waiting pods
// concerned are checked again before the next session. That needs no manifests: the model has the
// pods' labels and other constraints, and the row's note has their owner. Placed pods keep their
// constraints, since only the rows of incoming pods are used.
//
// With one Service per job there are as many Services as jobs. Each is indexed under one label pair
// of its selector, the rarest so far, and a pod looks only under its own labels.
#include "scheduler/ingest_priv.h"

#include "api/policy.h"

/* Services indexed under the same label pair, in any namespace. */
struct shelf {
    struct label pair;
    HK_VEC(uint32_t) at; /* rows of pickers */
};

/* ---- changes ---- */

/* With more changes than this, checking every pod is cheaper than testing each change. */
enum { CHANGES_FEW = 16 };

struct change {
    uint8_t kind; /* enum picker_kind */
    uint32_t name;
    struct label_sel sel; /* owned */
};

static void change_strings(const struct change *c, struct hk_intern *t, string_fn *f)
{
    f(t, c->name);
    label_sel_strings(&c->sel, t, f);
}

static void note_change(struct ingest *in, enum picker_kind kind, uint64_t key,
                        const struct label_sel *sel)
{
    const uint32_t ns = key >> 32;

    if (hk_map_get(&in->stale_ns, ns) == HK_NONE) {
        hk_map_put(&in->stale_ns, ns, 1);
        hk_vec_push(&in->stale, ns);
        hk_intern_keep(&in->m->str, ns);
    }
    if (in->changes.len <= CHANGES_FEW) {
        const struct change c = {.kind = kind, .name = (uint32_t)key, .sel = ingest_sel_copy(sel)};
        change_strings(&c, &in->m->str, hk_intern_keep);
        hk_vec_push(&in->changes, c);
    }
}

static void forget_changes(struct ingest *in)
{
    for (uint32_t k = 0; k < in->changes.len; k++) {
        change_strings(&in->changes.at[k], &in->m->str, hk_intern_drop);
        hk_free((void *)in->changes.at[k].sel.at);
    }
    for (uint32_t k = 0; k < in->stale.len; k++) {
        hk_intern_drop(&in->m->str, in->stale.at[k]);
    }
    hk_vec_clear(&in->stale);
    hk_vec_clear(&in->changes);
    hk_map_clear(&in->stale_ns);
}

/* Whether a change may concern the task. The caller has checked its namespace. */
static bool is_concerned(const struct ingest *in, task_id t)
{
    const struct pod_owner owner = in->notes.at[t.i].owner;

    for (uint32_t k = 0; k < in->changes.len && in->changes.len <= CHANGES_FEW; k++) {
        const struct change *c = &in->changes.at[k];
        const struct labels l = ident_labels(in->m, model_task(in->m, t)->ident);
        if (c->kind == PICK_SERVICE ? label_sel_match(&c->sel, l, &in->m->str)
                                    : c->kind == owner.kind && c->name == owner.name) {
            return true;
        }
    }
    return in->changes.len > CHANGES_FEW;
}

/* ---- pickers ---- */

static uint32_t shelf_need(struct ingest *in, struct label pair)
{
    const uint64_t key = PAIR_KEY(pair.key, pair.val);
    uint32_t i = hk_map_get(&in->shelf_at, key);

    if (i != HK_NONE) {
        return i;
    }
    if (in->shelves_free.len > 0) {
        i = hk_vec_pop(&in->shelves_free);
    } else {
        i = in->shelves.len;
        hk_vec_push(&in->shelves, ((struct shelf){0}));
    }
    in->shelves.at[i].pair = pair;
    hk_map_put(&in->shelf_at, key, i);
    return i;
}

/* A shelf holds no reference to its pair, its Services do, so an empty one must go. */
static void shelf_drop_if_empty(struct ingest *in, uint32_t i)
{
    struct shelf *s = &in->shelves.at[i];

    if (s->at.len == 0) {
        hk_map_del(&in->shelf_at, PAIR_KEY(s->pair.key, s->pair.val));
        hk_vec_fini(&s->at);
        hk_vec_push(&in->shelves_free, i);
    }
}

/* Indexes a Service. Its selector is a plain map: each requirement is one value of one key. */
static void file_service(struct ingest *in, uint32_t row)
{
    struct picker *p = &in->pickers.at[row];
    struct label rarest = {0};
    uint32_t fewest = UINT32_MAX;

    for (uint32_t k = 0; k < p->sel.n; k++) {
        const struct label pair = {p->sel.at[k].key, p->sel.at[k].vals[0]};
        const uint32_t i = hk_map_get(&in->shelf_at, PAIR_KEY(pair.key, pair.val));
        const uint32_t len = i == HK_NONE ? 0 : in->shelves.at[i].at.len;
        if (len < fewest) {
            fewest = len;
            rarest = pair;
        }
    }
    if (p->sel.n > 0) {
        p->shelf = shelf_need(in, rarest);
        hk_vec_push(&in->shelves.at[p->shelf].at, row);
    }
}

static void ingest_spread_remove_from_shelf(struct ingest *in, uint32_t row)
{
    struct picker *p = &in->pickers.at[row];
    struct shelf *s;

    if (p->shelf == ID_NONE) {
        return;
    }
    s = &in->shelves.at[p->shelf];
    for (uint32_t k = 0; k < s->at.len; k++) {
        if (s->at.at[k] == row) {
            hk_vec_swap_remove(&s->at, k);
            break;
        }
    }
    shelf_drop_if_empty(in, p->shelf);
    p->shelf = ID_NONE;
}

static void picker_strings(const struct picker *p, struct hk_intern *t, string_fn *f)
{
    f(t, p->ns);
    f(t, p->name);
    label_sel_strings(&p->sel, t, f);
}

static void ingest_spread_drop_picker(struct ingest *in, enum picker_kind kind, uint64_t key)
{
    const uint32_t row = hk_map_get(&in->picker_at[kind], key);

    if (row == HK_NONE) {
        return;
    }
    note_change(in, kind, key, &in->pickers.at[row].sel);
    ingest_spread_remove_from_shelf(in, row);
    picker_strings(&in->pickers.at[row], &in->m->str, hk_intern_drop);
    hk_free((void *)in->pickers.at[row].sel.at);
    in->pickers.at[row] = (struct picker){.shelf = ID_NONE};
    hk_map_del(&in->picker_at[kind], key);
    hk_vec_push(&in->pickers_free, row);
}

static uint32_t vacant_row(struct ingest *in)
{
    if (in->pickers_free.len > 0) {
        return hk_vec_pop(&in->pickers_free);
    }
    hk_vec_push(&in->pickers, ((struct picker){.shelf = ID_NONE}));
    return in->pickers.len - 1;
}

static void picker_put(struct ingest *in, enum picker_kind kind, const struct api_workload *w)
{
    const uint32_t ns = ingest_str(in, ingest_ns(w->meta.ns));
    const uint64_t key = PAIR_KEY(ns, ingest_str(in, w->meta.name));
    const struct label_sel sel = ingest_sel(in, &w->selector);
    uint32_t row = hk_map_get(&in->picker_at[kind], key);
    struct picker *p;

    /* Status updates of controllers are frequent and change no selector. */
    if (row != HK_NONE && ingest_sel_same(&in->pickers.at[row].sel, &sel)) {
        return;
    }
    ingest_spread_drop_picker(in, kind, key);
    row = vacant_row(in);
    p = &in->pickers.at[row];
    p->ns = ns;
    p->name = (uint32_t)key;
    p->sel = ingest_sel_copy(&sel);
    picker_strings(p, &in->m->str, hk_intern_keep);
    hk_map_put(&in->picker_at[kind], key, row);
    note_change(in, kind, key, &sel);
    if (kind == PICK_SERVICE) {
        file_service(in, row);
    }
}

static void picker_del(struct ingest *in, enum picker_kind kind, struct hk_str ns,
                       struct hk_str name)
{
    ingest_spread_drop_picker(in, kind, PAIR_KEY(ingest_str(in, ns), ingest_str(in, name)));
}

#define PICKER(name, kind, decode)                                                                 \
    int ingest_##name##_put(struct ingest *in, const struct json *doc, struct hk_err *err)         \
    {                                                                                              \
        struct api_workload w;                                                                     \
        int rc = decode(doc, &in->mem, &w, err);                                                   \
                                                                                                   \
        if (rc == 0) {                                                                             \
            picker_put(in, kind, &w);                                                              \
        }                                                                                          \
        return rc;                                                                                 \
    }                                                                                              \
    void ingest_##name##_del(struct ingest *in, struct hk_str ns, struct hk_str obj)               \
    {                                                                                              \
        picker_del(in, kind, ns, obj);                                                             \
    }

PICKER(service, PICK_SERVICE, api_service_decode)
PICKER(rc, PICK_RC, api_service_decode)
PICKER(rs, PICK_RS, api_workload_decode)
PICKER(sts, PICK_STS, api_workload_decode)

/* ---- constraints of a pod ---- */

struct pod_owner ingest_spread_owner(struct ingest *in, const struct api_meta *meta)
{
    const struct api_owner *o = api_meta_controller(meta);
    const struct api_kind *kind = o ? api_kind_find(o->api_version, o->kind) : NULL;
    struct pod_owner ret = {0};

    if (!kind) {
        return ret;
    }
    switch (kind->id) {
    case API_REPLICATION_CONTROLLER:
        ret.kind = PICK_RC;
        break;
    case API_REPLICA_SET:
        ret.kind = PICK_RS;
        break;
    case API_STATEFUL_SET:
        ret.kind = PICK_STS;
        break;
    default:
        return ret;
    }
    ret.name = ingest_str(in, o->name);
    return ret;
}

typedef HK_VEC(struct label_req) req_vec;

static void add_reqs(req_vec *v, const struct label_sel *s)
{
    for (uint32_t k = 0; k < s->n; k++) {
        hk_vec_push(v, s->at[k]);
    }
}

static void add_services(struct ingest *in, uint32_t ns, struct labels labels, req_vec *v)
{
    for (uint32_t k = 0; k < labels.n; k++) {
        const uint64_t key = PAIR_KEY(labels.at[k].key, labels.at[k].val);
        const uint32_t i = hk_map_get(&in->shelf_at, key);
        for (uint32_t s = 0; i != HK_NONE && s < in->shelves.at[i].at.len; s++) {
            const struct picker *p = &in->pickers.at[in->shelves.at[i].at.at[s]];
            if (p->ns == ns && label_sel_match(&p->sel, labels, &in->m->str)) {
                add_reqs(v, &p->sel);
            }
        }
    }
}

static void add_owner(struct ingest *in, uint32_t ns, struct pod_owner owner, req_vec *v)
{
    const uint32_t row =
        owner.name ? hk_map_get(&in->picker_at[owner.kind], PAIR_KEY(ns, owner.name)) : HK_NONE;

    if (row != HK_NONE && !in->pickers.at[row].sel.nothing) {
        add_reqs(v, &in->pickers.at[row].sel);
    }
}

static int req_cmp(const void *a, const void *b)
{
    const struct label_req *x = a, *y = b;

    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    if (x->op != y->op) {
        return x->op < y->op ? -1 : 1;
    }
    if (x->n != y->n) {
        return x->n < y->n ? -1 : 1;
    }
    return x->n > 0 ? memcmp(x->vals, y->vals, x->n * sizeof(*x->vals)) : 0;
}

/* Sorted and without duplicates, so that order of arrival and overlap do not change the shape. */
static struct label_sel ingest_spread_make_selector(struct ingest *in, const req_vec *v)
{
    struct label_req *at = hk_arena_array(&in->mem, v->len, sizeof(*at));
    uint32_t n = 0;

    memcpy(at, v->at, v->len * sizeof(*at));
    qsort(at, v->len, sizeof(*at), req_cmp);
    for (uint32_t k = 0; k < v->len; k++) {
        if (n == 0 || req_cmp(&at[n - 1], &at[k]) != 0) {
            at[n++] = at[k];
        }
    }
    return (struct label_sel){.n = n, .at = at};
}

void ingest_spread_default(struct ingest *in, struct cons *draft, uint32_t ns, struct labels labels,
                           struct pod_owner owner)
{
    static const struct {
        const char *key;
        int32_t max_skew;
    } rows[] = {{API_LABEL_HOSTNAME, 3}, {API_LABEL_ZONE, 5}};
    req_vec v = {0};

    if (in->pickers.len == 0 || draft->nspread > 0) {
        return;
    }
    add_services(in, ns, labels, &v);
    add_owner(in, ns, owner, &v);
    if (v.len > 0) {
        struct spread *at = hk_arena_array(&in->mem, HK_LEN(rows), sizeof(*at));
        const struct label_sel sel = ingest_spread_make_selector(in, &v);
        for (uint32_t k = 0; k < HK_LEN(rows); k++) {
            at[k] = (struct spread){.topo_key = ingest_str(in, hk_str(rows[k].key)),
                                    .max_skew = rows[k].max_skew,
                                    .min_domains = 1,
                                    .honor_affinity = true,
                                    .system_default = true,
                                    .sel = sel};
        }
        draft->spread = at;
        draft->nspread = HK_LEN(rows);
    }
    hk_vec_fini(&v);
}

/* ---- updating waiting pods ---- */

static bool same_rows(const struct cons *have, const struct cons *want)
{
    const uint32_t n = have ? have->nspread : 0;

    return n == want->nspread &&
           (n == 0 || ingest_sel_same(&have->spread[0].sel, &want->spread[0].sel));
}

static void respread(struct ingest *in, task_id t)
{
    const struct task *task = model_task(in->m, t);
    const struct cons *c = task_cons(in->m, t);
    struct cons draft = {0};

    if (c) {
        draft = *c;
    }
    if (draft.nspread > 0 && !draft.spread[0].system_default) {
        return;
    }
    draft.nspread = 0;
    ingest_spread_default(in, &draft, task->ns, ident_labels(in->m, task->ident),
                          in->notes.at[t.i].owner);
    if (!same_rows(c, &draft)) {
        ingest_pod_set_cons(in, t, ingest_cons_intern(in, &draft));
    }
}

void ingest_spread_settle(struct ingest *in)
{
    const struct model *m = in->m;
    HK_VEC(task_id) waiting = {0};

    if (in->stale_ns.len == 0) {
        return;
    }
    for (uint32_t i = 0; i < m->jobs.len; i++) {
        const struct job *j = &m->jobs.at[i];
        if (!j->used || hk_map_get(&in->stale_ns, j->ns) == HK_NONE) {
            continue;
        }
        for (task_id t = j->pending; !id_none(t); t = model_task(m, t)->job_next) {
            if (is_concerned(in, t)) {
                hk_vec_push(&waiting, t);
            }
        }
    }
    for (uint32_t k = 0; k < waiting.len; k++) {
        respread(in, waiting.at[k]);
        ingest_clear(in);
    }
    hk_vec_fini(&waiting);
    forget_changes(in);
}

void ingest_spread_fini(struct ingest *in)
{
    for (uint32_t k = 0; k < in->pickers.len; k++) {
        hk_free((void *)in->pickers.at[k].sel.at);
    }
    hk_vec_fini(&in->pickers);
    hk_vec_fini(&in->pickers_free);
    for (uint32_t k = 0; k < in->shelves.len; k++) {
        hk_vec_fini(&in->shelves.at[k].at);
    }
    hk_vec_fini(&in->shelves);
    hk_vec_fini(&in->shelves_free);
    for (uint32_t k = 0; k < PICK_NKINDS; k++) {
        hk_map_fini(&in->picker_at[k]);
    }
    hk_map_fini(&in->shelf_at);
    forget_changes(in);
    hk_vec_fini(&in->changes);
    hk_vec_fini(&in->stale);
    hk_map_fini(&in->stale_ns);
}
