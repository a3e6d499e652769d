// SPDX-License-Identifier: Apache-2.0
// The event loop: epoll, timers and signals. One per thread, and used from that thread only.
#pragma once

#include "base/clock.h"
#include "base/err.h"

struct net_loop;
struct net_watch;
struct net_timer;

struct net_loop *net_loop_new(struct hk_clock *clock);
/* Free all watches and timers before. Takes NULL. */
void net_loop_free(struct net_loop *l);
/* Runs until net_loop_stop. */
int net_loop_run(struct net_loop *l, struct hk_err *err) HK_CHECKED;
/* Runs one iteration, waiting at most timeout_ms (negative: without limit). */
int net_loop_turn(struct net_loop *l, int timeout_ms, struct hk_err *err) HK_CHECKED;
void net_loop_stop(struct net_loop *l);

/* events: EPOLLIN, EPOLLOUT... The caller keeps the fd. */
struct net_watch *net_watch_add(struct net_loop *l, int fd, uint32_t events,
                                void (*fn)(void *ctx, uint32_t events), void *ctx);
void net_watch_change(struct net_watch *w, uint32_t events);
/* Call before closing the fd. Takes NULL. fn is not called any more, not even for pending
 * events. */
void net_watch_del(struct net_watch *w);

/* Fires once; arm again as needed, from fn too. at_ns is monotonic. */
struct net_timer *net_timer_new(struct net_loop *l, void (*fn)(void *ctx), void *ctx);
void net_timer_at(struct net_timer *t, int64_t at_ns);
void net_timer_off(struct net_timer *t);
/* Takes NULL. */
void net_timer_free(struct net_timer *t);
int64_t net_loop_now_ns(const struct net_loop *l);

/* Blocks the signals and delivers them on the loop, until the loop is freed. Call it before other
 * threads start, so that they inherit the mask. */
int net_signals(struct net_loop *l, const int *signals, uint32_t n,
                void (*fn)(void *ctx, int signo), void *ctx, struct hk_err *err) HK_CHECKED;
