// SPDX-License-Identifier: Apache-2.0
// LimitRanges: their own defaults and validation, the defaults they add to pods, and the limits
// they enforce.
#include "admission/admission_priv.h"

#define ANNOTATION "kubernetes.io/limit-ranger"

/* ---- the LimitRanges of a namespace ---- */

struct visit {
    struct admission_request *q;
    void (*fn)(struct visit *v, const struct json *limit); /* one element of spec.limits */
    struct hk_buf *out;
    uint32_t count;
};

static bool visit_range(void *arg, const struct json *range)
{
    struct visit *v = arg;
    const struct json *limits = json_at(range, "spec.limits");

    for (uint32_t i = 0; i < edit_len(limits); i++) {
        v->fn(v, json_item(limits, i));
    }
    return true;
}

static void each_limit(struct visit *v)
{
    static const struct api_kind limit_ranges = {
        .id = API_NKINDS,
        .group = "",
        .version = "v1",
        .kind = "LimitRange",
        .plural = "limitranges",
        .singular = "limitrange",
        .namespaced = true,
    };

    admit_each(v->q, &limit_ranges, v->q->ns, visit_range, v);
}

static bool admit_limitrange_is_type(const struct json *limit, const char *type)
{
    return hk_str_is(edit_str(limit, "type"), type);
}

/* ---- defaults and validation ---- */

/* Copies the members that `key` lacks from `from`. */
static void admit_limitrange_copy_missing(struct json *limit, struct hk_arena *a, const char *key,
                                          const char *from)
{
    const struct json *source = json_get(limit, from);

    if (edit_size(source) == 0) {
        return;
    }
    edit_default_object(limit, a, key);
    source = json_get(limit, from);
    for (uint32_t i = 0; i < edit_size(source); i++) {
        struct json *target = edit_get(limit, key);
        if (!json_get_str(target, source->members[i].key)) {
            json_put(target, a, source->members[i].key, source->members[i].value);
        }
    }
}

int admit_limitrange_default(struct admission_request *q, struct hk_err *err)
{
    struct json *limits = edit_at(q->obj, "spec.limits");

    for (uint32_t i = 0; i < edit_len(limits); i++) {
        struct json *limit = &limits->items[i];
        if (admit_limitrange_is_type(limit, "Container")) {
            admit_limitrange_copy_missing(limit, q->mem, "default", "max");
            admit_limitrange_copy_missing(limit, q->mem, "defaultRequest", "default");
            admit_limitrange_copy_missing(limit, q->mem, "defaultRequest", "min");
        }
    }
    return 0;
}

static void check_order(struct admission_request *q, const struct path *p, const struct json *limit,
                        const char *low, const char *high)
{
    const struct json *lows = json_get(limit, low);
    const struct path list = path_field(p, low);

    for (uint32_t i = 0; i < edit_size(lows); i++) {
        const struct hk_str name = lows->members[i].key;
        const struct path at = path_key(&list, name);
        struct quantity a;
        struct quantity b;
        if (amount_get(lows, name, &a) && amount_get(json_get(limit, high), name, &b) &&
            quantity_cmp(a, b) > 0) {
            cause_invalid(q, &at, &lows->members[i].value,
                          "%s value %s is greater than %s value %s", low, amount_text(a, q->mem),
                          high, amount_text(b, q->mem));
        }
    }
}

void admit_limitrange_validate(struct admission_request *q)
{
    static const char *const pairs[][2] = {
        {"min", "max"},     {"min", "defaultRequest"},     {"defaultRequest", "max"},
        {"default", "max"}, {"defaultRequest", "default"},
    };
    const struct json *limits = json_at(q->obj, "spec.limits");
    const struct path spec = path_field(NULL, "spec");
    const struct path list = path_field(&spec, "limits");

    for (uint32_t i = 0; i < edit_len(limits); i++) {
        const struct path at = path_index(&list, i);
        const struct json *limit = json_item(limits, i);
        cause_check_present(q, &at, limit, "type");
        for (size_t k = 0; k < HK_LEN(pairs); k++) {
            check_order(q, &at, limit, pairs[k][0], pairs[k][1]);
        }
    }
}

/* ---- defaults for pods ---- */

/* Fills one list of one container and appends to out what it set. */
static void fill_container(struct visit *v, struct json *container, const char *field,
                           const struct json *defaults)
{
    struct json *resources = json_need(container, v->q->mem, "resources", JSON_OBJECT);
    HK_AUTO(hk_buf_fini) struct hk_buf set = {0};

    for (uint32_t i = 0; i < edit_size(defaults); i++) {
        struct json *list = json_need(resources, v->q->mem, field, JSON_OBJECT);
        if (!json_get_str(list, defaults->members[i].key)) {
            json_put(list, v->q->mem, hk_arena_str(v->q->mem, defaults->members[i].key),
                     json_clone(&defaults->members[i].value, v->q->mem));
            hk_buf_addf(&set, "%s%.*s", set.len > 0 ? ", " : "", HK_FMT(defaults->members[i].key));
        }
    }
    if (set.len > 0) {
        hk_buf_addf(v->out, "%s%s %.*s for container %.*s", v->out->len > 0 ? "; " : "", set.data,
                    (int)strlen(field) - 1, field, HK_FMT(edit_str(container, "name")));
    }
}

static void fill_pod(struct visit *v, const struct json *limit)
{
    static const char *const lists[] = {"containers", "initContainers"};
    struct json *spec = edit_get(v->q->obj, "spec");

    if (!admit_limitrange_is_type(limit, "Container")) {
        return;
    }
    for (size_t k = 0; k < HK_LEN(lists); k++) {
        struct json *containers = edit_get(spec, lists[k]);
        for (uint32_t i = 0; i < edit_len(containers); i++) {
            fill_container(v, &containers->items[i], "requests", json_get(limit, "defaultRequest"));
            fill_container(v, &containers->items[i], "limits", json_get(limit, "default"));
        }
    }
}

int admit_limitrange_pod(struct admission_request *q, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf set = {0};
    struct visit v = {.q = q, .fn = fill_pod, .out = &set};
    struct json *metadata;

    each_limit(&v);
    if (set.len > 0) {
        metadata = json_need(q->obj, q->mem, "metadata", JSON_OBJECT);
        json_set_cstr(json_need(metadata, q->mem, "annotations", JSON_OBJECT), q->mem, ANNOTATION,
                      hk_arena_printf(q->mem, "LimitRanger plugin set: %s", set.data));
    }
    return 0;
}

/* ---- enforcing limits ---- */

static void admit_limitrange_add_message(struct visit *v, const char *text)
{
    hk_buf_addf(v->out, "%s%s", v->count > 0 ? ", " : "", text);
    v->count++;
}

/* What is compared with a limit: a container or claim, or the sums of a pod. */
struct subject {
    const char *type;
    const struct json *resources; /* of a container or claim */
    const struct json *spec;      /* of a pod; else NULL */
};

static bool subject_get(const struct subject *s, const char *field, struct hk_str name,
                        struct quantity *ret)
{
    return s->spec ? amount_of_pod(s->spec, field, name, ret)
                   : amount_get(json_get(s->resources, field), name, ret);
}

/* sign 1: refuses values above the bound; -1: values below it. */
static void admit_limitrange_check_bound(struct visit *v, const struct subject *s,
                                         struct hk_str name, struct quantity bound, int sign)
{
    const char *word = sign > 0 ? "maximum" : "minimum";
    const char *first = sign > 0 ? "limit" : "request";
    const char *fields[] = {sign > 0 ? "limits" : "requests", sign > 0 ? "requests" : "limits"};
    const char *words[] = {first, sign > 0 ? "request" : "limit"};
    struct hk_arena *a = v->q->mem;
    struct quantity amount;

    if (!subject_get(s, fields[0], name, &amount) &&
        strcmp(s->type, "PersistentVolumeClaim") != 0) {
        admit_limitrange_add_message(
            v, hk_arena_printf(a, "%s %.*s usage per %s is %s.  No %s is specified", word,
                               HK_FMT(name), s->type, amount_text(bound, a), first));
        return;
    }
    for (size_t i = 0; i < HK_LEN(fields); i++) {
        if (subject_get(s, fields[i], name, &amount) && quantity_cmp(amount, bound) * sign > 0) {
            admit_limitrange_add_message(
                v,
                hk_arena_printf(a, "%s %.*s usage per %s is %s, but %s is %s", word, HK_FMT(name),
                                s->type, amount_text(bound, a), words[i], amount_text(amount, a)));
            return;
        }
    }
}

static void check_ratio(struct visit *v, const struct subject *s, struct hk_str name,
                        struct quantity bound)
{
    struct hk_arena *a = v->q->mem;
    struct quantity request;
    struct quantity limit;
    const char *missing = NULL;

    if (!subject_get(s, "requests", name, &request) || request.nano == 0) {
        missing = "request";
    } else if (!subject_get(s, "limits", name, &limit) || limit.nano == 0) {
        missing = "limit";
    }
    if (missing) {
        admit_limitrange_add_message(
            v, hk_arena_printf(a,
                               "%.*s max limit to request ratio per %s is %s, but no %s is "
                               "specified or %s is 0",
                               HK_FMT(name), s->type, amount_text(bound, a), missing, missing));
        return;
    }
    const double ratio = (double)limit.nano / (double)request.nano;
    if (ratio > (double)bound.nano / 1e9) {
        admit_limitrange_add_message(
            v, hk_arena_printf(a,
                               "%.*s max limit to request ratio per %s is %s, but provided "
                               "ratio is %f",
                               HK_FMT(name), s->type, amount_text(bound, a), ratio));
    }
}

static void check_subject(struct visit *v, const struct json *limit, const struct subject *s)
{
    static const char *const bounds[] = {"min", "max", "maxLimitRequestRatio"};

    for (size_t k = 0; k < HK_LEN(bounds); k++) {
        const struct json *list = json_get(limit, bounds[k]);
        for (uint32_t i = 0; i < edit_size(list); i++) {
            const struct hk_str name = list->members[i].key;
            struct quantity bound;
            if (!amount_get(list, name, &bound)) {
                continue;
            }
            if (k < 2) {
                admit_limitrange_check_bound(v, s, name, bound, k == 0 ? -1 : 1);
            } else {
                check_ratio(v, s, name, bound);
            }
        }
    }
}

static void check_pod(struct visit *v, const struct json *limit)
{
    const struct json *spec = json_get(v->q->obj, "spec");
    const char *lists[] = {"containers", "initContainers"};

    if (admit_limitrange_is_type(limit, "Pod")) {
        check_subject(v, limit, &(struct subject){.type = "Pod", .spec = spec});
    }
    for (size_t k = 0; k < HK_LEN(lists) && admit_limitrange_is_type(limit, "Container"); k++) {
        const struct json *containers = json_get(spec, lists[k]);
        for (uint32_t i = 0; i < edit_len(containers); i++) {
            const struct json *resources = json_get(json_item(containers, i), "resources");
            check_subject(v, limit, &(struct subject){.type = "Container", .resources = resources});
        }
    }
}

static void check_claim(struct visit *v, const struct json *limit)
{
    if (admit_limitrange_is_type(limit, "PersistentVolumeClaim")) {
        check_subject(v, limit,
                      &(struct subject){.type = "PersistentVolumeClaim",
                                        .resources = json_at(v->q->obj, "spec.resources")});
    }
}

int admit_limitrange_enforce(struct admission_request *q, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const bool pod = strcmp(q->kind->kind, "Pod") == 0;
    struct visit v = {.q = q, .fn = pod ? check_pod : check_claim, .out = &text};

    each_limit(&v);
    if (v.count == 0) {
        return 0;
    }
    return hk_fail(err, HK_EDENIED, v.count > 1 ? "[%s]" : "%s", text.data);
}
