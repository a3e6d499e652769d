// SPDX-License-Identifier: Apache-2.0
// hekla exec: runs a command in a running pod.
#include "user/remote.h"

#include <unistd.h>

struct exec {
    struct remote_opts o;
    bool in, tty;
    const char *target;
    struct option_list argv;
};

static const struct option_row options[] = {
    ROW_FLAG('i', "stdin", struct exec, in, "Pass standard input to the command."),
    ROW_FLAG('t', "tty", struct exec, tty,
             "Give the command a terminal that stands for this one: keys are passed on as they "
             "are, and its size follows."),
    ROW_INCLUDE(struct exec, o, remote_options),
    ROW_ARGUMENT("POD|JOB", struct exec, target),
    ROW_ARGUMENTS("COMMAND", struct exec, argv),
    ROW_END,
};

static int run_in_pod(struct exec *x, struct hk_err *err)
{
    HK_AUTO(remote_close) struct remote r;
    int rc = remote_open(&r, &x->o, err);

    if (rc < 0) {
        return rc;
    }
    rc = remote_find(&r, x->target, err);
    if (rc < 0) {
        return rc;
    }
    return remote_run(&r,
                      &(struct remote_command){.argv = x->argv.at,
                                               .in = x->in ? STDIN_FILENO : -1,
                                               .out = STDOUT_FILENO,
                                               .err_out = STDERR_FILENO,
                                               .tty = x->tty},
                      err);
}

static int exec_run(const struct verb *v, int argc, char **argv)
{
    struct exec x = {0};
    struct hk_err err = {0};
    const int rc = verb_parse(v, argc, argv, &x);

    if (rc != 0) {
        hk_vec_fini(&x.argv);
        return rc < 0 ? REMOTE_TROUBLE : EXIT_OK;
    }
    if (x.argv.len == 0) {
        verb_complain("exec: %s missing (see 'hekla help exec')",
                      x.target ? "the command behind '--' is" : "a pod or job and a command are");
        hk_vec_fini(&x.argv);
        return REMOTE_TROUBLE;
    }
    hk_vec_push(&x.argv, NULL);
    if (x.tty && (!x.in || !isatty(STDIN_FILENO))) {
        fprintf(stderr, "hekla: exec: %s: continuing without a terminal\n",
                x.in ? "standard input is not a terminal" : "--tty needs --stdin");
        x.tty = false;
    }
    const int code = run_in_pod(&x, &err);
    hk_vec_fini(&x.argv);
    if (code < 0) {
        user_fail(v, code, &err);
        return REMOTE_TROUBLE;
    }
    return code;
}

const struct verb verb_exec = {
    .name = "exec",
    .args = "POD|JOB[/TASK[/INDEX]] -- COMMAND...",
    .about = "run a command in a pod",
    .options = options,
    .text = "Runs a command beside the process of a running container: with its files, limits, "
            "user and environment. Output is shown as it is written, and the command ends when "
            "hekla exec does.\n"
            "The name of a job stands for one of its pods, JOB/TASK for one pod of that task, and "
            "JOB/TASK/INDEX for exactly that pod. Everything behind '--' is the command.",
    .rest = "EXAMPLES\n"
            "       hekla exec train -- nvidia-smi\n"
            "       hekla exec -it train/worker/3 -- bash\n"
            "       hekla exec -i train -- tar xf - <data.tar\n"
            "\n"
            "EXIT STATUS\n"
            "       That of the command; 126 when it could not be run, 127 when it was not found,\n"
            "       255 for every other failure.\n",
    .run = exec_run,
};
