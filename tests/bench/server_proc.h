// SPDX-License-Identifier: Apache-2.0
// The servers under measurement as processes: the built hekla and, when it is installed, etcd, each
// on loopback with a data directory of its own. They die with the benchmark.
#pragma once

#include "base/str.h"

#include <sys/types.h>

struct server_proc {
    pid_t pid; /* 0: none */
    uint16_t port;
    char dir[256];
    char token[128];
};

/* Starts the program of that path on dir, which may have data already, and waits until it is
 * ready. */
void server_proc_hekla(struct server_proc *p, const char *program, const char *dir);
/* hekla up with further options, ended by NULL. */
void server_proc_up(struct server_proc *p, const char *program, const char *dir,
                    const char *const *options);
/* The admission server beside that API server, with certificates of its own. */
void server_proc_webhooks(struct server_proc *p, const char *program,
                          const struct server_proc *api);
/* With the certificate of certs. False when etcd is not installed. */
bool server_proc_etcd(struct server_proc *p, const char *dir, const struct server_proc *certs);
/* Asks it to end and waits for that. */
void server_proc_stop(struct server_proc *p);
/* Ends it at once. */
void server_proc_kill(struct server_proc *p);

/* Processor time it has used so far, in seconds. */
double server_proc_cpu(const struct server_proc *p);

/* How often its threads went to sleep by themselves. */
uint64_t server_proc_sleeps(const struct server_proc *p);

/* Seconds on the wall, and processor time of this process. */
double server_wall(void);
double server_self_cpu(void);
/* A directory with all that is in it. */
void server_remove_tree(const char *dir);
