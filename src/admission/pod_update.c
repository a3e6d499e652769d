// SPDX-License-Identifier: Apache-2.0
// Which fields of a pod may change after its creation: a few of the spec, and most of the status.
#include "admission/admission_priv.h"

#include <arpa/inet.h>

/* ---- the spec ---- */

static const char change_text[] =
    "pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/* Copies the old images into the new list; false when the number of containers changed. */
static bool restore_images(struct admission_request *q, struct json *spec, const struct json *old,
                           const char *key)
{
    struct json *list = edit_get(spec, key);
    const struct json *before = json_get(old, key);

    for (uint32_t i = 0; i < edit_len(list) && i < edit_len(before); i++) {
        const struct json *image = json_get(json_item(before, i), "image");
        if (image && edit_has(&list->items[i], "image")) {
            json_set(&list->items[i], q->mem, "image", *image);
        }
    }
    return edit_len(list) == edit_len(before);
}

static void admit_pod_update_restore_field(struct admission_request *q, struct json *spec,
                                           const struct json *old, const char *key)
{
    const struct json *before = json_get(old, key);

    json_del(spec, key);
    if (before) {
        json_set(spec, q->mem, key, *before);
    }
}

static bool list_holds(const struct json *list, const struct json *item)
{
    for (uint32_t i = 0; i < edit_len(list); i++) {
        if (json_equal(json_item(list, i), item)) {
            return true;
        }
    }
    return false;
}

/* Every old toleration must still exist; only tolerationSeconds may change. */
static void check_tolerations(struct admission_request *q, const struct path *spec_path,
                              const struct json *now, const struct json *before)
{
    const struct path p = path_field(spec_path, "tolerations");
    struct json bare = json_make_array();

    for (uint32_t i = 0; i < edit_len(now); i++) {
        struct json t = json_clone(json_item(now, i), q->mem);
        json_del(&t, "tolerationSeconds");
        json_push(&bare, q->mem, t);
    }
    for (uint32_t i = 0; i < edit_len(before); i++) {
        struct json t = json_clone(json_item(before, i), q->mem);
        json_del(&t, "tolerationSeconds");
        if (!list_holds(&bare, &t)) {
            cause_forbidden(q, &p,
                            "existing toleration can not be modified except its tolerationSeconds");
            return;
        }
    }
}

static void check_gates(struct admission_request *q, const struct path *spec_path,
                        const struct json *now, const struct json *before)
{
    const struct path p = path_field(spec_path, "schedulingGates");

    for (uint32_t i = 0; i < edit_len(now); i++) {
        if (!list_holds(before, json_item(now, i))) {
            cause_forbidden(q, &p, "only deletion is allowed, but found new scheduling gate '%.*s'",
                            HK_FMT(edit_str(json_item(now, i), "name")));
        }
    }
}

static void check_deadline(struct admission_request *q, const struct path *spec_path,
                           const struct json *spec, const struct json *old)
{
    const struct path p = path_field(spec_path, "activeDeadlineSeconds");
    const struct json *now = json_get(spec, "activeDeadlineSeconds");
    const struct json *before = json_get(old, "activeDeadlineSeconds");

    if (!before) {
        return;
    }
    if (!now) {
        cause_invalid(q, &p, NULL, "must not update from a positive integer to nil value");
    } else if (json_int(now, 0) > json_int(before, 0)) {
        cause_invalid(q, &p, now, "must be less than or equal to previous value");
    }
}

/* While a pod has scheduling gates, its node constraints may become stricter. Any addition to
 * nodeSelector and any change of affinity is accepted as that. */
static void restore_gated(struct admission_request *q, struct json *spec, const struct json *old)
{
    const struct json *before = json_get(old, "nodeSelector");
    const struct json *now = json_get(spec, "nodeSelector");

    for (uint32_t i = 0; i < edit_size(before); i++) {
        const struct json *kept = json_get_str(now, before->members[i].key);
        if (!kept || !json_equal(kept, &before->members[i].value)) {
            return;
        }
    }
    admit_pod_update_restore_field(q, spec, old, "nodeSelector");
    admit_pod_update_restore_field(q, spec, old, "affinity");
}

static void check_spec(struct admission_request *q, const struct json *now, const struct json *old)
{
    const struct path p = path_field(NULL, "spec");
    const struct path containers = path_field(&p, "containers");
    const struct path inits = path_field(&p, "initContainers");
    struct json spec = json_clone(now, q->mem);
    const int64_t grace = json_int(json_get(old, "terminationGracePeriodSeconds"), 0);

    if (!restore_images(q, &spec, old, "containers")) {
        cause_forbidden(q, &containers, "pod updates may not add or remove containers");
        return;
    }
    if (!restore_images(q, &spec, old, "initContainers")) {
        cause_forbidden(q, &inits, "pod updates may not add or remove containers");
        return;
    }
    check_deadline(q, &p, now, old);
    check_tolerations(q, &p, json_get(now, "tolerations"), json_get(old, "tolerations"));
    check_gates(q, &p, json_get(now, "schedulingGates"), json_get(old, "schedulingGates"));
    admit_pod_update_restore_field(q, &spec, old, "activeDeadlineSeconds");
    admit_pod_update_restore_field(q, &spec, old, "tolerations");
    admit_pod_update_restore_field(q, &spec, old, "schedulingGates");
    if (grace < 0 && json_int(json_get(now, "terminationGracePeriodSeconds"), 0) == 1) {
        admit_pod_update_restore_field(q, &spec, old, "terminationGracePeriodSeconds");
    }
    if (edit_len(json_get(old, "schedulingGates")) > 0) {
        restore_gated(q, &spec, old);
    }
    if (!json_equal(&spec, old)) {
        cause_forbidden(q, &p, "%s", change_text);
    }
}

void admit_pod_validate_update(struct admission_request *q)
{
    const struct json *now = json_get(q->obj, "spec");
    const struct json *old = json_get(q->old, "spec");
    const struct path p = path_field(NULL, "spec");

    if (!now || !old || json_equal(now, old)) {
        return;
    }
    admit_pod_validate_spec(q, &p, now);
    check_spec(q, now, old);
}

/* ---- the status ---- */

static const struct json *status_named(const struct json *list, struct hk_str name)
{
    for (uint32_t i = 0; i < edit_len(list); i++) {
        if (hk_str_eq(edit_str(json_item(list, i), "name"), name)) {
            return json_item(list, i);
        }
    }
    return NULL;
}

/* A container that terminated for good stays terminated. */
static void check_transitions(struct admission_request *q, const struct path *status)
{
    const struct json *now = json_at(q->obj, "status.containerStatuses");
    const struct json *old = json_at(q->old, "status.containerStatuses");
    const struct hk_str policy = edit_str(json_get(q->old, "spec"), "restartPolicy");
    const struct path list = path_field(status, "containerStatuses");

    if (policy.n == 0 || hk_str_is(policy, "Always")) {
        return;
    }
    for (uint32_t i = 0; i < edit_len(now); i++) {
        const struct json *c = json_item(now, i);
        const struct json *before = status_named(old, edit_str(c, "name"));
        const struct json *ended = json_at(before, "state.terminated");
        const struct path at = path_index(&list, i);
        const struct path state = path_field(&at, "state");
        if (!ended || json_at(c, "state.terminated") ||
            (hk_str_is(policy, "OnFailure") && json_int(json_get(ended, "exitCode"), 0) != 0)) {
            continue;
        }
        cause_forbidden(q, &state, "may not be transitioned to non-terminated state");
    }
}

static void check_ips(struct admission_request *q, const struct path *status)
{
    const struct json *ips = json_at(q->obj, "status.podIPs");
    const struct path list = path_field(status, "podIPs");
    unsigned char raw[sizeof(struct in6_addr)];

    for (uint32_t i = 0; i < edit_len(ips); i++) {
        const struct hk_str ip = edit_str(json_item(ips, i), "ip");
        const char *text = hk_arena_strndup(q->mem, ip.s, ip.n);
        const struct path at = path_index(&list, i);
        if (inet_pton(AF_INET, text, raw) != 1 && inet_pton(AF_INET6, text, raw) != 1) {
            cause_invalid_str(q, &at, ip,
                              "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        }
    }
}

void admit_pod_validate_status(struct admission_request *q)
{
    const struct path status = path_field(NULL, "status");
    const struct json *now = json_get(q->obj, "status");
    const struct json *old = json_get(q->old, "status");

    check_transitions(q, &status);
    check_ips(q, &status);
    if (edit_has(now, "qosClass") && edit_has(old, "qosClass")) {
        cause_check_immutable(q, &status, now, old, "qosClass");
    }
}
