// SPDX-License-Identifier: Apache-2.0
// Access control of a node, as kubelets do it. The user name comes from a verified client
// certificate, or from the API server for a token (TokenReview). The API server also decides
// whether that user may access the node (SubjectAccessReview on nodes/proxy). Answers are cached
// for a while.
#pragma once

#include "api/port.h"
#include "base/clock.h"

struct kubelet_access;

struct kubelet_access_opts {
    struct port *port;
    struct hk_clock *clock;
    const char *node; /* its name; "": several nodes, require the right to all */
};

struct kubelet_access *kubelet_access_new(const struct kubelet_access_opts *o);
/* Pending callbacks are not called any more. Takes NULL. */
void kubelet_access_free(struct kubelet_access *a);
/* Credentials of the caller: a token, else a verified certificate, else nothing. */
struct kubelet_caller {
    struct hk_str method; /* of the request */
    struct hk_str token;
    const char *cn; /* NULL: no certificate */
    const char *const *orgs;
    uint32_t norgs;
};

/* Calls done once, now or later. Status 200 grants access; any other refuses it, and why gives the
 * reason. */
void kubelet_access_ask(struct kubelet_access *a, const struct kubelet_caller *who,
                        void (*done)(void *ctx, int status, const char *why), void *ctx);
