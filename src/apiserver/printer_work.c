// SPDX-License-Identifier: Apache-2.0
// Cells of workloads, storage, quotas and claims.
#include "apiserver/printer_priv.h"

#include "api/selector.h"
#include "codec/timefmt.h"

/* ---- workloads ---- */

static void write_containers(const struct json *obj, const char *path, const char *field,
                             struct hk_buf *out)
{
    const struct json *list = json_list_at(obj, path);

    for (uint32_t k = 0; k < list->len; k++) {
        print_join(json_str_at(&list->items[k], field), out);
    }
}

void print_containers(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_containers(obj, "spec.template.spec.containers", "name", out);
}

void print_images(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_containers(obj, "spec.template.spec.containers", "image", out);
}

void print_cron_containers(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_containers(obj, "spec.jobTemplate.spec.template.spec.containers", "name", out);
}

void print_cron_images(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_containers(obj, "spec.jobTemplate.spec.template.spec.containers", "image", out);
}

void print_template_containers(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_containers(obj, "template.spec.containers", "name", out);
}

void print_template_images(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_containers(obj, "template.spec.containers", "image", out);
}

void print_template_labels(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    print_map(json_at(obj, "template.metadata.labels"), out);
}

static void write_selector(const struct json *v, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
    struct api_selector s = {0};

    if (api_selector_decode(v, &scratch, &s, NULL) < 0) {
        hk_buf_adds(out, "<error>");
        return;
    }
    api_selector_write(&s, out);
    print_none(out);
}

void print_selector(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_selector(json_at(obj, "spec.selector"), out);
}

void print_cron_selector(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_selector(json_at(obj, "spec.jobTemplate.spec.selector"), out);
}

void print_pod_selector(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_selector(json_at(obj, "spec.podSelector"), out);
}

void print_selector_map(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    print_map(json_at(obj, "spec.selector"), out);
}

void print_node_selector(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    print_map(json_at(obj, "spec.template.spec.nodeSelector"), out);
}

void print_ready_of_desired(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    hk_buf_addf(out, "%lld/%lld", (long long)json_int_at(obj, "status.readyReplicas"),
                (long long)json_int_at(obj, "spec.replicas"));
}

/* "kind.group/name" of the controller. */
void print_owner(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *list = json_list_at(obj, "metadata.ownerReferences");

    for (uint32_t k = 0; k < list->len; k++) {
        const struct json *o = &list->items[k];
        struct hk_str version = json_str_field(o, "apiVersion"), group;
        if (!json_bool(json_get(o, "controller"), false)) {
            continue;
        }
        const struct api_kind *kind = api_kind_find(version, json_str_field(o, "kind"));
        hk_str_cut(&version, '/', &group);
        hk_buf_addstr(out, kind ? hk_str(kind->singular) : json_str_field(o, "kind"));
        if (version.s) {
            hk_buf_addf(out, ".%.*s", HK_FMT(group));
        }
        hk_buf_addf(out, "/%.*s", HK_FMT(json_str_field(o, "name")));
        return;
    }
    print_none(out);
}

/* ---- jobs ---- */

void print_job_status(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    static const struct {
        const char *condition, *text; /* condition NULL: the job is being deleted */
    } rows[] = {{"Complete", "Complete"},
                {"Failed", "Failed"},
                {NULL, "Terminating"},
                {"Suspended", "Suspended"},
                {"FailureTarget", "FailureTarget"},
                {"SuccessCriteriaMet", "SuccessCriteriaMet"}};

    for (uint32_t k = 0; k < HK_LEN(rows); k++) {
        const bool holds = rows[k].condition
                               ? hk_str_is(print_condition(obj, rows[k].condition), "True")
                               : json_at(obj, "metadata.deletionTimestamp") != NULL;
        if (holds) {
            hk_buf_adds(out, rows[k].text);
            return;
        }
    }
    hk_buf_adds(out, "Running");
}

void print_job_completions(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *wanted = json_at(obj, "spec.completions");
    const int64_t parallel = json_int_at(obj, "spec.parallelism");

    hk_buf_addf(out, "%lld/", (long long)json_int_at(obj, "status.succeeded"));
    if (json_is(wanted, JSON_INT)) {
        hk_buf_addf(out, "%lld", (long long)wanted->i);
    } else if (parallel > 1) {
        hk_buf_addf(out, "1 of %lld", (long long)parallel);
    } else {
        hk_buf_adds(out, "1");
    }
}

void print_job_duration(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    int64_t from, to;

    if (time_parse(json_str_at(obj, "status.startTime"), &from, NULL) < 0) {
        return;
    }
    if (time_parse(json_str_at(obj, "status.completionTime"), &to, NULL) < 0) {
        to = now_ns;
    }
    duration_write_human(to - from, out);
}

void print_cron_suspend(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *v = json_at(obj, "spec.suspend");

    hk_buf_adds(out, !json_is(v, JSON_BOOL) ? "<unset>" : v->b ? "True" : "False");
}

void print_cron_last(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *last = json_at(obj, "status.lastScheduleTime");

    if (json_is(last, JSON_STRING)) {
        print_age(last, now_ns, out);
    }
    print_none(out);
}

/* ---- autoscalers ---- */

void print_hpa_reference(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    hk_buf_addf(out, "%.*s/%.*s", HK_FMT(json_str_at(obj, "spec.scaleTargetRef.kind")),
                HK_FMT(json_str_at(obj, "spec.scaleTargetRef.name")));
}

/* Utilization in percent, or an average amount; "<unknown>" without a measurement. */
static void write_measure(const struct json *v, const char *percent, const char *amount,
                          struct hk_buf *out)
{
    const struct json *share = json_at(v, percent);
    const struct hk_str average = json_str_at(v, amount);

    if (json_is(share, JSON_INT)) {
        hk_buf_addf(out, "%lld%%", (long long)share->i);
    } else {
        hk_buf_addstr(out, average.n > 0 ? average : HK_STR("<unknown>"));
    }
}

void print_hpa_targets(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *specs = json_list_at(obj, "spec.metrics");
    const struct json *seen = json_list_at(obj, "status.currentMetrics");

    for (uint32_t k = 0; k < specs->len; k++) {
        const struct json *m = &specs->items[k];
        if (out->len > 0) {
            hk_buf_adds(out, ", ");
        }
        if (hk_str_is(json_str_field(m, "type"), "Resource")) {
            hk_buf_addf(out, "%.*s: ", HK_FMT(json_str_at(m, "resource.name")));
            write_measure(json_item(seen, k), "resource.current.averageUtilization",
                          "resource.current.averageValue", out);
            hk_buf_addc(out, '/');
            write_measure(m, "resource.target.averageUtilization", "resource.target.averageValue",
                          out);
        } else {
            hk_buf_adds(out, "<unknown>");
        }
    }
    print_none(out);
}

/* ---- storage ---- */

static void write_modes(const struct json *list, struct hk_buf *out)
{
    static const struct {
        const char *mode, *text;
    } rows[] = {{"ReadWriteOnce", "RWO"},
                {"ReadOnlyMany", "ROX"},
                {"ReadWriteMany", "RWX"},
                {"ReadWriteOncePod", "RWOP"}};

    for (uint32_t r = 0; r < HK_LEN(rows); r++) {
        for (uint32_t k = 0; k < list->len; k++) {
            if (hk_str_is(json_str(&list->items[k], HK_STR("")), rows[r].mode)) {
                print_join(hk_str(rows[r].text), out);
                break;
            }
        }
    }
}

static void write_phase(const struct json *obj, struct hk_buf *out)
{
    hk_buf_addstr(out, json_at(obj, "metadata.deletionTimestamp")
                           ? HK_STR("Terminating")
                           : json_str_at(obj, "status.phase"));
}

void print_pv_modes(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_modes(json_list_at(obj, "spec.accessModes"), out);
}

void print_pv_status(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_phase(obj, out);
}

void print_pv_claim(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    if (json_at(obj, "spec.claimRef")) {
        hk_buf_addf(out, "%.*s/%.*s", HK_FMT(json_str_at(obj, "spec.claimRef.namespace")),
                    HK_FMT(json_str_at(obj, "spec.claimRef.name")));
    }
}

void print_pvc_status(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_phase(obj, out);
}

void print_pvc_capacity(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    if (json_str_at(obj, "spec.volumeName").n > 0) {
        hk_buf_addstr(out, json_str_at(obj, "status.capacity.storage"));
    }
}

void print_pvc_modes(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    if (json_str_at(obj, "spec.volumeName").n > 0) {
        write_modes(json_list_at(obj, "status.accessModes"), out);
    }
}

void print_driver_tokens(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *list = json_at(obj, "spec.tokenRequests");

    if (!list) {
        hk_buf_adds(out, "<unset>");
        return;
    }
    for (uint32_t k = 0; k < json_len(list); k++) {
        print_join(json_str_field(json_item(list, k), "audience"), out);
    }
}

void print_driver_modes(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *list = json_list_at(obj, "spec.volumeLifecycleModes");

    for (uint32_t k = 0; k < list->len; k++) {
        print_join(json_str(&list->items[k], HK_STR("")), out);
    }
    print_none(out);
}

void print_class_name(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    static const char *const marks[] = {"storageclass.kubernetes.io/is-default-class",
                                        "storageclass.beta.kubernetes.io/is-default-class"};
    const struct json *annotations = json_at(obj, "metadata.annotations");

    hk_buf_addstr(out, json_str_at(obj, "metadata.name"));
    for (uint32_t k = 0; k < HK_LEN(marks); k++) {
        if (hk_str_is(json_str_field(annotations, marks[k]), "true")) {
            hk_buf_adds(out, " (default)");
            return;
        }
    }
}

/* ---- quotas and claims ---- */

static void write_quota(const struct json *obj, bool limits, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
    const struct json *hard = json_at(obj, "status.hard");
    const struct json *used = json_at(obj, "status.used");
    const struct json_member **at;
    const uint32_t n = print_members(hard, &scratch, &at);

    for (uint32_t k = 0; k < n; k++) {
        if (hk_str_starts(at[k]->key, "limits.") != limits) {
            continue;
        }
        hk_buf_adds(out, out->len > 0 ? ", " : "");
        hk_buf_addf(out, "%.*s: %.*s/%.*s", HK_FMT(at[k]->key),
                    HK_FMT(json_str(json_get_str(used, at[k]->key), HK_STR("0"))),
                    HK_FMT(json_str(&at[k]->value, HK_STR(""))));
    }
}

void print_quota_request(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_quota(obj, false, out);
}

void print_quota_limit(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    write_quota(obj, true, out);
}

void print_claim_state(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    if (json_at(obj, "metadata.deletionTimestamp")) {
        print_join(HK_STR("deleted"), out);
    }
    if (!json_at(obj, "status.allocation")) {
        if (out->len == 0) {
            hk_buf_adds(out, "pending");
        }
        return;
    }
    print_join(HK_STR("allocated"), out);
    if (json_list_at(obj, "status.reservedFor")->len > 0) {
        print_join(HK_STR("reserved"), out);
    }
}

/* ---- certificate requests ---- */

void print_request_duration(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    const struct json *seconds = json_at(obj, "spec.expirationSeconds");

    if (json_is(seconds, JSON_INT)) {
        duration_write_human(json_int(seconds, 0) * 1000000000, out);
    }
    print_none(out);
}

static bool print_has_condition(const struct json *obj, const char *type)
{
    const struct json *list = json_list_at(obj, "status.conditions");

    for (uint32_t i = 0; i < list->len; i++) {
        if (hk_str_is(json_str_field(&list->items[i], "type"), type)) {
            return true;
        }
    }
    return false;
}

void print_request_condition(const struct json *obj, int64_t now_ns, struct hk_buf *out)
{
    if (print_has_condition(obj, "Denied")) {
        hk_buf_adds(out, "Denied");
    } else if (print_has_condition(obj, "Approved")) {
        hk_buf_adds(out, "Approved");
    } else {
        hk_buf_adds(out, "Pending");
    }
    if (print_has_condition(obj, "Failed")) {
        print_join(HK_STR("Failed"), out);
    }
    if (json_str_at(obj, "status.certificate").n > 0) {
        print_join(HK_STR("Issued"), out);
    }
}
