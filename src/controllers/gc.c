// SPDX-License-Identifier: Apache-2.0
// The garbage collector of Jobs: deletes a finished job when its ttlSecondsAfterFinished has
// passed. Owner references then remove the objects of the job.
#include "controllers/kinds.h"
#include "controllers/pass.h"
#include "controllers/table.h"

/* An Aborted job may be resumed, so it counts as finished only if the configuration says so. */
static bool gc_is_job_over(const struct ctl *c, const struct job_digest *d)
{
    return !d->terminating && (api_job_is_finished(d->phase) ||
                               (d->phase == API_JOB_ABORTED && ctl_conf(c)->gc_aborted));
}

static void gc_on_job_change(struct ctl *c, const struct mirror_change *ch)
{
    if (ch->now && gc_is_job_over(c, ch->now)) {
        ctl_add(c, mirror_ns(ch->mirror, ch->row), mirror_name(ch->mirror, ch->row));
    }
}

/* When to delete the job; INT64_MAX never. A job without a finish time stays; setting that time is
 * a change that queues the job again. */
static int64_t expiry_ns(const struct api_job *job)
{
    if (!job->has_ttl || job->last_transition_ns == 0) {
        return INT64_MAX;
    }
    return job->last_transition_ns + hk_seconds_ns(job->ttl_s);
}

static void gc_reconcile(struct ctl *c, struct pass *t)
{
    struct mirror *jobs = ctl_mirror(c, API_JOB);
    const uint32_t row = mirror_find(jobs, t->ns, t->name);
    struct api_job job;
    struct json root;
    int64_t at_ns;

    if (row == HK_NONE || !gc_is_job_over(c, mirror_digest(jobs, row))) {
        return;
    }
    root = mirror_read(jobs, row, t->mem);
    if (api_job_decode(&root, t->mem, &job, NULL) < 0) {
        return; /* the job controller reports the error */
    }
    at_ns = expiry_ns(&job);
    if (at_ns <= t->now_ns) {
        pass_delete(t, api_kind(API_JOB), t->ns, t->name, job.meta.uid, PORT_PROPAGATE_FOREGROUND);
    } else if (at_ns != INT64_MAX) {
        pass_again_at(t, at_ns);
    }
}

static const struct ctl_watch watches[] = {{&mirror_jobs, gc_on_job_change}, {0}};

const struct ctl_type ctl_gc = {
    .name = "gc-controller",
    .about = "deletes Jobs some time after they finished",
    .watches = watches,
    .reconcile = gc_reconcile,
};
