// SPDX-License-Identifier: Apache-2.0
// Copies standard input from channels to a descriptor of a process. Input that the process does not
// read yet waits here, and the peer is paused.
#pragma once

#include "agent/serve/channels.h"

struct stdin_pipe {
    struct net_loop *loop;
    struct channels *from;
    int fd; /* -1: none, or closed */
    struct net_watch *watch;
    struct hk_buf rest; /* not yet written: [at, rest.len) */
    size_t at;
    bool ends; /* the input has ended */
};

/* Takes fd, which must be non-blocking; -1 discards the input. */
void stdin_pipe_open(struct stdin_pipe *i, struct net_loop *loop, struct channels *from, int fd);
void stdin_pipe_fini(struct stdin_pipe *i);
void stdin_pipe_write(struct stdin_pipe *i, struct hk_str bytes);
/* Closes the descriptor once all input is written. */
void stdin_pipe_end(struct stdin_pipe *i);
