// SPDX-License-Identifier: Apache-2.0
// podFailurePolicy of batch/v1 Jobs: the first rule that matches decides.
#include "controllers/work_job_priv.h"

static const struct hk_str none = {"", 0};

static bool has_value(const struct json *values, int64_t code)
{
    for (uint32_t i = 0; json_is(values, JSON_ARRAY) && i < values->len; i++) {
        if (json_int(&values->items[i], -1) == code) {
            return true;
        }
    }
    return false;
}

/* The status of the container that the rule names, NULL none. */
static const struct json *match_container(const struct json *rule, const struct json *statuses)
{
    const struct hk_str name = json_str(json_get(rule, "containerName"), none);
    const bool in = hk_str_is(json_str(json_get(rule, "operator"), none), "In");

    for (uint32_t i = 0; json_is(statuses, JSON_ARRAY) && i < statuses->len; i++) {
        const struct json *s = &statuses->items[i];
        const int64_t code = json_int(json_at(s, "state.terminated.exitCode"), 0);

        if ((name.n == 0 || hk_str_eq(json_str(json_get(s, "name"), none), name)) && code != 0 &&
            has_value(json_get(rule, "values"), code) == in) {
            return s;
        }
    }
    return NULL;
}

static const struct json *match_exit_codes(const struct json *rule, const struct json *pod)
{
    const struct json *s = match_container(rule, json_at(pod, "status.containerStatuses"));

    return s ? s : match_container(rule, json_at(pod, "status.initContainerStatuses"));
}

static struct hk_str match_conditions(const struct json *patterns, const struct json *pod)
{
    for (uint32_t i = 0; json_is(patterns, JSON_ARRAY) && i < patterns->len; i++) {
        const struct hk_str type = json_str(json_get(&patterns->items[i], "type"), none);
        const struct hk_str want =
            json_str(json_get(&patterns->items[i], "status"), HK_STR("True"));
        const struct json *list = json_at(pod, "status.conditions");

        for (uint32_t k = 0; json_is(list, JSON_ARRAY) && k < list->len; k++) {
            if (hk_str_eq(json_str(json_get(&list->items[k], "type"), none), type) &&
                hk_str_eq(json_str(json_get(&list->items[k], "status"), none), want)) {
                return type;
            }
        }
    }
    return none;
}

/* Why the rule matches, in the wording of Kubernetes; "" when it does not. */
static struct hk_str match_rule(const struct bjob_pass *p, const struct json *rule, uint32_t at,
                                const struct json *pod, struct hk_str name)
{
    const struct json *codes = json_get(rule, "onExitCodes");
    const struct hk_str action = json_str(json_get(rule, "action"), none);
    const struct json *s = codes ? match_exit_codes(codes, pod) : NULL;
    const struct hk_str type =
        codes ? none : match_conditions(json_get(rule, "onPodConditions"), pod);

    if (s) {
        return hk_str(hk_arena_printf(
            p->t->mem,
            "Container %.*s for pod %.*s/%.*s failed with exit code %lld matching %.*s rule at "
            "index %u",
            HK_FMT(json_str(json_get(s, "name"), none)), HK_FMT(p->t->ns), HK_FMT(name),
            (long long)json_int(json_at(s, "state.terminated.exitCode"), 0), HK_FMT(action), at));
    }
    if (type.n > 0) {
        return hk_str(hk_arena_printf(
            p->t->mem, "Pod %.*s/%.*s has condition %.*s matching %.*s rule at index %u",
            HK_FMT(p->t->ns), HK_FMT(name), HK_FMT(type), HK_FMT(action), at));
    }
    return none;
}

struct bjob_failure bjob_apply_failure_policy(const struct bjob_pass *p, const struct work_pod *pod)
{
    const struct mirror *m = ctl_mirror(p->t->c, API_POD);
    const struct json *rules = json_at(p->spec, "podFailurePolicy.rules");
    struct json root;

    if (!rules || !mirror_has_text(m, pod->row)) {
        return (struct bjob_failure){0};
    }
    root = mirror_read(m, pod->row, p->t->mem);
    for (uint32_t i = 0; json_is(rules, JSON_ARRAY) && i < rules->len; i++) {
        const struct hk_str action = json_str(json_get(&rules->items[i], "action"), none);
        const struct hk_str why =
            match_rule(p, &rules->items[i], i, &root, mirror_name(m, pod->row));

        if (why.n > 0) {
            return (struct bjob_failure){.ignored = hk_str_is(action, "Ignore"),
                                         .fatal = hk_str_is(action, "FailJob") ? why : none};
        }
    }
    return (struct bjob_failure){0};
}
