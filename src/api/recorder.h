// SPDX-License-Identifier: Apache-2.0
// Events about objects, as people see them in `kubectl describe`. One that says what an earlier one
// of the same object said is counted, and the count written now and then. Events are courtesy: they
// wait behind a bound and are dropped beyond it, and nobody hears of a failure but the debug log.
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
/* Drops what has not been sent. Takes NULL. */
void recorder_free(struct recorder *r);
void recorder_note(struct recorder *r, const struct recorder_about *about, bool warning,
                   const char *reason, struct hk_str message);
/* Events that wait to be sent or answered. */
uint32_t recorder_len(const struct recorder *r);
