// SPDX-License-Identifier: Apache-2.0
// A small world for controllers under test: an API in memory, a clock that only tests advance, and
// functions that act as scheduler and nodes. Objects are written as YAML.
#pragma once

#include "api/names.h"
#include "api/patch.h"
#include "api/port_mem.h"
#include "codec/yaml.h"
#include "controllers/ctl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define RIG_START_NS ((int64_t)1767348000 * 1000000000) /* 2026-01-02T10:00:00Z */

struct rig {
    struct port_mem *mem;
    struct port *port; /* what the manager holds */
    struct hk_clock_manual clock;
    struct hk_rand rand;
    struct manager *m;
    struct ctl_conf conf;
    const struct ctl_type *const *types;
    uint32_t ntype;
    struct hk_buf phases;   /* of jobs, in the order in which they were written */
    struct api_object *job; /* the job last seen */
    uint64_t watch;
};

/* ---- what every status of a job must keep to ---- */

static inline int64_t rig_int(const struct json *root, const char *path)
{
    return json_int(json_at(root, path), 0);
}

static inline int64_t rig_replicas(const struct json *job)
{
    const struct json *tasks = json_at(job, "spec.tasks");
    int64_t n = 0;

    for (uint32_t i = 0; json_is(tasks, JSON_ARRAY) && i < tasks->len; i++) {
        n += rig_int(&tasks->items[i], "replicas");
    }
    return n;
}

/* Whether the counts fit the phase: people who wait for a phase read them, too. */
static inline bool rig_counts_fit(const struct json *old, const struct json *job)
{
    const struct hk_str phase = json_str(json_at(job, "status.state.phase"), HK_STR(""));
    const bool entered =
        !hk_str_eq(phase, json_str(json_at(old, "status.state.phase"), HK_STR("")));
    const int64_t live = rig_int(job, "status.pending") + rig_int(job, "status.running");
    const int64_t begun = rig_int(job, "status.running") + rig_int(job, "status.succeeded") +
                          rig_int(job, "status.failed");
    const int64_t ending = rig_int(job, "status.terminating");

    if (hk_str_is(phase, "Aborted") || hk_str_is(phase, "Terminated")) {
        return live == 0 && ending == 0;
    }
    if (hk_str_is(phase, "Aborting") || hk_str_is(phase, "Terminating") ||
        hk_str_ends(phase, "leting") || hk_str_is(phase, "Completed")) {
        return live == 0;
    }
    if (hk_str_is(phase, "Running") && entered) {
        return begun >= rig_int(job, "spec.minAvailable");
    }
    if (hk_str_is(phase, "Pending") && entered) {
        return live + begun == 0 ||
               rig_replicas(job) - ending >= rig_int(job, "status.minAvailable");
    }
    return !(hk_str_is(phase, "Restarting") && entered &&
             rig_int(job, "status.version") > rig_int(old, "status.version")) ||
           live == 0;
}

static inline bool rig_conditions_fit(const struct json *job)
{
    const struct json *list = json_at(job, "status.conditions");
    const struct json *phase = json_at(job, "status.state.phase");

    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (json_equal(json_get(&list->items[i], "status"),
                           json_get(&list->items[k], "status"))) {
                return false;
            }
        }
    }
    return !phase || (json_is(list, JSON_ARRAY) &&
                      json_equal(json_get(&list->items[list->len - 1], "status"), phase));
}

static inline void rig_check_status(const struct json *old, const struct json *job)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const bool same_phase =
        json_equal(json_at(old, "status.state.phase"), json_at(job, "status.state.phase"));
    const bool same_time = json_equal(json_at(old, "status.state.lastTransitionTime"),
                                      json_at(job, "status.state.lastTransitionTime"));

    if (!rig_counts_fit(old, job) || !rig_conditions_fit(job) || (same_phase && !same_time) ||
        rig_int(job, "status.version") < rig_int(old, "status.version") ||
        rig_int(job, "status.retryCount") < rig_int(old, "status.retryCount")) {
        json_write(json_get(old, "status"), &text);
        hk_buf_adds(&text, "\n -> ");
        json_write(json_get(job, "status"), &text);
        fail_msg("no status of a job may be followed by this one: %s", text.data);
    }
}

/* Elsewhere tests write the status of jobs by hand, and no more of it than they need. */
static inline bool rig_runs(const struct rig *r, const char *controller)
{
    for (uint32_t i = 0; i < r->ntype; i++) {
        if (strcmp(r->types[i]->name, controller) == 0) {
            return true;
        }
    }
    return false;
}

static inline void rig_on_job(void *ctx, const struct port_msg *m)
{
    struct rig *r = ctx;
    struct hk_str phase;
    HK_AUTO(hk_buf_fini) struct hk_buf word = {0};

    if (m->type != PORT_ADDED && m->type != PORT_MODIFIED) {
        return;
    }
    if (rig_runs(r, "job-controller") && r->job && hk_str_eq(r->job->uid, m->obj->uid) &&
        json_get(&r->job->root, "status")) {
        rig_check_status(&r->job->root, &m->obj->root);
    }
    api_object_unref(r->job);
    r->job = api_object_ref(m->obj);
    phase = json_str(json_at(&m->obj->root, "status.state.phase"), HK_STR(""));
    hk_buf_addf(&word, " %.*s", HK_FMT(phase));
    if (phase.n > 0 && !hk_str_ends(hk_buf_str(&r->phases), word.data)) {
        hk_buf_addstr(&r->phases, hk_buf_str(&word));
    }
}

static inline void rig_manager(struct rig *r)
{
    r->m = manager_new(&(struct manager_opts){.port = r->port,
                                              .clock = &r->clock.clock,
                                              .rand = &r->rand,
                                              .conf = r->conf,
                                              .types = r->types,
                                              .ntype = r->ntype});
}

/* Without a manager yet: fill the world first, then rig_manager. */
static inline void rig_init(struct rig *r, const struct ctl_type *const *types, uint32_t ntype)
{
    *r = (struct rig){.types = types, .ntype = ntype};
    hk_clock_manual_init(&r->clock, RIG_START_NS);
    hk_rand_seed(&r->rand, 7);
    r->mem = port_mem_new(RIG_START_NS);
    r->port = port_mem_port(r->mem);
    r->watch = port_watch(port_mem_port(r->mem), api_kind(API_JOB), HK_STR(""), 0,
                          (struct port_sink){rig_on_job, r});
}

static inline void rig_fini(struct rig *r)
{
    manager_free(r->m);
    port_free(port_mem_port(r->mem));
    api_object_unref(r->job);
    hk_buf_fini(&r->phases);
}

/* Another process takes over. */
static inline void rig_restart(struct rig *r)
{
    manager_free(r->m);
    rig_manager(r);
}

/* ---- time ---- */

/* Runs until nothing is left to do now. */
static inline void rig_settle(struct rig *r)
{
    for (int i = 0; i < 100000; i++) {
        const int64_t next_ns = manager_run(r->m);

        if (next_ns > r->clock.now_ns && manager_idle(r->m) &&
            port_poll(port_mem_port(r->mem), 1) == 0) {
            return;
        }
    }
    fail_msg("the controllers never come to rest");
}

static inline void rig_set_now(struct rig *r, int64_t now_ns)
{
    r->clock.now_ns = now_ns;
    port_mem_set_now(r->mem, now_ns);
}

/* The same, while time passes. */
static inline void rig_pass(struct rig *r, int64_t s)
{
    const int64_t end_ns = r->clock.now_ns + s * 1000000000;

    for (;;) {
        int64_t next_ns;

        rig_settle(r);
        next_ns = manager_run(r->m);
        if (next_ns > end_ns) {
            break;
        }
        rig_set_now(r, HK_MAX(next_ns, r->clock.now_ns));
    }
    rig_set_now(r, end_ns);
    rig_settle(r);
}

/* ---- objects ---- */

static inline void rig_put_json(struct rig *r, const struct json *doc)
{
    struct hk_err err = {0};

    if (port_mem_put(r->mem, doc, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static inline struct yaml_docs rig_yaml(const char *text, struct hk_arena *a)
{
    struct yaml_docs docs = {0};
    struct hk_err err = {0};

    if (yaml_parse(hk_str(text), 0, a, &docs, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return docs;
}

/* Creates or replaces the objects of a YAML text, as a user would. New ones get a uid of "u-" and
 * their name. */
static inline void rig_put(struct rig *r, const char *yaml)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct yaml_docs docs = rig_yaml(yaml, &a);

    for (uint32_t i = 0; i < docs.len; i++) {
        struct json *meta = (struct json *)json_get(&docs.at[i], "metadata");
        const struct hk_str name = json_str(json_get(meta, "name"), HK_STR(""));

        if (!json_get(meta, "uid")) {
            json_set_cstr(meta, &a, "uid", hk_arena_printf(&a, "u-%.*s", HK_FMT(name)));
            json_set_cstr(meta, &a, "creationTimestamp", "2026-01-02T10:00:00Z");
        }
        rig_put_json(r, &docs.at[i]);
    }
}

static inline const struct json *rig_get(struct rig *r, enum api_kind_id kind, const char *name)
{
    const struct hk_str ns = api_kind(kind)->namespaced ? HK_STR("d") : HK_STR("");
    const struct api_object *o = port_mem_peek(r->mem, api_kind(kind), ns, hk_str(name));

    return o ? &o->root : NULL;
}

/* The value at a path of an object in namespace d, as compact JSON; "" when there is none. */
static inline const char *rig_at(struct rig *r, enum api_kind_id kind, const char *name,
                                 const char *path)
{
    static struct hk_buf text;
    const struct json *v = json_at(rig_get(r, kind, name), path);

    hk_buf_clear(&text);
    if (v) {
        json_write(v, &text);
    }
    return text.data ? text.data : "";
}

#define rig_expect(r, kind, name, path, want)                                                      \
    assert_string_equal(rig_at((r), (kind), (name), (path)), (want))

/* Changes part of an object by a merge patch written as YAML. */
static inline void rig_patch(struct rig *r, enum api_kind_id kind, const char *name,
                             const char *yaml)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct json *old = rig_get(r, kind, name);
    const struct yaml_docs docs = rig_yaml(yaml, &a);
    struct json doc;

    if (!old) {
        fail_msg("no %s '%s'", api_kind(kind)->plural, name);
    }
    doc = json_clone(old, &a);
    api_patch_merge(&doc, &docs.at[0], &a);
    rig_put_json(r, &doc);
}

static inline void rig_remove(struct rig *r, enum api_kind_id kind, const char *name)
{
    const struct hk_str ns = api_kind(kind)->namespaced ? HK_STR("d") : HK_STR("");

    if (!port_mem_remove(r->mem, api_kind(kind), ns, hk_str(name))) {
        fail_msg("no %s '%s'", api_kind(kind)->plural, name);
    }
}

struct rig_count {
    uint32_t n;
    struct hk_buf *names;
};

static inline void rig_count_one(void *ctx, const struct api_object *o)
{
    struct rig_count *c = ctx;

    c->n++;
    if (c->names) {
        hk_buf_addf(c->names, "%s%.*s", c->names->len > 0 ? " " : "", HK_FMT(o->name));
    }
}

static inline uint32_t rig_count(struct rig *r, enum api_kind_id kind)
{
    struct rig_count c = {0};

    port_mem_each(r->mem, api_kind(kind), rig_count_one, &c);
    return c.n;
}

/* Their names, one blank apart, in the order in which they were first made. */
static inline const char *rig_names(struct rig *r, enum api_kind_id kind)
{
    static struct hk_buf names;
    struct rig_count c = {.names = &names};

    hk_buf_clear(&names);
    port_mem_each(r->mem, api_kind(kind), rig_count_one, &c);
    return names.data ? names.data : "";
}

/* ---- events ---- */

struct rig_events {
    const char *reason;
    struct hk_buf texts;
};

static inline void rig_match_event(void *ctx, const struct api_object *o)
{
    struct rig_events *e = ctx;

    if (hk_str_is(json_str(json_get(&o->root, "reason"), HK_STR("")), e->reason)) {
        hk_buf_addf(&e->texts, "%s%.*s", e->texts.len > 0 ? "; " : "",
                    HK_FMT(json_str(json_get(&o->root, "message"), HK_STR(""))));
    }
}

/* The texts of all events with that reason. */
static inline void rig_expect_events(struct rig *r, const char *reason, const char *want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf have = {0};
    struct rig_events e = {.reason = reason};

    port_mem_each(r->mem, api_kind(API_EVENT), rig_match_event, &e);
    have = e.texts;
    assert_string_equal(hk_buf_str(&have).s, want);
}

/* ---- scheduler and nodes ---- */

static inline void rig_enqueue_one(void *ctx, const struct api_object *o)
{
    struct rig *r = ctx;
    const struct hk_str phase = json_str(json_at(&o->root, "status.phase"), HK_STR(""));
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};

    if (phase.n == 0 || hk_str_is(phase, "Pending")) {
        rig_patch(r, API_PODGROUP, hk_arena_strndup(&a, o->name.s, o->name.n),
                  "status: {phase: Inqueue}");
    }
}

static inline void rig_run_one(void *ctx, const struct api_object *o)
{
    struct rig *r = ctx;
    const struct hk_str phase = json_str(json_at(&o->root, "status.phase"), HK_STR(""));
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};

    if ((phase.n == 0 || hk_str_is(phase, "Pending")) &&
        !json_at(&o->root, "metadata.deletionTimestamp")) {
        rig_patch(r, API_POD, hk_arena_strndup(&a, o->name.s, o->name.n),
                  "spec: {nodeName: n1}\n"
                  "status:\n"
                  "  phase: Running\n"
                  "  startTime: '2026-01-02T10:00:00Z'\n"
                  "  containerStatuses: [{name: main, ready: true, restartCount: 0}]\n");
    }
}

static inline void rig_reap_one(void *ctx, const struct api_object *o)
{
    struct rig *r = ctx;

    if (json_at(&o->root, "metadata.deletionTimestamp")) {
        port_mem_remove(r->mem, o->kind, o->ns, o->name);
    }
}

/* PodGroups that wait are let into the queue. */
static inline void rig_enqueue(struct rig *r)
{
    rig_settle(r);
    port_mem_each(r->mem, api_kind(API_PODGROUP), rig_enqueue_one, r);
    rig_settle(r);
}

/* Pods that wait are bound and start. */
static inline void rig_run(struct rig *r)
{
    rig_settle(r);
    port_mem_each(r->mem, api_kind(API_POD), rig_run_one, r);
    rig_settle(r);
}

/* Nodes end the pods that are being deleted. */
static inline void rig_reap(struct rig *r)
{
    rig_settle(r);
    port_mem_each(r->mem, api_kind(API_POD), rig_reap_one, r);
    rig_settle(r);
}

/* A pod ends with that exit code. */
static inline void rig_end_now(struct rig *r, const char *pod, int code)
{
    char yaml[400];

    snprintf(yaml, sizeof(yaml),
             "status:\n"
             "  phase: %s\n"
             "  containerStatuses:\n"
             "  - {name: main, ready: false, restartCount: 0, state: {terminated: {exitCode: %d, "
             "reason: %s, finishedAt: '2026-01-02T10:00:05Z'}}}\n",
             code ? "Failed" : "Succeeded", code, code ? "Error" : "Completed");
    rig_patch(r, API_POD, pod, yaml);
}

static inline void rig_end(struct rig *r, const char *pod, int code)
{
    rig_end_now(r, pod, code);
    rig_settle(r);
}

/* Phases of the only job since the start, or since the last look. */
static inline void rig_expect_phases(struct rig *r, const char *want)
{
    const char *have = r->phases.data && r->phases.len > 0 ? r->phases.data + 1 : "";

    assert_string_equal(have, want);
}
