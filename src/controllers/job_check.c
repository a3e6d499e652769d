// SPDX-License-Identifier: Apache-2.0
// Validates jobs that bypassed admission, with admission's own rules. An invalid job stays as it is
// until a user corrects it.
#include "admission/volcano.h"
#include "api/patch.h"
#include "controllers/job_priv.h"

static int job_check_run_rule(const char *path, struct admission_request *q, struct json *ret_patch,
                              struct hk_err *err)
{
    /* Only the API server limits the size of jobs; here pods are created as they fit. */
    static const struct volcano_options o = {.max_replicas = -1};
    const int rc = volcano_review(volcano_rule_find(hk_str(path)), q, &o, ret_patch);

    return rc < 0 ? hk_fail(err, HK_EINVAL, "%s", q->denial) : 0;
}

/* Validates the job with admission's defaults filled in. There is no lookup, so the state of the
 * queue is not checked: it may have changed since the job was created. */
static int job_check_run_admission(const struct json *root, struct hk_arena *a, struct hk_err *err)
{
    struct json job = json_clone(root, a), patch;
    struct admission_request q = {
        .verb = ADMIT_CREATE,
        .kind = api_kind(API_JOB),
        .obj = &job,
        .ns = json_str(json_at(root, "metadata.namespace"), HK_STR("")),
        .name = json_str(json_at(root, "metadata.name"), HK_STR("")),
        .mem = a,
    };
    int rc = job_check_run_rule("/jobs/mutate", &q, &patch, err);

    if (rc == 0) {
        rc = api_patch_json(&job, &patch, a, err);
    }
    if (rc == 0) {
        rc = job_check_run_rule("/jobs/validate", &q, &patch, err);
    }
    admission_request_fini(&q);
    return rc;
}

int job_check(struct job_pass *p, struct hk_err *err)
{
    const struct json *spec = json_get(p->root, "spec");
    const uint64_t said = spec ? json_hash(spec) | 1 : 1;
    int rc;

    if (p->mem->checked == said) {
        return 0;
    }
    rc = job_check_run_admission(p->root, p->t->mem, err);
    if (rc == 0) {
        p->mem->checked = said;
    }
    return rc;
}
