// SPDX-License-Identifier: Apache-2.0
// The system clock, the manual clock, and random numbers.

#include "base/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t system_wall(struct hk_clock *c)
{
    return read_ns(CLOCK_REALTIME);
}

static int64_t system_mono(struct hk_clock *c)
{
    return read_ns(CLOCK_BOOTTIME);
}

struct hk_clock *hk_clock_system(void)
{
    static struct hk_clock clock = {.wall_ns = system_wall, .mono_ns = system_mono};

    return &clock;
}

static int64_t manual_now(struct hk_clock *c)
{
    return ((struct hk_clock_manual *)c)->now_ns;
}

void hk_clock_manual_init(struct hk_clock_manual *c, int64_t now_ns)
{
    *c = (struct hk_clock_manual){
        .clock = {.wall_ns = manual_now, .mono_ns = manual_now},
        .now_ns = now_ns,
    };
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void hk_rand_seed(struct hk_rand *r, uint64_t seed)
{
    for (size_t i = 0; i < HK_LEN(r->s); i++) {
        r->s[i] = splitmix(&seed);
    }
}

static uint64_t rotl(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

uint64_t hk_rand_u64(struct hk_rand *r)
{
    uint64_t *s = r->s;
    const uint64_t result = rotl(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

/* Lemire's multiplication: the high word is the result. Low words under 2^32 mod n would favour
 * some results and are drawn again. */
uint32_t hk_rand_below(struct hk_rand *r, uint32_t n)
{
    hk_assert(n > 0);
    const uint32_t threshold = -n % n;
    uint64_t m;

    do {
        m = (hk_rand_u64(r) >> 32) * n;
    } while ((uint32_t)m < threshold);
    return (uint32_t)(m >> 32);
}

double hk_rand_unit(struct hk_rand *r)
{
    return (double)(hk_rand_u64(r) >> 11) * 0x1.0p-53;
}
