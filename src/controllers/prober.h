// SPDX-License-Identifier: Apache-2.0
// Network probes of pods: does the port accept a connection, does a GET succeed. A room that may do
// I/O implements this for the manager; tests use a fake.
#pragma once

#include "base/str.h"

struct prober;

struct probe {
    struct hk_str host; /* an address */
    uint16_t port;
    bool http; /* false: only connect */
    /* For GET; header "" is none. Statuses 200 to 399 succeed. */
    struct hk_str path, header, value;
    int64_t timeout_ns;
};

struct prober_sink {
    void (*on_done)(void *ctx, uint64_t id, bool good);
    void *ctx;
};

struct prober_ops {
    /* Borrows its arguments. Returns an id, never 0. The sink is called exactly once, later, on the
     * manager's thread; then run the manager. */
    uint64_t (*start)(struct prober *p, const struct probe *probe, struct prober_sink sink);
    /* The sink is not called any more. */
    void (*cancel)(struct prober *p, uint64_t id);
};

/* Implementations embed this as their first member. */
struct prober {
    const struct prober_ops *ops;
};
