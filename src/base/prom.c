// SPDX-License-Identifier: Apache-2.0
// Histograms and Prometheus' text format.
#include "base/prom.h"

#include "base/err.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- histograms ---- */

void hk_hist_init(struct hk_hist *h, double first, double last, uint32_t nbound)
{
    hk_assert(nbound >= 2 && nbound <= HK_HIST_MAX);
    *h = (struct hk_hist){.nbound = nbound};
    for (uint32_t k = 0; k < nbound; k++) {
        h->bounds[k] = first * pow(pow(last / first, 1.0 / (nbound - 1)), k);
    }
}

void hk_hist_init_bounds(struct hk_hist *h, const double *bounds, uint32_t nbound)
{
    hk_assert(nbound >= 1 && nbound <= HK_HIST_MAX);
    *h = (struct hk_hist){.nbound = nbound};
    memcpy(h->bounds, bounds, nbound * sizeof(*bounds));
}

void hk_hist_add(struct hk_hist *h, double v)
{
    uint32_t low = 0, high = h->nbound;

    while (low < high) {
        const uint32_t mid = (low + high) / 2;
        if (v > h->bounds[mid]) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    h->n[low]++;
    h->sum += v;
}

uint64_t hk_hist_count(const struct hk_hist *h)
{
    uint64_t sum = 0;

    for (uint32_t k = 0; k <= h->nbound; k++) {
        sum += h->n[k];
    }
    return sum;
}

/* ---- text ---- */

#define MAX_WHOLE 1e15

void hk_prom_head(struct hk_buf *out, const char *name, const char *type, const char *help)
{
    hk_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void hk_prom_number(struct hk_buf *out, double v)
{
    char text[32];
    int digits = 15;

    if (v >= -MAX_WHOLE && v <= MAX_WHOLE && v == (double)(int64_t)v) {
        hk_buf_addf(out, "%lld", (long long)v); /* most values are whole, and this is much faster */
        return;
    }
    do {
        snprintf(text, sizeof(text), "%.*g", digits++, v);
    } while (digits <= 17 && strtod(text, NULL) != v);
    hk_buf_adds(out, text);
}

void hk_prom_label(struct hk_buf *out, const char *before, const char *key, struct hk_str value)
{
    size_t from = 0;

    hk_buf_adds(out, before);
    hk_buf_adds(out, key);
    hk_buf_adds(out, "=\"");
    for (size_t i = 0; i < value.n; i++) {
        if (value.s[i] == '\n' || value.s[i] == '"' || value.s[i] == '\\') {
            hk_buf_add(out, value.s + from, i - from);
            hk_buf_adds(out, value.s[i] == '\n' ? "\\n" : value.s[i] == '"' ? "\\\"" : "\\\\");
            from = i + 1;
        }
    }
    hk_buf_add(out, value.s + from, value.n - from);
    hk_buf_addc(out, '"');
}

void hk_prom_single(struct hk_buf *out, const char *name, const char *type, const char *help,
                    double v)
{
    hk_prom_head(out, name, type, help);
    hk_buf_addf(out, "%s ", name);
    hk_prom_number(out, v);
    hk_buf_addc(out, '\n');
}

void hk_prom_hist(struct hk_buf *out, const char *name, const char *labels, const struct hk_hist *h)
{
    const char *comma = *labels ? "," : "", *open = *labels ? "{" : "", *end = *labels ? "}" : "";
    uint64_t sum = 0;

    for (uint32_t k = 0; k < h->nbound; k++) {
        sum += h->n[k];
        hk_buf_addf(out, "%s_bucket{%s%sle=\"", name, labels, comma);
        hk_prom_number(out, h->bounds[k]);
        hk_buf_addf(out, "\"} %llu\n", (unsigned long long)sum);
    }
    sum += h->n[h->nbound];
    hk_buf_addf(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma,
                (unsigned long long)sum);
    hk_buf_addf(out, "%s_sum%s%s%s ", name, open, labels, end);
    hk_prom_number(out, h->sum);
    hk_buf_addf(out, "\n%s_count%s%s%s %llu\n", name, open, labels, end, (unsigned long long)sum);
}
