// SPDX-License-Identifier: Apache-2.0
// Which logs to show: the pods of a job or one pod, the container of each, and the path of its log
// in the API.
#include "user/logs.h"

#include "api/names.h"
#include "cli/progress.h"
#include "client/target.h"
#include "codec/timefmt.h"
#include "net/node_api.h"

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

int logs_find(struct user *u, const char *name, struct logs_target *ret, bool *ret_many,
              struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer job = {0}, pod = {0};
    const struct port_request req = {
        .verb = PORT_GET, .kind = api_kind(API_POD), .ns = hk_str(u->ns), .name = hk_str(name)};
    struct hk_err none = {0};
    int rc = user_get(u, API_JOB, name, &job, err);

    if (rc == 0) {
        *ret = logs_of_job(u, hk_str(name));
        ret->over = progress_is_over(job.objects.at[0]);
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
