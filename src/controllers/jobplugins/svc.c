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

static void svc_set_str(const struct job_plugin_use *use, struct json *obj, const char *key,
                        struct hk_str value)
{
    json_put(obj, use->a, hk_str(key), json_make_str(value));
}

static struct json map_data(const struct job_plugin_use *use)
{
    struct json data = json_make_object();

    for (uint32_t i = 0; i < use->job->tasks.len; i++) {
        const struct api_job_task *task = &use->job->tasks.at[i];

        svc_set_str(use, &data, hk_arena_printf(use->a, "%s.host", word_of(use, task, false)),
                    joined(use, task, '\n'));
        svc_set_str(use, &data, hosts_key(use, task), joined(use, task, ','));
        svc_set_str(use, &data, num_key(use, task),
                    hk_str(hk_arena_printf(use->a, "%d", (int)job_hosts(task))));
    }
    return data;
}

static void make_map(const struct job_plugin_use *use, struct json *body)
{
    json_put(body, use->a, HK_STR("data"), map_data(use));
}

static bool mend_map(const struct job_plugin_use *use, struct json *obj)
{
    const struct json data = map_data(use);

    if (json_equal(json_get(obj, "data"), &data)) {
        return false;
    }
    json_put(obj, use->a, HK_STR("data"), data);
    return true;
}

/* ---- Service and NetworkPolicy ---- */

static struct json own_pods(const struct job_plugin_use *use)
{
    struct json labels = json_make_object();

    svc_set_str(use, &labels, API_KEY_JOB_NAME, use->job->meta.name);
    svc_set_str(use, &labels, API_KEY_JOB_NAMESPACE, use->job->meta.ns);
    return labels;
}

static void make_service(const struct job_plugin_use *use, struct json *body)
{
    const struct svc_opts *o = use->opts;
    struct json *spec = json_put(body, use->a, HK_STR("spec"), json_make_object());

    svc_set_str(use, spec, "clusterIP", HK_STR("None"));
    json_put(spec, use->a, HK_STR("selector"), own_pods(use));
    json_put(spec, use->a, HK_STR("publishNotReadyAddresses"),
             json_make_bool(o->publish_not_ready));
}

static struct json pod_selector(const struct job_plugin_use *use)
{
    struct json selector = json_make_object();

    json_put(&selector, use->a, HK_STR("matchLabels"), own_pods(use));
    return selector;
}

static void make_policy(const struct job_plugin_use *use, struct json *body)
{
    struct json *spec = json_put(body, use->a, HK_STR("spec"), json_make_object());
    struct json types = json_make_array(), from = json_make_array(), rules = json_make_array();
    struct json peer = json_make_object(), rule = json_make_object();

    json_put(&peer, use->a, HK_STR("podSelector"), pod_selector(use));
    json_push(&from, use->a, peer);
    json_put(&rule, use->a, HK_STR("from"), from);
    json_push(&rules, use->a, rule);
    json_push(&types, use->a, json_make_str(HK_STR("Ingress")));
    json_put(spec, use->a, HK_STR("podSelector"), pod_selector(use));
    json_put(spec, use->a, HK_STR("ingress"), rules);
    json_put(spec, use->a, HK_STR("policyTypes"), types);
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

    ret[n++] = (struct job_object){API_CONFIGMAP, map_name(use), want_of(use), make_map, mend_map};
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

    svc_set_str(use, &ref, "name", map_name(use));
    svc_set_str(use, &ref, "key", hk_str(key));
    json_put(&from, use->a, HK_STR("configMapKeyRef"), ref);
    svc_set_str(use, &env, "name", hk_str(key));
    json_put(&env, use->a, HK_STR("valueFrom"), from);
    json_push(job_list(container, use->a, "env"), use->a, env);
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
    svc_set_str(use, &mount, "mountPath", HK_STR(MOUNT_PATH));
    svc_set_str(use, &mount, "name", map_name(use));
    json_push(job_list(container, use->a, "volumeMounts"), use->a, mount);
}

static void svc_default_str(const struct job_plugin_use *use, struct json *spec, const char *key,
                            struct hk_str value)
{
    if (json_str(json_get(spec, key), HK_STR("")).n == 0) {
        svc_set_str(use, spec, key, value);
    }
}

static int svc_pod(const struct job_plugin_use *use, const struct api_job_task *task, int32_t index,
                   struct json *pod, struct hk_err *err)
{
    struct json *spec = (struct json *)json_get(pod, "spec");
    struct json volume = json_make_object(), source = json_make_object();

    svc_default_str(use, spec, "hostname", json_str(json_at(pod, "metadata.name"), HK_STR("")));
    svc_default_str(use, spec, "subdomain", use->job->meta.name);
    svc_set_str(use, &source, "name", map_name(use));
    svc_set_str(use, &volume, "name", map_name(use));
    json_put(&volume, use->a, HK_STR("configMap"), source);
    json_push(job_list(spec, use->a, "volumes"), use->a, volume);
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
