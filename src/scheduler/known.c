// SPDX-License-Identifier: Apache-2.0
// Rows of what the API shows, and the hashes by which ingest and emit compare it.
#include "scheduler/known.h"

const char *const known_cond_types[COND_N] = {
    [COND_UNSCHEDULABLE] = "Unschedulable",
    [COND_SCHEDULED] = "Scheduled",
};

/* Grows a column of zeroed rows to hold row i. */
#define KNOWN_ROW(vec, i)                                                                          \
    while ((vec)->len <= (i)) {                                                                    \
        hk_vec_push(vec, ((__typeof__((vec)->at[0])){0}));                                         \
    }

void known_set_id(struct known *k, uint32_t *id, uint32_t to)
{
    hk_intern_keep(&k->m->str, to);
    hk_intern_drop(&k->m->str, *id);
    *id = to;
}

void known_set_message(struct group_known *g, struct hk_str s)
{
    hk_free(g->message);
    g->message = s.n > 0 ? hk_strndup(s.s, s.n) : NULL;
}

/* ---- rows ---- */

static void known_clear_pod(struct known *k, struct pod_known *p)
{
    known_set_id(k, &p->uid, 0);
    known_set_id(k, &p->nominated, 0);
    *p = (struct pod_known){0};
}

struct pod_known *known_pod(struct known *k, task_id t)
{
    const uint32_t uid = model_task(k->m, t)->uid;
    struct pod_known *p;

    KNOWN_ROW(&k->pods, t.i);
    p = &k->pods.at[t.i];
    if (p->uid != uid) {
        known_clear_pod(k, p);
        known_set_id(k, &p->uid, uid);
    }
    return p;
}

static void known_clear_group(struct known *k, struct group_known *g)
{
    known_set_id(k, &g->uid, 0);
    hk_free(g->others);
    hk_free(g->message);
    hk_free(g->warning);
    *g = (struct group_known){0};
}

struct group_known *known_group(struct known *k, job_id j)
{
    const uint32_t uid = model_job(k->m, j)->uid;
    struct group_known *g;

    KNOWN_ROW(&k->groups, j.i);
    g = &k->groups.at[j.i];
    if (g->uid != uid) {
        known_clear_group(k, g);
        known_set_id(k, &g->uid, uid);
    }
    return g;
}

bool known_group_is_ahead(const struct known *k, job_id j, uint64_t rv)
{
    const struct group_known *g;

    if (j.i >= k->groups.len || k->groups.at[j.i].uid != model_job(k->m, j)->uid) {
        return false;
    }
    g = &k->groups.at[j.i];
    return known_turn_is_open(&g->turn) || rv < g->rv;
}

struct queue_known *known_queue(struct known *k, queue_id q)
{
    const uint32_t name = model_queue(k->m, q)->name;
    struct queue_known *row;

    KNOWN_ROW(&k->queues, q.i);
    row = &k->queues.at[q.i];
    if (row->name != name) {
        known_set_id(k, &row->name, 0);
        *row = (struct queue_known){0};
        known_set_id(k, &row->name, name);
    }
    return row;
}

void known_init(struct known *k, struct model *m)
{
    *k = (struct known){.m = m};
}

void known_fini(struct known *k)
{
    for (uint32_t i = 0; i < k->pods.len; i++) {
        known_clear_pod(k, &k->pods.at[i]);
    }
    for (uint32_t i = 0; i < k->groups.len; i++) {
        known_clear_group(k, &k->groups.at[i]);
    }
    for (uint32_t i = 0; i < k->queues.len; i++) {
        known_set_id(k, &k->queues.at[i].name, 0);
    }
    hk_vec_fini(&k->pods);
    hk_vec_fini(&k->groups);
    hk_vec_fini(&k->queues);
    hk_free(k->shard.text);
    *k = (struct known){0};
}

/* ---- hashes: 0 means unknown, so no hash is 0 ---- */

uint64_t known_hash(uint64_t h, struct hk_str s)
{
    return hk_hash(s.n > 0 ? s.s : "", s.n, hk_mix(h * 31 + s.n + 1));
}

uint64_t known_text_hash(struct hk_str s)
{
    return known_hash(1, s) | 1;
}

uint64_t known_reason_hash(struct hk_str reason, struct hk_str message)
{
    return known_hash(known_hash(1, reason), message) | 1;
}

uint64_t known_condition_hash(struct hk_str status, struct hk_str reason, struct hk_str message)
{
    return known_hash(known_hash(known_hash(1, status), reason), message) | 1;
}

bool known_amount_is_shown(uint32_t dim, int64_t v)
{
    return v != 0 || dim == DIM_CPU || dim == DIM_MEM;
}

uint64_t known_amounts_hash(const struct model *m, const int64_t *v)
{
    uint64_t h = 1;

    for (uint32_t d = 0; d < m->dims.n; d++) {
        if (known_amount_is_shown(d, v[d])) {
            h = hk_mix(hk_mix(h * 31 + d) + (uint64_t)v[d]);
        }
    }
    return h | 1;
}

void known_transition_id(uint64_t run, uint64_t session, uint64_t ret[2])
{
    ret[0] = hk_mix(run + session * 0x9e3779b97f4a7c15ULL);
    ret[1] = hk_mix(ret[0] ^ session);
    ret[0] = (ret[0] & ~0xf000ULL) | 0x4000;          /* version 4 */
    ret[1] = (ret[1] & ~(3ULL << 62)) | (2ULL << 62); /* its variant */
}
