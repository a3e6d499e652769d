// SPDX-License-Identifier: Apache-2.0
// Reasons and their messages. The messages are an interface: people grep for them.
#include "scheduler/fit.h"

static const struct {
    const char *text;
    enum verdict verdict;
} reasons[REASON_N] = {
    [REASON_NONE] = {"", FIT},
    [REASON_INSUFFICIENT] = {"Insufficient ", UNFIT},
    [REASON_POD_NUMBER] = {"node(s) pod number exceeded", UNFIT},
    [REASON_NODE_GONE] = {"node info not found", NEVER},
    [REASON_UNSCHEDULABLE] = {"node(s) were unschedulable", NEVER},
    [REASON_NODE_AFFINITY] = {"node(s) didn't match Pod's node affinity/selector", NEVER},
    [REASON_TAINT] = {"node(s) had untolerated taint(s)", NEVER},
    [REASON_PORTS] = {"node(s) didn't have free ports for the requested pod ports", UNFIT},
    [REASON_POD_AFFINITY] = {"node(s) didn't match pod affinity rules", NEVER},
    [REASON_POD_ANTI_AFFINITY] = {"node(s) didn't match pod anti-affinity rules", UNFIT},
    [REASON_EXISTING_ANTI_AFFINITY] = {"node(s) didn't satisfy existing pods anti-affinity rules",
                                       UNFIT},
    [REASON_SPREAD] = {"node(s) didn't match pod topology spread constraints", UNFIT},
    [REASON_SPREAD_LABEL] =
        {"node(s) didn't match pod topology spread constraints (missing required label)", NEVER},
    [REASON_VOLUME_COUNT] = {"node(s) exceed max volume count", UNFIT},
    [REASON_VOLUME_ZONE] = {"node(s) had no available volume zone", NEVER},
    [REASON_VOLUME_AFFINITY] = {"node(s) didn't match PersistentVolume's node affinity", NEVER},
    [REASON_VOLUME_BIND] = {"node(s) didn't find available persistent volumes to bind", NEVER},
    [REASON_VOLUME_CAPACITY] = {"node(s) did not have enough free storage", NEVER},
    [REASON_VOLUME_GONE] =
        {"node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", NEVER},
    [REASON_SHARD] = {"node isn't in scheduler node shard", NEVER},
    [REASON_TEXT] = {"", NEVER},
};

enum verdict reason_verdict(enum reason_code c)
{
    return reasons[c].verdict;
}

void reason_write(const struct model *m, struct reason r, struct hk_buf *out)
{
    hk_buf_adds(out, reasons[r.code].text);
    if (r.code == REASON_INSUFFICIENT) {
        hk_buf_addstr(out, m->dims.text[r.arg]);
    } else if (r.code == REASON_TEXT) {
        hk_buf_addstr(out, model_str(m, r.arg));
    }
}

void fit_log_add(struct fit_log *log, struct reason why)
{
    if (!log) {
        return;
    }
    for (uint32_t k = 0; k < log->n; k++) {
        if (log->at[k].why.code == why.code && log->at[k].why.arg == why.arg) {
            log->at[k].count++;
            return;
        }
    }
    if (log->n == log->cap) {
        const uint32_t cap = log->cap ? log->cap * 2 : 8;
        struct reason_count *at = hk_arena_alloc(log->mem, cap * sizeof(*at));
        for (uint32_t k = 0; k < log->n; k++) {
            at[k] = log->at[k];
        }
        log->at = at;
        log->cap = cap;
    }
    log->at[log->n++] = (struct reason_count){.why = why, .count = 1};
}

void fit_log_node(struct fit_log *log, node_id n, enum verdict v)
{
    if (!log) {
        return;
    }
    log->nnodes++;
    if (v == NEVER && n.i / 64 < log->never_words) {
        log->never[n.i / 64] |= 1ULL << (n.i % 64);
    }
}

static int text_cmp(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void fit_log_write(const struct model *m, const struct fit_log *log, struct hk_buf *out)
{
    struct hk_arena mem = {0};
    char **text;

    if (!id_none(log->hyper)) {
        hk_buf_addf(out,
                    "In hyperNode %.*s: ", HK_FMT(model_str(m, m->hypers.at[log->hyper.i].name)));
    }
    if (log->base) {
        hk_buf_adds(out, log->base);
    } else {
        hk_buf_addf(out, "0/%u nodes are unavailable", log->nnodes);
    }
    if (log->n == 0) {
        return;
    }
    text = hk_arena_array(&mem, log->n, sizeof(*text));
    for (uint32_t k = 0; k < log->n; k++) {
        HK_AUTO(hk_buf_fini) struct hk_buf one = {0};
        hk_buf_addf(&one, "%u ", log->at[k].count);
        reason_write(m, log->at[k].why, &one);
        text[k] = hk_arena_strndup(&mem, one.data, one.len);
    }
    qsort(text, log->n, sizeof(*text), text_cmp);
    for (uint32_t k = 0; k < log->n; k++) {
        hk_buf_addf(out, "%s%s", k ? ", " : ": ", text[k]);
    }
    hk_buf_addc(out, '.');
    hk_arena_fini(&mem);
}
