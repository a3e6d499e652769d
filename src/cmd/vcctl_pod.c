// SPDX-License-Identifier: Apache-2.0
// The command for pods.
#include "api/names.h"
#include "cli/show.h"
#include "cmd/vcctl.h"

static struct hk_str meta_at(const struct api_object *pod, const char *map, const char *key)
{
    const struct json *meta = json_get(&pod->root, "metadata");

    return json_str(json_get(json_get(meta, map), key), HK_STR(""));
}

static int list_pods(struct vcctl *v, const char *selector, struct port_answer *ret,
                     struct hk_err *err)
{
    const struct port_request req = {.verb = PORT_LIST,
                                     .kind = api_kind(API_POD),
                                     .ns = hk_str(vcctl_list_ns(v)),
                                     .label_selector = hk_str(selector)};

    return ask(&v->ask, &req, ret, err);
}

/* Fails if a pod of the job is labeled with another queue. */
static int vcctl_pod_check_queue(const struct port_answer *pods, const char *job, const char *queue,
                                 struct hk_err *err)
{
    for (uint32_t i = 0; queue[0] != '\0' && i < pods->objects.len; i++) {
        const struct hk_str has = meta_at(pods->objects.at[i], "labels", API_KEY_QUEUE_NAME);
        if (has.n > 0 && !hk_str_is(has, queue)) {
            return hk_fail(err, HK_EINVAL, "the input vcjob %s does not match the queue %s", job,
                           queue);
        }
    }
    return 0;
}

static void keep_queue(struct port_answer *pods, const char *queue)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < pods->objects.len; i++) {
        struct api_object *pod = pods->objects.at[i];
        if (hk_str_is(meta_at(pod, "labels", API_KEY_QUEUE_NAME), queue) ||
            hk_str_is(meta_at(pod, "annotations", API_ANN_QUEUE_NAME), queue)) {
            pods->objects.at[kept++] = pod;
        } else {
            api_object_unref(pod);
        }
    }
    pods->objects.len = kept;
}

int vcctl_pod_list(struct vcctl *v, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer pods = {0};
    const char *job = vcctl_value(v, "job"), *queue = vcctl_value(v, "queue");
    int rc;

    if (job[0] != '\0') {
        rc = list_pods(v, hk_arena_printf(&v->mem, API_KEY_JOB_NAME " in (%s)", job), &pods, err);
        if (rc == 0) {
            rc = vcctl_pod_check_queue(&pods, job, queue, err);
        }
    } else {
        rc = list_pods(v, queue[0] != '\0' ? "" : API_KEY_JOB_NAME, &pods, err);
        if (queue[0] != '\0') {
            keep_queue(&pods, queue);
        }
    }
    if (rc == 0) {
        show_pods(pods.objects.at, pods.objects.len, command_bool(v->line, "all-namespaces"),
                  v->now_ns, &v->out);
    }
    return rc;
}
