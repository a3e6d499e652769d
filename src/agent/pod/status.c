// SPDX-License-Identifier: Apache-2.0
// The status of a pod in the API: rebuilt from the pod's state, and sent if it differs from the
// last one sent. One patch is in flight at a time; a failed patch is repeated with a growing delay.
#include "agent/pod/status.h"

#include "base/log.h"
#include "codec/timefmt.h"

#define RETRY_FIRST_NS (SECOND_NS / 5)
#define RETRY_LAST_NS (30 * SECOND_NS)

static const char *const condition_names[] = {
    [POD_READY_TO_START] = "PodReadyToStartContainers",
    [POD_INITIALIZED] = "Initialized",
    [POD_CONTAINERS_READY] = "ContainersReady",
    [POD_READY] = "Ready",
};

/* ---- the phase ---- */

static bool any_main_begun(const struct pod *p)
{
    for (uint32_t i = p->ninit; i < p->ncontainer; i++) {
        if (p->containers[i].begun || p->containers[i].attempt > 0) {
            return true;
        }
    }
    return false;
}

static bool all_succeeded(const struct pod *p)
{
    for (uint32_t i = p->ninit; i < p->ncontainer; i++) {
        const struct container *c = &p->containers[i];

        if (!c->end.is || c->end.code != 0) {
            return false;
        }
    }
    return pod_initialized(p);
}

static const char *pod_status_phase(const struct pod *p)
{
    if (p->stage == POD_ENDED) {
        return all_succeeded(p) && !p->reason ? "Succeeded" : "Failed";
    }
    return any_main_begun(p) ? "Running" : "Pending";
}

/* ---- containers ---- */

static void add_end(struct json *state, struct hk_arena *a, const struct container_end *e)
{
    struct json *t = json_set_object(state, a, "terminated");

    json_set_int(t, a, "exitCode", e->code);
    if (e->signo != 0) {
        json_set_int(t, a, "signal", e->signo);
    }
    json_set_cstr(t, a, "reason", e->reason);
    if (e->message) {
        json_set_cstr(t, a, "message", e->message);
    }
    json_set_time(t, a, "startedAt", e->start_ns);
    json_set_time(t, a, "finishedAt", e->end_ns);
}

static void add_waiting(struct json *state, struct hk_arena *a, const struct container *c)
{
    struct json *w = json_set_object(state, a, "waiting");
    const bool before_init = !c->init && c->pod->ninit > 0 && !pod_initialized(c->pod);
    const char *why = c->why                   ? c->why
                      : before_init || c->init ? "PodInitializing"
                                               : "ContainerCreating";

    json_set_cstr(w, a, "reason", why);
    if (c->why_text) {
        json_set_cstr(w, a, "message", c->why_text);
    }
}

static void add_state(struct json *status, struct hk_arena *a, const struct container *c)
{
    struct json *state = json_set_object(status, a, "state");

    if (c->state == CONTAINER_RUNNING) {
        json_set_time(json_set_object(state, a, "running"), a, "startedAt", c->start_ns);
    } else if (c->state == CONTAINER_ENDED && c->end.is) {
        add_end(state, a, &c->end);
    } else {
        add_waiting(state, a, c);
    }
}

static void add_container(struct json *list, struct hk_arena *a, const struct container *c)
{
    struct json *s = json_push(list, a, json_make_object()), *last;
    const bool runs = c->state == CONTAINER_RUNNING;
    const bool done = c->init && !c->sidecar && c->state == CONTAINER_ENDED && c->end.code == 0;

    json_set_str(s, a, "name", c->name);
    json_set_str(s, a, "image", json_str(json_get(c->spec, "image"), HK_STR("")));
    json_set_cstr(s, a, "imageID", c->image_id ? c->image_id : "");
    if (c->begun) {
        json_set_str(
            s, a, "containerID",
            hk_str(hk_arena_printf(a, "%s://%.*s/%.*s/%u", c->pod->host->o.runtime->ops->name,
                                   HK_FMT(c->pod->uid), HK_FMT(c->name), c->attempt)));
    }
    json_set_bool(s, a, "ready", (runs && c->ready && !c->ephemeral) || done);
    if (!c->ephemeral) { /* as in kubelets */
        json_set_bool(s, a, "started", runs && c->started);
    }
    json_set_int(s, a, "restartCount", c->attempt);
    add_state(s, a, c);
    last = json_set_object(s, a, "lastState");
    /* While it waits for a restart, its last end is lastState. */
    if (c->state == CONTAINER_WAITING && c->end.is) {
        add_end(last, a, &c->end);
    } else if (c->last.is) {
        add_end(last, a, &c->last);
    }
}

static void add_containers(struct json *status, struct hk_arena *a, const struct pod *p)
{
    struct json *list;

    if (p->ninit > 0) {
        list = json_set_array(status, a, "initContainerStatuses");
        for (uint32_t i = 0; i < p->ninit; i++) {
            add_container(list, a, &p->containers[i]);
        }
    }
    list = json_set_array(status, a, "containerStatuses");
    for (uint32_t i = p->ninit; i < p->ncontainer; i++) {
        add_container(list, a, &p->containers[i]);
    }
    if (p->ephemeral.len > 0) {
        list = json_set_array(status, a, "ephemeralContainerStatuses");
        for (uint32_t i = 0; i < p->ephemeral.len; i++) {
            add_container(list, a, p->ephemeral.at[i]);
        }
    }
}

/* ---- conditions ---- */

/* "containers with unready status: [a b]"; NULL if all are ready. */
static const char *unready(const struct pod *p, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    for (uint32_t i = 0; i < p->ncontainer; i++) {
        const struct container *c = &p->containers[i];

        if ((!c->init || c->sidecar) && !(c->state == CONTAINER_RUNNING && c->ready)) {
            hk_buf_addf(&text, "%s%.*s", text.len > 0 ? " " : "", HK_FMT(c->name));
        }
    }
    return text.len == 0 ? NULL
                         : hk_arena_printf(a, "containers with unready status: [%s]", text.data);
}

static const char *uninitialized(const struct pod *p, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    for (uint32_t i = 0; i < p->ninit; i++) {
        const struct container *c = &p->containers[i];

        if (!c->sidecar && !(c->state == CONTAINER_ENDED && c->end.code == 0)) {
            hk_buf_addf(&text, "%s%.*s", text.len > 0 ? " " : "", HK_FMT(c->name));
        }
    }
    return hk_arena_printf(a, "containers with incomplete status: [%s]",
                           text.data ? text.data : "");
}

static void add_condition(struct pod *p, struct json *list, struct hk_arena *a,
                          enum pod_condition which, bool is, const char *reason,
                          const char *message)
{
    struct json *c = json_push(list, a, json_make_object());

    if (p->conditions[which].since_ns == 0 || p->conditions[which].is != is) {
        p->conditions[which].is = is;
        p->conditions[which].since_ns = host_wall_ns(p->host);
    }
    json_set_str(c, a, "type", hk_str(condition_names[which]));
    json_set_str(c, a, "status", is ? HK_STR("True") : HK_STR("False"));
    json_set(c, a, "lastProbeTime", (struct json){0});
    json_set_time(c, a, "lastTransitionTime", p->conditions[which].since_ns);
    /* null removes the value of an earlier state */
    json_set(c, a, "reason", !is && reason ? json_make_str(hk_str(reason)) : (struct json){0});
    json_set(c, a, "message", !is && message ? json_make_str(hk_str(message)) : (struct json){0});
}

static void add_conditions(struct pod *p, struct json *status, struct hk_arena *a)
{
    struct json *list = json_set_array(status, a, "conditions");
    const bool ended = p->stage == POD_ENDED, good = ended && all_succeeded(p) && !p->reason;
    const char *missing = ended ? NULL : unready(p, a);
    const char *reason = good ? "PodCompleted" : ended ? "PodFailed" : "ContainersNotReady";
    const bool ready = !ended && !missing;

    add_condition(p, list, a, POD_READY_TO_START, p->started && !ended, NULL, NULL);
    add_condition(p, list, a, POD_INITIALIZED, pod_initialized(p), "ContainersNotInitialized",
                  uninitialized(p, a));
    add_condition(p, list, a, POD_CONTAINERS_READY, ready, reason, missing);
    add_condition(p, list, a, POD_READY, ready, reason, missing);
}

/* ---- the whole status ---- */

static void add_ips(struct json *status, struct hk_arena *a, const char *one, const char *all,
                    const char *address)
{
    struct json *list;

    json_set_cstr(status, a, one, address);
    list = json_set_array(status, a, all);
    json_set_cstr(json_push(list, a, json_make_object()), a, "ip", address);
}

const char *pod_status_caveats(const struct pod *p)
{
    struct runtime *r = p->host->o.runtime;

    for (uint32_t i = 0; i < p->ncontainer; i++) {
        if (json_at(p->containers[i].spec, "resources.limits")) {
            return r->ops->caveats(r);
        }
    }
    return "";
}

static struct json make_status(struct pod *p, struct hk_arena *a)
{
    struct json status = json_make_object();
    const char *host = p->host->o.address;
    const char *message = p->reason ? p->message : pod_status_caveats(p);

    json_set_str(&status, a, "phase", hk_str(pod_status_phase(p)));
    if (p->reason) {
        json_set_cstr(&status, a, "reason", p->reason);
    }
    if (message[0]) {
        json_set_cstr(&status, a, "message", message);
    }
    json_set_time(&status, a, "startTime", p->start_ns);
    add_ips(&status, a, "hostIP", "hostIPs", host);
    if (p->settled) {
        add_ips(&status, a, "podIP", "podIPs", p->address[0] ? p->address : host);
    }
    add_conditions(p, &status, a);
    add_containers(&status, a, p);
    return status;
}

/* The node controller makes pods of a silent node not ready. When our last report is older than
 * that and says ready, it is sent again. */
static void report_ready_again(struct pod *p)
{
    if (p->sent && !p->patch && p->conditions[POD_READY].is && p->sent_rv > 0 &&
        p->unready_rv > p->sent_rv) {
        hk_free(p->sent);
        p->sent = NULL;
        pod_touch(p);
    }
}

static void on_patch(void *ctx, const struct port_msg *m)
{
    struct pod *p = ctx;
    const bool again = p->report_again || p->stage != POD_LIVE || p->deleting;
    int64_t wait_ns;

    p->patch = 0;
    p->report_again = false;
    /* A live pod whose patch succeeded has nothing to do. */
    if (m->rc != 0 || again) {
        pod_touch(p);
    }
    /* Not found: the pod is gone, and a watch event will report it. After a conflict (a new pod
     * with the same name, or too many writers) retry, so that the result is not lost. */
    if (m->rc == 0 || m->rc == -HK_ENOTFOUND) {
        hk_free(p->sent);
        p->sent = hk_take(p->sending);
        p->sent_rv = m->obj ? m->obj->rv : 0;
        p->failures = 0;
        report_ready_again(p); /* the change may have been seen before this answer */
        return;
    }
    if (p->failures == 0 && m->rc != -HK_ECONFLICT) {
        hk_log(HK_LOG_WARN, "cannot report pod", "pod=%.*s/%.*s err=\"%s\"", HK_FMT(p->ns),
               HK_FMT(p->name), m->err->text);
    }
    wait_ns = RETRY_FIRST_NS << HK_MIN(p->failures, 8);
    p->failures++;
    p->report_ns = host_mono_ns(p->host) + HK_MIN(wait_ns, RETRY_LAST_NS);
}

static void send_status(struct pod *p, struct json *status, struct hk_arena *a)
{
    struct json body = json_make_object();

    json_set_str(json_set_object(&body, a, "metadata"), a, "uid", p->uid);
    json_set(&body, a, "status", *status);
    p->patch = port_submit(p->host->o.port,
                           &(struct port_request){.verb = PORT_PATCH,
                                                  .patch = PORT_PATCH_STRATEGIC,
                                                  .kind = api_kind(API_POD),
                                                  .ns = p->ns,
                                                  .name = p->name,
                                                  .subresource = "status",
                                                  .body = &body},
                           (struct port_sink){on_patch, p});
}

static bool pod_status_has_changed(const struct pod *p, struct json *status, struct hk_buf *text)
{
    json_write(status, text);
    return !p->sent || strcmp(p->sent, text->data) != 0;
}

int64_t pod_status_report(struct pod *p, int64_t now_ns)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_arena *a = &p->host->mem;
    struct json status;

    p->report_again = p->patch != 0;
    if (p->final || p->patch) {
        return INT64_MAX;
    }
    status = make_status(p, a);
    if (!pod_status_has_changed(p, &status, &text)) {
        return INT64_MAX;
    }
    if (p->report_ns > now_ns) {
        return p->report_ns;
    }
    hk_free(p->sending);
    p->sending = hk_strdup(text.data);
    send_status(p, &status, a);
    return INT64_MAX;
}

/* Notes whether somebody else made the pod not ready. */
void pod_status_compare(struct pod *p, const struct api_object *o)
{
    const struct json *list = json_at(&o->root, "status.conditions");

    p->unready_rv = 0;
    for (uint32_t i = 0; json_item(list, i); i++) {
        const struct json *c = json_item(list, i);

        if (hk_str_is(json_str(json_get(c, "type"), HK_STR("")), condition_names[POD_READY]) &&
            !hk_str_is(json_str(json_get(c, "status"), HK_STR("")), "True")) {
            p->unready_rv = o->rv;
        }
    }
    report_ready_again(p);
}

bool pod_status_told(const struct pod *p)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json status;

    if (p->final) {
        return true;
    }
    if (p->patch || !p->sent) {
        return false;
    }
    status = make_status((struct pod *)p, &p->host->mem);
    return !pod_status_has_changed(p, &status, &text);
}

/* ---- status from an earlier agent ---- */

static int64_t recall_time(const struct json *v, const char *key)
{
    int64_t ns;

    return time_parse(json_str(json_get(v, key), HK_STR("")), &ns, NULL) < 0 ? 0 : ns;
}

/* Maps the reason to a literal, as everywhere else. */
static const char *recall_reason(struct hk_str reason)
{
    static const char *const known[] = {"Completed", "Error", "OOMKilled", "ContainerCannotRun",
                                        "ContainerStatusUnknown"};

    for (size_t i = 0; i < HK_LEN(known); i++) {
        if (hk_str_is(reason, known[i])) {
            return known[i];
        }
    }
    return "Error";
}

static void recall_end(const struct json *t, struct container_end *ret)
{
    const struct hk_str message = json_str(json_get(t, "message"), HK_STR(""));

    if (!json_is(t, JSON_OBJECT)) {
        return;
    }
    *ret = (struct container_end){
        .is = true,
        .code = (int)json_int(json_get(t, "exitCode"), 0),
        .signo = (int)json_int(json_get(t, "signal"), 0),
        .reason = recall_reason(json_str(json_get(t, "reason"), HK_STR(""))),
        .message = message.n > 0 ? hk_strndup(message.s, message.n) : NULL,
        .start_ns = recall_time(t, "startedAt"),
        .end_ns = recall_time(t, "finishedAt"),
    };
}

static void recall_image(struct container *c, struct hk_str id)
{
    hk_free(c->image_id);
    c->image_id = id.n > 0 ? hk_strndup(id.s, id.n) : NULL;
}

static void recall_container(struct container *c)
{
    const struct json *status = json_get(&c->pod->obj->root, "status");
    const struct json *list = json_get(status, c->ephemeral ? "ephemeralContainerStatuses"
                                               : c->init    ? "initContainerStatuses"
                                                            : "containerStatuses");

    for (uint32_t i = 0; json_item(list, i); i++) {
        const struct json *s = json_item(list, i);

        if (hk_str_eq(json_str(json_get(s, "name"), HK_STR("")), c->name)) {
            c->attempt = (uint32_t)json_int(json_get(s, "restartCount"), 0);
            recall_image(c, json_str_field(s, "imageID"));
            c->start_ns = recall_time(json_at(s, "state.running"), "startedAt");
            recall_end(json_at(s, "state.terminated"), &c->end);
            /* If it waits for a restart, its last end is lastState. */
            recall_end(json_at(s, "lastState.terminated"),
                       json_at(s, "state.waiting") ? &c->end : &c->last);
        }
    }
}

static void recall_conditions(struct pod *p)
{
    const struct json *list = json_at(&p->obj->root, "status.conditions");

    for (uint32_t i = 0; json_item(list, i); i++) {
        const struct json *c = json_item(list, i);
        const struct hk_str type = json_str(json_get(c, "type"), HK_STR(""));

        for (size_t k = 0; k < POD_NCONDITIONS; k++) {
            if (hk_str_is(type, condition_names[k])) {
                p->conditions[k].is =
                    hk_str_is(json_str(json_get(c, "status"), HK_STR("")), "True");
                p->conditions[k].since_ns = recall_time(c, "lastTransitionTime");
            }
        }
    }
}

void pod_status_recall(struct pod *p)
{
    const int64_t start_ns = recall_time(json_get(&p->obj->root, "status"), "startTime");

    p->final = p->stage == POD_ENDED;
    if (start_ns == 0) {
        return;
    }
    p->start_ns = start_ns;
    recall_conditions(p);
    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        recall_container(pod_container_at(p, i));
    }
}
