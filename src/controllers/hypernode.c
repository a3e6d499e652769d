// SPDX-License-Identifier: Apache-2.0
// HyperNodes: writes the number of nodes into each status, nodes of nested HyperNodes included. If
// the configuration asks for it, hypernode_label.c creates HyperNodes from node labels.
//
//   key "/NAME"     the status of that HyperNode
//   key "label/"    the discovery
#include "controllers/hypernode_priv.h"

#include "api/names.h"
#include "api/node.h"
#include "base/map.h"
#include "codec/re2.h"
#include "controllers/table.h"

/* Delay before other HyperNodes follow a change, so that many changes are handled at once. */
#define PAUSE_NS ((int64_t)100000000)
#define SOURCE HK_STR("label")
#define DEPTH_MAX 64u /* of nested HyperNodes */

static const struct hk_str none = {"", 0};

/* ---- which keys a change concerns ---- */

/* Queues the HyperNodes above the tier: their members may have changed. */
static void add_above(struct ctl *c, int32_t tier)
{
    const struct mirror *m = ctl_mirror(c, API_HYPERNODE);

    for (uint32_t r = mirror_scan(m, HK_NONE); r != HK_NONE; r = mirror_scan(m, r)) {
        if (((const struct hypernode_digest *)mirror_digest(m, r))->tier > tier) {
            ctl_add_at(c, none, mirror_name(m, r), ctl_now(c) + PAUSE_NS);
        }
    }
}

static void hypernode_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct hypernode_digest *old = ch->old, *now = ch->now;

    if (now) {
        ctl_add(c, none, mirror_name(ch->mirror, ch->row));
    }
    if (ch->initial || (old && now && old->shape == now->shape)) {
        return; /* on the first list every HyperNode is queued anyway */
    }
    add_above(c, HK_MIN(old ? old->tier : INT32_MAX, now ? now->tier : INT32_MAX));
    ctl_add(c, SOURCE, none);
}

static void node_changed(struct ctl *c, const struct mirror_change *ch)
{
    const struct node_digest *old = ch->old, *now = ch->now;

    if (!ch->initial && !(old && now && old->shape == now->shape)) {
        add_above(c, INT32_MIN);
        ctl_add(c, SOURCE, none);
    }
}

static void config_changed(struct ctl *c, const struct mirror_change *ch)
{
    ctl_add(c, SOURCE, none);
}

static void hypernode_open(struct ctl *c)
{
    ctl_add(c, SOURCE, none);
}

/* ---- member nodes ---- */

struct members {
    const struct mirror *nodes, *hypers;
    struct hk_map in, seen; /* rows of nodes; of HyperNodes, which may form a cycle by mistake */
    uint32_t depth;
    struct hk_arena mem;
};

static void members_fini(struct members *s)
{
    hk_map_fini(&s->in);
    hk_map_fini(&s->seen);
    hk_arena_fini(&s->mem);
}

static void hypernode_add_member_node(struct members *s, uint32_t row)
{
    if (row != HK_NONE) {
        hk_map_put(&s->in, row, 1);
    }
}

static void add_matches(struct members *s, struct hk_str pattern)
{
    HK_AUTO(re2_freep) struct re2 *re = NULL;

    if (re2_compile(pattern, &re, NULL) < 0) {
        return; /* admission refuses such patterns, and the scheduler reports them */
    }
    for (uint32_t r = mirror_scan(s->nodes, HK_NONE); r != HK_NONE; r = mirror_scan(s->nodes, r)) {
        if (re2_matches(re, mirror_name(s->nodes, r))) {
            hypernode_add_member_node(s, r);
        }
    }
}

static void add_labelled(struct members *s, const struct api_selector *labels)
{
    for (uint32_t r = mirror_scan(s->nodes, HK_NONE); r != HK_NONE; r = mirror_scan(s->nodes, r)) {
        const struct hk_arena_mark mark = hk_arena_mark(&s->mem);
        const struct json root = mirror_read(s->nodes, r, &s->mem);
        struct api_meta meta;

        if (api_meta_decode(&root, &s->mem, &meta, NULL) == 0 &&
            api_selector_match(labels, &meta.labels)) {
            hypernode_add_member_node(s, r);
        }
        hk_arena_rewind(&s->mem, mark);
    }
}

static void add_hypernode(struct members *s, uint32_t row);

static void add_member(struct members *s, const struct api_hypernode_member *mb)
{
    if (mb->type == API_MEMBER_HYPERNODE) { /* selected by name only, as in the scheduler */
        add_hypernode(s, mirror_find(s->hypers, none, mb->exact));
    } else if (mb->regex.n > 0) {
        add_matches(s, mb->regex);
    } else if (mb->labels.len > 0) {
        add_labelled(s, &mb->labels);
    } else {
        hypernode_add_member_node(s, mirror_find(s->nodes, none, mb->exact));
    }
}

static void add_hypernode(struct members *s, uint32_t row)
{
    struct json root;
    struct api_hypernode hn;

    if (row == HK_NONE || s->depth == DEPTH_MAX || hk_map_get(&s->seen, row) != HK_NONE) {
        return;
    }
    hk_map_put(&s->seen, row, 1);
    root = mirror_read(s->hypers, row, &s->mem);
    if (api_hypernode_decode(&root, &s->mem, &hn, NULL) < 0) {
        return;
    }
    s->depth++;
    for (uint32_t i = 0; i < hn.members.len; i++) {
        add_member(s, &hn.members.at[i]);
    }
    s->depth--;
}

static int64_t count_nodes(struct ctl *c, uint32_t row)
{
    HK_AUTO(members_fini)
    struct members s = {.nodes = ctl_mirror(c, API_NODE), .hypers = ctl_mirror(c, API_HYPERNODE)};

    add_hypernode(&s, row);
    return s.in.len;
}

/* ---- the status ---- */

static void write_count(struct pass *t)
{
    const struct mirror *m = ctl_mirror(t->c, API_HYPERNODE);
    const uint32_t row = mirror_find(m, none, t->name);
    struct json root, status;
    int64_t count;

    if (row == HK_NONE) {
        return;
    }
    root = mirror_read(m, row, t->mem);
    count = count_nodes(t->c, row);
    if (json_int(json_at(&root, "status.nodeCount"), -1) == count) {
        return;
    }
    status = json_is(json_get(&root, "status"), JSON_OBJECT) ? *json_get(&root, "status")
                                                             : json_make_object();
    json_set_int(&status, t->mem, "nodeCount", count);
    json_set(&root, t->mem, "status", status);
    pass_update_status(t, api_kind(API_HYPERNODE), &root);
}

static void hypernode_reconcile(struct ctl *c, struct pass *t)
{
    if (t->ns.n > 0) {
        hypernode_discover(t);
    } else {
        write_count(t);
    }
}

static const struct ctl_watch watches[] = {
    {&mirror_hypernodes, hypernode_changed},
    {&mirror_nodes, node_changed},
    {&mirror_own_config, config_changed},
    {0},
};

const struct ctl_type ctl_hypernode = {
    .name = "hyperNode-controller",
    .about = "counts the nodes of HyperNodes, and makes them from labels of nodes",
    .watches = watches,
    .open = hypernode_open,
    .reconcile = hypernode_reconcile,
};
