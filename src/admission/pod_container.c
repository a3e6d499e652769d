// SPDX-License-Identifier: Apache-2.0
// Validation of one container: image, ports, environment, mounts, probes, resources.
#include "admission/admission_priv.h"

/* ---- resources ---- */

static bool is_native(struct hk_str name)
{
    return !hk_str_contains(name, "/") || hk_str_contains(name, "kubernetes.io/");
}

static bool is_hugepages(struct hk_str name)
{
    return hk_str_starts(name, "hugepages-");
}

/* Resources that cannot be overcommitted: the request must equal the limit. */
static bool is_exact(struct hk_str name)
{
    return !is_native(name) || is_hugepages(name);
}

static bool is_standard(struct hk_str name)
{
    return hk_str_is(name, "cpu") || hk_str_is(name, "memory") ||
           hk_str_is(name, "ephemeral-storage") || is_hugepages(name);
}

static void admit_pod_container_check_amounts(struct admission_request *q, const struct path *up,
                                              const char *field, const struct json *list)
{
    const struct path p = path_field(up, field);

    for (uint32_t i = 0; i < edit_size(list); i++) {
        const struct hk_str name = list->members[i].key;
        const struct path at = path_key(&p, name);
        struct quantity v;
        if (!name_check(q, &at, name, NAME_QUALIFIED) || !amount_get(list, name, &v)) {
            continue;
        }
        if (!hk_str_contains(name, "/") && !is_standard(name)) {
            cause_invalid_str(q, &at, name, "must be a standard resource for containers");
        }
        if (v.nano < 0) {
            cause_invalid(q, &at, &list->members[i].value, "must be greater than or equal to 0");
        } else if (!is_native(name) && v.nano % 1000000000 != 0) {
            cause_invalid(q, &at, &list->members[i].value, "must be an integer");
        }
    }
}

static void check_against_limits(struct admission_request *q, const struct path *up,
                                 const struct json *requests, const struct json *limits)
{
    const struct path p = path_field(up, "requests");
    const struct path limits_path = path_field(up, "limits");

    for (uint32_t i = 0; i < edit_size(requests); i++) {
        const struct hk_str name = requests->members[i].key;
        const struct json *shown = &requests->members[i].value;
        struct quantity request;
        struct quantity limit;
        if (!amount_get(requests, name, &request)) {
            continue;
        }
        if (!amount_get(limits, name, &limit)) {
            if (is_exact(name)) {
                cause_required(q, &limits_path,
                               "Limit must be set for non overcommitable resources");
            }
            continue;
        }
        const int cmp = quantity_cmp(request, limit);
        if (is_exact(name) && cmp != 0) {
            cause_invalid(q, &p, shown, "must be equal to %.*s limit of %s", HK_FMT(name),
                          amount_text(limit, q->mem));
        } else if (cmp > 0) {
            cause_invalid(q, &p, shown, "must be less than or equal to %.*s limit of %s",
                          HK_FMT(name), amount_text(limit, q->mem));
        }
    }
}

static bool any_named(const struct json *list, bool (*is)(struct hk_str name))
{
    for (uint32_t i = 0; i < edit_size(list); i++) {
        if (is(list->members[i].key)) {
            return true;
        }
    }
    return false;
}

static bool is_cpu_or_memory(struct hk_str name)
{
    return hk_str_is(name, "cpu") || hk_str_is(name, "memory");
}

void admit_pod_validate_resources(struct admission_request *q, const struct path *p,
                                  const struct json *resources)
{
    const struct json *requests = json_get(resources, "requests");
    const struct json *limits = json_get(resources, "limits");

    admit_pod_container_check_amounts(q, p, "limits", limits);
    admit_pod_container_check_amounts(q, p, "requests", requests);
    check_against_limits(q, p, requests, limits);
    if ((any_named(limits, is_hugepages) || any_named(requests, is_hugepages)) &&
        !any_named(limits, is_cpu_or_memory) && !any_named(requests, is_cpu_or_memory)) {
        cause_forbidden(q, p, "HugePages require cpu or memory");
    }
}

/* ---- ports ---- */

static void check_number(struct admission_request *q, const struct path *p, const struct json *v)
{
    const int64_t number = json_int(v, 0);

    if (number < 1 || number > 65535) {
        cause_invalid(q, p, v, "must be between 1 and 65535, inclusive");
    }
}

static void admit_pod_container_check_port(struct admission_request *q, const struct path *p,
                                           const struct json *port, bool host_network)
{
    static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
    const struct path container = path_field(p, "containerPort");
    const struct path host = path_field(p, "hostPort");
    const struct path name = path_field(p, "name");
    const struct json *number = json_get(port, "containerPort");

    if (edit_str(port, "name").n > 0) {
        name_check(q, &name, edit_str(port, "name"), NAME_PORT);
    }
    if (json_int(number, 0) == 0) {
        cause_required(q, &container, NULL);
    } else {
        check_number(q, &container, number);
    }
    if (json_int(json_get(port, "hostPort"), 0) != 0) {
        check_number(q, &host, json_get(port, "hostPort"));
    }
    if (host_network && json_int(json_get(port, "hostPort"), 0) != json_int(number, 0)) {
        cause_invalid(q, &container, number, "must match `hostPort` when `hostNetwork` is true");
    }
    cause_check_enum(q, p, port, "protocol", protocols);
}

static void check_ports(struct admission_request *q, const struct path *up,
                        const struct json *ports, bool host_network)
{
    const struct path list = path_field(up, "ports");

    for (uint32_t i = 0; i < edit_len(ports); i++) {
        const struct path at = path_index(&list, i);
        const struct path name = path_field(&at, "name");
        const struct hk_str text = edit_str(json_item(ports, i), "name");
        admit_pod_container_check_port(q, &at, json_item(ports, i), host_network);
        for (uint32_t k = 0; k < i && text.n > 0; k++) {
            if (hk_str_eq(text, edit_str(json_item(ports, k), "name"))) {
                cause_duplicate(q, &name, text);
                break;
            }
        }
    }
}

/* ---- environment and mounts ---- */

static void check_env(struct admission_request *q, const struct path *up, const struct json *env)
{
    const struct path list = path_field(up, "env");

    for (uint32_t i = 0; i < edit_len(env); i++) {
        const struct json *v = json_item(env, i);
        const struct path at = path_index(&list, i);
        const struct path name = path_field(&at, "name");
        const struct path from = path_field(&at, "valueFrom");
        if (cause_check_present(q, &at, v, "name")) {
            name_check(q, &name, edit_str(v, "name"), NAME_ENV);
        }
        if (!edit_has(v, "valueFrom")) {
            continue;
        }
        if (edit_size(json_get(v, "valueFrom")) == 0) {
            cause_invalid_str(q, &from, HK_STR(""),
                              "must specify one of: `fieldRef`, `resourceFieldRef`, "
                              "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`");
        } else if (edit_str(v, "value").n > 0) {
            cause_invalid_str(q, &from, HK_STR(""),
                              "may not be specified when `value` is not empty");
        } else if (edit_size(json_get(v, "valueFrom")) > 1) {
            cause_invalid_str(q, &from, HK_STR(""),
                              "may not have more than one field specified at a time");
        }
    }
}

static bool has_volume(const struct json *spec, struct hk_str name)
{
    const struct json *volumes = json_get(spec, "volumes");

    for (uint32_t i = 0; i < edit_len(volumes); i++) {
        if (hk_str_eq(edit_str(json_item(volumes, i), "name"), name)) {
            return true;
        }
    }
    return false;
}

/* Each claim template of a StatefulSet becomes a volume of its pods. */
static bool has_claim_template(const struct admission_request *q, struct hk_str name)
{
    const struct json *list = json_at(q->obj, "spec.volumeClaimTemplates");

    for (uint32_t i = 0; i < edit_len(list); i++) {
        if (hk_str_eq(edit_str(json_get(json_item(list, i), "metadata"), "name"), name)) {
            return true;
        }
    }
    return false;
}

static void check_mounts(struct admission_request *q, const struct path *up,
                         const struct json *mounts, const struct json *spec)
{
    const struct path list = path_field(up, "volumeMounts");

    for (uint32_t i = 0; i < edit_len(mounts); i++) {
        const struct json *mount = json_item(mounts, i);
        const struct hk_str volume = edit_str(mount, "name");
        const struct hk_str where = edit_str(mount, "mountPath");
        const struct path at = path_index(&list, i);
        const struct path name = path_field(&at, "name");
        const struct path where_path = path_field(&at, "mountPath");
        if (cause_check_present(q, &at, mount, "name") && !has_volume(spec, volume) &&
            !has_claim_template(q, volume)) {
            cause_not_found(q, &name, volume);
        }
        cause_check_present(q, &at, mount, "mountPath");
        for (uint32_t k = 0; k < i && where.n > 0; k++) {
            if (hk_str_eq(where, edit_str(json_item(mounts, k), "mountPath"))) {
                cause_invalid_str(q, &where_path, where, "must be unique");
                break;
            }
        }
    }
}

/* ---- probes ---- */

static void check_probe(struct admission_request *q, const struct path *up,
                        const struct json *container, const char *key, bool once)
{
    static const char *const counts[] = {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                         "successThreshold", "failureThreshold"};
    static const char *const handlers[] = {"exec", "httpGet", "tcpSocket", "grpc"};
    const struct json *probe = json_get(container, key);
    const struct path p = path_field(up, key);
    const struct path success = path_field(&p, "successThreshold");
    uint32_t found = 0;

    if (!edit_has(container, key)) {
        return;
    }
    for (size_t i = 0; i < HK_LEN(handlers); i++) {
        found += edit_has(probe, handlers[i]);
    }
    if (found == 0) {
        cause_required(q, &p, "must specify a handler type");
    } else if (found > 1) {
        cause_forbidden(q, &p, "may not specify more than 1 handler type");
    }
    for (size_t i = 0; i < HK_LEN(counts); i++) {
        cause_check_min(q, &p, probe, counts[i], 0);
    }
    if (once && json_int(json_get(probe, "successThreshold"), 1) != 1) {
        cause_invalid(q, &success, json_get(probe, "successThreshold"), "must be 1");
    }
}

/* ---- users and groups ---- */

static void check_id(struct admission_request *q, const struct path *p, const struct json *v)
{
    const int64_t id = json_int(v, 0);

    if (id < 0 || id > INT32_MAX) {
        cause_invalid(q, p, v, "must be between 0 and 2147483647, inclusive");
    }
}

void admit_pod_validate_ids(struct admission_request *q, const struct path *up,
                            const struct json *spec)
{
    static const char *const keys[] = {"runAsUser", "runAsGroup", "fsGroup"};
    const struct json *context = json_get(spec, "securityContext");
    const struct json *groups = json_get(context, "supplementalGroups");
    const struct path p = path_field(up, "securityContext");
    const struct path list = path_field(&p, "supplementalGroups");

    for (size_t i = 0; i < HK_LEN(keys); i++) {
        const struct path at = path_field(&p, keys[i]);
        check_id(q, &at, json_get(context, keys[i]));
    }
    for (uint32_t i = 0; i < edit_len(groups); i++) {
        const struct path at = path_index(&list, i);
        check_id(q, &at, json_item(groups, i));
    }
}

/* ---- the container ---- */

static void check_image(struct admission_request *q, const struct path *p,
                        const struct json *container)
{
    const struct path image = path_field(p, "image");
    const struct hk_str text = edit_str(container, "image");

    if (cause_check_present(q, p, container, "image") && hk_str_trim(text).n != text.n) {
        cause_invalid_str(q, &image, text, "must not have leading or trailing whitespace");
    }
}

void admit_pod_validate_container(struct admission_request *q, const struct path *p,
                                  const struct json *container, const struct json *spec)
{
    static const char *const pulls[] = {"Always", "IfNotPresent", "Never", NULL};
    static const char *const messages[] = {"FallbackToLogsOnError", "File", NULL};
    const struct path name = path_field(p, "name");
    const struct path resources = path_field(p, "resources");

    if (cause_check_present(q, p, container, "name")) {
        name_check(q, &name, edit_str(container, "name"), NAME_LABEL);
    }
    check_image(q, p, container);
    cause_check_enum(q, p, container, "imagePullPolicy", pulls);
    cause_check_enum(q, p, container, "terminationMessagePolicy", messages);
    check_ports(q, p, json_get(container, "ports"),
                json_bool(json_get(spec, "hostNetwork"), false));
    check_env(q, p, json_get(container, "env"));
    check_mounts(q, p, json_get(container, "volumeMounts"), spec);
    check_probe(q, p, container, "livenessProbe", true);
    check_probe(q, p, container, "readinessProbe", false);
    check_probe(q, p, container, "startupProbe", true);
    admit_pod_validate_resources(q, &resources, json_get(container, "resources"));
    admit_pod_validate_ids(q, p, container);
}
