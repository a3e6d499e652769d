// SPDX-License-Identifier: Apache-2.0
// The list of objects that ingest refused, each with the reason. A row goes when a later version of
// its object is accepted or deleted.
#include "scheduler/ingest_priv.h"

static void problem_fini(struct ingest_problem *p)
{
    hk_free(p->object);
    hk_free(p->file);
    hk_free(p->text);
}

static uint64_t problem_key(const struct ingest *in, const struct api_kind *kind,
                            struct hk_str object)
{
    return PAIR_KEY(kind->id, hk_intern_find(&in->objects, object));
}

void ingest_problem_clear(struct ingest *in, const struct api_kind *kind, struct hk_str object)
{
    if (in->problems.len == 0) {
        return;
    }
    const uint64_t key = problem_key(in, kind, object);
    const uint32_t at = hk_map_get(&in->problem_at, key);

    if (at == HK_NONE) {
        return;
    }
    problem_fini(&in->problems.at[at]);
    hk_map_del(&in->problem_at, key);
    hk_intern_drop(&in->objects, (uint32_t)key);
    hk_vec_swap_remove(&in->problems, at);
    if (at < in->problems.len) {
        const struct ingest_problem *moved = &in->problems.at[at];
        hk_map_put(&in->problem_at, problem_key(in, api_kind(moved->kind), hk_str(moved->object)),
                   at);
    }
}

void ingest_problem_set(struct ingest *in, const struct api_kind *kind, struct hk_str object,
                        const char *file, uint32_t line, const char *text)
{
    ingest_problem_clear(in, kind, object);
    hk_map_put(&in->problem_at, PAIR_KEY(kind->id, hk_intern_hold(&in->objects, object)),
               in->problems.len);
    hk_vec_push(&in->problems, ((struct ingest_problem){
                                   .kind = kind->id,
                                   .object = hk_strndup(object.s, object.n),
                                   .file = file ? hk_strdup(file) : NULL,
                                   .line = line,
                                   .text = hk_strdup(text),
                               }));
}

const struct ingest_problem *ingest_problems(const struct ingest *in, uint32_t *ret_n)
{
    *ret_n = in->problems.len;
    return in->problems.at;
}

void ingest_problem_fini(struct ingest *in)
{
    for (uint32_t k = 0; k < in->problems.len; k++) {
        problem_fini(&in->problems.at[k]);
    }
    hk_vec_fini(&in->problems);
    hk_map_fini(&in->problem_at);
    hk_intern_fini(&in->objects);
}
