// SPDX-License-Identifier: Apache-2.0
// Services and where they lead: a small copy of every Service with the endpoints of its
// EndpointSlices, kept current through the port. The proxy and the agent share one.
#pragma once

#include "api/port.h"
#include "base/clock.h"
#include "base/vec.h"

enum service_protocol { SERVICE_TCP, SERVICE_UDP, SERVICE_SCTP };

struct service_port {
    char *name;               /* "" when the only port has none */
    uint16_t port, node_port; /* node_port 0: none */
    uint8_t protocol;         /* enum service_protocol */
};

struct service_endpoint {
    char *address;
    char *hostname; /* NULL: none */
    bool ready;
    bool serving; /* also while it terminates */
};

/* One EndpointSlice. */
struct service_slice {
    char *name;
    HK_VEC(struct service_port) ports; /* where the endpoints listen */
    HK_VEC(struct service_endpoint) endpoints;
};

struct service {
    char *ns, *name;
    bool exists; /* false: only slices of it are known */
    bool headless;
    char *address;      /* the cluster IP, "" none */
    char *external;     /* the name that a Service of type ExternalName stands for; NULL: none */
    int64_t affinity_s; /* sessionAffinity ClientIP for this long; 0: none */
    HK_VEC(struct service_port) ports;
    HK_VEC(struct service_slice) slices;
};

struct services;

/* Starts to follow; the clock and the port outlive it. */
struct services *services_new(struct port *port, struct hk_clock *clock);
/* Takes NULL. */
void services_free(struct services *s);
/* Does what is due; returns the monotonic time of the next action, INT64_MAX none. */
int64_t services_tick(struct services *s, int64_t now_ns);
/* The first lists are complete. */
bool services_synced(const struct services *s);

/* Calls fn after every change of a Service or its endpoints, and after its removal (exists is false
 * then). The Service is borrowed for the call. */
void services_listen(struct services *s, void (*fn)(void *ctx, const struct service *svc),
                     void *ctx);
/* The listener with that ctx is not called any more. */
void services_unlisten(struct services *s, const void *ctx);
/* The rows, in an order that changes only when Services come and go; NULL: a free row. */
const struct service *services_at(const struct services *s, uint32_t row);
uint32_t services_rows(const struct services *s);
/* NULL: neither the Service nor a slice of it is known. */
const struct service *services_find(const struct services *s, struct hk_str ns, struct hk_str name);

/* An endpoint of one port. */
struct service_target {
    const char *address; /* borrowed from the Service */
    uint16_t port;
};
typedef HK_VEC(struct service_target) service_targets;

/* Adds the ready endpoints of the port, or, when none is ready, those that terminate and still
 * serve. */
void service_find_targets(const struct service *svc, const struct service_port *port,
                          service_targets *ret);
