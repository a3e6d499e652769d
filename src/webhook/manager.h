// SPDX-License-Identifier: Apache-2.0
// The whole admission server for a cluster: state, certificates, publication and the HTTP server on
// one loop and one port. It begins to serve when it has a certificate and has seen the cluster.
#pragma once

#include "admission/volcano.h"
#include "api/port.h"
#include "base/clock.h"
#include "net/loop.h"

struct webhook_manager;

/* Everything is borrowed for the life of the manager. */
struct webhook_manager_opts {
    struct net_loop *loop;
    struct hk_clock *clock;
    struct port *port; /* polled by the owner */
    struct hk_str addr, health_addr;
    uint16_t tcp_port, health_port;
    bool health;
    const char *cert_file, *key_file, *ca_file; /* cert_file NULL: certificates of our own */
    const char *ns, *service, *host;            /* names they stand for; host may be NULL */
    const char *conf_file;                      /* resource groups; NULL: none */
    struct volcano_options options;             /* conf is the manager's to fill in */
    /* It serves; health_port is 0 without health. */
    void (*ready)(void *ctx, uint16_t port, uint16_t health_port);
    /* It could not begin to serve. */
    void (*failed)(void *ctx, const struct hk_err *err);
    void *ctx;
};

int webhook_manager_new(const struct webhook_manager_opts *o, struct webhook_manager **ret,
                        struct hk_err *err) HK_CHECKED;
/* After messages of the port have been delivered, or when its time has come: does what is due. The
 * monotonic time when it wants to be called again at the latest, INT64_MAX none. */
int64_t webhook_manager_run(struct webhook_manager *m);
/* Answers what is there, for up to grace_ms. */
void webhook_manager_stop(struct webhook_manager *m, int64_t grace_ms);
/* Takes NULL. The port must still be there. */
void webhook_manager_free(struct webhook_manager *m);
