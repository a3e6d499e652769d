// SPDX-License-Identifier: Apache-2.0
// The cells of pods. Which word stands for the state of a pod is a story over its containers, the
// same one kubectl's users know: the first init container that is not done, else the last container
// with something to say.
#include "apiserver/printer_priv.h"

#include "codec/timefmt.h"

struct summary {
    struct hk_buf status;
    uint32_t ready, total;
    int64_t restarts;
    int64_t restarted_ns; /* newest end of an earlier run, 0 when there was none */
};

static void summary_fini(struct summary *s)
{
    hk_buf_fini(&s->status);
}

static void say(struct summary *s, const char *prefix, struct hk_str text)
{
    hk_buf_clear(&s->status);
    hk_buf_adds(&s->status, prefix);
    hk_buf_addstr(&s->status, text);
}

/* Why it ended: the reason, else the signal, else the code. */
static void say_end(struct summary *s, const char *prefix, const struct json *terminated)
{
    const struct hk_str reason = print_str(terminated, "reason");
    const int64_t signal = print_int(terminated, "signal");

    say(s, prefix, reason);
    if (reason.n == 0 && signal != 0) {
        hk_buf_addf(&s->status, "Signal:%lld", (long long)signal);
    } else if (reason.n == 0) {
        hk_buf_addf(&s->status, "ExitCode:%lld", (long long)print_int(terminated, "exitCode"));
    }
}

static void count_restarts(struct summary *s, const struct json *container)
{
    const struct json *end = json_at(container, "lastState.terminated.finishedAt");
    int64_t ns;

    s->restarts += print_int(container, "restartCount");
    if (end && time_parse(json_str(end, HK_STR("")), &ns, NULL) == 0) {
        s->restarted_ns = HK_MAX(s->restarted_ns, ns);
    }
}

static bool is_sidecar(const struct json *pod, struct hk_str name)
{
    const struct json *init = print_list(pod, "spec.initContainers");

    for (uint32_t k = 0; k < init->len; k++) {
        if (hk_str_eq(print_str(&init->items[k], "name"), name)) {
            return hk_str_is(print_str(&init->items[k], "restartPolicy"), "Always");
        }
    }
    return false;
}

/* True when the init container holds the pod up. */
static bool visit_init(struct summary *s, const struct json *c, bool sidecar, uint32_t at,
                       uint32_t count)
{
    const struct json *terminated = json_at(c, "state.terminated");
    const struct hk_str waiting = print_str(c, "state.waiting.reason");

    if (terminated && print_int(terminated, "exitCode") == 0) {
        return false;
    }
    if (sidecar && json_bool(json_get(c, "started"), false)) {
        s->ready += json_bool(json_get(c, "ready"), false);
        return false;
    }
    if (terminated) {
        say_end(s, "Init:", terminated);
    } else if (waiting.n > 0 && !hk_str_is(waiting, "PodInitializing")) {
        say(s, "Init:", waiting);
    } else {
        say(s, "", HK_STR(""));
        hk_buf_addf(&s->status, "Init:%u/%u", at, count);
    }
    return true;
}

static bool visit_inits(struct summary *s, const struct json *pod)
{
    const struct json *list = print_list(pod, "status.initContainerStatuses");
    const uint32_t count = print_list(pod, "spec.initContainers")->len;
    bool held = false;

    for (uint32_t k = 0; k < list->len && !held; k++) {
        const struct json *c = &list->items[k];
        count_restarts(s, c);
        held = visit_init(s, c, is_sidecar(pod, print_str(c, "name")), k, count);
    }
    return held;
}

/* The exit that explains a pod half done: that of the last container with a code. */
static void say_half_done(struct summary *s, const struct json *pod, const struct json *list)
{
    if (hk_str_is(print_condition(pod, "Ready"), "True")) {
        say(s, "", HK_STR("Running"));
        return;
    }
    for (uint32_t k = list->len; k-- > 0;) {
        const struct json *end = json_at(&list->items[k], "state.terminated");
        if (end && print_int(end, "exitCode") != 0) {
            say_end(s, "", end);
            return;
        }
    }
    say(s, "", HK_STR("NotReady"));
}

/* Once a pod is past its init containers only those that go on running count. */
static void recount_sidecars(struct summary *s, const struct json *pod)
{
    const struct json *list = print_list(pod, "status.initContainerStatuses");

    s->restarts = s->restarted_ns = 0;
    for (uint32_t k = 0; k < list->len; k++) {
        if (is_sidecar(pod, print_str(&list->items[k], "name"))) {
            count_restarts(s, &list->items[k]);
        }
    }
}

static void visit_containers(struct summary *s, const struct json *pod)
{
    const struct json *list = print_list(pod, "status.containerStatuses");
    bool running = false;

    recount_sidecars(s, pod);
    for (uint32_t k = list->len; k-- > 0;) {
        const struct json *c = &list->items[k];
        const struct json *terminated = json_at(c, "state.terminated");
        const struct hk_str waiting = print_str(c, "state.waiting.reason");
        count_restarts(s, c);
        if (waiting.n > 0) {
            say(s, "", waiting);
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
    const struct json *list = print_list(pod, "status.conditions");

    for (uint32_t k = 0; k < list->len; k++) {
        if (hk_str_is(print_str(&list->items[k], "type"), "PodScheduled") &&
            hk_str_is(print_str(&list->items[k], "reason"), "SchedulingGated")) {
            return true;
        }
    }
    return false;
}

const char *print_pod_finished(const struct json *obj)
{
    const struct hk_str phase = print_str(obj, "status.phase");

    return hk_str_is(phase, "Succeeded") ? "Succeeded"
           : hk_str_is(phase, "Failed")  ? "Failed"
                                         : NULL;
}

static void count_total(struct summary *s, const struct json *pod)
{
    const struct json *init = print_list(pod, "spec.initContainers");

    s->total = print_list(pod, "spec.containers")->len;
    for (uint32_t k = 0; k < init->len; k++) {
        s->total += hk_str_is(print_str(&init->items[k], "restartPolicy"), "Always");
    }
}

static void summarize(const struct json *pod, struct summary *ret)
{
    const struct hk_str reason = print_str(pod, "status.reason");

    count_total(ret, pod);
    say(ret, "", reason.n > 0 ? reason : print_str(pod, "status.phase"));
    if (is_gated(pod)) {
        say(ret, "", HK_STR("SchedulingGated"));
    }
    if (!visit_inits(ret, pod) || hk_str_is(print_condition(pod, "Initialized"), "True")) {
        visit_containers(ret, pod);
    }
    if (json_at(pod, "metadata.deletionTimestamp")) {
        if (hk_str_is(reason, "NodeLost")) {
            say(ret, "", HK_STR("Unknown"));
        } else if (!print_pod_finished(pod)) {
            say(ret, "", HK_STR("Terminating"));
        }
    }
}

void print_pod_ready(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    HK_AUTO(summary_fini) struct summary s = {0};

    summarize(obj, &s);
    hk_buf_addf(out, "%u/%u", s.ready, s.total);
}

void print_pod_status(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    HK_AUTO(summary_fini) struct summary s = {0};

    summarize(obj, &s);
    hk_buf_addstr(out, hk_buf_str(&s.status));
}

void print_pod_restarts(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    HK_AUTO(summary_fini) struct summary s = {0};

    summarize(obj, &s);
    hk_buf_addf(out, "%lld", (long long)s.restarts);
    if (s.restarts > 0 && s.restarted_ns != 0) {
        hk_buf_adds(out, " (");
        duration_write_human(now_ns - s.restarted_ns, out);
        hk_buf_adds(out, " ago)");
    }
}

void print_pod_ip(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct hk_str listed = print_str(json_item(print_list(obj, "status.podIPs"), 0), "ip");
    const struct hk_str ip = listed.n > 0 ? listed : print_str(obj, "status.podIP");

    hk_buf_addstr(out, ip.n > 0 ? ip : HK_STR("<none>"));
}

void print_pod_gates(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *gates = print_list(obj, "spec.readinessGates");
    uint32_t passed = 0;

    if (gates->len == 0) {
        hk_buf_adds(out, "<none>");
        return;
    }
    for (uint32_t k = 0; k < gates->len; k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf type = {0};
        hk_buf_addstr(&type, print_str(&gates->items[k], "conditionType"));
        passed += hk_str_is(print_condition(obj, hk_buf_str(&type).s), "True");
    }
    hk_buf_addf(out, "%u/%u", passed, gates->len);
}
