// SPDX-License-Identifier: Apache-2.0
// The life of a daemon: connect, serve health and metrics, join the election, work while leading,
// and shut down in order. Everything runs on one loop, which sleeps when there is nothing to do.
//
//   waiting --lease--> working --signal--> draining --nothing in flight, or 3 s--> lease released
//                         `--lease lost--> exit at once
#include "daemon/daemon.h"

#include "base/file.h"
#include "base/log.h"
#include "base/prom.h"
#include "codec/timefmt.h"
#include "daemon/self.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#define S_NS ((int64_t)1000 * 1000 * 1000)
#define POLL_MAX 4096u
#define DRAIN_NS (3 * S_NS)
#define TELL_NS (S_NS / 2)
#define RELEASE_NS (2 * S_NS)

enum {
    DEBUG_VERBOSITY = 4,
    MAX_PEM_BYTES = 1 << 20,
    MAX_HTTP_BODY = 64 << 10,
    MAX_HTTP_CONNECTIONS = 64,
};

/* ---- the verb ---- */

int daemon_verb(const struct verb *v, int argc, char **argv, void *opts,
                const struct daemon_opts *o, int (*work)(void *opts, struct hk_err *err))
{
    const int rc = verb_parse(v, argc, argv, opts);
    struct hk_err err = {0};

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (o->version) {
        return verb_print_version();
    }
    hk_log_set_level(o->verbosity >= DEBUG_VERBOSITY ? HK_LOG_DEBUG : HK_LOG_INFO);
    return work(opts, &err) < 0 ? verb_complain("%s: %s", v->name, err.text) : EXIT_OK;
}

/* ---- health and metrics ---- */

static void daemon_reply_text(struct http_request *q, int status, const char *media,
                              struct hk_buf *body)
{
    const struct http_header header = {HK_STR("Content-Type"), hk_str(media)};

    http_reply(q, status, &header, 1, body);
}

static void reply_word(struct http_request *q, int status, const char *word)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_adds(&body, word);
    daemon_reply_text(q, status, "text/plain; charset=utf-8", &body);
}

static bool daemon_is_read(struct http_request *q)
{
    if (hk_str_is(q->method, "GET") || hk_str_is(q->method, "HEAD")) {
        return true;
    }
    reply_word(q, 405, "405 method not allowed\n");
    return false;
}

static void on_health(void *ctx, struct http_request *q)
{
    if (!daemon_is_read(q)) {
        return;
    }
    if (hk_str_is(q->path, "/healthz") || hk_str_is(q->path, "/healthz/ping")) {
        reply_word(q, 200, "ok");
    } else {
        reply_word(q, 404, "404 page not found\n");
    }
}

static void write_election(const struct daemon *d, struct hk_buf *out)
{
    hk_prom_head(out, "leader_election_master_status", "gauge", "1 if this process is the leader.");
    hk_buf_adds(out, "leader_election_master_status");
    hk_prom_label(out, "{", "name", hk_str(d->o->lease_name));
    hk_buf_addf(out, "} %d\n", election_leads(d->election));
}

static void on_metrics(void *ctx, struct http_request *q)
{
    struct daemon *d = ctx;
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    if (!daemon_is_read(q)) {
        return;
    }
    if (!hk_str_is(q->path, "/metrics")) {
        reply_word(q, 404, "404 page not found\n");
        return;
    }
    if (d->started) {
        d->work->write_metrics(d->work->ctx, &out);
    }
    if (d->election) {
        write_election(d, &out);
    }
    client_write_metrics(d->client, &out);
    self_write_metrics(&out);
    daemon_reply_text(q, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
}

static void daemon_on_refusal(void *ctx, int status, struct hk_buf *body)
{
    hk_buf_adds(body, "{}");
}

static int daemon_serve(struct daemon *d, const char *address,
                        void (*handle)(void *, struct http_request *), const char *cert_pem,
                        const char *key_pem, struct http_server **ret, struct hk_err *err)
{
    char host[64];
    struct http_opts o = {.cert_pem = cert_pem,
                          .key_pem = key_pem,
                          .max_body = MAX_HTTP_BODY,
                          .max_bodies = MAX_HTTP_BODY,
                          .max_connections = MAX_HTTP_CONNECTIONS,
                          .idle_timeout_ms = 60000,
                          .header_timeout_ms = 10000,
                          .handle = handle,
                          .refusal = daemon_on_refusal,
                          .ctx = d};

    if (daemon_split_address(address, host, sizeof(host), &o.port) < 0) {
        return hk_fail(err, HK_EINVAL, "cannot listen on '%s', want ADDR:PORT", address);
    }
    o.addr = hk_str(host[0] ? host : "::");
    const int rc = http_server_new(d->loop, &o, ret, err);
    if (rc < 0 && !host[0]) { /* a machine without IPv6 */
        o.addr = HK_STR("0.0.0.0");
        return http_server_new(d->loop, &o, ret, err);
    }
    return rc;
}

/* Over TLS only if the authority, the certificate and the key are given. */
static int serve_health(struct daemon *d, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf ca = {0}, cert = {0}, key = {0};
    const struct daemon_opts *o = d->o;
    const bool tls = o->ca_file && o->cert_file && o->key_file;
    int rc;

    if (!tls) {
        return daemon_serve(d, o->healthz_address, on_health, NULL, NULL, &d->health, err);
    }
    rc = hk_read_file(o->ca_file, MAX_PEM_BYTES, &ca, err);
    if (rc < 0) {
        return rc;
    }
    rc = hk_read_file(o->cert_file, MAX_PEM_BYTES, &cert, err);
    if (rc < 0) {
        return rc;
    }
    rc = hk_read_file(o->key_file, MAX_PEM_BYTES, &key, err);
    if (rc < 0) {
        return rc;
    }
    return daemon_serve(d, o->healthz_address, on_health, cert.data, key.data, &d->health, err);
}

/* ---- working ---- */

static void on_turn(void *ctx);

static bool may_write(void *ctx)
{
    const struct daemon *d = ctx;

    return !d->election || election_leads(d->election);
}

/* Writes an Event about the lease, as client-go does. */
static void tell_leadership(struct daemon *d, const char *what)
{
    HK_AUTO(hk_buf_fini) struct hk_buf message = {0};

    if (d->election) {
        hk_buf_addf(&message, "%s %s", d->identity.data, what);
        recorder_note(d->recorder,
                      &(struct recorder_about){.kind = api_kind(API_LEASE),
                                               .ns = hk_str(d->o->lease_ns),
                                               .name = hk_str(d->o->lease_name),
                                               .uid = election_uid(d->election)},
                      false, "LeaderElection", hk_buf_str(&message));
    }
}

/* Releases the lease after the last write, the leadership Event: writes need the lease. */
static bool daemon_release(struct daemon *d, int64_t now_ns)
{
    if (!d->released && recorder_len(d->recorder) > 0 && now_ns < d->grace_ns) {
        return false;
    }
    if (!d->released) {
        d->released = true;
        d->grace_ns = now_ns + RELEASE_NS;
        if (d->election) {
            election_release(d->election);
        }
    }
    return !d->election || election_state(d->election) != ELECTION_ENDS || now_ns >= d->grace_ns;
}

static void stop_loop(struct daemon *d)
{
    d->over = true;
    net_loop_stop(d->loop);
}

/* After the work has ended, releases the lease and stops the loop. */
static int64_t wind_down(struct daemon *d, int64_t now_ns)
{
    if (d->started) {
        if (!d->work->drain(d->work->ctx) && now_ns < d->grace_ns) {
            return d->grace_ns;
        }
        d->started = false;
        d->work->end(d->work->ctx);
        tell_leadership(d, "stopped leading");
        d->grace_ns = now_ns + TELL_NS; /* do not delay the lease hand-over for an Event */
    }
    if (!daemon_release(d, now_ns)) {
        return d->grace_ns;
    }
    stop_loop(d);
    return INT64_MAX;
}

static int64_t daemon_step(struct daemon *d)
{
    int64_t next_ns = INT64_MAX;

    if (d->election) {
        next_ns = election_tick(d->election);
        if (election_state(d->election) == ELECTION_LOST) {
            d->lost = d->started || !d->stopping; /* false: lost after the work was done */
            stop_loop(d);
            return INT64_MAX;
        }
    }
    if (!d->started && !d->stopping && may_write(d)) {
        d->started = true;
        hk_log(HK_LOG_INFO, "working", "component=%s", d->o->component);
        tell_leadership(d, "became leader");
        d->work->start(d->work->ctx);
    }
    if (d->started) {
        next_ns = HK_MIN(next_ns, d->work->run(d->work->ctx));
    }
    if (d->stopping) {
        next_ns = HK_MIN(next_ns, wind_down(d, net_loop_now_ns(d->loop)));
    }
    return next_ns;
}

static void on_turn(void *ctx)
{
    struct daemon *d = ctx;
    const bool more = port_poll(d->port, POLL_MAX) == POLL_MAX;

    hk_log_tick();
    const int64_t next_ns = daemon_step(d);

    if (more) {
        net_timer_at(d->timer, net_loop_now_ns(d->loop));
    } else if (next_ns != INT64_MAX) {
        net_timer_at(d->timer, next_ns);
    } else {
        net_timer_off(d->timer);
    }
}

void daemon_wake(struct daemon *d)
{
    net_timer_at(d->timer, net_loop_now_ns(d->loop));
}

static void daemon_on_readable(void *ctx, uint32_t events)
{
    on_turn(ctx);
}

void daemon_stop(struct daemon *d)
{
    d->stopping = true;
    d->grace_ns = net_loop_now_ns(d->loop) + DRAIN_NS;
    daemon_wake(d);
}

static void daemon_on_signal(void *ctx, int signo)
{
    struct daemon *d = ctx;

    if (signo == SIGHUP) {
        hk_log_reopen();
        return;
    }
    if (signo == SIGUSR1 || signo == SIGUSR2) {
        if (d->started) {
            d->work->show(d->work->ctx, signo);
        } else {
            hk_log(HK_LOG_INFO, "not the leader: nothing to show", "signal=%d", signo);
        }
        return;
    }
    if (d->stopping) {
        _exit(EXIT_BAD);
    }
    hk_log(HK_LOG_INFO, "stopping", "signal=%d", signo);
    daemon_stop(d);
}

/* ---- opening ---- */

static int daemon_catch_signals(struct daemon *d, struct hk_err *err)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

    signal(SIGPIPE, SIG_IGN);
    return net_signals(d->loop, signals, d->work->show ? HK_LEN(signals) : 3, daemon_on_signal, d,
                       err);
}

static int daemon_seed(struct daemon *d, struct hk_err *err)
{
    uint64_t n;

    if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n)) {
        return hk_fail(err, HK_EIO, "cannot get random bytes: %m");
    }
    hk_rand_seed(&d->rand, n);
    return 0;
}

/* As in Volcano: ignores ~/.kube/config and $KUBECONFIG. */
static int connect(struct daemon *d, struct hk_err *err)
{
    const struct daemon_opts *o = d->o;
    struct kubeconfig_opts where = {0};
    struct kubeconfig config = {0};
    int rc;

    kubeconfig_env(&where);
    where.env_paths = where.home = NULL;
    where.path = o->kubeconfig;
    where.server = o->master;
    rc = kubeconfig_load(&where, &config, err);
    if (rc < 0) {
        return rc;
    }
    if (!o->kubeconfig && !o->master && !config.in_cluster) {
        kubeconfig_fini(&config);
        return hk_fail(err, HK_EINVAL,
                       "no API server: outside of a pod --kubeconfig or --master is required");
    }
    snprintf(d->agent, sizeof(d->agent), "%s/" HEKLA_VERSION, o->component);
    const struct client_opts client = {.loop = d->loop,
                                       .clock = d->clock,
                                       .rand = &d->rand,
                                       .user_agent = d->agent,
                                       .may_write = may_write,
                                       .ctx = d,
                                       .qps = o->qps,
                                       .burst = (uint32_t)o->burst,
                                       .watch_stall_ms = o->watch_stall_ns / 1000000};
    rc = client_new(&client, &config, &d->client, err);
    if (rc < 0) {
        return rc;
    }
    d->port = client_port(d->client);
    d->recorder = recorder_new(d->port, d->clock, hk_str(o->component));
    d->port_watch = net_watch_add(d->loop, port_fd(d->port), EPOLLIN, daemon_on_readable, d);
    return 0;
}

/* "<hostname>_<uuid>" */
static void write_identity(struct daemon *d, struct hk_buf *out)
{
    char host[256] = "";
    const uint64_t a = hk_rand_u64(&d->rand), b = hk_rand_u64(&d->rand);

    gethostname(host, sizeof(host) - 1);
    hk_buf_addf(out, "%s_%08x-%04x-4%03x-%04x-%012llx", host, (unsigned)(a >> 32),
                (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff,
                0x8000u | ((unsigned)(b >> 48) & 0x3fff), (unsigned long long)(b & 0xffffffffffff));
}

static int daemon_join_election(struct daemon *d, struct hk_err *err)
{
    const struct daemon_opts *o = d->o;

    if (!o->elect) {
        return 0;
    }
    write_identity(d, &d->identity);
    return election_new(&(struct election_opts){.port = d->port,
                                                .clock = d->clock,
                                                .rand = &d->rand,
                                                .ns = o->lease_ns,
                                                .name = o->lease_name,
                                                .identity = d->identity.data,
                                                .lease_ns = o->lease_duration_ns,
                                                .renew_ns = o->renew_deadline_ns,
                                                .retry_ns = o->retry_period_ns},
                        &d->election, err);
}

/* Prints the ports actually bound (the options may say 0). */
static int daemon_announce(const struct daemon *d, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};

    hk_buf_addf(&line, "hekla %s started", d->o->name);
    if (d->health) {
        hk_buf_addf(&line, ", health on port %u", http_server_port(d->health));
    }
    if (d->metrics) {
        hk_buf_addf(&line, ", metrics on port %u", http_server_port(d->metrics));
    }
    if (d->work->describe) {
        d->work->describe(d->work->ctx, &line);
    }
    hk_buf_addc(&line, '\n');
    return verb_print(&line) == EXIT_OK ? 0 : hk_fail(err, HK_EIO, "cannot write to stdout");
}

static int daemon_serve_both(struct daemon *d, struct hk_err *err)
{
    const struct daemon_opts *o = d->o;

    if (o->healthz) {
        const int rc = serve_health(d, err);
        if (rc < 0) {
            return rc;
        }
    }
    return o->metrics ? daemon_serve(d, o->listen_address, on_metrics, NULL, NULL, &d->metrics, err)
                      : 0;
}

int daemon_open(struct daemon *d, const struct daemon_opts *o, const struct daemon_work *work,
                struct hk_err *err)
{
    int rc;

    d->o = o;
    d->work = work;
    d->clock = hk_clock_system();
    hk_log_set_clock(d->clock);
    d->loop = net_loop_new(d->clock);
    d->timer = net_timer_new(d->loop, on_turn, d);
    rc = daemon_catch_signals(d, err);
    if (rc < 0) {
        return rc;
    }
    rc = daemon_seed(d, err);
    if (rc < 0) {
        return rc;
    }
    rc = connect(d, err);
    if (rc < 0) {
        return rc;
    }
    rc = daemon_join_election(d, err);
    if (rc < 0) {
        return rc;
    }
    return daemon_serve_both(d, err);
}

static int run_every_turn(struct daemon *d, struct hk_err *err)
{
    int rc = 0;

    while (rc == 0 && !d->over) {
        on_turn(d);
        rc = d->over ? 0 : net_loop_turn(d->loop, -1, err);
    }
    return rc;
}

int daemon_run(struct daemon *d, struct hk_err *err)
{
    int rc = daemon_announce(d, err);

    if (rc == 0 && d->o->log_file) {
        rc = hk_log_open(d->o->log_file, err);
    }
    daemon_wake(d);
    if (rc == 0) {
        rc = d->work->every_turn ? run_every_turn(d, err) : net_loop_run(d->loop, err);
    }
    if (rc == 0 && d->lost) {
        return hk_fail(err, HK_ETIMEOUT, "lost the lease '%s/%s'", d->o->lease_ns,
                       d->o->lease_name);
    }
    return rc;
}

void daemon_close(struct daemon *d)
{
    if (d->started) {
        d->work->end(d->work->ctx);
    }
    http_server_free(d->health);
    http_server_free(d->metrics);
    election_free(d->election);
    recorder_free(d->recorder);
    hk_buf_fini(&d->identity);
    net_watch_del(d->port_watch);
    net_timer_free(d->timer);
    port_free(d->port);
    net_loop_free(d->loop);
    hk_log_set_clock(NULL);
}
