// SPDX-License-Identifier: Apache-2.0
// shuffle: evicts running pods that plugins (rescheduling, tdm, pdb) want elsewhere. Later cycles
// place their replacements.

#include "scheduler/session.h"
#include "scheduler/stmt.h"

static uint32_t running_tasks(struct session *ssn, task_id **ret)
{
    const struct model *m = ssn->m;
    task_id *at = hk_arena_array(ssn->mem, m->tasks.len, sizeof(at[0]));
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->tasks.len; i++) {
        const struct task *t = &m->tasks.at[i];
        if (!t->used || t->status != TASK_RUNNING || id_none(t->job)) {
            continue;
        }
        const struct job *job = model_job(m, t->job);
        if (job->has_pg && !id_none(job->queue)) {
            at[n++].i = i;
        }
    }
    *ret = at;
    return n;
}

static void shuffle_run(struct session *ssn, const void *args)
{
    task_id *running, *victims;

    if (ssn->hooks[HOOK_VICTIM_TASKS].n == 0) {
        return;
    }
    const uint32_t nrunning = running_tasks(ssn, &running);
    const uint32_t n = hooks_victim_tasks(ssn, running, nrunning, &victims);
    const stmt_mark_t mark = stmt_mark(ssn);

    for (uint32_t i = 0; i < n; i++) {
        if (model_task(ssn->m, victims[i])->status == TASK_RUNNING) {
            stmt_evict(ssn, victims[i], "shuffle", NO_JOB);
        }
    }
    stmt_commit(ssn, mark);
}

const struct action action_shuffle = {
    .name = "shuffle",
    .about = "evict the running pods that plugins want elsewhere",
    .evicts = true,
    .run = shuffle_run,
};
