// SPDX-License-Identifier: Apache-2.0
// status.attempts: how the pods of a job ended, readable after the pods are gone. The list is
// bounded: successes are dropped before failures, the oldest first. A pod being deleted is listed
// before it is gone, so that no crash loses it; its entry gets an endTime only then.
#include "controllers/job_priv.h"

#define ATTEMPTS_MAX 64u
#define MESSAGE_MAX 256u

static const struct hk_str none = {"", 0};

void job_attempt_fini(struct job_attempt *at)
{
    hk_free(at->task);
    hk_free(at->pod);
    hk_free(at->uid);
    hk_free(at->node);
    hk_free(at->reason);
    hk_free(at->message);
}

static const char *job_record_end_reason(const struct pod_digest *d, bool stopped)
{
    if (d->evicted && strcmp(d->reason, "Error") == 0) {
        return "Preempted"; /* SIGTERM ended the container: its exit code says nothing */
    }
    if (d->reason[0]) {
        return d->reason;
    }
    if (pod_has_ended(d)) {
        return d->phase == POD_SUCCEEDED ? "Completed" : "Error";
    }
    return d->evicted ? "Preempted" : stopped ? "Stopped" : "Deleted";
}

static char *message_of(const struct pod_digest *d)
{
    const struct hk_str head = hk_str_head(hk_str(d->message), MESSAGE_MAX);

    return hk_strndup(head.s, head.n);
}

/* stopped: the controller ended the pod. */
static struct job_attempt attempt_of(const struct pod_digest *d, struct hk_str pod,
                                     struct hk_str uid, bool stopped, int64_t end_ns)
{
    return (struct job_attempt){.task = hk_strdup(d->task),
                                .pod = hk_strndup(pod.s, pod.n),
                                .uid = hk_strndup(uid.s, uid.n),
                                .node = hk_strdup(d->node),
                                .reason = hk_strdup(job_record_end_reason(d, stopped)),
                                .message = message_of(d),
                                .index = d->index,
                                .retry = d->retry,
                                .version = d->version,
                                .exit_code = d->exit_code,
                                .start_ns = d->start_ns,
                                .end_ns = end_ns,
                                .succeeded = d->phase == POD_SUCCEEDED};
}

/* A pod that never got a node is not an attempt. */
void job_record_pod(struct job_mem *mem, const struct mirror_change *ch, int64_t now_ns)
{
    const struct pod_digest *old = ch->old, *now = ch->now;
    const bool ends = now ? pod_has_ended(now) && (!old || !pod_has_ended(old))
                          : !pod_has_ended(old) && old->node[0] != '\0';

    const struct pod_digest *d = now ? now : old;

    if (ends && mem->ended.len < 4 * ATTEMPTS_MAX) {
        hk_vec_push(&mem->ended,
                    attempt_of(d, mirror_name(ch->mirror, ch->row), mirror_uid(ch->mirror, ch->row),
                               d->out_of_sync, d->end_ns ? d->end_ns : now_ns));
    }
}

/* ---- the list ---- */

static void job_record_copy_filled(struct json *obj, struct hk_arena *a, const char *key,
                                   const char *s)
{
    if (s[0]) {
        json_set_str_copy(obj, a, key, hk_str(s));
    }
}

static void job_record_set_time_if_known(struct json *obj, struct hk_arena *a, const char *key,
                                         int64_t ns)
{
    if (ns != 0) {
        json_set_time(obj, a, key, ns);
    }
}

static struct json attempt_json(const struct job_attempt *at, struct hk_arena *a)
{
    struct json v = json_make_object();

    job_record_copy_filled(&v, a, "task", at->task);
    json_set_int(&v, a, "index", at->index);
    json_set_int(&v, a, "retry", at->retry);
    json_set_int(&v, a, "version", at->version);
    job_record_copy_filled(&v, a, "pod", at->pod);
    job_record_copy_filled(&v, a, "uid", at->uid);
    job_record_copy_filled(&v, a, "node", at->node);
    job_record_set_time_if_known(&v, a, "startTime", at->start_ns);
    job_record_set_time_if_known(&v, a, "endTime", at->end_ns);
    json_set_int(&v, a, "exitCode", at->exit_code);
    job_record_copy_filled(&v, a, "reason", at->reason);
    job_record_copy_filled(&v, a, "message", at->message);
    return v;
}

static struct json *find_uid(const struct json *list, struct hk_str uid)
{
    for (uint32_t i = 0; i < list->len; i++) {
        if (hk_str_eq(json_str(json_get(&list->items[i], "uid"), none), uid)) {
            return &list->items[i];
        }
    }
    return NULL;
}

static bool job_record_attempt_is_over(const struct json *attempt)
{
    return json_get(attempt, "endTime") != NULL;
}

static bool is_success(const struct json *v)
{
    return json_int(json_get(v, "exitCode"), 0) == 0 &&
           hk_str_is(json_str(json_get(v, "reason"), none), "Completed");
}

static void drop_one(struct json *list)
{
    uint32_t at = 0;

    while (at < list->len && !is_success(&list->items[at])) {
        at++;
    }
    at = at == list->len ? 0 : at;
    memmove(&list->items[at], &list->items[at + 1], (list->len - at - 1) * sizeof(list->items[0]));
    list->len--;
}

static void job_record_add_attempt(struct json *list, struct hk_arena *a,
                                   const struct job_attempt *at)
{
    struct json *have = find_uid(list, hk_str(at->uid));

    if (have && (job_record_attempt_is_over(have) || at->end_ns == 0)) {
        return;
    }
    if (have) {
        *have = attempt_json(at, a);
        return;
    }
    json_push(list, a, attempt_json(at, a));
    if (list->len > ATTEMPTS_MAX) {
        drop_one(list);
    }
}

/* Successes never displace entries: a job with many pods would be rewritten for each of them. */
static bool job_record_has_room(const struct json *list, bool succeeded)
{
    return !succeeded || list->len < ATTEMPTS_MAX;
}

/* The list in the current status. */
static struct json job_record_status_attempts(const struct job_pass *p)
{
    const struct json *list = json_at(p->root, "status.attempts");

    return json_is(list, JSON_ARRAY) ? *list : json_make_array();
}

bool job_record_has(const struct job_pass *p, uint32_t row)
{
    const struct json list = job_record_status_attempts(p);
    const struct hk_str uid = mirror_uid(p->pods, row);

    return job_pod(p, row)->node[0] == '\0' || list.len >= ATTEMPTS_MAX || find_uid(&list, uid);
}

void job_record_trim(struct job_pass *p)
{
    const struct json list = job_record_status_attempts(p);

    for (uint32_t i = p->mem->ended.len; i-- > 0;) {
        struct job_attempt *at = &p->mem->ended.at[i];

        const struct json *have = find_uid(&list, hk_str(at->uid));

        if (have ? job_record_attempt_is_over(have) : !job_record_has_room(&list, at->succeeded)) {
            job_attempt_fini(at);
            memmove(at, at + 1, (p->mem->ended.len - i - 1) * sizeof(*at));
            p->mem->ended.len--;
        }
    }
}

/* Adds pods that ended while no controller ran, and those being deleted. A full list already has
 * them, or more important ones. */
static void add_from_mirror(const struct job_pass *p, struct json *list)
{
    for (uint32_t r = job_first_pod(p); r != HK_NONE && list->len < ATTEMPTS_MAX;
         r = job_next_pod(p, r)) {
        const struct pod_digest *d = job_pod(p, r);
        const bool stopped = d->out_of_sync || job_pod_must_go(p, r);
        struct job_attempt at;

        if (pod_has_ended(d) || (d->node[0] && (d->terminating || stopped))) {
            at = attempt_of(d, mirror_name(p->pods, r), mirror_uid(p->pods, r), stopped,
                            d->end_ns || !pod_has_ended(d) ? d->end_ns : p->t->now_ns);
            job_record_add_attempt(list, p->t->mem, &at);
            job_attempt_fini(&at);
        }
    }
}

bool job_record_is_lost(const struct job_pass *p, const struct json *attempt)
{
    const struct hk_str pod = json_str(json_get(attempt, "pod"), none);
    uint32_t row;

    if (job_record_attempt_is_over(attempt)) {
        return false;
    }
    row = mirror_find(p->pods, p->job.meta.ns, pod);
    return row == HK_NONE ||
           !hk_str_eq(mirror_uid(p->pods, row), json_str(json_get(attempt, "uid"), none));
}

static void close_lost(const struct job_pass *p, struct json *list)
{
    for (uint32_t i = 0; i < list->len; i++) {
        if (job_record_is_lost(p, &list->items[i])) {
            job_record_set_time_if_known(&list->items[i], p->t->mem, "endTime", p->t->now_ns);
        }
    }
}

struct json job_record_merge(const struct job_pass *p, const struct json *attempts)
{
    struct hk_arena *a = p->t->mem;
    struct json list = json_clone_as(attempts, JSON_ARRAY, a);

    for (uint32_t i = 0; i < p->mem->ended.len; i++) {
        if (job_record_has_room(&list, p->mem->ended.at[i].succeeded)) {
            job_record_add_attempt(&list, a, &p->mem->ended.at[i]);
        }
    }
    add_from_mirror(p, &list);
    close_lost(p, &list);
    return list;
}
