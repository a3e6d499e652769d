// SPDX-License-Identifier: Apache-2.0
// Time and chance are inputs. Daemons pass the system's, tests and the simulator pass their own.
#pragma once

#include "base/mem.h"

/* Wall time in nanoseconds since 1970, which people set, and a reading for durations, which nobody
 * does and which goes on while the machine is suspended. */
struct hk_clock {
    int64_t (*wall_ns)(struct hk_clock *c);
    int64_t (*mono_ns)(struct hk_clock *c);
};

struct hk_clock *hk_clock_system(void);

/* A clock that moves only when told to. */
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
