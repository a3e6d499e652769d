// SPDX-License-Identifier: Apache-2.0
// The embedded API: store, admission, credentials and server in this process. `hekla apiserver` is
// this alone; `hekla up` also runs controllers and scheduler on the same port.
#pragma once

#include "admission/volcano.h"
#include "apiserver/server.h"
#include "apiserver/setup.h"
#include "base/clock.h"
#include "cli/verb.h"
#include "daemon/where.h"
#include "host/service_network.h"
#include "net/loop.h"

/* File in the data directory: what the server was working on when it last crashed. */
#define HOST_CRUMBS "crumbs"

struct host_opts {
    const char *dir; /* NULL: not given */
    char addr[64];
    uint16_t port;
    int64_t ballast_mib;
    bool accept_loss;
    int64_t header_timeout_s, idle_timeout_s, history;
    int64_t max_connections; /* 0: up to the limit of descriptors */
    int64_t max_replicas;
    int64_t max_per_namespace;  /* objects per kind */
    int64_t memory_limit_bytes; /* 0: only kernel limits; negative: none at all */
    struct admission_tolerations tolerations;
    struct service_network services;      /* prefix 0: Services get no addresses */
    const char *cluster_domain;           /* NULL: cluster.local */
    const struct node_api *node_api;      /* serves pods of this process, or NULL */
    const struct server_metrics *metrics; /* or NULL */
};

/* Help text about SIGHUP. */
#define HOST_SIGHUP                                                                                \
    "       SIGHUP           opens the log file of --detach again, so that it can be renamed;\n"   \
    "                        without --detach it does nothing\n"

/* ---- options, for the table of a verb; the struct of each is host_opts ---- */

#define HOST_OPTION_DATA_DIR(S, F, shown)                                                          \
    ROW_TEXT_OR('d', "data-dir", "DIR", S, F.dir, shown,                                           \
                "The directory for the database, certificates, tokens and the kubeconfig. It is "  \
                "created, with access for its owner only, when it does not exist. One server at "  \
                "a time can use it.")
extern const struct option_row host_listen_options[], host_toleration_options[],
    host_service_options[], host_store_options[], host_limit_options[];

struct host {
    struct hk_clock *clock;
    struct hk_rand rand;
    struct net_loop *loop;
    struct hk_budget *budget; /* NULL: no memory limit */
    struct store *store;
    struct rest *rest;
    struct volcano_options volcano; /* of admission; borrowed by rest */
    struct setup setup;
    struct node_proxy *node_proxy;
    struct poster *poster; /* calls admission webhooks */
    struct server *server;
    struct admission_tolerations tolerations;
    struct service_network services;
    int claim;     /* lock on the directory; -1: none yet */
    int network;   /* holds the network of Services; -1: nothing does */
    bool has_pods; /* SIGUSR1 ends the pods before the server; otherwise it acts like SIGTERM */
    bool clearing; /* SIGUSR1 arrived */
    bool stopping; /* a signal arrived: the loop stops */
};

/* Opens the directory and serves it; signals stop the loop. On failure, call host_close()
 * anyway. */
int host_open(struct host *h, const struct host_opts *o, struct hk_err *err) HK_CHECKED;
/* Whether only this machine can reach the address. */
bool host_is_loopback(const struct host_opts *o);
/* The address for clients on this machine. */
const char *host_address(const struct host_opts *o);
/* Writes the kubeconfig and one line on stdout, "hekla VERB ready at ...", records the server in
 * the directory, and notifies the service manager. */
int host_announce(const struct host *h, const struct host_opts *o, const char *verb,
                  struct hk_err *err) HK_CHECKED;
/* Raises the limit of descriptors as far as the machine allows: each watch holds one. */
void host_raise_limits(void);
/* Opens the file in the directory that records what the process works on (base/crumb.h). On failure
 * the program runs without it. */
void host_open_crumbs(const char *dir);
/* Stops the server like a signal. */
void host_stop(struct host *h);
/* Sends the pending answers and ends everything. */
void host_close(struct host *h);
