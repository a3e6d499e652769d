// SPDX-License-Identifier: Apache-2.0
// The ConfigMaps, Secrets, claims and tokens that a pod refers to.
#pragma once

#include "api/port.h"
#include "base/arena.h"

struct pod;
struct source;

/* A ConfigMap, Secret or claim that a pod refers to. */
struct ref {
    enum api_kind_id kind; /* ServiceAccount: its token */
    struct hk_str name;
    const struct json *token; /* the volume source that needs a token; NULL: not a token */
    bool optional;
    bool in_volume;
    uint64_t call;
    struct source *source;     /* watches it, or NULL */
    struct api_object *obj;    /* NULL: does not exist */
    struct api_object *volume; /* the claim's volume, NULL: none */
};

/* Collects what the pod refers to, each object once, into p->refs. */
void ref_collect(struct pod *p);
/* Adds what the variables of one container refer to. */
void ref_collect_env(struct pod *p, const struct json *container);
const struct ref *ref_find(const struct pod *p, enum api_kind_id kind, struct hk_str name);
/* The bytes under key in a ConfigMap or Secret; false when absent or invalid base64. */
bool ref_data(const struct ref *r, struct hk_str key, struct hk_arena *a, struct hk_str *ret);
/* Requests the object from the API; returns the call's id. */
uint64_t ref_ask(const struct pod *p, const struct ref *r, struct port_sink sink);
/* A newer state of an object that the pod's volumes show. */
void ref_changed(struct pod *p, struct ref *r, struct api_object *o);
/* The token for a volume source; "" when there is none. */
struct hk_str ref_token(const struct pod *p, const struct json *source);
/* When to renew the first of the pod's tokens, monotonic; INT64_MAX: it has none. */
int64_t ref_renew_ns(const struct pod *p);
