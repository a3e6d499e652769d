// SPDX-License-Identifier: Apache-2.0
// The life of a daemon: connect, serve health and metrics, join the election, work while leading,
// and shut down in order. Everything runs on one loop, which sleeps when there is nothing to do.
//
//   waiting --lease--> working --signal--> draining --nothing in flight, or 3 s--> lease released
//                         `--lease lost--> exit at once
#include "cmd/daemon.h"

#include "base/file.h"
#include "base/log.h"
#include "base/prom.h"
#include "cmd/self.h"
#include "codec/timefmt.h"

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

/* ---- options ---- */

const struct option_row daemon_server_options[] = {
    ROW_TEXT(0, "master", "URL", struct daemon_opts, master, NULL,
             "The address of the API server. It replaces the address in the kubeconfig."),
    ROW_TEXT_OR(0, "kubeconfig", "FILE", struct daemon_opts, kubeconfig,
                "the service account of the pod, unless --master is given",
                "The file with the address of the API server and the credentials for it."),
    ROW_END,
};

/* API servers write to every watch at least once a minute. A limit below a second would end watches
 * without events again and again. */
const struct option_row daemon_watch_options[] = {
    ROW_DURATION(0, "watch-stall", struct daemon_opts, watch_stall_ns, S_NS, "100s",
                 "Restart a watch after this time without a message. API servers send a message "
                 "every minute."),
    ROW_END,
};

const struct option_row daemon_tls_options[] = {
    ROW_TEXT(0, "ca-cert-file", "FILE", struct daemon_opts, ca_file, NULL,
             "The certificate authority, PEM. With this, --tls-cert-file and "
             "--tls-private-key-file, health is served over TLS."),
    ROW_TEXT(0, "tls-cert-file", "FILE", struct daemon_opts, cert_file, NULL,
             "The serving certificate, PEM."),
    ROW_TEXT(0, "tls-private-key-file", "FILE", struct daemon_opts, key_file, NULL,
             "The key of the serving certificate, PEM."),
    ROW_END,
};

const struct option_row daemon_election_options[] = {
    ROW_BOOL("leader-elect", struct daemon_opts, elect, "true",
             "Work only while holding a lease, so that several processes can run and one works."),
    ROW_DURATION(0, "leader-elect-lease-duration", struct daemon_opts, lease_duration_ns, 0, "15s",
                 "Take over when the leader has not renewed the lease for this time."),
    ROW_DURATION(0, "leader-elect-renew-deadline", struct daemon_opts, renew_deadline_ns, 0, "10s",
                 "Stop leading when the lease could not be renewed for this time."),
    ROW_DURATION(0, "leader-elect-retry-period", struct daemon_opts, retry_period_ns, 0, "2s",
                 "The time between attempts to get or renew the lease."),
    ROW_IGNORED_CHOICE("leader-elect-resource-lock", "KIND", "leases"),
    ROW_TEXT(0, "leader-elect-resource-namespace", "NAMESPACE", struct daemon_opts, lease_ns,
             "volcano-system", "The namespace of the lease."),
    ROW_TEXT(0, "lock-object-namespace", "NAMESPACE", struct daemon_opts, lease_ns, NULL,
             "Deprecated: use --leader-elect-resource-namespace."),
    ROW_END,
};

const struct option_row daemon_log_options[] = {
    ROW_INT('v', "v", "N", struct daemon_opts, verbosity, 0, INT32_MAX, "0",
            "How much to log. From 4 on, failures that are tried again are logged too."),
    ROW_BOOL("version", struct daemon_opts, version, "false", "Print the version and exit."),
    ROW_TEXT_OR(0, "log-file", "FILE", struct daemon_opts, log_file, "standard error",
                "Append the log to this file once the program has started. SIGHUP opens the file "
                "again, so that it can be renamed; without a file SIGHUP does nothing."),
    ROW_IGNORED(OPTION_BOOL, "logtostderr", "BOOL"),
    ROW_IGNORED(OPTION_BOOL, "alsologtostderr", "BOOL"),
    ROW_IGNORED(OPTION_TEXT, "stderrthreshold", "LEVEL"),
    ROW_IGNORED(OPTION_TEXT, "log-flush-frequency", "DURATION"),
    ROW_IGNORED(OPTION_TEXT, "log-dir", "DIR"),
    ROW_IGNORED(OPTION_TEXT, "log-file-max-size", "N"),
    ROW_IGNORED(OPTION_TEXT, "log-backtrace-at", "WHERE"),
    ROW_IGNORED(OPTION_TEXT, "vmodule", "LIST"),
    ROW_IGNORED(OPTION_BOOL, "add-dir-header", "BOOL"),
    ROW_IGNORED(OPTION_BOOL, "skip-headers", "BOOL"),
    ROW_IGNORED(OPTION_BOOL, "skip-log-headers", "BOOL"),
    ROW_IGNORED(OPTION_BOOL, "one-output", "BOOL"),
    ROW_END,
};

int daemon_parse_qps(void *at, const struct option_row *row, const char *value, struct hk_err *err)
{
    char *end;
    const double qps = strtod(value, &end);

    if (end == value || *end != '\0' || !(qps > 0 || qps < 0) || qps > DAEMON_MAX_BURST) {
        return hk_fail(err, HK_EINVAL,
                       "option --%s is '%s', want a number greater than 0, or a negative one for "
                       "no limit",
                       row->name, value);
    }
    *(double *)at = qps;
    return 0;
}

int daemon_split_address(const char *text, char *host, size_t room, uint16_t *ret_port)
{
    struct hk_str part = hk_str(text);
    const char *colon = strrchr(text, ':');
    int64_t port;

    if (!colon || !hk_str_int(hk_str(colon + 1), &port) || port < 0 || port > UINT16_MAX) {
        return -HK_EINVAL;
    }
    part.n = (size_t)(colon - text);
    if (part.n > 1 && part.s[0] == '[' && part.s[part.n - 1] == ']') {
        part = (struct hk_str){part.s + 1, part.n - 2};
    }
    if (part.n >= room) {
        return -HK_EINVAL;
    }
    snprintf(host, room, "%.*s", HK_FMT(part));
    *ret_port = (uint16_t)port;
    return 0;
}

int daemon_parse_address(void *at, const struct option_row *row, const char *value,
                         struct hk_err *err)
{
    char host[64];
    uint16_t port;

    if (daemon_split_address(value, host, sizeof(host), &port) < 0) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want ADDR:PORT", row->name, value);
    }
    *(const char **)at = value;
    return 0;
}

int daemon_accept_word(void *at, const struct option_row *row, const char *value,
                       struct hk_err *err)
{
    return strcmp(value, "2>&1") == 0 ? 0 : hk_fail(err, HK_EINVAL, "unexpected '%s'", value);
}

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
    hk_prom_head(out, "leader_election_master_status", "gauge", "Whether this process leads.");
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

static int serve_health(struct daemon *d, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf ca = {0}, cert = {0}, key = {0};
    const struct daemon_opts *o = d->o;
    int rc = 0;

    if (o->ca_file && o->cert_file && o->key_file) {
        rc = hk_read_file(o->ca_file, MAX_PEM_BYTES, &ca, err);
        rc = rc < 0 ? rc : hk_read_file(o->cert_file, MAX_PEM_BYTES, &cert, err);
        rc = rc < 0 ? rc : hk_read_file(o->key_file, MAX_PEM_BYTES, &key, err);
    }
    return rc < 0 ? rc
                  : daemon_serve(d, o->healthz_address, on_health, cert.data, key.data, &d->health,
                                 err);
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
    rc = rc < 0 ? rc : daemon_seed(d, err);
    rc = rc < 0 ? rc : connect(d, err);
    rc = rc < 0 ? rc : daemon_join_election(d, err);
    if (rc == 0 && o->healthz) {
        rc = serve_health(d, err);
    }
    if (rc == 0 && o->metrics) {
        rc = daemon_serve(d, o->listen_address, on_metrics, NULL, NULL, &d->metrics, err);
    }
    return rc;
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
