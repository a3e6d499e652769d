// SPDX-License-Identifier: Apache-2.0
// The whole admission server of a cluster: state, certificates, publication and HTTP server on one
// loop and one port. It starts to serve once it has a certificate and has listed the cluster.
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
    const char *cert_file, *key_file, *ca_file; /* cert_file NULL: uses its own certificates */
    const char *ns, *service, *host;            /* names of these certificates; host may be NULL */
    const char *conf_file;                      /* resource groups; NULL: none */
    struct volcano_options options;             /* the manager sets conf */
    /* The server accepts requests; health_port is 0 without health. */
    void (*ready)(void *ctx, uint16_t port, uint16_t health_port);
    /* The server could not start. */
    void (*failed)(void *ctx, const struct hk_err *err);
    void *ctx;
};

int webhook_manager_new(const struct webhook_manager_opts *o, struct webhook_manager **ret,
                        struct hk_err *err) HK_CHECKED;
/* Call after messages of the port and at the returned time: does what is due. Returns the latest
 * monotonic time of the next call, INT64_MAX none. */
int64_t webhook_manager_run(struct webhook_manager *m);
/* Answers open requests, for up to grace_ms. */
void webhook_manager_stop(struct webhook_manager *m, int64_t grace_ms);
/* Takes NULL. The port must still exist. */
void webhook_manager_free(struct webhook_manager *m);
