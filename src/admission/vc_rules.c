// SPDX-License-Identifier: Apache-2.0
// The table of Volcano's rules, and the code that runs one rule. Registration (names, verbs) is
// that of Volcano's chart, with two exceptions. The rule for flows has the name from its own code,
// since the chart calls it validatejob.volcano.sh too. Jobs are also mutated on update, so that a
// manifest can be applied twice. The rule for Commands is Hekla's own.
#include "admission/vc_priv.h"

#include "api/patch.h"

#define ONLY_CREATE_BLANK "expect operation to be 'CREATE' "
#define CREATE_OR_UPDATE "expect operation to be 'CREATE' or 'UPDATE'"
#define ONLY_CREATE_TICKS "invalid operation `%s`, expect operation to be `CREATE`"

const struct volcano_rule volcano_rules[] = {
    {"/jobs/mutate", "mutatejob.volcano.sh", API_JOB, ON_WRITE, true, ONLY_CREATE_BLANK,
     vc_job_mutate, false},
    {"/jobs/validate", "validatejob.volcano.sh", API_JOB, ON_WRITE, false, CREATE_OR_UPDATE,
     vc_job_validate, false},
    {"/cronjobs/validate", "validatecronjob.volcano.sh", API_CRONJOB, ON_WRITE, false,
     CREATE_OR_UPDATE, vc_cronjob_validate, false},
    {"/queues/mutate", "mutatequeue.volcano.sh", API_QUEUE, ON_CREATE, true, ONLY_CREATE_TICKS,
     vc_queue_mutate, false},
    {"/queues/validate", "validatequeue.volcano.sh", API_QUEUE, ON_WRITE | ON_DELETE, false,
     "invalid operation `%s`, expect operation to be `CREATE`, `UPDATE` or `DELETE`",
     vc_queue_validate, false},
    {"/podgroups/mutate", "mutatepodgroup.volcano.sh", API_PODGROUP, ON_CREATE, true,
     ONLY_CREATE_TICKS, vc_podgroup_mutate, false},
    {"/podgroups/validate", "validatepodgroup.volcano.sh", API_PODGROUP, ON_CREATE, false,
     "unsupported operation %s", vc_podgroup_validate, false},
    {"/pods/mutate", "mutatepod.volcano.sh", API_POD, ON_CREATE, true, ONLY_CREATE_BLANK,
     vc_pod_mutate, false},
    {"/pods/validate", "validatepod.volcano.sh", API_POD, ON_CREATE, false,
     "expect operation to be 'CREATE'", vc_pod_validate, false},
    {"/jobflows/validate", "validatejobflow.volcano.sh", API_JOBFLOW, ON_WRITE, false,
     CREATE_OR_UPDATE, vc_jobflow_validate, false},
    {"/hypernodes/validate", "validatehypernodes.volcano.sh", API_HYPERNODE, ON_WRITE, false, NULL,
     vc_hypernode_validate, false},
    {"/commands/validate", "validatecommand.volcano.sh", API_COMMAND, ON_WRITE, false,
     CREATE_OR_UPDATE, vc_command_validate, true},
    {0},
};

static const struct hk_str verb_names[] = {
    [ADMIT_CREATE] = HK_STR("CREATE"),
    [ADMIT_UPDATE] = HK_STR("UPDATE"),
    [ADMIT_DELETE] = HK_STR("DELETE"),
};

/* ---- running a rule ---- */

const struct volcano_rule *volcano_rule_find(struct hk_str path)
{
    for (const struct volcano_rule *r = volcano_rules; r->path; r++) {
        if (hk_str_is(path, r->path)) {
            return r;
        }
    }
    return NULL;
}

static void write_wrong_operation(const struct volcano_rule *rule, struct hk_str operation,
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
    write_wrong_operation(rule, operation, why);
    return true;
}

/* Reports as a webhook message what the embedded server reports as field errors. */
static void check_bounds(struct vc *v)
{
    struct admission_request scratch = vc_scratch(v);

    scratch.obj = v->q->obj;
    scratch.old = v->q->old;
    admit_bounds_check(&scratch, v->opts);
    if (scratch.errors.len > 0) {
        vc_write_errors(v, &scratch);
    }
    admission_request_fini(&scratch);
}

int volcano_review(const struct volcano_rule *rule, struct admission_request *q,
                   const struct volcano_options *opts, struct json *ret_patch)
{
    static const struct volcano_options defaults;
    struct vc v = {.q = q, .opts = opts ? opts : &defaults, .patch = json_make_array()};

    q->denial = NULL;
    if (rule->verbs & 1U << q->verb) {
        if (!rule->mutates && q->verb != ADMIT_DELETE) {
            check_bounds(&v);
        }
        if (v.why.len == 0) {
            rule->run(&v);
        }
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

    return rule->mutates == mutates && !rule->asks_rights && rule->kind == q->kind->id &&
           rule->verbs & 1U << q->verb && !(q->volcano && q->volcano->disabled & bit);
}

/* Adds the text that an API server puts before a webhook's message. */
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

int admit_volcano_enforce(struct admission_request *q, struct hk_err *err)
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
