// SPDX-License-Identifier: Apache-2.0
// The whole of `hekla up` from seeds, as TAP.
//
//   hekla-world [--from S] [--seeds N]   a point per hundred seeds, one for each rule that is
//   broken
//                                        on purpose, and one for telling the same story twice
//   hekla-world --seconds N [--from S]   seeds until time is over, from a random one unless told
//   hekla-world --seed S [--trace] [--breach NAME]
//                                        one seed, with every line of its story
#include "base/log.h"
#include "world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

enum { BATCH = 100, DEFAULT_SEEDS = 200, BREACH_SEEDS = 60 };

struct options {
    int64_t seeds, from, seed, seconds;
    enum world_breach breach;
    bool trace;
};

static const struct disk *world_disk;
static uint32_t points, failures;

static bool point(bool ok, const char *fmt, ...) HK_PRINTF(2, 3);

static bool point(bool ok, const char *fmt, ...)
{
    va_list ap;

    failures += !ok;
    printf("%sok %u - ", ok ? "" : "not ", ++points);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    return ok;
}

static bool run_batch(uint64_t from, uint64_t n)
{
    uint64_t writes = 0, steps = 0;
    bool ok = true;

    for (uint64_t s = from; s < from + n; s++) {
        const struct world_result r = world_run(s, BREACH_NONE, false, world_disk);
        ok = ok && !r.failed;
        writes += r.writes;
        steps += r.steps;
        fflush(stdout);
    }
    return point(ok, "seeds %llu to %llu keep every promise (%llu steps, %llu writes)",
                 (unsigned long long)from, (unsigned long long)(from + n - 1),
                 (unsigned long long)steps, (unsigned long long)writes);
}

/* A broken rule has to be seen in some of the seeds in which it was broken. */
static void run_breach(enum world_breach b, uint64_t from)
{
    uint32_t broken = 0;
    char seen[64] = "";

    for (uint64_t s = from; s < from + BREACH_SEEDS && seen[0] == '\0'; s++) {
        const struct world_result r = world_run(s, b, false, world_disk);
        broken += r.breaches > 0;
        if (r.failed && r.breaches > 0) {
            memcpy(seen, r.invariant, sizeof(seen));
        }
    }
    point(seen[0] != '\0', "a breach of '%s' is seen: '%s' (broken in %u %s)", world_breach_name(b),
          seen, broken, broken == 1 ? "seed" : "seeds");
}

static bool tells_the_same(uint64_t seed, enum world_breach b)
{
    const struct world_result one = world_run(seed, b, false, world_disk);
    const struct world_result two = world_run(seed, b, false, world_disk);

    return one.hash == two.hash && one.lines == two.lines;
}

static void run_twice(uint64_t from)
{
    bool same = true;

    for (uint64_t s = from; s < from + 5; s++) {
        same = same && tells_the_same(s, BREACH_NONE);
    }
    point(same, "a seed tells the same story twice");
    point(!tells_the_same(from, BREACH_CHANCE), "a breach of 'chance' is seen");
}

static int run_many(const struct options *o)
{
    const uint64_t from = (uint64_t)o->from, end = from + (uint64_t)o->seeds;

    run_twice(from);
    for (enum world_breach b = BREACH_NONE + 1; b < BREACH_CHANCE; b++) {
        run_breach(b, from);
    }
    for (uint64_t s = from; s < end; s += BATCH) {
        run_batch(s, HK_MIN(end - s, (uint64_t)BATCH));
    }
    return 0;
}

static int run_long(const struct options *o)
{
    uint64_t from = (uint64_t)o->from;
    struct timespec begin, now;

    if (o->from < 0 && getrandom(&from, sizeof(from), 0) == (ssize_t)sizeof(from)) {
        from >>= 16;
    }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        if (!run_batch(from, BATCH)) {
            break;
        }
        from += BATCH;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < o->seconds);
    return 0;
}

static void run_one(const struct options *o)
{
    const struct world_result r = world_run((uint64_t)o->seed, o->breach, o->trace, world_disk);

    point(!r.failed, "seed %llu keeps every promise (%llu steps, %llu writes, trace %016llx)",
          (unsigned long long)o->seed, (unsigned long long)r.steps, (unsigned long long)r.writes,
          (unsigned long long)r.hash);
}

static bool parse_breach(const char *name, enum world_breach *ret)
{
    for (enum world_breach b = 0; b < BREACH_NKINDS; b++) {
        if (strcmp(name, world_breach_name(b)) == 0) {
            *ret = b;
            return true;
        }
    }
    return false;
}

static bool parse_options(int argc, char **argv, struct options *o)
{
    const struct {
        const char *name;
        int64_t *to;
    } numbers[] = {{"--seeds", &o->seeds},
                   {"--from", &o->from},
                   {"--seed", &o->seed},
                   {"--seconds", &o->seconds}};

    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        if (strcmp(argv[i], "--trace") == 0) {
            o->trace = true;
            continue;
        }
        if (i + 1 == argc) {
            return false;
        }
        if (strcmp(argv[i], "--breach") == 0) {
            if (!parse_breach(argv[++i], &o->breach)) {
                return false;
            }
            continue;
        }
        while (k < HK_LEN(numbers) && strcmp(argv[i], numbers[k].name) != 0) {
            k++;
        }
        if (k == HK_LEN(numbers) || !hk_str_int(hk_str(argv[++i]), numbers[k].to) ||
            *numbers[k].to < 0) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o = {.seeds = DEFAULT_SEEDS, .from = -1, .seed = -1};
    struct disk disk;

    if (!parse_options(argc, argv, &o)) {
        fprintf(stderr, "usage: hekla-world [--from S] [--seeds N | --seconds N]\n"
                        "       hekla-world --seed S [--trace] [--breach NAME]\n");
        return 2;
    }
    hk_log_set_level(o.trace ? HK_LOG_WARN : HK_LOG_ERROR);
    world_template(&disk);
    world_disk = &disk;
    if (o.seed >= 0) {
        run_one(&o);
    } else if (o.seconds > 0) {
        run_long(&o);
    } else {
        o.from = o.from < 0 ? 1 : o.from;
        run_many(&o);
    }
    printf("1..%u\n", points);
    disk_fini(&disk);
    return failures > 0;
}
