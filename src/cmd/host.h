// SPDX-License-Identifier: Apache-2.0
// The embedded API: store, rules, credentials and server in this process. `hekla apiserver` is this
// alone; `hekla up` lets controllers and scheduler work on the same port.
#pragma once

#include "apiserver/server.h"
#include "apiserver/setup.h"
#include "base/clock.h"
#include "cmd/verb.h"
#include "cmd/where.h"
#include "net/loop.h"

struct host_opts {
    const char *dir; /* NULL: not given */
    char addr[64];
    uint16_t port;
    int64_t header_timeout_s, idle_timeout_s, max_connections, history; /* 0: the usual ones */
    const struct node_api *node_api;      /* who answers for pods of this process, or NULL */
    const struct server_metrics *metrics; /* or NULL */
};

/* What holds when nothing is said. */
struct host_opts host_opts_default(void);
/* The options of every verb that hosts the API; their names start a verb's table. */
#define HOST_OPTION_DATA_DIR(more)                                                                 \
    {                                                                                              \
        'd', "data-dir", "DIR", NULL,                                                              \
            "Where everything is kept: the database, certificates, tokens and the kubeconfig. "    \
            "Made, with access for its owner only, when it does not exist. One server at a time "  \
            "can use it." more                                                                     \
    }
#define HOST_OPTION_LISTEN                                                                         \
    {                                                                                              \
        'l', "listen", "ADDR:PORT", NULL,                                                          \
            "The address to serve on (default 127.0.0.1:6443). An IPv6 address is written in "     \
            "brackets; port 0 takes a free one. 0.0.0.0 or [::] makes the API reachable from "     \
            "other machines."                                                                      \
    }
#define HOST_OPTION_LIMITS                                                                         \
    {0, "header-timeout", "SECONDS", NULL,                                                         \
     "How long a request may take to arrive whole, the TLS handshake included, before its "        \
     "connection is cut (default 30)."},                                                           \
        {0, "idle-timeout", "SECONDS", NULL,                                                       \
         "How long a connection may stay without a request, and a client may leave an answer "     \
         "unread, before the connection is closed (default 90). A watch without events is not "    \
         "idle."},                                                                                 \
        {0, "max-connections", "N", NULL,                                                          \
         "How many connections may be open at a time (default 8192, or what the limit of "         \
         "descriptors allows when that is less). Further ones are closed at once."},               \
    {                                                                                              \
        0, "history", "N", NULL,                                                                   \
            "How many of the latest changes are kept for watches to begin from (default 100000, "  \
            "of at most 256 MiB). A watch that falls behind them is told 410 and begins anew."     \
    }
/* Takes the value of one of those; false when the row is none of them. *ret is as verb_take. */
bool host_take(struct host_opts *o, const struct option_row *row, const char *value, int *ret,
               struct hk_err *err);

struct host {
    struct hk_clock *clock;
    struct hk_rand rand;
    struct net_loop *loop;
    struct store *store;
    struct rest *rest;
    struct setup setup;
    struct node_proxy *node_proxy;
    struct server *server;
    int claim;     /* on the directory, -1: none yet */
    bool has_pods; /* SIGUSR1 asks for their end before the server's; else it is as SIGTERM */
    bool clearing; /* it came */
    bool stopping; /* a signal came: the loop has been told to stop */
};

/* Opens the directory and serves it; signals stop the loop. What there is after a failure is
 * host_close's. */
int host_open(struct host *h, const struct host_opts *o, struct hk_err *err) HK_CHECKED;
/* What a client on this machine dials. */
const char *host_address(const struct host_opts *o);
/* Writes the kubeconfig and one line on stdout: "hekla VERB ready at ...", and tells those who look
 * into the directory and the service manager. */
int host_announce(const struct host *h, const struct host_opts *o, const char *verb,
                  struct hk_err *err) HK_CHECKED;
/* Takes as many descriptors as the machine allows: each watch holds one. */
void host_raise_limits(void);
/* As a signal would. */
void host_stop(struct host *h);
/* Lets answers go out and ends everything. */
void host_close(struct host *h);
