// SPDX-License-Identifier: Apache-2.0
// The port over HTTPS, to any Kubernetes API server. Calls wait in queues by importance (binds,
// then the rest, events last), in order of submission, for one of a few kept connections and for
// the request rate. Watches and leases do not wait; each watch has its own connection.
//
// A failed call that had no effect is retried after a pause: calls that could not be sent, calls
// that the server deferred (429, 503 with Retry-After), and reads. A write whose connection broke
// or that timed out may have taken effect: it ends with -HK_EIO or -HK_ETIMEOUT and no status, and
// the caller must check before writing again. -HK_EBUSY is a write without effect.
//
// Watches are not resumed here: they end (0: the server's time limit), and api/feed.h continues.
#pragma once

#include "api/port.h"
#include "client/kubeconfig.h"
#include "net/loop.h"

struct client;

struct client_opts {
    struct net_loop *loop;
    struct hk_clock *clock; /* for the expiry of credentials */
    struct hk_rand *rand;   /* randomizes pauses */
    const char *user_agent; /* NULL: "hekla/VERSION" */
    bool terminal;          /* credential plugins may ask the user */
    /* Called before each write is sent, except for leases (leader election needs them): false fails
     * it with -HK_EDENIED. NULL: always. */
    bool (*may_write)(void *ctx);
    void *ctx;

    /* Zero means the default, given after the colon. */
    double qps;     /* requests per second without watches and leases: 50; negative: any */
    uint32_t burst; /* requests at once: 100 */
    /* Most requests in flight, each on a connection, without watches; as many again for leases:
     * enough for the rate at 30 ms per request, from 16 to 64 */
    uint32_t connections;
    int64_t request_timeout_ms; /* of one attempt: 60,000 */
    int64_t connect_timeout_ms; /* 10,000 */
    int64_t watch_stall_ms;     /* ends a watch without data for this long: 100,000 */
    int64_t retry_first_ms;     /* first pause, then doubling: 250 */
    int64_t retry_last_ms;      /* longest pause: 8,000 */
    uint32_t retries;           /* after the first attempt: 6 */
    size_t max_event_bytes;     /* of one event of a watch, or one item of a list: 16 MiB */
    size_t max_answer_bytes;    /* of an answer without list items: 64 MiB */
    size_t max_page_bytes;      /* memory for items of one list with a limit: 256 MiB */
    size_t max_lists_bytes;     /* the same without a limit, and for all lists together: 1 GiB */
    size_t max_waiting_bytes;   /* pauses watches while this much waits for port_poll: 64 MiB */
};

/* Takes config, even on failure. Does not connect. */
int client_new(const struct client_opts *o, struct kubeconfig *config, struct client **ret,
               struct hk_err *err) HK_CHECKED;
/* The client's port; port_free on it frees the client. Its descriptor is readable when messages
 * wait. The api_kinds of requests must outlive their calls and objects. */
struct port *client_port(struct client *c);
const struct kubeconfig *client_config(const struct client *c);
/* Numbers and durations of requests, under the names of component-base (rest_client_*). */
void client_write_metrics(const struct client *c, struct hk_buf *out);
