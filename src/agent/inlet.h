// SPDX-License-Identifier: Apache-2.0
// Standard input on its way from channels to a descriptor of a process. What the process does not
// take yet waits here, and the peer waits too.
#pragma once

#include "agent/channels.h"

struct inlet {
    struct net_loop *loop;
    struct channels *from;
    int fd; /* -1: none, or it takes no more */
    struct net_watch *watch;
    struct hk_buf rest; /* not yet taken: [at, rest.len) */
    size_t at;
    bool ends; /* nothing more comes */
};

/* Takes fd, which must not block; -1: what comes is thrown away. */
void inlet_open(struct inlet *i, struct net_loop *loop, struct channels *from, int fd);
void inlet_fini(struct inlet *i);
void inlet_take(struct inlet *i, struct hk_str bytes);
/* Closes the descriptor when all has gone there. */
void inlet_end(struct inlet *i);
