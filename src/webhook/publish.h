// SPDX-License-Identifier: Apache-2.0
// Tells the API server which authority to trust: keeps the caBundle of the webhook configurations
// of enabled rules (volcano-admission-service-jobs-mutate, ...) equal to ours. Corrects
// configurations that appear late or lose the bundle as soon as the watch reports them.
#pragma once

#include "api/port.h"
#include "base/clock.h"

struct webhook_publish;

enum { WEBHOOK_PUBLISH_NAME = 64 };
/* The name of a path's configuration: "volcano-admission-service-jobs-mutate". room should be
 * WEBHOOK_PUBLISH_NAME. */
void webhook_publish_name(const char *path, char *out, size_t room);

struct webhook_publish_opts {
    struct port *port;
    struct hk_clock *clock;
    uint32_t disabled; /* disabled rules, as in struct volcano_options */
    /* Called whenever all existing configurations have come to trust the authority. */
    void (*settled)(void *ctx);
    void *ctx;
};

struct webhook_publish *webhook_publish_new(const struct webhook_publish_opts *o);
/* Takes NULL. */
void webhook_publish_free(struct webhook_publish *p);
/* Sets the authorities, as PEM; NULL: leaves the configurations unchanged. Unless exact, accepts a
 * bundle that contains the first of them: another replica may be ahead of us. */
void webhook_publish_set(struct webhook_publish *p, const char *ca_pem, bool exact);
bool webhook_publish_settled(const struct webhook_publish *p);
/* Does what is due; returns the monotonic time of the next action, INT64_MAX none. */
int64_t webhook_publish_tick(struct webhook_publish *p, int64_t now_ns);
