// SPDX-License-Identifier: Apache-2.0
// The status of our own NodeShard: the nodes in use, so that other schedulers avoid them and a
// scheduler that waits for a node learns when it is released (docs/reference/scheduler.md section
// 2.8).
#include "scheduler/emit_priv.h"

static void put_names(struct emit *e, struct json *status, const char *key, const uint32_t *names,
                      uint32_t n)
{
    struct json *list = json_set_array(status, &e->mem, key);

    for (uint32_t k = 0; k < n; k++) {
        json_push(list, &e->mem, json_make_str(emit_str(e, names[k])));
    }
}

/* The nodes in use are a subset of the desired ones, so nodesToRemove is always empty. */
void emit_shard(struct emit *e, const uint32_t *in_use, uint32_t nin_use, const uint32_t *to_add,
                uint32_t nto_add)
{
    struct json status = json_make_object();
    struct shard_known *k = &e->known->shard;

    put_names(e, &status, KNOWN_IN_USE, in_use, nin_use);
    put_names(e, &status, KNOWN_TO_ADD, to_add, nto_add);
    put_names(e, &status, KNOWN_TO_REMOVE, NULL, 0);
    hk_buf_clear(&e->text);
    json_write(&status, &e->text);
    hk_arena_clear(&e->mem);
    const uint64_t said = known_text_hash(hk_buf_str(&e->text));
    if (k->said == said) {
        return;
    }
    k->said = said;
    hk_free(k->text);
    k->text = hk_strndup(e->text.data, e->text.len);
    emit_turn_ask(e, &k->turn, (struct write){.kind = WRITE_SHARD, .about = API_NODESHARD});
}

bool emit_shard_request(struct emit *e, struct port_request *req, struct json *body)
{
    struct shard_known *k = &e->known->shard;
    struct json status;

    if (!emit_turn_begin(&k->turn)) {
        return false;
    }
    req->name = e->o.shard;
    req->verb = PORT_PATCH;
    req->patch = PORT_PATCH_MERGE;
    req->subresource = "status";
    const int rc = json_parse(hk_str(k->text), 0, &e->mem, &status, NULL);
    hk_assert(rc == 0);
    json_set_time(&status, &e->mem, "lastUpdateTime", e->o.clock->wall_ns(e->o.clock));
    json_set(body, &e->mem, "status", status);
    return true;
}

void emit_shard_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    struct shard_known *k = &e->known->shard;

    k->rv = m->rc == 0 ? m->rv : k->rv;
    if (!emit_turn_end(e, &k->turn, w, m)) {
        k->said = 0;
    }
}
