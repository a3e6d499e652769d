// SPDX-License-Identifier: Apache-2.0
// sla: limits how long a job waits. After its deadline the job is admitted, and keeps what it holds
// while it waits for more; before that, the earlier deadline goes first.
#include "scheduler/session.h"

struct sla {
    int64_t waiting_ns; /* for jobs without a limit of their own; <= 0 none */
};

static const struct opt sla_opts[] = {
    OPT(OPT_DURATION, struct sla, waiting_ns, "sla-waiting-time", NULL,
        "longest wait of jobs without an annotation of their own"),
};

/* 0: no limit. */
static int64_t waiting_limit(const struct sla *s, const struct job *j)
{
    const int64_t limit = j->waiting_ns > 0 ? j->waiting_ns : s->waiting_ns;

    return HK_MAX(limit, 0);
}

/* INT64_MAX: no deadline. */
static int64_t sla_deadline_ns(const struct sla *s, const struct job *j)
{
    const int64_t limit = waiting_limit(s, j);
    int64_t at;

    if (limit == 0 || __builtin_add_overflow(j->creation_ns, limit, &at)) {
        return INT64_MAX;
    }
    return at;
}

static int sla_job_order(struct session *ssn, void *self, job_id a, job_id b)
{
    const int64_t l = sla_deadline_ns(self, model_job(ssn->m, a));
    const int64_t r = sla_deadline_ns(self, model_job(ssn->m, b));

    return (l > r) - (l < r);
}

static enum vote sla_overdue(struct session *ssn, void *self, job_id job)
{
    return ssn->now_ns >= sla_deadline_ns(self, model_job(ssn->m, job)) ? PERMIT : ABSTAIN;
}

static int64_t sla_job_due(struct session *ssn, void *self, job_id job)
{
    return sla_deadline_ns(self, model_job(ssn->m, job));
}

const struct plugin plugin_sla = {
    .name = "sla",
    .about = "admit a job at the latest when its waiting time is over",
    .state_size = sizeof(struct sla),
    .opts = sla_opts,
    .nopt = HK_LEN(sla_opts),
    .job_order = sla_job_order,
    .job_enqueueable = sla_overdue,
    .job_pipelined = sla_overdue,
    .job_due = sla_job_due,
};
