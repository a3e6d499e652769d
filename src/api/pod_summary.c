// SPDX-License-Identifier: Apache-2.0
// The state of a pod for display, from the states of its containers.
#include "api/pod_summary.h"

#include "codec/timefmt.h"

static struct hk_str condition_status(const struct json *pod, const char *type)
{
    const struct json *list = json_list_at(pod, "status.conditions");

    for (uint32_t k = 0; k < list->len; k++) {
        if (hk_str_is(json_str_field(&list->items[k], "type"), type)) {
            return json_str_field(&list->items[k], "status");
        }
    }
    return HK_STR("");
}

void api_pod_summary_fini(struct api_pod_summary *s)
{
    hk_buf_fini(&s->status);
}

static void pod_summary_set_status(struct api_pod_summary *s, const char *prefix,
                                   struct hk_str text)
{
    hk_buf_clear(&s->status);
    hk_buf_adds(&s->status, prefix);
    hk_buf_addstr(&s->status, text);
}

/* Why the container ended: the reason, else the signal, else the exit code. */
static void say_end(struct api_pod_summary *s, const char *prefix, const struct json *terminated)
{
    const struct hk_str reason = json_str_field(terminated, "reason");
    const int64_t signal = json_int_at(terminated, "signal");

    pod_summary_set_status(s, prefix, reason);
    if (reason.n == 0 && signal != 0) {
        hk_buf_addf(&s->status, "Signal:%lld", (long long)signal);
    } else if (reason.n == 0) {
        hk_buf_addf(&s->status, "ExitCode:%lld", (long long)json_int_at(terminated, "exitCode"));
    }
}

static void count_restarts(struct api_pod_summary *s, const struct json *container)
{
    const struct json *end = json_at(container, "lastState.terminated.finishedAt");
    int64_t ns;

    s->restarts += json_int_at(container, "restartCount");
    if (end && time_parse(json_str(end, HK_STR("")), &ns, NULL) == 0) {
        s->restarted_ns = HK_MAX(s->restarted_ns, ns);
    }
}

static bool is_sidecar(const struct json *pod, struct hk_str name)
{
    const struct json *init = json_list_at(pod, "spec.initContainers");

    for (uint32_t k = 0; k < init->len; k++) {
        if (hk_str_eq(json_str_field(&init->items[k], "name"), name)) {
            return hk_str_is(json_str_field(&init->items[k], "restartPolicy"), "Always");
        }
    }
    return false;
}

/* True if the init container blocks the pod. */
static bool visit_init(struct api_pod_summary *s, const struct json *c, bool sidecar, uint32_t at,
                       uint32_t count)
{
    const struct json *terminated = json_at(c, "state.terminated");
    const struct hk_str waiting = json_str_at(c, "state.waiting.reason");

    if (terminated && json_int_at(terminated, "exitCode") == 0) {
        return false;
    }
    if (sidecar && json_bool(json_get(c, "started"), false)) {
        s->ready += json_bool(json_get(c, "ready"), false);
        return false;
    }
    if (terminated) {
        say_end(s, "Init:", terminated);
    } else if (waiting.n > 0 && !hk_str_is(waiting, "PodInitializing")) {
        pod_summary_set_status(s, "Init:", waiting);
    } else {
        pod_summary_set_status(s, "", HK_STR(""));
        hk_buf_addf(&s->status, "Init:%u/%u", at, count);
    }
    return true;
}

static bool visit_inits(struct api_pod_summary *s, const struct json *pod)
{
    const struct json *list = json_list_at(pod, "status.initContainerStatuses");
    const uint32_t count = json_list_at(pod, "spec.initContainers")->len;
    bool held = false;

    for (uint32_t k = 0; k < list->len && !held; k++) {
        const struct json *c = &list->items[k];
        count_restarts(s, c);
        held = visit_init(s, c, is_sidecar(pod, json_str_field(c, "name")), k, count);
    }
    return held;
}

/* The end that explains a partly finished pod: that of the last container with an exit code. */
static void say_half_done(struct api_pod_summary *s, const struct json *pod,
                          const struct json *list)
{
    if (hk_str_is(condition_status(pod, "Ready"), "True")) {
        pod_summary_set_status(s, "", HK_STR("Running"));
        return;
    }
    for (uint32_t k = list->len; k-- > 0;) {
        const struct json *end = json_at(&list->items[k], "state.terminated");
        if (end && json_int_at(end, "exitCode") != 0) {
            say_end(s, "", end);
            return;
        }
    }
    pod_summary_set_status(s, "", HK_STR("NotReady"));
}

/* After the init phase only sidecars count, which keep running. */
static void recount_sidecars(struct api_pod_summary *s, const struct json *pod)
{
    const struct json *list = json_list_at(pod, "status.initContainerStatuses");

    s->restarts = s->restarted_ns = 0;
    for (uint32_t k = 0; k < list->len; k++) {
        if (is_sidecar(pod, json_str_field(&list->items[k], "name"))) {
            count_restarts(s, &list->items[k]);
        }
    }
}

static void visit_containers(struct api_pod_summary *s, const struct json *pod)
{
    const struct json *list = json_list_at(pod, "status.containerStatuses");
    bool running = false;

    recount_sidecars(s, pod);
    for (uint32_t k = list->len; k-- > 0;) {
        const struct json *c = &list->items[k];
        const struct json *terminated = json_at(c, "state.terminated");
        const struct hk_str waiting = json_str_at(c, "state.waiting.reason");
        count_restarts(s, c);
        if (waiting.n > 0) {
            pod_summary_set_status(s, "", waiting);
        } else if (terminated) {
            say_end(s, "", terminated);
        } else if (json_bool(json_get(c, "ready"), false) && json_at(c, "state.running")) {
            running = true;
            s->ready++;
        }
    }
    if (running && hk_str_is(hk_buf_str(&s->status), "Completed")) {
        say_half_done(s, pod, list);
    }
}

static bool is_gated(const struct json *pod)
{
    const struct json *list = json_list_at(pod, "status.conditions");

    for (uint32_t k = 0; k < list->len; k++) {
        if (hk_str_is(json_str_field(&list->items[k], "type"), "PodScheduled") &&
            hk_str_is(json_str_field(&list->items[k], "reason"), "SchedulingGated")) {
            return true;
        }
    }
    return false;
}

const char *api_pod_finished(const struct json *pod)
{
    const struct hk_str phase = json_str_at(pod, "status.phase");

    return hk_str_is(phase, "Succeeded") ? "Succeeded"
           : hk_str_is(phase, "Failed")  ? "Failed"
                                         : NULL;
}

static void count_total(struct api_pod_summary *s, const struct json *pod)
{
    const struct json *init = json_list_at(pod, "spec.initContainers");

    s->total = json_list_at(pod, "spec.containers")->len;
    for (uint32_t k = 0; k < init->len; k++) {
        s->total += hk_str_is(json_str_field(&init->items[k], "restartPolicy"), "Always");
    }
}

void api_pod_summarize(const struct json *pod, struct api_pod_summary *ret)
{
    const struct hk_str reason = json_str_at(pod, "status.reason");

    count_total(ret, pod);
    pod_summary_set_status(ret, "", reason.n > 0 ? reason : json_str_at(pod, "status.phase"));
    if (is_gated(pod)) {
        pod_summary_set_status(ret, "", HK_STR("SchedulingGated"));
    }
    if (!visit_inits(ret, pod) || hk_str_is(condition_status(pod, "Initialized"), "True")) {
        visit_containers(ret, pod);
    }
    if (json_at(pod, "metadata.deletionTimestamp")) {
        if (hk_str_is(reason, "NodeLost")) {
            pod_summary_set_status(ret, "", HK_STR("Unknown"));
        } else if (!api_pod_finished(pod)) {
            pod_summary_set_status(ret, "", HK_STR("Terminating"));
        }
    }
}

void api_pod_write_restarts(const struct api_pod_summary *s, int64_t now_ns, struct hk_buf *out)
{
    hk_buf_addf(out, "%lld", (long long)s->restarts);
    if (s->restarts > 0 && s->restarted_ns != 0) {
        hk_buf_adds(out, " (");
        duration_write_human(now_ns - s->restarted_ns, out);
        hk_buf_adds(out, " ago)");
    }
}
