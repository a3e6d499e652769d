// SPDX-License-Identifier: Apache-2.0
// The probes of a container, and the actions that probes and hooks share.
#pragma once

#include "net/probe.h"

#include <stdbool.h>
#include <stdint.h>

struct container;
struct json;

enum probe_kind { PROBE_STARTUP, PROBE_LIVENESS, PROBE_READINESS, PROBE_NKINDS };

struct probe {
    const struct json *spec; /* NULL: none */
    struct container *c;
    uint64_t exec;         /* in flight, 0 none */
    struct net_probe *net; /* in flight, or NULL */
    int64_t due_ns;        /* time of the next probe, or timeout of this one */
    uint32_t good, bad;    /* in a row */
};

/* Call when the container has started. */
void probe_begin(struct container *c, int64_t now_ns);
/* Call when the container has ended. */
void probe_end(struct container *c);
/* Starts probes that are due; returns the time of the next one. */
int64_t probe_tick(struct container *c, int64_t now_ns);
/* Handles the end of a command; false when it is not a probe of the container. */
bool probe_on_end(struct container *c, uint64_t id, bool good);
/* Starts a command inside the container; 0 on failure. */
uint64_t probe_exec(struct container *c, const struct json *command);
/* Probes the address and port of an action; NULL when it has none. */
struct net_probe *probe_connect(const struct container *c, const struct json *action,
                                const struct net_probe_opts *o);
/* HTTP or HTTPS. */
enum net_probe_kind probe_http_kind(const struct json *action);
