// SPDX-License-Identifier: Apache-2.0
// ResourceQuotas: what an object costs, what a namespace uses, and the refusal of requests that
// exceed a quota. Usage is computed from the objects, or from a ledger that the caller keeps of
// them, never from status.used. So a quota takes effect as soon as it is stored; its status is for
// display only.
#include "admission/admission_priv.h"
#include "api/meta.h"
#include "codec/timefmt.h"

/* ---- names in spec.hard ---- */

enum charge {
    CHARGE_NONE,
    CHARGE_PODS,     /* unfinished pods */
    CHARGE_REQUESTS, /* of unfinished pods */
    CHARGE_LIMITS,
    CHARGE_STORAGE, /* requests of claims */
    CHARGE_OBJECTS, /* any kind of object */
    CHARGE_NODE_PORTS,
    CHARGE_LOAD_BALANCERS,
};

/* A parsed name of spec.hard. */
struct charge_of {
    enum charge what;
    struct hk_str resource;      /* requests, limits: "cpu" */
    struct hk_str plural, group; /* objects */
    struct hk_str class;         /* storage: only of this class, unless "" */
};

static struct hk_str after(struct hk_str s, const char *prefix)
{
    const size_t n = strlen(prefix);

    return (struct hk_str){s.s + n, s.n - n};
}

#define CLASS_SUFFIX ".storageclass.storage.k8s.io/"

static bool split_class(struct hk_str name, struct hk_str *class, struct hk_str *rest)
{
    const char *at = memmem(name.s, name.n, CLASS_SUFFIX, strlen(CLASS_SUFFIX));

    if (!at) {
        return false;
    }
    *class = (struct hk_str){name.s, (size_t)(at - name.s)};
    *rest = after((struct hk_str){at, name.n - class->n}, CLASS_SUFFIX);
    return true;
}

static struct charge_of admit_quota_object_count(struct hk_str plural, struct hk_str group)
{
    return (struct charge_of){.what = CHARGE_OBJECTS, .plural = plural, .group = group};
}

/* Parses "gold.storageclass.storage.k8s.io/requests.storage" and similar names. */
static struct charge_of class_charge(struct hk_str class, struct hk_str rest)
{
    struct charge_of c = {.what = CHARGE_NONE};

    if (hk_str_is(rest, "requests.storage")) {
        c.what = CHARGE_STORAGE;
    } else if (hk_str_is(rest, "persistentvolumeclaims")) {
        c = admit_quota_object_count(rest, HK_STR(""));
    }
    c.class = class;
    return c;
}

static struct charge_of charge_of(struct hk_str name)
{
    static const char *const plain[] = {"services",       "configmaps",
                                        "secrets",        "replicationcontrollers",
                                        "resourcequotas", "persistentvolumeclaims"};
    struct hk_str class;
    struct hk_str rest;

    if (hk_str_is(name, "pods")) {
        return (struct charge_of){.what = CHARGE_PODS};
    }
    if (hk_str_starts(name, "count/")) {
        struct hk_str group = after(name, "count/");
        struct hk_str plural;
        hk_str_cut(&group, '.', &plural);
        return admit_quota_object_count(plural, group.s ? group : HK_STR(""));
    }
    for (size_t i = 0; i < HK_LEN(plain); i++) {
        if (hk_str_is(name, plain[i])) {
            return admit_quota_object_count(name, HK_STR(""));
        }
    }
    if (hk_str_is(name, "services.nodeports")) {
        return (struct charge_of){.what = CHARGE_NODE_PORTS};
    }
    if (hk_str_is(name, "services.loadbalancers")) {
        return (struct charge_of){.what = CHARGE_LOAD_BALANCERS};
    }
    if (split_class(name, &class, &rest)) {
        return class_charge(class, rest);
    }
    if (hk_str_is(name, "requests.storage")) {
        return (struct charge_of){.what = CHARGE_STORAGE};
    }
    if (hk_str_starts(name, "limits.")) {
        return (struct charge_of){.what = CHARGE_LIMITS, .resource = after(name, "limits.")};
    }
    if (hk_str_starts(name, "requests.")) {
        return (struct charge_of){.what = CHARGE_REQUESTS, .resource = after(name, "requests.")};
    }
    if (hk_str_is(name, "cpu") || hk_str_is(name, "memory") ||
        hk_str_is(name, "ephemeral-storage") || hk_str_starts(name, "hugepages-")) {
        return (struct charge_of){.what = CHARGE_REQUESTS, .resource = name};
    }
    return (struct charge_of){.what = CHARGE_NONE};
}

/* ---- scopes ---- */

static bool is_living(const struct json *pod, int64_t now_ns)
{
    const struct hk_str phase = edit_str(json_get(pod, "status"), "phase");
    const struct hk_str deletion = edit_str(json_get(pod, "metadata"), "deletionTimestamp");
    int64_t end_ns;

    if (hk_str_is(phase, "Succeeded") || hk_str_is(phase, "Failed")) {
        return false;
    }
    /* deletionTimestamp already includes the grace period. */
    return deletion.n == 0 || time_parse(deletion, &end_ns, NULL) < 0 || end_ns >= now_ns;
}

static bool in_values(const struct json *requirement, struct hk_str value)
{
    const struct hk_str op = edit_str(requirement, "operator");
    const bool listed = edit_list_has(json_get(requirement, "values"), value);

    if (hk_str_is(op, "In")) {
        return listed;
    }
    if (hk_str_is(op, "NotIn")) {
        return !listed;
    }
    return hk_str_is(op, "DoesNotExist") ? value.n == 0 : value.n > 0;
}

static bool has_cross_namespace_terms(const struct json *spec)
{
    static const char *const kinds[] = {"podAffinity", "podAntiAffinity"};
    static const char *const lists[] = {"requiredDuringSchedulingIgnoredDuringExecution",
                                        "preferredDuringSchedulingIgnoredDuringExecution"};

    for (size_t k = 0; k < HK_LEN(kinds); k++) {
        for (size_t l = 0; l < HK_LEN(lists); l++) {
            const struct json *terms =
                json_get(json_get(json_get(spec, "affinity"), kinds[k]), lists[l]);
            for (uint32_t i = 0; i < edit_len(terms); i++) {
                const struct json *item = json_item(terms, i);
                const struct json *term =
                    edit_has(item, "podAffinityTerm") ? json_get(item, "podAffinityTerm") : item;
                if (edit_len(json_get(term, "namespaces")) > 0 ||
                    edit_has(term, "namespaceSelector")) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* requirement is NULL for a plain scope. */
static bool in_scope(struct hk_str scope, const struct json *requirement, const struct json *pod)
{
    const struct json *spec = json_get(pod, "spec");
    const bool best_effort = strcmp(admission_pod_qos(spec), "BestEffort") == 0;
    const struct hk_str class = edit_str(spec, "priorityClassName");

    if (hk_str_is(scope, "Terminating")) {
        return edit_has(spec, "activeDeadlineSeconds");
    }
    if (hk_str_is(scope, "NotTerminating")) {
        return !edit_has(spec, "activeDeadlineSeconds");
    }
    if (hk_str_is(scope, "BestEffort")) {
        return best_effort;
    }
    if (hk_str_is(scope, "NotBestEffort")) {
        return !best_effort;
    }
    if (hk_str_is(scope, "PriorityClass")) {
        return requirement ? in_values(requirement, class) : class.n > 0;
    }
    return hk_str_is(scope, "CrossNamespacePodAffinity") && has_cross_namespace_terms(spec);
}

static bool in_scopes(const struct json *quota, const struct json *pod)
{
    const struct json *scopes = json_at(quota, "spec.scopes");
    const struct json *exprs = json_at(quota, "spec.scopeSelector.matchExpressions");

    for (uint32_t i = 0; i < edit_len(scopes); i++) {
        if (!in_scope(json_str(json_item(scopes, i), HK_STR("")), NULL, pod)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < edit_len(exprs); i++) {
        const struct json *expr = json_item(exprs, i);
        if (!in_scope(edit_str(expr, "scopeName"), expr, pod)) {
            return false;
        }
    }
    return true;
}

static bool has_scopes(const struct json *quota)
{
    return edit_len(json_at(quota, "spec.scopes")) > 0 ||
           edit_len(json_at(quota, "spec.scopeSelector.matchExpressions")) > 0;
}

/* ---- what one object costs ---- */

/* Measures one resource name of a quota at a given time. */
struct meter {
    const struct json *quota; /* NULL: ignore scopes */
    struct charge_of charge;
    int64_t now_ns;
    struct quantity total;
};

static const struct quantity one = {.nano = 1000000000, .format = QUANTITY_DECIMAL_SI};

static struct quantity pod_cost(const struct meter *m, const struct json *pod)
{
    const struct json *spec = json_get(pod, "spec");
    struct quantity v = {0};

    if (!is_living(pod, m->now_ns) || (m->quota && !in_scopes(m->quota, pod))) {
        return v;
    }
    if (m->charge.what == CHARGE_PODS) {
        return one;
    }
    const char *field = m->charge.what == CHARGE_LIMITS ? "limits" : "requests";
    return amount_of_pod(spec, field, m->charge.resource, &v) ? v : (struct quantity){0};
}

static struct quantity service_cost(const struct meter *m, const struct json *service)
{
    const struct hk_str type = edit_str(json_get(service, "spec"), "type");
    const bool balanced = hk_str_is(type, "LoadBalancer");

    if (m->charge.what == CHARGE_LOAD_BALANCERS) {
        return balanced ? one : (struct quantity){0};
    }
    if (balanced || hk_str_is(type, "NodePort")) {
        return quantity_of(edit_len(json_at(service, "spec.ports")), QUANTITY_DECIMAL_SI);
    }
    return (struct quantity){0};
}

static struct quantity claim_cost(const struct meter *m, const struct json *claim)
{
    const struct json *spec = json_get(claim, "spec");
    struct quantity v = {0};

    if (m->charge.class.n > 0 && !hk_str_eq(m->charge.class, edit_str(spec, "storageClassName"))) {
        return v;
    }
    if (m->charge.what == CHARGE_OBJECTS) {
        return one;
    }
    (void)amount_get(json_at(spec, "resources.requests"), HK_STR("storage"), &v);
    return v;
}

/* The kind whose objects the charge reads; NULL when it only counts objects, or is unknown. */
static const struct api_kind *metered_kind(const struct charge_of *c)
{
    switch (c->what) {
    case CHARGE_PODS:
    case CHARGE_REQUESTS:
    case CHARGE_LIMITS:
        return api_kind(API_POD);
    case CHARGE_NODE_PORTS:
    case CHARGE_LOAD_BALANCERS:
        return api_kind(API_SERVICE);
    case CHARGE_STORAGE:
        return api_kind(API_PVC);
    case CHARGE_OBJECTS:
        return c->class.n > 0 ? api_kind(API_PVC) : NULL;
    case CHARGE_NONE:
        break;
    }
    return NULL;
}

static struct quantity admit_quota_object_cost(const struct meter *m, const struct json *obj)
{
    switch (m->charge.what) {
    case CHARGE_PODS:
    case CHARGE_REQUESTS:
    case CHARGE_LIMITS:
        return pod_cost(m, obj);
    case CHARGE_NODE_PORTS:
    case CHARGE_LOAD_BALANCERS:
        return service_cost(m, obj);
    case CHARGE_STORAGE:
        return claim_cost(m, obj);
    case CHARGE_OBJECTS:
        return m->charge.class.n > 0 ? claim_cost(m, obj) : one;
    case CHARGE_NONE:
        break;
    }
    return (struct quantity){0};
}

/* ---- what the namespace uses ---- */

static bool add_cost(void *arg, const struct json *obj)
{
    struct meter *m = arg;

    m->total = quantity_add(m->total, admit_quota_object_cost(m, obj));
    return true;
}

static bool add_one(void *arg, const struct json *obj)
{
    struct meter *m = arg;

    m->total = quantity_add(m->total, one);
    return true;
}

static bool is_kind(const struct api_kind *a, const struct api_kind *b)
{
    return strcmp(a->group, b->group) == 0 && strcmp(a->plural, b->plural) == 0;
}

/* What an object of the kind adds to m->total. */
static struct quantity cost_of_kind(const struct meter *m, const struct api_kind *kind,
                                    const struct json *obj)
{
    const struct api_kind *k = metered_kind(&m->charge);
    const bool counted = m->charge.what == CHARGE_OBJECTS && m->charge.class.n == 0;
    const bool touched = counted ? hk_str_is(m->charge.plural, kind->plural) &&
                                       hk_str_is(m->charge.group, kind->group)
                                 : k && is_kind(kind, k);

    return touched ? admit_quota_object_cost(m, obj) : (struct quantity){0};
}

struct quantity admission_quota_cost(const struct json *quota, struct hk_str resource,
                                     const struct api_kind *kind, const struct json *obj,
                                     int64_t now_ns)
{
    const struct meter m = {.quota = quota, .charge = charge_of(resource), .now_ns = now_ns};

    return cost_of_kind(&m, kind, obj);
}

static const struct api_kind *kind_of_plural(struct hk_str group, struct hk_str plural)
{
    for (int i = 0; i < API_NKINDS; i++) {
        const struct api_kind *k = api_kind((enum api_kind_id)i);
        if (hk_str_is(plural, k->plural) && hk_str_is(group, k->group)) {
            return k;
        }
    }
    return NULL;
}

static void admit_quota_measure_usage(const struct admission_lookup *lookup, struct hk_str ns,
                                      struct meter *m)
{
    const struct api_kind *k = metered_kind(&m->charge);

    m->total = (struct quantity){0};
    if (k) {
        lookup->each(lookup->ctx, k, ns, add_cost, m);
        return;
    }
    if (m->charge.what != CHARGE_OBJECTS) {
        return;
    }
    if (lookup->count) {
        m->total = quantity_of(lookup->count(lookup->ctx, m->charge.group, m->charge.plural, ns),
                               QUANTITY_DECIMAL_SI);
        return;
    }
    k = kind_of_plural(m->charge.group, m->charge.plural);
    if (k) {
        lookup->each(lookup->ctx, k, ns, add_one, m);
    }
}

struct json admission_quota_usage(const struct admission_lookup *lookup, struct hk_str ns,
                                  const struct json *hard, const struct json *quota, int64_t now_ns,
                                  struct hk_arena *mem)
{
    struct json used = json_make_object();

    for (uint32_t i = 0; i < edit_size(hard); i++) {
        const struct hk_str name = hard->members[i].key;
        struct meter m = {.quota = quota, .charge = charge_of(name), .now_ns = now_ns};
        struct quantity limit;
        admit_quota_measure_usage(lookup, ns, &m);
        /* A usage of zero has no format: use that of the limit. */
        if (m.total.nano == 0 && amount_get(hard, name, &limit)) {
            m.total.format = limit.format;
        }
        amount_put(&used, mem, name, m.total);
    }
    return used;
}

/* ---- enforcing ---- */

struct quota_check {
    struct admission_request *q;
    struct hk_err *err;
    int rc;
    bool pod;
};

/* What the request adds to m->total. */
static struct quantity delta(const struct admission_request *q, const struct meter *m)
{
    const struct quantity after = cost_of_kind(m, q->kind, q->obj);

    return q->verb == ADMIT_UPDATE ? quantity_sub(after, cost_of_kind(m, q->kind, q->old)) : after;
}

/* Sets m->total to the usage before the request. */
static void measure_quota(const struct admission_request *q, const struct json *quota,
                          struct hk_str resource, struct meter *m)
{
    const struct admission_lookup *l = q->lookup;
    const struct hk_str name = edit_str(json_get(quota, "metadata"), "name");

    if (!l->used || !l->used(l->ctx, q->ns, name, resource, &m->total)) {
        admit_quota_measure_usage(l, q->ns, m);
    }
}

/* Lists, with commas, the containers that do not set the resource. */
static void list_silent(const struct json *spec, const char *field, struct hk_str resource,
                        struct hk_buf *out)
{
    static const char *const lists[] = {"containers", "initContainers"};
    struct quantity v;

    if (amount_get(json_get(json_get(spec, "resources"), field), resource, &v)) {
        return;
    }
    for (size_t k = 0; k < HK_LEN(lists); k++) {
        const struct json *list = json_get(spec, lists[k]);
        for (uint32_t i = 0; i < edit_len(list); i++) {
            const struct json *c = json_item(list, i);
            if (!amount_get(json_get(json_get(c, "resources"), field), resource, &v)) {
                hk_buf_addf(out, "%s%.*s", out->len > 0 ? "," : "", HK_FMT(edit_str(c, "name")));
            }
        }
    }
}

static int admit_quota_compare_members(const void *a, const void *b)
{
    return hk_str_cmp(((const struct json_member *)a)->key, ((const struct json_member *)b)->key);
}

/* spec.hard sorted by name: messages list resources in that order. */
static struct json admit_quota_sort_hard(const struct json *hard, struct hk_arena *a)
{
    struct json copy = json_clone_as(hard, JSON_OBJECT, a);

    if (copy.len > 1) {
        qsort(copy.members, copy.len, sizeof(*copy.members), admit_quota_compare_members);
    }
    return copy;
}

/* A quota on compute resources requires pods to set those resources. */
static int check_stated(const struct quota_check *j, const struct json *quota,
                        const struct json *hard)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct json *spec = json_get(j->q->obj, "spec");

    for (uint32_t i = 0; i < edit_size(hard); i++) {
        const struct hk_str name = hard->members[i].key;
        const struct charge_of c = charge_of(name);
        HK_AUTO(hk_buf_fini) struct hk_buf silent = {0};
        if ((c.what != CHARGE_REQUESTS && c.what != CHARGE_LIMITS) ||
            (!hk_str_is(c.resource, "cpu") && !hk_str_is(c.resource, "memory"))) {
            continue;
        }
        list_silent(spec, c.what == CHARGE_LIMITS ? "limits" : "requests", c.resource, &silent);
        if (silent.len > 0) {
            hk_buf_addf(&text, "%s%.*s for: %s", text.len > 0 ? "; " : "", HK_FMT(name),
                        silent.data);
        }
    }
    if (text.len == 0) {
        return 0;
    }
    return hk_fail(j->err, HK_EDENIED, "failed quota: %.*s: must specify %s",
                   HK_FMT(edit_str(json_get(quota, "metadata"), "name")), text.data);
}

static void add_part(struct hk_buf *out, struct hk_str name, struct quantity v)
{
    hk_buf_addf(out, "%s%.*s=", out->len > 0 ? "," : "", HK_FMT(name));
    quantity_write(v, out);
}

static int check_room(const struct quota_check *j, const struct json *quota,
                      const struct json *hard)
{
    HK_AUTO(hk_buf_fini) struct hk_buf wanted = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf used = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf limited = {0};

    for (uint32_t i = 0; i < edit_size(hard); i++) {
        const struct hk_str name = hard->members[i].key;
        struct meter m = {
            .quota = has_scopes(quota) ? quota : NULL,
            .charge = charge_of(name),
            .now_ns = j->q->now_ns,
        };
        const struct quantity more = delta(j->q, &m);
        struct quantity limit;
        if (more.nano <= 0 || !amount_get(hard, name, &limit)) {
            continue;
        }
        measure_quota(j->q, quota, name, &m);
        if (quantity_cmp(quantity_add(m.total, more), limit) > 0) {
            add_part(&wanted, name, more);
            add_part(&used, name, m.total);
            add_part(&limited, name, limit);
        }
    }
    if (wanted.len == 0) {
        return 0;
    }
    return hk_fail(j->err, HK_EDENIED, "exceeded quota: %.*s, requested: %s, used: %s, limited: %s",
                   HK_FMT(edit_str(json_get(quota, "metadata"), "name")), wanted.data, used.data,
                   limited.data);
}

static bool check_quota(void *arg, const struct json *quota)
{
    struct quota_check *j = arg;
    const struct json hard = admit_quota_sort_hard(json_at(quota, "spec.hard"), j->q->mem);

    if (j->pod && j->q->verb == ADMIT_CREATE && in_scopes(quota, j->q->obj)) {
        j->rc = check_stated(j, quota, &hard);
    }
    if (j->rc == 0) {
        j->rc = check_room(j, quota, &hard);
    }
    return j->rc == 0;
}

int admit_quota_enforce(struct admission_request *q, struct hk_err *err)
{
    struct quota_check j = {
        .q = q,
        .err = err,
        .pod = is_kind(q->kind, api_kind(API_POD)),
    };

    if (q->kind->namespaced) {
        admit_each(q, api_kind(API_RESOURCE_QUOTA), q->ns, check_quota, &j);
    }
    return j.rc;
}

/* ---- validation ---- */

void admit_quota_validate(struct admission_request *q)
{
    const struct json *hard = json_at(q->obj, "spec.hard");
    const struct path spec = path_field(NULL, "spec");
    const struct path p = path_field(&spec, "hard");

    for (uint32_t i = 0; i < edit_size(hard); i++) {
        const struct hk_str name = hard->members[i].key;
        const struct path at = path_key(&p, name);
        struct quantity v;
        if (!name_check(q, &at, name, NAME_QUALIFIED)) {
            continue;
        }
        if (!hk_str_contains(name, "/") && charge_of(name).what == CHARGE_NONE) {
            cause_invalid_str(q, &at, name, "must be a standard resource for quota");
        }
        if (amount_get(hard, name, &v) && v.nano < 0) {
            cause_invalid(q, &at, &hard->members[i].value, "must be greater than or equal to 0");
        }
    }
    if (q->verb == ADMIT_UPDATE) {
        cause_check_immutable(q, &spec, json_get(q->obj, "spec"), json_get(q->old, "spec"),
                              "scopes");
    }
}
