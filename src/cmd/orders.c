// SPDX-License-Identifier: Apache-2.0
// hekla cancel, suspend, resume: commands for jobs.
#include "cli/make.h"
#include "cli/progress.h"
#include "user/user.h"

static const struct option_row options[] = {
    ROW_INCLUDE(struct user_each_args, user, user_namespace_options),
    ROW_INCLUDE(struct user_each_args, user, user_server_options),
    ROW_ARGUMENTS("JOB", struct user_each_args, names),
    ROW_END,
};

static int send_command(struct user *u, const struct api_object *job, const char *action,
                        struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer made = {0};
    const struct json body = make_command(job, u->ns, action, &u->mem);
    const struct port_request req = {
        .verb = PORT_CREATE, .kind = api_kind(API_COMMAND), .ns = hk_str(u->ns), .body = &body};

    return ask(&u->ask, &req, &made, err);
}

static int orders_delete_job(struct user *u, const struct api_object *job, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer last = {0};
    const struct port_request req = {.verb = PORT_DELETE,
                                     .kind = api_kind(API_JOB),
                                     .ns = job->ns,
                                     .name = job->name,
                                     .if_uid = job->uid};

    return ask(&u->ask, &req, &last, err);
}

/* Never guesses the name: the command deletes. */
static int orders_cancel(struct user *u, const char *name, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer job = {0};
    int rc = user_find(u, API_JOB, name, &job, err);

    if (rc < 0) {
        return rc;
    }
    rc = orders_delete_job(u, job.objects.at[0], err);
    if (rc == 0) {
        printf("%s cancelled\n", name);
    }
    return rc;
}

/* A command without effect is an error. */
static int fail_without_effect(const char *verb, const struct api_object *job, struct hk_err *err)
{
    return hk_fail(err, HK_EINVAL, "job '%.*s' is %.*s, there is nothing to %s", HK_FMT(job->name),
                   HK_FMT(progress_phase(job)), verb);
}

static int orders_suspend(struct user *u, const char *name, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer job = {0};
    int rc = user_get(u, API_JOB, name, &job, err);

    if (rc < 0) {
        return rc;
    }
    if (progress_is_over(job.objects.at[0])) {
        return fail_without_effect("suspend", job.objects.at[0], err);
    }
    rc = send_command(u, job.objects.at[0], "AbortJob", err);
    if (rc == 0) {
        printf("%s suspending\n", name);
    }
    return rc;
}

static int orders_resume(struct user *u, const char *name, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer job = {0};
    int rc = user_get(u, API_JOB, name, &job, err);

    if (rc < 0) {
        return rc;
    }
    if (!hk_str_starts(progress_phase(job.objects.at[0]), "Abort")) {
        return fail_without_effect("resume", job.objects.at[0], err);
    }
    rc = send_command(u, job.objects.at[0], "ResumeJob", err);
    if (rc == 0) {
        printf("%s resuming\n", name);
    }
    return rc;
}

#define MISSING "the name of a job is missing (see 'hekla jobs')"

static int cancel_run(const struct verb *v, int argc, char **argv)
{
    return user_each(v, argc, argv, MISSING, orders_cancel);
}

static int suspend_run(const struct verb *v, int argc, char **argv)
{
    return user_each(v, argc, argv, MISSING, orders_suspend);
}

static int resume_run(const struct verb *v, int argc, char **argv)
{
    return user_each(v, argc, argv, MISSING, orders_resume);
}

const struct verb verb_cancel = {
    .name = "cancel",
    .args = "JOB...",
    .about = "end jobs and delete them",
    .options = options,
    .text = "Deletes the jobs, as vcancel does: their pods are ended, and the jobs disappear from "
            "the lists.",
    .rest = USER_EXIT_STATUS,
    .run = cancel_run,
};

const struct verb verb_suspend = {
    .name = "suspend",
    .args = "JOB...",
    .about = "end the pods of jobs for now, and keep the jobs",
    .options = options,
    .text = "Aborts the jobs, as vsuspend does: their pods are ended and free their room for "
            "others until 'hekla resume'. Tasks that have succeeded stay done.",
    .rest = USER_EXIT_STATUS,
    .run = suspend_run,
};

const struct verb verb_resume = {
    .name = "resume",
    .args = "JOB...",
    .about = "restart suspended jobs",
    .options = options,
    .text = "Restarts suspended jobs, as vresume does: they wait in their queue like new jobs.",
    .rest = USER_EXIT_STATUS,
    .run = resume_run,
};
