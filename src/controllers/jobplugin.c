// SPDX-License-Identifier: Apache-2.0
// The list of job plugins, parsing of their arguments, and their shared code.
#include "controllers/jobplugin.h"

extern const struct job_plugin job_plugin_env, job_plugin_svc, job_plugin_ssh,
    job_plugin_tensorflow, job_plugin_pytorch, job_plugin_mpi, job_plugin_hcclrank, job_plugin_ray;

/* hcclrank comes after pytorch, because it reads the variables that pytorch sets. */
static const struct job_plugin *const plugins[] = {
    &job_plugin_env,     &job_plugin_svc, &job_plugin_ssh,      &job_plugin_tensorflow,
    &job_plugin_pytorch, &job_plugin_mpi, &job_plugin_hcclrank, &job_plugin_ray,
};

const struct job_plugin *const *job_plugins(uint32_t *ret_n)
{
    *ret_n = HK_LEN(plugins);
    return plugins;
}

const struct job_plugin *job_plugin_find(struct hk_str name)
{
    for (uint32_t i = 0; i < HK_LEN(plugins); i++) {
        if (hk_str_is(name, plugins[i]->name)) {
            return plugins[i];
        }
    }
    return NULL;
}

/* ---- arguments ---- */

static bool jobplugin_parse_bool(struct hk_str text, bool *ret)
{
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
    static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};

    for (unsigned i = 0; i < HK_LEN(yes); i++) {
        if (hk_str_is(text, yes[i]) || hk_str_is(text, no[i])) {
            *ret = hk_str_is(text, yes[i]);
            return true;
        }
    }
    return false;
}

static bool jobplugin_set_option(const struct job_opt *opt, struct hk_str text, void *opts)
{
    void *at = (char *)opts + opt->off;

    switch (opt->type) {
    case JOB_OPT_STRING:
        *(struct hk_str *)at = text;
        return true;
    case JOB_OPT_INT:
        return hk_str_int(text, at);
    default:
        return jobplugin_parse_bool(text, at);
    }
}

static const struct job_opt *opt_find(const struct job_opt *opts, struct hk_str name)
{
    for (; opts && opts->name; opts++) {
        if (hk_str_is(name, opts->name)) {
            return opts;
        }
    }
    return NULL;
}

/* Removes the dashes; false when the word is not a flag. */
static bool cut_dashes(struct hk_str *word)
{
    const size_t n = hk_str_starts(*word, "--") ? 2 : hk_str_starts(*word, "-") ? 1 : 0;

    if (n == 0 || word->n == n || word->s[n] == '-' || word->s[n] == '=') {
        return false;
    }
    *word = (struct hk_str){word->s + n, word->n - n};
    return true;
}

/* Reads the argument at *i with its value; false ends the list. */
static bool read_arg(const struct job_plugin *plugin, const struct api_strs *args, uint32_t *i,
                     void *opts, struct hk_err *warning)
{
    struct hk_str word = args->at[(*i)++], name, value = word;
    const struct job_opt *opt;
    bool has_value;

    if (!cut_dashes(&word)) {
        hk_err_set(warning, HK_EINVAL, "argument '%.*s' is not a flag", HK_FMT(word));
        return false;
    }
    value = word;
    (void)hk_str_cut(&value, '=', &name);
    has_value = value.s != NULL;
    opt = opt_find(plugin->opts, name);
    if (!opt) {
        hk_err_set(warning, HK_EINVAL, "flag provided but not defined: -%.*s", HK_FMT(name));
        return false;
    }
    if (!has_value && opt->type == JOB_OPT_BOOL) {
        value = HK_STR("true");
    } else if (!has_value) {
        if (*i == args->len) {
            hk_err_set(warning, HK_EINVAL, "flag needs an argument: -%.*s", HK_FMT(name));
            return false;
        }
        value = args->at[(*i)++];
    }
    if (!jobplugin_set_option(opt, value, opts)) {
        hk_err_set(warning, HK_EINVAL, "invalid value '%.*s' for flag -%.*s", HK_FMT(value),
                   HK_FMT(name));
        return false;
    }
    return true;
}

void job_plugin_use(struct job_plugin_use *use, const struct job_plugin *plugin,
                    const struct api_job *job, const struct api_job_plugin *asked,
                    struct hk_arena *a, struct hk_err *warning)
{
    void *opts = hk_arena_zalloc(a, plugin->opts_size + 1);
    uint32_t i = 0;

    for (const struct job_opt *opt = plugin->opts; opt && opt->name; opt++) {
        if (opt->def) {
            (void)jobplugin_set_option(opt, hk_str(opt->def), opts);
        } else if (opt->type == JOB_OPT_STRING) {
            (void)jobplugin_set_option(opt, HK_STR(""), opts);
        }
    }
    while (i < asked->args.len && read_arg(plugin, &asked->args, &i, opts, warning)) {
    }
    *use = (struct job_plugin_use){plugin, job, opts, a};
}

/* ---- hosts ---- */

static struct hk_str of_template(const struct api_job_task *task, const char *key)
{
    return json_str(json_get(json_get(task->template, "spec"), key), HK_STR(""));
}

struct hk_str job_host(const struct job_plugin_use *use, const struct api_job_task *task,
                       int32_t index)
{
    const struct hk_str host = of_template(task, "hostname");

    if (host.n > 0) {
        return host;
    }
    return hk_str(hk_arena_printf(use->a, "%.*s-%.*s-%d", HK_FMT(use->job->meta.name),
                                  HK_FMT(task->name), (int)index));
}

struct hk_str job_subdomain(const struct job_plugin_use *use, const struct api_job_task *task)
{
    const struct hk_str sub = of_template(task, "subdomain");

    return sub.n > 0 ? sub : use->job->meta.name;
}

struct hk_str job_address(const struct job_plugin_use *use, const struct api_job_task *task,
                          int32_t index)
{
    return hk_str(hk_arena_printf(use->a, "%.*s.%.*s", HK_FMT(job_host(use, task, index)),
                                  HK_FMT(job_subdomain(use, task))));
}

int32_t job_hosts(const struct api_job_task *task)
{
    return of_template(task, "hostname").n > 0 ? HK_MIN(task->replicas, 1) : task->replicas;
}

/* ---- pods ---- */

static void each_in(const struct json *list, void (*fn)(void *ctx, struct json *container),
                    void *ctx)
{
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        fn(ctx, &list->items[i]);
    }
}

void job_each_container(struct json *pod, bool init, void (*fn)(void *ctx, struct json *container),
                        void *ctx)
{
    const struct json *spec = json_get(pod, "spec");

    each_in(json_get(spec, "containers"), fn, ctx);
    if (init) {
        each_in(json_get(spec, "initContainers"), fn, ctx);
    }
}

void job_add_env(struct json *container, struct hk_arena *a, const char *name, struct hk_str value)
{
    struct json env = json_make_object();

    json_set_str_copy(&env, a, "name", hk_str(name));
    json_set_str(&env, a, "value", value);
    json_push(json_need(container, a, "env", JSON_ARRAY), a, env);
}

bool job_has_port(const struct json *container, int64_t port)
{
    const struct json *ports = json_get(container, "ports");

    for (uint32_t i = 0; json_is(ports, JSON_ARRAY) && i < ports->len; i++) {
        if (json_int(json_get(&ports->items[i], "containerPort"), -1) == port) {
            return true;
        }
    }
    return false;
}

void job_add_port(struct json *container, struct hk_arena *a, const char *name, int64_t port)
{
    struct json v = json_make_object();

    if (job_has_port(container, port)) {
        return;
    }
    json_set_cstr(&v, a, "name", name);
    json_set_int(&v, a, "containerPort", port);
    json_push(json_need(container, a, "ports", JSON_ARRAY), a, v);
}
