// SPDX-License-Identifier: Apache-2.0
// hekla wait: waits until jobs reach a goal.
#include "user/wait.h"

struct wait_args {
    struct user_opts user;
    struct wait_opts wait;
    struct option_list names;
};

static int wait_parse_goal(void *at, const struct option_row *row, const char *value,
                           struct hk_err *err)
{
    *(const char **)at = value;
    return wait_check(value, err);
}

static const struct option_row options[] = {
    ROW_CALL(0, "for", "GOAL", struct wait_args, wait.goal, wait_parse_goal, "completed",
             "What to wait for: completed, running, ended (in any way), deleted, any other phase "
             "of jobs, or condition=PHASE for a phase that the job has been in at any time."),
    ROW_DURATION(0, "timeout", struct wait_args, wait.timeout_ns, 1, NULL,
                 "Give up after this time, such as 90s or 1h30m. Without this option the command "
                 "never gives up."),
    ROW_FLAG_OFF(0, "all", struct wait_args, wait.any,
                 "Wait until every job has reached the goal. This is the default."),
    ROW_FLAG(0, "any", struct wait_args, wait.any,
             "Wait until one of the jobs has reached the goal."),
    ROW_FLAG('q', "quiet", struct wait_args, wait.quiet,
             "Print nothing; the exit status is the answer."),
    ROW_INCLUDE(struct wait_args, user, user_namespace_options),
    ROW_INCLUDE(struct wait_args, user, user_server_options),
    ROW_ARGUMENTS("JOB", struct wait_args, names),
    ROW_END,
};

/* A missing job is an error, unless the goal is its deletion. */
static int wait_check_names(struct user *u, const struct wait_args *a, struct hk_err *err)
{
    for (uint32_t i = 0; strcmp(a->wait.goal, "deleted") != 0 && i < a->names.len; i++) {
        HK_AUTO(port_answer_fini) struct port_answer job = {0};
        const int rc = user_get(u, API_JOB, a->names.at[i], &job, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int wait_as_asked(struct user *u, const struct wait_args *a, int *ret, struct hk_err *err)
{
    int rc = wait_check_names(u, a, err);

    if (rc == 0) {
        rc = wait_jobs(u, a->names.at, a->names.len, &a->wait, ret, NULL, err);
    }
    if (rc == 0 && *ret == USER_TIMEOUT) {
        verb_complain(
            "wait: time is up and the goal is not reached ('hekla jobs' shows why a job waits)");
    }
    return rc;
}

static int wait_run(const struct verb *v, int argc, char **argv)
{
    struct wait_args a = {0};
    struct user u;
    struct hk_err err = {0};
    int status = USER_TROUBLE;
    int rc = verb_parse(v, argc, argv, &a);

    if (rc != 0) {
        status = user_parsed(rc);
    } else if (a.names.len == 0) {
        verb_complain("wait: the name of a job is missing (see 'hekla jobs')");
    } else {
        user_names(&a.names);
        rc = user_open(&u, &a.user, &err);
        if (rc == 0) {
            rc = wait_as_asked(&u, &a, &status, &err);
        }
        status = rc < 0 ? user_fail(v, rc, &err) : status;
        user_close(&u);
    }
    hk_vec_fini(&a.names);
    return status;
}

const struct verb verb_wait = {
    .name = "wait",
    .args = "JOB...",
    .about = "wait until jobs have completed, run, or have reached another phase",
    .options = options,
    .text = "Returns when every job has reached the goal, or cannot reach it any more because it "
            "has ended otherwise; with --any, when the first job has reached it. Prints the name "
            "and the phase of each job that gets there. On a terminal it shows the progress of "
            "the jobs.\n"
            "The command watches the jobs; it does not poll.",
    .rest = "EXIT STATUS\n"
            "       0 when the goal was reached, 1 when a job ended otherwise (failed, aborted,\n"
            "       deleted), 2 for bad usage, no server or no such job, 124 when time was up.\n\n"
            "EXAMPLES\n"
            "           hekla wait train --timeout 2h && hekla logs train\n"
            "           hekla wait a b c --any --for running\n",
    .run = wait_run,
};
