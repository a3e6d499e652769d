// SPDX-License-Identifier: Apache-2.0
// Prometheus' text format: metrics and histograms. Observing a value allocates no memory.
#pragma once

#include "base/str.h"

enum { HK_HIST_MAX = 30 };

/* Counts of values between bounds. */
struct hk_hist {
    uint32_t nbound;
    double bounds[HK_HIST_MAX];
    uint64_t n[HK_HIST_MAX + 1]; /* the last: above all bounds */
    double sum;
};

/* nbound (at least 2) bounds from first to last that grow by a constant factor. */
void hk_hist_init(struct hk_hist *h, double first, double last, uint32_t nbound);
/* These bounds, in ascending order. */
void hk_hist_init_bounds(struct hk_hist *h, const double *bounds, uint32_t nbound);
void hk_hist_add(struct hk_hist *h, double v);
uint64_t hk_hist_count(const struct hk_hist *h);

/* Writes the HELP and TYPE lines of a metric. */
void hk_prom_head(struct hk_buf *out, const char *name, const char *type, const char *help);
/* Writes the shortest form that reads back as the same number. */
void hk_prom_number(struct hk_buf *out, double v);
/* <before>key="value", quoted. */
void hk_prom_label(struct hk_buf *out, const char *before, const char *key, struct hk_str value);
/* Writes a metric with one value: head and line. */
void hk_prom_single(struct hk_buf *out, const char *name, const char *type, const char *help,
                    double v);
/* Writes the lines of one histogram; labels without braces, "" for none. */
void hk_prom_hist(struct hk_buf *out, const char *name, const char *labels,
                  const struct hk_hist *h);
