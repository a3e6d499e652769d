// SPDX-License-Identifier: Apache-2.0
// The agent: holds the node and its pods, collects events from the API and the runtime, and runs
// the steps of pods, node and fleet. Removes leftovers on the machine that belong to no pod once
// the list of the node's pods is complete.
#include "agent/agent_priv.h"

#include "base/crumb.h"
#include "base/log.h"
#include "codec/timefmt.h"
#include "net/node_api.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#define POLL_MAX 1024u
#define ADDRESS_DEFAULT "127.0.0.1"
#define LEASE_DEFAULT_NS (40 * SECOND_NS)

int64_t agent_mono(const struct agent *a)
{
    return a->o.clock->mono_ns(a->o.clock);
}

int64_t agent_beat_ns(const struct agent *a)
{
    return a->o.lease_ns / 4; /* as in kubelets */
}

int64_t agent_wall(const struct agent *a)
{
    return a->o.clock->wall_ns(a->o.clock);
}

void agent_put_str(struct json *obj, struct hk_arena *a, const char *key, struct hk_str value)
{
    json_put(obj, a, hk_str(key), json_make_str(hk_arena_str(a, value)));
}

struct json *agent_put_object(struct json *obj, struct hk_arena *a, const char *key)
{
    return json_put(obj, a, hk_str(key), json_make_object());
}

void agent_put_time(struct json *obj, struct hk_arena *a, const char *key, int64_t wall_ns)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    time_write(wall_ns, &text);
    agent_put_str(obj, a, key, hk_buf_str(&text));
}

/* ---- pods ---- */

static uint64_t uid_key(struct hk_str uid)
{
    return hk_hash(uid.s, uid.n, 1) >> 1; /* the map reserves the largest key */
}

static uint64_t name_key(struct hk_str ns, struct hk_str name)
{
    return hk_hash(name.s, name.n, hk_hash(ns.s, ns.n, 2)) >> 1;
}

static struct pod *pod_in(const struct agent *a, uint32_t slot)
{
    return slot == HK_NONE ? NULL : a->slots.at[slot];
}

struct pod *agent_pod(const struct agent *a, struct hk_str uid)
{
    struct pod *p = pod_in(a, hk_map_get(&a->by_uid, uid_key(uid)));

    return p && hk_str_eq(p->uid, uid) ? p : NULL;
}

struct pod *agent_pod_named(const struct agent *a, struct hk_str ns, struct hk_str name)
{
    struct pod *p = pod_in(a, hk_map_get(&a->by_name, name_key(ns, name)));

    return p && hk_str_eq(p->name, name) && hk_str_eq(p->ns, ns) ? p : NULL;
}

bool agent_has(const struct agent *a, struct hk_str ns, struct hk_str name)
{
    return agent_pod_named(a, ns, name) != NULL;
}

bool agent_has_node(const struct agent *a, struct hk_str name)
{
    return a->fleet ? fleet_has(a->fleet, name) : hk_str_is(name, a->o.node);
}

void agent_write_pods(const struct agent *a, struct hk_buf *out)
{
    for (uint32_t i = 0; i < a->slots.len; i++) {
        const struct pod *p = a->slots.at[i];

        if (!p || p->gone) {
            continue;
        }
        if (out->len > 0 && out->data[out->len - 1] == '}') {
            hk_buf_addc(out, ',');
        }
        json_write(&p->obj->root, out);
    }
}

static void agent_add_pod(struct agent *a, struct pod *p)
{
    p->resting = false;
    p->at = a->pods.len;
    hk_vec_push(&a->pods, p);
}

static void agent_remove_pod(struct agent *a, struct pod *p)
{
    hk_vec_swap_remove(&a->pods, p->at);
    if (p->at < a->pods.len) {
        a->pods.at[p->at]->at = p->at;
    }
}

void agent_touch(struct pod *p)
{
    struct agent *a = p->a;

    p->dirty = true;
    if (!p->queued) {
        p->queued = true;
        hk_vec_push(&a->touched, p->slot);
    }
    if (p->resting) {
        agent_add_pod(a, p);
    }
}

void agent_claim(struct pod *p, uint64_t container)
{
    hk_map_put(&p->a->by_container, container, p->slot);
}

void agent_enlist(struct pod *p)
{
    struct agent *a = p->a;

    if (a->vacant.len > 0) {
        p->slot = hk_vec_pop(&a->vacant);
        a->slots.at[p->slot] = p;
    } else {
        p->slot = a->slots.len;
        hk_vec_push(&a->slots, p);
    }
    hk_map_put(&a->by_uid, uid_key(p->uid), p->slot);
    hk_map_put(&a->by_name, name_key(p->ns, p->name), p->slot);
    agent_add_pod(a, p);
    agent_touch(p);
}

static void discharge(struct agent *a, struct pod *p)
{
    hk_map_del(&a->by_uid, uid_key(p->uid));
    if (agent_pod_named(a, p->ns, p->name) == p) {
        hk_map_del(&a->by_name, name_key(p->ns, p->name));
    }
    a->slots.at[p->slot] = NULL;
    hk_vec_push(&a->vacant, p->slot);
    pod_free(p);
}

static void vanish(struct pod *p)
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

/* ---- pods that the API has lost ---- */

static void keep_unknown(struct agent *a, struct hk_str uid)
{
    hk_log(HK_LOG_WARN, "keeping what runs for no pod: the API has gone back in time", "uid=%.*s",
           HK_FMT(uid));
    json_push(&a->kept, &a->own, json_make_str(hk_arena_str(&a->own, uid)));
}

static void tell_kept(struct agent *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    past_tell_kept(&a->past, &a->kept);
    if (a->kept.len == 0) {
        return;
    }
    hk_buf_addf(&text,
                "%u pod%s here that the API does not know any more since it has gone back in time; "
                "start with --end-unknown-pods to end %s",
                a->kept.len, a->kept.len == 1 ? " runs" : "s run",
                a->kept.len == 1 ? "it" : "them");
    hk_log(HK_LOG_WARN, "pods are kept", "what=\"%s\"", text.data);
    if (!a->fleet) {
        recorder_note(a->recorder,
                      &(struct recorder_about){api_kind(API_NODE), HK_STR(""), hk_str(a->o.node),
                                               hk_str(a->node.uid ? a->node.uid : a->o.node)},
                      true, "PodsKept", hk_buf_str(&text));
    }
}

/* Whether the pod keeps running although the API does not know it. */
static bool is_kept(const struct agent *a, struct hk_str uid)
{
    for (uint32_t i = 0; i < a->kept.len; i++) {
        if (hk_str_eq(json_str(&a->kept.items[i], HK_STR("")), uid)) {
            return true;
        }
    }
    return false;
}

/* The API knows the pod again: it continues as a normal pod. */
static void forget_kept(struct agent *a, struct hk_str uid)
{
    for (uint32_t i = 0; i < a->kept.len; i++) {
        if (hk_str_eq(json_str(&a->kept.items[i], HK_STR("")), uid)) {
            a->kept.items[i] = a->kept.items[--a->kept.len];
            a->ntold = a->kept.len;
            past_tell_kept(&a->past, &a->kept);
            return;
        }
    }
}

/* ---- pod events ---- */

static void agent_put_pod(struct agent *a, struct api_object *o)
{
    struct pod *p = agent_pod(a, o->uid), *old = agent_pod_named(a, o->ns, o->name);

    if (!uid_fits(o->uid)) {
        hk_log(HK_LOG_WARN, "pod has no usable uid", "pod=%.*s/%.*s", HK_FMT(o->ns),
               HK_FMT(o->name));
        return;
    }
    if (p) {
        pod_changed(p, o);
        return;
    }
    vanish(old); /* deleted and recreated while the watch was down */
    if (a->closed) {
        return; /* shutting down: leave the pod to the next agent */
    }
    pod_new(a, o);
    forget_kept(a, o->uid);
    hk_arena_clear(&a->mem);
}

static void agent_on_pod_put(void *ctx, struct api_object *o)
{
    struct agent *a = ctx;

    if (a->fleet &&
        !fleet_has(a->fleet, json_str(json_at(&o->root, "spec.nodeName"), HK_STR("")))) {
        return;
    }
    if (!pod_is_skipped(o)) {
        hk_crumb_enter(AGENT_CRUMB, o->ns, o->name);
        agent_put_pod(a, o);
        hk_crumb_leave();
    }
}

/* Forgets a pod without stopping its processes. */
static void release_pod(struct agent *a, struct pod *p)
{
    for (uint32_t i = 0; i < p->ncontainer; i++) {
        hk_map_del(&a->by_container, p->containers[i].id);
    }
    if (!p->resting) {
        agent_remove_pod(a, p);
    }
    discharge(a, p);
}

/* Whether pods are missing from a list because the API lost data. */
static bool may_be_forgotten(const struct agent *a)
{
    return !a->o.end_unknown && past_is_ahead(&a->past, a->feed.rv);
}

static void agent_on_pod_del(void *ctx, struct hk_str ns, struct hk_str name,
                             const struct api_object *last)
{
    struct agent *a = ctx;
    struct pod *p = agent_pod_named(a, ns, name);

    if (p && !last && !p->gone && may_be_forgotten(a)) {
        keep_unknown(a, p->uid);
        release_pod(a, p);
    } else {
        vanish(p);
    }
}

/* A list is complete, and all pods known before were compared with it. */
static void agent_on_listed(void *ctx)
{
    struct agent *a = ctx;

    a->listed = true;
    if (a->swept && a->kept.len > a->ntold) {
        tell_kept(a);
        a->ntold = a->kept.len;
    }
}

static const struct feed_ops feed_ops = {
    .put = agent_on_pod_put, .del = agent_on_pod_del, .listed = agent_on_listed};

void agent_relist(struct agent *a)
{
    a->listed = false;
    feed_relist(&a->feed);
}

/* ---- leftovers of unknown pods ---- */

static bool agent_has_pod(const struct agent *a, const char *uid)
{
    return agent_pod(a, hk_str(uid)) != NULL;
}

static void sweep_runtime(void *ctx, const char *uid)
{
    struct agent *a = ctx;
    struct json *list = (struct json *)&a->sweep;

    if (!agent_has_pod(a, uid)) {
        json_push(list, &a->mem, json_make_str(hk_arena_str(&a->mem, hk_str(uid))));
    }
}

/* Keeps all unknown pods that have processes here, and notes whether unknown files exist. */
static void keep_all_unknown(struct agent *a)
{
    const char *pods = hk_arena_printf(&a->mem, "%s/pods", a->o.dir);
    DIR *dir = a->o.dir ? opendir(pods) : NULL;

    for (uint32_t i = 0; i < a->sweep.len; i++) {
        keep_unknown(a, json_str(&a->sweep.items[i], HK_STR("")));
    }
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        a->keeps_files |= e->d_name[0] != '.' && !agent_has_pod(a, e->d_name);
    }
    if (dir) {
        closedir(dir);
    }
}

static void sweep_dirs(struct agent *a)
{
    const char *pods = hk_arena_printf(&a->mem, "%s/pods", a->o.dir);
    DIR *dir = opendir(pods);

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] != '.' && !agent_has_pod(a, e->d_name)) {
            hk_log(HK_LOG_INFO, "removing files of no pod", "name=%s", e->d_name);
            volume_unmount(hk_arena_printf(&a->mem, "%s/%s", pods, e->d_name));
            volume_remove(hk_arena_printf(&a->mem, "%s/%s", pods, e->d_name));
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* File names are the uid, optionally followed by "." and a suffix. */
static void sweep_memory(struct agent *a)
{
    DIR *dir = opendir(a->o.memory_dir);

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        const char *dot = strchr(e->d_name, '.');

        if (dot && dot > e->d_name &&
            !agent_has_pod(a, hk_arena_strndup(&a->mem, e->d_name, (size_t)(dot - e->d_name)))) {
            unlink(hk_arena_printf(&a->mem, "%s/%s", a->o.memory_dir, e->d_name));
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static void agent_sweep_leftovers(struct agent *a)
{
    struct runtime *r = a->o.runtime;

    a->swept = true;
    a->sweep = json_make_array();
    r->ops->each_pod(r, sweep_runtime, a);
    if (may_be_forgotten(a)) {
        keep_all_unknown(a);
    }
    if (a->kept.len > 0 || a->keeps_files) {
        tell_kept(a);
        a->ntold = a->kept.len;
        a->sweep = (struct json){0};
        hk_arena_clear(&a->mem);
        return;
    }
    past_tell_kept(&a->past, &a->kept);
    for (uint32_t i = 0; i < a->sweep.len; i++) {
        hk_log(HK_LOG_INFO, "removing what runs for no pod", "uid=%.*s",
               HK_FMT(json_str(&a->sweep.items[i], HK_STR(""))));
        r->ops->pod_stop(r, json_str(&a->sweep.items[i], HK_STR("")).s);
    }
    if (a->o.dir) {
        sweep_dirs(a);
    }
    if (a->o.memory_dir) {
        sweep_memory(a);
    }
    a->sweep = (struct json){0};
    hk_arena_clear(&a->mem);
}

/* Running containers that belong to no pod. */
struct agent_strays {
    const struct agent *a;
    uint32_t n;
};

static void agent_count_stray(void *ctx, const char *uid)
{
    struct agent_strays *s = ctx;
    const struct pod *p = agent_pod(s->a, hk_str(uid));

    s->n += p ? p->gone : !is_kept(s->a, hk_str(uid));
}

bool agent_is_settled(const struct agent *a, bool deletions)
{
    struct agent_strays s = {.a = a};

    if (!a->listed || !a->swept) {
        return false;
    }
    for (uint32_t i = 0; deletions && i < a->pods.len; i++) {
        if (a->pods.at[i]->deleting && a->pods.at[i]->stage != POD_ENDED) {
            return false;
        }
    }
    a->o.runtime->ops->each_pod(a->o.runtime, agent_count_stray, &s);
    return s.n == 0;
}

/* ---- ends reported by the runtime ---- */

void agent_on_end(struct agent *a, uint64_t container, const struct runtime_end *end)
{
    struct agent_end e = {.id = container, .end = *end};

    e.end.message = hk_strdup(end->message ? end->message : "");
    hk_vec_push(&a->ends, e);
}

static void take_ends(struct agent *a)
{
    for (uint32_t i = 0; i < a->ends.len; i++) {
        const struct agent_end e = a->ends.at[i]; /* a copy: handling it may append to the vector */

        struct pod *p = pod_in(a, hk_map_get(&a->by_container, e.id));

        if (p) {
            pod_on_end(p, e.id, &e.end);
        } else {
            pod_exec_on_end(a, e.id, &e.end);
        }
        hk_map_del(&a->by_container, e.id);
        hk_free((char *)e.end.message);
    }
    a->ends.len = 0;
    hk_arena_clear(&a->mem);
}

/* ---- running ---- */

/* Spends at most a tenth of the time here: while a large group starts pod by pod, its files would
 * be rewritten for each pod. */
static int64_t write_hosts(struct agent *a, int64_t now_ns)
{
    bool wrote = false;

    if (!a->o.dir) {
        return INT64_MAX;
    }
    for (uint32_t i = 0; i < a->pods.len; i++) {
        if (!a->pods.at[i]->hosts_stale) {
            continue;
        }
        if (a->hosts_due_ns > now_ns) {
            return a->hosts_due_ns;
        }
        pod_hosts_write(a->pods.at[i]);
        hk_arena_clear(&a->mem);
        wrote = true;
    }
    if (wrote) {
        const int64_t end_ns = agent_mono(a);

        a->hosts_due_ns = end_ns + 10 * (end_ns - now_ns);
    }
    return INT64_MAX;
}

static bool alarm_before(void *ctx, uint32_t x, uint32_t y)
{
    const struct agent *a = ctx;

    return a->alarms.at[x].at_ns < a->alarms.at[y].at_ns;
}

static void set_alarm(struct agent *a, struct pod *p)
{
    const struct agent_alarm alarm = {.at_ns = p->due_ns, .slot = p->slot};
    uint32_t row = a->alarms.len;

    if (p->due_ns >= p->alarm_ns) {
        return; /* covers INT64_MAX, too */
    }
    if (a->vacant_alarms.len > 0) {
        row = hk_vec_pop(&a->vacant_alarms);
        a->alarms.at[row] = alarm;
    } else {
        hk_vec_push(&a->alarms, alarm);
    }
    p->alarm_ns = p->due_ns;
    hk_heap_push(&a->alarm_queue, row);
}

/* Touches the pods that are due; returns when the next one is due. */
static int64_t agent_run_alarms(struct agent *a, int64_t now_ns)
{
    while (a->alarm_queue.len > 0) {
        const uint32_t row = a->alarm_queue.at[0];
        const struct agent_alarm alarm = a->alarms.at[row];
        struct pod *p = a->slots.at[alarm.slot];

        if (alarm.at_ns > now_ns) {
            return alarm.at_ns;
        }
        hk_heap_pop(&a->alarm_queue);
        hk_vec_push(&a->vacant_alarms, row);
        if (!p || p->alarm_ns != alarm.at_ns) {
            continue; /* outdated alarm */
        }
        p->alarm_ns = INT64_MAX;
        if (p->due_ns <= now_ns) {
            agent_touch(p);
        } else {
            set_alarm(a, p);
        }
    }
    return INT64_MAX;
}

static void step_pod(struct agent *a, struct pod *p, int64_t now_ns)
{
    hk_crumb_enter(AGENT_CRUMB, p->ns, p->name);
    const bool lives = pod_step(p, now_ns);
    hk_crumb_leave();

    hk_arena_clear(&a->mem);
    p->resting = lives && pod_rests(p);
    if (!lives || p->resting) {
        agent_remove_pod(a, p);
    }
    if (lives) {
        set_alarm(a, p);
    } else {
        discharge(a, p);
    }
}

/* A pod that is touched during this loop has its next step in the next run. */
static int64_t step_pods(struct agent *a, int64_t now_ns)
{
    int64_t next_ns;
    uint32_t n;

    agent_run_alarms(a, now_ns);
    n = a->touched.len;
    for (uint32_t i = 0; i < n; i++) {
        struct pod *p = a->slots.at[a->touched.at[i]];

        if (p) { /* NULL: freed since it was queued */
            p->queued = false;
            step_pod(a, p, now_ns);
        }
    }
    if (n > 0) {
        memmove(a->touched.at, a->touched.at + n, (a->touched.len - n) * sizeof(*a->touched.at));
        a->touched.len -= n;
    }
    next_ns = agent_run_alarms(a, now_ns);
    return a->touched.len > 0 ? now_ns : next_ns;
}

int64_t agent_run(struct agent *a)
{
    const int64_t now_ns = agent_mono(a);
    int64_t next_ns, at_ns;

    while (!a->o.shared_port && port_poll(a->o.port, POLL_MAX) > 0) {
    }
    take_ends(a);
    if (a->feed.synced && !a->swept) {
        agent_sweep_leftovers(a);
    }
    if (a->feed.synced && !a->fit_open) {
        pod_fit_begin(a);
    }
    if (a->swept && a->kept.len == 0 && !a->keeps_files) {
        past_note(&a->past, a->feed.rv);
    }
    at_ns = write_hosts(a, now_ns);
    next_ns = step_pods(a, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    if (a->ends.len > 0) {
        next_ns = now_ns; /* the runtime reported ends during the steps */
    }
    at_ns = a->fleet ? fleet_tick(a->fleet, now_ns) : node_tick(&a->node, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    at_ns = topology_tick(&a->topology, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    at_ns = feed_tick(&a->feed, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    at_ns = volume_local_tick(a->local, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    at_ns = disk_tick(a->disk, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    at_ns = source_tick(a, now_ns);
    next_ns = HK_MIN(next_ns, at_ns);
    at_ns = pod_log_tick(a, now_ns);
    return HK_MIN(next_ns, at_ns);
}

bool agent_ready(const struct agent *a)
{
    return (a->fleet ? a->fleet->registered == a->fleet->n : a->node.registered) && a->swept;
}

/* ---- clearing the node ---- */

static void on_delete(void *ctx, const struct port_msg *m)
{
    if (m->rc < 0 && m->rc != -HK_ENOTFOUND && m->rc != -HK_ECONFLICT) {
        hk_log(HK_LOG_WARN, "cannot delete pod", "err=\"%s\"", m->err->text);
    }
}

void agent_clear(struct agent *a)
{
    a->closed = true;
    for (uint32_t i = 0; i < a->slots.len; i++) {
        const struct pod *p = a->slots.at[i];

        if (p && p->stage != POD_ENDED && !p->deleting && !p->gone) {
            port_submit(a->o.port,
                        &(struct port_request){.verb = PORT_DELETE,
                                               .kind = api_kind(API_POD),
                                               .ns = p->ns,
                                               .name = p->name,
                                               .if_uid = p->uid},
                        (struct port_sink){on_delete, a});
        }
    }
}

static void agent_count_runtime_pod(void *ctx, const char *uid)
{
    *(uint32_t *)ctx += 1;
}

bool agent_is_clear(const struct agent *a)
{
    uint32_t n = 0;

    if (a->pods.len > 0) {
        return false;
    }
    a->o.runtime->ops->each_pod(a->o.runtime, agent_count_runtime_pod, &n);
    return n == 0;
}

/* ---- setup and teardown ---- */

static const char *agent_copy_str(struct agent *a, const char *s)
{
    return s ? hk_arena_str(&a->own, hk_str(s)).s : NULL;
}

static const char *const *keep_list(struct agent *a, const char *const *list)
{
    uint32_t n = 0;
    const char **copy;

    while (list && list[n]) {
        n++;
    }
    copy = hk_arena_array(&a->own, n + 1, sizeof(*copy));
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = agent_copy_str(a, list[i]);
    }
    copy[n] = NULL;
    return copy;
}

static struct json keep_json(struct agent *a, const struct json *v)
{
    return json_clone_as(v, JSON_OBJECT, &a->own);
}

static void agent_make_pods_dir(const char *path)
{
    struct hk_err err = {0};

    if (volume_mkdir(path, 0711, &err) < 0) {
        hk_log(HK_LOG_ERROR, "no place for pods", "err=\"%s\"", err.text);
    }
}

struct agent *agent_new(const struct agent_opts *o)
{
    struct agent *a = hk_zalloc(sizeof(*a));

    a->o = *o;
    a->o.api_host = agent_copy_str(a, o->api_host);
    a->o.api_port = agent_copy_str(a, o->api_port);
    a->alarm_queue = (struct hk_heap){.less = alarm_before, .ctx = a};
    a->o.dir = agent_copy_str(a, o->dir);
    a->o.memory_dir = agent_copy_str(a, o->memory_dir);
    a->o.node = agent_copy_str(a, o->node);
    a->o.address = agent_copy_str(a, o->address ? o->address : ADDRESS_DEFAULT);
    a->o.image_roots = agent_copy_str(a, o->image_roots);
    a->o.covered = keep_list(a, o->covered);
    a->o.record_dir = agent_copy_str(a, o->record_dir);
    past_init(&a->past, a->o.record_dir);
    a->kept = json_make_array();
    if (o->machine) {
        a->machine = (struct machine){.root = agent_copy_str(a, o->machine->root),
                                      .dir = agent_copy_str(a, o->machine->dir),
                                      .synthetic = agent_copy_str(a, o->machine->synthetic)};
        a->o.machine = &a->machine;
        a->ngpu = machine_gpus(&a->machine, a->gpus);
    }
    a->capacity = keep_json(a, o->capacity);
    a->allocatable = keep_json(a, o->allocatable ? o->allocatable : o->capacity);
    a->labels = keep_json(a, o->labels);
    a->o.lease_ns = o->lease_ns > 0 ? o->lease_ns : LEASE_DEFAULT_NS;
    pod_fit_open(a);
    if (o->dir) {
        agent_make_pods_dir(a->o.dir);
        agent_make_pods_dir(hk_arena_printf(&a->own, "%s/pods", a->o.dir));
        a->volumes_dir = hk_arena_printf(&a->own, "%s/volumes", a->o.dir);
        agent_make_pods_dir(a->volumes_dir);
        a->local = volume_local_new(a);
        a->disk = disk_new(a);
    }
    a->recorder = recorder_new(o->port, o->clock, HK_STR("hekla-agent"));
    if (o->fleet) {
        a->fleet = fleet_new(a, o->fleet);
    } else {
        node_init(&a->node, a, a->o.node);
        node_watch(&a->node);
    }
    topology_init(&a->topology, a);
    feed_init(&a->feed,
              &(struct feed_opts){
                  .port = o->port,
                  .clock = o->clock,
                  .str = &a->str,
                  .kind = api_kind(API_POD),
                  .required = true,
                  .field_selector =
                      a->fleet ? HK_STR("spec.nodeName!=")
                               : hk_str(hk_arena_printf(&a->own, "spec.nodeName=%s", a->o.node)),
                  .ops = &feed_ops,
                  .ctx = a,
              });
    return a;
}

void agent_free(struct agent *a)
{
    if (!a) {
        return;
    }
    a->pods.len = 0; /* do not wake pods that wait for room */
    for (uint32_t i = 0; i < a->slots.len; i++) {
        if (a->slots.at[i]) {
            pod_free(a->slots.at[i]);
        }
    }
    for (uint32_t i = 0; i < a->ends.len; i++) {
        hk_free((char *)a->ends.at[i].end.message);
    }
    hk_vec_fini(&a->pods);
    hk_vec_fini(&a->slots);
    hk_vec_fini(&a->vacant);
    hk_map_fini(&a->by_uid);
    hk_map_fini(&a->by_name);
    hk_map_fini(&a->by_container);
    hk_map_fini(&a->by_address);
    hk_vec_fini(&a->touched);
    hk_vec_fini(&a->fit_rows);
    hk_vec_fini(&a->alarms);
    hk_vec_fini(&a->vacant_alarms);
    hk_heap_fini(&a->alarm_queue);
    hk_vec_fini(&a->ends);
    hk_vec_fini(&a->sources);
    volume_local_free(a->local);
    disk_free(a->disk);
    feed_fini(&a->feed);
    topology_fini(&a->topology);
    if (a->fleet) {
        fleet_free(a->fleet);
    } else {
        feed_fini(&a->own_feed);
        node_fini(&a->node);
    }
    past_fini(&a->past);
    recorder_free(a->recorder);
    pod_attach_fini(a);
    pod_exec_fini(a);
    pod_log_fini(a);
    hk_intern_fini(&a->str);
    hk_arena_fini(&a->mem);
    hk_arena_fini(&a->own);
    hk_free(a);
}
