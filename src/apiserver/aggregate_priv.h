// SPDX-License-Identifier: Apache-2.0
// Shared by aggregate.c (the book of APIServices, and forwarding), aggregate_check.c (their condition
// and discovery), aggregate_target.c (where a Service leads) and aggregate_local.c (what this server
// publishes about itself).
#pragma once

#include "apiserver/aggregate.h"
#include "base/vec.h"
#include "net/fetch.h"

enum { AGGREGATE_HTTPS_PORT = 443 };

/* One APIService with spec.service. */
struct aggregate_service {
    struct aggregate *a;
    char *name; /* "v1.group" */
    char *group, *version;
    char *svc_ns, *svc_name;
    char *server_name; /* in its certificate: "name.namespace.svc" */
    int64_t port;      /* of the Service */
    bool insecure;
    char *ca_pem; /* NULL: the system's authorities */
    int64_t group_priority, version_priority;
    bool seen;          /* while the book is compared with the store */
    bool gone;          /* deleted; freed when no request uses it */
    uint32_t forwarded; /* requests that it answers now */
    bool available;
    const char *lack;    /* why its Service leads nowhere (a literal); NULL: it leads somewhere */
    bool stale;          /* the last discovery failed */
    struct fetch *fetch; /* the running check; NULL: none */
    bool fetch_over;     /* it has ended, and must be freed */
    bool trusting;       /* it does not verify the certificate */
    uint32_t failures;   /* checks in a row */
    int64_t due_ns;      /* of the next check */
    struct hk_arena mem; /* for resources */
    struct json resources;
    bool has_resources;
};

struct aggregate {
    struct aggregate_opts o;
    HK_VEC(struct aggregate_service *) all; /* in order of preference, then those that are gone */
    uint32_t res, services_res, endpoints_res, slices_res, config_res, roles_res;
    bool read;
    uint64_t rv;         /* revision that the book shows */
    uint64_t targets_rv; /* the same of Services and their endpoints */
    struct net_timer *tick;
    uint64_t kinds;     /* rest_kinds_generation when local ones were compared; 0: never */
    bool local_due;     /* they must be compared */
    uint64_t config_rv; /* revision of ConfigMaps when the published one was compared */
};

/* ---- aggregate.c ---- */

/* Whether an object of the resource has changed since that revision. */
bool aggregate_has_changed(const struct aggregate *a, uint32_t res, uint64_t since);
/* Runs the tick soon. */
void aggregate_wake(struct aggregate *a);
/* Parses the object; NULL: there is none. */
const struct json *aggregate_read(const struct aggregate *a, uint32_t res, struct hk_str ns,
                                  struct hk_str name, struct hk_arena *mem);

/* ---- aggregate_target.c ---- */

struct aggregate_target {
    struct hk_str host; /* in mem */
    uint16_t port;
    const char *reason; /* of the condition if there is no target, else NULL */
    const char *message;
};
void aggregate_find_target(const struct aggregate_service *s, struct hk_arena *mem,
                           struct aggregate_target *ret);

/* ---- aggregate_check.c ---- */

/* Starts the check if it is due; returns when it is due next. */
int64_t aggregate_check(struct aggregate_service *s);
/* Services or endpoints have changed: makes the check due if that matters. */
void aggregate_recheck(struct aggregate_service *s);
/* Writes the condition Available unless the object has it already. */
void aggregate_set_condition(const struct aggregate *a, const struct json *object, bool available,
                             const char *reason, const char *message);

/* ---- aggregate_local.c ---- */

/* Compares what this server publishes about itself with what is stored. */
void aggregate_publish(struct aggregate *a);
