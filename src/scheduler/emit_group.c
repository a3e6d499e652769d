// SPDX-License-Identifier: Apache-2.0
// PodGroup statuses: phase, counters and conditions, in one merge patch since the kind has no
// status subresource. A patch replaces the whole list of conditions, so it repeats those of others.
#include "scheduler/emit_priv.h"

static const char *const cond_reasons[COND_N] = {
    [COND_UNSCHEDULABLE] = "NotEnoughResources",
    [COND_SCHEDULED] = "tasks in gang are ready to be scheduled",
};

static const char *const cond_status_words[] = {[COND_TRUE] = "True", [COND_FALSE] = "False"};

static char *id_text(struct emit *e, const uint64_t id[2])
{
    return hk_arena_printf(&e->mem, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(id[0] >> 32),
                           (unsigned)(id[0] >> 16) & 0xffff, (unsigned)id[0] & 0xffff,
                           (unsigned)(id[1] >> 48), (unsigned long long)id[1] & 0xffffffffffffULL);
}

static void push_group(struct emit *e, job_id j, bool hurry)
{
    const struct job *job = model_job(e->o.m, j);
    struct group_known *k = &e->known->groups.at[j.i];
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
    const uint64_t said = known_reason_hash(hk_str(cond_reasons[type]), hk_str(message));
    struct cond_known *c = &k->cond[type];

    if (c->status == status && c->said == said) {
        return false;
    }
    if (c->status != status) {
        c->changed_ns = ssn->now_ns;
    }
    c->status = (uint8_t)status;
    c->said = said;
    known_transition_id(e->o.run, ssn->uid, c->id);
    return true;
}

/* Sets the opposite condition to False; upstream leaves it True. */
static bool deny_condition(struct emit *e, const struct session *ssn, struct group_known *k,
                           enum cond_type type)
{
    return k->cond[type].status == COND_TRUE &&
           emit_group_set_condition(e, ssn, k, type, COND_FALSE, "");
}

static bool set_conditions(struct emit *e, const struct session *ssn, struct group_known *k,
                           const struct job_note *n)
{
    bool changed = false;

    if (n->condition == NOTE_UNSCHEDULABLE) {
        changed = emit_group_set_condition(e, ssn, k, COND_UNSCHEDULABLE, COND_TRUE, n->message);
        changed |= deny_condition(e, ssn, k, COND_SCHEDULED);
        if (changed) {
            known_set_message(k, hk_str(n->message));
        }
    } else if (n->condition == NOTE_SCHEDULED) {
        changed = emit_group_set_condition(e, ssn, k, COND_SCHEDULED, COND_TRUE, "");
        if (deny_condition(e, ssn, k, COND_UNSCHEDULABLE)) {
            known_set_message(k, HK_STR(""));
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

/* Delays a warning until the condition with the same message is written. By then the warning may be
 * wrong: a gang lacks members while its pods are still being created. A message that the group had
 * last is not repeated; the hash in `event` recognizes it even if the recorder has forgotten it. */
static void hold_warning(struct group_known *k, const char *text)
{
    hk_free(k->warning);
    k->warning = text && k->event != known_text_hash(hk_str(text)) ? hk_strdup(text) : NULL;
}

static void tell_warning(struct emit *e, struct group_known *k, struct event_about about)
{
    if (k->warning) {
        k->event = known_text_hash(hk_str(k->warning));
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
    struct group_known *k = known_group(e->known, n->job);
    const char *refusal = ssn->job_msg[n->job.i];
    const bool hurry = is_awaited(k->phase, n->phase);
    bool changed = set_counters(k, n);

    changed |= set_conditions(e, ssn, k, n);
    if (changed) {
        push_group(e, n->job, hurry);
    }
    /* Later refusals are part of the warning. */
    if (refusal && n->phase == PG_PENDING && k->refusal != known_text_hash(hk_str(refusal))) {
        k->refusal = known_text_hash(hk_str(refusal));
        emit_event_group(e, n->job, false, "Unschedulable", refusal);
    }
    hold_warning(k, n->event);
    if (!known_turn_is_open(&k->turn)) {
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
        struct json c = emit_condition(e, known_cond_types[i], cond_status_words[known->status],
                                       hk_str(cond_reasons[i]), hk_str(told ? k->message : ""));
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
    struct group_known *k = &e->known->groups.at[w->row];
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
    struct group_known *k = &e->known->groups.at[w->row];

    if (k->uid != w->uid) {
        return;
    }
    k->rv = m->rc == 0 ? m->rv : k->rv;
    if (!emit_turn_end(e, &k->turn, w, m)) {
        k->phase = PG_NONE; /* unknown: written again with the next note */
    }
    if (!known_turn_is_open(&k->turn)) {
        tell_warning(e, k, about_write(w));
    }
}
