// SPDX-License-Identifier: Apache-2.0
// A job that no admission has looked at, looked at again by admission's own rules. Such a job is
// left as it is until somebody mends it.
#include "admission/volcano.h"
#include "api/patch.h"
#include "controllers/job_priv.h"

static int review(const char *path, struct admission_request *q, struct json *ret_patch,
                  struct hk_err *err)
{
    const int rc = volcano_review(volcano_rule_find(hk_str(path)), q, NULL, ret_patch);

    return rc < 0 ? hk_fail(err, HK_EINVAL, "%s", q->denial) : 0;
}

/* Judged as admission would have stored it, defaults filled in. Without anything to look up the
 * state of the queue does not count: it may have changed since the job was let in. */
static int check(const struct json *root, struct hk_arena *a, struct hk_err *err)
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
    int rc = review("/jobs/mutate", &q, &patch, err);

    rc = rc < 0 ? rc : api_patch_json(&job, &patch, a, err);
    rc = rc < 0 ? rc : review("/jobs/validate", &q, &patch, err);
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
    rc = check(p->root, p->t->mem, err);
    if (rc == 0) {
        p->mem->checked = said;
    }
    return rc;
}
