// SPDX-License-Identifier: Apache-2.0
// Priorities: PriorityClasses, and the priority values that pods get from them. The two system
// classes are built in and need not be stored.
#include "admission/admission_priv.h"

#define DEFAULT_PREEMPTION "PreemptLowerPriority"

enum { USER_MAX = 1000000000 };

static const struct {
    const char *name;
    int64_t value;
} system_classes[] = {
    {"system-cluster-critical", 2000000000},
    {"system-node-critical", 2000001000},
};

static const int64_t *system_value(struct hk_str name)
{
    for (size_t i = 0; i < HK_LEN(system_classes); i++) {
        if (hk_str_is(name, system_classes[i].name)) {
            return &system_classes[i].value;
        }
    }
    return NULL;
}

/* Pods of the system classes precede and preempt all others, so only system namespaces may use
 * them. */
static int check_system_class(struct hk_str ns, struct hk_str class, const char *what,
                              struct hk_err *err)
{
    static const char *const namespaces[] = {"kube-system", "volcano-system"};

    if (!system_value(class)) {
        return 0;
    }
    for (size_t i = 0; i < HK_LEN(namespaces); i++) {
        if (hk_str_is(ns, namespaces[i])) {
            return 0;
        }
    }
    return hk_fail(err, HK_EDENIED,
                   "%s with %.*s priorityClass is not permitted in %.*s namespace, only in %s and "
                   "%s",
                   what, HK_FMT(class), HK_FMT(ns), namespaces[0], namespaces[1]);
}

struct search {
    struct hk_arena *mem;
    struct json *best; /* a copy; NULL: none so far */
};

/* If a race creates several default classes, the lowest one is used. A system class is never the
 * default, even when stored as one: pods of other namespaces would get a class that they may not
 * use. */
static bool keep_default(void *arg, const struct json *class)
{
    struct search *s = arg;
    const int64_t value = json_int(json_get(class, "value"), 0);

    if (json_bool(json_get(class, "globalDefault"), false) &&
        !system_value(edit_str(json_get(class, "metadata"), "name")) &&
        (!s->best || value < json_int(json_get(s->best, "value"), 0))) {
        s->best = hk_arena_alloc(s->mem, sizeof(*s->best));
        *s->best = json_clone(class, s->mem);
    }
    return true;
}

static const struct json *default_class(const struct admission_request *q)
{
    struct search s = {.mem = q->mem};

    admit_each(q, api_kind(API_PRIORITY_CLASS), HK_STR(""), keep_default, &s);
    return s.best;
}

/* ---- pods ---- */

/* The priority of a pod. */
struct rank {
    int64_t value;
    struct hk_str policy;
    struct hk_str class; /* empty: none */
};

static struct rank admit_priority_class_rank(const struct json *class)
{
    const struct hk_str policy = edit_str(class, "preemptionPolicy");

    return (struct rank){
        .value = json_int(json_get(class, "value"), 0),
        .policy = policy.n > 0 ? policy : HK_STR(DEFAULT_PREEMPTION),
        .class = edit_str(json_get(class, "metadata"), "name"),
    };
}

static int admit_priority_resolve_class(const struct admission_request *q, struct hk_str name,
                                        struct rank *ret, struct hk_err *err)
{
    const struct json *class = NULL;

    *ret = (struct rank){.policy = HK_STR(DEFAULT_PREEMPTION)};
    if (name.n == 0) {
        class = default_class(q);
        if (class) {
            *ret = admit_priority_class_rank(class);
        }
        return 0;
    }
    class = admit_get(q, api_kind(API_PRIORITY_CLASS), HK_STR(""), name);
    if (class) {
        *ret = admit_priority_class_rank(class);
    } else if (system_value(name)) {
        ret->value = *system_value(name);
    } else if (q->lookup) {
        return hk_fail(err, HK_EDENIED, "no PriorityClass with name %.*s was found", HK_FMT(name));
    }
    ret->class = name;
    return 0;
}

static int check_given(const struct json *spec, const struct rank *r, struct hk_err *err)
{
    const struct json *value = json_get(spec, "priority");
    const struct hk_str policy = edit_str(spec, "preemptionPolicy");

    if (edit_has(spec, "priority") && json_int(value, r->value) != r->value) {
        return hk_fail(err, HK_EDENIED,
                       "the integer value of priority (%lld) must not be provided in pod spec; "
                       "priority admission controller computed %lld from the given PriorityClass "
                       "name",
                       (long long)json_int(value, 0), (long long)r->value);
    }
    if (policy.n > 0 && !hk_str_eq(policy, r->policy)) {
        return hk_fail(err, HK_EDENIED,
                       "the string value of PreemptionPolicy (%.*s) must not be provided in pod "
                       "spec; priority admission controller computed %.*s from the given "
                       "PriorityClass name",
                       HK_FMT(policy), HK_FMT(r->policy));
    }
    return 0;
}

/* Keeps fields that an old client does not know and leaves out of its update. */
static void keep_old(struct admission_request *q, struct json *spec)
{
    static const char *const fields[] = {"priority", "preemptionPolicy"};
    const struct json *old = json_get(q->old, "spec");

    for (size_t i = 0; i < HK_LEN(fields); i++) {
        if (!edit_has(spec, fields[i]) && edit_has(old, fields[i])) {
            json_set(spec, q->mem, fields[i], *json_get(old, fields[i]));
        }
    }
}

int admit_priority_pod(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);
    struct rank rank = {0};
    int rc;

    if (q->verb == ADMIT_UPDATE) {
        keep_old(q, spec);
        return 0;
    }
    rc = check_system_class(q->ns, edit_str(spec, "priorityClassName"), "pods", err);
    if (rc == 0) {
        rc = admit_priority_resolve_class(q, edit_str(spec, "priorityClassName"), &rank, err);
    }
    if (rc == 0) {
        rc = check_given(spec, &rank, err);
    }
    if (rc < 0) {
        return rc;
    }
    json_set_int(spec, q->mem, "priority", rank.value);
    json_set_str_copy(spec, q->mem, "preemptionPolicy", rank.policy);
    if (rank.class.n > 0) {
        json_set_str_copy(spec, q->mem, "priorityClassName", rank.class);
    }
    return 0;
}

/* Jobs and PodGroups: their class affects order and preemption like that of pods. */
int admit_priority_group(struct admission_request *q, struct hk_err *err)
{
    const struct hk_str class = edit_str(json_get(q->obj, "spec"), "priorityClassName");
    const char *what = q->kind->id == API_JOB ? "jobs" : "podgroups";

    if (q->old && hk_str_eq(class, edit_str(json_get(q->old, "spec"), "priorityClassName"))) {
        return 0;
    }
    return check_system_class(q->ns, class, what, err);
}

/* ---- classes ---- */

int admit_priority_default(struct admission_request *q, struct hk_err *err)
{
    edit_default_str(q->obj, q->mem, "preemptionPolicy", DEFAULT_PREEMPTION);
    if (!edit_has(q->obj, "value")) {
        json_set_int(q->obj, q->mem, "value", 0);
    }
    return 0;
}

/* Error about a class with a system prefix; NULL when it is one of the system classes. Same as
 * upstream's IsKnownSystemPriorityClass. */
static const char *refuse_system_class(const struct admission_request *q, struct hk_str name)
{
    const int64_t *fixed = system_value(name);

    if (!fixed) {
        return hk_arena_printf(q->mem, "%.*s is not a known system priority class", HK_FMT(name));
    }
    if (json_int(json_get(q->obj, "value"), 0) != *fixed) {
        return hk_arena_printf(q->mem, "value of %.*s PriorityClass must be %lld", HK_FMT(name),
                               (long long)*fixed);
    }
    if (json_bool(json_get(q->obj, "globalDefault"), false)) {
        return hk_arena_printf(q->mem, "globalDefault of %.*s PriorityClass must be false",
                               HK_FMT(name));
    }
    return NULL;
}

static void admit_priority_check_value(struct admission_request *q)
{
    const struct hk_str name = edit_str(json_get(q->obj, "metadata"), "name");
    const bool reserved = hk_str_starts(name, "system-");
    const char *wrong = reserved ? refuse_system_class(q, name) : NULL;
    const struct path metadata = path_field(NULL, "metadata");
    const struct path name_path = path_field(&metadata, "name");
    const struct path p = path_field(NULL, "value");

    if (wrong) {
        cause_forbidden(q, &name_path,
                        "priority class names with 'system-' prefix are reserved for system use "
                        "only. error: %s",
                        wrong);
    } else if (!reserved && json_int(json_get(q->obj, "value"), 0) > USER_MAX) {
        cause_forbidden(q, &p, "maximum allowed value of a user defined priority is %d", USER_MAX);
    }
}

void admit_priority_validate(struct admission_request *q)
{
    static const char *const policies[] = {"Never", DEFAULT_PREEMPTION, NULL};
    const struct path p = path_field(NULL, "value");

    admit_priority_check_value(q);
    cause_check_enum(q, NULL, q->obj, "preemptionPolicy", policies);
    if (q->verb == ADMIT_UPDATE) {
        if (json_int(json_get(q->obj, "value"), 0) != json_int(json_get(q->old, "value"), 0)) {
            cause_forbidden(q, &p, "may not be changed in an update.");
        }
        cause_check_immutable(q, NULL, q->obj, q->old, "preemptionPolicy");
    }
}

int admit_priority_enforce(struct admission_request *q, struct hk_err *err)
{
    const struct json *other;
    struct hk_str name;

    if (!json_bool(json_get(q->obj, "globalDefault"), false)) {
        return 0;
    }
    other = default_class(q);
    name = edit_str(json_get(other, "metadata"), "name");
    if (other && !hk_str_eq(name, edit_str(json_get(q->obj, "metadata"), "name"))) {
        return hk_fail(err, HK_EDENIED,
                       "PriorityClass %.*s is already marked as default. Only one default can "
                       "exist",
                       HK_FMT(name));
    }
    return 0;
}
