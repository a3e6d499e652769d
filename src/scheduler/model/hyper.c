// SPDX-License-Identifier: Apache-2.0
// The hyperNode tree: topology domains over nodes (docs/reference/scheduler.md section 2.7). Ingest
// resolves selectors to names and passes the whole tree whenever a manifest or the set of nodes
// changes; rows keep their ids by name. Row 0 is the virtual root above all hyperNodes.
#include "scheduler/model/model_priv.h"

void hyper_fini(struct hyper *h)
{
    hk_vec_fini(&h->children);
    hk_vec_fini(&h->nodes);
    hk_free(h->bits);
    *h = (struct hyper){0};
}

/* Leaves one tier for the root, which is above the highest. */
#define MAX_TIER (INT32_MAX - 1)

hyper_id model_hyper_find(const struct model *m, struct hk_str name)
{
    const uint32_t id = hk_intern_find(&m->str, name);

    return id == HK_NONE ? NO_HYPER : (hyper_id){hk_map_get(&m->hyper_by_name, id)};
}

static hyper_id row_for(struct model *m, const struct hyper_desc *d)
{
    const uint32_t name = hk_intern_hold(&m->str, d->name);
    hyper_id h = {hk_map_get(&m->hyper_by_name, name)};
    const uint32_t tier_name = hk_intern_hold(&m->str, d->tier_name);

    if (id_none(h)) {
        h.i = TABLE_ROW(&m->hypers);
        hk_map_put(&m->hyper_by_name, name, h.i);
    }
    hyper_strings(&m->hypers.at[h.i], &m->str, hk_intern_drop);
    hyper_fini(&m->hypers.at[h.i]);
    m->hypers.at[h.i] = (struct hyper){.used = true,
                                       .name = name,
                                       .tier = HK_MIN(d->tier, MAX_TIER),
                                       .tier_name = tier_name,
                                       .parent = NO_HYPER};
    return h;
}

static void forget_mark(const struct model *m, hyper_id *mark)
{
    if (!id_none(*mark) && !id_eq(*mark, HYPER_ROOT) && !m->hypers.at[mark->i].used) {
        *mark = NO_HYPER;
    }
}

/* Clears references of jobs to deleted hyperNodes, whose rows may be reused for others. */
static void forget_marks(struct model *m)
{
    for (uint32_t i = 0; i < m->jobs.len; i++) {
        if (m->jobs.at[i].used) {
            forget_mark(m, &m->jobs.at[i].mark);
        }
    }
    for (uint32_t i = 0; i < m->subs.len; i++) {
        forget_mark(m, &m->subs.at[i].mark);
        forget_mark(m, &m->subs.at[i].nominated);
    }
}

static void drop_gone(struct model *m)
{
    forget_marks(m);
    for (uint32_t i = 1; i < m->hypers.len; i++) {
        struct hyper *h = &m->hypers.at[i];
        if (!h->used && h->name != 0) {
            hk_map_del(&m->hyper_by_name, h->name);
            hyper_strings(h, &m->str, hk_intern_drop);
            hyper_fini(h);
            hk_vec_push(&m->hypers.free, i);
        }
    }
}

static bool link_child(struct model *m, hyper_id parent, hyper_id child, struct hk_err *err)
{
    struct hyper *p = &m->hypers.at[parent.i], *c = &m->hypers.at[child.i];

    if (!id_none(c->parent) && !id_eq(c->parent, parent)) {
        hk_err_set(err, HK_EINVAL, "hyperNode '%.*s' is a member of both '%.*s' and '%.*s'",
                   HK_FMT(model_str(m, c->name)),
                   HK_FMT(model_str(m, m->hypers.at[c->parent.i].name)),
                   HK_FMT(model_str(m, p->name)));
        return false;
    }
    if (p->tier <= c->tier) {
        hk_err_set(err, HK_EINVAL,
                   "hyperNode '%.*s' of tier %d holds '%.*s' of tier %d, want a lower tier",
                   HK_FMT(model_str(m, p->name)), p->tier, HK_FMT(model_str(m, c->name)), c->tier);
        return false;
    }
    if (id_none(c->parent)) {
        c->parent = parent;
        hk_vec_push(&p->children, child);
    }
    return true;
}

static void set_bit(struct hyper *h, node_id n)
{
    h->bits[n.i / 64] |= 1ULL << (n.i % 64);
}

static bool add_members(struct model *m, hyper_id id, const struct hyper_desc *d,
                        struct hk_err *err)
{
    bool ok = true;

    for (uint32_t k = 0; k < d->nmember; k++) {
        const struct hyper_member *mb = &d->members[k];
        if (mb->is_hyper) {
            const hyper_id child = {hk_map_get(&m->hyper_by_name, mb->name)};
            if (!id_none(child) && m->hypers.at[child.i].used) {
                ok &= link_child(m, id, child, err);
            }
        } else {
            const node_id n = {hk_map_get(&m->node_by_name, mb->name)};
            if (!id_none(n) && (m->nodes.flags[n.i] & NODE_KNOWN)) {
                set_bit(&m->hypers.at[id.i], n);
            }
        }
    }
    return ok;
}

/* Collects the nodes of all children. Tiers strictly decrease downwards, so there is no cycle. */
static void model_hyper_collect_nodes(struct model *m, hyper_id id)
{
    struct hyper *h = &m->hypers.at[id.i];
    const uint32_t words = (h->nbit + 63) / 64;

    for (uint32_t k = 0; k < h->children.len; k++) {
        model_hyper_collect_nodes(m, h->children.at[k]);
        for (uint32_t w = 0; w < words; w++) {
            h->bits[w] |= m->hypers.at[h->children.at[k].i].bits[w];
        }
    }
    for (uint32_t w = 0; w < words; w++) {
        for (uint64_t b = h->bits[w]; b; b &= b - 1) {
            hk_vec_push(&h->nodes, ((node_id){w * 64 + (uint32_t)__builtin_ctzll(b)}));
        }
    }
}

bool model_hyper_rebuild(struct model *m, const struct hyper_desc *d, uint32_t n,
                         struct hk_err *err)
{
    HK_VEC(hyper_id) rows = {0};
    bool ok = true;

    for (uint32_t i = 1; i < m->hypers.len; i++) {
        m->hypers.at[i].used = false;
    }
    for (uint32_t k = 0; k < n; k++) {
        const hyper_id id = row_for(m, &d[k]);
        struct hyper *h = &m->hypers.at[id.i];
        h->nbit = m->nodes.len;
        h->bits = hk_zalloc_array(h->nbit / 64 + 1, sizeof(uint64_t));
        hk_vec_push(&rows, id);
    }
    drop_gone(m);
    for (uint32_t k = 0; k < n; k++) {
        ok &= add_members(m, rows.at[k], &d[k], err);
    }
    for (uint32_t k = 0; k < n; k++) {
        if (id_none(m->hypers.at[rows.at[k].i].parent)) {
            model_hyper_collect_nodes(m, rows.at[k]);
        }
    }
    hk_vec_fini(&rows);
    m->hyper_ready = ok;
    m->wake.node = ++m->version;
    return ok;
}

void model_hyper_root(struct model *m)
{
    struct hyper *root = &m->hypers.at[HYPER_ROOT.i];

    root->name = hk_intern(&m->str, HK_STR("<cluster-top-hypernode>"));
    root->tier = 1;
    hk_vec_clear(&root->children);
    for (uint32_t i = 1; i < m->hypers.len; i++) {
        struct hyper *h = &m->hypers.at[i];
        if (!h->used) {
            continue;
        }
        root->tier = HK_MAX(root->tier, h->tier + 1);
        if (id_none(h->parent) || id_eq(h->parent, HYPER_ROOT)) {
            h->parent = HYPER_ROOT;
            hk_vec_push(&root->children, ((hyper_id){i}));
        }
    }
}

hyper_id model_hyper_lca(const struct model *m, hyper_id a, hyper_id b)
{
    if (id_none(a)) {
        return b;
    }
    if (id_none(b)) {
        return a;
    }
    for (; !id_none(b); b = m->hypers.at[b.i].parent) {
        for (hyper_id up = a; !id_none(up); up = m->hypers.at[up.i].parent) {
            if (id_eq(up, b)) {
                return b;
            }
        }
    }
    return NO_HYPER;
}
