// SPDX-License-Identifier: Apache-2.0
// The life of a daemon: it works while it may, answers for its health, and ends in order. The API
// server of these tests does not exist.
#include "daemon/daemon.h"

#include "base/log.h"
#include "cli/capture_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#define MS_NS ((int64_t)1000 * 1000)

enum { PAUSE_MS = 2 };

struct fixture {
    struct daemon_opts o;
    struct daemon_work work;
    struct daemon d;
    struct hk_err err;
    struct capture printed;
    struct net_timer *timer;
    void (*visit)(struct fixture *f); /* plays the user, every PAUSE_MS */

    struct hk_buf story; /* one word per call of the work */
    uint32_t runs, drains_left;
    bool stop_at_first_run;

    /* The request in flight to an HTTP server of the daemon. */
    int fd; /* negative: none */
    struct hk_buf answer;
    uint32_t step;
};

/* ---- the work ---- */

static void tell(struct fixture *f, const char *word)
{
    hk_buf_addf(&f->story, "%s%s", f->story.len > 0 ? " " : "", word);
}

static void work_start(void *ctx)
{
    tell(ctx, "start");
}

static int64_t work_run(void *ctx)
{
    struct fixture *f = ctx;

    if (f->runs++ == 0 && f->stop_at_first_run) {
        daemon_stop(&f->d);
    }
    return INT64_MAX;
}

static bool work_drain(void *ctx)
{
    struct fixture *f = ctx;

    tell(f, "drain");
    if (f->drains_left > 0) {
        f->drains_left--;
        daemon_wake(&f->d);
        return false;
    }
    return true;
}

static void work_end(void *ctx)
{
    tell(ctx, "end");
}

static void work_metrics(void *ctx, struct hk_buf *out)
{
    hk_buf_adds(out, "work_total 7\n");
}

static void work_show(void *ctx, int signo)
{
    tell(ctx, signo == SIGUSR1 ? "show1" : "show2");
}

/* ---- the daemon ---- */

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    f->o = (struct daemon_opts){.name = "test",
                                .component = "hekla-test",
                                .master = "http://127.0.0.1:1",
                                .qps = -1,
                                .burst = 1,
                                .healthz_address = "127.0.0.1:0",
                                .listen_address = "127.0.0.1:0",
                                .lease_ns = "ns",
                                .lease_name = "lease",
                                .lease_duration_ns = 15000 * MS_NS,
                                .renew_deadline_ns = 10000 * MS_NS,
                                .retry_period_ns = 2000 * MS_NS};
    f->work = (struct daemon_work){.start = work_start,
                                   .run = work_run,
                                   .drain = work_drain,
                                   .end = work_end,
                                   .write_metrics = work_metrics,
                                   .show = work_show,
                                   .ctx = f};
    f->fd = -1;
    hk_log_set_level(HK_LOG_ERROR);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    sigset_t set;

    capture_end(&f->printed);
    if (f->fd >= 0) {
        close(f->fd);
    }
    net_timer_free(f->timer);
    daemon_close(&f->d);
    hk_buf_fini(&f->story);
    hk_buf_fini(&f->answer);
    hk_free(f);
    sigemptyset(&set);
    for (size_t i = 0; i < HK_LEN(signals); i++) {
        sigaddset(&set, signals[i]);
    }
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    return 0;
}

static void on_visit(void *ctx)
{
    struct fixture *f = ctx;

    net_timer_at(f->timer, net_loop_now_ns(f->d.loop) + PAUSE_MS * MS_NS);
    f->visit(f);
}

/* From open to end; visit, if there is one, must stop the daemon. */
static int live(struct fixture *f, void (*visit)(struct fixture *f))
{
    if (daemon_open(&f->d, &f->o, &f->work, &f->err) < 0) {
        fail_msg("%s", f->err.text);
    }
    if (visit) {
        f->visit = visit;
        f->timer = net_timer_new(f->d.loop, on_visit, f);
        net_timer_at(f->timer, net_loop_now_ns(f->d.loop));
    }
    capture_begin(&f->printed);
    const int rc = daemon_run(&f->d, &f->err);
    capture_end(&f->printed);
    return rc;
}

/* ---- a request to it ---- */

/* Sends "METHOD PATH", and returns the answer once it is whole. */
static const char *ask(struct fixture *f, const struct http_server *s, const char *line)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(http_server_port(s)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char chunk[4096];
    ssize_t n;

    if (f->fd < 0) {
        HK_AUTO(hk_buf_fini) struct hk_buf request = {0};
        hk_buf_addf(&request, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", line);
        f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        hk_buf_clear(&f->answer);
        assert_int_equal(connect(f->fd, (const void *)&to, sizeof(to)), 0);
        assert_int_equal(send(f->fd, request.data, request.len, 0), request.len);
    }
    while ((n = recv(f->fd, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0) {
        hk_buf_add(&f->answer, chunk, (size_t)n);
    }
    if (n < 0 && errno == EAGAIN) {
        return NULL;
    }
    close(f->fd);
    f->fd = -1;
    return hk_buf_str(&f->answer).s;
}

/* ---- working and ending ---- */

static void it_works_at_once_without_an_election(void **state)
{
    struct fixture *f = *state;

    f->stop_at_first_run = true;
    assert_int_equal(live(f, NULL), 0);
    assert_string_equal(f->story.data, "start drain end");
}

static void it_ends_when_nothing_is_in_flight(void **state)
{
    struct fixture *f = *state;

    f->stop_at_first_run = true;
    f->drains_left = 2;
    assert_int_equal(live(f, NULL), 0);
    assert_string_equal(f->story.data, "start drain drain drain end");
}

static void terminate(struct fixture *f)
{
    if (f->runs > 0 && !f->d.stopping) {
        raise(SIGTERM);
    }
}

static void a_signal_ends_it(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(live(f, terminate), 0);
    assert_string_equal(f->story.data, "start drain end");
}

static void show_and_stop(struct fixture *f)
{
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGHUP};

    if (f->step < HK_LEN(signals)) {
        raise(signals[f->step++]);
    } else if (!f->d.stopping) {
        daemon_stop(&f->d);
    }
}

static void other_signals_show_what_it_does(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(live(f, show_and_stop), 0);
    assert_string_equal(f->story.data, "start show1 show2 drain end");
}

/* ---- elections ---- */

static void stop_soon(struct fixture *f)
{
    if (f->step++ == 5) {
        daemon_stop(&f->d);
    }
}

static void without_the_lease_it_does_not_work(void **state)
{
    struct fixture *f = *state;

    f->o.elect = true;
    assert_int_equal(live(f, stop_soon), 0);
    assert_string_equal(hk_buf_str(&f->story).s, "");
}

static void ask_for_leadership(struct fixture *f)
{
    const char *answer = f->d.stopping ? NULL : ask(f, f->d.metrics, "GET /metrics");

    if (answer) {
        assert_non_null(strstr(answer, "leader_election_master_status{name=\"lease\"} 0\n"));
        assert_null(strstr(answer, "work_total"));
        daemon_stop(&f->d);
    }
}

static void metrics_say_that_it_does_not_lead(void **state)
{
    struct fixture *f = *state;

    f->o.elect = f->o.metrics = true;
    assert_int_equal(live(f, ask_for_leadership), 0);
}

/* ---- health and metrics ---- */

static const struct {
    bool metrics; /* asks that server, not the one for health */
    const char *request, *status, *text;
} questions[] = {
    {false, "GET /healthz", "HTTP/1.1 200", "\r\n\r\nok"},
    {false, "GET /healthz/ping", "HTTP/1.1 200", "\r\n\r\nok"},
    {false, "GET /metrics", "HTTP/1.1 404", "404 page not found\n"},
    {false, "POST /healthz", "HTTP/1.1 405", "405 method not allowed\n"},
    {true, "GET /metrics", "HTTP/1.1 200", "\nprocess_cpu_seconds_total "},
    {true, "GET /metrics", "HTTP/1.1 200", "work_total 7\n"},
    {true, "GET /healthz", "HTTP/1.1 404", "404 page not found\n"},
    {true, "DELETE /metrics", "HTTP/1.1 405", "405 method not allowed\n"},
};

static void ask_all_questions(struct fixture *f)
{
    if (f->step == HK_LEN(questions)) {
        if (!f->d.stopping) {
            daemon_stop(&f->d);
        }
        return;
    }
    const char *answer =
        ask(f, questions[f->step].metrics ? f->d.metrics : f->d.health, questions[f->step].request);
    if (!answer) {
        return;
    }
    if (strncmp(answer, questions[f->step].status, strlen(questions[f->step].status)) != 0 ||
        !strstr(answer, questions[f->step].text)) {
        fail_msg("%s: expected %s with '%s', was\n%s", questions[f->step].request,
                 questions[f->step].status, questions[f->step].text, answer);
    }
    f->step++;
}

static void it_answers_for_its_health_and_numbers(void **state)
{
    struct fixture *f = *state;

    f->o.healthz = f->o.metrics = true;
    assert_int_equal(live(f, ask_all_questions), 0);
    assert_int_equal(f->step, HK_LEN(questions));
    assert_non_null(strstr(f->printed.out, "hekla test started, health on port "));
}

static void a_bad_address_is_an_error(void **state)
{
    struct fixture *f = *state;

    f->o.healthz = true;
    f->o.healthz_address = "nowhere";
    assert_int_equal(daemon_open(&f->d, &f->o, &f->work, &f->err), -HK_EINVAL);
    assert_string_equal(f->err.text, "cannot listen on 'nowhere', want ADDR:PORT");
}

static void a_server_must_be_given_outside_of_pods(void **state)
{
    struct fixture *f = *state;

    unsetenv("KUBERNETES_SERVICE_HOST");
    f->o.master = NULL;
    assert_int_equal(daemon_open(&f->d, &f->o, &f->work, &f->err), -HK_EINVAL);
    assert_string_equal(f->err.text, "no API server: outside of a pod --kubeconfig or --master is "
                                     "required");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(it_works_at_once_without_an_election),
        TEST(it_ends_when_nothing_is_in_flight),
        TEST(a_signal_ends_it),
        TEST(other_signals_show_what_it_does),
        TEST(without_the_lease_it_does_not_work),
        TEST(metrics_say_that_it_does_not_lead),
        TEST(it_answers_for_its_health_and_numbers),
        TEST(a_bad_address_is_an_error),
        TEST(a_server_must_be_given_outside_of_pods),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("daemon/daemon", tests, NULL, NULL);
}
