// SPDX-License-Identifier: Apache-2.0
// svc: the pods of a job find each other by name. A headless Service gives each pod an address, a
// ConfigMap lists all of them as files and variables, and a NetworkPolicy blocks other pods.
#include "api/names.h"
#include "controllers/jobplugin.h"

#define MOUNT_PATH "/etc/volcano"

struct svc_opts {
    bool publish_not_ready, no_policy, inject_env;
};

static const struct job_opt opts[] = {
    {"publish-not-ready-addresses", JOB_OPT_BOOL, offsetof(struct svc_opts, publish_not_ready),
     NULL, "names resolve before pods are ready"},
    {"disable-network-policy", JOB_OPT_BOOL, offsetof(struct svc_opts, no_policy), NULL,
     "do not keep other pods out"},
    {"inject-hosts-env", JOB_OPT_BOOL, offsetof(struct svc_opts, inject_env), "true",
     "set VC_<TASK>_HOSTS and VC_<TASK>_NUM in containers"},
    {0},
};

static struct hk_str map_name(const struct job_plugin_use *use)
{
    return hk_str(hk_arena_printf(use->a, "%.*s-svc", HK_FMT(use->job->meta.name)));
}

/* The task's name as part of a key: "-" becomes "_"; in variables, letters are upper case. */
static char *word_of(const struct job_plugin_use *use, const struct api_job_task *task, bool upper)
{
    char *word = hk_arena_strndup(use->a, task->name.s, task->name.n);

    for (char *at = word; *at; at++) {
        if (*at == '-') {
            *at = '_';
        } else if (upper && *at >= 'a' && *at <= 'z') {
            *at = (char)(*at - 'a' + 'A');
        }
    }
    return word;
}

static char *hosts_key(const struct job_plugin_use *use, const struct api_job_task *task)
{
    return hk_arena_printf(use->a, "VC_%s_HOSTS", word_of(use, task, true));
}

static char *num_key(const struct job_plugin_use *use, const struct api_job_task *task)
{
    return hk_arena_printf(use->a, "VC_%s_NUM", word_of(use, task, true));
}

/* ---- the ConfigMap ---- */

static struct hk_str joined(const struct job_plugin_use *use, const struct api_job_task *task,
                            char sep)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    for (int32_t i = 0; i < job_hosts(task); i++) {
        if (i > 0) {
            hk_buf_addc(&text, sep);
        }
        hk_buf_addstr(&text, job_address(use, task, i));
    }
    return hk_arena_str(use->a, hk_buf_str(&text));
}

static struct json map_data(const struct job_plugin_use *use)
{
    struct json data = json_make_object();

    for (uint32_t i = 0; i < use->job->tasks.len; i++) {
        const struct api_job_task *task = &use->job->tasks.at[i];

        json_set_str(&data, use->a, hk_arena_printf(use->a, "%s.host", word_of(use, task, false)),
                     joined(use, task, '\n'));
        json_set_str(&data, use->a, hosts_key(use, task), joined(use, task, ','));
        json_set_cstr(&data, use->a, num_key(use, task),
                      hk_arena_printf(use->a, "%d", (int)job_hosts(task)));
    }
    return data;
}

static void make_map(const struct job_plugin_use *use, struct json *body)
{
    json_set(body, use->a, "data", map_data(use));
}

static bool correct_map(const struct job_plugin_use *use, struct json *obj)
{
    const struct json data = map_data(use);

    if (json_equal(json_get(obj, "data"), &data)) {
        return false;
    }
    json_set(obj, use->a, "data", data);
    return true;
}

/* ---- Service and NetworkPolicy ---- */

static struct json own_pods(const struct job_plugin_use *use)
{
    struct json labels = json_make_object();

    json_set_str(&labels, use->a, API_KEY_JOB_NAME, use->job->meta.name);
    json_set_str(&labels, use->a, API_KEY_JOB_NAMESPACE, use->job->meta.ns);
    return labels;
}

static void make_service(const struct job_plugin_use *use, struct json *body)
{
    const struct svc_opts *o = use->opts;
    struct json *spec = json_set_object(body, use->a, "spec");

    json_set_cstr(spec, use->a, "clusterIP", "None");
    json_set(spec, use->a, "selector", own_pods(use));
    json_set_bool(spec, use->a, "publishNotReadyAddresses", o->publish_not_ready);
}

static struct json pod_selector(const struct job_plugin_use *use)
{
    struct json selector = json_make_object();

    json_set(&selector, use->a, "matchLabels", own_pods(use));
    return selector;
}

static void make_policy(const struct job_plugin_use *use, struct json *body)
{
    struct json *spec = json_set_object(body, use->a, "spec");
    struct json types = json_make_array(), from = json_make_array(), rules = json_make_array();
    struct json peer = json_make_object(), rule = json_make_object();

    json_set(&peer, use->a, "podSelector", pod_selector(use));
    json_push(&from, use->a, peer);
    json_set(&rule, use->a, "from", from);
    json_push(&rules, use->a, rule);
    json_push(&types, use->a, json_make_str(HK_STR("Ingress")));
    json_set(spec, use->a, "podSelector", pod_selector(use));
    json_set(spec, use->a, "ingress", rules);
    json_set(spec, use->a, "policyTypes", types);
}

/* Hash of the inputs of the ConfigMap: task names and their numbers of hosts. */
static uint64_t want_of(const struct job_plugin_use *use)
{
    uint64_t h = 1;

    for (uint32_t i = 0; i < use->job->tasks.len; i++) {
        const struct api_job_task *task = &use->job->tasks.at[i];

        h = hk_hash(task->name.s, task->name.n, hk_mix(h) + (uint64_t)job_hosts(task));
    }
    return h | 1;
}

static uint32_t svc_objects(const struct job_plugin_use *use, struct job_object *ret)
{
    const struct svc_opts *o = use->opts;
    uint32_t n = 0;

    ret[n++] =
        (struct job_object){API_CONFIGMAP, map_name(use), want_of(use), make_map, correct_map};
    ret[n++] = (struct job_object){API_SERVICE, use->job->meta.name, 1, make_service, NULL};
    if (!o->no_policy) {
        ret[n++] =
            (struct job_object){API_NETWORK_POLICY, use->job->meta.name, 1, make_policy, NULL};
    }
    return n;
}

/* ---- pods ---- */

static void add_key_env(const struct job_plugin_use *use, struct json *container, const char *key)
{
    struct json env = json_make_object(), ref = json_make_object(), from = json_make_object();

    json_set_str(&ref, use->a, "name", map_name(use));
    json_set_cstr(&ref, use->a, "key", key);
    json_set(&from, use->a, "configMapKeyRef", ref);
    json_set_cstr(&env, use->a, "name", key);
    json_set(&env, use->a, "valueFrom", from);
    json_push(json_need(container, use->a, "env", JSON_ARRAY), use->a, env);
}

static void svc_add_to_container(void *ctx, struct json *container)
{
    const struct job_plugin_use *use = ctx;
    const struct svc_opts *o = use->opts;
    struct json mount = json_make_object();

    for (uint32_t i = 0; o->inject_env && i < use->job->tasks.len; i++) {
        add_key_env(use, container, hosts_key(use, &use->job->tasks.at[i]));
        add_key_env(use, container, num_key(use, &use->job->tasks.at[i]));
    }
    json_set_cstr(&mount, use->a, "mountPath", MOUNT_PATH);
    json_set_str(&mount, use->a, "name", map_name(use));
    json_push(json_need(container, use->a, "volumeMounts", JSON_ARRAY), use->a, mount);
}

static void svc_default_str(const struct job_plugin_use *use, struct json *spec, const char *key,
                            struct hk_str value)
{
    if (json_str(json_get(spec, key), HK_STR("")).n == 0) {
        json_set_str(spec, use->a, key, value);
    }
}

static int svc_pod(const struct job_plugin_use *use, const struct api_job_task *task, int32_t index,
                   struct json *pod, struct hk_err *err)
{
    struct json *spec = (struct json *)json_get(pod, "spec");
    struct json volume = json_make_object(), source = json_make_object();

    svc_default_str(use, spec, "hostname", json_str(json_at(pod, "metadata.name"), HK_STR("")));
    svc_default_str(use, spec, "subdomain", use->job->meta.name);
    json_set_str(&source, use->a, "name", map_name(use));
    json_set_str(&volume, use->a, "name", map_name(use));
    json_set(&volume, use->a, "configMap", source);
    json_push(json_need(spec, use->a, "volumes", JSON_ARRAY), use->a, volume);
    job_each_container(pod, true, svc_add_to_container, (void *)use);
    return 0;
}

const struct job_plugin job_plugin_svc = {
    .name = "svc",
    .about = "gives pods names by which the others find them",
    .opts = opts,
    .opts_size = sizeof(struct svc_opts),
    .objects = svc_objects,
    .pod = svc_pod,
};
