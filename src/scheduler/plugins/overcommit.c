// SPDX-License-Identifier: Apache-2.0
// overcommit: admits PodGroups while the minimum of all admitted ones stays below the cluster's
// size times a factor, so that waiting jobs do not flood the cluster with pods it cannot run.
#include "scheduler/plugins/ledger.h"

#define OVERCOMMIT_FACTOR "1.2"

struct overcommit {
    double factor;
    double idle[DIM_MAX];
    int64_t inqueue[DIM_MAX];
    struct names_text last;
};

static const struct opt overcommit_opts[] = {
    OPT(OPT_FLOAT, struct overcommit, factor, "overcommit-factor", OVERCOMMIT_FACTOR,
        "how many times its size the cluster may be promised; below 1 means " OVERCOMMIT_FACTOR),
};

static void overcommit_open(struct session *ssn, void *self)
{
    struct overcommit *o = self;
    const struct model *m = ssn->m;
    const double factor = o->factor >= 1 ? o->factor : 1.2;

    for (uint32_t d = 0; d < m->dims.n; d++) {
        o->idle[d] = (double)m->total[d] * factor - (double)m->used_total[d];
        o->inqueue[d] = m->over_inqueue[d];
    }
}

static enum vote overcommit_job_enqueueable(struct session *ssn, void *self, job_id job)
{
    struct overcommit *o = self;
    const int64_t *min = job_vec(ssn->m, job, JV_MINRES);
    uint64_t over = 0;

    for (uint32_t d = 0; d < ssn->m->dims.n; d++) {
        if (min[d] > 0 && d != DIM_PODS && (double)(o->inqueue[d] + min[d]) > o->idle[d]) {
            over |= 1ULL << d;
        }
    }
    if (over == 0) {
        return PERMIT;
    }
    ssn->job_msg[job.i] =
        names_text(ssn, &o->last, "resource in cluster is overused", "overused", over);
    return REJECT;
}

static void overcommit_job_enqueued(struct session *ssn, void *self, job_id job)
{
    struct overcommit *o = self;

    ledger_promise(ssn->m, job, o->inqueue);
}

const struct plugin plugin_overcommit = {
    .name = "overcommit",
    .about = "admit jobs up to a multiple of the cluster's size",
    .state_size = sizeof(struct overcommit),
    .opts = overcommit_opts,
    .nopt = HK_LEN(overcommit_opts),
    .open = overcommit_open,
    .job_enqueueable = overcommit_job_enqueueable,
    .job_enqueued = overcommit_job_enqueued,
};
