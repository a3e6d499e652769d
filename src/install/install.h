// SPDX-License-Identifier: Apache-2.0
// What a cluster needs so that Hekla's programs can work in it, as objects: definitions, accounts
// with the rights each program uses and no others, configuration, the programs themselves and the
// webhooks. Names are those of Volcano's installer, so that what is there is replaced.
#pragma once

#include "base/err.h"
#include "codec/json.h"

/* In the order in which they are applied. */
enum install_part {
    INSTALL_NAMESPACE,
    INSTALL_CRDS,
    INSTALL_ACCOUNTS,
    INSTALL_RBAC,
    INSTALL_AGENT,
    INSTALL_CONFIG,
    INSTALL_SERVICES,
    INSTALL_BUDGETS,
    INSTALL_DEPLOYMENTS,
    INSTALL_WEBHOOKS,
    INSTALL_QUEUES,
    INSTALL_NPARTS,
};

/* "rbac". */
const char *install_part_name(enum install_part part);
/* Left out unless it is asked for: for each part a bit. */
extern const uint32_t install_extra_parts;

/* Everything is borrowed. */
struct install_opts {
    const char *ns, *image;
    const char *webhook_url;                     /* NULL: by way of the service */
    const char *scheduler_conf, *admission_conf; /* their text; NULL: the usual one */
    uint32_t replicas;
    uint32_t parts;    /* bit 1 << enum install_part */
    uint32_t disabled; /* webhooks that are not registered, as volcano_options.disabled */
};

/* Appends the objects to the array, in an order in which they can be made. */
void install_objects(const struct install_opts *o, struct hk_arena *a, struct json *ret);
