// SPDX-License-Identifier: Apache-2.0
// hekla exec: a command in a pod that runs.
#include "cmd/remote.h"

#include <unistd.h>

static const struct option_row options[] = {
    {'i', "stdin", NULL, NULL, "Pass standard input to the command."},
    {'t', "tty", NULL, NULL,
     "Give the command a terminal, which takes the place of this one: keys go to it as they are, "
     "and its size follows."},
    REMOTE_OPTIONS,
};

struct exec {
    struct remote_opts o;
    bool in, tty;
    const char *target;
    HK_VEC(const char *) argv;
};

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct exec *x = ctx;

    if (!row) {
        if (!x->target) {
            x->target = value;
        } else {
            hk_vec_push(&x->argv, value);
        }
    } else if (row->letter == 'i') {
        x->in = true;
    } else if (row->letter == 't') {
        x->tty = true;
    } else {
        remote_take(&x->o, row, value);
    }
    return 0;
}

static int run_in_pod(struct exec *x, struct hk_err *err)
{
    struct remote r;
    int rc = remote_open(&r, &x->o, err);

    rc = rc < 0 ? rc : remote_find(&r, x->target, err);
    if (rc == 0) {
        rc = remote_run(&r,
                        &(struct remote_command){.argv = x->argv.at,
                                                 .in = x->in ? STDIN_FILENO : -1,
                                                 .out = STDOUT_FILENO,
                                                 .err_out = STDERR_FILENO,
                                                 .tty = x->tty},
                        err);
    }
    remote_close(&r);
    return rc;
}

static int run(const struct verb *v, int argc, char **argv)
{
    struct exec x = {0};
    struct hk_err err = {0};
    const int rc = verb_parse(v, argc, argv, take, &x);

    if (rc != 0) {
        hk_vec_fini(&x.argv);
        return rc < 0 ? REMOTE_TROUBLE : EXIT_OK;
    }
    if (x.argv.len == 0) {
        verb_complain("exec: want a %s (see 'hekla help exec')",
                      x.target ? "command behind '--'" : "pod or job, and a command");
        hk_vec_fini(&x.argv);
        return REMOTE_TROUBLE;
    }
    hk_vec_push(&x.argv, NULL);
    if (x.tty && (!x.in || !isatty(STDIN_FILENO))) {
        fprintf(stderr, "hekla: exec: %s: going on without a terminal\n",
                x.in ? "standard input is no terminal" : "a terminal wants standard input, -i");
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
    .noption = HK_LEN(options),
    .text = "Runs a command beside the process of a container that runs: with its files, its "
            "limits, its user and environment. Output comes as it is written, and the command ends "
            "when this one does.\n"
            "The name of a job stands for one of its pods, JOB/TASK for one of that task, and "
            "JOB/TASK/INDEX for exactly that one. Everything behind '--' is the command.",
    .rest = "EXAMPLES\n"
            "       hekla exec train -- nvidia-smi\n"
            "       hekla exec -it train/worker/3 -- bash\n"
            "       hekla exec -i train -- tar xf - <data.tar\n"
            "\n"
            "EXIT STATUS\n"
            "       The command's; 126 when it could not be run, 127 when there is none of that\n"
            "       name, 255 when something else went wrong.\n",
    .run = run,
};
