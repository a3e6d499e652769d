// SPDX-License-Identifier: Apache-2.0
// Many simulated nodes that one agent manages. One list and watch of nodes shows which exist; the
// fleet creates missing ones and corrects changed ones, a limited number at a time. With an
// embedded server the nodes then stay silent: they live as long as this process, no controller
// expects their leases, and thousands of heartbeats would be the only work of an idle cluster.
// Other servers need heartbeats (beats): the fleet spreads them evenly over the period.
#include "agent/node/fleet.h"

#include "agent/node/lease.h"
#include "api/feed.h"
#include "base/vec.h"

#define PREFIX "sim-"
#define DIGITS 5
#define BUSY_MAX 256u /* calls in flight */
/* Renews leases in small groups: one wakeup per lease would cost too much. */
#define BEAT_PAUSE_NS (SECOND_NS / 20)
#define LABEL_TYPE "type"
#define TYPE_SIMULATED "simulated"

struct fleet {
    struct host *host;
    uint32_t n;
    struct node *nodes;
    struct feed feed;      /* of Node objects */
    HK_VEC(uint32_t) todo; /* nodes with a report to send */
    uint32_t busy;         /* calls in flight */
    uint32_t registered;
    bool beats;
    uint32_t next;   /* next node to renew the lease of */
    int64_t beat_ns; /* time of that; 0: not started */
};

/* The index of the node with this name, from 0; false: not a fleet name. */
static bool fleet_parse_node_index(struct hk_str name, uint32_t *ret)
{
    const size_t head = sizeof(PREFIX) - 1;
    int64_t n;

    if (!hk_str_starts(name, PREFIX) || name.n < head + DIGITS ||
        !hk_str_int((struct hk_str){name.s + head, name.n - head}, &n) || n < 1 || n > UINT32_MAX) {
        return false;
    }
    *ret = (uint32_t)(n - 1);
    return true;
}

struct node *fleet_node(const struct fleet *f, struct hk_str name)
{
    uint32_t i;

    return fleet_parse_node_index(name, &i) && i < f->n ? &f->nodes[i] : NULL;
}

bool fleet_is_registered(const struct fleet *f)
{
    return f->registered == f->n;
}

/* ---- pending steps ---- */

/* Queues a step for a node at rest. */
static void fleet_want(struct fleet *f, struct node *n, enum node_step step)
{
    f->registered -= n->registered;
    n->registered = false;
    n->step = (uint8_t)step;
    n->due_ns = 0;
    hk_vec_push(&f->todo, (uint32_t)(n - f->nodes));
}

/* Spreads the reports over time: the nodes registered all at once. */
static void fleet_schedule_report(const struct fleet *f, struct node *n)
{
    const int64_t early_ns = NODE_REPORT_NS / 2 / f->n * (n - f->nodes);

    n->due_ns = host_mono_ns(f->host) + NODE_REPORT_NS - early_ns;
}

static void fleet_on_answered(void *ctx, struct node *n)
{
    struct fleet *f = ctx;

    f->busy--;
    if (n->step != NODE_REST) {
        hk_vec_push(&f->todo, (uint32_t)(n - f->nodes));
        return;
    }
    f->registered += n->registered;
    api_object_unref(n->seen);
    n->seen = NULL;
    fleet_schedule_report(f, n);
}

/* ---- heartbeats ---- */

/* Renews the node's lease and, when due, queues its report. */
static void fleet_beat(struct fleet *f, struct node *n, int64_t now_ns)
{
    lease_beat(n);
    if (n->registered && n->step == NODE_REST && !n->call && n->due_ns <= now_ns) {
        fleet_want(f, n, NODE_STATUS);
    }
}

/* Renews each lease once per period. Skips renewals missed during a pause. */
static int64_t fleet_beat_all(struct fleet *f, int64_t now_ns)
{
    if (!f->beats) {
        return INT64_MAX;
    }
    if (f->beat_ns + lease_beat_ns(f->host) < now_ns) {
        f->beat_ns = now_ns;
    }
    for (; f->beat_ns <= now_ns; f->beat_ns += lease_beat_ns(f->host) / f->n) {
        fleet_beat(f, &f->nodes[f->next], now_ns);
        f->next = (f->next + 1) % f->n;
    }
    return HK_MAX(f->beat_ns, now_ns + BEAT_PAUSE_NS);
}

int64_t fleet_tick(struct fleet *f, int64_t now_ns)
{
    int64_t next_ns = feed_tick(&f->feed, now_ns), at_ns = fleet_beat_all(f, now_ns);

    next_ns = HK_MIN(next_ns, at_ns);
    for (uint32_t i = 0; i < f->todo.len && f->busy < BUSY_MAX;) {
        struct node *n = &f->nodes[f->todo.at[i]];

        if (n->due_ns > now_ns) {
            next_ns = HK_MIN(next_ns, n->due_ns);
            i++;
            continue;
        }
        hk_vec_swap_remove(&f->todo, i);
        f->busy++;
        node_tick(n, now_ns);
    }
    return next_ns;
}

/* ---- nodes in the API ---- */

/* Deletes a node left by an earlier, larger fleet. */
static void fleet_delete_surplus_node(struct fleet *f, const struct api_object *o)
{
    const struct json *labels = json_at(&o->root, "metadata.labels");
    uint32_t i;

    if (fleet_parse_node_index(o->name, &i) &&
        hk_str_is(json_str(json_get(labels, LABEL_TYPE), HK_STR("")), TYPE_SIMULATED)) {
        port_delete(f->host->o.port, api_kind(API_NODE), HK_STR(""), o->name,
                    (struct port_sink){0});
    }
}

static void fleet_on_node_put(void *ctx, struct api_object *o)
{
    struct fleet *f = ctx;
    struct node *n = fleet_node(f, o->name);

    if (!n) {
        fleet_delete_surplus_node(f, o);
        return;
    }
    if (!node_hear(n, o)) {
        fleet_want(f, n, NODE_STATUS);
        n->due_ns = node_mend_ns(n);
    } else if (!n->registered && n->step == NODE_REST && !n->call) {
        n->registered = true;
        f->registered++;
        fleet_schedule_report(f, n);
    }
}

static void fleet_on_node_del(void *ctx, struct hk_str ns, struct hk_str name,
                              const struct api_object *last)
{
    struct fleet *f = ctx;
    struct node *n = fleet_node(f, name);

    if (n && n->step == NODE_REST) {
        fleet_want(f, n, NODE_CREATE);
    }
}

static void fleet_on_nodes_listed(void *ctx)
{
    struct fleet *f = ctx;

    for (uint32_t i = 0; i < f->n; i++) {
        if (f->nodes[i].step == NODE_REST && !f->nodes[i].registered) {
            fleet_want(f, &f->nodes[i], NODE_CREATE);
        }
    }
}

static const struct node_ops fleet_node_ops = {.answered = fleet_on_answered};
static const struct feed_ops feed_ops = {
    .put = fleet_on_node_put, .del = fleet_on_node_del, .listed = fleet_on_nodes_listed};

/* ---- setup and teardown ---- */

struct fleet *fleet_new(struct host *h, const struct agent_fleet *o)
{
    struct fleet *f = hk_zalloc(sizeof(*f));

    json_set_cstr(&h->labels, &h->own, LABEL_TYPE, TYPE_SIMULATED);
    f->host = h;
    f->n = o->n;
    f->beats = o->beats;
    f->nodes = hk_zalloc_array(o->n, sizeof(*f->nodes));
    for (uint32_t i = 0; i < o->n; i++) {
        struct node *n = &f->nodes[i];

        node_init(n, h, hk_arena_printf(&h->own, PREFIX "%0*u", DIGITS, i + 1), &fleet_node_ops, f);
        n->in_fleet = true;
        n->step = NODE_REST;
        n->zone = o->zones > 0 ? i % o->zones + 1 : 0;
    }
    feed_init(&f->feed, &(struct feed_opts){.port = h->o.port,
                                            .clock = h->o.clock,
                                            .str = &h->str,
                                            .kind = api_kind(API_NODE),
                                            .required = true,
                                            .ops = &feed_ops,
                                            .ctx = f});
    return f;
}

void fleet_free(struct fleet *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        node_fini(&f->nodes[i]);
    }
    feed_fini(&f->feed);
    hk_vec_fini(&f->todo);
    hk_free(f->nodes);
    hk_free(f);
}
