// SPDX-License-Identifier: Apache-2.0
// vcctl output for pods: the table.
#include "api/pod_summary.h"
#include "cli/show_priv.h"

#include <stdlib.h>

static int compare_pods(const void *a, const void *b)
{
    const struct api_object *x = *(struct api_object *const *)a;
    const struct api_object *y = *(struct api_object *const *)b;
    const int ns = hk_str_cmp(x->ns, y->ns);

    return ns != 0 ? ns : hk_str_cmp(x->name, y->name);
}

static void add_pod(struct show_table *t, const struct api_object *pod, int64_t now_ns)
{
    HK_AUTO(api_pod_summary_fini) struct api_pod_summary s = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    api_pod_summarize(&pod->root, &s);
    if (t->ncolumns == SHOW_MAX_COLUMNS) {
        show_table_add(t, pod->ns);
    }
    show_table_add(t, pod->name);
    hk_buf_addf(&text, "%u/%u", s.ready, s.total);
    show_table_add(t, hk_buf_str(&text));
    show_table_add(t, hk_buf_str(&s.status));
    hk_buf_clear(&text);
    api_pod_write_restarts(&s, now_ns, &text);
    show_table_add(t, hk_buf_str(&text));
    hk_buf_clear(&text);
    show_age(json_at(&pod->root, "metadata.creationTimestamp"), now_ns, &text);
    show_table_add(t, hk_buf_str(&text));
}

void show_pods(struct api_object *const *pods, uint32_t n, bool namespaces, int64_t now_ns,
               struct hk_buf *out)
{
    static const char *const heads[SHOW_MAX_COLUMNS] = {"Namespace", "Name",    "Ready",
                                                        "Status",    "Restart", "Age"};
    HK_AUTO(show_table_fini) struct show_table t = {.head_room = 2, .room = 8};
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};

    if (n == 0) {
        hk_buf_adds(out, SHOW_NOTHING);
        return;
    }
    for (uint32_t k = namespaces ? 0 : 1; k < SHOW_MAX_COLUMNS; k++) {
        t.heads[t.ncolumns++] = heads[k];
    }
    struct api_object **by_name = hk_arena_array(&mem, n, sizeof(struct api_object *));
    memcpy(by_name, pods, n * sizeof(struct api_object *));
    qsort(by_name, n, sizeof(struct api_object *), compare_pods);
    for (uint32_t i = 0; i < n; i++) {
        add_pod(&t, by_name[i], now_ns);
    }
    show_table_write(&t, out);
}
