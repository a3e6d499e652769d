// SPDX-License-Identifier: Apache-2.0
// hekla cancel, suspend, resume: commands for jobs.
#include "cli/make.h"
#include "cli/progress.h"
#include "cmd/user.h"

struct order_args {
    struct user_opts user;
    struct option_list names;
};

static const struct option_row options[] = {
    ROW_INCLUDE(struct order_args, user, user_namespace_options),
    ROW_INCLUDE(struct order_args, user, user_server_options),
    ROW_ARGUMENTS("JOB", struct order_args, names),
    ROW_END,
};

static int send_command(struct user *u, const struct api_object *job, const char *action,
                        struct hk_err *err)
{
    HK_AUTO(answer_fini) struct answer made = {0};
    const struct json body = make_command(job, u->ns, action, &u->mem);
    const struct port_request req = {
        .verb = PORT_CREATE, .kind = api_kind(API_COMMAND), .ns = hk_str(u->ns), .body = &body};

    return ask(&u->ask, &req, &made, err);
}

static int orders_delete_job(struct user *u, const struct api_object *job, struct hk_err *err)
{
    HK_AUTO(answer_fini) struct answer last = {0};
    const struct port_request req = {.verb = PORT_DELETE,
                                     .kind = api_kind(API_JOB),
                                     .ns = job->ns,
                                     .name = job->name,
                                     .if_uid = job->uid};

    return ask(&u->ask, &req, &last, err);
}

/* A command without effect is an error. */
static int orders_check(const struct verb *v, const struct api_object *job, struct hk_err *err)
{
    const struct hk_str phase = progress_phase(job);
    const bool aborted = hk_str_starts(phase, "Abort");

    if ((v == &verb_suspend && progress_is_over(job)) || (v == &verb_resume && !aborted)) {
        return hk_fail(err, HK_EINVAL, "job '%.*s' is %.*s, there is nothing to %s",
                       HK_FMT(job->name), HK_FMT(phase), v->name);
    }
    return 0;
}

static int orders_execute(struct user *u, const struct verb *v, const char *name,
                          struct hk_err *err)
{
    HK_AUTO(answer_fini) struct answer job = {0};
    const char *done = "cancelled";
    /* Never guess the name for a command that deletes. */
    int rc = v == &verb_cancel ? user_find(u, API_JOB, name, &job, err)
                               : user_get(u, API_JOB, name, &job, err);

    rc = rc < 0 ? rc : orders_check(v, job.objects.at[0], err);
    if (rc < 0) {
        return rc;
    }
    if (v == &verb_cancel) {
        rc = orders_delete_job(u, job.objects.at[0], err);
    } else {
        done = v == &verb_suspend ? "suspending" : "resuming";
        rc = send_command(u, job.objects.at[0], v == &verb_suspend ? "AbortJob" : "ResumeJob", err);
    }
    if (rc == 0) {
        printf("%s %s\n", name, done);
    }
    return rc;
}

/* Continues with the other jobs after a failure. */
static int orders_run(const struct verb *v, int argc, char **argv)
{
    struct order_args a = {0};
    struct user u = {0};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &a), status = USER_OK;

    if (rc != 0) {
        status = user_parsed(rc);
    } else if (a.names.len == 0) {
        verb_complain("%s: the name of a job is missing (see 'hekla jobs')", v->name);
        status = USER_TROUBLE;
    } else {
        user_names(&a.names);
        rc = user_open(&u, &a.user, &err);
        status = rc < 0 ? user_fail(v, rc, &err) : USER_OK;
        for (uint32_t i = 0; rc == 0 && i < a.names.len; i++) {
            const int one = orders_execute(&u, v, a.names.at[i], &err);
            status = one < 0 ? user_fail(v, one, &err) : status;
        }
        user_close(&u);
    }
    hk_vec_fini(&a.names);
    return status;
}

const struct verb verb_cancel = {
    .name = "cancel",
    .args = "JOB...",
    .about = "end jobs and delete them",
    .options = options,
    .text = "Deletes the jobs, as vcancel does: their pods are ended, and the jobs disappear from "
            "the lists.",
    .rest = USER_EXIT_STATUS,
    .run = orders_run,
};

const struct verb verb_suspend = {
    .name = "suspend",
    .args = "JOB...",
    .about = "end the pods of jobs for now, and keep the jobs",
    .options = options,
    .text = "Aborts the jobs, as vsuspend does: their pods are ended and free their room for "
            "others until 'hekla resume'. Tasks that have succeeded stay done.",
    .rest = USER_EXIT_STATUS,
    .run = orders_run,
};

const struct verb verb_resume = {
    .name = "resume",
    .args = "JOB...",
    .about = "restart suspended jobs",
    .options = options,
    .text = "Restarts suspended jobs, as vresume does: they wait in their queue like new jobs.",
    .rest = USER_EXIT_STATUS,
    .run = orders_run,
};
