// SPDX-License-Identifier: Apache-2.0
// Admits a pod to its node and takes over what an earlier agent left of it. State that must survive
// the agent is in the runtime, in the API, or in the pod's directory: the log file of an attempt is
// created before the attempt starts, and so proves that the attempt exists.
#include "agent/pod/admit.h"

#include "agent/pod/container.h"
#include "agent/pod/disk.h"
#include "agent/pod/ephemeral.h"
#include "agent/pod/fit.h"
#include "agent/pod/gpu.h"
#include "agent/pod/hosts.h"
#include "agent/pod/life.h"
#include "agent/pod/message.h"
#include "agent/pod/pull.h"
#include "agent/pod/source.h"
#include "agent/pod/start.h"
#include "agent/pod/status.h"
#include "api/names.h"
#include "base/crumb.h"
#include "base/log.h"

#include <dirent.h>

#define CODE_LOST 137

enum { HOSTNAME_LENGTH = 63 };

static void add_containers(struct pod *p, const char *field, bool init)
{
    const struct json *list = pod_spec(p, field);

    for (uint32_t i = 0; json_item(list, i); i++) {
        const struct json *spec = json_item(list, i);
        struct container *c = &p->containers[p->ncontainer++];

        *c = (struct container){
            .pod = p,
            .ops = &container_ops,
            .spec = spec,
            .name = json_str(json_get(spec, "name"), HK_STR("")),
            .init = init,
            .sidecar =
                init && hk_str_is(json_str(json_get(spec, "restartPolicy"), HK_STR("")), "Always"),
        };
        hook_end(c);
        pod_gpu_recall(c);
    }
}

static uint32_t length(const struct json *list)
{
    return json_is(list, JSON_ARRAY) ? list->len : 0;
}

/* The highest attempt that has a log or, without files, that the API status shows; -1: none. */
static int64_t last_attempt(const struct container *c)
{
    const char *root = c->pod->dir;
    int64_t best = -1, n;
    DIR *dir;

    if (!root) {
        return c->start_ns > 0 || c->end.is ? (int64_t)c->attempt : -1;
    }
    dir = opendir(root);

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        struct hk_str rest = hk_str(e->d_name), name, attempt;

        if (hk_str_cut(&rest, '.', &name) && hk_str_eq(name, c->name) &&
            hk_str_cut(&rest, '.', &attempt) && hk_str_is(rest, "log") && hk_str_int(attempt, &n)) {
            best = HK_MAX(best, n);
        }
    }
    if (dir) {
        closedir(dir);
    }
    return best;
}

/* Takes over a container that an earlier agent started. */
static void pod_admit_adopt_container(struct container *c, int64_t now_ns)
{
    struct runtime *r = c->pod->host->o.runtime;
    struct hk_arena *a = &c->pod->host->mem;
    const int64_t attempt = last_attempt(c);
    struct hk_err err = {0};
    int rc;

    if (attempt < 0) {
        return;
    }
    c->begun = true;
    if (c->end.is && c->attempt == (uint32_t)attempt) {
        container_settle(c, now_ns); /* the end is already known */
        return;
    }
    if (c->end.is) {
        hk_free(c->last.message);
        c->last = c->end;
        c->end = (struct container_end){0};
    }
    c->attempt = (uint32_t)attempt;
    if (r->ops->hollow) {
        c->delayed = true;
        rc = pod_start_nominal(c, c->start_ns, &err);
    } else {
        rc = r->ops->adopt(r, hk_arena_str(a, c->pod->uid).s, hk_arena_str(a, c->name).s,
                           c->attempt, &c->id, &err);
    }
    if (rc == -HK_EBUSY) {
        c->begun = false; /* only its log exists */
        return;
    }
    if (c->start_ns == 0) {
        c->start_ns = host_wall_ns(c->pod->host); /* its start time was not recorded */
    }
    if (rc == 0) {
        pod_claim(c->pod, c->id);
        c->state = CONTAINER_RUNNING;
        probe_begin(c, now_ns);
        return;
    }
    c->end = (struct container_end){.is = true,
                                    .code = CODE_LOST,
                                    .reason = "ContainerStatusUnknown",
                                    .start_ns = c->start_ns,
                                    .end_ns = host_wall_ns(c->pod->host)};
    pod_message_set(
        &c->end,
        hk_str(hk_arena_printf(a, "The container could not be located when the node came back: %s",
                               err.text)));
    container_settle(c, now_ns);
}

static bool was_begun(const struct pod *p)
{
    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        if (last_attempt(pod_container_at(p, i)) >= 0) {
            return true;
        }
    }
    return false;
}

static bool has_finished(const struct pod *p)
{
    const struct hk_str phase = json_str(json_at(&p->obj->root, "status.phase"), HK_STR(""));

    return hk_str_is(phase, "Succeeded") || hk_str_is(phase, "Failed");
}

static void pod_admit_admit(struct pod *p)
{
    const int64_t now_ns = host_mono_ns(p->host);
    struct hk_err err = {0};

    pod_status_recall(p);
    if (pod_settle_in(p, &err) < 0 || !was_begun(p)) {
        return;
    }
    pod_fit_book(p);
    p->hosts_stale = true;
    if (pod_start_pod(p, &err) < 0) {
        pod_hold(p, "CreateContainerError", &err, now_ns);
    }
    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        pod_admit_adopt_container(pod_container_at(p, i), now_ns);
    }
}

bool pod_is_skipped(const struct api_object *o)
{
    bool news;

    if (!hk_crumb_any() || !hk_crumb_skips(AGENT_CRUMB, o->ns, o->name, o->rv, &news)) {
        return false;
    }
    if (news) {
        hk_log(HK_LOG_ERROR, "skipping an object",
               "controller=" AGENT_CRUMB " object=%.*s/%.*s why=\"not run: the node died of it "
               "twice. Change or delete it, and report the backtrace in the log\"",
               HK_FMT(o->ns), HK_FMT(o->name));
    }
    return true;
}

/* To what the kernel takes, as the kubelet does. */
static struct hk_str pod_admit_shorten(struct hk_str hostname)
{
    if (hostname.n <= HOSTNAME_LENGTH) {
        return hostname;
    }
    hostname.n = HOSTNAME_LENGTH;
    while (hostname.s[hostname.n - 1] == '-' || hostname.s[hostname.n - 1] == '.') {
        hostname.n--;
    }
    return hostname;
}

struct pod *pod_new(struct pods *ps, struct api_object *o)
{
    struct host *h = ps->host;
    struct pod *p = hk_zalloc(sizeof(*p));
    const struct json *labels = json_at(&o->root, "metadata.labels");

    *p = (struct pod){.host = h,
                      .set = ps,
                      .obj = api_object_ref(o),
                      .now = api_object_ref(o),
                      .ns = o->ns,
                      .name = o->name,
                      .uid = o->uid,
                      .hostname = json_str(json_at(&o->root, "spec.hostname"), o->name),
                      .subdomain = json_str(json_at(&o->root, "spec.subdomain"), HK_STR("")),
                      .job = json_str(json_get(labels, API_KEY_JOB_NAME), HK_STR("")),
                      .due_ns = INT64_MAX,
                      .alarm_ns = INT64_MAX,
                      .deadline_ns = INT64_MAX,
                      .start_ns = host_wall_ns(h)};
    p->hostname = pod_admit_shorten(p->hostname.n > 0 ? p->hostname : p->name);
    if (h->o.dir) {
        p->dir = hk_strdup(hk_arena_printf(&h->mem, "%s/pods/%.*s", h->o.dir, HK_FMT(p->uid)));
    }
    p->containers = hk_zalloc_array(length(pod_spec(p, "initContainers")) +
                                        length(pod_spec(p, "containers")) + 1,
                                    sizeof(*p->containers));
    add_containers(p, "initContainers", true);
    p->ninit = p->ncontainer;
    add_containers(p, "containers", false);
    pods_add(p);
    pod_ephemeral_update(p, o);
    if (has_finished(p)) {
        p->stage = POD_ENDED;
        p->started = true; /* the runtime may hold leftovers */
        pod_status_recall(p);
    } else {
        if (!h->o.runtime->ops->hollow) {
            ref_collect(p);
        }
        p->disk.limited = p->dir && pod_disk_is_limited(p);
        pod_admit_admit(p);
    }
    pod_changed(p, o);
    p->known = true;
    pod_hosts_changed(p);
    return p;
}

static void pod_admit_cancel_call(struct pod *p, uint64_t call)
{
    if (call) {
        port_cancel(p->host->o.port, call);
    }
}

void pod_free(struct pod *p)
{
    for (uint32_t i = 0; i < p->refs.len; i++) {
        pod_admit_cancel_call(p, p->refs.at[i].call);
        source_drop(p, &p->refs.at[i]);
        api_object_unref(p->refs.at[i].obj);
        api_object_unref(p->refs.at[i].volume);
    }
    hk_vec_fini(&p->refs);
    pod_admit_cancel_call(p, p->patch);
    pod_admit_cancel_call(p, p->removal);
    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        struct container *c = pod_container_at(p, i);

        probe_end(c);
        hook_end(c);
        pod_pull_end(c);
        hk_free(c->image_id);
        hk_free(c->why_text);
        hk_free(c->end.message);
        hk_free(c->last.message);
    }
    pod_fit_release(p);
    hk_free(p->needs);
    hk_free(p->fit_reason);
    hk_free(p->fit_message);
    pod_ephemeral_free(p);
    hk_free(p->containers);
    pod_hosts_release(p);
    hk_free(p->sent);
    hk_free(p->sending);
    hk_free(p->dir);
    hk_free(p->disk.message);
    api_object_unref(p->obj);
    api_object_unref(p->now);
    hk_free(p);
}
