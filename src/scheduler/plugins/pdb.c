// SPDX-License-Identifier: Apache-2.0
// pdb: keeps evictions within PodDisruptionBudgets. Every call counts the budgets from the start,
// over the candidates in the given order.
#include "scheduler/plugins/victims.h"

/* A selector without requirements matches nothing here, as in kube-scheduler. */
static bool pdb_plugin_selects_task(const struct model *m, const struct pdb *p,
                                    const struct task *t)
{
    return p->used && p->ns == t->ns && !p->sel.nothing && p->sel.n > 0 &&
           label_sel_match(&p->sel, ident_labels(m, t->ident), &m->str);
}

static bool charged(const struct pdb *p, uint32_t pod)
{
    for (uint32_t k = 0; k < p->disrupted.len; k++) {
        if (p->disrupted.at[k] == pod) {
            return true;
        }
    }
    return false;
}

/* Charges every budget that covers the task, even when one of them is used up. */
static bool within_budgets(const struct model *m, const struct task *t, int64_t *allowed)
{
    bool within = true;

    for (uint32_t k = 0; k < m->pdbs.len; k++) {
        const struct pdb *p = &m->pdbs.at[k];

        if (pdb_plugin_selects_task(m, p, t) && !charged(p, t->name)) {
            within &= --allowed[k] >= 0;
        }
    }
    return within;
}

static void pdb_victims(struct session *ssn, void *self, struct victims *v)
{
    const struct model *m = ssn->m;
    const struct hk_arena_mark mark = hk_arena_mark(ssn->mem);
    int64_t *allowed = hk_arena_array(ssn->mem, m->pdbs.len, sizeof(*allowed));

    for (uint32_t k = 0; k < m->pdbs.len; k++) {
        allowed[k] = m->pdbs.at[k].allowed;
    }
    for (uint32_t k = 0; k < v->n; k++) {
        if (within_budgets(m, model_task(m, v->in[k]), allowed)) {
            victims_keep(v, v->in[k]);
        }
    }
    hk_arena_rewind(ssn->mem, mark);
}

static enum vote pdb_spare(struct session *ssn, void *self, task_id evictor, struct victims *v)
{
    pdb_victims(ssn, self, v);
    return PERMIT;
}

const struct plugin plugin_pdb = {
    .name = "pdb",
    .about = "keep evictions within PodDisruptionBudgets",
    .preemptable = pdb_spare,
    .reclaimable = pdb_spare,
    .victim_tasks = pdb_victims,
};
