// SPDX-License-Identifier: Apache-2.0
// What must hold of nodes: one that reports is not said to be unreachable, and one that is back says
// that it is ready only when nothing runs on it of pods that have moved.
#include "world/check.h"

#include "api/names.h"

#include <stdio.h>

struct check_node *check_node_named(struct check *c, const char *name)
{
    for (uint32_t i = 0; i < c->nodes.len; i++) {
        if (strcmp(name, c->nodes.at[i].name) == 0) {
            return &c->nodes.at[i];
        }
    }
    return NULL;
}

static struct hk_str check_node_ready(const struct json *root)
{
    const struct json *list = json_at(root, "status.conditions");

    for (uint32_t i = 0; json_item(list, i); i++) {
        if (hk_str_is(check_str(json_item(list, i), "type"), "Ready")) {
            return check_str(json_item(list, i), "status");
        }
    }
    return HK_STR("");
}

static bool check_node_has_taint(const struct json *root, const char *key)
{
    const struct json *list = json_at(root, "spec.taints");

    for (uint32_t i = 0; json_item(list, i); i++) {
        if (hk_str_is(check_str(json_item(list, i), "key"), key)) {
            return true;
        }
    }
    return false;
}

struct remote *check_remote(const struct world *w, const char *name)
{
    for (uint32_t i = 0; i < w->weather.remotes; i++) {
        if (strcmp(remote_name(w->remotes[i]), name) == 0) {
            return w->remotes[i];
        }
    }
    return NULL;
}

struct check_return {
    struct world *w;
    const struct check_node *node;
    bool doubted;
};

/* Of what runs on a node that has just said it is ready. While things go wrong its list of pods, and
 * its word, may take a while to arrive. */
static void check_return_pod(void *ctx, const char *uid, uint32_t running)
{
    const struct check_return *r = ctx;
    const struct check_pod *p = check_pod_find(r->w->check, uid);
    const int64_t now_ns = world_now(r->w), late_ns = (r->w->calm ? 10 : 90) * WORLD_SECOND;
    const bool moved = p && p->gone && p->gone_ns > 0 && now_ns - p->gone_ns > late_ns;
    const bool evicted = p && !p->gone && r->doubted && r->w->calm && p->deleting_ns > 0 &&
                         now_ns - p->deleting_ns > 90 * WORLD_SECOND;

    if (running > 0 && (moved || evicted)) {
        world_fail(r->w, "a node ends what has moved before it is ready",
                   "expected nothing of pod %s/%s (%s) on node %s, which is ready again; actual: "
                   "it was %s %lld s ago, and %u %s",
                   p->ns, p->name, uid, r->node->name, moved ? "removed" : "deleted",
                   (long long)((now_ns - (moved ? p->gone_ns : p->deleting_ns)) / WORLD_SECOND),
                   running, running == 1 ? "process runs" : "processes run");
    }
}

static void check_node_returns(struct world *w, const struct check_node *n, bool doubted)
{
    const struct remote *r = check_remote(w, n->name);
    struct check_return visit = {.w = w, .node = n, .doubted = doubted};

    if (r && remote_processes(r)) {
        processes_each(remote_processes(r), check_return_pod, &visit);
    }
}

/* Nobody is blamed who reports. While messages are lost or late the controller may not know. */
static void check_node_blamed(struct world *w, const struct check_node *n)
{
    const struct remote *r = check_remote(w, n->name);
    const int64_t since_ns = r ? remote_since_ns(r) : 0;

    if (!r || (w->calm && since_ns != INT64_MAX &&
               world_now(w) - HK_MAX(since_ns, w->calm_ns) > 4 * WORLD_GRACE_NS)) {
        world_fail(w, "who reports is not blamed",
                   "expected node %s to be known, actual: its conditions are Unknown", n->name);
    }
}

void check_node(struct world *w, const struct json *root, bool gone)
{
    struct check *c = w->check;
    const struct hk_str name = check_str(root, "metadata.name");
    const struct json *has = json_at(root, "status.allocatable");
    const struct hk_str ready = check_node_ready(root);
    struct check_node *n = check_node_named(c, hk_arena_str(&c->mem, name).s);
    bool was_ready, was_doubted;

    if (!n) {
        hk_vec_push(&c->nodes, (struct check_node){0});
        n = &c->nodes.at[c->nodes.len - 1];
        CHECK_PUT(n->name, name);
    }
    n->cpu_milli = check_amount(has, "cpu", true, -1);
    n->mem_bytes = check_amount(has, "memory", false, -1);
    n->pods = check_amount(has, "pods", false, -1);
    n->gone = gone;
    n->gone_ns = gone ? world_now(w) : n->gone_ns;
    n->out_of_service = check_node_has_taint(root, API_TAINT_OUT_OF_SERVICE);
    was_ready = n->ready;
    was_doubted = n->doubted;
    n->ready = !gone && hk_str_is(ready, "True");
    n->doubted = hk_str_is(ready, "Unknown");
    if (n->ready && !was_ready) {
        check_node_returns(w, n, was_doubted);
    }
    if (n->doubted && !was_doubted && !gone) {
        check_node_blamed(w, n);
    }
    if (was_ready != n->ready || was_doubted != n->doubted) {
        c->last_write_ns = world_now(w);
    }
}
