// SPDX-License-Identifier: Apache-2.0
// Rows of jobs, pods and flows, and the order of lists.
#include "cli/list.h"

#include "api/names.h"
#include "api/pod_summary.h"
#include "cli/progress.h"
#include "cli/show_priv.h"
#include "codec/timefmt.h"

#include <stdlib.h>

enum { WHY_SHORT = 60 };

static void add_age(const struct json *stamp, const struct list_how *how, struct grid *g)
{
    HK_AUTO(hk_buf_fini) struct hk_buf age = {0};

    show_age(stamp, how->now_ns, &age);
    grid_add(g, hk_buf_str(&age));
    grid_passing(g);
}

static void add_number(int64_t n, struct grid *g)
{
    grid_addf(g, "%lld", (long long)n);
}

static void add_phase(struct hk_str phase, struct grid *g)
{
    grid_add(g, phase);
    grid_hue(g, term_phase_hue(phase));
}

static void add_namespace(const struct api_object *o, const struct list_how *how, struct grid *g)
{
    if (how->namespaces) {
        grid_add(g, o->ns);
    }
}

/* ---- reasons ---- */

static struct hk_str unschedulable(const struct json *group)
{
    const struct json *list = json_list_at(group, "status.conditions");

    for (uint32_t i = list->len; i-- > 0;) {
        if (hk_str_is(json_str_field(&list->items[i], "type"), "Unschedulable") &&
            hk_str_is(json_str_field(&list->items[i], "status"), "True")) {
            return json_str_field(&list->items[i], "message");
        }
    }
    return HK_STR("");
}

void list_job_why(const struct api_object *job, const struct list_more *groups, struct hk_buf *out)
{
    const struct json *root = &job->root;
    const struct api_object *group;

    if (progress_is_over(job)) {
        if (!hk_str_is(progress_phase(job), "Completed")) {
            progress_write_failure(job, out);
        }
        return;
    }
    group = list_group_of(job, groups);
    if (!group) {
        return;
    }
    const bool waits =
        hk_str_is(progress_phase(job), "Pending") || json_int_at(root, "status.pending");
    if (waits && hk_str_is(json_str_at(&group->root, "status.phase"), "Pending")) {
        hk_buf_addf(out, "waits to be admitted to queue '%.*s'",
                    HK_FMT(json_str_at(&group->root, "spec.queue")));
    } else if (waits) {
        hk_buf_addstr(out, unschedulable(&group->root));
    }
}

/* ---- jobs ---- */

void list_job_heads(const struct list_how *how, struct grid *g)
{
    if (how->namespaces) {
        grid_head(g, "NAMESPACE", false);
    }
    grid_head(g, "NAME", false);
    grid_head(g, "QUEUE", false);
    grid_head(g, "PHASE", false);
    grid_head(g, "RUN", true);
    grid_head(g, "DONE", true);
    grid_head(g, "FAIL", true);
    grid_head(g, "ALL", true);
    if (how->wide) {
        grid_head(g, "MIN", true);
        grid_head(g, "RETRIES", true);
        grid_head(g, "PRIORITY", false);
        grid_head(g, "RAN", false);
    }
    grid_head(g, "AGE", false);
    grid_head(g, "WHY", false);
}

static void add_failed(int64_t n, struct grid *g)
{
    add_number(n, g);
    grid_hue(g, n > 0 ? TERM_BAD : TERM_PLAIN);
}

void list_job(const struct api_object *job, const struct list_set *all,
              const struct list_more *more, const struct list_how *how, struct grid *g)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};
    const struct json *root = &job->root;

    add_namespace(job, how, g);
    grid_add(g, job->name);
    grid_add(g, json_str_at(root, "spec.queue"));
    add_phase(progress_phase(job), g);
    add_number(json_int_at(root, "status.running"), g);
    add_number(json_int_at(root, "status.succeeded"), g);
    add_failed(json_int_at(root, "status.failed"), g);
    add_number(progress_total(job), g);
    if (how->wide) {
        add_number(json_int_at(root, "spec.minAvailable"), g);
        add_number(progress_retries(job), g);
        grid_add(g, json_str_at(root, "spec.priorityClassName"));
        grid_add(g, json_str_at(root, "status.runningDuration"));
    }
    add_age(json_at(root, "metadata.creationTimestamp"), how, g);
    list_job_why(job, more, &why);
    grid_add(g, hk_str_head(hk_buf_str(&why), how->wide ? why.len : WHY_SHORT));
    grid_hue(g, TERM_DIM);
}

/* ---- pods ---- */

void list_pod_heads(const struct list_how *how, struct grid *g)
{
    if (how->namespaces) {
        grid_head(g, "NAMESPACE", false);
    }
    grid_head(g, "NAME", false);
    grid_head(g, "JOB", false);
    grid_head(g, "READY", false);
    grid_head(g, "STATUS", false);
    grid_head(g, "EXIT", true);
    grid_head(g, "RESTARTS", false);
    if (how->wide) {
        grid_head(g, "IP", false);
        grid_head(g, "CPU", true);
        grid_head(g, "MEMORY", true);
    }
    grid_head(g, "NODE", false);
    grid_head(g, "AGE", false);
}

/* The exit code of the first container that has ended. */
static void add_exit(const struct json *pod, struct grid *g)
{
    const struct json *list = json_list_at(pod, "status.containerStatuses");

    for (uint32_t i = 0; i < list->len; i++) {
        const struct json *code = json_at(&list->items[i], "state.terminated.exitCode");
        if (code) {
            add_failed(json_int(code, 0), g);
            return;
        }
    }
    grid_add(g, HK_STR(""));
}

static void add_asked(const struct api_object *pod, const char *resource, struct grid *g)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const int64_t milli = list_pod_milli(&pod->root, resource);

    if (milli > 0) {
        list_write_amount(resource, milli, &text);
    }
    grid_add(g, hk_buf_str(&text));
}

void list_pod(const struct api_object *pod, const struct list_set *all,
              const struct list_more *more, const struct list_how *how, struct grid *g)
{
    HK_AUTO(api_pod_summary_fini) struct api_pod_summary s = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf restarts = {0};
    const struct json *root = &pod->root;

    api_pod_summarize(root, &s);
    api_pod_write_restarts(&s, how->now_ns, &restarts);
    add_namespace(pod, how, g);
    grid_add(g, pod->name);
    grid_add(g, show_label(root, "labels", API_KEY_JOB_NAME));
    grid_addf(g, "%u/%u", s.ready, s.total);
    grid_add(g, hk_buf_str(&s.status));
    grid_hue(g, term_phase_hue(hk_str_is(hk_buf_str(&s.status), "Error") ? HK_STR("Failed")
                                                                         : hk_buf_str(&s.status)));
    add_exit(root, g);
    grid_add(g, hk_buf_str(&restarts));
    if (how->wide) {
        grid_add(g, json_str_at(root, "status.podIP"));
        add_asked(pod, API_RES_CPU, g);
        add_asked(pod, API_RES_MEMORY, g);
    }
    grid_add(g, json_str_at(root, "spec.nodeName"));
    add_age(json_at(root, "metadata.creationTimestamp"), how, g);
}

/* ---- flows ---- */

void list_flow_heads(const struct list_how *how, struct grid *g)
{
    if (how->namespaces) {
        grid_head(g, "NAMESPACE", false);
    }
    grid_head(g, "NAME", false);
    grid_head(g, "PHASE", false);
    grid_head(g, "RUN", true);
    grid_head(g, "DONE", true);
    grid_head(g, "FAIL", true);
    grid_head(g, "ALL", true);
    grid_head(g, "AGE", false);
}

static int64_t count_names(const struct json *flow, const char *path)
{
    return json_list_at(flow, path)->len;
}

void list_flow(const struct api_object *flow, const struct list_set *all,
               const struct list_more *more, const struct list_how *how, struct grid *g)
{
    const struct json *root = &flow->root;

    add_namespace(flow, how, g);
    grid_add(g, flow->name);
    add_phase(json_str_at(root, "status.state.phase"), g);
    add_number(count_names(root, "status.runningJobs"), g);
    add_number(count_names(root, "status.completedJobs"), g);
    add_failed(count_names(root, "status.failedJobs") + count_names(root, "status.terminatedJobs"),
               g);
    add_number(count_names(root, "spec.flows"), g);
    add_age(json_at(root, "metadata.creationTimestamp"), how, g);
}

/* ---- order ---- */

static int list_compare_names(const void *a, const void *b)
{
    const struct api_object *x = *(struct api_object *const *)a;
    const struct api_object *y = *(struct api_object *const *)b;
    const int ns = hk_str_cmp(x->ns, y->ns);

    return ns != 0 ? ns : hk_str_cmp(x->name, y->name);
}

/* Timestamps of the API sort as text. */
static int list_compare_creation(const void *a, const void *b)
{
    const struct api_object *x = *(struct api_object *const *)a;
    const struct api_object *y = *(struct api_object *const *)b;
    const int c = hk_str_cmp(json_str_at(&x->root, "metadata.creationTimestamp"),
                             json_str_at(&y->root, "metadata.creationTimestamp"));

    return c != 0 ? c : list_compare_names(a, b);
}

static int64_t list_task_index(const struct json *pod)
{
    int64_t n = -1;

    return hk_str_int(show_label(pod, "labels", API_KEY_TASK_INDEX), &n) ? n : -1;
}

static int by_task(const void *a, const void *b)
{
    static const char *const keys[] = {API_KEY_JOB_NAME, API_KEY_TASK_SPEC};
    const struct api_object *x = *(struct api_object *const *)a;
    const struct api_object *y = *(struct api_object *const *)b;
    int c = hk_str_cmp(x->ns, y->ns);

    for (size_t k = 0; c == 0 && k < HK_LEN(keys); k++) {
        c = hk_str_cmp(show_label(&x->root, "labels", keys[k]),
                       show_label(&y->root, "labels", keys[k]));
    }
    const int64_t i = list_task_index(&x->root), j = list_task_index(&y->root);
    if (c == 0 && i != j) {
        return i < j ? -1 : 1;
    }
    return c != 0 ? c : list_compare_names(a, b);
}

static struct hk_str list_queue_parent(const struct api_object *queue)
{
    const struct hk_str parent = json_str_at(&queue->root, "spec.parent");

    return parent.n > 0 || hk_str_is(queue->name, API_QUEUE_NAME_ROOT)
               ? parent
               : HK_STR(API_QUEUE_NAME_ROOT);
}

static bool has_parent(const struct api_object *q, struct api_object *const *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (hk_str_eq(at[i]->name, list_queue_parent(q))) {
            return true;
        }
    }
    return false;
}

/* Appends the children of `parent`, each followed by its own. Used entries become NULL: cycles
 * end. */
static void take_children(struct api_object **from, uint32_t n, struct hk_str parent,
                          struct api_object **to, uint32_t *len)
{
    for (uint32_t i = 0; i < n; i++) {
        struct api_object *q = from[i];
        if (q && hk_str_eq(list_queue_parent(q), parent)) {
            from[i] = NULL;
            to[(*len)++] = q;
            take_children(from, n, q->name, to, len);
        }
    }
}

static void sort_queues(struct api_object **at, uint32_t n)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct api_object **rest = hk_arena_array(&mem, n, sizeof(struct api_object *));
    struct api_object **all = hk_arena_array(&mem, n, sizeof(struct api_object *));
    uint32_t len = 0;

    memcpy(rest, at, n * sizeof(struct api_object *));
    memcpy(all, at, n * sizeof(struct api_object *));
    for (uint32_t i = 0; i < n; i++) {
        struct api_object *q = rest[i];
        if (q && !has_parent(q, all, n)) {
            rest[i] = NULL;
            at[len++] = q;
            take_children(rest, n, q->name, at, &len);
        }
    }
    for (uint32_t i = 0; i < n; i++) { /* members of a cycle */
        if (rest[i]) {
            at[len++] = rest[i];
        }
    }
}

void list_sort(enum api_kind_id kind, struct api_object **at, uint32_t n)
{
    int (*order)(const void *, const void *) = kind == API_POD ? by_task : list_compare_names;

    if (n < 2) {
        return;
    }
    if (kind == API_JOB || kind == API_JOBFLOW) {
        order = list_compare_creation;
    }
    qsort(at, n, sizeof(struct api_object *), order);
    if (kind == API_QUEUE) {
        sort_queues(at, n);
    }
}
