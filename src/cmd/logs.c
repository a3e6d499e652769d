// SPDX-License-Identifier: Apache-2.0
// hekla logs: which pods and containers are meant, and in which form.
#include "cmd/logs.h"

#include "api/names.h"
#include "cli/progress.h"
#include "client/target.h"
#include "codec/timefmt.h"

#include <unistd.h>

/* ---- which logs ---- */

static struct hk_str label(const struct api_object *pod, const char *key)
{
    const struct json *meta = json_get(&pod->root, "metadata");
    const struct hk_str value = json_str(json_get(json_get(meta, "labels"), key), HK_STR(""));

    return value.n > 0 ? value : json_str(json_get(json_get(meta, "annotations"), key), HK_STR(""));
}

static int64_t index_of(const struct api_object *pod)
{
    int64_t n = -1;

    return hk_str_int(label(pod, API_KEY_TASK_INDEX), &n) ? n : -1;
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
    return (!o->task || hk_str_is(label(pod, API_KEY_TASK_SPEC), o->task)) &&
           (o->index < 0 || index_of(pod) == o->index);
}

static int by_task(const void *a, const void *b)
{
    const struct api_object *x = *(struct api_object *const *)a;
    const struct api_object *y = *(struct api_object *const *)b;
    const int task = hk_str_cmp(label(x, API_KEY_TASK_SPEC), label(y, API_KEY_TASK_SPEC));
    const int64_t i = index_of(x), j = index_of(y);

    if (task != 0) {
        return task;
    }
    return i != j ? (i < j ? -1 : 1) : hk_str_cmp(x->name, y->name);
}

void logs_sort(struct api_object **pods, uint32_t n)
{
    if (n > 1) {
        qsort(pods, n, sizeof(*pods), by_task);
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

/* ---- the verb ---- */

struct logs_args {
    struct user_opts user;
    struct logs_opts logs;
    const char *name;
    bool follow, no_prefix;
};

static const struct option_row options[] = {
    {'f', "follow", NULL, NULL,
     "Go on with what is still to come, of pods that start later too, until the job has ended."},
    {'t', "task", "TASK", NULL, "Only the pods of this task."},
    {'i', "index", "N", NULL, "Only the pods of this index."},
    {'c', "container", "NAME", NULL, "This container (default: the first one of the pod)."},
    {0, "tail", "N", NULL, "Only the last lines of each pod."},
    {0, "since", "DURATION", NULL, "Only what is not older, such as 90s or 1h30m."},
    {'p', "previous", NULL, NULL, "What the container wrote before it was started again."},
    {0, "timestamps", NULL, NULL, "Show when each line was written."},
    {0, "no-prefix", NULL, NULL, "Do not show which pod a line is of."},
    USER_OPTION_NAMESPACE,
    USER_OPTIONS_SERVER,
};

static int take_number(const struct option_row *row, const char *value, int64_t *ret,
                       struct hk_err *err)
{
    if (!hk_str_int(hk_str(value), ret) || *ret < 0) {
        return hk_fail(err, HK_EINVAL, "--%s is '%s', want a whole number", row->name, value);
    }
    return 0;
}

static int take_since(const char *value, int64_t *ret_s, struct hk_err *err)
{
    int64_t ns;

    if (duration_parse(hk_str(value), &ns, NULL) < 0 || ns < 0) {
        return hk_fail(err, HK_EINVAL, "--since is '%s', want a duration such as 90s or 1h30m",
                       value);
    }
    *ret_s = (ns + 999999999) / 1000000000;
    return 0;
}

static int take_one(struct logs_args *a, const struct option_row *row, const char *value,
                    struct hk_err *err)
{
    const struct {
        const char *name;
        bool *at;
    } flags[] = {{"follow", &a->follow},
                 {"previous", &a->logs.previous},
                 {"timestamps", &a->logs.stamps},
                 {"no-prefix", &a->no_prefix}};

    for (size_t i = 0; i < HK_LEN(flags); i++) {
        if (strcmp(row->name, flags[i].name) == 0) {
            *flags[i].at = true;
            return 0;
        }
    }
    if (strcmp(row->name, "task") == 0) {
        a->logs.task = value;
    } else if (strcmp(row->name, "container") == 0) {
        a->logs.container = value;
    } else if (strcmp(row->name, "index") == 0) {
        return take_number(row, value, &a->logs.index, err);
    } else if (strcmp(row->name, "tail") == 0) {
        return take_number(row, value, &a->logs.tail, err);
    } else {
        return take_since(value, &a->logs.since_s, err);
    }
    return 0;
}

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct logs_args *a = ctx;

    if (row) {
        return user_take(&a->user, row, value) ? 0 : take_one(a, row, value, err);
    }
    if (a->name) {
        return hk_fail(err, HK_EINVAL, "unexpected '%s', want one JOB or POD", value);
    }
    a->name = user_name(value);
    return 0;
}

/* A job of that name, else a pod. */
static int find(struct user *u, const char *name, struct logs_target *ret, bool *ret_many,
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

static int show(struct user *u, const struct verb *v, struct logs_args *a, struct hk_err *err)
{
    struct logs_target t = {0};
    bool many = false;
    int rc = find(u, a->name, &t, &many, err);

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

static int run(const struct verb *v, int argc, char **argv)
{
    struct logs_args a = {.logs = LOGS_OPTS_DEFAULT};
    struct user u;
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, take, &a);

    if (rc != 0) {
        return user_parsed(rc);
    }
    if (!a.name) {
        verb_complain("logs: want a JOB or a POD (see 'hekla jobs')");
        return USER_TROUBLE;
    }
    rc = user_open(&u, &a.user, &err);
    rc = rc < 0 ? rc : show(&u, v, &a, &err);
    const int status = rc < 0 ? user_fail(v, rc, &err) : USER_OK;
    user_close(&u);
    return status;
}

const struct verb verb_logs = {
    .name = "logs",
    .args = "JOB|POD",
    .names = "jobs",
    .about = "show what the pods of a job write, as one",
    .options = options,
    .noption = HK_LEN(options),
    .text = "The output of all pods of the job in order of time, each line with the task and the "
            "index of its pod in front; on a terminal every pod has a colour. A job of a single "
            "pod, and a pod that is named itself, need no prefix.\n"
            "With --follow it goes on with what is still to come: lines of different pods are "
            "put in order as far as they come within a moment of one another. It ends when the "
            "job has ended; Ctrl-C ends it earlier and leaves the job alone.",
    .rest = "EXAMPLES\n"
            "           hekla logs -f train\n"
            "           hekla logs train --index 3 --tail 20\n\n" USER_EXIT_STATUS,
    .run = run,
};
