// SPDX-License-Identifier: Apache-2.0
// Leader election over a Lease: of several processes that share its name, one leads. Records are as
// client-go writes and reads them, so both kinds of programs can stand for the same office.
//
//   WAITS --the lease is ours--> LEADS --not renewed in time, or somebody else's--> LOST
//   WAITS, LEADS --election_release--> ENDS --answer--> OVER
//
// Clocks of different machines are never compared: a lease is free when it has not changed for as
// long as it says, counted from when we first saw it so. The leader counts from before it asked for
// its last renewal, and stops by itself well before anybody else may begin. The owner asks
// election_leads before each write, and lets the port ask it before each sending.
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
    const char *identity;  /* nobody else's */
    int64_t lease_ns;      /* so long nobody takes over after the last renewal */
    int64_t renew_ns;      /* so long after it the leader goes on */
    int64_t retry_ns;      /* between attempts, some more while waiting */
};

/* Fails when the three times do not fit together. The strings are copied. */
int election_new(const struct election_opts *o, struct election **ret,
                 struct hk_err *err) HK_CHECKED;
/* The lease stays as it is. Takes NULL. */
void election_free(struct election *e);
/* Does what is due; the monotonic time when it wants to be called again at the latest. */
int64_t election_tick(struct election *e);
enum election_state election_state(const struct election *e);
/* By the clock as it is now, whether or not election_tick has been called since. */
bool election_leads(const struct election *e);
/* Of the Lease as it was last seen, "" before; until election_tick. */
struct hk_str election_uid(const struct election *e);
/* Gives the lease back if it is ours; election_leads is false from here on. OVER comes later. */
void election_release(struct election *e);
