// SPDX-License-Identifier: Apache-2.0
// The garbage collector of Jobs: a finished job with ttlSecondsAfterFinished is deleted that long
// after it finished. What the job made goes with it, by its owner references.
#include "controllers/kinds.h"
#include "controllers/table.h"

#define SECOND_NS ((int64_t)1000000000)

/* An Aborted job may be resumed, so it only counts as finished where that was asked for. */
static bool is_over(const struct ctl *c, const struct job_digest *d)
{
    return !d->terminating && (api_job_is_finished(d->phase) ||
                               (d->phase == API_JOB_ABORTED && ctl_conf(c)->gc_aborted));
}

static void job_changed(struct ctl *c, const struct mirror_change *ch)
{
    if (ch->now && is_over(c, ch->now)) {
        ctl_add(c, mirror_ns(ch->mirror, ch->row), mirror_name(ch->mirror, ch->row));
    }
}

/* When the job is to go; INT64_MAX never. A job that does not say when it finished stays until it
 * does, which is a change that brings us back. */
static int64_t expiry_ns(const struct api_job *job)
{
    if (!job->has_ttl || job->last_transition_ns == 0) {
        return INT64_MAX;
    }
    return job->last_transition_ns + job->ttl_s * SECOND_NS;
}

static void gc_reconcile(struct ctl *c, struct turn *t)
{
    struct mirror *jobs = ctl_mirror(c, API_JOB);
    const uint32_t row = mirror_find(jobs, t->ns, t->name);
    struct api_job job;
    struct json root;
    int64_t at_ns;

    if (row == HK_NONE || !is_over(c, mirror_digest(jobs, row))) {
        return;
    }
    root = mirror_read(jobs, row, t->mem);
    if (api_job_decode(&root, t->mem, &job, NULL) < 0) {
        return; /* the job controller tells */
    }
    at_ns = expiry_ns(&job);
    if (at_ns <= t->now_ns) {
        turn_delete(t, api_kind(API_JOB), t->ns, t->name, job.meta.uid, PORT_PROPAGATE_FOREGROUND);
    } else if (at_ns != INT64_MAX) {
        turn_again_at(t, at_ns);
    }
}

static const struct ctl_watch watches[] = {{&mirror_jobs, job_changed}, {0}};

const struct ctl_type ctl_gc = {
    .name = "gc-controller",
    .about = "deletes Jobs some time after they finished",
    .watches = watches,
    .reconcile = gc_reconcile,
};
