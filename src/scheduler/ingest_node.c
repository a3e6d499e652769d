// SPDX-License-Identifier: Apache-2.0
// Nodes: allocatable amounts, with and without oversubscription, labels, taints and images
// (docs/reference/scheduler.md section 2.3).
#include "scheduler/ingest_priv.h"

#include "api/node.h"

static bool is_true(const struct api_map *map, struct hk_str key)
{
    const struct hk_str *v = api_map_get(map, key);
    bool b;

    return v && ingest_parse_bool(*v, &b) && b;
}

/* Oversubscribed amount in milli-CPU or bytes; an invalid value adds nothing, as upstream. */
static int64_t extra(const struct api_node *node, struct hk_str key)
{
    const struct hk_str *v = api_map_get(&node->meta.annotations, key);
    struct quantity q;

    if (!v || quantity_parse(*v, &q, NULL) < 0 || q.nano < 0) {
        return 0;
    }
    return HK_MIN(quantity_value(q), DIM_LIMIT);
}

static void ingest_node_add_to_amount(struct amount *at, uint32_t *n, uint32_t dim, int64_t v)
{
    for (uint32_t k = 0; k < *n; k++) {
        if (at[k].dim == dim) {
            at[k].v += v;
            return;
        }
    }
    if (v > 0) {
        at[(*n)++] = (struct amount){.dim = dim, .v = v};
    }
}

static int ingest_node_read_amounts(struct ingest *in, const struct api_node *node,
                                    struct node_desc *d, struct hk_err *err)
{
    struct amount *plain, *with;
    int rc = ingest_amounts(in, &node->allocatable, &plain, &d->nkalloc, err);

    if (rc < 0) {
        return hk_wrap(err, rc, "status.allocatable");
    }
    with = hk_arena_array(&in->mem, d->nkalloc + 2, sizeof(*with));
    for (; d->nalloc < d->nkalloc; d->nalloc++) {
        with[d->nalloc] = plain[d->nalloc];
    }
    ingest_node_add_to_amount(with, &d->nalloc, DIM_CPU,
                              extra(node, HK_STR(API_ANN_OVERSUBSCRIPTION_CPU)));
    ingest_node_add_to_amount(with, &d->nalloc, DIM_MEM,
                              extra(node, HK_STR(API_ANN_OVERSUBSCRIPTION_MEMORY)));
    d->kalloc = plain;
    d->alloc = with;
    return 0;
}

static void ingest_node_read_taints(struct ingest *in, const struct api_node *node,
                                    struct node_desc *d)
{
    struct taint *at = hk_arena_array(&in->mem, node->taints.len, sizeof(*at));

    for (uint32_t k = 0; k < node->taints.len; k++) {
        at[k] = (struct taint){.key = ingest_str(in, node->taints.at[k].key),
                               .val = ingest_str(in, node->taints.at[k].value),
                               .effect = ingest_effect(node->taints.at[k].effect)};
    }
    d->taints = at;
    d->ntaint = node->taints.len;
}

/* Lists each image under all of its names. */
static void images(struct ingest *in, const struct api_node *node, struct node_desc *d)
{
    uint32_t room = 0;
    struct image_have *at;

    for (uint32_t k = 0; k < node->images.len; k++) {
        room += node->images.at[k].names.len;
    }
    at = hk_arena_array(&in->mem, room, sizeof(*at));
    for (uint32_t k = 0; k < node->images.len; k++) {
        const struct api_image *image = &node->images.at[k];
        for (uint32_t i = 0; i < image->names.len; i++) {
            at[d->nimage++] = (struct image_have){.image = ingest_str(in, image->names.at[i]),
                                                  .size = image->size_bytes};
        }
    }
    d->images = at;
}

static unsigned ingest_node_read_flags(const struct api_node *node)
{
    unsigned f = node->unschedulable ? NODE_UNSCHEDULABLE : 0;

    if (is_true(&node->meta.labels, HK_STR(API_LABEL_OVERSUBSCRIPTION))) {
        f |= NODE_OVERSUBSCRIBED;
    }
    if (is_true(&node->meta.annotations, HK_STR(API_ANN_OFFLINE_JOB_EVICTING))) {
        f |= NODE_OFFLINE_EVICTING;
    }
    return f;
}

/* HyperNodes select nodes by name and label. Most node events are status updates, which change
 * neither. */
static bool ingest_node_identity_changed(const struct model *m, const struct node_desc *d)
{
    const node_id n = model_node_find(m, d->name);

    if (id_none(n) || !(m->nodes.flags[n.i] & NODE_KNOWN) || m->nodes.labels[n.i].n != d->nlabel) {
        return true;
    }
    for (uint32_t k = 0; k < d->nlabel; k++) {
        const struct label *have = &m->nodes.labels[n.i].at[k];
        if (have->key != d->labels[k].key || have->val != d->labels[k].val) {
            return true;
        }
    }
    return false;
}

int ingest_node_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_node node;
    int rc = api_node_decode(doc, &in->mem, &node, err);
    node_id n;

    if (rc < 0) {
        return rc;
    }
    const struct labels labels = ingest_labels(in, &node.meta.labels);
    struct node_desc d = {
        .name = node.meta.name,
        .creation_ns = node.meta.creation_ns,
        .labels = labels.at,
        .nlabel = labels.n,
        .flags = ingest_node_read_flags(&node),
    };
    rc = ingest_node_read_amounts(in, &node, &d, err);
    if (rc < 0) {
        return rc;
    }
    ingest_node_read_taints(in, &node, &d);
    images(in, &node, &d);
    const bool news = ingest_node_identity_changed(in->m, &d);
    rc = model_node_put(in->m, &d, &n, err);
    if (rc == 0 && news) {
        ingest_hyper_node(in, ingest_str(in, d.name));
        in->shards_changed = true;
    }
    return rc;
}

void ingest_node_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    const node_id n = model_node_find(in->m, name);

    if (!id_none(n)) {
        const uint32_t id = ingest_str(in, name);
        model_node_del(in->m, n);
        ingest_hyper_node_gone(in, id);
    }
}
