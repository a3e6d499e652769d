// SPDX-License-Identifier: Apache-2.0
// hekla run: runs a command line as a job and reports how it ends.
#include "cli/make.h"
#include "cli/progress.h"
#include "codec/yaml.h"
#include "user/logs.h"
#include "user/wait.h"

#include <limits.h>
#include <unistd.h>

extern char **environ;

enum { INTERRUPTED = 130, MAX_TASKS = 1000000 };

enum after { DETACH, WAIT, FOLLOW };
enum run_output { RUN_YAML, RUN_JSON, RUN_NAME }; /* in the order of the choices of --output */

struct run_args {
    struct user_opts user;
    struct make_run run;
    bool gang, export_env, dry_run;
    enum after after;
    int output; /* enum run_output, negative: not given */
    HK_VEC(struct make_env) env;
    HK_VEC(const char *) plugins;
    struct option_list words;
    struct hk_arena mem;
};

/* ---- options ---- */

static int run_parse_env(void *at, const struct option_row *row, const char *value,
                         struct hk_err *err)
{
    struct run_args *a = at;
    struct hk_str rest = hk_str(value), name;

    hk_str_cut(&rest, '=', &name);
    if (name.n == 0) {
        return hk_fail(err, HK_EINVAL, "option --env is '%s', want NAME=VALUE or NAME", value);
    }
    const char *key = hk_arena_strndup(&a->mem, name.s, name.n);
    const char *text = rest.s ? rest.s : getenv(key);
    if (!text) {
        return hk_fail(err, HK_EINVAL, "option --env is '%s', but there is no such variable here",
                       value);
    }
    hk_vec_push(&a->env, (struct make_env){key, text});
    return 0;
}

/* The argument of a plugin may contain commas: it gets the rest. */
static int run_parse_plugins(void *at, const struct option_row *row, const char *value,
                             struct hk_err *err)
{
    struct run_args *a = at;
    struct hk_str rest = hk_str(value), part;

    if (strchr(value, '=')) {
        hk_vec_push(&a->plugins, value);
        return 0;
    }
    while (hk_str_cut(&rest, ',', &part)) {
        hk_vec_push(&a->plugins, hk_arena_strndup(&a->mem, part.s, part.n));
    }
    return 0;
}

static int run_parse_time(void *at, const struct option_row *row, const char *value,
                          struct hk_err *err)
{
    return make_run_time(value, at, err);
}

static const struct option_row options[] = {
    ROW_INT('n', "count", "N", struct run_args, run.count, 1, MAX_TASKS, "1",
            "How many tasks run the command."),
    ROW_FLAG('g', "gang", struct run_args, gang, "Start all tasks at the same time or none."),
    ROW_INT_OR(0, "min", "M", struct run_args, run.min, 1, MAX_TASKS, "1; with --gang, --count",
               "Start when M of the tasks can start."),
    ROW_TEXT_OR('q', "queue", "QUEUE", struct run_args, run.queue, "the server's default queue",
                "The queue."),
    ROW_TEXT_OR(0, "name", "NAME", struct run_args, run.name, "made from the name of the command",
                "The name of the job."),
    ROW_TEXT(0, "cpu", "AMOUNT", struct run_args, run.cpu, "1",
             "Processors for each task, such as 2 or 500m."),
    ROW_TEXT_OR(0, "memory", "AMOUNT", struct run_args, run.memory, "no limit",
                "Memory for each task, such as 4Gi. A task that uses more is killed."),
    ROW_TEXT_OR(0, "gpu", "N", struct run_args, run.gpu, "none", "GPUs for each task."),
    ROW_CALL_ALL('e', "env", "NAME[=VALUE]", run_parse_env, NULL,
                 "A variable for the command; without a value, the value it has here. May be given "
                 "more than once."),
    ROW_FLAG(0, "export-env", struct run_args, export_env,
             "Pass all variables as they are here. --env overrides them."),
    ROW_TEXT_OR('w', "workdir", "DIR", struct run_args, run.workdir, "this directory",
                "The working directory. An empty one leaves the choice to the image."),
    ROW_TEXT(0, "priority", "CLASS", struct run_args, run.priority, NULL, "The priority class."),
    ROW_INT(0, "retries", "N", struct run_args, run.retries, 0, MAX_TASKS, "0",
            "Restart up to N times after a failure: the whole job of a gang, else the task that "
            "failed."),
    ROW_CALL('t', "time", "LIMIT", struct run_args, run.time_s, run_parse_time, NULL,
             "The longest a task may run, such as 90s, 1h30m, 2:30:00 or 1-12:00:00. After that it "
             "is ended and has failed. Schedulers that plan ahead use it as the estimate."),
    ROW_TEXT_OR(0, "image", "IMAGE", struct run_args, run.image,
                "$VOLCANO_DEFAULT_IMAGE, else busybox",
                "The image, for clusters that run containers. 'hekla up' runs the command on the "
                "machine itself."),
    ROW_CALL_ALL('p', "plugin", "NAME[,NAME...]", run_parse_plugins, NULL,
                 "Job plugins besides env, such as svc, ssh or pytorch; NAME=ARGUMENT passes an "
                 "argument to one. May be given more than once. With pytorch the first task is the "
                 "master, the others are workers, and {index} is the rank."),
    ROW_FLAG(0, "literal", struct run_args, run.literal,
             "Do not replace {index} and the like in the command."),
    ROW_FLAG(0, "dry-run", struct run_args, dry_run,
             "Print the job and do not submit it. No server is needed."),
    {.type = OPTION_CHOICE,
     .letter = 'o',
     .name = "output",
     .arg = "FORMAT",
     .choices = "yaml json name",
     .offset = offsetof(struct run_args, output),
     .size = sizeof(int),
     .shown = "the bare name; with --dry-run, yaml",
     .help = "Print the job in this form."},
    ROW_SET('W', "wait", struct run_args, after, WAIT,
            "Return when the job has ended, with its outcome."),
    ROW_SET('f', "follow", struct run_args, after, FOLLOW,
            "Show the output of the tasks until the job has ended, as 'hekla logs -f' does."),
    ROW_SET('d', "detach", struct run_args, after, DETACH,
            "Return when the job is submitted. This is the default."),
    ROW_TEXT_OR(0, "namespace", "NAMESPACE", struct run_args, user.ns,
                "the one of the kubeconfig's context", "The namespace."),
    ROW_INCLUDE(struct run_args, user, user_server_options),
    ROW_COMMAND("COMMAND", struct run_args, words),
    ROW_END,
};

/* ---- defaults ---- */

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
        return hk_fail(err, HK_EIO, "cannot read the current directory, use --workdir: %m");
    }
    a->run.workdir = a->run.workdir ? hk_arena_printf(&a->mem, "%s/%s", here, a->run.workdir)
                                    : hk_arena_strndup(&a->mem, here, strlen(here));
    return 0;
}

static int run_check_args(struct run_args *a, struct hk_err *err)
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

static void write_as(const struct json *job, int output, struct hk_buf *out)
{
    if (output == RUN_JSON) {
        json_write_pretty(job, 4, out);
    } else if (output == RUN_YAML) {
        yaml_write(job, out);
    } else {
        hk_buf_addf(out, "job.batch.volcano.sh/%.*s\n",
                    HK_FMT(json_str(json_at(job, "metadata.name"), HK_STR(""))));
    }
}

/* Prints the name for scripts, and a hint for people on stderr. While the tasks' output is shown,
 * stdout is reserved for it. */
static int run_announce(const struct run_args *a, const struct api_object *job)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    if (a->output >= 0) {
        write_as(&job->root, a->output, &out);
    } else if (a->after == DETACH) {
        hk_buf_addf(&out, "%.*s\n", HK_FMT(job->name));
    } else {
        fprintf(stderr, "hekla: job '%s' is submitted\n", a->run.name);
    }
    const int status = verb_print(&out);
    if (a->after == DETACH && a->output < 0 && isatty(STDERR_FILENO)) {
        fprintf(
            stderr,
            "hekla: submitted; 'hekla logs -f %s' shows its output, 'hekla wait %s' waits for it\n",
            a->run.name, a->run.name);
    }
    return status;
}

static int run_follow(struct user *u, const struct run_args *a, struct api_object **ret_job,
                      struct hk_err *err)
{
    const struct logs_target t = logs_of_job(u, hk_str(a->run.name));
    struct logs_opts o = LOGS_OPTS_DEFAULT;

    o.how = (struct logline_how){.term = term_of(STDOUT_FILENO), .prefix = a->run.count > 1};
    return logs_follow(u, &o, &t, ret_job, err);
}

/* Reports the result: for people on stderr, for scripts as the exit status. */
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
        rc = a->after == FOLLOW ? run_follow(u, a, &job, err)
                                : wait_jobs(u, names, 1, &w, ret, &job, err);
    }
    if (rc < 0) {
        return rc;
    }
    if (u->interrupted) {
        fprintf(stderr,
                "hekla: detached from '%s', which continues; 'hekla logs -f %s' follows it again, "
                "'hekla cancel %s' ends it\n",
                a->run.name, a->run.name, a->run.name);
        *ret = INTERRUPTED;
        return 0;
    }
    *ret = conclude(a, job);
    return 0;
}

static int run_submit(struct user *u, struct run_args *a, int *ret, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer made = {0};
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
    if (run_announce(a, made.objects.at[0]) != EXIT_OK) {
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
    write_as(&body, a->output >= 0 ? a->output : RUN_YAML, &out);
    return verb_print(&out) == EXIT_OK ? 0 : hk_fail(err, HK_EIO, "cannot write the output");
}

static int go(struct run_args *a, int *ret, struct hk_err *err)
{
    struct user u = {0};
    int rc = run_check_args(a, err);

    if (rc < 0) {
        return rc;
    }
    if (a->dry_run) {
        *ret = USER_OK;
        return print_only(a, err);
    }
    rc = user_open(&u, &a->user, err);
    if (rc == 0) {
        rc = run_submit(&u, a, ret, err);
    }
    user_close(&u);
    return rc;
}

static int run_run(const struct verb *v, int argc, char **argv)
{
    struct run_args a = {.output = -1};
    struct hk_err err = {0};
    int status = USER_TROUBLE;
    int rc = verb_parse(v, argc, argv, &a);

    if (rc != 0) {
        status = user_parsed(rc);
    } else if (a.words.len == 0) {
        verb_complain("run: the command is missing, as in 'hekla run -n 4 -- ./train.sh {index}'");
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
    .text = "Makes a job of equal tasks that run the command, submits it and prints its name. In "
            "the command {index} stands for the index of the task, from 0 on, {count} for the "
            "number of tasks, and {name} or {job} for the name of the job; the variable "
            "VC_TASK_INDEX holds the index too. The command does not pass through a shell: use sh "
            "-c for pipes and variables.\n"
            "The tasks run in the current directory, with the variables that you name and no "
            "others of your environment. Each task requests one processor by default and starts "
            "when there is room for it; with --gang all start together. The job is completed when "
            "all tasks have succeeded, and has failed when all have ended and one has not "
            "succeeded.\n"
            "With --follow or --wait the command returns when the job has ended. Ctrl-C stops "
            "following; the job continues.",
    .rest =
        "EXIT STATUS\n"
        "       0 when the job was submitted and, with --follow or --wait, completed. 2 for bad\n"
        "       usage, no server or a refused job. For a failed job, the exit code that all "
        "failed\n"
        "       tasks share, else 1. 130 after Ctrl-C.\n\n"
        "EXAMPLES\n"
        "           hekla run -n 4 --gang --queue research -- ./train.sh {index}\n"
        "           hekla run --follow --memory 2Gi --time 10m -- make test\n"
        "           job=$(hekla run -n 100 -- ./part {index} {count}) && hekla wait $job\n",
    .run = run_run,
};
