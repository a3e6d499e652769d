// SPDX-License-Identifier: Apache-2.0
// A port over a few objects in memory, for tests: one revision counter, conflicts, ordered watches,
// failures on demand and a log of calls. It accepts anything well-formed: no defaults, no
// admission, no garbage collection, no field owners (an apply is a merge).
//
// Calls take effect when submitted; outcomes and events wait for port_poll. Pods behave well enough
// for a scheduler: creating "binding" sets spec.nodeName once, and deleting or evicting a bound,
// unfinished pod only sets deletionTimestamp; port_mem_remove plays the node that ends it. Creating
// "token" writes the request and a token made from the revision into the service account, and
// returns that.
#pragma once

#include "api/port.h"

struct port_mem;

/* now_ns stamps creations and deletions; uids are made from the revision. */
struct port_mem *port_mem_new(int64_t now_ns);
/* The port of m; port_free on it frees m. */
struct port *port_mem_port(struct port_mem *m);
void port_mem_set_now(struct port_mem *m, int64_t now_ns);

/* Creates or replaces an object as another client would; watches see it. */
int port_mem_put(struct port_mem *m, const struct json *doc, struct hk_err *err) HK_CHECKED;
/* The same for removal; false when there is none. */
bool port_mem_remove(struct port_mem *m, const struct api_kind *kind, struct hk_str ns,
                     struct hk_str name);
/* The current object, borrowed until it changes; NULL when there is none. */
const struct api_object *port_mem_peek(struct port_mem *m, const struct api_kind *kind,
                                       struct hk_str ns, struct hk_str name);
/* Calls fn for each object of the kind in order of creation. fn may change or remove its object. */
void port_mem_each(struct port_mem *m, const struct api_kind *kind,
                   void (*fn)(void *ctx, const struct api_object *o), void *ctx);
uint64_t port_mem_rv(const struct port_mem *m);

/* The nth call from now (1 is the next) of that verb fails with code and changes nothing. */
void port_mem_fail(struct port_mem *m, enum port_verb verb, uint32_t nth, enum hk_code code);
/* From now on refuses creations and bindings in the namespace, as if it were being deleted. One
 * namespace at a time; "" ends this. */
void port_mem_end_namespace(struct port_mem *m, const char *ns);
/* Forgets all events so far: a watch from an older revision ends with HK_EGONE. */
void port_mem_compact(struct port_mem *m);
/* Ends every watch with code, as a lost connection would. */
void port_mem_end_watches(struct port_mem *m, enum hk_code code);
/* Sends a bookmark to all watches with bookmarks. */
void port_mem_bookmark(struct port_mem *m);

/* One line per call since the last clear: "create pods/binding default/a", "update queues q1". */
struct hk_str port_mem_log(const struct port_mem *m);
void port_mem_log_clear(struct port_mem *m);
