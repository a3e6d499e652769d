// SPDX-License-Identifier: Apache-2.0
// The table of Volcano's rules, running one of them, and what they share. Registration (names,
// verbs) is that of Volcano's chart, with two exceptions: the rule of flows goes by the name its
// own code has, since the chart calls it validatejob.volcano.sh too; and jobs are also mutated on
// update, so that a manifest can be applied twice.
#include "admission/vc_priv.h"

#include "api/patch.h"

#define ONLY_CREATE_BLANK "expect operation to be 'CREATE' "
#define CREATE_OR_UPDATE "expect operation to be 'CREATE' or 'UPDATE'"
#define ONLY_CREATE_TICKS "invalid operation `%s`, expect operation to be `CREATE`"

const struct volcano_rule volcano_rules[] = {
    {"/jobs/mutate", "mutatejob.volcano.sh", API_JOB, ON_WRITE, true, ONLY_CREATE_BLANK,
     vc_job_mutate},
    {"/jobs/validate", "validatejob.volcano.sh", API_JOB, ON_WRITE, false, CREATE_OR_UPDATE,
     vc_job_validate},
    {"/cronjobs/validate", "validatecronjob.volcano.sh", API_CRONJOB, ON_WRITE, false,
     CREATE_OR_UPDATE, vc_cronjob_validate},
    {"/queues/mutate", "mutatequeue.volcano.sh", API_QUEUE, ON_CREATE, true, ONLY_CREATE_TICKS,
     vc_queue_mutate},
    {"/queues/validate", "validatequeue.volcano.sh", API_QUEUE, ON_WRITE | ON_DELETE, false,
     "invalid operation `%s`, expect operation to be `CREATE`, `UPDATE` or `DELETE`",
     vc_queue_validate},
    {"/podgroups/mutate", "mutatepodgroup.volcano.sh", API_PODGROUP, ON_CREATE, true,
     ONLY_CREATE_TICKS, vc_podgroup_mutate},
    {"/podgroups/validate", "validatepodgroup.volcano.sh", API_PODGROUP, ON_CREATE, false,
     "unsupported operation %s", vc_podgroup_validate},
    {"/pods/mutate", "mutatepod.volcano.sh", API_POD, ON_CREATE, true, ONLY_CREATE_BLANK,
     vc_pod_mutate},
    {"/pods/validate", "validatepod.volcano.sh", API_POD, ON_CREATE, false,
     "expect operation to be 'CREATE'", vc_pod_validate},
    {"/jobflows/validate", "validatejobflow.volcano.sh", API_JOBFLOW, ON_WRITE, false,
     CREATE_OR_UPDATE, vc_jobflow_validate},
    {"/hypernodes/validate", "validatehypernodes.volcano.sh", API_HYPERNODE, ON_WRITE, false, NULL,
     vc_hypernode_validate},
    {0},
};

static const struct hk_str verb_names[] = {
    [ADMIT_CREATE] = HK_STR("CREATE"),
    [ADMIT_UPDATE] = HK_STR("UPDATE"),
    [ADMIT_DELETE] = HK_STR("DELETE"),
};

/* ---- what the rules share ---- */

const char vc_both_tiers[] = "must not specify 'highestTierAllowed' and 'highestTierName' in "
                             "networkTopology simultaneously";

bool vc_has_both_tiers(const struct json *topology)
{
    return edit_has(topology, "highestTierAllowed") && edit_str(topology, "highestTierName").n > 0;
}

const char *const *vc_scheduler_names(const struct vc *v)
{
    static const char *const usual[] = {"volcano", NULL};
    const char *const *names = v->opts->scheduler_names;

    return names && names[0] ? names : usual;
}

void vc_patch(struct vc *v, const char *op, const char *path, struct json value)
{
    struct json step = json_make_object();

    edit_put_str(&step, v->q->mem, "op", op);
    edit_put_str(&step, v->q->mem, "path", path);
    edit_put(&step, v->q->mem, "value", value);
    json_push(&v->patch, v->q->mem, step);
}

const struct json *vc_patch_spec(struct vc *v)
{
    static const struct json empty = {.type = JSON_OBJECT};
    const struct json *spec = json_get(v->q->obj, "spec");

    if (!edit_has(v->q->obj, "spec")) {
        vc_patch(v, "add", "/spec", json_make_object());
        return &empty;
    }
    return spec->type == JSON_OBJECT ? spec : NULL;
}

struct admission_request vc_scratch(const struct vc *v)
{
    return (struct admission_request){
        .verb = v->q->verb,
        .kind = v->q->kind,
        .ns = v->q->ns,
        .name = v->q->name,
        .mem = v->q->mem,
        .now_ns = v->q->now_ns,
    };
}

/* The same words twice are told once, as Go's aggregates do. */
static bool told_before(const struct admission_request *scratch, uint32_t i)
{
    const struct field_error *e = &scratch->errors.at[i];

    for (uint32_t k = 0; k < i; k++) {
        if (strcmp(e->field, scratch->errors.at[k].field) == 0 &&
            strcmp(e->message, scratch->errors.at[k].message) == 0) {
            return true;
        }
    }
    return false;
}

void vc_tell_errors(struct vc *v, const struct admission_request *scratch)
{
    HK_AUTO(hk_buf_fini) struct hk_buf list = {0};
    uint32_t told = 0;

    for (uint32_t i = 0; i < scratch->errors.len; i++) {
        if (!told_before(scratch, i)) {
            hk_buf_addf(&list, "%s%s: %s", told++ > 0 ? ", " : "", scratch->errors.at[i].field,
                        scratch->errors.at[i].message);
        }
    }
    hk_buf_addf(&v->why, told > 1 ? "[%s]" : "%s", hk_buf_str(&list).s);
}

const struct json *vc_queue(const struct vc *v, struct hk_str name)
{
    return admit_get(v->q, api_kind(API_QUEUE), HK_STR(""), name);
}

struct children {
    struct hk_str parent;
    bool (*fn)(void *arg, const struct json *queue);
    void *arg;
};

static bool pass_child(void *arg, const struct json *queue)
{
    const struct children *c = arg;

    return !hk_str_eq(edit_str(json_get(queue, "spec"), "parent"), c->parent) ||
           c->fn(c->arg, queue);
}

void vc_each_child(const struct vc *v, struct hk_str parent,
                   bool (*fn)(void *arg, const struct json *queue), void *arg)
{
    const struct admission_lookup *lookup = v->q->lookup;
    struct children c = {parent, fn, arg};

    if (lookup && lookup->each_child) {
        lookup->each_child(lookup->ctx, parent, fn, arg);
    } else {
        admit_each(v->q, api_kind(API_QUEUE), HK_STR(""), pass_child, &c);
    }
}

void vc_tell_no_queue(struct vc *v, struct hk_str name)
{
    hk_buf_adds(&v->why, "queue.scheduling.volcano.sh ");
    json_write_str(name, &v->why);
    hk_buf_adds(&v->why, " not found");
}

struct hk_str vc_queue_state(const struct vc *v, const struct json *queue)
{
    const struct hk_str state = edit_str(json_get(queue, "status"), "state");

    return state.n == 0 && !v->opts->wait_for_queue_state ? HK_STR("Open") : state;
}

/* ---- running one ---- */

const struct volcano_rule *volcano_rule_find(struct hk_str path)
{
    for (const struct volcano_rule *r = volcano_rules; r->path; r++) {
        if (hk_str_is(path, r->path)) {
            return r;
        }
    }
    return NULL;
}

static void tell_wrong_operation(const struct volcano_rule *rule, struct hk_str operation,
                                 struct hk_buf *why)
{
    struct hk_str rest = hk_str(rule->wrong_operation);
    const char *hole = strstr(rest.s, "%s");

    if (hole) {
        hk_buf_add(why, rest.s, (size_t)(hole - rest.s));
        hk_buf_addstr(why, operation);
        rest = hk_str(hole + 2);
    }
    hk_buf_addstr(why, rest);
}

bool volcano_refuses_operation(const struct volcano_rule *rule, struct hk_str operation,
                               struct hk_buf *why)
{
    for (size_t i = 0; i < HK_LEN(verb_names); i++) {
        if (hk_str_eq(operation, verb_names[i]) && rule->verbs & 1U << i) {
            return false;
        }
    }
    if (!rule->wrong_operation) {
        return false;
    }
    tell_wrong_operation(rule, operation, why);
    return true;
}

int volcano_review(const struct volcano_rule *rule, struct admission_request *q,
                   const struct volcano_options *opts, struct json *ret_patch)
{
    static const struct volcano_options defaults;
    struct vc v = {.q = q, .opts = opts ? opts : &defaults, .patch = json_make_array()};

    q->denial = NULL;
    if (rule->verbs & 1U << q->verb) {
        rule->run(&v);
    } else {
        (void)volcano_refuses_operation(rule, verb_names[q->verb], &v.why);
    }
    if (v.why.len > 0) {
        q->denial = hk_arena_str(q->mem, hk_buf_str(&v.why)).s;
    } else {
        *ret_patch = v.patch;
    }
    hk_buf_fini(&v.why);
    return q->denial ? -HK_EINVAL : 0;
}

/* ---- in process ---- */

static bool is_on(const struct admission_request *q, const struct volcano_rule *rule, bool mutates)
{
    const uint32_t bit = 1U << (rule - volcano_rules);

    return rule->mutates == mutates && rule->kind == q->kind->id && rule->verbs & 1U << q->verb &&
           !(q->volcano && q->volcano->disabled & bit);
}

/* The words an API server puts around those of a webhook. */
static int deny(struct admission_request *q, const struct volcano_rule *rule, struct hk_err *err)
{
    q->denial = hk_arena_printf(q->mem, "admission webhook \"%s\" denied the request: %s",
                                rule->webhook, q->denial);
    return hk_fail(err, HK_EINVAL, "%s", q->denial);
}

static int run_all(struct admission_request *q, bool mutates, struct hk_err *err)
{
    for (const struct volcano_rule *r = volcano_rules; r->path; r++) {
        struct json patch = {0};
        if (!is_on(q, r, mutates)) {
            continue;
        }
        if (volcano_review(r, q, q->volcano, &patch) < 0) {
            return deny(q, r, err);
        }
        if (patch.len > 0) {
            const int rc = api_patch_json(q->obj, &patch, q->mem, err);
            if (rc < 0) {
                return hk_wrap(err, rc, "%s", r->webhook);
            }
        }
    }
    return 0;
}

int admit_volcano_mutate(struct admission_request *q, struct hk_err *err)
{
    return run_all(q, true, err);
}

int admit_volcano_judge(struct admission_request *q, struct hk_err *err)
{
    return run_all(q, false, err);
}

/* ---- options ---- */

int volcano_parse_enabled(struct hk_str list, uint32_t *ret_disabled, struct hk_err *err)
{
    uint32_t disabled = (1U << (HK_LEN(volcano_rules) - 1)) - 1;
    struct hk_str part;

    for (struct hk_str rest = list; hk_str_cut(&rest, ',', &part);) {
        const struct hk_str path = hk_str_trim(part);
        const struct volcano_rule *rule = volcano_rule_find(path);
        if (path.n == 0) {
            continue;
        }
        if (!rule) {
            return hk_fail(err, HK_EINVAL,
                           "enabled admission %.*s not found on the admission registered map",
                           HK_FMT(path));
        }
        disabled &= ~(1U << (rule - volcano_rules));
    }
    *ret_disabled = disabled;
    return 0;
}
