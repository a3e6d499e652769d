// SPDX-License-Identifier: Apache-2.0
// The loop: one epoll set, a heap of timers, a signalfd. A turn waits until the first timer at the
// latest, then calls the handlers of ready descriptors, then those of due timers. A watch that is
// removed during a turn stays in memory until its end, because the kernel's list of ready
// descriptors may still contain it.
#include "net/loop.h"

#include "base/vec.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { TURN_EVENTS = 64 };

struct net_watch {
    struct net_loop *loop;
    int fd;
    void (*fn)(void *ctx, uint32_t events); /* NULL: removed */
    void *ctx;
    struct net_watch *next_dead;
};

struct net_timer {
    struct net_loop *loop;
    int64_t at_ns;
    uint32_t slot; /* index in the heap, UINT32_MAX: off */
    void (*fn)(void *ctx);
    void *ctx;
};

struct net_loop {
    struct hk_clock *clock;
    int epfd;
    bool stopped;
    HK_VEC(struct net_timer *) heap; /* earliest first */
    struct net_watch *dead;
    uint32_t nwatches;

    int sigfd;
    struct net_watch *sigwatch;
    void (*on_signal)(void *ctx, int signo);
    void *signal_ctx;
};

struct net_loop *net_loop_new(struct hk_clock *clock)
{
    struct net_loop *l = hk_zalloc(sizeof(*l));

    l->clock = clock;
    l->sigfd = -1;
    l->epfd = epoll_create1(EPOLL_CLOEXEC);
    hk_assert(l->epfd >= 0); /* fails only if the process has no descriptors left at its start */
    return l;
}

static void net_loop_free_dead(struct net_loop *l)
{
    while (l->dead) {
        struct net_watch *w = l->dead;
        l->dead = w->next_dead;
        hk_free(w);
    }
}

void net_loop_free(struct net_loop *l)
{
    if (!l) {
        return;
    }
    net_watch_del(l->sigwatch);
    if (l->sigfd >= 0) {
        close(l->sigfd);
    }
    net_loop_free_dead(l);
    hk_assert(l->nwatches == 0 && l->heap.len == 0);
    close(l->epfd);
    hk_vec_fini(&l->heap);
    hk_free(l);
}

int64_t net_loop_now_ns(const struct net_loop *l)
{
    return l->clock->mono_ns(l->clock);
}

/* ---- descriptors ---- */

struct net_watch *net_watch_add(struct net_loop *l, int fd, uint32_t events,
                                void (*fn)(void *ctx, uint32_t events), void *ctx)
{
    struct net_watch *w = hk_zalloc(sizeof(*w));
    struct epoll_event ev = {.events = events, .data.ptr = w};

    *w = (struct net_watch){.loop = l, .fd = fd, .fn = fn, .ctx = ctx};
    const int rc = epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev);
    hk_assert(rc == 0);
    l->nwatches++;
    return w;
}

void net_watch_change(struct net_watch *w, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = w};

    const int rc = epoll_ctl(w->loop->epfd, EPOLL_CTL_MOD, w->fd, &ev);
    hk_assert(rc == 0);
}

void net_watch_del(struct net_watch *w)
{
    if (!w) {
        return;
    }
    const int rc = epoll_ctl(w->loop->epfd, EPOLL_CTL_DEL, w->fd, NULL);
    hk_assert(rc == 0);
    w->fn = NULL;
    w->loop->nwatches--;
    w->next_dead = w->loop->dead;
    w->loop->dead = w;
}

/* ---- timers: a binary heap in which each timer knows its index ---- */

static void net_loop_heap_set(struct net_loop *l, uint32_t slot, struct net_timer *t)
{
    l->heap.at[slot] = t;
    t->slot = slot;
}

static void net_loop_sift_up(struct net_loop *l, struct net_timer *t)
{
    uint32_t slot = t->slot;

    while (slot > 0 && t->at_ns < l->heap.at[(slot - 1) / 2]->at_ns) {
        net_loop_heap_set(l, slot, l->heap.at[(slot - 1) / 2]);
        slot = (slot - 1) / 2;
    }
    net_loop_heap_set(l, slot, t);
}

static void net_loop_sift_down(struct net_loop *l, struct net_timer *t)
{
    uint32_t slot = t->slot;

    for (;;) {
        uint32_t child = 2 * slot + 1;
        if (child + 1 < l->heap.len && l->heap.at[child + 1]->at_ns < l->heap.at[child]->at_ns) {
            child++;
        }
        if (child >= l->heap.len || t->at_ns <= l->heap.at[child]->at_ns) {
            break;
        }
        net_loop_heap_set(l, slot, l->heap.at[child]);
        slot = child;
    }
    net_loop_heap_set(l, slot, t);
}

struct net_timer *net_timer_new(struct net_loop *l, void (*fn)(void *ctx), void *ctx)
{
    struct net_timer *t = hk_zalloc(sizeof(*t));

    *t = (struct net_timer){.loop = l, .slot = UINT32_MAX, .fn = fn, .ctx = ctx};
    return t;
}

void net_timer_at(struct net_timer *t, int64_t at_ns)
{
    struct net_loop *l = t->loop;

    t->at_ns = at_ns;
    if (t->slot == UINT32_MAX) {
        t->slot = l->heap.len;
        hk_vec_push(&l->heap, t);
    }
    net_loop_sift_up(l, t);
    net_loop_sift_down(l, t);
}

void net_timer_off(struct net_timer *t)
{
    struct net_loop *l = t->loop;
    const uint32_t slot = t->slot;

    if (slot == UINT32_MAX) {
        return;
    }
    struct net_timer *last = hk_vec_pop(&l->heap);
    t->slot = UINT32_MAX;
    if (last != t) {
        net_loop_heap_set(l, slot, last);
        net_loop_sift_up(l, last);
        net_loop_sift_down(l, last);
    }
}

void net_timer_free(struct net_timer *t)
{
    if (t) {
        net_timer_off(t);
        hk_free(t);
    }
}

/* Fires only timers that were due at the start: a timer set to "now" waits for the next turn, so
 * that descriptors get theirs. */
static void fire_timers(struct net_loop *l)
{
    const int64_t now = net_loop_now_ns(l);

    for (uint32_t budget = l->heap.len; budget > 0; budget--) {
        struct net_timer *t = l->heap.len > 0 ? l->heap.at[0] : NULL;
        if (!t || t->at_ns > now) {
            return;
        }
        net_timer_off(t);
        t->fn(t->ctx);
    }
}

/* ---- turns ---- */

/* Rounded up: waking early would repeat turns until the timer is due. */
static int wait_ms(const struct net_loop *l, int timeout_ms)
{
    if (l->heap.len == 0) {
        return timeout_ms;
    }
    const int64_t left = l->heap.at[0]->at_ns - net_loop_now_ns(l);
    const int64_t ms = left <= 0 ? 0 : HK_MIN((left + 999999) / 1000000, (int64_t)INT_MAX);
    return timeout_ms >= 0 ? HK_MIN(timeout_ms, (int)ms) : (int)ms;
}

int net_loop_turn(struct net_loop *l, int timeout_ms, struct hk_err *err)
{
    struct epoll_event ready[TURN_EVENTS];
    const int n = epoll_wait(l->epfd, ready, TURN_EVENTS, wait_ms(l, timeout_ms));

    if (n < 0 && errno != EINTR) {
        return hk_fail(err, HK_EIO, "cannot wait for events: %m");
    }
    for (int k = 0; k < n; k++) {
        struct net_watch *w = ready[k].data.ptr;
        if (w->fn) {
            w->fn(w->ctx, ready[k].events);
        }
    }
    fire_timers(l);
    net_loop_free_dead(l);
    return 0;
}

int net_loop_run(struct net_loop *l, struct hk_err *err)
{
    int rc = 0;

    l->stopped = false;
    while (rc == 0 && !l->stopped) {
        rc = net_loop_turn(l, -1, err);
    }
    return rc;
}

void net_loop_stop(struct net_loop *l)
{
    l->stopped = true;
}

/* ---- signals ---- */

static void on_sigfd(void *ctx, uint32_t events)
{
    struct net_loop *l = ctx;
    struct signalfd_siginfo info;

    while (read(l->sigfd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        l->on_signal(l->signal_ctx, (int)info.ssi_signo);
    }
}

int net_signals(struct net_loop *l, const int *signals, uint32_t n,
                void (*fn)(void *ctx, int signo), void *ctx, struct hk_err *err)
{
    sigset_t set;

    hk_assert(l->sigfd < 0);
    sigemptyset(&set);
    for (uint32_t k = 0; k < n; k++) {
        sigaddset(&set, signals[k]);
    }
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) {
        return hk_fail(err, HK_EIO, "cannot block signals: %m");
    }
    l->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->sigfd < 0) {
        return hk_fail(err, HK_EIO, "cannot make a signal descriptor: %m");
    }
    l->on_signal = fn;
    l->signal_ctx = ctx;
    l->sigwatch = net_watch_add(l, l->sigfd, EPOLLIN, on_sigfd, l);
    return 0;
}
