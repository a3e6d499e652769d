// SPDX-License-Identifier: Apache-2.0
// A port over a store in memory, under a clock that only tests advance, and the functions that
// tests use: ask, expect, look into the answer.
#pragma once

#include "base/clock.h"
#include "store/rest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct rig {
    struct hk_clock_manual clock;
    struct hk_rand rand;
    struct store *store;
    struct rest *rest;
    uint32_t max_per_namespace;
    struct rest_service_range services;
    struct port *port;
    struct hk_arena mem;                   /* bodies and remembered texts */
    int count;                             /* of changes that must differ */
    const struct volcano_options *volcano; /* set before rig_open */
};

/* The outcome of one call, copied out of its message. */
struct answer {
    bool done;
    int code;
    char reason[64];
    char message[1024];
    char causes[512];  /* "reason field; " each */
    char details[256]; /* "kind/name" */
    char cont[512];
    struct api_object *obj;
    uint32_t nitems;
    char names[512]; /* of a list, with blanks between */
    int64_t remaining;
    uint64_t rv;
    int32_t retry_after_s;
    char warnings[512];
};

static inline void rig_open(struct rig *g, bool admission)
{
    /* 2026-01-02T03:04:05Z */
    hk_clock_manual_init(&g->clock, 1767323045LL * 1000000000);
    hk_rand_seed(&g->rand, 7);
    const struct store_opts so = {.ring_events = 1000};
    assert_int_equal(store_open(&so, &g->store, NULL), 0);
    const struct rest_opts ro = {
        .store = g->store,
        .clock = &g->clock.clock,
        .rand = &g->rand,
        .no_admission = !admission,
        .volcano = g->volcano,
        .max_per_namespace = g->max_per_namespace,
        .services = g->services,
    };
    g->rest = rest_new(&ro);
    g->port = rest_port(g->rest);
}

static inline void rig_close(struct rig *g)
{
    rest_free(g->rest);
    store_close(g->store);
    hk_arena_fini(&g->mem);
}

/* Polls until nothing happens any more. */
static inline void rig_settle(struct rig *g)
{
    for (int quiet = 0; quiet < 6;) {
        store_flush(g->store);
        quiet = port_poll(g->port, 1000) > 0 ? 0 : quiet + 1;
    }
}

static inline void rig_sleep(struct rig *g, int64_t seconds)
{
    g->clock.now_ns += seconds * 1000000000;
    rest_tick(g->rest);
    rig_settle(g);
}

static inline void rig_add(char *to, size_t size, const char *fmt, ...)
{
    const size_t n = strlen(to);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(to + n, size - n, fmt, ap);
    va_end(ap);
}

static inline void rig_on_msg(void *ctx, const struct port_msg *m)
{
    struct answer *a = ctx;

    assert_int_equal(m->type, PORT_DONE);
    assert_false(a->done);
    a->done = true;
    a->code = m->status ? m->status->code : m->created ? 201 : 200;
    a->rv = m->rv;
    a->nitems = m->nitems;
    a->remaining = m->remaining;
    rig_add(a->cont, sizeof(a->cont), "%.*s", HK_FMT(m->cont));
    a->obj = m->obj ? api_object_ref(m->obj) : NULL;
    for (uint32_t i = 0; i < m->nitems; i++) {
        rig_add(a->names, sizeof(a->names), "%s%.*s", i > 0 ? " " : "", HK_FMT(m->items[i]->name));
    }
    for (uint32_t i = 0; i < m->nwarnings; i++) {
        rig_add(a->warnings, sizeof(a->warnings), "%s; ", m->warnings[i]);
    }
    if (m->status) {
        const struct port_status *s = m->status;
        a->retry_after_s = s->retry_after_s;
        rig_add(a->reason, sizeof(a->reason), "%s", s->reason ? s->reason : "");
        rig_add(a->message, sizeof(a->message), "%s", s->message ? s->message : "");
        rig_add(a->details, sizeof(a->details), "%s/%s", s->kind ? s->kind : "",
                s->name ? s->name : "");
        for (uint32_t i = 0; i < s->ncauses; i++) {
            rig_add(a->causes, sizeof(a->causes), "%s %s; ",
                    s->causes[i].reason ? s->causes[i].reason : "-",
                    s->causes[i].field ? s->causes[i].field : "-");
        }
        if (s->cont) {
            rig_add(a->cont, sizeof(a->cont), "%s", s->cont);
        }
    }
    assert_int_equal(m->rc < 0, m->status && !m->status->success);
}

/* Submits, and waits for the outcome and all that follows from it. */
static inline struct answer rig_ask(struct rig *g, const struct port_request *req)
{
    struct answer a = {0};

    port_submit(g->port, req, (struct port_sink){rig_on_msg, &a});
    rig_settle(g);
    assert_true(a.done);
    return a;
}

/* "Pod" of v1 or "Job" of the first group that has one. */
static inline const struct api_kind *rig_kind(struct rig *g, const char *word)
{
    for (uint32_t i = 0; i < rest_kinds(g->rest); i++) {
        const struct rest_kind *k = rest_kind_at(g->rest, i);
        if (k->served && !strcmp(k->kind->kind, word)) {
            return k->kind;
        }
    }
    fail_msg("no kind %s", word);
    return NULL;
}

/* JSON with single quotes. */
static inline const struct json *rig_json(struct rig *g, const char *text)
{
    struct json *v = hk_arena_alloc(&g->mem, sizeof(*v));
    char *copy = hk_arena_strndup(&g->mem, text, strlen(text));
    struct hk_err err = {0};

    for (char *p = copy; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(hk_str(copy), 0, &g->mem, v, &err) < 0) {
        fail_msg("%s in %s", err.text, text);
    }
    return v;
}

/* A value by dotted path as text, "-" when absent. Lives as long as the rig. */
static inline const char *rig_look(struct rig *g, const struct api_object *o, const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct json *v = o ? json_at(&o->root, path) : NULL;

    if (!v) {
        return "-";
    }
    if (v->type == JSON_STRING) {
        hk_buf_addstr(&text, json_str(v, HK_STR("")));
    } else {
        json_write(v, &text);
    }
    return hk_arena_str(&g->mem, hk_buf_str(&text)).s;
}

static inline void answer_fini(struct answer *a)
{
    api_object_unref(a->obj);
}

/* One request of a story and what is expected of its answer. Unset members do not ask. */
struct step {
    const char *kind;
    struct port_request req; /* verb, ns, name and options */
    const char *body;
    int code;
    const char *reason, *message, *causes;
    const char *see[6]; /* pairs of path and value in the answered object */
};

static inline void rig_step(struct rig *g, const struct step *s, const char *story, size_t i)
{
    struct port_request req = s->req;

    req.kind = rig_kind(g, s->kind);
    req.body = s->body ? rig_json(g, s->body) : NULL;
    struct answer a = rig_ask(g, &req);
    if (a.code != s->code) {
        print_error("%s, step %zu: want %d, have %d %s\n", story, i + 1, s->code, a.code,
                    a.message);
    }
    assert_int_equal(a.code, s->code);
    if (s->reason) {
        assert_string_equal(a.reason, s->reason);
    }
    if (s->message) {
        assert_string_equal(a.message, s->message);
    }
    if (s->causes) {
        assert_string_equal(a.causes, s->causes);
    }
    for (size_t k = 0; k + 1 < HK_LEN(s->see) && s->see[k]; k += 2) {
        const char *have = rig_look(g, a.obj, s->see[k]);
        if (strcmp(have, s->see[k + 1]) != 0) {
            print_error("%s, step %zu: %s\n", story, i + 1, s->see[k]);
        }
        assert_string_equal(have, s->see[k + 1]);
    }
    answer_fini(&a);
}

#define rig_story(g, steps)                                                                        \
    for (size_t at_ = 0; at_ < HK_LEN(steps); at_++) {                                             \
        rig_step(g, &(steps)[at_], __func__, at_);                                                 \
    }

/* Whether the object is there. */
static inline bool rig_has(struct rig *g, const char *kind, const char *ns, const char *name)
{
    const struct port_request req = {
        .verb = PORT_GET, .kind = rig_kind(g, kind), .ns = hk_str(ns), .name = hk_str(name)};
    struct answer a = rig_ask(g, &req);
    const bool has = a.code == 200;

    answer_fini(&a);
    return has;
}
