// SPDX-License-Identifier: Apache-2.0
// Certificate, key and CA in files; read again when they change.
#pragma once

#include "net/cert.h"
#include "net/loop.h"

struct cert_files;

struct cert_files_opts {
    struct net_loop *loop;
    const char *cert_file, *key_file, *ca_file; /* borrowed; ca_file may be NULL */
    /* The contents have changed. Not called for the first read in cert_files_new. */
    void (*changed)(void *ctx);
    void *ctx;
};

/* Fails when they are unusable; later such changes are only logged. */
int cert_files_new(const struct cert_files_opts *o, struct cert_files **ret,
                   struct hk_err *err) HK_CHECKED;
const struct cert_set *cert_files_now(const struct cert_files *c);
/* Takes NULL. */
void cert_files_free(struct cert_files *c);
