// SPDX-License-Identifier: Apache-2.0
// Counts the pods of a batch/v1 Job, each exactly once.
#include "controllers/work_job_priv.h"

static const struct hk_str none = {"", 0};

/* ---- lists of uids, sets of indexes ---- */

static const struct json *batch_job_count_uncounted_list(const struct bjob_pass *p, const char *key)
{
    return json_get(json_get(p->status, "uncountedTerminatedPods"), key);
}

/* Parses "0-2,5". */
static void read_indexes(struct hk_str text, bool *done, int64_t n)
{
    struct hk_str part, first;

    while (text.n > 0 && hk_str_cut(&text, ',', &part)) {
        int64_t from, to;

        if (!hk_str_cut(&part, '-', &first) || !hk_str_int(first, &from)) {
            return;
        }
        to = from;
        if (part.s && !hk_str_int(part, &to)) {
            return;
        }
        for (int64_t i = HK_MAX(from, 0); i <= to && i < n; i++) {
            done[i] = true;
        }
    }
}

static struct hk_str write_indexes(const bool *done, int64_t n, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    for (int64_t i = 0; i < n; i++) {
        const int64_t from = i;

        if (!done[i]) {
            continue;
        }
        while (i + 1 < n && done[i + 1]) {
            i++;
        }
        hk_buf_addf(&text, "%s%lld", text.len > 0 ? "," : "", (long long)from);
        if (i > from) {
            hk_buf_addf(&text, "%c%lld", i > from + 1 ? '-' : ',', (long long)i);
        }
    }
    return hk_arena_str(a, hk_buf_str(&text));
}

/* ---- pod states ---- */

static struct hk_str uid_of(const struct bjob_pass *p, uint32_t i)
{
    return mirror_uid(ctl_mirror(p->t->c, API_POD), p->pods.at[i].row);
}

static bool is_index(const struct bjob_pass *p, const struct pod_digest *d)
{
    return d->index >= 0 && d->index < p->completions;
}

/* A pod deleted before it ends counts as failed, unless the job itself deleted it: then it has no
 * finalizer any more. */
static enum bjob_pod_state batch_job_count_pod_state(struct bjob_pass *p, uint32_t i)
{
    const struct pod_digest *d = p->pods.at[i].d;
    struct bjob_failure f;

    if (d->phase == POD_SUCCEEDED) {
        return BJOB_POD_SUCCEEDED;
    }
    if (d->phase != POD_FAILED) {
        if (!d->terminating) {
            return BJOB_POD_ACTIVE;
        }
        return p->replaces_failed_only || !d->tracked ? BJOB_POD_ENDING : BJOB_POD_FAILED;
    }
    if (!d->tracked || (p->listed[i] & BJOB_LISTED_FAILED)) {
        return BJOB_POD_FAILED;
    }
    f = bjob_apply_failure_policy(p, &p->pods.at[i]);
    if (f.fatal.n > 0 && !p->verdict.reason) {
        p->verdict =
            (struct bjob_verdict){.failed = true, .reason = "PodFailurePolicy", .message = f.fatal};
    }
    return f.ignored ? BJOB_POD_IGNORED : BJOB_POD_FAILED;
}

/* The same limit as in Kubernetes, to keep the object small. */
static void batch_job_count_add_uncounted(struct bjob_pass *p, struct json *left, uint32_t i,
                                          enum bjob_listed how)
{
    enum { LISTED_MAX = 500 };

    if (left->len < LISTED_MAX && !(p->listed[i] & how)) {
        json_push(left, p->t->mem, json_make_str(uid_of(p, i)));
    }
}

static void count_pod(struct bjob_pass *p, uint32_t i)
{
    const struct pod_digest *d = p->pods.at[i].d;

    switch (p->states[i]) {
    case BJOB_POD_ACTIVE:
        p->active++;
        p->ready += d->serving;
        break;
    case BJOB_POD_SUCCEEDED:
        if (p->indexed && d->tracked && is_index(p, d)) {
            p->done[d->index] = true;
        } else if (!p->indexed && d->tracked) {
            p->succeeded++;
            batch_job_count_add_uncounted(p, &p->left_succeeded, i, BJOB_LISTED_SUCCEEDED);
        }
        break;
    case BJOB_POD_FAILED:
        p->failed += d->tracked;
        if (d->tracked) {
            batch_job_count_add_uncounted(p, &p->left_failed, i, BJOB_LISTED_FAILED);
        }
        break;
    default:
        break;
    }
    p->ending += d->terminating && d->phase != POD_SUCCEEDED && d->phase != POD_FAILED;
}

/* Indexes the tracked pods by a hash of their uids, because a job may have very many pods and both
 * lists of uids are looked up. */
static void index_tracked(const struct bjob_pass *p, struct hk_map *ret)
{
    for (uint32_t i = 0; i < p->pods.len; i++) {
        const struct hk_str uid = uid_of(p, i);

        if (p->pods.at[i].d->tracked) {
            hk_map_put(ret, hk_hash(uid.s, uid.n, 0) >> 1, i);
        }
    }
}

static uint32_t find_tracked(const struct bjob_pass *p, const struct hk_map *tracked,
                             struct hk_str uid)
{
    const uint32_t i = hk_map_get(tracked, hk_hash(uid.s, uid.n, 0) >> 1);

    return i != HK_NONE && hk_str_eq(uid_of(p, i), uid) ? i : HK_NONE;
}

/* A listed pod without its finalizer leaves the list and is counted. */
static struct json still_listed(struct bjob_pass *p, const char *key, enum bjob_listed how,
                                const struct hk_map *tracked, int64_t *counted)
{
    const struct json *old = batch_job_count_uncounted_list(p, key);
    struct json left = json_make_array();

    for (uint32_t i = 0; json_is(old, JSON_ARRAY) && i < old->len; i++) {
        const uint32_t pod = find_tracked(p, tracked, json_str(&old->items[i], none));

        if (pod != HK_NONE) {
            p->listed[pod] |= (uint8_t)how;
            json_push(&left, p->t->mem, old->items[i]);
        } else {
            ++*counted;
        }
    }
    return left;
}

void bjob_count(struct bjob_pass *p)
{
    HK_AUTO(hk_map_fini) struct hk_map tracked = {0};

    p->listed = hk_arena_zalloc(p->t->mem, p->pods.len + 1);
    index_tracked(p, &tracked);
    p->counted_succeeded = json_int(json_get(p->status, "succeeded"), 0);
    p->counted_failed = json_int(json_get(p->status, "failed"), 0);
    p->left_succeeded =
        still_listed(p, "succeeded", BJOB_LISTED_SUCCEEDED, &tracked, &p->counted_succeeded);
    p->left_failed = still_listed(p, "failed", BJOB_LISTED_FAILED, &tracked, &p->counted_failed);
    if (p->indexed) {
        p->done = hk_arena_zalloc(p->t->mem, (size_t)p->completions + 1);
        read_indexes(json_str(json_get(p->status, "completedIndexes"), none), p->done,
                     p->completions);
    }
    p->succeeded = p->counted_succeeded; /* then add each tracked pod once, listed or not */
    p->failed = p->counted_failed;
    p->states = hk_arena_zalloc(p->t->mem, p->pods.len + 1);
    for (uint32_t i = 0; i < p->pods.len; i++) {
        p->states[i] = (uint8_t)batch_job_count_pod_state(p, i);
        count_pod(p, i);
    }
    if (p->indexed) {
        p->succeeded = 0;
        for (int64_t i = 0; i < p->completions; i++) {
            p->succeeded += p->done[i];
        }
        p->counted_succeeded = p->succeeded;
    }
}

/* ---- finalizers ---- */

bool bjob_release_pod(struct pass *t, struct hk_str pod_name)
{
    struct hk_arena *a = t->mem;
    struct json names = json_make_array(), meta = json_make_object(), patch = json_make_object();

    json_push(&names, a, json_make_str(HK_STR(API_JOB_TRACKING)));
    json_set(&meta, a, "$deleteFromPrimitiveList/finalizers", names);
    json_set(&patch, a, "metadata", meta);
    return pass_patch(t, &(struct pass_patch){.kind = api_kind(API_POD),
                                              .ns = t->ns,
                                              .name = pod_name,
                                              .type = PORT_PATCH_STRATEGIC,
                                              .body = &patch});
}

/* Whether the stored status records how the pod ended. */
static bool is_recorded(const struct bjob_pass *p, const bool *done, uint32_t i)
{
    const struct pod_digest *d = p->pods.at[i].d;

    switch (p->states[i]) {
    case BJOB_POD_SUCCEEDED:
        return p->indexed ? !is_index(p, d) || done[d->index]
                          : (p->listed[i] & BJOB_LISTED_SUCCEEDED) != 0;
    case BJOB_POD_FAILED:
        return (p->listed[i] & BJOB_LISTED_FAILED) != 0;
    default:
        return p->states[i] == BJOB_POD_IGNORED;
    }
}

bool bjob_release(struct bjob_pass *p)
{
    bool *done = NULL;
    bool any = false;

    if (p->indexed) {
        done = hk_arena_zalloc(p->t->mem, (size_t)p->completions + 1);
        read_indexes(json_str(json_get(p->status, "completedIndexes"), none), done, p->completions);
    }
    for (uint32_t i = 0; i < p->pods.len; i++) {
        if (p->pods.at[i].d->tracked && is_recorded(p, done, i)) {
            bjob_release_pod(p->t, work_pod_name(p->t, &p->pods.at[i]));
            any = true;
        }
    }
    return any;
}

void bjob_put_counts(struct bjob_pass *p, struct json *status)
{
    struct hk_arena *a = p->t->mem;
    struct json uncounted = json_make_object();

    json_set_int_or_del(status, a, "active", p->active);
    json_set_int_or_del(status, a, "succeeded", p->counted_succeeded);
    json_set_int_or_del(status, a, "failed", p->counted_failed);
    json_set_int(status, a, "ready", p->ready);
    json_set_int(status, a, "terminating", p->ending);
    if (p->left_succeeded.len > 0) {
        json_set(&uncounted, a, "succeeded", p->left_succeeded);
    }
    if (p->left_failed.len > 0) {
        json_set(&uncounted, a, "failed", p->left_failed);
    }
    json_set(status, a, "uncountedTerminatedPods", uncounted);
    if (p->indexed) {
        json_set_str_or_del(status, a, "completedIndexes",
                            write_indexes(p->done, p->completions, a));
    }
}
