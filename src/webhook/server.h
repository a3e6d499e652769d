// SPDX-License-Identifier: Apache-2.0
// The admission server: reviews over HTTPS, one path per enabled rule, and optionally a second
// address for health checks.
#pragma once

#include "admission/volcano.h"
#include "api/port.h"
#include "base/clock.h"
#include "net/loop.h"

struct webhook_server;

struct webhook_server_opts {
    struct net_loop *loop;
    struct hk_clock *clock;
    struct hk_str addr;
    uint16_t port; /* 0: any */
    bool health;   /* serve /healthz as well */
    struct hk_str health_addr;
    uint16_t health_port;
    const char *cert_pem, *key_pem;
    /* Both are read for each review, and may change between loop iterations. */
    const struct volcano_options *options;
    const struct admission_lookup *lookup;
    struct port *api; /* for checks of rights, polled by the owner; NULL: such rules refuse */
};

int webhook_server_new(const struct webhook_server_opts *o, struct webhook_server **ret,
                       struct hk_err *err) HK_CHECKED;
uint16_t webhook_server_port(const struct webhook_server *s);
/* 0 without health. */
uint16_t webhook_server_health_port(const struct webhook_server *s);
/* Uses another certificate for new connections. */
int webhook_server_become(struct webhook_server *s, const char *cert_pem, const char *key_pem,
                          struct hk_err *err) HK_CHECKED;
/* Accepts no more requests and answers open ones, for up to grace_ms. */
void webhook_server_stop(struct webhook_server *s, int64_t grace_ms);
/* Takes NULL. */
void webhook_server_free(struct webhook_server *s);
