// SPDX-License-Identifier: Apache-2.0
// Tables of storage objects, from which volume limits, zones and binding are computed. Nothing here
// writes to the API. In-tree volume sources are not translated to their CSI drivers; they count
// against no limit.

#include "scheduler/model/volumes_priv.h"

static const char *const zone_keys[NZONE] = {
    /* The stable key two entries further on also satisfies a beta key. */
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
};

/* ---- copies ---- */

/* Copies terms with all requirements and values into one block; free it with hk_free. */
static struct node_term *terms_copy(const struct node_term *in, uint32_t n)
{
    size_t nreq = 0, nval = 0;

    for (uint32_t i = 0; i < n; i++) {
        nreq += in[i].nreq + in[i].nfield;
        for (uint32_t k = 0; k < in[i].nreq; k++) {
            nval += in[i].req[k].n;
        }
        for (uint32_t k = 0; k < in[i].nfield; k++) {
            nval += in[i].field[k].n;
        }
    }
    struct node_term *out =
        hk_zalloc(n * sizeof(*out) + nreq * sizeof(struct label_req) + nval * sizeof(uint32_t) + 1);
    struct label_req *req = (struct label_req *)(out + n);
    uint32_t *val = (uint32_t *)(req + nreq);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = in[i];
        out[i].req = req;
        out[i].field = req + in[i].nreq;
        for (uint32_t k = 0; k < in[i].nreq + in[i].nfield; k++, req++) {
            *req = k < in[i].nreq ? in[i].req[k] : in[i].field[k - in[i].nreq];
            for (uint32_t v = 0; v < req->n; v++) {
                val[v] = req->vals[v];
            }
            req->vals = val;
            val += req->n;
        }
    }
    return out;
}

static struct node_term *selector_copy(const struct label_sel *s)
{
    const struct node_term t = {.req = s->at, .nreq = s->n};

    return terms_copy(&t, 1);
}

/* ---- strings of rows ---- */

static void claim_strings(const struct claim *c, struct hk_intern *t, string_fn *f)
{
    const struct claim_desc *d = &c->d;

    f(t, d->key);
    f(t, d->uid);
    f(t, d->owner);
    f(t, d->volume);
    f(t, d->class_);
    f(t, d->attributes_class);
    f(t, d->selected_node);
    f(t, c->assumed_node);
    node_terms_strings(c->sel, c->sel ? 1 : 0, t, f);
}

static void pv_strings(const struct pv *p, struct hk_intern *t, string_fn *f)
{
    const struct pv_desc *d = &p->d;

    f(t, d->name);
    f(t, d->class_);
    f(t, d->attributes_class);
    f(t, d->ref);
    f(t, d->ref_uid);
    f(t, d->driver);
    f(t, d->handle);
    labels_strings(d->labels, t, f);
    node_terms_strings(d->term, d->term ? d->nterm : 0, t, f);
}

static void sclass_strings(const struct sclass *s, struct hk_intern *t, string_fn *f)
{
    f(t, s->d.name);
    f(t, s->d.provisioner);
    node_terms_strings(s->d.topology, s->d.topology ? s->d.ntopology : 0, t, f);
}

static void csi_node_strings(const struct csi_node *c, struct hk_intern *t, string_fn *f)
{
    f(t, c->name);
    for (uint32_t i = 0; i < c->limits.len; i++) {
        f(t, c->limits.at[i].driver);
    }
}

static void csi_capacity_strings(const struct csi_capacity *c, struct hk_intern *t, string_fn *f)
{
    f(t, c->key);
    f(t, c->class_);
    node_terms_strings(c->topology, c->topology ? 1 : 0, t, f);
}

static void attachment_strings(const struct attachment *a, struct hk_intern *t, string_fn *f)
{
    f(t, a->d.name);
    f(t, a->d.attacher);
    f(t, a->d.node);
    f(t, a->d.pv);
}

void volumes_strings(const struct volumes *v, struct hk_intern *t, string_fn *f)
{
    ROWS_STRINGS(&v->claims, claim_strings, t, f);
    ROWS_STRINGS(&v->pvs, pv_strings, t, f);
    ROWS_STRINGS(&v->classes, sclass_strings, t, f);
    ROWS_STRINGS(&v->csi_nodes, csi_node_strings, t, f);
    ROWS_STRINGS(&v->capacities, csi_capacity_strings, t, f);
    ROWS_STRINGS(&v->attachments, attachment_strings, t, f);
}

/* ---- rows ---- */

struct volumes *volumes_new(void)
{
    return hk_zalloc(sizeof(struct volumes));
}

static void claim_fini(struct claim *c)
{
    hk_free(c->sel);
}

static void pv_fini(struct pv *p)
{
    hk_free((void *)p->d.labels.at);
    hk_free((void *)p->d.term);
}

static void sclass_fini(struct sclass *s)
{
    hk_free((void *)s->d.topology);
    hk_vec_fini(&s->pvs);
    hk_vec_fini(&s->capacities);
}

#define TABLE_FINI(t, row_fini)                                                                    \
    do {                                                                                           \
        for (uint32_t i_ = 0; i_ < (t)->len; i_++) {                                               \
            row_fini(&(t)->at[i_]);                                                                \
        }                                                                                          \
        hk_free((t)->at);                                                                          \
        hk_vec_fini(&(t)->free);                                                                   \
    } while (0)

static void csi_node_fini(struct csi_node *c)
{
    hk_vec_fini(&c->limits);
}

static void csi_capacity_fini(struct csi_capacity *c)
{
    hk_free(c->topology);
}

static void nothing_to_end(void *row)
{
}

void volumes_free(struct volumes *v)
{
    if (!v) {
        return;
    }
    struct hk_map *maps[] = {
        &v->claim_by_key,    &v->pv_by_name,         &v->class_by_name, &v->csi_node_by_name,
        &v->capacity_by_key, &v->attachment_by_name, &v->pvs_by_ref,    &v->attachments_by_node,
        &v->hold_by_task,    &v->tracks_capacity,
    };
    for (size_t i = 0; i < HK_LEN(maps); i++) {
        hk_map_fini(maps[i]);
    }
    TABLE_FINI(&v->claims, claim_fini);
    TABLE_FINI(&v->pvs, pv_fini);
    TABLE_FINI(&v->classes, sclass_fini);
    TABLE_FINI(&v->csi_nodes, csi_node_fini);
    TABLE_FINI(&v->capacities, csi_capacity_fini);
    TABLE_FINI(&v->attachments, nothing_to_end);
    TABLE_FINI(&v->holds, nothing_to_end);
    hk_vec_fini(&v->plan);
    hk_vec_fini(&v->fresh);
    hk_vec_fini(&v->attached);
    hk_free(v);
}

static struct sclass *need_class(struct model *m, uint32_t name)
{
    struct volumes *v = m->volumes;
    uint32_t row = hk_map_get(&v->class_by_name, name);

    if (row == HK_NONE) {
        row = TABLE_ROW(&v->classes);
        v->classes.at[row].d.name = name;
        hk_intern_keep(&m->str, name);
        hk_map_put(&v->class_by_name, name, row);
    }
    return &v->classes.at[row];
}

/* ---- claims ---- */

void volumes_claim_drop(struct model *m, uint32_t row)
{
    struct volumes *v = m->volumes;
    struct claim *c = &v->claims.at[row];

    if (!c->used && c->nhold == 0) {
        claim_strings(c, &m->str, hk_intern_drop);
        claim_fini(c);
        *c = (struct claim){0};
        hk_vec_push(&v->claims.free, row);
    }
}

void volumes_claim_put(struct model *m, const struct claim_desc *d)
{
    struct volumes *v = m->volumes;
    uint32_t row = hk_map_get(&v->claim_by_key, d->key);

    if (row == HK_NONE) {
        row = TABLE_ROW(&v->claims);
        v->claims.at[row].assumed_pv = ID_NONE;
        hk_map_put(&v->claim_by_key, d->key, row);
    }
    struct claim *c = &v->claims.at[row], old = *c;
    c->used = true;
    c->d = *d;
    c->d.sel = (struct label_sel){0};
    c->sel = d->has_sel ? selector_copy(&d->sel) : NULL;
    claim_strings(c, &m->str, hk_intern_keep);
    claim_strings(&old, &m->str, hk_intern_drop);
    claim_fini(&old);
    model_wake_up(m, WAKE_VOLUME);
}

void volumes_claim_del(struct model *m, uint32_t key)
{
    struct volumes *v = m->volumes;
    const uint32_t row = hk_map_get(&v->claim_by_key, key);

    if (row != HK_NONE) {
        hk_map_del(&v->claim_by_key, key);
        v->claims.at[row].used = false;
        volumes_claim_drop(m, row);
    }
    model_wake_up(m, WAKE_VOLUME);
}

/* ---- volumes ---- */

/* Order within a class: smallest first, as the search wants. */
static bool pv_before(const struct model *m, const struct pv *a, const struct pv *b)
{
    if (a->d.capacity != b->d.capacity) {
        return a->d.capacity < b->d.capacity;
    }
    return hk_str_cmp(model_str(m, a->d.name), model_str(m, b->d.name)) < 0;
}

/* The position of the volume in its class, or where to insert it. */
static uint32_t pv_place(const struct model *m, const struct sclass *s, const struct pv *p)
{
    uint32_t lo = 0, hi = s->pvs.len;

    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (pv_before(m, &m->volumes->pvs.at[s->pvs.at[mid]], p)) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static void pv_list(struct model *m, uint32_t row)
{
    struct volumes *v = m->volumes;
    struct pv *p = &v->pvs.at[row];
    struct sclass *s = need_class(m, p->d.class_);
    const uint32_t at = pv_place(m, s, p);

    hk_vec_reserve(&s->pvs, s->pvs.len + 1);
    memmove(&s->pvs.at[at + 1], &s->pvs.at[at], (s->pvs.len - at) * sizeof(s->pvs.at[0]));
    s->pvs.at[at] = row;
    s->pvs.len++;
    if (p->d.ref != 0) {
        p->ref_next = hk_map_get(&v->pvs_by_ref, p->d.ref);
        hk_map_put(&v->pvs_by_ref, p->d.ref, row);
    }
}

/* Removes a row from a chain that begins in the map. */
#define CHAIN_DROP(map, key, row, table, link)                                                     \
    do {                                                                                           \
        uint32_t at_ = hk_map_get(map, key);                                                       \
        if (at_ == (row) && (table)->at[row].link == ID_NONE) {                                    \
            hk_map_del(map, key);                                                                  \
        } else if (at_ == (row)) {                                                                 \
            hk_map_put(map, key, (table)->at[row].link);                                           \
        } else {                                                                                   \
            while ((table)->at[at_].link != (row)) {                                               \
                at_ = (table)->at[at_].link;                                                       \
            }                                                                                      \
            (table)->at[at_].link = (table)->at[row].link;                                         \
        }                                                                                          \
    } while (0)

static void pv_unlist(struct model *m, uint32_t row)
{
    struct volumes *v = m->volumes;
    struct pv *p = &v->pvs.at[row];
    struct sclass *s = need_class(m, p->d.class_);
    const uint32_t at = pv_place(m, s, p);

    hk_assert(s->pvs.at[at] == row);
    s->pvs.len--;
    memmove(&s->pvs.at[at], &s->pvs.at[at + 1], (s->pvs.len - at) * sizeof(s->pvs.at[0]));
    if (p->d.ref != 0) {
        CHAIN_DROP(&v->pvs_by_ref, p->d.ref, row, &v->pvs, ref_next);
    }
}

static void zone_keys_need(struct model *m)
{
    for (uint32_t i = 0; i < NZONE; i++) {
        m->volumes->zone_key[i] = hk_intern(&m->str, hk_str(zone_keys[i]));
    }
}

void volumes_pv_drop(struct model *m, uint32_t row)
{
    struct volumes *v = m->volumes;
    struct pv *p = &v->pvs.at[row];

    if (!p->used && p->nhold == 0) {
        pv_strings(p, &m->str, hk_intern_drop);
        pv_fini(p);
        *p = (struct pv){0};
        hk_vec_push(&v->pvs.free, row);
    }
}

void volumes_pv_put(struct model *m, const struct pv_desc *d)
{
    struct volumes *v = m->volumes;
    uint32_t row = hk_map_get(&v->pv_by_name, d->name);
    struct label *labels = NULL;

    if (row == HK_NONE) {
        row = TABLE_ROW(&v->pvs);
        v->pvs.at[row].assumed = ID_NONE;
        hk_map_put(&v->pv_by_name, d->name, row);
    } else {
        pv_unlist(m, row);
    }
    if (d->labels.n > 0) {
        labels = hk_alloc(d->labels.n * sizeof(*labels));
        memcpy(labels, d->labels.at, d->labels.n * sizeof(*labels));
    }
    struct pv *p = &v->pvs.at[row], old = *p;
    p->used = true;
    p->d = *d;
    p->d.labels.at = labels;
    p->d.term = d->has_terms ? terms_copy(d->term, d->nterm) : NULL;
    pv_strings(p, &m->str, hk_intern_keep);
    pv_strings(&old, &m->str, hk_intern_drop);
    pv_fini(&old);
    zone_keys_need(m);
    p->zoned = has_zone_label(v, p->d.labels);
    pv_list(m, row);
    model_wake_up(m, WAKE_VOLUME);
}

void volumes_pv_del(struct model *m, uint32_t name)
{
    struct volumes *v = m->volumes;
    const uint32_t row = hk_map_get(&v->pv_by_name, name);

    if (row != HK_NONE) {
        pv_unlist(m, row);
        hk_map_del(&v->pv_by_name, name);
        v->pvs.at[row].used = false;
        volumes_pv_drop(m, row);
    }
    model_wake_up(m, WAKE_VOLUME);
}

/* ---- classes and CSI objects ---- */

void volumes_class_put(struct model *m, const struct storage_class_desc *d)
{
    struct sclass *s = need_class(m, d->name);
    const struct sclass old = *s;

    s->d = *d;
    s->d.topology = d->ntopology > 0 ? terms_copy(d->topology, d->ntopology) : NULL;
    sclass_strings(s, &m->str, hk_intern_keep);
    sclass_strings(&old, &m->str, hk_intern_drop);
    hk_free((void *)old.d.topology);
    s->known = true;
    s->provisions = d->provisioner != 0 &&
                    !hk_str_is(model_str(m, d->provisioner), "kubernetes.io/no-provisioner");
    model_wake_up(m, WAKE_VOLUME);
}

void volumes_class_del(struct model *m, uint32_t name)
{
    need_class(m, name)->known = false;
    model_wake_up(m, WAKE_VOLUME);
}

void volumes_csi_node_put(struct model *m, uint32_t node, const struct csi_limit *at, uint32_t n)
{
    struct volumes *v = m->volumes;
    uint32_t row = hk_map_get(&v->csi_node_by_name, node);

    if (row == HK_NONE) {
        row = TABLE_ROW(&v->csi_nodes);
        hk_map_put(&v->csi_node_by_name, node, row);
    }
    struct csi_node *c = &v->csi_nodes.at[row], old = *c;
    *c = (struct csi_node){.name = node};
    for (uint32_t i = 0; i < n; i++) {
        hk_vec_push(&c->limits, at[i]);
    }
    csi_node_strings(c, &m->str, hk_intern_keep);
    csi_node_strings(&old, &m->str, hk_intern_drop);
    csi_node_fini(&old);
    model_wake_up(m, WAKE_VOLUME);
}

void volumes_csi_node_del(struct model *m, uint32_t node)
{
    struct volumes *v = m->volumes;
    const uint32_t row = hk_map_get(&v->csi_node_by_name, node);

    if (row != HK_NONE) {
        hk_map_del(&v->csi_node_by_name, node);
        csi_node_strings(&v->csi_nodes.at[row], &m->str, hk_intern_drop);
        csi_node_fini(&v->csi_nodes.at[row]);
        v->csi_nodes.at[row] = (struct csi_node){0};
        hk_vec_push(&v->csi_nodes.free, row);
    }
    model_wake_up(m, WAKE_VOLUME);
}

void volumes_csi_driver_put(struct model *m, uint32_t name, bool storage_capacity)
{
    if (hk_map_get(&m->volumes->tracks_capacity, name) == HK_NONE) {
        hk_intern_keep(&m->str, name);
    }
    hk_map_put(&m->volumes->tracks_capacity, name, storage_capacity);
    model_wake_up(m, WAKE_VOLUME);
}

void volumes_csi_driver_del(struct model *m, uint32_t name)
{
    if (hk_map_del(&m->volumes->tracks_capacity, name)) {
        hk_intern_drop(&m->str, name);
    }
    model_wake_up(m, WAKE_VOLUME);
}

void volumes_csi_capacity_put(struct model *m, const struct csi_capacity_desc *d)
{
    struct volumes *v = m->volumes;

    volumes_csi_capacity_del(m, d->key);
    const uint32_t row = TABLE_ROW(&v->capacities);
    v->capacities.at[row] = (struct csi_capacity){
        .key = d->key,
        .class_ = d->class_,
        .topology = d->topology.nothing ? NULL : selector_copy(&d->topology),
        .limit = d->limit,
    };
    csi_capacity_strings(&v->capacities.at[row], &m->str, hk_intern_keep);
    hk_map_put(&v->capacity_by_key, d->key, row);
    struct sclass *s = need_class(m, d->class_);
    hk_vec_push(&s->capacities, row);
    model_wake_up(m, WAKE_VOLUME);
}

void volumes_csi_capacity_del(struct model *m, uint32_t key)
{
    struct volumes *v = m->volumes;
    const uint32_t row = hk_map_get(&v->capacity_by_key, key);

    if (row == HK_NONE) {
        return;
    }
    struct sclass *s = need_class(m, v->capacities.at[row].class_);
    for (uint32_t i = 0; i < s->capacities.len; i++) {
        if (s->capacities.at[i] == row) {
            hk_vec_swap_remove(&s->capacities, i);
            break;
        }
    }
    hk_map_del(&v->capacity_by_key, key);
    csi_capacity_strings(&v->capacities.at[row], &m->str, hk_intern_drop);
    csi_capacity_fini(&v->capacities.at[row]);
    v->capacities.at[row] = (struct csi_capacity){0};
    hk_vec_push(&v->capacities.free, row);
    model_wake_up(m, WAKE_VOLUME);
}

void volumes_attachment_put(struct model *m, const struct attachment_desc *d)
{
    struct volumes *v = m->volumes;

    volumes_attachment_del(m, d->name);
    const uint32_t row = TABLE_ROW(&v->attachments);
    v->attachments.at[row] = (struct attachment){
        .d = *d,
        .next = hk_map_get(&v->attachments_by_node, d->node),
    };
    attachment_strings(&v->attachments.at[row], &m->str, hk_intern_keep);
    hk_map_put(&v->attachments_by_node, d->node, row);
    hk_map_put(&v->attachment_by_name, d->name, row);
    model_wake_up(m, WAKE_VOLUME);
}

void volumes_attachment_del(struct model *m, uint32_t name)
{
    struct volumes *v = m->volumes;
    const uint32_t row = hk_map_get(&v->attachment_by_name, name);

    if (row != HK_NONE) {
        CHAIN_DROP(&v->attachments_by_node, v->attachments.at[row].d.node, row, &v->attachments,
                   next);
        hk_map_del(&v->attachment_by_name, name);
        attachment_strings(&v->attachments.at[row], &m->str, hk_intern_drop);
        v->attachments.at[row] = (struct attachment){0};
        hk_vec_push(&v->attachments.free, row);
    }
    model_wake_up(m, WAKE_VOLUME);
}

/* ---- messages ---- */

/* Formats on the stack: a task that waits for its claim is refused in every cycle, and only the
 * first time may allocate memory. */
struct reason volumes_reason(struct model *m, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    const struct hk_str s = {text, HK_MIN((size_t)HK_MAX(n, 0), sizeof(text) - 1)};
    return (struct reason){.code = REASON_TEXT, .arg = model_word(m, s)};
}

struct reason volumes_not_owner(struct model *m, task_id t, uint32_t key, const char *prefix)
{
    const struct task *task = model_task(m, t);

    return volumes_reason(m, "%sPVC %s was not created for pod %s/%s (pod is not owner)", prefix,
                          model_str(m, key).s, model_str(m, task->ns).s,
                          model_str(m, task->name).s);
}

bool volumes_asked(const struct model *m, task_id t)
{
    const struct cons *c = task_cons(m, t);

    return c && c->nclaim > 0;
}
