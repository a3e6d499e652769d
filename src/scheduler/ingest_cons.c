// SPDX-License-Identifier: Apache-2.0
// Constraints of a pod: selectors, terms, tolerations, ports, spread, claims, images
// (docs/reference/plugins.md section 4). They are built in scratch memory and packed into canonical
// bytes. The same walk over the fields packs and unpacks, so the bytes are both the key for finding
// equal constraints and the source of the stored copy.
#include "scheduler/ingest_priv.h"

/* ---- packing ---- */

/* Either out (packing) or at (unpacking into mem) is set. */
struct pack {
    struct hk_buf *out;
    size_t room; /* bytes that unpacking needs */
    const char *at;
    struct hk_arena *mem;
};

static void pack_bytes(struct pack *p, void *v, size_t n)
{
    if (p->at) {
        memcpy(v, p->at, n);
        p->at += n;
    } else {
        hk_buf_add(p->out, v, n);
    }
}

#define PACK(p, field) pack_bytes(p, &(field), sizeof(field))

/* The array to walk: the draft's own array, or a new one when unpacking. */
static void *pack_array(struct pack *p, uint32_t *n, const void *at, size_t size)
{
    PACK(p, *n);
    if (p->mem) {
        return hk_arena_zalloc(p->mem, *n * size);
    }
    p->room += HK_ARENA_ROOM(*n * size);
    return (void *)at;
}

/* Runs body with x at each element of the array field, counted by count. */
#define PACK_EACH(p, type, x, field, count)                                                        \
    type *at_##x = pack_array(p, &(count), field, sizeof(type));                                   \
    (field) = at_##x;                                                                              \
    for (type *x = at_##x; x && x < at_##x + (count); x++)

static void pack_ids(struct pack *p, const uint32_t **field, uint32_t *n)
{
    uint32_t *at = pack_array(p, n, *field, sizeof(*at));

    *field = at;
    for (uint32_t k = 0; k < *n; k++) {
        PACK(p, at[k]);
    }
}

static void pack_reqs(struct pack *p, const struct label_req **field, uint32_t *n)
{
    PACK_EACH(p, struct label_req, r, *field, *n)
    {
        PACK(p, r->key);
        PACK(p, r->op);
        PACK(p, r->num);
        pack_ids(p, &r->vals, &r->n);
    }
}

static void pack_sel(struct pack *p, struct label_sel *s)
{
    PACK(p, s->nothing);
    pack_reqs(p, &s->at, &s->n);
}

static void pack_node_terms(struct pack *p, const struct node_term **field, uint32_t *n)
{
    PACK_EACH(p, struct node_term, t, *field, *n)
    {
        PACK(p, t->never);
        PACK(p, t->weight);
        pack_reqs(p, &t->req, &t->nreq);
        pack_reqs(p, &t->field, &t->nfield);
    }
}

static void pack_pod_terms(struct pack *p, const struct pod_term **field, uint32_t *n)
{
    PACK_EACH(p, struct pod_term, t, *field, *n)
    {
        pack_sel(p, &t->sel);
        PACK(p, t->topo_key);
        pack_ids(p, &t->ns, &t->nns);
        PACK(p, t->has_ns_sel);
        pack_sel(p, &t->ns_sel);
        PACK(p, t->weight);
    }
}

static void pack_tolerations(struct pack *p, struct cons *c)
{
    PACK_EACH(p, struct toleration, t, c->tol, c->ntol)
    {
        PACK(p, t->key);
        PACK(p, t->val);
        PACK(p, t->exists);
        PACK(p, t->never);
        PACK(p, t->any_effect);
        PACK(p, t->effect);
    }
}

static void pack_ports(struct pack *p, struct cons *c)
{
    PACK_EACH(p, struct host_port, h, c->port, c->nport)
    {
        PACK(p, h->ip);
        PACK(p, h->port);
        PACK(p, h->proto);
    }
}

static void pack_spread(struct pack *p, struct cons *c)
{
    PACK_EACH(p, struct spread, s, c->spread, c->nspread)
    {
        PACK(p, s->topo_key);
        PACK(p, s->max_skew);
        PACK(p, s->min_domains);
        PACK(p, s->hard);
        PACK(p, s->honor_affinity);
        PACK(p, s->honor_taints);
        PACK(p, s->system_default);
        pack_sel(p, &s->sel);
    }
}

static void pack_claims(struct pack *p, struct cons *c)
{
    uint32_t n = c->nclaim;

    pack_ids(p, &c->claim, &c->nclaim);
    PACK_EACH(p, bool, e, c->claim_ephemeral, n)
    {
        PACK(p, *e);
    }
    PACK(p, c->inline_csi);
}

static void pack_cons(struct pack *p, struct cons *c)
{
    PACK_EACH(p, struct label, l, c->sel, c->nsel)
    {
        PACK(p, l->key);
        PACK(p, l->val);
    }
    PACK(p, c->has_terms);
    PACK(p, c->name_conflict);
    PACK(p, c->pref_error);
    pack_node_terms(p, &c->term, &c->nterm);
    pack_node_terms(p, &c->pref, &c->npref);
    pack_tolerations(p, c);
    pack_ports(p, c);
    pack_pod_terms(p, &c->aff, &c->naff);
    pack_pod_terms(p, &c->anti, &c->nanti);
    pack_pod_terms(p, &c->pref_aff, &c->npref_aff);
    pack_pod_terms(p, &c->pref_anti, &c->npref_anti);
    pack_spread(p, c);
    pack_claims(p, c);
    pack_ids(p, &c->image, &c->nimage);
    PACK(p, c->nimage_containers);
}

static bool asks_nothing(const struct cons *c)
{
    return c->nsel == 0 && !c->has_terms && c->npref == 0 && !c->pref_error && c->ntol == 0 &&
           c->nport == 0 && c->naff == 0 && c->nanti == 0 && c->npref_aff == 0 &&
           c->npref_anti == 0 && c->nspread == 0 && c->nclaim == 0 && !c->inline_csi &&
           c->nimage == 0;
}

cons_id ingest_cons_intern(struct ingest *in, const struct cons *draft)
{
    struct pack packed = {.out = &in->key};
    struct hk_arena mem = {0};
    struct cons walked = *draft, *c;
    char *key;

    if (asks_nothing(draft)) {
        return NO_CONS;
    }
    hk_buf_clear(&in->key);
    pack_cons(&packed, &walked);

    /* There can be as many constraints as jobs, so each allocates exactly what it needs. */
    hk_arena_reserve(&mem, packed.room + HK_ARENA_ROOM(sizeof(*c)) + HK_ARENA_ROOM(in->key.len));
    c = hk_arena_zalloc(&mem, sizeof(*c));
    key = hk_arena_alloc(&mem, in->key.len);
    memcpy(key, in->key.data, in->key.len);
    pack_cons(&(struct pack){.at = key, .mem = &mem}, c);
    c->key = key;
    c->key_len = (uint32_t)in->key.len;
    c->mem = mem;
    return model_cons_intern(in->m, c);
}

/* ---- drafting ---- */

static bool names_nodes(const struct api_requirement *r)
{
    return r->op == API_OP_IN && hk_str_is(r->key, "metadata.name");
}

static bool ingest_cons_values_have(const struct api_requirement *r, struct hk_str name)
{
    for (uint32_t k = 0; k < r->values.len; k++) {
        if (hk_str_eq(r->values.at[k], name)) {
            return true;
        }
    }
    return false;
}

static bool named_by_all(const struct api_node_term *t, struct hk_str name)
{
    for (uint32_t k = 0; k < t->fields.len; k++) {
        if (names_nodes(&t->fields.at[k]) && !ingest_cons_values_have(&t->fields.at[k], name)) {
            return false;
        }
    }
    return true;
}

/* Whether the term requires node names and its requirements have no name in common. */
static bool term_conflicts(const struct api_node_term *t)
{
    for (uint32_t k = 0; k < t->fields.len; k++) {
        const struct api_requirement *r = &t->fields.at[k];
        if (!names_nodes(r)) {
            continue;
        }
        for (uint32_t i = 0; i < r->values.len; i++) {
            if (named_by_all(t, r->values.at[i])) {
                return false;
            }
        }
        return true;
    }
    return false;
}

/* Whether no node name satisfies any of the terms. kube-scheduler refuses such a pod before it
 * looks at any node. */
static bool names_conflict(const struct api_node_selector *s)
{
    for (uint32_t k = 0; k < s->len; k++) {
        if (!term_conflicts(&s->at[k])) {
            return false;
        }
    }
    return s->len > 0;
}

static void draft_node_affinity(struct ingest *in, const struct api_pod *pod, struct cons *c)
{
    const struct api_node_affinity *a = &pod->node_affinity;
    const struct labels sel = ingest_labels(in, &pod->node_selector);
    struct node_term *term = hk_arena_array(&in->mem, a->required.len, sizeof(*term));
    struct node_term *pref = hk_arena_array(&in->mem, a->preferred.len, sizeof(*pref));

    c->sel = sel.at;
    c->nsel = sel.n;
    c->has_terms = a->required.present;
    c->name_conflict = names_conflict(&a->required);
    for (uint32_t k = 0; k < a->required.len; k++) {
        term[c->nterm++] = ingest_term(in, &a->required.at[k]);
    }
    for (uint32_t k = 0; k < a->preferred.len; k++) {
        const struct api_node_term *t = &a->preferred.at[k];
        if (t->weight == 0 || t->exprs.len + t->fields.len == 0) {
            continue;
        }
        c->pref_error |= t->erroneous;
        pref[c->npref++] = ingest_term(in, t);
    }
    c->term = term;
    c->pref = pref;
}

static void draft_tolerations(struct ingest *in, const struct api_pod *pod, struct cons *c)
{
    struct toleration *at = hk_arena_array(&in->mem, pod->tolerations.len, sizeof(*at));

    for (uint32_t k = 0; k < pod->tolerations.len; k++) {
        const struct api_toleration *t = &pod->tolerations.at[k];
        at[k] = (struct toleration){
            .key = ingest_str(in, t->key),
            .val = ingest_str(in, t->value),
            .exists = t->op == API_TOLERATE_EXISTS,
            .never = t->op != API_TOLERATE_EXISTS && t->op != API_TOLERATE_EQUAL,
            .any_effect = t->effect == API_EFFECT_ANY,
            .effect = ingest_effect(t->effect),
        };
    }
    c->tol = at;
    c->ntol = pod->tolerations.len;
}

static uint32_t add_ports(struct ingest *in, const struct api_container *box, struct host_port *at)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < box->ports.len; k++) {
        const struct api_container_port *p = &box->ports.at[k];
        if (p->host_port > 0) {
            at[n++] = (struct host_port){.ip = ingest_str(in, p->host_ip),
                                         .port = (uint16_t)p->host_port,
                                         .proto = (uint8_t)p->protocol};
        }
    }
    return n;
}

/* Of the init containers, only sidecars keep their ports. */
static void draft_ports(struct ingest *in, const struct api_pod *pod, struct cons *c)
{
    uint32_t room = 0;
    struct host_port *at;

    for (uint32_t k = 0; k < pod->containers.len; k++) {
        room += pod->containers.at[k].ports.len;
    }
    for (uint32_t k = 0; k < pod->init_containers.len; k++) {
        room += pod->init_containers.at[k].ports.len;
    }
    if (room == 0) {
        return;
    }
    at = hk_arena_array(&in->mem, room, sizeof(*at));
    for (uint32_t k = 0; k < pod->containers.len; k++) {
        c->nport += add_ports(in, &pod->containers.at[k], at + c->nport);
    }
    for (uint32_t k = 0; k < pod->init_containers.len; k++) {
        if (pod->init_containers.at[k].restart_always) {
            c->nport += add_ports(in, &pod->init_containers.at[k], at + c->nport);
        }
    }
    c->port = at;
}

static struct pod_term pod_term(struct ingest *in, const struct api_pod_term *t, struct hk_str own)
{
    const struct api_strs self = {.at = &own, .len = 1};
    const bool own_only = t->namespaces.len == 0 && !t->namespace_selector.present;
    const struct api_strs *ns = own_only ? &self : &t->namespaces;

    return (struct pod_term){
        .sel = ingest_sel(in, &t->labels),
        .topo_key = ingest_str(in, t->topology_key),
        .nns = ns->len,
        .ns = ingest_ids(in, ns),
        .has_ns_sel = t->namespace_selector.present,
        .ns_sel = ingest_sel(in, &t->namespace_selector),
        .weight = t->weight,
    };
}

static const struct pod_term *pod_terms(struct ingest *in, const struct api_pod_term *t, uint32_t n,
                                        struct hk_str own, uint32_t *ret_n)
{
    struct pod_term *at = hk_arena_array(&in->mem, n, sizeof(*at));

    for (uint32_t k = 0; k < n; k++) {
        at[k] = pod_term(in, &t[k], own);
    }
    *ret_n = n;
    return at;
}

static void draft_pod_affinity(struct ingest *in, const struct api_pod *pod, struct cons *c)
{
    const struct hk_str ns = ingest_ns(pod->meta.ns);
    const struct api_pod_affinity *near = &pod->affinity, *apart = &pod->anti_affinity;

    c->aff = pod_terms(in, near->required.at, near->required.len, ns, &c->naff);
    c->pref_aff = pod_terms(in, near->preferred.at, near->preferred.len, ns, &c->npref_aff);
    c->anti = pod_terms(in, apart->required.at, apart->required.len, ns, &c->nanti);
    c->pref_anti = pod_terms(in, apart->preferred.at, apart->preferred.len, ns, &c->npref_anti);
}

/* The selector plus "key=value" for each matchLabelKeys entry that the pod has. */
static struct label_sel spread_sel(struct ingest *in, const struct api_spread *s, struct labels l)
{
    const struct label_sel base = ingest_sel(in, &s->labels);
    const uint32_t room = base.n + s->match_label_keys.len;
    struct label_req *at = hk_arena_array(&in->mem, room, sizeof(*at));
    uint32_t n = base.n;

    if (base.nothing) {
        return base;
    }
    for (uint32_t k = 0; k < base.n; k++) {
        at[k] = base.at[k];
    }
    for (uint32_t k = 0; k < s->match_label_keys.len; k++) {
        uint32_t *val = hk_arena_alloc(&in->mem, sizeof(*val));
        const uint32_t key = ingest_str(in, s->match_label_keys.at[k]);
        if (labels_get(l, key, val)) {
            at[n++] = (struct label_req){.key = key, .op = OP_IN, .n = 1, .vals = val};
        }
    }
    return (struct label_sel){.n = n, .at = at};
}

static void draft_spread(struct ingest *in, const struct api_pod *pod, struct labels l,
                         struct cons *c)
{
    struct spread *at = hk_arena_array(&in->mem, pod->spread.len, sizeof(*at));

    for (uint32_t k = 0; k < pod->spread.len; k++) {
        const struct api_spread *s = &pod->spread.at[k];
        at[k] = (struct spread){
            .topo_key = ingest_str(in, s->topology_key),
            .max_skew = s->max_skew,
            .min_domains = s->min_domains,
            .hard = s->when == API_DO_NOT_SCHEDULE,
            .honor_affinity = !s->ignore_affinity,
            .honor_taints = s->honor_taints,
            .sel = spread_sel(in, s, l),
        };
    }
    c->spread = at;
    c->nspread = pod->spread.len;
}

static uint32_t claim_id(struct ingest *in, const struct api_pod *pod, const struct api_volume *v)
{
    const struct hk_str ns = ingest_ns(pod->meta.ns);

    if (v->ephemeral) {
        return ingest_str(in, hk_str(hk_arena_printf(&in->mem, "%.*s/%.*s-%.*s", HK_FMT(ns),
                                                     HK_FMT(pod->meta.name), HK_FMT(v->name))));
    }
    return ingest_str(
        in, hk_str(hk_arena_printf(&in->mem, "%.*s/%.*s", HK_FMT(ns), HK_FMT(v->claim_name))));
}

static void draft_claims(struct ingest *in, const struct api_pod *pod, struct cons *c)
{
    uint32_t *claim = hk_arena_array(&in->mem, pod->volumes.len, sizeof(*claim));
    bool *ephemeral = hk_arena_array(&in->mem, pod->volumes.len, sizeof(*ephemeral));

    for (uint32_t k = 0; k < pod->volumes.len; k++) {
        const struct api_volume *v = &pod->volumes.at[k];
        c->inline_csi |= v->csi_driver.n > 0;
        if (v->claim_name.n > 0 || v->ephemeral) {
            claim[c->nclaim] = claim_id(in, pod, v);
            ephemeral[c->nclaim++] = v->ephemeral;
        }
    }
    c->claim = claim;
    c->claim_ephemeral = ephemeral;
}

/* A name whose last part has neither tag nor digest means ":latest". */
static uint32_t image_id(struct ingest *in, struct hk_str name)
{
    const char *slash = memrchr(name.s, '/', name.n), *colon = memrchr(name.s, ':', name.n);

    if (!colon || (slash && colon < slash)) {
        name = hk_str(hk_arena_printf(&in->mem, "%.*s:latest", HK_FMT(name)));
    }
    return ingest_str(in, name);
}

static void add_images(struct ingest *in, const struct api_containers *boxes, uint32_t *at,
                       struct cons *c)
{
    for (uint32_t k = 0; k < boxes->len; k++) {
        if (boxes->at[k].image.n > 0) {
            at[c->nimage++] = image_id(in, boxes->at[k].image);
        }
    }
    c->nimage_containers += boxes->len;
}

static void draft_images(struct ingest *in, const struct api_pod *pod, struct cons *c)
{
    const uint32_t room = pod->containers.len + pod->init_containers.len + pod->volumes.len;
    uint32_t *at = hk_arena_array(&in->mem, room, sizeof(*at));
    const struct json *volumes = json_at(pod->raw, "spec.volumes");

    add_images(in, &pod->init_containers, at, c);
    add_images(in, &pod->containers, at, c);
    for (uint32_t k = 0; k < pod->volumes.len; k++) {
        const struct hk_str ref =
            json_str(json_at(json_item(volumes, k), "image.reference"), HK_STR(""));
        if (ref.n > 0) {
            at[c->nimage++] = image_id(in, ref);
        }
    }
    c->image = at;
}

void ingest_cons_draft(struct ingest *in, const struct api_pod *pod, struct labels labels,
                       struct cons *draft)
{
    *draft = (struct cons){0};
    draft_node_affinity(in, pod, draft);
    draft_tolerations(in, pod, draft);
    draft_ports(in, pod, draft);
    draft_pod_affinity(in, pod, draft);
    draft_spread(in, pod, labels, draft);
    draft_claims(in, pod, draft);
    draft_images(in, pod, draft);
}
