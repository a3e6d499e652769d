// SPDX-License-Identifier: Apache-2.0
// Pods of a job on lost nodes: whatever the scheduler does, the job waits until the node returns or
// an admin declares it lost.
#include "explain/explain_priv.h"

#include "codec/timefmt.h"

static const struct hk_str none = {"", 0};

static const struct json *ready_of(const struct json *node)
{
    const struct json *list = json_at(node, "status.conditions");

    for (uint32_t k = 0; json_item(list, k); k++) {
        if (hk_str_is(json_str_field(json_item(list, k), "type"), "Ready")) {
            return json_item(list, k);
        }
    }
    return NULL;
}

/* The fault of the pod's node, NULL: none. *ret_since is "" when the time is unknown. */
static const char *fault_of(const struct explainer *x, const struct json *pod,
                            struct hk_str *ret_since)
{
    const struct hk_str name = json_str_at(pod, "spec.nodeName");
    const struct hk_str phase = json_str_at(pod, "status.phase");
    const struct api_object *node;
    const struct json *ready;

    *ret_since = none;
    if (name.n == 0 || hk_str_is(phase, "Succeeded") || hk_str_is(phase, "Failed")) {
        return NULL;
    }
    node = explain_find(x, API_NODE, none, name);
    if (!node) {
        return "does not exist";
    }
    ready = ready_of(&node->root);
    if (!ready || hk_str_is(json_str_field(ready, "status"), "True")) {
        return NULL;
    }
    *ret_since = json_str_field(ready, "lastTransitionTime");
    return hk_str_is(json_str_field(ready, "status"), "Unknown") ? "is not reachable"
                                                                 : "is not ready";
}

static bool is_ending(const struct json *pod)
{
    return json_at(pod, "metadata.deletionTimestamp") != NULL;
}

static struct json explain_node_summary(struct explainer *x, const struct explain_subject *s,
                                        const struct json *pod, const char *fault,
                                        struct hk_str since, uint32_t more)
{
    const struct hk_str name = json_str_at(pod, "metadata.name");
    const struct hk_str node = json_str_at(pod, "spec.nodeName");
    const char *and = more == 0 ? "" : hk_arena_printf(x->a, " (and %u more like it)", more);
    const char *when = since.n > 0 ? hk_arena_printf(x->a, " since %.*s", HK_FMT(since)) : "";

    if (s->kind == API_POD) {
        return explain_text(
            x, "is %.*s on node %.*s, which %s%s",
            HK_FMT(is_ending(pod) ? HK_STR("ending") : json_str_at(pod, "status.phase")),
            HK_FMT(node), fault, when);
    }
    if (!is_ending(pod)) {
        return explain_text(x, "runs, but its pod %.*s is on node %.*s, which %s%s%s", HK_FMT(name),
                            HK_FMT(node), fault, when, and);
    }
    return explain_text(x,
                        "waits for its pod %.*s, which is ending on node %.*s%s: that node %s%s, "
                        "and nobody can tell whether the pod's processes have ended",
                        HK_FMT(name), HK_FMT(node), and, fault, when);
}

static void put_lost(struct explainer *x, struct json *list, const struct json *pod,
                     const char *fault, struct hk_str since)
{
    struct json entry = json_make_object();

    json_set_str(&entry, x->a, "pod", json_str_at(pod, "metadata.name"));
    json_set_str(&entry, x->a, "node", json_str_at(pod, "spec.nodeName"));
    json_set_cstr(&entry, x->a, "fault", fault);
    if (since.n > 0) {
        json_set_str(&entry, x->a, "since", since);
    }
    json_set_bool(&entry, x->a, "ending", is_ending(pod));
    json_push(list, x->a, entry);
}

/* No advice for a node that does not exist: its pods are removed soon. */
static void put_advice(struct explainer *x, const struct json *pod)
{
    const struct hk_str node = json_str_at(pod, "spec.nodeName");

    if (explain_find(x, API_NODE, none, node)) {
        json_set(&x->answer, x->a, "advice",
                 explain_text(x,
                              "The pod goes on elsewhere once the agent of node %.*s is back. If "
                              "that machine is off for good: kubectl delete node %.*s; if it is "
                              "off for a while: kubectl taint node %.*s "
                              "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
                              HK_FMT(node), HK_FMT(node), HK_FMT(node)));
    }
}

/* Whether the question concerns the pod: that pod itself, or a pod of the job. */
static bool is_asked(const struct explain_subject *s, const struct json *pod)
{
    return s->kind != API_POD || hk_str_eq(json_str_at(pod, "metadata.name"), s->name);
}

bool explain_node_lost(struct explainer *x, const struct explain_subject *s)
{
    struct json list = json_make_array();
    const struct json *worst = NULL;
    const char *worst_fault = NULL;
    struct hk_str worst_since = none;

    for (uint32_t k = 0; k < x->pods.len; k++) {
        const struct json *pod = &x->pods.at[k];
        struct hk_str since;
        const char *fault = is_asked(s, pod) ? fault_of(x, pod, &since) : NULL;

        if (!fault) {
            continue;
        }
        put_lost(x, &list, pod, fault, since);
        if (!worst || (is_ending(pod) && !is_ending(worst))) {
            worst = pod;
            worst_fault = fault;
            worst_since = since;
        }
    }
    if (!worst || (x->job_obj && api_job_is_finished(x->job.phase))) {
        return false;
    }
    json_set_cstr(&x->answer, x->a, "state", is_ending(worst) ? "blocked" : "running");
    json_set(&x->answer, x->a, "summary",
             explain_node_summary(x, s, worst, worst_fault, worst_since, list.len - 1));
    json_set(&x->answer, x->a, "lostPods", list);
    put_advice(x, worst);
    return true;
}
