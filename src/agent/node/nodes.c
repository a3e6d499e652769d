// SPDX-License-Identifier: Apache-2.0
// Owns the node of an agent, or its fleet of simulated nodes.
#include "agent/node/nodes.h"

#include "agent/node/fleet.h"

static void nodes_on_put(void *ctx, struct api_object *o)
{
    node_on_put(ctx, o);
}

static void nodes_on_del(void *ctx, struct hk_str ns, struct hk_str name,
                         const struct api_object *last)
{
    node_on_del(ctx);
}

static void nodes_watch_one(struct nodes *ns)
{
    static const struct feed_ops feed_ops = {.put = nodes_on_put, .del = nodes_on_del};
    struct host *h = ns->host;
    const char *selector = hk_arena_printf(&h->own, "metadata.name=%s", ns->one.name);

    feed_init(&ns->feed, &(struct feed_opts){
                             .port = h->o.port,
                             .clock = h->o.clock,
                             .str = &h->str,
                             .kind = api_kind(API_NODE),
                             .required = true,
                             .field_selector = hk_str(selector),
                             .ops = &feed_ops,
                             .ctx = &ns->one,
                         });
}

void nodes_init(struct nodes *ns, struct host *h, const struct node_ops *ops, void *ctx)
{
    *ns = (struct nodes){.host = h};
    if (h->o.fleet) {
        ns->fleet = fleet_new(h, h->o.fleet);
        return;
    }
    node_init(&ns->one, h, h->o.node, ops, ctx);
    nodes_watch_one(ns);
    topology_init(&ns->topology, &ns->one);
}

void nodes_fini(struct nodes *ns)
{
    if (ns->fleet) {
        fleet_free(ns->fleet);
        return;
    }
    feed_fini(&ns->feed);
    topology_fini(&ns->topology);
    node_fini(&ns->one);
}

int64_t nodes_tick(struct nodes *ns, int64_t now_ns)
{
    int64_t next_ns, at_ns;

    if (ns->fleet) {
        return fleet_tick(ns->fleet, now_ns);
    }
    next_ns = node_tick(&ns->one, now_ns);
    at_ns = feed_tick(&ns->feed, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    at_ns = topology_tick(&ns->topology, now_ns);
    return HK_MIN(next_ns, at_ns);
}

struct node *nodes_find(struct nodes *ns, struct hk_str name)
{
    if (ns->fleet) {
        return fleet_node(ns->fleet, name);
    }
    return hk_str_is(name, ns->one.name) ? &ns->one : NULL;
}

struct node *nodes_for_pod(struct nodes *ns, struct hk_str name)
{
    return ns->fleet ? fleet_node(ns->fleet, name) : &ns->one;
}

bool nodes_are_registered(const struct nodes *ns)
{
    return ns->fleet ? fleet_is_registered(ns->fleet) : ns->one.registered;
}

void nodes_warn(const struct nodes *ns, const char *reason, struct hk_str text)
{
    const struct node *n = &ns->one;

    if (!ns->fleet) {
        recorder_note(ns->host->recorder,
                      &(struct recorder_about){api_kind(API_NODE), HK_STR(""), hk_str(n->name),
                                               hk_str(n->uid ? n->uid : n->name)},
                      true, reason, text);
    }
}
