// SPDX-License-Identifier: Apache-2.0
// A port over a handful of objects in memory, for tests: one revision counter, conflicts, watches
// in order, failures on demand and a log of the calls made. It admits anything well-formed: no
// defaults, no admission, no garbage collection. Nobody owns a field, so an
// apply is a merge.
//
// Calls take effect when submitted; outcomes and events wait for port_poll. Pods behave enough like
// pods for a scheduler: creating "binding" sets spec.nodeName once, and deleting or evicting a
// bound pod that has not finished only marks it with a deletionTimestamp; port_mem_remove plays the
// node that ends it. Creating "token" writes the request, and a token made from the revision, into
// the service account, and answers with that.
#pragma once

#include "api/port.h"

struct port_mem;

/* now_ns stamps creations and deletions; uids are made from the revision. */
struct port_mem *port_mem_new(int64_t now_ns);
/* The port, owned by m; port_free on it ends m. */
struct port *port_mem_port(struct port_mem *m);
void port_mem_set_now(struct port_mem *m, int64_t now_ns);

/* Puts an object in as if someone else had created or replaced it; watchers hear of it. */
int port_mem_put(struct port_mem *m, const struct json *doc, struct hk_err *err) HK_CHECKED;
/* The same for removing; false when there is none. */
bool port_mem_remove(struct port_mem *m, const struct api_kind *kind, struct hk_str ns,
                     struct hk_str name);
/* The current object, borrowed until it changes; NULL when there is none. */
const struct api_object *port_mem_peek(struct port_mem *m, const struct api_kind *kind,
                                       struct hk_str ns, struct hk_str name);
/* Calls fn for each object of the kind, in the order they were first made. fn may change the object
 * it is given, or remove it. */
void port_mem_each(struct port_mem *m, const struct api_kind *kind,
                   void (*fn)(void *ctx, const struct api_object *o), void *ctx);
uint64_t port_mem_rv(const struct port_mem *m);

/* The nth call from now (1 is the next) of that verb fails with code and changes nothing. */
void port_mem_fail(struct port_mem *m, enum port_verb verb, uint32_t nth, enum hk_code code);
/* Forgets the events so far: a watch from an older revision ends with HK_EGONE. */
void port_mem_compact(struct port_mem *m);
/* Ends every watch with code, as a lost connection would. */
void port_mem_end_watches(struct port_mem *m, enum hk_code code);
/* Sends a bookmark to the watches that asked for them. */
void port_mem_bookmark(struct port_mem *m);

/* One line per call since the last clear: "create pods/binding default/a", "update queues q1". */
struct hk_str port_mem_log(const struct port_mem *m);
void port_mem_log_clear(struct port_mem *m);
