// SPDX-License-Identifier: Apache-2.0
// The agent: wires its parts, collects events from the API and the runtime, and runs the steps of
// pods and nodes.
//
//   node/   reports the node              pod/    runs the pods bound to it
//   serve/  answers requests about pods   leftovers.c  ends what belongs to no pod
#include "agent/agent_priv.h"

#include "agent/pod/admit.h"
#include "agent/pod/disk.h"
#include "agent/pod/fit.h"
#include "agent/pod/hosts.h"
#include "agent/pod/life.h"
#include "agent/pod/service_names.h"
#include "agent/pod/source.h"
#include "agent/pod/volume_dir.h"
#include "agent/pod/volume_local.h"
#include "base/crumb.h"
#include "base/log.h"

#define POLL_MAX 1024u

/* ---- questions of the owner ---- */

bool agent_has(const struct agent *a, struct hk_str ns, struct hk_str name)
{
    return pods_find_named(&a->pods, ns, name) != NULL;
}

struct hk_str agent_find_namespace(const struct agent *a, uint32_t address)
{
    return pod_hosts_namespace(&a->pods, address);
}

bool agent_has_node(const struct agent *a, struct hk_str name)
{
    return nodes_find((struct nodes *)&a->nodes, name) != NULL;
}

void agent_write_pods(const struct agent *a, struct hk_buf *out)
{
    for (uint32_t i = 0; i < a->pods.slots.len; i++) {
        const struct pod *p = a->pods.slots.at[i];

        if (!p || p->gone) {
            continue;
        }
        if (out->len > 0 && out->data[out->len - 1] == '}') {
            hk_buf_addc(out, ',');
        }
        json_write(&p->obj->root, out);
    }
}

void agent_serve(void *ctx, const struct node_call *call)
{
    struct agent *a = ctx;

    serve_answer(&a->serve, call);
}

bool agent_ready(const struct agent *a)
{
    return nodes_are_registered(&a->nodes) && a->leftovers.swept;
}

/* ---- pod events ---- */

static void agent_vanish_pod(struct pod *p)
{
    if (p && !p->gone) {
        pod_vanished(p);
    }
}

/* The uid becomes the name of a directory. */
static bool uid_fits(struct hk_str uid)
{
    return uid.n > 0 && uid.n < 128 && uid.s[0] != '.' && !memchr(uid.s, '/', uid.n);
}

static void agent_put_pod(struct agent *a, struct api_object *o)
{
    struct pod *p = pods_find(&a->pods, o->uid), *old = pods_find_named(&a->pods, o->ns, o->name);

    if (!uid_fits(o->uid)) {
        hk_log(HK_LOG_WARN, "pod has no usable uid", "pod=%.*s/%.*s", HK_FMT(o->ns),
               HK_FMT(o->name));
        return;
    }
    if (p) {
        pod_changed(p, o);
        return;
    }
    agent_vanish_pod(old); /* deleted and recreated while the watch was down */
    if (a->closed) {
        return; /* shutting down: leave the pod to the next agent */
    }
    pod_new(&a->pods, o);
    leftovers_forget(&a->leftovers, o->uid);
    hk_arena_clear(&a->host.mem);
}

static void agent_on_pod_put(void *ctx, struct api_object *o)
{
    struct agent *a = ctx;
    const struct hk_str node = json_str(json_at(&o->root, "spec.nodeName"), HK_STR(""));

    if (!nodes_for_pod(&a->nodes, node)) {
        return; /* a fleet sees the pods of all nodes */
    }
    if (!pod_is_skipped(o)) {
        hk_crumb_enter(AGENT_CRUMB, o->ns, o->name);
        agent_put_pod(a, o);
        hk_crumb_leave();
    }
}

static void agent_free_pod(struct pod *p)
{
    pods_remove(p);
    pod_free(p);
}

/* Forgets a pod without stopping its processes. */
static void agent_release_pod(struct pod *p)
{
    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        pods_disown(p->set, pod_container_at(p, i)->id);
    }
    if (!p->resting) {
        pods_deactivate(p);
    }
    agent_free_pod(p);
}

static void agent_on_pod_del(void *ctx, struct hk_str ns, struct hk_str name,
                             const struct api_object *last)
{
    struct agent *a = ctx;
    struct pod *p = pods_find_named(&a->pods, ns, name);

    if (p && !last && !p->gone && leftovers_may_be_lost(&a->leftovers, a->feed.rv)) {
        leftovers_keep(&a->leftovers, p->uid);
        agent_release_pod(p);
    } else {
        agent_vanish_pod(p);
    }
}

/* A list is complete, and all pods known before were compared with it. */
static void agent_on_listed(void *ctx)
{
    struct agent *a = ctx;

    a->listed = true;
    leftovers_tell(&a->leftovers);
}

static const struct feed_ops feed_ops = {
    .put = agent_on_pod_put, .del = agent_on_pod_del, .listed = agent_on_listed};

/* ---- questions of the node ---- */

static void agent_relist(void *ctx)
{
    struct agent *a = ctx;

    a->listed = false;
    feed_relist(&a->feed);
}

static bool agent_is_listed(void *ctx)
{
    const struct agent *a = ctx;

    return a->listed;
}

static bool agent_is_settled(void *ctx, bool deletions)
{
    const struct agent *a = ctx;

    if (!a->listed || !a->leftovers.swept) {
        return false;
    }
    for (uint32_t i = 0; deletions && i < a->pods.active.len; i++) {
        const struct pod *p = a->pods.active.at[i];

        if (p->deleting && p->stage != POD_ENDED) {
            return false;
        }
    }
    return !leftovers_has_strays(&a->leftovers);
}

static const struct node_ops node_ops = {
    .relist = agent_relist, .is_listed = agent_is_listed, .is_settled = agent_is_settled};

/* ---- ends reported by the runtime ---- */

void agent_on_end(struct agent *a, uint64_t container, const struct runtime_end *end)
{
    struct agent_end e = {.id = container, .end = *end};

    e.end.message = hk_strdup(end->message ? end->message : "");
    hk_vec_push(&a->ends, e);
}

static void agent_handle_ends(struct agent *a)
{
    for (uint32_t i = 0; i < a->ends.len; i++) {
        const struct agent_end e = a->ends.at[i]; /* a copy: handling it may append to the vector */
        struct pod *p = pods_find_owner(&a->pods, e.id);

        if (p) {
            pod_on_end(p, e.id, &e.end);
        } else {
            serve_on_end(&a->serve, e.id, &e.end);
        }
        pods_disown(&a->pods, e.id);
        hk_free((char *)e.end.message);
    }
    a->ends.len = 0;
    hk_arena_clear(&a->host.mem);
}

/* ---- running ---- */

static void agent_step_pod(struct agent *a, struct pod *p, int64_t now_ns)
{
    hk_crumb_enter(AGENT_CRUMB, p->ns, p->name);
    const bool lives = pod_step(p, now_ns);
    hk_crumb_leave();

    hk_arena_clear(&a->host.mem);
    p->resting = lives && pod_rests(p);
    if (!lives || p->resting) {
        pods_deactivate(p);
    }
    if (lives) {
        pods_set_alarm(p);
    } else {
        agent_free_pod(p);
    }
}

/* A pod that is touched during this loop has its next step in the next run. */
static int64_t agent_step_pods(struct agent *a, int64_t now_ns)
{
    struct pods *ps = &a->pods;
    int64_t next_ns;
    uint32_t n;

    pods_run_alarms(ps, now_ns);
    n = ps->touched.len;
    for (uint32_t i = 0; i < n; i++) {
        struct pod *p = ps->slots.at[ps->touched.at[i]];

        if (p) { /* NULL: freed since it was queued */
            p->queued = false;
            agent_step_pod(a, p, now_ns);
        }
    }
    if (n > 0) {
        memmove(ps->touched.at, ps->touched.at + n,
                (ps->touched.len - n) * sizeof(*ps->touched.at));
        ps->touched.len -= n;
    }
    next_ns = pods_run_alarms(ps, now_ns);
    return ps->touched.len > 0 ? now_ns : next_ns;
}

static void agent_begin_when_synced(struct agent *a)
{
    if (!a->feed.synced) {
        return;
    }
    if (!a->leftovers.swept) {
        leftovers_sweep(&a->leftovers, a->feed.rv);
    }
    if (!a->pods.books.open) {
        pod_fit_begin(&a->pods);
    }
}

int64_t agent_run(struct agent *a)
{
    const int64_t now_ns = host_mono_ns(&a->host);
    int64_t next_ns, at_ns;

    while (!a->host.o.shared_port && port_poll(a->host.o.port, POLL_MAX) > 0) {
    }
    agent_handle_ends(a);
    agent_begin_when_synced(a);
    leftovers_note(&a->leftovers, a->feed.rv);
    at_ns = pod_hosts_tick(&a->pods, now_ns);
    next_ns = agent_step_pods(a, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    if (a->ends.len > 0) {
        next_ns = now_ns; /* the runtime reported ends during the steps */
    }
    at_ns = nodes_tick(&a->nodes, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    at_ns = feed_tick(&a->feed, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    at_ns = volume_local_tick(a->local, a->leftovers.swept, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    at_ns = disk_tick(a->disk, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    at_ns = source_tick(&a->pods, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    at_ns = serve_tick(&a->serve, now_ns);
    return HK_MIN(next_ns, at_ns);
}

/* ---- clearing the node ---- */

static void agent_on_delete_answer(void *ctx, const struct port_msg *m)
{
    if (m->rc < 0 && m->rc != -HK_ENOTFOUND && m->rc != -HK_ECONFLICT) {
        hk_log(HK_LOG_WARN, "cannot delete pod", "err=\"%s\"", m->err->text);
    }
}

void agent_clear(struct agent *a)
{
    a->closed = true;
    for (uint32_t i = 0; i < a->pods.slots.len; i++) {
        const struct pod *p = a->pods.slots.at[i];

        if (p && p->stage != POD_ENDED && !p->deleting && !p->gone) {
            port_submit(a->host.o.port,
                        &(struct port_request){.verb = PORT_DELETE,
                                               .kind = api_kind(API_POD),
                                               .ns = p->ns,
                                               .name = p->name,
                                               .if_uid = p->uid},
                        (struct port_sink){agent_on_delete_answer, a});
        }
    }
}

static void agent_count_runtime_pod(void *ctx, const char *uid)
{
    *(uint32_t *)ctx += 1;
}

bool agent_is_clear(const struct agent *a)
{
    struct runtime *r = a->host.o.runtime;
    uint32_t n = 0;

    if (a->pods.active.len > 0) {
        return false;
    }
    r->ops->each_pod(r, agent_count_runtime_pod, &n);
    return n == 0;
}

/* ---- setup and teardown ---- */

static void agent_make_pods_dir(const char *path)
{
    struct hk_err err = {0};

    if (volume_mkdir(path, 0711, &err) < 0) {
        hk_log(HK_LOG_ERROR, "no place for pods", "err=\"%s\"", err.text);
    }
}

static void agent_open_dir(struct agent *a)
{
    struct host *h = &a->host;

    agent_make_pods_dir(h->o.dir);
    agent_make_pods_dir(hk_arena_printf(&h->own, "%s/pods", h->o.dir));
    agent_make_pods_dir(h->volumes_dir);
    a->local = volume_local_new(&a->pods);
    a->disk = disk_new(&a->pods);
}

static void agent_open_feed(struct agent *a)
{
    struct host *h = &a->host;
    const char *own = hk_arena_printf(&h->own, "spec.nodeName=%s", h->o.node);

    feed_init(&a->feed,
              &(struct feed_opts){
                  .port = h->o.port,
                  .clock = h->o.clock,
                  .str = &h->str,
                  .kind = api_kind(API_POD),
                  .required = true,
                  .field_selector = a->nodes.fleet ? HK_STR("spec.nodeName!=") : hk_str(own),
                  .ops = &feed_ops,
                  .ctx = a,
              });
}

struct agent *agent_new(const struct agent_opts *o)
{
    struct agent *a = hk_zalloc(sizeof(*a));

    host_init(&a->host, o);
    pods_init(&a->pods, &a->host, &a->nodes);
    pod_fit_open(&a->pods);
    leftovers_init(&a->leftovers, &a->pods);
    serve_init(&a->serve, &a->pods);
    if (o->dir) {
        agent_open_dir(a);
    }
    if (o->services) {
        a->pods.service_names =
            service_names_new(o->services, a->host.o.domain, pod_hosts_services_changed, &a->pods);
    }
    nodes_init(&a->nodes, &a->host, &node_ops, a);
    agent_open_feed(a);
    return a;
}

void agent_free(struct agent *a)
{
    if (!a) {
        return;
    }
    a->pods.active.len = 0; /* do not wake pods that wait for room */
    for (uint32_t i = 0; i < a->pods.slots.len; i++) {
        if (a->pods.slots.at[i]) {
            pod_free(a->pods.slots.at[i]);
        }
    }
    for (uint32_t i = 0; i < a->ends.len; i++) {
        hk_free((char *)a->ends.at[i].end.message);
    }
    service_names_free(a->pods.service_names);
    hk_vec_fini(&a->ends);
    volume_local_free(a->local);
    disk_free(a->disk);
    feed_fini(&a->feed);
    nodes_fini(&a->nodes);
    leftovers_fini(&a->leftovers);
    serve_fini(&a->serve);
    pods_fini(&a->pods);
    host_fini(&a->host);
    hk_free(a);
}
