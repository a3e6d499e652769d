// SPDX-License-Identifier: Apache-2.0
// The story as lines, its violations, and the small words it is told with: chance, JSON, names.
#include "world/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *world_breach_name(enum world_breach b)
{
    static const char *const names[BREACH_NKINDS] = {
        "none",  "sync",  "bind",  "overfill", "process", "forget", "job",    "orphan",
        "retry", "noise", "early", "blame",    "closed",  "books",  "chance",
    };

    return names[b];
}

void trace_add(struct trace *t, const char *who, const char *fmt, ...)
{
    char *line = t->last[t->lines++ % WORLD_LINES];
    const double at = (double)(t->clock->now_ns - t->begin_ns) / (double)WORLD_SECOND;
    const int n = snprintf(line, WORLD_LINE, "%10.6f %-11s ", at, who);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line + n, (size_t)(WORLD_LINE - n), fmt, ap);
    va_end(ap);
    t->hash = hk_hash(line, strlen(line), t->hash);
    if (t->print) {
        printf("# %s\n", line);
    }
}

void world_fail(struct world *w, const char *invariant, const char *fmt, ...)
{
    va_list ap;

    if (w->failed) {
        return;
    }
    w->failed = true;
    snprintf(w->invariant, sizeof(w->invariant), "%s", invariant);
    va_start(ap, fmt);
    vsnprintf(w->text, sizeof(w->text), fmt, ap);
    va_end(ap);
    trace_add(&w->trace, "violation", "%s: %s", w->invariant, w->text);
}

int64_t world_now(const struct world *w)
{
    return w->clock.now_ns;
}

bool world_chance(struct world *w, uint32_t per_mille)
{
    return per_mille > 0 && hk_rand_below(&w->rand, 1000) < per_mille;
}

int64_t world_between(struct world *w, int64_t low, int64_t high)
{
    return low + (int64_t)(hk_rand_u64(&w->rand) % (uint64_t)(high - low + 1));
}

int64_t world_share_milli(const struct world *w)
{
    const int64_t all = (int64_t)w->weather.nodes * w->weather.cpus * 1000;

    return w->weather.weights ? 4000
                              : HK_MIN(all / 4, 4000); /* three queues of ours, and default */
}

const struct json *world_json(struct world *w, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json *v = hk_arena_alloc(&w->mem, sizeof(*v));
    struct hk_err err = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    for (char *p = text.data; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(hk_arena_str(&w->mem, hk_buf_str(&text)), 0, &w->mem, v, &err) < 0) {
        fprintf(stderr, "%s in %s\n", err.text, text.data);
        abort();
    }
    return v;
}
