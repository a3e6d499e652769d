// SPDX-License-Identifier: Apache-2.0
// What the rules look up, as the API server has it: queues, by name and by parent, and namespaces.
// Fed by list and watch over a port; reviews read it without asking anybody.
#pragma once

#include "admission/admission.h"
#include "api/port.h"

struct hk_clock;
struct webhook_state;

struct webhook_state_opts {
    struct port *port;
    struct hk_clock *clock;
    bool queues, namespaces; /* which of them are wanted; the others are empty */
};

struct webhook_state *webhook_state_new(const struct webhook_state_opts *o);
void webhook_state_free(struct webhook_state *s);
/* Everything wanted was listed once. */
bool webhook_state_synced(const struct webhook_state *s);
/* Acts when its time has come; the monotonic time of its next act, INT64_MAX none. */
int64_t webhook_state_tick(struct webhook_state *s, int64_t now_ns);
const struct admission_lookup *webhook_state_lookup(struct webhook_state *s);
