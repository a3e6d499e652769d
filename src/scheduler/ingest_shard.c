// SPDX-License-Identifier: Apache-2.0
// NodeShards: several schedulers divide the nodes of a cluster. This scheduler may use the nodes
// that its shard desires, except those another shard still uses (docs/reference/scheduler.md
// section 2.8). That depends on all shards and nodes, so it is computed at settle.
#include "scheduler/ingest_priv.h"

#include "api/nodeshard.h"

struct shard {
    uint32_t name;
    HK_VEC(uint32_t) desired, in_use; /* names of nodes */
};

static void shard_free(struct shard *s)
{
    hk_vec_fini(&s->desired);
    hk_vec_fini(&s->in_use);
    hk_free(s);
}

static void shard_strings(const struct shard *s, struct hk_intern *t, string_fn *f)
{
    f(t, s->name);
    for (uint32_t k = 0; k < s->desired.len; k++) {
        f(t, s->desired.at[k]);
    }
    for (uint32_t k = 0; k < s->in_use.len; k++) {
        f(t, s->in_use.at[k]);
    }
}

static struct shard *shard_find(const struct ingest *in, uint32_t name)
{
    const uint32_t at = hk_map_get(&in->shard_at, name);

    return at == HK_NONE ? NULL : in->shards.at[at];
}

int ingest_shard_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_nodeshard from;
    const int rc = api_nodeshard_decode(doc, &in->mem, &from, err);

    if (rc < 0) {
        return rc;
    }
    const uint32_t name = ingest_str(in, from.meta.name);
    struct shard *s = shard_find(in, name);
    if (s) {
        shard_strings(s, &in->m->str, hk_intern_drop);
    } else {
        s = hk_zalloc(sizeof(*s));
        s->name = name;
        hk_map_put(&in->shard_at, name, in->shards.len);
        hk_vec_push(&in->shards, s);
    }
    hk_vec_clear(&s->desired);
    hk_vec_clear(&s->in_use);
    for (uint32_t k = 0; k < from.nodes_desired.len; k++) {
        hk_vec_push(&s->desired, ingest_str(in, from.nodes_desired.at[k]));
    }
    for (uint32_t k = 0; k < from.nodes_in_use.len; k++) {
        hk_vec_push(&s->in_use, ingest_str(in, from.nodes_in_use.at[k]));
    }
    shard_strings(s, &in->m->str, hk_intern_keep);
    in->shards_changed = true;
    return 0;
}

void ingest_shard_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    const uint32_t id = ingest_str(in, name), at = hk_map_get(&in->shard_at, id);

    if (at == HK_NONE) {
        return;
    }
    shard_strings(in->shards.at[at], &in->m->str, hk_intern_drop);
    shard_free(in->shards.at[at]);
    hk_map_del(&in->shard_at, id);
    hk_vec_swap_remove(&in->shards, at);
    if (at < in->shards.len) {
        hk_map_put(&in->shard_at, in->shards.at[at]->name, at);
    }
    in->shards_changed = true;
}

void ingest_own_shard(struct ingest *in, struct hk_str name)
{
    in->shard_name = hk_intern(&in->m->str, name);
    in->shards_changed = true;
}

/* ---- settling ---- */

/* Splits the desired nodes into those usable now and those to add later. */
static void share_out(struct ingest *in, const struct shard *own, const struct hk_map *usable)
{
    hk_vec_clear(&in->shard_in_use);
    hk_vec_clear(&in->shard_to_add);
    for (uint32_t k = 0; k < own->desired.len; k++) {
        if (hk_map_get(usable, own->desired.at[k]) != HK_NONE) {
            hk_vec_push(&in->shard_in_use, own->desired.at[k]);
        } else {
            hk_vec_push(&in->shard_to_add, own->desired.at[k]);
        }
    }
    in->shard_version++;
}

static void ingest_shard_apply_own(struct ingest *in, const struct shard *own)
{
    struct model *m = in->m;
    struct hk_map usable = {0};

    for (uint32_t k = 0; k < own->desired.len; k++) {
        hk_map_put(&usable, own->desired.at[k], 1);
    }
    for (uint32_t i = 0; i < in->shards.len; i++) {
        const struct shard *s = in->shards.at[i];
        for (uint32_t k = 0; s != own && k < s->in_use.len; k++) {
            hk_map_del(&usable, s->in_use.at[k]);
        }
    }
    for (uint32_t i = 0; i < m->nodes.len; i++) {
        if (m->nodes.flags[i] & NODE_KNOWN) {
            model_node_shard(m, (node_id){i}, hk_map_get(&usable, m->nodes.name[i]) != HK_NONE);
        }
    }
    share_out(in, own, &usable);
    hk_map_fini(&usable);
}

/* If this scheduler's shard does not exist, the current nodes stay in use. */
void ingest_shard_settle(struct ingest *in)
{
    const struct api_kind *kind = api_kind(API_NODESHARD);

    if (!in->shard_name || !in->shards_changed) {
        return;
    }
    const struct shard *own = shard_find(in, in->shard_name);
    if (own) {
        ingest_shard_apply_own(in, own);
    } else {
        ingest_problem_set(in, kind, model_str(in->m, in->shard_name), NULL, 0,
                           "this scheduler's node shard does not exist");
    }
    in->shards_changed = false;
}

bool ingest_shard(const struct ingest *in, struct ingest_shard *ret)
{
    if (in->shard_version == 0 || !shard_find(in, in->shard_name)) {
        return false;
    }
    *ret = (struct ingest_shard){
        .in_use = in->shard_in_use.at,
        .nin_use = in->shard_in_use.len,
        .to_add = in->shard_to_add.at,
        .nto_add = in->shard_to_add.len,
        .version = in->shard_version,
    };
    return true;
}

void ingest_shard_fini(struct ingest *in)
{
    hk_vec_fini(&in->shard_in_use);
    hk_vec_fini(&in->shard_to_add);
    for (uint32_t k = 0; k < in->shards.len; k++) {
        shard_free(in->shards.at[k]);
    }
    hk_vec_fini(&in->shards);
    hk_map_fini(&in->shard_at);
}
