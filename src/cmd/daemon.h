// SPDX-License-Identifier: Apache-2.0
// A daemon that is a client of an API server: Volcano's options for that, the connection, the
// lease, health and metrics over HTTP, signals, and the loop around them. What it does there is the
// verb's.
#pragma once

#include "api/recorder.h"
#include "client/client.h"
#include "client/election.h"
#include "cmd/verb.h"
#include "net/http.h"

struct daemon_opts {
    const char *name;      /* of the verb */
    const char *component; /* Volcano's name: in the user agent, and of the lease */
    const char *master, *kubeconfig;
    double qps;
    int64_t burst;
    int64_t watch_stall_ns;
    bool healthz, metrics;
    const char *healthz_address, *listen_address;
    const char *ca_file, *cert_file, *key_file;
    bool elect;
    const char *lease_ns, *lease_name;
    int64_t lease_duration_ns, renew_deadline_ns, retry_period_ns;
    bool version; /* print it, and no more */
};

/* What holds when nothing is said. */
struct daemon_opts daemon_opts_default(const char *name, const char *component);

/* Rows of a verb's table; the addresses and the lease's name have the defaults of the verb. */
#define DAEMON_OPTIONS_API(qps_default, burst_default)                                             \
    {0, "master", "URL", NULL, "The API server's address, instead of the one in the kubeconfig."}, \
        {0, "kubeconfig", "FILE", NULL,                                                            \
         "Where the API server is and how to prove who we are. Without this and --master the "     \
         "service account of the pod is used."},                                                   \
        {0, "kube-api-qps", "N", NULL,                                                             \
         "Requests per second to the API server (default " qps_default "); negative: no limit."},  \
        {0, "kube-api-burst", "N", NULL,                                                           \
         "Requests at once to the API server (default " burst_default ")."},                       \
    {                                                                                              \
        0, "watch-stall", "DURATION", NULL,                                                        \
            "A watch that says nothing for so long is dead, and begun anew (default 100s). API "   \
            "servers say something each minute."                                                   \
    }
#define DAEMON_OPTIONS_HTTP(healthz_default, listen_default)                                       \
    {0, "enable-healthz", "[BOOL]", NULL, "Serve /healthz and /healthz/ping."},                    \
        {0, "healthz-address", "ADDR:PORT", NULL,                                                  \
         "Where to serve them (default " healthz_default "). Without ADDR on every address, with " \
         "port 0 on a free one."},                                                                 \
        {0, "ca-cert-file", "FILE", NULL,                                                          \
         "With this and the next two, health is served over TLS."},                                \
        {0, "tls-cert-file", "FILE", NULL, "The serving certificate, PEM."},                       \
        {0, "tls-private-key-file", "FILE", NULL, "Its key."},                                     \
        {0, "enable-metrics", "[BOOL]", NULL, "Serve /metrics in Prometheus' format."},            \
    {                                                                                              \
        0, "listen-address", "ADDR:PORT", NULL,                                                    \
            "Where to serve them (default " listen_default ")."                                    \
    }
#define DAEMON_OPTIONS_ELECTION(name_default)                                                      \
    {0, "leader-elect", "[BOOL]", NULL,                                                            \
     "Work only while holding a lease, so that several can run and one works (default true)."},    \
        {0, "leader-elect-lease-duration", "DURATION", NULL,                                       \
         "How long the others wait after the leader's last renewal (default 15s)."},               \
        {0, "leader-elect-renew-deadline", "DURATION", NULL,                                       \
         "How long after it the leader goes on (default 10s)."},                                   \
        {0, "leader-elect-retry-period", "DURATION", NULL, "Between attempts (default 2s)."},      \
        {0, "leader-elect-resource-lock", "KIND", "leases", "The kind of the lock: leases."},      \
        {0, "leader-elect-resource-name", "NAME", NULL,                                            \
         "Name of the lease (default " name_default ")."},                                         \
        {0, "leader-elect-resource-namespace", "NAMESPACE", NULL,                                  \
         "Its namespace (default volcano-system)."},                                               \
    {                                                                                              \
        0, "lock-object-namespace", "NAMESPACE", NULL, "The same; deprecated."                     \
    }
#define DAEMON_OPTIONS_LOG                                                                         \
    {'v', "v", "N", NULL,                                                                          \
     "How much to log: from 4 on also what fails and is tried again (default 0)."},                \
        {0, "version", "[BOOL]", NULL, "Print the version and exit."},                             \
        {0, "logtostderr", "[BOOL]", NULL,                                                         \
         "This and the next ones are taken for Volcano's sake: the log goes to standard error."},  \
        {0, "alsologtostderr", "[BOOL]", NULL, "As above."},                                       \
        {0, "stderrthreshold", "LEVEL", NULL, "As above."},                                        \
        {0, "log-flush-frequency", "DURATION", NULL, "As above."},                                 \
        {0, "log-dir", "DIR", NULL, "As above."}, {0, "log-file", "FILE", NULL, "As above."},      \
        {0, "log-file-max-size", "N", NULL, "As above."},                                          \
        {0, "log-backtrace-at", "WHERE", NULL, "As above."},                                       \
        {0, "vmodule", "LIST", NULL, "As above."},                                                 \
        {0, "add-dir-header", "[BOOL]", NULL, "As above."},                                        \
        {0, "skip-headers", "[BOOL]", NULL, "As above."},                                          \
        {0, "skip-log-headers", "[BOOL]", NULL, "As above."},                                      \
    {                                                                                              \
        0, "one-output", "[BOOL]", NULL, "As above."                                               \
    }
/* Takes the value of one of those; false when the row is none of them. *ret is as verb_take. */
bool daemon_take(struct daemon_opts *o, const struct option_row *row, const char *value, int *ret,
                 struct hk_err *err);

/* An argument that belongs to no option. Volcano's installers write "2>&1" behind the options,
 * where no shell takes it away; anything else is refused. */
int daemon_take_word(const char *value, struct hk_err *err) HK_CHECKED;

/* Values of options. A left-out boolean is true. */
int daemon_take_bool(const struct option_row *row, const char *value, bool *ret,
                     struct hk_err *err) HK_CHECKED;
int daemon_take_int(const struct option_row *row, const char *value, int64_t min, int64_t max,
                    int64_t *ret, struct hk_err *err) HK_CHECKED;
int daemon_take_duration(const struct option_row *row, const char *value, int64_t *ret_ns,
                         struct hk_err *err) HK_CHECKED;

/* "ADDR:PORT" in parts: the port is behind the last colon, IPv6 is in brackets, and without ADDR
 * the host is "". -HK_EINVAL when it is none, or its host has no room. */
int daemon_split_address(const char *text, char *host, size_t room, uint16_t *ret_port) HK_CHECKED;

/* Runs the verb: takes its options, and prints the version or works. work gets the ctx of take; o
 * is what take fills in for the daemon. Returns the exit status, when all has been said. */
int daemon_verb(const struct verb *v, int argc, char **argv, verb_take *take,
                int (*work)(void *ctx, struct hk_err *err), void *ctx, const struct daemon_opts *o);

/* What the daemon is for. */
struct daemon_work {
    /* From now on we lead, and the port is ours to write to. */
    void (*start)(void *ctx);
    /* Messages of the port have been delivered, or the time has come: does what can be done, and
     * says when it wants to be called again at the latest (monotonic). Between start and end. */
    int64_t (*run)(void *ctx);
    /* Begins nothing new; whether nothing is under way any more. Asked until it is, or until its
     * time is up. Between start and end. */
    bool (*drain)(void *ctx);
    /* Ends. Called once after start. */
    void (*end)(void *ctx);
    /* Appends metrics of its own; between start and end. */
    void (*write_metrics)(void *ctx, struct hk_buf *out);
    /* SIGUSR1 or SIGUSR2 came; between start and end. NULL: they are not caught. */
    void (*show)(void *ctx, int signo);
    /* Appends to the line that says that it has started. May be NULL. */
    void (*describe)(void *ctx, struct hk_buf *out);
    /* Run is wanted after whatever happens on the loop, not only after messages of the port. */
    bool every_turn;
    void *ctx;
};

struct daemon {
    const struct daemon_opts *o;
    const struct daemon_work *work;
    struct hk_clock *clock;
    struct hk_rand rand;
    struct net_loop *loop;
    char agent[96]; /* the client's name for itself */
    struct client *client;
    struct port *port;
    struct election *election; /* NULL: alone */
    struct recorder *recorder; /* of who leads */
    struct hk_buf identity;
    struct net_watch *port_watch;
    struct net_timer *timer;
    struct http_server *health, *metrics;
    bool started, stopping, released, lost, over;
    int64_t grace_ns; /* stopping: no longer than until then */
};

/* Makes everything but the work; health and metrics are served from here on. What there is after a
 * failure is daemon_close's. */
int daemon_open(struct daemon *d, const struct daemon_opts *o, const struct daemon_work *work,
                struct hk_err *err) HK_CHECKED;
/* The work has something to do, though no message came: run is called as soon as may be. */
void daemon_wake(struct daemon *d);
/* Ends it as the first SIGTERM does. */
void daemon_stop(struct daemon *d);
/* Until a signal (0) or the loss of the lease. */
int daemon_run(struct daemon *d, struct hk_err *err) HK_CHECKED;
void daemon_close(struct daemon *d);
