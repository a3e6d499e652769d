// SPDX-License-Identifier: Apache-2.0
// Exchanges bytes over a connection of ours (net/dial.h), or one that libmicrohttpd upgraded, plain
// or through its TLS session; detects a silently vanished peer. The library would copy between the
// session and a pair of sockets, but with buffers of only four bytes (what its header leaves of the
// connection's memory). So the tunnel takes over the session: the library finds nothing to read and
// gets nothing to write until the connection closes.
#pragma once

#include "base/str.h"

#include <gnutls/gnutls.h>
#include <sys/types.h>

struct tunnel {
    int fd;
    gnutls_session_t tls; /* NULL: plain */
    bool ours;            /* we, not the library, read now */
    bool stuck;           /* a record was only partly written; finish it first */
    struct hk_buf stash;  /* decrypted, not yet read: [stash_at, stash.len) */
    size_t stash_at;
};

/* t must live as long as the session: tls reads through it from now on. */
void tunnel_open(struct tunnel *t, int fd, gnutls_session_t tls);
void tunnel_fini(struct tunnel *t);
/* Like recv and send on a non-blocking socket: -1 with errno. Repeat an incomplete write with the
 * same remaining bytes; repeat a read that filled its buffer without waiting for readiness. */
ssize_t tunnel_read(struct tunnel *t, char *p, size_t n);
ssize_t tunnel_write(struct tunnel *t, const char *p, size_t n);
