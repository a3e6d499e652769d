// SPDX-License-Identifier: Apache-2.0
// The objects that Hekla's programs need in a cluster: definitions, accounts with exactly the
// rights each program uses, configuration, the programs themselves and the webhooks. Names are
// those of Volcano's installer, so that an existing installation is replaced.
#pragma once

#include "base/err.h"
#include "codec/json.h"

/* In the order of application. */
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
/* Bit set of the parts left out by default. */
extern const uint32_t install_extra_parts;

/* Everything is borrowed. */
struct install_opts {
    const char *ns, *image;
    const char *webhook_url;                     /* NULL: through the service */
    const char *scheduler_conf, *admission_conf; /* text of the files; NULL: the default */
    uint32_t replicas;
    uint32_t parts;    /* bit 1 << enum install_part */
    uint32_t disabled; /* webhooks not to register, as volcano_options.disabled */
};

/* Appends the objects to the array in a valid order of creation. */
void install_objects(const struct install_opts *o, struct hk_arena *a, struct json *ret);
