// SPDX-License-Identifier: Apache-2.0
// The lifecycle hooks of a container.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct container;
struct net_probe;

struct hook {
    uint64_t exec;         /* in flight, 0 none */
    struct net_probe *net; /* network request in flight, or NULL */
    int64_t due_ns;        /* end of a sleep action, INT64_MAX none */
};

/* Starts lifecycle.NAME if the container has it. */
void hook_begin(struct container *c, const char *name, int64_t now_ns);
bool hook_runs(const struct container *c);
/* Does what is due; returns the time of the next action. */
int64_t hook_tick(struct container *c, int64_t now_ns);
/* Handles the end of a command; false when it is not the hook. */
bool hook_on_end(struct container *c, uint64_t id, bool good);
/* Cancels the hook. */
void hook_end(struct container *c);
