// SPDX-License-Identifier: Apache-2.0
// Private to the files of scheduler/model.
#pragma once

#include "scheduler/model/model.h"

#define PAIR_KEY(hi, lo) (((uint64_t)(hi) << 32) | (lo))

/* Returns a new or reused row of a TABLE, zeroed. */
#define TABLE_ROW(t)                                                                               \
    ({                                                                                             \
        uint32_t row_;                                                                             \
        if ((t)->free.len > 0) {                                                                   \
            row_ = hk_vec_pop(&(t)->free);                                                         \
        } else {                                                                                   \
            hk_vec_reserve(t, (t)->len + 1);                                                       \
            row_ = (t)->len++;                                                                     \
        }                                                                                          \
        memset(&(t)->at[row_], 0, sizeof((t)->at[row_]));                                          \
        row_;                                                                                      \
    })

/* Allocates missing columns, one per dimension in dims, each nodes.cap long. */
void node_columns(struct model *m);
void node_table_fini(struct node_table *t);
/* Recomputes the row's class. */
void node_reclass(struct model *m, node_id n);
/* Frees the row if it is a placeholder without tasks. */
void node_drop_if_idle(struct model *m, node_id n);

/* Adds (sign 1) or removes (-1) a task in a state to the amounts of a node. */
void node_books(struct model *m, const struct shape *s, enum task_status status, node_id n,
                int sign);
/* Adds or removes the task in the node's Kubernetes view. */
void node_view(struct model *m, task_id t, node_id n, int sign);

/* The job row for a task's group; creates one without PodGroup if needed. */
job_id job_need(struct model *m, uint32_t ns, uint32_t name);
/* Add or remove a task's amounts in its job, sub-job, role and queue; task.status must be
 * current. */
void job_task_add(struct model *m, task_id t);
void job_task_remove(struct model *m, task_id t);
/* Records a status change of a task that stays in the job. The row shows the new status; `from` is
 * the old one, and was_placed says whether the task had a node then. */
void job_task_change(struct model *m, task_id t, enum task_status from, bool was_placed);
/* Frees the row when neither a PodGroup nor a task needs it. */
void job_drop_if_idle(struct model *m, job_id j);
void job_mark_dirty(struct model *m, job_id j);
/* Adds the job to model.active or removes it, as its state requires. */
void job_refresh_active(struct model *m, job_id j);
void job_restride(struct model *m, uint32_t stride);
/* Wakes jobs that wait for room in a queue. */
void job_wake_queue(struct model *m);
/* Over all that the PodGroup says. */
uint64_t job_desc_hash(const struct job_desc *d);

/* Whether a task in that state counts in its node's amounts. */
static inline bool status_on_node(enum task_status s)
{
    return s != TASK_PENDING && s != TASK_SUCCEEDED && s != TASK_FAILED;
}
void job_fini(struct job *j);
void job_set_queue(struct model *m, job_id job, queue_id q);
/* The queue whose books the job's tasks stand in. */
static inline queue_id job_books(const struct job *j)
{
    return j->has_pg ? j->queue : j->held_in;
}
/* A pod on a node says which queue it was bound in. Counts for a job of which nothing else is known:
 * its PodGroup was gone before this process started. */
void job_learn_queue(struct model *m, job_id job, struct hk_str queue);
/* A queue appeared: jobs that name it enter it. */
void queue_attach_jobs(struct model *m, queue_id q);
/* A queue disappears: its jobs wait without one, and what it holds is on nobody's books. */
void queue_detach_jobs(struct model *m, queue_id q);
void quota_fini(struct quota *q);
void pdb_fini(struct pdb *p);
void hyper_fini(struct hyper *h);
/* ---- strings.c: call f for every string id in the row ---- */

struct node_face {
    struct labels labels;
    struct taint *taints;
    uint32_t ntaint;
};
static inline struct node_face node_face(const struct model *m, node_id n)
{
    return (struct node_face){m->nodes.labels[n.i], m->nodes.taints[n.i], m->nodes.ntaint[n.i]};
}
void face_strings(const struct node_face *n, struct hk_intern *t, string_fn *f);
void images_strings(const struct image_vec *v, struct hk_intern *t, string_fn *f);
void class_strings(const struct class_row *c, struct hk_intern *t, string_fn *f);
void ident_strings(const struct ident *i, struct hk_intern *t, string_fn *f);
void task_strings(const struct task *task, struct hk_intern *t, string_fn *f);
/* Only the strings from the PodGroup's description. */
void job_spec_strings(const struct job *j, struct hk_intern *t, string_fn *f);
void job_strings(const struct job *j, struct hk_intern *t, string_fn *f);
void queue_strings(const struct queue *q, struct hk_intern *t, string_fn *f);
void hyper_strings(const struct hyper *h, struct hk_intern *t, string_fn *f);
void quota_strings(const struct quota *q, struct hk_intern *t, string_fn *f);
void pdb_strings(const struct pdb *p, struct hk_intern *t, string_fn *f);
/* Includes unused rows: they are zero and refer only to the empty string. */
#define ROWS_STRINGS(table, row_strings, t, f)                                                     \
    for (uint32_t i_ = 0; i_ < (table)->len; i_++) {                                               \
        row_strings(&(table)->at[i_], t, f);                                                       \
    }

void ident_ref(struct model *m, ident_id i);
void ident_unref(struct model *m, ident_id i);
