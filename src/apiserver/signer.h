// SPDX-License-Identifier: Apache-2.0
// What kube-controller-manager does with CertificateSigningRequests: approves those of nodes that
// start, signs approved ones for Kubernetes' signers, and deletes old ones. A watch brings every
// change; once a minute all requests are looked at again, for deadlines and failed writes.
#pragma once

#include "api/port.h"
#include "apiserver/rbac.h"
#include "net/cert.h"
#include "net/loop.h"

struct signer;

struct signer_opts {
    struct net_loop *loop;
    struct hk_clock *clock;
    struct port *port;
    const struct api_kind *kind; /* CertificateSigningRequest */
    const struct cert_pair *ca;  /* borrowed */
    /* Whether the user has the right: who makes a request may have it approved. */
    bool (*allows)(void *ctx, const struct auth_user *u, const struct rbac_ask *ask);
    void *ctx;
};

struct signer *signer_new(const struct signer_opts *o);
/* Takes NULL. */
void signer_free(struct signer *s);
