// SPDX-License-Identifier: Apache-2.0
// hekla run: a command line as a job, and how it ends.
#include "cli/make.h"
#include "cli/progress.h"
#include "cmd/logs.h"
#include "cmd/wait.h"
#include "codec/yaml.h"

#include <limits.h>
#include <unistd.h>

extern char **environ;

enum { INTERRUPTED = 130, MAX_TASKS = 1000000 };

enum after { DETACH, WAIT, FOLLOW };

struct run_args {
    struct user_opts user;
    struct make_run run;
    bool gang, export_env, dry_run;
    enum after after;
    const char *output; /* NULL: the name */
    HK_VEC(struct make_env) env;
    HK_VEC(const char *) plugins;
    HK_VEC(const char *) words;
    struct hk_arena mem;
};

static const struct option_row options[] = {
    {'n', "count", "N", NULL, "How many tasks run the command (default: 1)."},
    {'g', "gang", NULL, NULL, "Start all tasks at the same time or none."},
    {0, "min", "M", NULL, "Start when so many of the tasks can (default: 1)."},
    {'q', "queue", "QUEUE", NULL, "The queue (default: the server's default queue)."},
    {0, "name", "NAME", NULL, "The job's name (default: made of the command's)."},
    {0, "cpu", "AMOUNT", NULL, "Processors for each task, such as 2 or 500m (default: 1)."},
    {0, "memory", "AMOUNT", NULL,
     "Memory for each task, such as 4Gi; a task that takes more is killed (default: no limit)."},
    {0, "gpu", "N", NULL, "GPUs for each task (default: none)."},
    {'e', "env", "NAME[=VALUE]", NULL,
     "A variable for the command; without a value, the one it has here. May be given again."},
    {0, "export-env", NULL, NULL, "All variables as they are here; --env goes before them."},
    {'w', "workdir", "DIR", NULL,
     "The working directory (default: this one). An empty one leaves it to the image."},
    {0, "priority", "CLASS", NULL, "The priority class."},
    {0, "retries", "N", NULL,
     "Start again up to so many times after a failure: a gang as a whole, else the task that "
     "failed (default: 0)."},
    {'t', "time", "LIMIT", NULL,
     "The longest a task may run, as 90s, 1h30m, 2:30:00 or 1-12:00:00; then it is ended and has "
     "failed. Schedulers that plan ahead take it as the estimate."},
    {0, "image", "IMAGE", NULL,
     "The image, for clusters that run containers (default: $VOLCANO_DEFAULT_IMAGE, else busybox). "
     "On one machine the command runs on the machine itself."},
    {'p', "plugin", "NAME[,NAME...]", NULL,
     "Plugins of jobs besides env: svc, ssh, pytorch...; as NAME=ARGUMENT with an argument for it. "
     "May be given again."},
    {0, "literal", NULL, NULL, "Do not replace {index} and the like in the command."},
    {0, "dry-run", NULL, NULL, "Print the job and do not submit it; needs no server."},
    {'o', "output", "FORMAT", "yaml json name", "Print the job in that form."},
    {'W', "wait", NULL, NULL, "Return when the job has ended, with its outcome."},
    {'f', "follow", NULL, NULL, "Show what the tasks write meanwhile, as 'hekla logs -f' does."},
    {'d', "detach", NULL, NULL, "Return when the job is submitted (default)."},
    {0, "namespace", "NAMESPACE", NULL,
     "The namespace (default: that of the kubeconfig's context)."},
    USER_OPTIONS_SERVER,
};

/* ---- options ---- */

static int take_number(const struct option_row *row, const char *value, int64_t least, int64_t *ret,
                       struct hk_err *err)
{
    if (!hk_str_int(hk_str(value), ret) || *ret < least || *ret > MAX_TASKS) {
        return hk_fail(err, HK_EINVAL, "--%s is '%s', want a number from %lld to %d", row->name,
                       value, (long long)least, MAX_TASKS);
    }
    return 0;
}

static int take_env(struct run_args *a, const char *value, struct hk_err *err)
{
    struct hk_str rest = hk_str(value), name;

    hk_str_cut(&rest, '=', &name);
    if (name.n == 0) {
        return hk_fail(err, HK_EINVAL, "--env is '%s', want NAME=VALUE or NAME", value);
    }
    const char *key = hk_arena_strndup(&a->mem, name.s, name.n);
    const char *text = rest.s ? rest.s : getenv(key);
    if (!text) {
        return hk_fail(err, HK_EINVAL, "--env is '%s', but there is no such variable here", value);
    }
    hk_vec_push(&a->env, (struct make_env){key, text});
    return 0;
}

/* An argument of a plugin may hold commas: it takes the rest. */
static void take_plugins(struct run_args *a, const char *value)
{
    struct hk_str rest = hk_str(value), part;

    if (strchr(value, '=')) {
        hk_vec_push(&a->plugins, value);
        return;
    }
    while (hk_str_cut(&rest, ',', &part)) {
        hk_vec_push(&a->plugins, hk_arena_strndup(&a->mem, part.s, part.n));
    }
}

static bool take_flag(struct run_args *a, const char *name)
{
    const struct {
        const char *name;
        bool *at;
    } flags[] = {{"gang", &a->gang},
                 {"export-env", &a->export_env},
                 {"literal", &a->run.literal},
                 {"dry-run", &a->dry_run}};
    static const char *const afters[] = {[DETACH] = "detach", [WAIT] = "wait", [FOLLOW] = "follow"};

    for (size_t i = 0; i < HK_LEN(flags); i++) {
        if (strcmp(name, flags[i].name) == 0) {
            return *flags[i].at = true;
        }
    }
    for (size_t i = 0; i < HK_LEN(afters); i++) {
        if (strcmp(name, afters[i]) == 0) {
            a->after = (enum after)i;
            return true;
        }
    }
    return false;
}

static bool take_word(struct run_args *a, const char *name, const char *value)
{
    const struct {
        const char *name, **at;
    } words[] = {
        {"queue", &a->run.queue},       {"name", &a->run.name},   {"cpu", &a->run.cpu},
        {"memory", &a->run.memory},     {"gpu", &a->run.gpu},     {"workdir", &a->run.workdir},
        {"priority", &a->run.priority}, {"image", &a->run.image}, {"output", &a->output}};

    for (size_t i = 0; i < HK_LEN(words); i++) {
        if (strcmp(name, words[i].name) == 0) {
            *words[i].at = value;
            return true;
        }
    }
    return false;
}

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct run_args *a = ctx;

    if (!row) {
        hk_vec_push(&a->words, value);
        return 0;
    }
    if (user_take(&a->user, row, value) || take_flag(a, row->name) ||
        take_word(a, row->name, value)) {
        return 0;
    }
    if (strcmp(row->name, "count") == 0) {
        return take_number(row, value, 1, &a->run.count, err);
    }
    if (strcmp(row->name, "min") == 0) {
        return take_number(row, value, 1, &a->run.min, err);
    }
    if (strcmp(row->name, "retries") == 0) {
        return take_number(row, value, 0, &a->run.retries, err);
    }
    if (strcmp(row->name, "time") == 0) {
        return make_run_time(value, &a->run.time_s, err);
    }
    if (strcmp(row->name, "env") == 0) {
        return take_env(a, value, err);
    }
    take_plugins(a, value);
    return 0;
}

/* ---- what was not said ---- */

static bool has_variable(const struct run_args *a, const char *name)
{
    for (uint32_t i = 0; i < a->env.len; i++) {
        if (strcmp(a->env.at[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void add_environment(struct run_args *a)
{
    for (char **e = environ; *e; e++) {
        const char *equals = strchr(*e, '=');
        if (equals && equals > *e) {
            const char *name = hk_arena_strndup(&a->mem, *e, (size_t)(equals - *e));
            if (!has_variable(a, name)) {
                hk_vec_push(&a->env, (struct make_env){name, equals + 1});
            }
        }
    }
}

static const char *make_name(struct run_args *a, struct hk_rand *rand)
{
    HK_AUTO(hk_buf_fini) struct hk_buf name = {0};

    make_run_name(a->words.at[0], rand, &name);
    return hk_arena_str(&a->mem, hk_buf_str(&name)).s;
}

static int set_workdir(struct run_args *a, struct hk_err *err)
{
    char here[PATH_MAX];

    if (a->run.workdir && a->run.workdir[0] == '\0') {
        a->run.workdir = NULL;
        return 0;
    }
    if (a->run.workdir && a->run.workdir[0] == '/') {
        return 0;
    }
    if (!getcwd(here, sizeof(here))) {
        return hk_fail(err, HK_EIO, "cannot tell the working directory, give --workdir: %m");
    }
    a->run.workdir = a->run.workdir ? hk_arena_printf(&a->mem, "%s/%s", here, a->run.workdir)
                                    : hk_arena_strndup(&a->mem, here, strlen(here));
    return 0;
}

static int complete(struct run_args *a, struct hk_err *err)
{
    struct make_run *r = &a->run;
    const char *image = getenv("VOLCANO_DEFAULT_IMAGE");

    if (a->gang && r->min > 0 && r->min != r->count) {
        return hk_fail(err, HK_EINVAL, "--gang and --min %lld of %lld tasks contradict each other",
                       (long long)r->min, (long long)r->count);
    }
    r->min = r->min > 0 ? r->min : a->gang ? r->count : 1;
    if (r->min > r->count) {
        return hk_fail(err, HK_EINVAL, "--min is %lld, want at most the %lld of --count",
                       (long long)r->min, (long long)r->count);
    }
    if (a->export_env) {
        add_environment(a);
    }
    r->cpu = r->cpu ? r->cpu : "1";
    r->image = r->image ? r->image : image && *image ? image : "busybox";
    r->env = a->env.at;
    r->nenv = a->env.len;
    r->plugins = a->plugins.at;
    r->nplugin = a->plugins.len;
    r->argv = a->words.at;
    r->argc = a->words.len;
    return set_workdir(a, err);
}

/* ---- submitting ---- */

static void write_as(const struct json *job, const char *format, struct hk_buf *out)
{
    if (strcmp(format, "json") == 0) {
        json_write_pretty(job, 4, out);
    } else if (strcmp(format, "yaml") == 0) {
        yaml_write(job, out);
    } else {
        hk_buf_addf(out, "job.batch.volcano.sh/%.*s\n",
                    HK_FMT(json_str(json_at(job, "metadata.name"), HK_STR(""))));
    }
}

/* The name is for scripts, and for people what they can do with it. Output of the tasks has
 * standard output for itself. */
static int announce(const struct run_args *a, const struct api_object *job)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    if (a->output) {
        write_as(&job->root, a->output, &out);
    } else if (a->after == DETACH) {
        hk_buf_addf(&out, "%.*s\n", HK_FMT(job->name));
    } else {
        fprintf(stderr, "hekla: job '%s' is submitted\n", a->run.name);
    }
    const int status = verb_print(&out);
    if (a->after == DETACH && !a->output && isatty(STDERR_FILENO)) {
        fprintf(
            stderr,
            "hekla: submitted; 'hekla logs -f %s' shows its output, 'hekla wait %s' waits for it\n",
            a->run.name, a->run.name);
    }
    return status;
}

static int follow(struct user *u, const struct run_args *a, struct api_object **ret_job,
                  struct hk_err *err)
{
    const struct logs_target t = logs_of_job(u, hk_str(a->run.name));
    struct logs_opts o = LOGS_OPTS_DEFAULT;

    o.how = (struct logline_how){.term = term_of(STDOUT_FILENO), .prefix = a->run.count > 1};
    return logs_follow(u, &o, &t, ret_job, err);
}

/* How it ended, for people on stderr and for scripts as the exit status. */
static int conclude(const struct run_args *a, const struct api_object *job)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};

    if (!job) {
        verb_complain("run: job '%s' was deleted", a->run.name);
        return USER_FAILED;
    }
    const int code = progress_exit_code(job);
    if (code != 0) {
        progress_write_failure(job, &why);
        verb_complain("run: job '%s' is %.*s%s%.*s (see 'hekla history %s')", a->run.name,
                      HK_FMT(progress_phase(job)), why.len > 0 ? ": " : "",
                      HK_FMT(hk_buf_str(&why)), a->run.name);
    }
    return code;
}

static int see_through(struct user *u, const struct run_args *a, int *ret, struct hk_err *err)
{
    HK_AUTO(api_object_unrefp) struct api_object *job = NULL;
    const char *const names[] = {a->run.name};
    const struct wait_opts w = {.goal = "ended", .quiet = true};
    int rc = user_catch(u, err);

    if (rc == 0) {
        rc = a->after == FOLLOW ? follow(u, a, &job, err)
                                : wait_jobs(u, names, 1, &w, ret, &job, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (u->interrupted) {
        fprintf(stderr,
                "hekla: detached from '%s', which goes on; 'hekla logs -f %s' follows it again, "
                "'hekla cancel %s' ends it\n",
                a->run.name, a->run.name, a->run.name);
        *ret = INTERRUPTED;
        return 0;
    }
    *ret = conclude(a, job);
    return 0;
}

static int submit(struct user *u, struct run_args *a, int *ret, struct hk_err *err)
{
    HK_AUTO(answer_fini) struct answer made = {0};
    struct port_request req = {.verb = PORT_CREATE, .kind = api_kind(API_JOB), .ns = hk_str(u->ns)};
    struct json body;

    a->run.ns = u->ns;
    a->run.name = a->run.name ? a->run.name : make_name(a, &u->ask.rand);
    int rc = make_run(&a->run, &u->mem, &body, err);
    if (rc < 0) {
        return rc;
    }
    req.body = &body;
    rc = ask(&u->ask, &req, &made, err);
    if (rc < 0) {
        return rc;
    }
    if (made.objects.len == 0) {
        return hk_fail(err, HK_EIO, "the server's answer holds no object");
    }
    if (announce(a, made.objects.at[0]) != EXIT_OK) {
        *ret = USER_TROUBLE;
        return 0;
    }
    *ret = USER_OK;
    return a->after == DETACH ? 0 : see_through(u, a, ret, err);
}

/* ---- the verb ---- */

static int print_only(struct run_args *a, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_clock *clock = hk_clock_system();
    struct hk_rand rand;
    struct json body;

    hk_rand_seed(&rand, (uint64_t)clock->wall_ns(clock));
    a->run.ns = a->user.ns ? a->user.ns : "default";
    a->run.name = a->run.name ? a->run.name : make_name(a, &rand);
    const int rc = make_run(&a->run, &a->mem, &body, err);
    if (rc < 0) {
        return rc;
    }
    write_as(&body, a->output ? a->output : "yaml", &out);
    return verb_print(&out) == EXIT_OK ? 0 : hk_fail(err, HK_EIO, "output ends here");
}

static int go(struct run_args *a, int *ret, struct hk_err *err)
{
    struct user u = {0};
    int rc = complete(a, err);

    if (rc < 0) {
        return rc;
    }
    if (a->dry_run) {
        *ret = USER_OK;
        return print_only(a, err);
    }
    rc = user_open(&u, &a->user, err);
    rc = rc < 0 ? rc : submit(&u, a, ret, err);
    user_close(&u);
    return rc;
}

static int run(const struct verb *v, int argc, char **argv)
{
    struct run_args a = {.run = {.count = 1}};
    struct hk_err err = {0};
    int status = USER_TROUBLE;
    int rc = verb_parse(v, argc, argv, take, &a);

    if (rc != 0) {
        status = user_parsed(rc);
    } else if (a.words.len == 0) {
        verb_complain("run: want a command, as in 'hekla run -n 4 -- ./train.sh {index}'");
    } else {
        rc = go(&a, &status, &err);
        status = rc < 0 ? user_fail(v, rc, &err) : status;
    }
    hk_vec_fini(&a.env);
    hk_vec_fini(&a.plugins);
    hk_vec_fini(&a.words);
    hk_arena_fini(&a.mem);
    return status;
}

const struct verb verb_run = {
    .name = "run",
    .args = "[--] COMMAND [ARGUMENT...]",
    .about = "submit a command as a job, and follow it if you like",
    .options = options,
    .noption = HK_LEN(options),
    .command = true,
    .text =
        "Makes a job of equal tasks that run the command, submits it and prints its name. In the "
        "command {index} stands for the task's index from 0 on, {count} for the number of tasks, "
        "and {name} or {job} for the name of the job; the variable VC_TASK_INDEX holds the index "
        "too. No shell looks at the command: for pipes and variables use sh -c.\n"
        "The tasks run in the directory where you are and with the variables you name, nothing "
        "else of your environment. Each one asks for one processor unless told otherwise, and "
        "starts when there is room for it; with --gang all start together. The job is done when "
        "all tasks have succeeded, and has failed when they have ended and one has not.\n"
        "With --follow or --wait the command returns when the job has ended. Ctrl-C then only "
        "lets go of the job, which goes on.",
    .rest =
        "EXIT STATUS\n"
        "       0 when the job was submitted and, with --follow or --wait, completed. 2 for bad\n"
        "       usage, no server or a job that was refused. Of a job that failed, the exit code\n"
        "       on which all failed tasks agree, else 1. 130 after Ctrl-C.\n\n"
        "EXAMPLES\n"
        "           hekla run -n 4 --gang --queue research -- ./train.sh {index}\n"
        "           hekla run --follow --memory 2Gi --time 10m -- make test\n"
        "           job=$(hekla run -n 100 -- ./part {index} {count}) && hekla wait $job\n",
    .run = run,
};
