// SPDX-License-Identifier: Apache-2.0
// Bytes both ways over a connection of ours (net/dial.h), or one that libmicrohttpd upgraded, plain
// or through the TLS session it came with; a peer that is gone without a word is found out. The
// library would copy between the session and a pair of sockets, but with buffers
// of what its header left of the connection's memory: four bytes. So the session is taken over: the
// library finds nothing to read in it and is given nothing to write, until the connection closes.
#pragma once

#include "base/str.h"

#include <gnutls/gnutls.h>
#include <sys/types.h>

struct tunnel {
    int fd;
    gnutls_session_t tls; /* NULL: plain */
    bool ours;            /* we, and not the library, ask for bytes */
    bool stuck;           /* a record was cut by a full socket, and goes first */
    struct hk_buf stash;  /* decrypted, not yet taken: [stash_at, stash.len) */
    size_t stash_at;
};

/* Lives as long as the session: tls reads through it from now on. */
void tunnel_open(struct tunnel *t, int fd, gnutls_session_t tls);
void tunnel_fini(struct tunnel *t);
/* As recv and send on a socket that does not block: -1 with errno. What is left of a write is
 * offered again, with the same bytes first. Readable is the socket unless a read filled its
 * buffer: then it is asked again. */
ssize_t tunnel_read(struct tunnel *t, char *p, size_t n);
ssize_t tunnel_write(struct tunnel *t, const char *p, size_t n);
