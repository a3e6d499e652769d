// SPDX-License-Identifier: Apache-2.0
// hekla logs: selects pods and containers, and the output format.
#include "cmd/logs.h"

#include "api/names.h"
#include "cli/progress.h"
#include "client/target.h"
#include "codec/timefmt.h"
#include "net/node_api.h"

#include <unistd.h>

/* ---- which logs ---- */

static struct hk_str logs_label(const struct api_object *pod, const char *key)
{
    const struct json *meta = json_get(&pod->root, "metadata");
    const struct hk_str value = json_str(json_get(json_get(meta, "labels"), key), HK_STR(""));

    return value.n > 0 ? value : json_str(json_get(json_get(meta, "annotations"), key), HK_STR(""));
}

static int64_t logs_index_of(const struct api_object *pod)
{
    int64_t n = -1;

    return hk_str_int(logs_label(pod, API_KEY_TASK_INDEX), &n) ? n : -1;
}

struct logs_target logs_of_job(struct user *u, struct hk_str name)
{
    return (struct logs_target){
        .ns = hk_str(u->ns),
        .job = hk_arena_str(&u->mem, name),
        .pod = HK_STR(""),
        .label = hk_arena_printf(&u->mem, API_KEY_JOB_NAME "=%.*s", HK_FMT(name))};
}

bool logs_wants(const struct logs_opts *o, const struct api_object *pod)
{
    return (!o->task || hk_str_is(logs_label(pod, API_KEY_TASK_SPEC), o->task)) &&
           (o->index < 0 || logs_index_of(pod) == o->index);
}

static int logs_by_task(const void *a, const void *b)
{
    const struct api_object *x = *(struct api_object *const *)a;
    const struct api_object *y = *(struct api_object *const *)b;
    const int task = hk_str_cmp(logs_label(x, API_KEY_TASK_SPEC), logs_label(y, API_KEY_TASK_SPEC));
    const int64_t i = logs_index_of(x), j = logs_index_of(y);

    if (task != 0) {
        return task;
    }
    return i != j ? (i < j ? -1 : 1) : hk_str_cmp(x->name, y->name);
}

void logs_sort(struct api_object **pods, uint32_t n)
{
    if (n > 1) {
        qsort(pods, n, sizeof(*pods), logs_by_task);
    }
}

static struct hk_str name_at(const struct json *list, uint32_t i)
{
    return json_str(json_get(json_item(list, i), "name"), HK_STR(""));
}

struct hk_str logs_container(const struct logs_opts *o, const struct api_object *pod)
{
    static const char *const lists[] = {"spec.containers", "spec.initContainers"};

    if (!o->container) {
        return name_at(json_at(&pod->root, lists[0]), 0);
    }
    for (size_t k = 0; k < HK_LEN(lists); k++) {
        const struct json *list = json_at(&pod->root, lists[k]);
        for (uint32_t i = 0; json_item(list, i); i++) {
            if (hk_str_is(name_at(list, i), o->container)) {
                return name_at(list, i);
            }
        }
    }
    return HK_STR("");
}

static int64_t starts_in(const struct json *statuses, struct hk_str container)
{
    for (uint32_t i = 0; json_item(statuses, i); i++) {
        const struct json *s = json_item(statuses, i);
        const bool begun = json_at(s, "state.running") || json_at(s, "state.terminated");
        const int64_t n = json_int(json_get(s, "restartCount"), 0);

        if (hk_str_eq(name_at(statuses, i), container) && (begun || json_get(s, "lastState"))) {
            return begun ? n : n - 1;
        }
    }
    return -1;
}

int64_t logs_starts(const struct api_object *pod, struct hk_str container)
{
    const int64_t n = starts_in(json_at(&pod->root, "status.containerStatuses"), container);

    return n >= 0 ? n : starts_in(json_at(&pod->root, "status.initContainerStatuses"), container);
}

void logs_path(const struct logs_opts *o, struct hk_str ns, struct hk_str pod,
               struct hk_str container, bool follow, int64_t since_ns, struct hk_buf *out)
{
    hk_buf_addf(out, "/api/v1/namespaces/%.*s/pods/%.*s/log?timestamps=true&container=%.*s",
                HK_FMT(ns), HK_FMT(pod), HK_FMT(container));
    hk_buf_adds(out, follow ? "&follow=true" : "");
    hk_buf_adds(out, o->previous ? "&previous=true" : "");
    if (since_ns > 0) {
        HK_AUTO(hk_buf_fini) struct hk_buf stamp = {0};
        time_write(since_ns, &stamp);
        hk_buf_adds(out, "&sinceTime=");
        target_escape(hk_buf_str(&stamp), out);
        return;
    }
    if (o->since_s >= 0) {
        hk_buf_addf(out, "&sinceSeconds=%lld", (long long)o->since_s);
    }
    if (o->tail >= 0) {
        hk_buf_addf(out, "&tailLines=%lld", (long long)o->tail);
    }
}

bool logs_tell_loss(struct hk_str pod, struct hk_str line)
{
    HK_AUTO(hk_freep) char *text = hk_strndup(line.s, line.n);
    HK_AUTO(hk_buf_fini) struct hk_buf same = {0};
    long long lines, bytes;

    if (sscanf(text, NODE_LOG_REMOVED, &lines, &bytes) != 2) {
        return false;
    }
    hk_buf_addf(&same, NODE_LOG_REMOVED, lines, bytes);
    if (strcmp(text, same.data) != 0) {
        return false;
    }
    verb_complain("pod '%.*s': %s", HK_FMT(pod), text + strlen("hekla: "));
    return true;
}

/* ---- the verb ---- */

struct logs_args {
    struct user_opts user;
    struct logs_opts logs;
    const char *name;
    int64_t since_ns; /* negative: all */
    bool follow, no_prefix;
};

static const struct option_row options[] = {
    ROW_FLAG('f', "follow", struct logs_args, follow,
             "Follow the output, also of pods that start later, until the job has ended."),
    ROW_TEXT('t', "task", "TASK", struct logs_args, logs.task, NULL, "Only the pods of this task."),
    ROW_INT('i', "index", "N", struct logs_args, logs.index, 0, INT64_MAX, NULL,
            "Only the pods of this index."),
    ROW_TEXT_OR('c', "container", "CONTAINER", struct logs_args, logs.container,
                "the first one of the pod", "The container."),
    ROW_INT(0, "tail", "N", struct logs_args, logs.tail, 0, INT64_MAX, NULL,
            "Only the last N lines of each pod."),
    ROW_DURATION(0, "since", struct logs_args, since_ns, 0, NULL,
                 "Only output that is not older than this time, such as 90s or 1h30m."),
    ROW_FLAG('p', "previous", struct logs_args, logs.previous,
             "The output of the container before its last restart."),
    ROW_FLAG(0, "timestamps", struct logs_args, logs.stamps, "Show when each line was written."),
    ROW_FLAG(0, "no-prefix", struct logs_args, no_prefix,
             "Do not show the pod in front of each line."),
    ROW_INCLUDE(struct logs_args, user, user_namespace_options),
    ROW_INCLUDE(struct logs_args, user, user_server_options),
    ROW_ARGUMENT("JOB|POD", struct logs_args, name),
    ROW_END,
};

/* Finds a job with that name, else a pod. */
static int logs_find(struct user *u, const char *name, struct logs_target *ret, bool *ret_many,
                     struct hk_err *err)
{
    HK_AUTO(answer_fini) struct answer job = {0}, pod = {0};
    const struct port_request req = {
        .verb = PORT_GET, .kind = api_kind(API_POD), .ns = hk_str(u->ns), .name = hk_str(name)};
    struct hk_err none = {0};
    int rc = user_get(u, API_JOB, name, &job, err);

    if (rc == 0) {
        *ret = logs_of_job(u, hk_str(name));
        *ret_many = progress_total(job.objects.at[0]) > 1;
        return 0;
    }
    if (rc != -HK_ENOTFOUND || ask(&u->ask, &req, &pod, &none) < 0) {
        return rc;
    }
    *ret = (struct logs_target){.ns = hk_str(u->ns),
                                .job = HK_STR(""),
                                .pod = hk_str(name),
                                .field = hk_arena_printf(&u->mem, "metadata.name=%s", name)};
    *ret_many = false;
    return 0;
}

static int logs_show(struct user *u, const struct verb *v, struct logs_args *a, struct hk_err *err)
{
    struct logs_target t = {0};
    bool many = false;
    int rc = logs_find(u, a->name, &t, &many, err);

    if (rc < 0) {
        return rc;
    }
    a->logs.how = (struct logline_how){
        .term = term_of(STDOUT_FILENO), .prefix = many && !a->no_prefix, .stamps = a->logs.stamps};
    if (!a->follow) {
        return logs_merge(u, v, &a->logs, &t, err);
    }
    return logs_follow(u, &a->logs, &t, NULL, err);
}

static int logs_run(const struct verb *v, int argc, char **argv)
{
    struct logs_args a = {.logs = LOGS_OPTS_DEFAULT, .since_ns = -1};
    struct user u;
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &a);

    if (rc != 0) {
        return user_parsed(rc);
    }
    if (!a.name) {
        verb_complain("logs: the name of a JOB or a POD is missing (see 'hekla jobs')");
        return USER_TROUBLE;
    }
    a.name = user_name(a.name);
    if (a.since_ns >= 0) { /* the API has whole seconds */
        a.logs.since_s = (a.since_ns + 999999999) / 1000000000;
    }
    rc = user_open(&u, &a.user, &err);
    rc = rc < 0 ? rc : logs_show(&u, v, &a, &err);
    const int status = rc < 0 ? user_fail(v, rc, &err) : USER_OK;
    user_close(&u);
    return status;
}

const struct verb verb_logs = {
    .name = "logs",
    .args = "JOB|POD",
    .about = "show the output of the pods of a job",
    .options = options,
    .text = "Shows the output of all pods of the job in order of time, each line with the task "
            "and the index of its pod in front; on a terminal every pod has a colour. A job with "
            "a single pod, and a pod that is named itself, get no prefix.\n"
            "With --follow new output is shown as it is written; lines of different pods are "
            "ordered as far as they arrive within a moment of one another. It ends when the job "
            "has ended. Ctrl-C stops following; the job continues.",
    .rest = "EXAMPLES\n"
            "           hekla logs -f train\n"
            "           hekla logs train --index 3 --tail 20\n\n" USER_EXIT_STATUS,
    .run = logs_run,
};
