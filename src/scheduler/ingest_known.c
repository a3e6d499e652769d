// SPDX-License-Identifier: Apache-2.0
// Stores what events say of our own output (known.h): conditions and nominated nodes of pods,
// statuses of PodGroups, queues and our NodeShard. An event that may be older than a write of ours
// changes nothing. Without a `known` (files, simulations), nothing is stored.
#include "scheduler/ingest_priv.h"
#include "scheduler/known.h"

#include "api/podgroup.h"
#include "api/queue.h"

#include <stdio.h>

/* 0 for an object without one, as in a file. */
static uint64_t read_revision(struct hk_str text)
{
    int64_t rv = 0;

    return hk_str_int(text, &rv) && rv > 0 ? (uint64_t)rv : 0;
}

/* ---- pods ---- */

static void ingest_known_pod(struct ingest *in, const struct json *doc)
{
    const struct json *meta = json_get(doc, "metadata"), *list = json_at(doc, "status.conditions");
    const task_id t = model_task_find(in->m, ingest_ns(json_str_field(meta, "namespace")),
                                      json_str_field(meta, "name"));
    struct pod_known *p;

    if (id_none(t)) {
        return;
    }
    p = known_pod(in->known, t);
    in->known->volume_events += p->prebind != NULL;
    if (p->waiting > 0) {
        return;
    }
    p->said = 0;
    p->is_false = false;
    known_set_id(in->known, &p->nominated,
                 ingest_str(in, json_str_at(doc, "status.nominatedNodeName")));
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct json *c = &list->items[i];
        if (hk_str_is(json_str_field(c, "type"), "PodScheduled")) {
            const struct hk_str status = json_str_field(c, "status");
            p->said = known_condition_hash(status, json_str_field(c, "reason"),
                                           json_str_field(c, "message"));
            p->is_false = hk_str_is(status, "False");
        }
    }
}

/* ---- PodGroups ---- */

/* A text that is not a UUID gets one derived from its hash. */
static void parse_transition_id(struct hk_str s, uint64_t ret[2])
{
    unsigned a, b, c, d;
    unsigned long long f;
    char text[40] = "";

    if (s.n == 36) {
        memcpy(text, s.s, 36);
    }
    if (sscanf(text, "%8x-%4x-%4x-%4x-%12llx", &a, &b, &c, &d, &f) == 5) {
        ret[0] = (uint64_t)a << 32 | (uint64_t)b << 16 | c;
        ret[1] = (uint64_t)d << 48 | f;
    } else {
        known_transition_id(known_hash(1, s), 0, ret);
    }
}

/* Remembers conditions of other writers, so that emit can write them back unchanged. */
static void store_other_conditions(struct ingest *in, struct group_known *g,
                                   const struct json *list)
{
    bool any = false;

    hk_buf_clear(&in->key);
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct hk_str type = json_str_field(&list->items[i], "type");
        if (!hk_str_is(type, known_cond_types[COND_UNSCHEDULABLE]) &&
            !hk_str_is(type, known_cond_types[COND_SCHEDULED])) {
            hk_buf_addc(&in->key, any ? ',' : '[');
            json_write(&list->items[i], &in->key);
            any = true;
        }
    }
    hk_free(g->others);
    g->others = NULL;
    if (any) {
        hk_buf_addc(&in->key, ']');
        g->others = hk_strdup(in->key.data);
    }
}

static void store_condition(struct group_known *g, enum cond_type type,
                            const struct api_conditions *list)
{
    const struct api_condition *c = api_condition_get(list, hk_str(known_cond_types[type]));
    struct cond_known *row = &g->cond[type];

    *row = (struct cond_known){0};
    if (c) {
        row->status = hk_str_is(c->status, "True") ? COND_TRUE : COND_FALSE;
        row->said = known_reason_hash(c->reason, c->message);
        row->changed_ns = c->last_transition_ns;
        parse_transition_id(c->transition_id, row->id);
    }
    if (type == COND_UNSCHEDULABLE) {
        known_set_message(g, c ? c->message : HK_STR(""));
    }
}

void ingest_known_group(struct ingest *in, const struct api_podgroup *pg)
{
    const job_id j = model_job_find(in->m, ingest_ns(pg->meta.ns), pg->meta.name);
    struct group_known *g;

    if (!in->known || id_none(j) || !model_job(in->m, j)->has_pg) {
        return;
    }
    g = known_group(in->known, j);
    if (known_group_is_ahead(in->known, j, read_revision(pg->meta.resource_version))) {
        return;
    }
    g->phase = (uint8_t)pg->phase; /* both enums follow Volcano's order */
    g->running = (uint32_t)pg->running;
    g->failed = (uint32_t)pg->failed;
    g->succeeded = (uint32_t)pg->succeeded;
    for (unsigned i = 0; i < COND_N; i++) {
        store_condition(g, i, &pg->conditions);
    }
    store_other_conditions(in, g, json_at(pg->raw, "status.conditions"));
}

_Static_assert((int)API_PODGROUP_COMPLETED == (int)PG_COMPLETED &&
                   (int)API_PODGROUP_INQUEUE == (int)PG_INQUEUE &&
                   (int)API_PODGROUP_UNKNOWN == (int)PG_UNKNOWN &&
                   (int)API_PODGROUP_RUNNING == (int)PG_RUNNING,
               "phases of the API and of the model are the same");

/* ---- queues ---- */

void ingest_known_queue(struct ingest *in, const struct api_queue *q)
{
    const struct dims *dims = &in->m->dims;
    const queue_id id = model_queue_find(in->m, q->meta.name);
    int64_t v[DIM_MAX] = {0};
    bool is_strange = false;
    struct queue_known *row;

    if (!in->known || id_none(id)) {
        return;
    }
    row = known_queue(in->known, id);
    if (known_turn_is_open(&row->turn)) {
        return;
    }
    for (uint32_t i = 0; i < q->allocated.len; i++) {
        const uint32_t d = dims_find(dims, q->allocated.at[i].name);
        if (d == HK_NONE) {
            is_strange = true;
        } else {
            v[d] = dims->unit[d] == DIM_MILLI ? quantity_milli(q->allocated.at[i].q)
                                              : quantity_value(q->allocated.at[i].q);
        }
    }
    row->said = is_strange || q->allocated.len == 0 ? 0 : known_amounts_hash(in->m, v);
}

/* ---- our NodeShard ---- */

static void ingest_known_shard(struct ingest *in, const struct json *doc)
{
    static const char *const keys[] = {KNOWN_IN_USE, KNOWN_TO_ADD, KNOWN_TO_REMOVE};
    const struct json *from = json_get(doc, "status"), *meta = json_get(doc, "metadata");
    struct shard_known *s = &in->known->shard;
    struct json status = json_make_object();

    if (!hk_str_eq(json_str_field(meta, "name"), model_str(in->m, in->shard_name)) ||
        known_turn_is_open(&s->turn) ||
        read_revision(json_str_field(meta, "resourceVersion")) < s->rv) {
        return;
    }
    for (size_t i = 0; i < HK_LEN(keys); i++) {
        const struct json *list = from ? json_get(from, keys[i]) : NULL;
        json_set(&status, &in->mem, keys[i], json_is(list, JSON_ARRAY) ? *list : json_make_array());
    }
    hk_buf_clear(&in->key);
    json_write(&status, &in->key);
    s->said = known_text_hash(hk_buf_str(&in->key));
}

/* ---- entry points ---- */

void ingest_known_put(struct ingest *in, const struct api_kind *kind, const struct json *doc)
{
    if (!in->known) {
        return;
    }
    switch (kind->id) {
    case API_POD:
        ingest_known_pod(in, doc);
        break;
    case API_NODESHARD:
        ingest_known_shard(in, doc);
        break;
    case API_PV:
    case API_PVC:
        in->known->volume_events++;
        break;
    default:
        break;
    }
}

void ingest_known_del(struct ingest *in, const struct api_kind *kind)
{
    if (!in->known) {
        return;
    }
    switch (kind->id) {
    case API_PV:
    case API_PVC:
    case API_NODE:
    case API_POD:
        in->known->volume_events++;
        break;
    default:
        break;
    }
}
