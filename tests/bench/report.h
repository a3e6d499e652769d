// SPDX-License-Identifier: Apache-2.0
// What benchmarks report: numbers with a name, shown as lines beside the bars to reach and written
// as JSON.
#pragma once

#include "base/mem.h"

#include <sys/types.h>

struct result {
    char id[32], metric[24], unit[16], bar[32]; /* bar: "P1 >= 100000" */
    double value, min, max;
    uint32_t runs;
    bool asserted; /* value must be 0 */
};

struct results {
    struct result *at;
    uint32_t len, cap;
};

/* Sorts v. */
double report_percentile(double *v, uint32_t n, double p);
/* Median and range of v, which it sorts; bar may be NULL. */
struct result report_median(const char *id, const char *metric, const char *unit, const char *bar,
                            double *v, uint32_t n);
void report_show(const struct result *r, const char *prefix);
/* False, with a message on stderr, when the file cannot be written. */
bool report_write_json(const struct results *all, const char *path);
/* Resident memory of a process. */
double report_rss_mb(pid_t pid);
