// SPDX-License-Identifier: Apache-2.0
// The port over HTTPS, to any API server of Kubernetes' kind. Calls wait in line by importance
// (binds, then the rest, events last), within one kind of importance in order of submission, for
// one of a few kept connections and for their share of the request rate. Watches and leases do not
// wait; each watch has a connection of its own.
//
// What failed and surely had no effect is tried again after a pause: whatever could not be sent,
// what the server put off (429, 503 with Retry-After), and reads. A write whose connection broke or
// whose time ran out may have been carried out: it ends with -HK_EIO or -HK_ETIMEOUT and no status,
// and the caller looks before he writes again. -HK_EBUSY is a write that surely was not.
//
// Watches are not resumed here: they end (0: the server's time was up), and api/feed.h goes on.
#pragma once

#include "api/port.h"
#include "client/kubeconfig.h"
#include "net/loop.h"

struct client;

struct client_opts {
    struct net_loop *loop;
    struct hk_clock *clock; /* wall time: when credentials end */
    struct hk_rand *rand;   /* spreads pauses */
    const char *user_agent; /* NULL: "hekla/VERSION" */
    bool terminal;          /* credential plugins may ask the user */
    /* Asked before each sending of a write, but for leases, which are how one comes to write: false
     * fails it with -HK_EDENIED. NULL: always. */
    bool (*may_write)(void *ctx);
    void *ctx;

    /* Zero chooses the number behind the colon. */
    double qps;     /* requests per second, watches and leases apart: 50; negative: any */
    uint32_t burst; /* requests at once: 100 */
    /* Requests in flight, each on a connection, besides watches, and as many more for leases: as
     * many as bring the rate when one takes 30 ms, from 16 to 64 */
    uint32_t connections;
    int64_t request_timeout_ms; /* of one attempt, from its sending: 60,000 */
    int64_t connect_timeout_ms; /* 10,000 */
    int64_t watch_stall_ms;     /* a watch without a byte for so long is dead: 100,000 */
    int64_t retry_first_ms;     /* the pause that doubles: 250 */
    int64_t retry_last_ms;      /* and where it ends: 8,000 */
    uint32_t retries;           /* after the first attempt: 6 */
    size_t max_event_bytes;     /* 16 MiB */
    size_t max_answer_bytes;    /* 1 GiB */
    size_t max_waiting_bytes;   /* watches pause while so much waits for port_poll: 64 MiB */
};

/* Takes the configuration, also when it fails. Does not connect. */
int client_new(const struct client_opts *o, struct kubeconfig *config, struct client **ret,
               struct hk_err *err) HK_CHECKED;
/* Owned by the client; port_free on it ends the client. Its descriptor is readable when messages
 * wait. The kinds of requests must outlive their calls and objects. */
struct port *client_port(struct client *c);
const struct kubeconfig *client_config(const struct client *c);
/* What was asked and how long it took, under the names of component-base (rest_client_*). */
void client_write_metrics(const struct client *c, struct hk_buf *out);
