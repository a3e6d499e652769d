// SPDX-License-Identifier: Apache-2.0
// How the store calls admission webhooks: a table of functions, because the store knows no sockets.
// client/poster.h implements it. Everything runs on the thread of the store's owner.
#pragma once

#include "base/str.h"

#include <stdint.h>

enum {
    WEBHOOK_MAX_REPLY = 1 << 20, /* bytes; a longer answer is a failed call */
};

/* One call. Borrowed until post returns. */
struct webhook_post {
    const char *url;     /* https; its host is the name in the certificate */
    const char *address; /* "ADDRESS:PORT" to connect to instead of the host, or NULL */
    const char *ca_pem;  /* NULL: the authorities that the system trusts */
    struct hk_str body;  /* JSON */
    size_t max_reply;    /* bytes of the answer; 0: WEBHOOK_MAX_REPLY */
};

struct webhook_reply {
    int http;           /* 0: no complete answer, and why says the reason */
    struct hk_str body; /* borrowed until done returns */
    const char *why;
};

typedef void webhook_done_fn(void *arg, const struct webhook_reply *reply);

struct webhook_caller {
    void *ctx;
    /* Posts the body. Calls done once, later and never from inside post, unless the call was
     * cancelled. The store limits the time of a call by cancelling it. */
    uint64_t (*post)(void *ctx, const struct webhook_post *p, webhook_done_fn *done, void *arg);
    void (*cancel)(void *ctx, uint64_t id);
};
