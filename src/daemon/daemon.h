// SPDX-License-Identifier: Apache-2.0
// A daemon that is a client of an API server: the options of Volcano's programs, the connection,
// the lease, health and metrics over HTTP, signals, and the loop around them. The verb adds the
// work.
#pragma once

#include "api/recorder.h"
#include "cli/verb.h"
#include "client/client.h"
#include "client/election.h"
#include "net/http.h"

struct daemon_opts {
    const char *name;      /* name of the verb */
    const char *component; /* Volcano's name, in the user agent and the lease */
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
    int64_t verbosity;
    const char *log_file; /* NULL: standard error */
    bool version;         /* print the version and exit */
};

/* ---- options, for the table of a verb; S is its struct of options ---- */

/* Options of the connection. Limits and defaults differ between the programs. */
extern const struct option_row daemon_server_options[], daemon_watch_options[];
#define DAEMON_OPTIONS_API(S, F, qps_default, burst_default)                                       \
    ROW_INCLUDE(S, F, daemon_server_options),                                                      \
        ROW_CALL(0, "kube-api-qps", "N", S, F.qps, daemon_parse_qps, qps_default,                  \
                 "Send at most N requests per second to the API server; a negative N sets no "     \
                 "limit."),                                                                        \
        ROW_INT(0, "kube-api-burst", "N", S, F.burst, 1, DAEMON_MAX_BURST, burst_default,          \
                "Send at most N requests at once to the API server."),                             \
        ROW_INCLUDE(S, F, daemon_watch_options)
/* Options of health and metrics. */
extern const struct option_row daemon_tls_options[];
#define DAEMON_OPTIONS_HTTP(S, F, healthz_default, listen_default)                                 \
    ROW_BOOL("enable-healthz", S, F.healthz, "false", "Serve /healthz and /healthz/ping."),        \
        ROW_CALL(0, "healthz-address", "ADDR:PORT", S, F.healthz_address, daemon_parse_address,    \
                 healthz_default,                                                                  \
                 "Serve health on this address. Without ADDR the server listens on every "         \
                 "address; port 0 takes a free port."),                                            \
        ROW_INCLUDE(S, F, daemon_tls_options),                                                     \
        ROW_BOOL("enable-metrics", S, F.metrics, "false",                                          \
                 "Serve /metrics in the format of Prometheus."),                                   \
        ROW_CALL(0, "listen-address", "ADDR:PORT", S, F.listen_address, daemon_parse_address,      \
                 listen_default, "Serve metrics on this address.")
/* Options of the lease, which has the component's name. */
extern const struct option_row daemon_election_options[];
#define DAEMON_OPTIONS_ELECTION(S, F, name_default)                                                \
    ROW_INCLUDE(S, F, daemon_election_options),                                                    \
        ROW_TEXT(0, "leader-elect-resource-name", "NAME", S, F.lease_name, name_default,           \
                 "The name of the lease.")
extern const struct option_row daemon_log_options[];
/* For ROW_ARGUMENTS_CALL. Installers of Volcano write "2>&1" after the options, where no shell
 * removes it; every other argument is refused. */
option_call daemon_accept_word;
option_call daemon_parse_qps, daemon_parse_address;
enum { DAEMON_MAX_BURST = 1000000 };

/* Splits "ADDR:PORT" at the last colon. IPv6 addresses are in brackets; without ADDR the host is
 * "". -HK_EINVAL when malformed, or when the host does not fit. */
int daemon_split_address(const char *text, char *host, size_t room, uint16_t *ret_port) HK_CHECKED;

/* Runs the verb: reads its options, and prints the version or works. o is the daemon's part of
 * opts, and work gets opts. Returns the exit status after all messages are printed. */
int daemon_verb(const struct verb *v, int argc, char **argv, void *opts,
                const struct daemon_opts *o, int (*work)(void *opts, struct hk_err *err));

/* The verb's part of the daemon. */
struct daemon_work {
    /* The daemon leads from now on and may write to the port. */
    void (*start)(void *ctx);
    /* Called between start and end, after port messages or at the requested time. Does what is due
     * and returns the latest time of the next call (monotonic). */
    int64_t (*run)(void *ctx);
    /* Starts nothing new; returns true when nothing is in flight. Called between start and end
     * until it returns true, or until the grace period is over. */
    bool (*drain)(void *ctx);
    /* Called once after start. */
    void (*end)(void *ctx);
    /* Appends the verb's metrics; between start and end. */
    void (*write_metrics)(void *ctx, struct hk_buf *out);
    /* SIGUSR1 or SIGUSR2 arrived; between start and end. NULL: not caught. */
    void (*show)(void *ctx, int signo);
    /* Appends to the log line about the start. May be NULL. */
    void (*describe)(void *ctx, struct hk_buf *out);
    /* Call run after every loop event, not only after messages of the port. */
    bool every_turn;
    void *ctx;
};

struct daemon {
    const struct daemon_opts *o;
    const struct daemon_work *work;
    struct hk_clock *clock;
    struct hk_rand rand;
    struct net_loop *loop;
    char agent[96]; /* user agent of the client */
    struct client *client;
    struct port *port;
    struct election *election; /* NULL: no election */
    struct recorder *recorder; /* for leadership Events */
    struct hk_buf identity;
    struct net_watch *port_watch;
    struct net_timer *timer;
    struct http_server *health, *metrics;
    bool started, stopping, released, lost, over;
    int64_t grace_ns; /* when stopping: the deadline */
};

/* Makes everything but the work; health and metrics are served from here on. On failure, call
 * daemon_close() anyway. */
int daemon_open(struct daemon *d, const struct daemon_opts *o, const struct daemon_work *work,
                struct hk_err *err) HK_CHECKED;
/* Makes the loop call run soon, without a message. */
void daemon_wake(struct daemon *d);
/* Stops the daemon like a first SIGTERM. */
void daemon_stop(struct daemon *d);
/* Runs until a signal (returns 0) or the loss of the lease (an error). */
int daemon_run(struct daemon *d, struct hk_err *err) HK_CHECKED;
void daemon_close(struct daemon *d);
