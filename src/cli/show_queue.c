// SPDX-License-Identifier: Apache-2.0
// vcctl output for queues: tables. Volcano no longer keeps counts in the status of queues: the
// counts come from the given pod groups, and the short table shows what is left in the status.
#include "cli/show_priv.h"

enum { NAME_WIDTH = 25, WIDTH = 8 };

struct column {
    const char *head;  /* also the phase of the counted groups */
    const char *field; /* in the status */
};

static const struct column counts[] = {
    {"Inqueue", "status.inqueue"}, {"Pending", "status.pending"}, {"Running", "status.running"},
    {"Unknown", "status.unknown"}, {"Completed", NULL},
};

static void show_queue_write_head(bool brief, struct hk_buf *out)
{
    show_cell(HK_STR("Name"), NAME_WIDTH, out);
    show_cell(HK_STR("Weight"), WIDTH, out);
    show_cell(HK_STR("State"), WIDTH, out);
    if (!brief) {
        show_cell(HK_STR("Parent"), WIDTH, out);
    }
    for (size_t k = 0; k < HK_LEN(counts) - brief; k++) {
        show_cell(hk_str(counts[k].head), WIDTH, out);
    }
    hk_buf_addc(out, '\n');
}

static void write_begin(const struct api_object *queue, struct hk_buf *out)
{
    show_cell(queue->name, NAME_WIDTH, out);
    show_number(json_int_at(&queue->root, "spec.weight"), WIDTH, out);
    show_cell(json_str_at(&queue->root, "status.state"), WIDTH, out);
}

static int64_t show_queue_count_groups(struct hk_str queue, const char *phase,
                                       struct api_object *const *groups, uint32_t n)
{
    int64_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        count += hk_str_eq(json_str_at(&groups[i]->root, "spec.queue"), queue) &&
                 hk_str_is(json_str_at(&groups[i]->root, "status.phase"), phase);
    }
    return count;
}

void show_queues(struct api_object *const *queues, uint32_t n, struct api_object *const *groups,
                 uint32_t ngroups, struct hk_buf *out)
{
    if (n == 0) {
        hk_buf_adds(out, SHOW_NOTHING);
        return;
    }
    show_queue_write_head(false, out);
    for (uint32_t i = 0; i < n; i++) {
        write_begin(queues[i], out);
        show_cell(json_str_at(&queues[i]->root, "spec.parent"), WIDTH, out);
        for (size_t k = 0; k < HK_LEN(counts); k++) {
            show_number(show_queue_count_groups(queues[i]->name, counts[k].head, groups, ngroups),
                        WIDTH, out);
        }
        hk_buf_addc(out, '\n');
    }
}

void show_queues_brief(struct api_object *const *queues, uint32_t n, struct hk_buf *out)
{
    if (n == 0) {
        hk_buf_adds(out, SHOW_NOTHING);
        return;
    }
    show_queue_write_head(true, out);
    for (uint32_t i = 0; i < n; i++) {
        write_begin(queues[i], out);
        for (size_t k = 0; k < HK_LEN(counts) - 1; k++) {
            show_number(json_int_at(&queues[i]->root, counts[k].field), WIDTH, out);
        }
        hk_buf_addc(out, '\n');
    }
}
