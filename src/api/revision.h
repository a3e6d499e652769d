// SPDX-License-Identifier: Apache-2.0
// Revisions of our server have two parts: a generation in the upper bits, and a count. A store that
// lost acknowledged data starts a new generation. So no revision is used twice, and a client that
// remembers an older one can tell that history has changed. Revisions of other servers never reach
// the upper bits: their generation is 0.
//
// The number of a generation is the minute of its start, or the last number plus one. So a
// generation gets a unique number even when nothing is known of the last one, or when old files
// were restored by hand.
#pragma once

#include <stdint.h>

enum { REVISION_COUNT_BITS = 40 };

static inline uint64_t revision_generation(uint64_t rv)
{
    return rv >> REVISION_COUNT_BITS;
}

/* The first revision of the generation after that of rv, at that wall time. */
static inline uint64_t revision_next_generation(uint64_t rv, int64_t now_s)
{
    const int64_t epoch_s = 1767225600,
                  max_minutes = (int64_t)1 << 22; /* 2026-01-01, eight years */
    const int64_t minutes = (now_s - epoch_s) / 60;
    const uint64_t next = revision_generation(rv) + 1;

    if (minutes > 0 && minutes < max_minutes && (uint64_t)minutes > next) {
        return (uint64_t)minutes << REVISION_COUNT_BITS;
    }
    return next << REVISION_COUNT_BITS;
}
