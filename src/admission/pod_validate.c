// SPDX-License-Identifier: Apache-2.0
// Validation of a pod spec, in a pod or in a template, and of new pods.
#include "admission/admission_priv.h"

/* ---- volumes ---- */

/* Required fields of volume sources that name another object. */
static const struct {
    const char *source, *field;
} volume_needs[] = {
    {"secret", "secretName"}, {"configMap", "name"}, {"persistentVolumeClaim", "claimName"},
    {"hostPath", "path"},     {"csi", "driver"},
};

static void check_source(struct admission_request *q, const struct path *p,
                         const struct json *volume)
{
    uint32_t sources = 0;

    for (uint32_t i = 0; i < edit_size(volume); i++) {
        const struct json_member *m = &volume->members[i];
        const struct path at = {.up = p, .key = m->key, .form = PATH_FIELD};
        if (hk_str_is(m->key, "name") || m->value.type == JSON_NULL) {
            continue;
        }
        if (++sources > 1) {
            cause_forbidden(q, &at, "may not specify more than 1 volume type");
        }
    }
    if (sources == 0) {
        cause_required(q, p, "must specify a volume type");
    }
    for (size_t i = 0; i < HK_LEN(volume_needs); i++) {
        const struct path at = path_field(p, volume_needs[i].source);
        if (edit_has(volume, volume_needs[i].source)) {
            cause_check_present(q, &at, json_get(volume, volume_needs[i].source),
                                volume_needs[i].field);
        }
    }
}

/* True when an earlier element of the list has the same name. */
static bool admit_pod_validate_is_duplicate(const struct json *list, uint32_t i)
{
    const struct hk_str name = edit_str(json_item(list, i), "name");

    for (uint32_t k = 0; k < i; k++) {
        if (hk_str_eq(name, edit_str(json_item(list, k), "name"))) {
            return true;
        }
    }
    return false;
}

void admit_pod_validate_volumes(struct admission_request *q, const struct path *p,
                                const struct json *volumes)
{
    for (uint32_t i = 0; i < edit_len(volumes); i++) {
        const struct json *volume = json_item(volumes, i);
        const struct path at = path_index(p, i);
        const struct path name = path_field(&at, "name");
        check_source(q, &at, volume);
        if (!cause_check_present(q, &at, volume, "name")) {
            continue;
        }
        name_check(q, &name, edit_str(volume, "name"), NAME_LABEL);
        if (admit_pod_validate_is_duplicate(volumes, i)) {
            cause_duplicate(q, &name, edit_str(volume, "name"));
        }
    }
}

/* ---- containers ---- */

static bool has_container(const struct json *list, struct hk_str name)
{
    for (uint32_t i = 0; i < edit_len(list); i++) {
        if (hk_str_eq(edit_str(json_item(list, i), "name"), name)) {
            return true;
        }
    }
    return false;
}

/* Names are unique in both lists together; regular containers come first. */
static void check_containers(struct admission_request *q, const struct path *up,
                             const struct json *spec, const char *key, const struct json *others)
{
    const struct json *list = json_get(spec, key);
    const struct path p = path_field(up, key);

    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct json *c = json_item(list, i);
        const struct hk_str text = edit_str(c, "name");
        const struct path at = path_index(&p, i);
        const struct path name = path_field(&at, "name");
        admit_pod_validate_container(q, &at, c, spec);
        if (text.n > 0 &&
            (admit_pod_validate_is_duplicate(list, i) || has_container(others, text))) {
            cause_duplicate(q, &name, text);
        }
    }
}

/* A host's (protocol, address, port) can be used only once. */
static void check_host_ports(struct admission_request *q, const struct path *up,
                             const struct json *containers)
{
    const struct path list = path_field(up, "containers");
    HK_VEC(const char *) seen = {0};

    for (uint32_t i = 0; i < edit_len(containers); i++) {
        const struct json *ports = json_get(json_item(containers, i), "ports");
        const struct path container = path_index(&list, i);
        const struct path ports_path = path_field(&container, "ports");
        for (uint32_t k = 0; k < edit_len(ports); k++) {
            const struct json *port = json_item(ports, k);
            const struct path at = path_index(&ports_path, k);
            const struct path host = path_field(&at, "hostPort");
            const int64_t number = json_int(json_get(port, "hostPort"), 0);
            if (number == 0) {
                continue;
            }
            const char *text =
                hk_arena_printf(q->mem, "%.*s/%.*s/%lld", HK_FMT(edit_str(port, "protocol")),
                                HK_FMT(edit_str(port, "hostIP")), (long long)number);
            for (uint32_t s = 0; s < seen.len; s++) {
                if (strcmp(seen.at[s], text) == 0) {
                    cause_duplicate(q, &host, hk_str(text));
                    break;
                }
            }
            hk_vec_push(&seen, text);
        }
    }
    hk_vec_fini(&seen);
}

/* ---- the spec ---- */

static void check_name_field(struct admission_request *q, const struct path *up,
                             const struct json *spec, const char *key, enum name_rule rule)
{
    const struct path p = path_field(up, key);

    if (edit_str(spec, key).n > 0) {
        name_check(q, &p, edit_str(spec, key), rule);
    }
}

static void check_deadline(struct admission_request *q, const struct path *up,
                           const struct json *spec)
{
    const struct json *v = json_get(spec, "activeDeadlineSeconds");
    const struct path p = path_field(up, "activeDeadlineSeconds");

    if (edit_has(spec, "activeDeadlineSeconds") &&
        (json_int(v, 0) < 1 || json_int(v, 0) > INT32_MAX)) {
        cause_invalid(q, &p, v, "must be between 1 and 2147483647, inclusive");
    }
}

static void check_gates(struct admission_request *q, const struct path *up, const struct json *spec)
{
    const struct json *gates = json_get(spec, "schedulingGates");
    const struct path list = path_field(up, "schedulingGates");
    const struct path node = path_field(up, "nodeName");

    for (uint32_t i = 0; i < edit_len(gates); i++) {
        const struct hk_str name = edit_str(json_item(gates, i), "name");
        const struct path at = path_index(&list, i);
        name_check(q, &at, name, NAME_QUALIFIED);
        if (admit_pod_validate_is_duplicate(gates, i)) {
            cause_duplicate(q, &at, name);
        }
    }
    if (edit_len(gates) > 0 && edit_str(spec, "nodeName").n > 0) {
        cause_forbidden(q, &node, "cannot be set until all schedulingGates have been cleared");
    }
}

/* The pod-level requests must cover those of all containers. */
static void check_aggregate(struct admission_request *q, const struct path *resources,
                            const struct json *spec)
{
    const struct json *requests = json_get(json_get(spec, "resources"), "requests");
    const struct path p = path_field(resources, "requests");
    struct json bare;

    if (edit_size(requests) == 0) {
        return;
    }
    bare = json_clone(spec, q->mem);
    json_del(&bare, "resources");
    json_del(&bare, "overhead");
    for (uint32_t i = 0; i < requests->len; i++) {
        const struct hk_str name = requests->members[i].key;
        const struct path at = path_key(&p, name);
        struct quantity own;
        struct quantity sum;
        if (amount_get(requests, name, &own) && amount_of_pod(&bare, "requests", name, &sum) &&
            quantity_cmp(own, sum) < 0) {
            cause_invalid_str(q, &at, hk_str(amount_text(own, q->mem)),
                              "must be greater than or equal to aggregate container requests of %s",
                              amount_text(sum, q->mem));
        }
    }
}

void admit_pod_validate_spec(struct admission_request *q, const struct path *p,
                             const struct json *spec)
{
    static const char *const restarts[] = {"Always", "OnFailure", "Never", NULL};
    static const char *const dns[] = {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None",
                                      NULL};
    const struct path volumes = path_field(p, "volumes");
    const struct path selector = path_field(p, "nodeSelector");
    const struct path affinity = path_field(p, "affinity");
    const struct path tolerations = path_field(p, "tolerations");
    const struct path spread = path_field(p, "topologySpreadConstraints");
    const struct path resources = path_field(p, "resources");
    const struct json *containers = json_get(spec, "containers");

    admit_pod_validate_volumes(q, &volumes, json_get(spec, "volumes"));
    cause_check_present(q, p, spec, "containers");
    check_containers(q, p, spec, "containers", NULL);
    check_host_ports(q, p, containers);
    check_containers(q, p, spec, "initContainers", containers);
    cause_check_enum(q, p, spec, "restartPolicy", restarts);
    cause_check_enum(q, p, spec, "dnsPolicy", dns);
    admit_pod_validate_dns(q, p, spec);
    cause_check_min(q, p, spec, "terminationGracePeriodSeconds", 0);
    check_deadline(q, p, spec);
    admit_pod_validate_ids(q, p, spec);
    name_check_labels(q, &selector, json_get(spec, "nodeSelector"));
    check_name_field(q, p, spec, "serviceAccountName", NAME_SUBDOMAIN);
    check_name_field(q, p, spec, "nodeName", NAME_SUBDOMAIN);
    check_name_field(q, p, spec, "priorityClassName", NAME_SUBDOMAIN);
    check_name_field(q, p, spec, "runtimeClassName", NAME_SUBDOMAIN);
    check_name_field(q, p, spec, "hostname", NAME_LABEL);
    check_name_field(q, p, spec, "subdomain", NAME_LABEL);
    admit_pod_validate_affinity(q, &affinity, json_get(spec, "affinity"));
    admit_pod_validate_tolerations(q, &tolerations, json_get(spec, "tolerations"));
    admit_pod_validate_spread(q, &spread, json_get(spec, "topologySpreadConstraints"));
    admit_pod_validate_resources(q, &resources, json_get(spec, "resources"));
    check_aggregate(q, &resources, spec);
    check_gates(q, p, spec);
}

void admit_pod_validate_ephemeral(struct admission_request *q)
{
    const struct json *spec = json_get(q->obj, "spec");
    const struct json *list = json_get(spec, "ephemeralContainers");
    const struct json *had = json_at(q->old, "spec.ephemeralContainers");
    const struct path p = path_field(NULL, "spec");
    const struct path all = path_field(&p, "ephemeralContainers");

    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct json *c = json_item(list, i);
        const struct path at = path_index(&all, i);

        if (!has_container(had, edit_str(c, "name"))) {
            admit_pod_validate_container(q, &at, c, spec);
        }
    }
}

void admit_pod_validate(struct admission_request *q)
{
    const struct json *spec = json_get(q->obj, "spec");
    const struct path p = path_field(NULL, "spec");
    const struct path ephemeral = path_field(&p, "ephemeralContainers");

    admit_pod_validate_spec(q, &p, spec);
    if (edit_len(json_get(spec, "ephemeralContainers")) > 0) {
        cause_forbidden(q, &ephemeral, "cannot be set on create");
    }
}
