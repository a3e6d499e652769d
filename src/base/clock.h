// SPDX-License-Identifier: Apache-2.0
// Time and randomness are inputs: daemons pass the system's, tests and the simulator their own.
#pragma once

#include "base/mem.h"

/* wall_ns: nanoseconds since 1970, can be set by users. mono_ns: for durations, never set,
 * continues while the machine is suspended. */
struct hk_clock {
    int64_t (*wall_ns)(struct hk_clock *c);
    int64_t (*mono_ns)(struct hk_clock *c);
};

struct hk_clock *hk_clock_system(void);

/* Converts seconds from input to nanoseconds, limited to 68 years either way, so that they can be
 * added to any time. */
static inline int64_t hk_seconds_ns(int64_t s)
{
    const int64_t most_s = (int64_t)1 << 31;

    return HK_MAX(HK_MIN(s, most_s), -most_s) * 1000000000;
}

/* A clock that only its owner advances. */
struct hk_clock_manual {
    struct hk_clock clock;
    int64_t now_ns;
};
void hk_clock_manual_init(struct hk_clock_manual *c, int64_t now_ns);

/* xoshiro256**, seeded through splitmix64: the same numbers on every machine. */
struct hk_rand {
    uint64_t s[4];
};
void hk_rand_seed(struct hk_rand *r, uint64_t seed);
uint64_t hk_rand_u64(struct hk_rand *r);
/* Uniform in [0, n), n > 0, without bias. */
uint32_t hk_rand_below(struct hk_rand *r, uint32_t n);
/* Uniform in [0, 1). */
double hk_rand_unit(struct hk_rand *r);
