// SPDX-License-Identifier: Apache-2.0
// Who may ask a node, as kubelets find it out: the name comes from a verified client certificate,
// or from the API server, which knows whose token it is (TokenReview); whether that user may get at
// the node the API server says too (SubjectAccessReview on nodes/proxy). Answers are believed for a
// while.
#pragma once

#include "api/port.h"
#include "base/clock.h"

struct kubelet_access;

struct kubelet_access_opts {
    struct port *port;
    struct hk_clock *clock;
    const char *node; /* its name; "": of several, the right to all of them is asked for */
};

struct kubelet_access *kubelet_access_new(const struct kubelet_access_opts *o);
/* Whoever waits for an answer hears nothing any more. Takes NULL. */
void kubelet_access_free(struct kubelet_access *a);
/* What is known of who asks: a token, else a verified certificate, else nothing. */
struct kubelet_caller {
    struct hk_str method; /* of the request */
    struct hk_str token;
    const char *cn; /* NULL: no certificate */
    const char *const *orgs;
    uint32_t norgs;
};

/* Calls done once, now or later: with status 200 who asks may; else it is that of the refusal, and
 * why says what is wrong. */
void kubelet_access_ask(struct kubelet_access *a, const struct kubelet_caller *who,
                        void (*done)(void *ctx, int status, const char *why), void *ctx);
