// SPDX-License-Identifier: Apache-2.0
// Detects cycles in a directed graph: removes nodes without incoming edges one by one; if any
// remain, there is a cycle. Linear in nodes and edges.
#include "admission/vc_priv.h"

void vc_dag_fini(struct vc_dag *g)
{
    hk_intern_fini(&g->names);
    hk_vec_fini(&g->edges);
}

static int by_from(const void *a, const void *b)
{
    const struct vc_dag_edge *x = a;
    const struct vc_dag_edge *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

bool vc_dag_is_acyclic(const struct vc_dag *g)
{
    const uint32_t n = g->names.len + 1;
    const uint32_t m = g->edges.len;
    HK_AUTO(hk_freep) uint32_t *degree = hk_zalloc_array(n, sizeof(*degree));
    HK_AUTO(hk_freep) uint32_t *first = hk_zalloc_array(n + 1, sizeof(*first));
    HK_AUTO(hk_freep) uint32_t *ready = hk_zalloc_array(n, sizeof(*ready));
    uint32_t nready = 0;

    if (m == 0) {
        return true;
    }
    qsort(g->edges.at, m, sizeof(*g->edges.at), by_from);
    for (uint32_t i = 0; i < m; i++) {
        degree[g->edges.at[i].to]++;
        first[g->edges.at[i].from + 1]++;
    }
    for (uint32_t i = 0; i < n; i++) {
        first[i + 1] += first[i];
        if (degree[i] == 0) {
            ready[nready++] = i;
        }
    }
    for (uint32_t done = 0; done < nready; done++) {
        for (uint32_t e = first[ready[done]]; e < first[ready[done] + 1]; e++) {
            const uint32_t to = g->edges.at[e].to;
            if (--degree[to] == 0) {
                ready[nready++] = to;
            }
        }
    }
    return nready == n;
}
