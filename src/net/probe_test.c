// SPDX-License-Identifier: Apache-2.0
// Probes against a listener that says what the case wants.
#include "net/probe.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct net_loop *loop;
    struct net_watch *watch;
    int fd;
    uint16_t port;
    const char *answer; /* NULL: accepts and stays silent */
    int peer;
    int outcome; /* -1: none yet */
};

static void on_accept(void *ctx, uint32_t events)
{
    struct fixture *f = ctx;

    f->peer = accept(f->fd, NULL, NULL);
    if (f->answer) {
        assert_int_equal(send(f->peer, f->answer, strlen(f->answer), 0), strlen(f->answer));
        shutdown(f->peer, SHUT_WR);
    }
}

static void on_done(void *ctx, struct net_probe *p, bool good)
{
    struct fixture *f = ctx;

    assert_int_equal(f->outcome, -1);
    f->outcome = good;
    net_probe_free(p);
}

static void begin(struct fixture *f, const char *answer)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    *f = (struct fixture){.answer = answer, .peer = -1, .outcome = -1};
    f->loop = net_loop_new(hk_clock_system());
    f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->fd, (void *)&at, len), 0);
    assert_int_equal(listen(f->fd, 4), 0);
    assert_int_equal(getsockname(f->fd, (void *)&at, &len), 0);
    f->port = ntohs(at.sin_port);
    f->watch = net_watch_add(f->loop, f->fd, EPOLLIN, on_accept, f);
}

static void end(struct fixture *f)
{
    net_watch_del(f->watch);
    close(f->fd);
    if (f->peer >= 0) {
        close(f->peer);
    }
    net_loop_free(f->loop);
}

static int ask(struct fixture *f, struct net_probe_opts o)
{
    struct hk_err err = {0};

    o.host = o.host.n > 0 ? o.host : HK_STR("127.0.0.1");
    o.port = o.port ? o.port : f->port;
    o.done = on_done;
    o.ctx = f;
    net_probe_new(f->loop, &o);
    while (f->outcome < 0) {
        assert_int_equal(net_loop_turn(f->loop, -1, &err), 0);
    }
    return f->outcome;
}

#define SECOND ((int64_t)1000000000)

static void answers_decide(void **state)
{
    static const struct {
        const char *answer;
        int good;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1},
        {"HTTP/1.0 399 Whatever\r\n\r\n", 1},
        {"HTTP/1.1 500 Oops\r\n\r\n", 0},
        {"HTTP/1.1 199 Early\r\n\r\n", 0},
        {"SSH-2.0-x\r\n", 0},
        {"", 0},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct fixture f;

        begin(&f, cases[i].answer);
        assert_int_equal(ask(&f,
                             (struct net_probe_opts){
                                 .http = true, .path = HK_STR("/up"), .timeout_ns = 30 * SECOND}),
                             cases[i].good);
        end(&f);
    }
}

static void a_connection_is_enough_without_http(void **state)
{
    struct fixture f;

    begin(&f, NULL);
    assert_int_equal(ask(&f, (struct net_probe_opts){.timeout_ns = 30 * SECOND}), 1);
    end(&f);
}

static void silence_ends_with_the_deadline(void **state)
{
    struct fixture f;

    begin(&f, NULL);
    assert_int_equal(ask(&f, (struct net_probe_opts){.http = true, .timeout_ns = SECOND / 50}), 0);
    end(&f);
}

static void what_cannot_be_asked_fails(void **state)
{
    static const struct net_probe_opts cases[] = {
        {.host = {"localhost", 9}, .timeout_ns = SECOND},
        {.host = {"127.0.0.1.5", 11}, .timeout_ns = SECOND},
        {.http = true, .path = {"/a\r\nX: y", 8}, .timeout_ns = SECOND},
        {.port = 1, .timeout_ns = 30 * SECOND},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct fixture f;

        begin(&f, NULL);
        assert_int_equal(ask(&f, cases[i]), 0);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_decide),
        cmocka_unit_test(a_connection_is_enough_without_http),
        cmocka_unit_test(silence_ends_with_the_deadline),
        cmocka_unit_test(what_cannot_be_asked_fails),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("net/probe", tests, NULL, NULL);
}
