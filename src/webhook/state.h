// SPDX-License-Identifier: Apache-2.0
// The rules' copy of the API server's state: queues, by name and parent, and namespaces. List and
// watch keep it current; reviews read it without a request.
#pragma once

#include "admission/admission.h"
#include "api/port.h"

struct hk_clock;
struct webhook_state;

struct webhook_state_opts {
    struct port *port;
    struct hk_clock *clock;
    bool queues, namespaces; /* which kinds to follow; the others are empty */
};

struct webhook_state *webhook_state_new(const struct webhook_state_opts *o);
void webhook_state_free(struct webhook_state *s);
/* Every followed kind was listed once. */
bool webhook_state_synced(const struct webhook_state *s);
/* Does what is due; returns the monotonic time of the next action, INT64_MAX none. */
int64_t webhook_state_tick(struct webhook_state *s, int64_t now_ns);
const struct admission_lookup *webhook_state_lookup(struct webhook_state *s);
