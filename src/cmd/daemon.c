// SPDX-License-Identifier: Apache-2.0
// The life of a daemon: connect, serve health and metrics, stand for election, work while leading,
// and end well. Everything happens on one loop; with nothing to do it sleeps.
//
//   waiting --lease--> working --signal--> draining --nothing under way, or 3 s--> lease given back
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
    MAX_BURST = 1000000,
    MAX_PEM_BYTES = 1 << 20,
    MAX_HTTP_BODY = 64 << 10,
    MAX_HTTP_CONNECTIONS = 64,
};

/* ---- options ---- */

struct daemon_opts daemon_opts_default(const char *name, const char *component)
{
    return (struct daemon_opts){.name = name,
                                .component = component,
                                .qps = 50,
                                .burst = 100,
                                .watch_stall_ns = 100 * S_NS,
                                .elect = true,
                                .lease_ns = "volcano-system",
                                .lease_name = component,
                                .lease_duration_ns = 15 * S_NS,
                                .renew_deadline_ns = 10 * S_NS,
                                .retry_period_ns = 2 * S_NS};
}

int daemon_take_bool(const struct option_row *row, const char *value, bool *ret, struct hk_err *err)
{
    static const char *const words[] = {"1", "t", "T", "TRUE",  "true",  "True",
                                        "0", "f", "F", "FALSE", "false", "False"};

    for (size_t i = 0; value && i < HK_LEN(words); i++) {
        if (strcmp(value, words[i]) == 0) {
            *ret = i < HK_LEN(words) / 2;
            return 0;
        }
    }
    if (value) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want true or false", row->name, value);
    }
    *ret = true;
    return 0;
}

int daemon_take_int(const struct option_row *row, const char *value, int64_t min, int64_t max,
                    int64_t *ret, struct hk_err *err)
{
    int64_t n;

    if (!hk_str_int(hk_str(value), &n) || n < min || n > max) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want a number from %lld to %lld",
                       row->name, value, (long long)min, (long long)max);
    }
    *ret = n;
    return 0;
}

int daemon_take_duration(const struct option_row *row, const char *value, int64_t *ret_ns,
                         struct hk_err *err)
{
    if (duration_parse(hk_str(value), ret_ns, NULL) < 0 || *ret_ns < 0) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want a duration such as 15s",
                       row->name, value);
    }
    return 0;
}

static int take_qps(const struct option_row *row, const char *value, double *ret,
                    struct hk_err *err)
{
    char *end;
    const double qps = strtod(value, &end);

    if (end == value || *end != '\0' || !(qps > 0 || qps < 0) || qps > MAX_BURST) {
        return hk_fail(err, HK_EINVAL,
                       "option --%s is '%s', want a number greater than 0, or a negative one for "
                       "no limit",
                       row->name, value);
    }
    *ret = qps;
    return 0;
}

/* Less would end watches on which nothing happens, again and again. */
static int take_stall(const struct option_row *row, const char *value, int64_t *ret,
                      struct hk_err *err)
{
    const int rc = daemon_take_duration(row, value, ret, err);

    return rc == 0 && *ret < S_NS
               ? hk_fail(err, HK_EINVAL, "option --%s is '%s', want 1s or more", row->name, value)
               : rc;
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

static int take_address(const struct option_row *row, const char *value, const char **ret,
                        struct hk_err *err)
{
    char host[64];
    uint16_t port;

    if (daemon_split_address(value, host, sizeof(host), &port) < 0) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want ADDR:PORT", row->name, value);
    }
    *ret = value;
    return 0;
}

static int take_verbosity(const struct option_row *row, const char *value, struct hk_err *err)
{
    int64_t level;
    const int rc = daemon_take_int(row, value, 0, INT32_MAX, &level, err);

    if (rc == 0) {
        hk_log_set_level(level >= DEBUG_VERBOSITY ? HK_LOG_DEBUG : HK_LOG_INFO);
    }
    return rc;
}

/* Taken so that the command lines people have go on working. */
static int take_idle(const struct option_row *row, const char *value, struct hk_err *err)
{
    bool ignored;

    return option_is_optional(row) ? daemon_take_bool(row, value, &ignored, err) : 0;
}

int daemon_take_word(const char *value, struct hk_err *err)
{
    return strcmp(value, "2>&1") == 0 ? 0 : hk_fail(err, HK_EINVAL, "unexpected '%s'", value);
}

bool daemon_take(struct daemon_opts *o, const struct option_row *row, const char *value, int *ret,
                 struct hk_err *err)
{
    const struct {
        const char *name;
        bool *flag;
        const char **text, **address;
        int64_t *duration_ns;
    } plain[] = {
        {"master", .text = &o->master},
        {"kubeconfig", .text = &o->kubeconfig},
        {"enable-healthz", .flag = &o->healthz},
        {"healthz-address", .address = &o->healthz_address},
        {"ca-cert-file", .text = &o->ca_file},
        {"tls-cert-file", .text = &o->cert_file},
        {"tls-private-key-file", .text = &o->key_file},
        {"enable-metrics", .flag = &o->metrics},
        {"listen-address", .address = &o->listen_address},
        {"leader-elect", .flag = &o->elect},
        {"leader-elect-lease-duration", .duration_ns = &o->lease_duration_ns},
        {"leader-elect-renew-deadline", .duration_ns = &o->renew_deadline_ns},
        {"leader-elect-retry-period", .duration_ns = &o->retry_period_ns},
        {"leader-elect-resource-name", .text = &o->lease_name},
        {"leader-elect-resource-namespace", .text = &o->lease_ns},
        {"lock-object-namespace", .text = &o->lease_ns},
        {"version", .flag = &o->version},
    };
    static const char *const idle[] = {
        "logtostderr",       "alsologtostderr",
        "stderrthreshold",   "log-flush-frequency",
        "log-dir",           "log-file",
        "log-file-max-size", "log-backtrace-at",
        "vmodule",           "add-dir-header",
        "skip-headers",      "skip-log-headers",
        "one-output",        "leader-elect-resource-lock",
    };

    *ret = 0;
    for (size_t i = 0; i < HK_LEN(plain); i++) {
        if (strcmp(row->name, plain[i].name) == 0) {
            if (plain[i].text) {
                *plain[i].text = value;
            } else if (plain[i].flag) {
                *ret = daemon_take_bool(row, value, plain[i].flag, err);
            } else if (plain[i].address) {
                *ret = take_address(row, value, plain[i].address, err);
            } else if (plain[i].duration_ns) {
                *ret = daemon_take_duration(row, value, plain[i].duration_ns, err);
            }
            return true;
        }
    }
    for (size_t i = 0; i < HK_LEN(idle); i++) {
        if (strcmp(row->name, idle[i]) == 0) {
            *ret = take_idle(row, value, err);
            return true;
        }
    }
    if (strcmp(row->name, "v") == 0) {
        *ret = take_verbosity(row, value, err);
    } else if (strcmp(row->name, "kube-api-qps") == 0) {
        *ret = take_qps(row, value, &o->qps, err);
    } else if (strcmp(row->name, "kube-api-burst") == 0) {
        *ret = daemon_take_int(row, value, 1, MAX_BURST, &o->burst, err);
    } else if (strcmp(row->name, "watch-stall") == 0) {
        *ret = take_stall(row, value, &o->watch_stall_ns, err);
    } else {
        return false;
    }
    return true;
}

int daemon_verb(const struct verb *v, int argc, char **argv, verb_take *take,
                int (*work)(void *ctx, struct hk_err *err), void *ctx, const struct daemon_opts *o)
{
    const int rc = verb_parse(v, argc, argv, take, ctx);
    struct hk_err err = {0};

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (o->version) {
        return verb_print_version();
    }
    return work(ctx, &err) < 0 ? verb_complain("%s: %s", v->name, err.text) : EXIT_OK;
}

/* ---- health and metrics ---- */

static void reply_text(struct http_request *q, int status, const char *media, struct hk_buf *body)
{
    const struct http_header header = {HK_STR("Content-Type"), hk_str(media)};

    http_reply(q, status, &header, 1, body);
}

static void reply_word(struct http_request *q, int status, const char *word)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_adds(&body, word);
    reply_text(q, status, "text/plain; charset=utf-8", &body);
}

static bool is_read(struct http_request *q)
{
    if (hk_str_is(q->method, "GET") || hk_str_is(q->method, "HEAD")) {
        return true;
    }
    reply_word(q, 405, "405 method not allowed\n");
    return false;
}

static void on_health(void *ctx, struct http_request *q)
{
    if (!is_read(q)) {
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

    if (!is_read(q)) {
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
    reply_text(q, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
}

static void on_refusal(void *ctx, int status, struct hk_buf *body)
{
    hk_buf_adds(body, "{}");
}

static int serve(struct daemon *d, const char *address,
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
                          .refusal = on_refusal,
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
                  : serve(d, o->healthz_address, on_health, cert.data, key.data, &d->health, err);
}

/* ---- working ---- */

static void on_turn(void *ctx);

static bool may_write(void *ctx)
{
    const struct daemon *d = ctx;

    return !d->election || election_leads(d->election);
}

/* An Event about the lease, as client-go's programs leave them. */
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

/* The lease goes back after the last write, the Event that says so: without it none is allowed. */
static bool release(struct daemon *d, int64_t now_ns)
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

/* After the work has ended, the lease goes back; then there is nothing more. */
static int64_t wind_down(struct daemon *d, int64_t now_ns)
{
    if (d->started) {
        if (!d->work->drain(d->work->ctx) && now_ns < d->grace_ns) {
            return d->grace_ns;
        }
        d->started = false;
        d->work->end(d->work->ctx);
        tell_leadership(d, "stopped leading");
        d->grace_ns = now_ns + TELL_NS; /* successors do not wait for a courtesy */
    }
    if (!release(d, now_ns)) {
        return d->grace_ns;
    }
    stop_loop(d);
    return INT64_MAX;
}

static int64_t turn(struct daemon *d)
{
    int64_t next_ns = INT64_MAX;

    if (d->election) {
        next_ns = election_tick(d->election);
        if (election_state(d->election) == ELECTION_LOST) {
            d->lost = d->started || !d->stopping; /* else all was done */
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
    const int64_t next_ns = turn(d);

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

static void on_readable(void *ctx, uint32_t events)
{
    on_turn(ctx);
}

void daemon_stop(struct daemon *d)
{
    d->stopping = true;
    d->grace_ns = net_loop_now_ns(d->loop) + DRAIN_NS;
    daemon_wake(d);
}

static void on_signal(void *ctx, int signo)
{
    struct daemon *d = ctx;

    if (signo == SIGUSR1 || signo == SIGUSR2) {
        if (d->started) {
            d->work->show(d->work->ctx, signo);
        } else {
            hk_log(HK_LOG_INFO, "another leads: there is nothing to show", "signal=%d", signo);
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

static int catch_signals(struct daemon *d, struct hk_err *err)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};

    signal(SIGPIPE, SIG_IGN);
    return net_signals(d->loop, signals, d->work->show ? HK_LEN(signals) : 2, on_signal, d, err);
}

static int seed(struct daemon *d, struct hk_err *err)
{
    uint64_t n;

    if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n)) {
        return hk_fail(err, HK_EIO, "cannot get random bytes: %m");
    }
    hk_rand_seed(&d->rand, n);
    return 0;
}

/* As Volcano's: files and environments of people at a shell do not count. */
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
                       "no API server: want --kubeconfig or --master outside of a pod");
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
    d->port_watch = net_watch_add(d->loop, port_fd(d->port), EPOLLIN, on_readable, d);
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

static int stand(struct daemon *d, struct hk_err *err)
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

/* What of the line was not told on the command line: ports that were free. */
static int announce(const struct daemon *d, struct hk_err *err)
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
    d->loop = net_loop_new(d->clock);
    d->timer = net_timer_new(d->loop, on_turn, d);
    rc = catch_signals(d, err);
    rc = rc < 0 ? rc : seed(d, err);
    rc = rc < 0 ? rc : connect(d, err);
    rc = rc < 0 ? rc : stand(d, err);
    if (rc == 0 && o->healthz) {
        rc = serve_health(d, err);
    }
    if (rc == 0 && o->metrics) {
        rc = serve(d, o->listen_address, on_metrics, NULL, NULL, &d->metrics, err);
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
    int rc = announce(d, err);

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
}
