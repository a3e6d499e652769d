// SPDX-License-Identifier: Apache-2.0
// Numbers as lines and as JSON.
#include "bench/report.h"

#include <stdio.h>
#include <stdlib.h>

static int double_cmp(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double report_percentile(double *v, uint32_t n, double p)
{
    qsort(v, n, sizeof(*v), double_cmp);
    const uint32_t i = (uint32_t)(p * n);
    return v[i < n ? i : n - 1];
}

struct result report_median(const char *id, const char *metric, const char *unit, const char *bar,
                            double *v, uint32_t n)
{
    struct result r = {.runs = n};

    snprintf(r.id, sizeof(r.id), "%s", id);
    snprintf(r.metric, sizeof(r.metric), "%s", metric);
    snprintf(r.unit, sizeof(r.unit), "%s", unit);
    snprintf(r.bar, sizeof(r.bar), "%s", bar ? bar : "");
    r.value = report_percentile(v, n, 0.5);
    r.min = v[0];
    r.max = v[n - 1];
    return r;
}

static const char *bar_verdict(const struct result *r)
{
    char sign[3] = "";
    double bar = 0;

    if (sscanf(r->bar, "%*s %2s %lf", sign, &bar) != 2) {
        return "";
    }
    return (sign[0] == '>' ? r->value >= bar : r->value <= bar) ? "yes" : "no";
}

void report_show(const struct result *r, const char *prefix)
{
    const int digits = r->value < 100 ? 3 : 0;

    printf("%s%-18s %-18s %12.*f  [%.*f .. %.*f] %s", prefix, r->id, r->metric, digits, r->value,
           digits, r->min, digits, r->max, r->unit);
    if (r->bar[0]) {
        printf("  %s: %s", r->bar, bar_verdict(r));
    }
    if (r->asserted && r->value != 0) {
        printf("  want 0");
    }
    printf("\n");
    fflush(stdout);
}

bool report_write_json(const struct results *all, const char *path)
{
    FILE *f = fopen(path, "we");

    if (!f) {
        fprintf(stderr, "bench: cannot write '%s'\n", path);
        return false;
    }
    fprintf(f, "[\n");
    for (uint32_t k = 0; k < all->len; k++) {
        const struct result *r = &all->at[k];
        fprintf(f,
                "  {\"id\": \"%s\", \"metric\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", "
                "\"min\": %.6g, \"max\": %.6g, \"runs\": %u}%s\n",
                r->id, r->metric, r->value, r->unit, r->min, r->max, r->runs,
                k + 1 < all->len ? "," : "");
    }
    fprintf(f, "]\n");
    return fclose(f) == 0;
}

double report_rss_mb(pid_t pid)
{
    char line[128];
    long kb = 0;

    snprintf(line, sizeof(line), "/proc/%d/status", (int)pid);
    FILE *f = fopen(line, "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "VmRSS: %ld kB", &kb) == 1) {
            break;
        }
    }
    if (f) {
        fclose(f);
    }
    return (double)kb / 1024;
}
