// SPDX-License-Identifier: Apache-2.0
// Shared by port_mem.c (objects and verbs) and port_mem_watch.c (lists, watches and the queue of
// messages) only.
#pragma once

#include "api/port_mem.h"
#include "api/selector.h"
#include "base/map.h"
#include "base/vec.h"

/* One change. A creation has no old state; for a deletion obj is the last state with the revision
 * of the deletion. */
struct change {
    struct api_object *old, *obj;
    bool deleted;
};

/* What a list or watch selects; its strings live in the arena. */
struct filter {
    struct hk_arena arena;
    const struct api_kind *kind;
    struct hk_str ns;
    struct api_selector labels;
    struct api_field_selector fields;
};

struct watch {
    uint64_t call;
    struct port_sink sink;
    struct filter filter;
    bool bookmarks;
};

/* A queued message; owns what msg points to. */
struct message {
    struct port_msg msg;
    struct port_sink sink;
    struct hk_err *err;
    struct api_object **items;
    char *cont;
};

struct fault {
    enum port_verb verb;
    uint32_t left;
    enum hk_code code;
};

struct port_mem {
    struct port port;
    uint64_t rv, compacted, last_call;
    int64_t now_ns;
    struct hk_intern keys;            /* "plural.group/ns/name" to row */
    HK_VEC(struct api_object *) rows; /* NULL when deleted */
    HK_VEC(struct change) changes;    /* since the last compaction, oldest first */
    HK_VEC(struct watch *) watches;
    HK_VEC(struct message) queue;
    uint32_t queue_at; /* the next to deliver */
    HK_VEC(struct fault) faults;
    char ending[64]; /* namespace that refuses creations, "" none */
    struct hk_buf log;
};

/* A call in progress. */
struct call {
    struct port_mem *m;
    const struct port_request *req;
    uint64_t id;
    struct hk_arena arena; /* scratch trees */
    struct hk_err err;
};

/* ---- port_mem_watch.c ---- */

/* Queues the change for every watch that selects it. */
void mem_queue_change(struct port_mem *m, const struct change *c);
/* Queues the outcome of a call; takes what q owns. */
void mem_done(struct port_mem *m, uint64_t call, struct port_sink sink, int rc,
              const struct hk_err *err, struct message q);
int mem_list(struct call *c, struct message *q);
int mem_watch(struct call *c, struct port_sink sink);
void mem_cancel(struct port *p, uint64_t call);
uint32_t mem_poll(struct port *p, uint32_t max);
/* Frees watches and queue without messages. */
void mem_watches_fini(struct port_mem *m);
