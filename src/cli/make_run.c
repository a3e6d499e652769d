// SPDX-License-Identifier: Apache-2.0
// Builds a Job from a command line. A task gets its index from the variable that the env plugin
// sets in its container. The agent expands $(NAME) in a command, so every dollar sign of the user
// is doubled.
//
// The job has one task, with as many replicas as the command line says. The plugin pytorch wants two:
// the first replica is then the task "master" and the others are "worker", all with the same command,
// and an index is a rank.
#include "cli/make_priv.h"
#include "codec/quantity.h"
#include "codec/timefmt.h"

#include <ctype.h>

#define TASK "task"
#define CONTAINER "main"
#define GPU "nvidia.com/gpu"
#define INDEX "$(VC_TASK_INDEX)"
#define RANK "$(RANK)" /* set by the plugin pytorch */
#define MASTER "master"
#define WORKER "worker"

enum {
    NAME_MAX_STEM = 40, /* leaves space for the suffixes of pods and groups */
    NAME_RANDOM = 5,
    DAY_S = 24 * 3600,
};

/* ---- plugins that look for tasks by name ---- */

/* *ret_bare: the plugin is named without arguments, which would name the tasks. */
static bool make_run_has_plugin(const struct make_run *r, const char *name, bool *ret_bare)
{
    bool found = false;

    *ret_bare = true;
    for (uint32_t i = 0; i < r->nplugin; i++) {
        struct hk_str rest = hk_str(r->plugins[i]), own;

        hk_str_cut(&rest, '=', &own);
        if (hk_str_is(own, name)) {
            found = true;
            *ret_bare &= !rest.s ||
                         (!hk_str_starts(rest, "--" MASTER "=") &&
                          !hk_str_starts(rest, "--" WORKER "=") && !hk_str_starts(rest, "--head="));
        }
    }
    return found;
}

static bool make_run_has_ranks(const struct make_run *r)
{
    bool bare;

    return make_run_has_plugin(r, "pytorch", &bare) && bare;
}

/* Their tasks run different commands. */
static int make_run_check_plugins(const struct make_run *r, struct hk_err *err)
{
    static const char *const apart[] = {"mpi", "ray"};

    for (size_t i = 0; i < HK_LEN(apart); i++) {
        bool bare;

        if (make_run_has_plugin(r, apart[i], &bare) && bare) {
            return hk_fail(err, HK_EINVAL,
                           "the plugin '%s' wants tasks with different commands: write a manifest "
                           "and use 'hekla apply', or name the task with %s=--" MASTER "=" TASK,
                           apart[i], apart[i]);
        }
    }
    return 0;
}

/* ---- the command ---- */

struct word {
    const char *brace; /* as typed */
    const char *text;  /* replacement */
};

static size_t make_run_expand_placeholder(const char *p, const struct word *words, size_t n,
                                          struct hk_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        if (hk_str_starts(hk_str(p), words[i].brace)) {
            hk_buf_adds(out, words[i].text);
            return strlen(words[i].brace);
        }
    }
    return 0;
}

static struct json make_argument(const struct make_run *r, const char *arg, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const char *count = hk_arena_printf(a, "%lld", (long long)r->count);
    const struct word words[] = {{"{index}", make_run_has_ranks(r) ? RANK : INDEX},
                                 {"{count}", count},
                                 {"{name}", r->name},
                                 {"{job}", r->name}};

    for (const char *p = arg; *p != '\0';) {
        const size_t n =
            r->literal ? 0 : make_run_expand_placeholder(p, words, HK_LEN(words), &out);
        if (n == 0) {
            hk_buf_adds(&out, *p == '$' ? "$" : "");
            hk_buf_addc(&out, *p);
        }
        p += n > 0 ? n : 1;
    }
    return json_make_str_copy(hk_buf_str(&out), a);
}

static struct json make_command_words(const struct make_run *r, struct hk_arena *a)
{
    struct json words = json_make_array();

    for (uint32_t i = 0; i < r->argc; i++) {
        json_push(&words, a, make_argument(r, r->argv[i], a));
    }
    return words;
}

/* ---- the container ---- */

static int put_amount(struct json *list, const char *name, const char *option, const char *text,
                      struct hk_arena *a, struct hk_err *err)
{
    struct quantity q;

    if (!text) {
        return 0;
    }
    if (quantity_parse(hk_str(text), &q, NULL) < 0 || q.nano < 0) {
        return hk_fail(err, HK_EINVAL, "--%s is '%s', want an amount such as 2, 500m or 4Gi",
                       option, text);
    }
    json_set_quantity(list, a, name, q);
    return 0;
}

/* Sets memory and GPUs as limits, too; a task may use idle CPUs beyond its request. */
static int make_amounts(const struct make_run *r, struct hk_arena *a, struct json *ret,
                        struct hk_err *err)
{
    struct json requests = json_make_object(), limits = json_make_object();
    int rc = put_amount(&requests, "cpu", "cpu", r->cpu, a, err);

    if (rc < 0) {
        return rc;
    }
    rc = put_amount(&limits, "memory", "memory", r->memory, a, err);
    if (rc < 0) {
        return rc;
    }
    rc = put_amount(&limits, GPU, "gpu", r->gpu, a, err);
    if (rc < 0) {
        return rc;
    }
    for (uint32_t i = 0; i < limits.len; i++) {
        json_put(&requests, a, limits.members[i].key, limits.members[i].value);
    }
    *ret = json_make_object();
    if (requests.len > 0) {
        json_set(ret, a, "requests", requests);
    }
    if (limits.len > 0) {
        json_set(ret, a, "limits", limits);
    }
    return 0;
}

static struct json make_variables(const struct make_run *r, struct hk_arena *a)
{
    struct json list = json_make_array();

    for (uint32_t i = 0; i < r->nenv; i++) {
        struct json v = json_make_object();
        HK_AUTO(hk_buf_fini) struct hk_buf value = {0};

        for (const char *p = r->env[i].value; *p != '\0'; p++) {
            hk_buf_adds(&value, *p == '$' ? "$" : "");
            hk_buf_addc(&value, *p);
        }
        json_set_cstr(&v, a, "name", r->env[i].name);
        json_set_str_copy(&v, a, "value", hk_buf_str(&value));
        json_push(&list, a, v);
    }
    return list;
}

static int make_run_container(const struct make_run *r, struct hk_arena *a, struct json *ret,
                              struct hk_err *err)
{
    struct json c = json_make_object(), amounts;
    const int rc = make_amounts(r, a, &amounts, err);

    if (rc < 0) {
        return rc;
    }
    json_set_cstr(&c, a, "name", CONTAINER);
    json_set_cstr(&c, a, "image", r->image);
    json_set(&c, a, "command", make_command_words(r, a));
    if (r->workdir) {
        json_set_cstr(&c, a, "workingDir", r->workdir);
    }
    if (r->nenv > 0) {
        json_set(&c, a, "env", make_variables(r, a));
    }
    if (amounts.len > 0) {
        json_set(&c, a, "resources", amounts);
    }
    *ret = c;
    return 0;
}

/* ---- the job ---- */

/* The one task does the work, for plugins that look for its name. */
static void make_run_name_workers(const struct make_run *r, struct json *all, struct hk_arena *a)
{
    static const char *const names[] = {"tensorflow", "hcclrank"};

    for (size_t i = 0; i < HK_LEN(names) && !make_run_has_ranks(r); i++) {
        bool bare;

        if (make_run_has_plugin(r, names[i], &bare) && bare) {
            struct json args = *json_get(all, names[i]);

            json_push(&args, a, json_make_str(HK_STR("--" WORKER "=" TASK)));
            json_set(all, a, names[i], args);
        }
    }
}

/* Always env; "NAME" and "NAME=ARG" add more. Arguments stay as typed. */
static int make_plugins(const struct make_run *r, struct hk_arena *a, struct json *ret,
                        struct hk_err *err)
{
    struct json all = json_make_object();

    json_set_array(&all, a, "env");
    for (uint32_t i = 0; i < r->nplugin; i++) {
        struct hk_str rest = hk_str(r->plugins[i]), name;

        if (!hk_str_cut(&rest, '=', &name) || name.n == 0) {
            return hk_fail(err, HK_EINVAL, "--plugin is '%s', want NAME or NAME=ARGUMENT",
                           r->plugins[i]);
        }
        const struct json *have = json_get_str(&all, name);
        struct json args = have ? *have : json_make_array();
        if (rest.s) {
            json_push(&args, a, json_make_str(rest));
        }
        json_put(&all, a, name, args);
    }
    make_run_name_workers(r, &all, a);
    *ret = all;
    return 0;
}

/* A gang restarts as a whole, other jobs only what failed. The retry that reaches maxRetry never
 * runs. */
static void put_retries(const struct make_run *r, struct json *spec, struct hk_arena *a)
{
    struct json policy = json_make_object();

    if (r->retries <= 0) {
        return;
    }
    json_set_cstr(&policy, a, "event", "PodFailed");
    json_set_cstr(&policy, a, "action", r->min > 1 ? "RestartJob" : "RestartPod");
    json_set(spec, a, "policies", make_one(a, policy));
    json_set_int(spec, a, "maxRetry", r->retries + 1);
}

/* Without a minimum of its own a task must have all its replicas to be scaled down. */
static struct json make_task(const struct make_run *r, const char *name, int64_t count, int64_t min,
                             struct json container, struct hk_arena *a)
{
    struct json task = json_make_object(), template = json_make_object();
    struct json spec = json_make_object();

    json_set_cstr(&spec, a, "restartPolicy", "Never");
    if (r->time_s > 0) {
        json_set_int(&spec, a, "activeDeadlineSeconds", r->time_s);
    }
    json_set(&spec, a, "containers", make_one(a, container));
    json_set(&template, a, "spec", spec);
    json_set_cstr(&task, a, "name", name);
    json_set_int(&task, a, "replicas", count);
    if (min < count) {
        json_set_int(&task, a, "minAvailable", min);
    }
    json_set(&task, a, "template", template);
    return task;
}

static struct json make_tasks(const struct make_run *r, struct json container, struct hk_arena *a)
{
    struct json tasks = json_make_array();

    if (!make_run_has_ranks(r)) {
        json_push(&tasks, a, make_task(r, TASK, r->count, r->min, container, a));
        return tasks;
    }
    json_push(&tasks, a, make_task(r, MASTER, 1, 1, container, a));
    if (r->count > 1) {
        json_push(&tasks, a, make_task(r, WORKER, r->count - 1, r->min - 1, container, a));
    }
    return tasks;
}

static void make_run_set_if_given(struct json *spec, struct hk_arena *a, const char *key,
                                  const char *value)
{
    if (value) {
        json_set_cstr(spec, a, key, value);
    }
}

/* The job completes when every task has: minSuccess says so, even if fewer suffice to start. */
static struct json make_spec(const struct make_run *r, struct json tasks, struct json plugins,
                             struct hk_arena *a)
{
    struct json spec = json_make_object();

    json_set_cstr(&spec, a, "schedulerName", "volcano");
    make_run_set_if_given(&spec, a, "queue", r->queue);
    make_run_set_if_given(&spec, a, "priorityClassName", r->priority);
    json_set_int(&spec, a, "minAvailable", r->min);
    json_set_int(&spec, a, "minSuccess", r->count);
    if (r->time_s > 0) {
        json_set_cstr(&spec, a, "runningEstimate",
                      hk_arena_printf(a, "%llds", (long long)r->time_s));
    }
    put_retries(r, &spec, a);
    json_set(&spec, a, "plugins", plugins);
    json_set(&spec, a, "tasks", tasks);
    return spec;
}

int make_run(const struct make_run *r, struct hk_arena *a, struct json *ret, struct hk_err *err)
{
    struct json meta = json_make_object(), container, plugins;
    int rc = make_run_check_plugins(r, err);

    if (rc < 0) {
        return rc;
    }
    rc = make_run_container(r, a, &container, err);
    if (rc < 0) {
        return rc;
    }
    rc = make_plugins(r, a, &plugins, err);
    if (rc < 0) {
        return rc;
    }
    json_set_cstr(&meta, a, "name", r->name);
    json_set_cstr(&meta, a, "namespace", r->ns);
    *ret = make_object(API_JOB, meta, a);
    json_set(ret, a, "spec", make_spec(r, make_tasks(r, container, a), plugins, a));
    return 0;
}

/* ---- parsing values ---- */

void make_run_name(const char *command, struct hk_rand *rand, struct hk_buf *out)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    const char *slash = strrchr(command, '/'), *p = slash ? slash + 1 : command;
    const size_t start = out->len;

    for (; *p != '\0' && *p != '.' && out->len - start < NAME_MAX_STEM; p++) {
        if (isalnum((unsigned char)*p)) {
            hk_buf_addc(out, (char)tolower((unsigned char)*p));
        } else if (out->len > start && out->data[out->len - 1] != '-') {
            hk_buf_addc(out, '-');
        }
    }
    while (out->len > start && out->data[out->len - 1] == '-') {
        out->data[--out->len] = '\0';
    }
    if (out->len == start || !isalpha((unsigned char)out->data[start])) {
        out->len = start;
        hk_buf_adds(out, "run");
    }
    hk_buf_addc(out, '-');
    for (int i = 0; i < NAME_RANDOM; i++) {
        hk_buf_addc(out, letters[hk_rand_below(rand, sizeof(letters) - 1)]);
    }
}

/* Fields between colons, with limited digits each. */
static bool read_clock(struct hk_str text, int64_t *ret_s)
{
    struct hk_str part;
    int64_t total = 0, n;
    unsigned parts = 0;

    while (hk_str_cut(&text, ':', &part)) {
        if (part.n == 0 || part.n > 6 || !isdigit((unsigned char)part.s[0]) ||
            !hk_str_int(part, &n)) {
            return false;
        }
        total = total * 60 + n;
        parts++;
    }
    *ret_s = total;
    return parts == 2 || parts == 3;
}

int make_run_time(const char *text, int64_t *ret_s, struct hk_err *err)
{
    struct hk_str rest = hk_str(text), days_text;
    int64_t days = 0, s = 0, ns;

    hk_str_cut(&rest, '-', &days_text);
    if (rest.s && days_text.n > 0 && days_text.n < 6 && hk_str_int(days_text, &days) && days >= 0 &&
        read_clock(rest, &s)) {
        *ret_s = days * DAY_S + s;
    } else if (!rest.s && read_clock(days_text, &s)) {
        *ret_s = s;
    } else if (duration_parse(hk_str(text), &ns, NULL) == 0 && ns >= 0) {
        *ret_s = (ns + 999999999) / 1000000000;
    } else {
        *ret_s = 0;
    }
    if (*ret_s <= 0) {
        return hk_fail(err, HK_EINVAL,
                       "--time is '%s', want a limit such as 90s, 1h30m, 2:30:00 or 1-12:00:00",
                       text);
    }
    return 0;
}
