// SPDX-License-Identifier: Apache-2.0
// Pods: the gate that holds a pod until its queue has capacity, the node placement of its resource
// group, and the disruption budget in its annotations.
#include "admission/vc_priv.h"

#include "codec/yaml.h"

#define GATE "scheduling.volcano.sh/queue-allocation-gate"
#define GROUP "volcano.sh/resource-group"
#define JDB_MIN "volcano.sh/jdb-min-available"
#define JDB_MAX "volcano.sh/jdb-max-unavailable"

static const struct json *vc_pod_annotations(const struct vc *v)
{
    return json_at(v->q->obj, "metadata.annotations");
}

/* ---- the gate ---- */

static void add_gate(struct vc *v, const struct json *spec)
{
    const struct json *gates = json_get(spec, "schedulingGates");
    struct json gate = json_make_object();
    struct json list = json_make_array();

    if (!v->opts->gate_queue_admission ||
        !hk_str_is(edit_str(vc_pod_annotations(v), GATE), "true")) {
        return;
    }
    for (uint32_t i = 0; i < edit_len(gates); i++) {
        if (hk_str_is(edit_str(json_item(gates, i), "name"), GATE)) {
            return;
        }
    }
    json_set_cstr(&gate, v->q->mem, "name", GATE);
    if (edit_len(gates) > 0) {
        vc_patch(v, "add", "/spec/schedulingGates/-", gate);
    } else {
        json_push(&list, v->q->mem, gate);
        vc_patch(v, "add", "/spec/schedulingGates", list);
    }
}

/* ---- resource groups ---- */

/* pair is a list entry "key: value", in YAML a map of one pair. */
static bool annotation_is(const struct vc *v, struct hk_str pair)
{
    struct yaml_docs docs = {0};

    if (yaml_parse(pair, 0, v->q->mem, &docs, NULL) < 0 || docs.len == 0) {
        return false;
    }
    for (uint32_t i = 0; i < edit_size(&docs.at[0]); i++) {
        const struct json_member *m = &docs.at[0].members[i];
        const struct json *has = json_get_str(vc_pod_annotations(v), m->key);
        if (json_is(has, JSON_STRING) && json_equal(has, &m->value)) {
            return true;
        }
    }
    return false;
}

static bool is_in_group(const struct vc *v, const struct json *group)
{
    const struct json *object = json_get(group, "object");
    const struct json *values = json_get(object, "value");
    const struct hk_str key = edit_str(object, "key");
    const struct hk_str own = edit_str(json_get(v->q->obj, "metadata"), "namespace");
    const struct hk_str name = edit_str(group, "resourceGroup");

    if (hk_str_is(key, "namespace")) {
        return edit_list_has(values, own.n > 0 ? own : v->q->ns);
    }
    if (key.n > 0 && !hk_str_is(key, "annotation")) {
        return false;
    }
    if (key.n == 0 && json_is(json_get(vc_pod_annotations(v), GROUP), JSON_STRING) &&
        hk_str_eq(edit_str(vc_pod_annotations(v), GROUP), name)) {
        return true;
    }
    for (uint32_t i = 0; i < edit_len(values); i++) {
        if (annotation_is(v, json_str(json_item(values, i), HK_STR("")))) {
            return true;
        }
    }
    return false;
}

static void patch_selector(struct vc *v, const struct json *spec, const struct json *labels)
{
    const struct json *own = json_get(spec, "nodeSelector");
    struct json merged = json_make_object();

    if (edit_size(labels) == 0) {
        return;
    }
    if (json_is(own, JSON_OBJECT)) {
        merged = json_clone(own, v->q->mem);
    }
    for (uint32_t i = 0; i < labels->len; i++) {
        json_put(&merged, v->q->mem, labels->members[i].key, labels->members[i].value);
    }
    vc_patch(v, "add", "/spec/nodeSelector", merged);
}

static void patch_affinity(struct vc *v, const struct json *spec, struct hk_str text)
{
    struct json affinity;

    if (text.n > 0 && !edit_has(spec, "affinity") &&
        json_parse(text, 0, v->q->mem, &affinity, NULL) == 0 && affinity.type == JSON_OBJECT) {
        vc_patch(v, "add", "/spec/affinity", affinity);
    }
}

/* The file spells the fields in lower case, as Go's YAML does without tags. */
static struct json toleration(const struct json *given, struct hk_arena *a)
{
    static const struct {
        const char *file, *field;
    } members[] = {
        {"key", "key"},
        {"operator", "operator"},
        {"value", "value"},
        {"effect", "effect"},
        {"tolerationseconds", "tolerationSeconds"},
    };
    struct json t = json_make_object();

    for (size_t i = 0; i < HK_LEN(members); i++) {
        if (edit_has(given, members[i].file)) {
            json_set(&t, a, members[i].field, *json_get(given, members[i].file));
        }
    }
    return t;
}

static void patch_tolerations(struct vc *v, const struct json *spec, const struct json *more)
{
    const struct json *own = json_get(spec, "tolerations");
    struct json all = json_make_array();

    if (edit_len(more) == 0) {
        return;
    }
    for (uint32_t i = 0; i < edit_len(own); i++) {
        json_push(&all, v->q->mem, *json_item(own, i));
    }
    for (uint32_t i = 0; i < more->len; i++) {
        json_push(&all, v->q->mem, toleration(json_item(more, i), v->q->mem));
    }
    vc_patch(v, "add", "/spec/tolerations", all);
}

static void vc_pod_apply_resource_group(struct vc *v, const struct json *spec,
                                        const struct json *group)
{
    const struct hk_str scheduler = edit_str(group, "schedulerName");

    patch_selector(v, spec, json_get(group, "labels"));
    patch_affinity(v, spec, edit_str(group, "affinity"));
    patch_tolerations(v, spec, json_get(group, "tolerations"));
    if (scheduler.n > 0) {
        vc_patch(v, "add", "/spec/schedulerName", json_make_str(scheduler));
    }
}

void vc_pod_mutate(struct vc *v)
{
    const struct json *spec = json_get(v->q->obj, "spec");
    const struct json *groups = json_get(v->opts->conf, "resourceGroups");

    if (!v->opts->conf || !json_is(spec, JSON_OBJECT)) {
        return;
    }
    add_gate(v, spec);
    for (uint32_t i = 0; i < edit_len(groups); i++) {
        if (is_in_group(v, json_item(groups, i))) {
            vc_pod_apply_resource_group(v, spec, json_item(groups, i));
            return;
        }
    }
}

static const struct {
    const char *key;
    enum json_type type;
} group_shape[] = {
    {"resourceGroup", JSON_STRING}, {"object", JSON_OBJECT},     {"schedulerName", JSON_STRING},
    {"labels", JSON_OBJECT},        {"tolerations", JSON_ARRAY}, {"affinity", JSON_STRING},
};

static int check_group(const struct json *group, uint32_t index, struct hk_err *err)
{
    for (size_t i = 0; i < HK_LEN(group_shape); i++) {
        const struct json *v = json_get(group, group_shape[i].key);
        if (edit_has(group, group_shape[i].key) && v->type != group_shape[i].type) {
            return hk_fail(err, HK_EINVAL, "resourceGroups[%u].%s: %s, want %s", index,
                           group_shape[i].key, json_type_name(v->type),
                           json_type_name(group_shape[i].type));
        }
    }
    return 0;
}

int volcano_check_conf(const struct json *conf, struct hk_err *err)
{
    const struct json *groups = json_get(conf, "resourceGroups");

    if (!json_is(conf, JSON_OBJECT)) {
        return hk_fail(err, HK_EINVAL, "%s, want object",
                       json_type_name(conf ? conf->type : JSON_NULL));
    }
    if (edit_has(conf, "resourceGroups") && groups->type != JSON_ARRAY) {
        return hk_fail(err, HK_EINVAL, "resourceGroups: %s, want array",
                       json_type_name(groups->type));
    }
    for (uint32_t i = 0; i < edit_len(groups); i++) {
        const struct json *group = json_item(groups, i);
        if (group->type != JSON_OBJECT) {
            return hk_fail(err, HK_EINVAL, "resourceGroups[%u]: %s, want object", i,
                           json_type_name(group->type));
        }
        const int rc = check_group(group, i, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* ---- disruption budgets ---- */

static struct hk_str without_percent(struct hk_str s, struct hk_arena *a)
{
    char *out = hk_arena_alloc(a, s.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (s.s[i] != '%') {
            out[n++] = s.s[i];
        }
    }
    return (struct hk_str){out, n};
}

static bool vc_pod_is_integer(struct hk_str s)
{
    size_t i = s.n > 0 && (s.s[0] == '-' || s.s[0] == '+');
    const size_t first = i;

    while (i < s.n && s.s[i] >= '0' && s.s[i] <= '9') {
        i++;
    }
    return i == s.n && i > first;
}

static bool check_budget(struct vc *v, const char *key)
{
    const struct hk_str text = edit_str(vc_pod_annotations(v), key);
    HK_AUTO(hk_buf_fini) struct hk_buf quoted = {0};
    struct hk_str percent;
    int64_t n;

    if (!edit_has(vc_pod_annotations(v), key)) {
        return true;
    }
    json_write_str(text, &quoted);
    if (hk_str_int(text, &n) && n >= INT32_MIN && n <= INT32_MAX) {
        if (n <= 0) {
            hk_buf_addf(&v->why, "invalid value <%s> for %s, it must be a positive integer",
                        quoted.data, key);
        }
        return n > 0;
    }
    percent = without_percent(text, v->q->mem);
    if (!hk_str_int(percent, &n)) {
        hk_buf_clear(&quoted);
        json_write_str(percent, &quoted);
        hk_buf_addf(&v->why, "invalid value strconv.Atoi: parsing %s: %s for %s", quoted.data,
                    vc_pod_is_integer(percent) ? "value out of range" : "invalid syntax", key);
        return false;
    }
    if (n < 1 || n > 99) {
        hk_buf_addf(&v->why,
                    "invalid value <%s> for %s, it must be a valid percentage which between 1%% ~ "
                    "99%%",
                    quoted.data, key);
        return false;
    }
    return true;
}

void vc_pod_validate(struct vc *v)
{
    const struct hk_str scheduler = edit_str(json_get(v->q->obj, "spec"), "schedulerName");
    const char *const *name = vc_scheduler_names(v);

    while (*name && !hk_str_is(scheduler, *name)) {
        name++;
    }
    if (!*name || !check_budget(v, JDB_MIN) || !check_budget(v, JDB_MAX)) {
        return;
    }
    if (edit_has(vc_pod_annotations(v), JDB_MIN) && edit_has(vc_pod_annotations(v), JDB_MAX)) {
        hk_buf_adds(&v->why, "not allow configure multiple annotations <[" JDB_MIN " " JDB_MAX
                             "]> at same time");
    }
}
