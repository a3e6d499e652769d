// SPDX-License-Identifier: Apache-2.0
// Events about objects, as shown by `kubectl describe`. A repeated event is counted, and the count
// is written from time to time. Events are best effort: their queue is bounded, excess ones are
// dropped, and failures only go to the debug log.
#pragma once

#include "api/port.h"
#include "base/clock.h"

struct recorder;

struct recorder_about {
    const struct api_kind *kind;
    struct hk_str ns, name, uid;
};

/* component is copied. */
struct recorder *recorder_new(struct port *port, struct hk_clock *clock, struct hk_str component);
/* Drops unsent events. Takes NULL. */
void recorder_free(struct recorder *r);
void recorder_note(struct recorder *r, const struct recorder_about *about, bool warning,
                   const char *reason, struct hk_str message);
/* The number of events waiting or in flight. */
uint32_t recorder_len(const struct recorder *r);
