// SPDX-License-Identifier: Apache-2.0
// The loop: descriptors, timers in order, removal while a turn runs, signals.
#include "net/loop.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

static struct net_loop *loop_new(void)
{
    return net_loop_new(hk_clock_system());
}

static void turn(struct net_loop *l, int timeout_ms)
{
    struct hk_err err = {0};

    assert_int_equal(net_loop_turn(l, timeout_ms, &err), 0);
}

/* ---- timers ---- */

struct bell {
    char **at;
    char letter;
};

static void ring(void *ctx)
{
    struct bell *b = ctx;

    *(*b->at)++ = b->letter;
}

static void test_timers_fire_in_order_of_time(void **state)
{
    static const int64_t offsets_ns[] = {5000, 1000, 4000, 2000, 3000, 0};
    struct net_loop *l = loop_new();
    const int64_t now = net_loop_now_ns(l);
    struct net_timer *timers[HK_LEN(offsets_ns)];
    struct bell bells[HK_LEN(offsets_ns)];
    char rung[HK_LEN(offsets_ns) + 1] = "", *at = rung;

    for (size_t k = 0; k < HK_LEN(offsets_ns); k++) {
        bells[k] = (struct bell){&at, (char)('a' + k)};
        timers[k] = net_timer_new(l, ring, &bells[k]);
        net_timer_at(timers[k], now - 1000000 + offsets_ns[k]);
    }
    net_timer_off(timers[2]);
    turn(l, 0);
    assert_string_equal(rung, "fbdea");
    for (size_t k = 0; k < HK_LEN(offsets_ns); k++) {
        net_timer_free(timers[k]);
    }
    net_loop_free(l);
}

static void test_a_turn_waits_for_the_first_timer(void **state)
{
    struct net_loop *l = loop_new();
    char rung[2] = "", *at = rung;
    struct bell bell = {&at, 'x'};
    struct net_timer *t = net_timer_new(l, ring, &bell);
    const int64_t due = net_loop_now_ns(l) + 3000000;

    net_timer_at(t, due);
    turn(l, -1);
    assert_string_equal(rung, "x");
    assert_true(net_loop_now_ns(l) >= due);
    net_timer_free(t);
    net_loop_free(l);
}

struct again {
    struct net_loop *loop;
    struct net_timer *timer;
    uint32_t fired;
};

static void ring_again(void *ctx)
{
    struct again *a = ctx;

    a->fired++;
    net_timer_at(a->timer, net_loop_now_ns(a->loop));
}

static void test_a_timer_that_arms_itself_fires_once_a_turn(void **state)
{
    struct again a = {.loop = loop_new()};

    a.timer = net_timer_new(a.loop, ring_again, &a);
    net_timer_at(a.timer, 0);
    turn(a.loop, 0);
    assert_int_equal(a.fired, 1);
    turn(a.loop, 0);
    assert_int_equal(a.fired, 2);
    net_timer_free(a.timer);
    net_loop_free(a.loop);
}

/* ---- descriptors ---- */

struct pair {
    int fd[2];
    struct net_watch *watch[2];
    uint32_t calls;
};

/* The first one called removes the other. */
static void end_other(void *ctx, uint32_t events)
{
    struct pair *p = ctx;

    p->calls++;
    for (int k = 0; k < 2; k++) {
        net_watch_del(p->watch[k]);
        p->watch[k] = NULL;
    }
}

static void test_a_watch_removed_in_the_same_turn_is_not_called(void **state)
{
    struct net_loop *l = loop_new();
    struct pair p = {0};

    for (int k = 0; k < 2; k++) {
        p.fd[k] = eventfd(1, EFD_CLOEXEC);
        p.watch[k] = net_watch_add(l, p.fd[k], EPOLLIN, end_other, &p);
    }
    turn(l, 0);
    assert_int_equal(p.calls, 1);
    turn(l, 0);
    assert_int_equal(p.calls, 1);
    net_loop_free(l);
    close(p.fd[0]);
    close(p.fd[1]);
}

static void count(void *ctx, uint32_t events)
{
    uint32_t *calls = ctx;

    (*calls)++;
}

static void test_a_changed_watch_waits_for_the_new_events(void **state)
{
    struct net_loop *l = loop_new();
    const int fd = eventfd(1, EFD_CLOEXEC);
    uint32_t calls = 0;
    struct net_watch *w = net_watch_add(l, fd, 0, count, &calls);

    turn(l, 0);
    assert_int_equal(calls, 0);
    net_watch_change(w, EPOLLIN);
    turn(l, 0);
    assert_int_equal(calls, 1);
    net_watch_del(w);
    net_loop_free(l);
    close(fd);
}

/* ---- signals ---- */

static void on_signal(void *ctx, int signo)
{
    assert_int_equal(signo, SIGUSR1);
    net_loop_stop(ctx);
}

static void test_a_signal_ends_the_run(void **state)
{
    static const int signals[] = {SIGUSR1};
    struct net_loop *l = loop_new();
    struct hk_err err = {0};

    assert_int_equal(net_signals(l, signals, 1, on_signal, l, &err), 0);
    raise(SIGUSR1);
    assert_int_equal(net_loop_run(l, &err), 0);
    net_loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers_fire_in_order_of_time),
        cmocka_unit_test(test_a_turn_waits_for_the_first_timer),
        cmocka_unit_test(test_a_timer_that_arms_itself_fires_once_a_turn),
        cmocka_unit_test(test_a_watch_removed_in_the_same_turn_is_not_called),
        cmocka_unit_test(test_a_changed_watch_waits_for_the_new_events),
        cmocka_unit_test(test_a_signal_ends_the_run),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
