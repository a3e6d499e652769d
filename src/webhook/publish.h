// SPDX-License-Identifier: Apache-2.0
// Tells the API server whom to trust: keeps the caBundle of the webhook configurations that belong
// to the enabled rules (volcano-admission-service-jobs-mutate, ...) equal to ours. They may appear
// late, or be applied anew without it; both are mended as soon as the watch tells.
#pragma once

#include "api/port.h"
#include "base/clock.h"

struct webhook_publish;

enum { WEBHOOK_PUBLISH_NAME = 64 };
/* How the configuration of a path is called: "volcano-admission-service-jobs-mutate". There is
 * WEBHOOK_PUBLISH_NAME room for it. */
void webhook_publish_name(const char *path, char *out, size_t room);

struct webhook_publish_opts {
    struct port *port;
    struct hk_clock *clock;
    uint32_t disabled; /* rules, as in struct volcano_options */
    /* Every configuration there is trusts the authority: called whenever that becomes true. */
    void (*settled)(void *ctx);
    void *ctx;
};

struct webhook_publish *webhook_publish_new(const struct webhook_publish_opts *o);
/* Takes NULL. */
void webhook_publish_free(struct webhook_publish *p);
/* The authorities, as PEM; NULL: the configurations are left as they are. Unless exact, a bundle
 * that holds the first of them is good enough: another replica may be ahead of us. */
void webhook_publish_set(struct webhook_publish *p, const char *ca_pem, bool exact);
bool webhook_publish_settled(const struct webhook_publish *p);
/* Acts when its time has come; the monotonic time of its next act, INT64_MAX none. */
int64_t webhook_publish_tick(struct webhook_publish *p, int64_t now_ns);
