// SPDX-License-Identifier: Apache-2.0
// Questions put to pods over the network: does the port take a connection, is a GET answered well.
// Who can do I/O makes one and hands it to the manager; tests bring a fake.
#pragma once

#include "base/str.h"

struct prober;

struct probe {
    struct hk_str host; /* an address */
    uint16_t port;
    bool http; /* else a connection is enough */
    /* Of a GET; a header without name is none. Good are the answers 200 to 399. */
    struct hk_str path, header, value;
    int64_t timeout_ns;
};

struct prober_sink {
    void (*on_done)(void *ctx, uint64_t id, bool good);
    void *ctx;
};

struct prober_ops {
    /* Everything is borrowed for the call. The answer is never 0; the sink hears of the outcome
     * exactly once, later, on the thread of the manager, which is to be run after that. */
    uint64_t (*start)(struct prober *p, const struct probe *probe, struct prober_sink sink);
    /* The sink hears no more of it. */
    void (*cancel)(struct prober *p, uint64_t id);
};

/* Makers embed this first. */
struct prober {
    const struct prober_ops *ops;
};
