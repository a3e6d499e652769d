// SPDX-License-Identifier: Apache-2.0
// PodGroup statuses: phase, counters and conditions, in one merge patch since the kind has no
// status subresource. A patch replaces the whole list of conditions, so it repeats those of others.
#include "api/podgroup.h"
#include "scheduler/emit_priv.h"

static const struct {
    const char *type, *reason;
} cond_words[COND_N] = {
    [COND_UNSCHEDULABLE] = {"Unschedulable", "NotEnoughResources"},
    [COND_SCHEDULED] = {"Scheduled", "tasks in gang are ready to be scheduled"},
};

static const char *const cond_status_words[] = {[COND_TRUE] = "True", [COND_FALSE] = "False"};

static uint64_t hash2(struct hk_str a, struct hk_str b)
{
    return emit_hash(emit_hash(1, a), b) | 1; /* 0 is unknown */
}

static void group_clear(struct emit *e, struct group_known *k)
{
    emit_set_id(e, &k->uid, 0);
    hk_free(k->others);
    hk_free(k->message);
    hk_free(k->warning);
    *k = (struct group_known){0};
}

static struct group_known *group_row(struct emit *e, job_id j)
{
    const uint32_t uid = model_job(e->o.m, j)->uid;
    struct group_known *k;

    EMIT_ROW(&e->groups, j.i);
    k = &e->groups.at[j.i];
    if (k->uid != uid) {
        group_clear(e, k);
        emit_set_id(e, &k->uid, uid);
    }
    return k;
}

/* ---- transitionIDs ---- */

static void id_make(uint64_t run, uint64_t session, uint64_t ret[2])
{
    ret[0] = hk_mix(run + session * 0x9e3779b97f4a7c15ULL);
    ret[1] = hk_mix(ret[0] ^ session);
    ret[0] = (ret[0] & ~0xf000ULL) | 0x4000;          /* version 4 */
    ret[1] = (ret[1] & ~(3ULL << 62)) | (2ULL << 62); /* its variant */
}

static char *id_text(struct emit *e, const uint64_t id[2])
{
    return hk_arena_printf(&e->mem, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(id[0] >> 32),
                           (unsigned)(id[0] >> 16) & 0xffff, (unsigned)id[0] & 0xffff,
                           (unsigned)(id[1] >> 48), (unsigned long long)id[1] & 0xffffffffffffULL);
}

/* A text that is not a UUID gets one derived from its hash. */
static void id_parse(struct hk_str s, uint64_t ret[2])
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
        id_make(emit_hash(1, s), 0, ret);
    }
}

/* ---- PodGroups ---- */

static void push_group(struct emit *e, job_id j, bool hurry)
{
    const struct job *job = model_job(e->o.m, j);
    struct group_known *k = &e->groups.at[j.i];
    const struct write w = {.kind = WRITE_GROUP,
                            .about = API_PODGROUP,
                            .row = j.i,
                            .ns = job->ns,
                            .name = job->name,
                            .uid = job->uid};

    if (hurry) {
        emit_turn_ask(e, &k->turn, w);
    } else {
        emit_turn_ask_lazily(e, &k->turn, w);
    }
}

static bool emit_group_set_condition(struct emit *e, const struct session *ssn,
                                     struct group_known *k, enum cond_type type,
                                     enum cond_status status, const char *message)
{
    const uint64_t said = hash2(hk_str(cond_words[type].reason), hk_str(message));
    struct cond_known *c = &k->cond[type];

    if (c->status == status && c->said == said) {
        return false;
    }
    if (c->status != status) {
        c->changed_ns = ssn->now_ns;
    }
    c->status = (uint8_t)status;
    c->said = said;
    id_make(e->o.run, ssn->uid, c->id);
    return true;
}

/* Sets the opposite condition to False; upstream leaves it True. */
static bool deny_condition(struct emit *e, const struct session *ssn, struct group_known *k,
                           enum cond_type type)
{
    return k->cond[type].status == COND_TRUE &&
           emit_group_set_condition(e, ssn, k, type, COND_FALSE, "");
}

static void keep_message(struct group_known *k, struct hk_str s)
{
    hk_free(k->message);
    k->message = s.n > 0 ? hk_strndup(s.s, s.n) : NULL;
}

static bool set_conditions(struct emit *e, const struct session *ssn, struct group_known *k,
                           const struct job_note *n)
{
    bool changed = false;

    if (n->condition == NOTE_UNSCHEDULABLE) {
        changed = emit_group_set_condition(e, ssn, k, COND_UNSCHEDULABLE, COND_TRUE, n->message);
        changed |= deny_condition(e, ssn, k, COND_SCHEDULED);
        if (changed) {
            keep_message(k, hk_str(n->message));
        }
    } else if (n->condition == NOTE_SCHEDULED) {
        changed = emit_group_set_condition(e, ssn, k, COND_SCHEDULED, COND_TRUE, "");
        if (deny_condition(e, ssn, k, COND_UNSCHEDULABLE)) {
            keep_message(k, HK_STR(""));
            changed = true;
        }
    }
    return changed;
}

static bool set_counters(struct group_known *k, const struct job_note *n)
{
    const bool changed = k->phase != n->phase || k->running != n->running ||
                         k->failed != n->failed || k->succeeded != n->succeeded;

    k->phase = n->phase;
    k->running = n->running;
    k->failed = n->failed;
    k->succeeded = n->succeeded;
    return changed;
}

/* Identifies the last message: the same message about the same group is only counted, even if the
 * recorder has forgotten it. */
static uint64_t emit_group_hash_message(const char *text)
{
    return emit_hash(1, hk_str(text)) | 1;
}

/* Delays a warning until the condition with the same message is written. By then the warning may be
 * wrong: a gang lacks members while its pods are still being created. */
static void hold_warning(struct group_known *k, const char *text)
{
    hk_free(k->warning);
    k->warning = text && k->event != emit_group_hash_message(text) ? hk_strdup(text) : NULL;
}

static void tell_warning(struct emit *e, struct group_known *k, struct event_about about)
{
    if (k->warning) {
        k->event = emit_group_hash_message(k->warning);
        emit_event(e, about, true, "Unschedulable", k->warning);
        hk_free(k->warning);
        k->warning = NULL;
    }
}

static struct event_about about_write(const struct write *w)
{
    return (struct event_about){API_PODGROUP, w->ns, w->name, w->uid};
}

/* Whether a controller may act on the new phase. The change from Inqueue to Running only informs
 * people; its write waits, so that it includes the counts of pods that start at once. */
static bool is_awaited(uint8_t from, uint8_t to)
{
    return from != to && !(from == PG_INQUEUE && to == PG_RUNNING);
}

void emit_note_group(struct emit *e, const struct session *ssn, const struct job_note *n)
{
    const struct job *job = model_job(e->o.m, n->job);
    struct group_known *k = group_row(e, n->job);
    const char *refusal = ssn->job_msg[n->job.i];
    const bool hurry = is_awaited(k->phase, n->phase);
    bool changed = set_counters(k, n);

    changed |= set_conditions(e, ssn, k, n);
    if (changed) {
        push_group(e, n->job, hurry);
    }
    /* Later refusals are part of the warning. */
    if (refusal && n->phase == PG_PENDING && k->refusal != emit_group_hash_message(refusal)) {
        k->refusal = emit_group_hash_message(refusal);
        emit_event_group(e, n->job, false, "Unschedulable", refusal);
    }
    hold_warning(k, n->event);
    if (!emit_turn_is_open(&k->turn)) {
        tell_warning(e, k, (struct event_about){API_PODGROUP, job->ns, job->name, job->uid});
    }
    if (!n->event && changed && (n->phase == PG_RUNNING || n->phase == PG_COMPLETED)) {
        emit_event_group(e, n->job, false, "Scheduled", "pod group is ready");
        k->event = k->refusal = 0;
    }
}

static void put_count(struct emit *e, struct json *status, const char *key, uint32_t n)
{
    /* Zero is left out, as in Volcano's own writes. */
    json_set(status, &e->mem, key, n > 0 ? json_make_int(n) : (struct json){0});
}

static struct json condition_list(struct emit *e, const struct group_known *k)
{
    struct json list = json_make_array();
    struct json others;

    for (unsigned i = 0; i < COND_N; i++) {
        const struct cond_known *known = &k->cond[i];
        if (known->status == COND_ABSENT) {
            continue;
        }
        const bool told = i == COND_UNSCHEDULABLE && k->message;
        struct json c =
            emit_condition(e, cond_words[i].type, cond_status_words[known->status],
                           hk_str(cond_words[i].reason), hk_str(told ? k->message : ""));
        if (!told) {
            json_del(&c, "message");
        }
        json_set_cstr(&c, &e->mem, "transitionID", id_text(e, known->id));
        json_set_time(&c, &e->mem, "lastTransitionTime", known->changed_ns);
        json_push(&list, &e->mem, c);
    }
    if (k->others && json_parse(hk_str(k->others), 0, &e->mem, &others, NULL) == 0) {
        for (uint32_t i = 0; i < others.len; i++) {
            json_push(&list, &e->mem, others.items[i]);
        }
    }
    return list;
}

bool emit_group_request(struct emit *e, const struct write *w, struct port_request *req,
                        struct json *body)
{
    struct group_known *k = &e->groups.at[w->row];
    struct json *status;

    if (k->uid != w->uid || !emit_turn_begin(&k->turn)) {
        return false;
    }
    tell_warning(e, k, about_write(w));
    req->verb = PORT_PATCH;
    req->patch = PORT_PATCH_MERGE;
    emit_put_uid(e, body, w);
    status = json_set_object(body, &e->mem, "status");
    json_set_cstr(status, &e->mem, "phase", pg_phase_name(k->phase));
    put_count(e, status, "running", k->running);
    put_count(e, status, "succeeded", k->succeeded);
    put_count(e, status, "failed", k->failed);
    json_set(status, &e->mem, "conditions", condition_list(e, k));
    return true;
}

void emit_group_done(struct emit *e, struct write *w, const struct port_msg *m)
{
    struct group_known *k = &e->groups.at[w->row];

    if (k->uid != w->uid) {
        return;
    }
    k->rv = m->rc == 0 ? m->rv : k->rv;
    if (!emit_turn_end(e, &k->turn, w, m)) {
        k->phase = PG_NONE; /* unknown: written again with the next note */
    }
    if (!emit_turn_is_open(&k->turn)) {
        tell_warning(e, k, about_write(w));
    }
}

/* Remembers conditions of other writers, to write them back unchanged. */
static void learn_others(struct emit *e, struct group_known *k, const struct json *list)
{
    bool any = false;

    hk_buf_clear(&e->text);
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct hk_str type = json_str_field(&list->items[i], "type");
        if (!hk_str_is(type, cond_words[COND_UNSCHEDULABLE].type) &&
            !hk_str_is(type, cond_words[COND_SCHEDULED].type)) {
            hk_buf_addc(&e->text, any ? ',' : '[');
            json_write(&list->items[i], &e->text);
            any = true;
        }
    }
    hk_free(k->others);
    k->others = NULL;
    if (any) {
        hk_buf_addc(&e->text, ']');
        k->others = hk_strdup(e->text.data);
    }
}

static void learn_condition(struct group_known *k, enum cond_type type,
                            const struct api_conditions *list)
{
    const struct api_condition *c = api_condition_get(list, hk_str(cond_words[type].type));
    struct cond_known *known = &k->cond[type];

    *known = (struct cond_known){0};
    if (c) {
        known->status = hk_str_is(c->status, "True") ? COND_TRUE : COND_FALSE;
        known->said = hash2(c->reason, c->message);
        known->changed_ns = c->last_transition_ns;
        id_parse(c->transition_id, known->id);
    }
    if (type == COND_UNSCHEDULABLE) {
        keep_message(k, c ? c->message : HK_STR(""));
    }
}

void emit_learn_group(struct emit *e, const struct api_object *o)
{
    const job_id j = model_job_find(e->o.m, o->ns, o->name);
    struct group_known *k;
    struct api_podgroup pg;

    if (id_none(j) || !model_job(e->o.m, j)->has_pg ||
        api_podgroup_decode(&o->root, &e->mem, &pg, NULL) < 0) {
        return;
    }
    k = group_row(e, j);
    if (emit_is_ahead(e, j, o->rv)) {
        return;
    }
    k->phase = (uint8_t)pg.phase; /* both enums follow Volcano's order */
    k->running = (uint32_t)pg.running;
    k->failed = (uint32_t)pg.failed;
    k->succeeded = (uint32_t)pg.succeeded;
    for (unsigned i = 0; i < COND_N; i++) {
        learn_condition(k, i, &pg.conditions);
    }
    learn_others(e, k, json_at(&o->root, "status.conditions"));
}

_Static_assert((int)API_PODGROUP_COMPLETED == (int)PG_COMPLETED &&
                   (int)API_PODGROUP_INQUEUE == (int)PG_INQUEUE &&
                   (int)API_PODGROUP_UNKNOWN == (int)PG_UNKNOWN &&
                   (int)API_PODGROUP_RUNNING == (int)PG_RUNNING,
               "phases of the API and of the model are the same");

bool emit_is_ahead(const struct emit *e, job_id j, uint64_t rv)
{
    const struct group_known *k;

    if (j.i >= e->groups.len || e->groups.at[j.i].uid != model_job(e->o.m, j)->uid) {
        return false;
    }
    k = &e->groups.at[j.i];
    return emit_turn_is_open(&k->turn) || rv < k->rv;
}

void emit_groups_fini(struct emit *e)
{
    for (uint32_t k = 0; k < e->groups.len; k++) {
        group_clear(e, &e->groups.at[k]);
    }
    hk_vec_fini(&e->groups);
}
