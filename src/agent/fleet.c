// SPDX-License-Identifier: Apache-2.0
// Many nodes that run nothing, spoken for by one agent. One list and watch of nodes says which are
// there; what is missing is made, what differs is mended, so many at a time. Beside a server of our
// own nobody says anything then: a simulated node lives as long as this process does, nobody waits
// for its lease, and thousands of heartbeats would be all the work an idle cluster has. Others want
// to hear them (beats): one node after the other, evenly.
#include "agent/agent_priv.h"

#define PREFIX "sim-"
#define DIGITS 5
#define BUSY_MAX 256u /* calls at a time */
/* Leases are renewed in small groups: waking for each costs more than it spreads. */
#define BEAT_PAUSE_NS (SECOND_NS / 20)
#define LABEL_TYPE "type"
#define TYPE_SIMULATED "simulated"

/* Which node of a fleet has that name, from 0; false: none. */
static bool index_of(struct hk_str name, uint32_t *ret)
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

static struct node *find(const struct fleet *f, struct hk_str name)
{
    uint32_t i;

    return index_of(name, &i) && i < f->n ? &f->nodes[i] : NULL;
}

bool fleet_has(const struct fleet *f, struct hk_str name)
{
    return find(f, name) != NULL;
}

/* ---- what has to be said ---- */

/* Of a node at rest. */
static void want(struct fleet *f, struct node *n, enum node_step step)
{
    f->registered -= n->registered;
    n->registered = false;
    n->step = (uint8_t)step;
    n->due_ns = 0;
    hk_vec_push(&f->todo, (uint32_t)(n - f->nodes));
}

/* Not all at once, as they were registered. */
static void schedule_report(struct node *n)
{
    const struct fleet *f = n->fleet;
    const int64_t early_ns = NODE_REPORT_NS / 2 / f->n * (n - f->nodes);

    n->due_ns = agent_mono(f->a) + NODE_REPORT_NS - early_ns;
}

void fleet_answered(struct node *n)
{
    struct fleet *f = n->fleet;

    f->busy--;
    if (n->step != NODE_REST) {
        hk_vec_push(&f->todo, (uint32_t)(n - f->nodes));
        return;
    }
    f->registered += n->registered;
    api_object_unref(n->seen);
    n->seen = NULL;
    schedule_report(n);
}

/* ---- that they live ---- */

/* One of them; and, when it is time, how it is. */
static void beat(struct fleet *f, struct node *n, int64_t now_ns)
{
    node_beat(n);
    if (n->registered && n->step == NODE_REST && !n->call && n->due_ns <= now_ns) {
        want(f, n, NODE_STATUS);
    }
}

/* Each has its turn once in a period. What was missed in a pause is not made up for. */
static int64_t beat_all(struct fleet *f, int64_t now_ns)
{
    if (!f->beats) {
        return INT64_MAX;
    }
    if (f->beat_ns + NODE_LEASE_NS < now_ns) {
        f->beat_ns = now_ns;
    }
    for (; f->beat_ns <= now_ns; f->beat_ns += NODE_LEASE_NS / f->n) {
        beat(f, &f->nodes[f->next], now_ns);
        f->next = (f->next + 1) % f->n;
    }
    return HK_MAX(f->beat_ns, now_ns + BEAT_PAUSE_NS);
}

int64_t fleet_tick(struct fleet *f, int64_t now_ns)
{
    int64_t next_ns = feed_tick(&f->feed, now_ns), at_ns = beat_all(f, now_ns);

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

/* ---- what the API has ---- */

/* Of a larger fleet that was here before. */
static void dismiss(struct fleet *f, const struct api_object *o)
{
    const struct json *labels = json_at(&o->root, "metadata.labels");
    uint32_t i;

    if (index_of(o->name, &i) &&
        hk_str_is(json_str(json_get(labels, LABEL_TYPE), HK_STR("")), TYPE_SIMULATED)) {
        port_delete(f->a->o.port, api_kind(API_NODE), HK_STR(""), o->name, (struct port_sink){0});
    }
}

static void on_put(void *ctx, struct api_object *o)
{
    struct fleet *f = ctx;
    struct node *n = find(f, o->name);

    if (!n) {
        dismiss(f, o);
        return;
    }
    if (!node_hear(n, o)) {
        want(f, n, NODE_STATUS);
        n->due_ns = node_mend_ns(n);
    } else if (!n->registered && n->step == NODE_REST && !n->call) {
        n->registered = true;
        f->registered++;
        schedule_report(n);
    }
}

static void on_del(void *ctx, struct hk_str ns, struct hk_str name, const struct api_object *last)
{
    struct fleet *f = ctx;
    struct node *n = find(f, name);

    if (n && n->step == NODE_REST) {
        want(f, n, NODE_CREATE);
    }
}

static void on_listed(void *ctx)
{
    struct fleet *f = ctx;

    for (uint32_t i = 0; i < f->n; i++) {
        if (f->nodes[i].step == NODE_REST && !f->nodes[i].registered) {
            want(f, &f->nodes[i], NODE_CREATE);
        }
    }
}

static const struct feed_ops feed_ops = {.put = on_put, .del = on_del, .listed = on_listed};

/* ---- beginning and end ---- */

struct fleet *fleet_new(struct agent *a, const struct agent_fleet *o)
{
    struct fleet *f = hk_zalloc(sizeof(*f));

    json_put(&a->labels, &a->own, HK_STR(LABEL_TYPE), json_make_str(HK_STR(TYPE_SIMULATED)));
    f->a = a;
    f->n = o->n;
    f->beats = o->beats;
    f->nodes = hk_zalloc_array(o->n, sizeof(*f->nodes));
    for (uint32_t i = 0; i < o->n; i++) {
        struct node *n = &f->nodes[i];

        node_init(n, a, hk_arena_printf(&a->own, PREFIX "%0*u", DIGITS, i + 1));
        n->fleet = f;
        n->step = NODE_REST;
        n->zone = o->zones > 0 ? i % o->zones + 1 : 0;
    }
    feed_init(&f->feed, &(struct feed_opts){.port = a->o.port,
                                            .clock = a->o.clock,
                                            .str = &a->str,
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
