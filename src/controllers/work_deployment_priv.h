// SPDX-License-Identifier: Apache-2.0
// One pass over a Deployment, shared by work_deployment.c and work_deployment_status.c.
#pragma once

#include "controllers/work_priv.h"

#define ANN_REVISION "deployment.kubernetes.io/revision"
#define ANN_HISTORY "deployment.kubernetes.io/revision-history"
#define ANN_DESIRED "deployment.kubernetes.io/desired-replicas"
#define ANN_MAX "deployment.kubernetes.io/max-replicas"

struct set {
    struct json root;
    struct hk_str name, uid;
    int64_t replicas, want; /* current and wanted */
    int64_t created_ns, revision;
    int64_t there, ready, available; /* of its status */
};

struct rollout {
    struct pass *t;
    struct json *root;
    const struct json *template;
    struct set *sets; /* oldest first */
    uint32_t nset;
    struct set *fresh; /* the one of the current template; NULL none yet */
    int64_t replicas, max_surge, max_unavailable;
    bool recreate, paused;
};

/* Returns whether the status had to be written. */
bool rollout_write_status(struct rollout *r);
/* By its status, every pod has the new template and is available. */
bool rollout_is_complete(const struct rollout *r);
