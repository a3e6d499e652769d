// SPDX-License-Identifier: Apache-2.0
// Leader election over a Lease: of several processes that use the same Lease, one leads. Records
// are compatible with client-go, so both kinds of programs can compete for the same Lease.
//
//   WAITS --the lease is ours--> LEADS --not renewed in time, or taken by another--> LOST
//   WAITS, LEADS --election_release--> ENDS --answer--> OVER
//
// Clocks of different machines are never compared: a lease is free when it has not changed for its
// duration, counted from when we first saw this state. The leader counts from before the request of
// its last renewal, and stops well before another process may start. The owner calls election_leads
// before each write, and has the port call it before each send.
#pragma once

#include "api/port.h"
#include "base/clock.h"

struct election;

enum election_state { ELECTION_WAITS, ELECTION_LEADS, ELECTION_LOST, ELECTION_ENDS, ELECTION_OVER };

struct election_opts {
    struct port *port; /* polled by the owner */
    struct hk_clock *clock;
    struct hk_rand *rand;
    const char *ns, *name; /* of the Lease */
    const char *identity;  /* unique */
    int64_t lease_ns;      /* no takeover for this long after the last renewal */
    int64_t renew_ns;      /* the leader continues for this long after it */
    int64_t retry_ns;      /* between attempts, somewhat longer while waiting */
};

/* Fails when the three times are inconsistent. Copies the strings. */
int election_new(const struct election_opts *o, struct election **ret,
                 struct hk_err *err) HK_CHECKED;
/* Does not change the lease. Takes NULL. */
void election_free(struct election *e);
/* Does what is due; returns the latest monotonic time of the next call. */
int64_t election_tick(struct election *e);
enum election_state election_state(const struct election *e);
/* Checks the clock now; does not depend on a recent election_tick. */
bool election_leads(const struct election *e);
/* uid of the Lease when last seen, "" before; valid until election_tick. */
struct hk_str election_uid(const struct election *e);
/* Releases the lease if we hold it; election_leads is false from now on. The state becomes OVER
 * later. */
void election_release(struct election *e);
