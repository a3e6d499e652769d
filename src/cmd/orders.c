// SPDX-License-Identifier: Apache-2.0
// hekla cancel, suspend, resume: what is done to jobs.
#include "cli/make.h"
#include "cli/progress.h"
#include "cmd/user.h"

struct order_args {
    struct user_opts user;
    HK_VEC(const char *) names;
};

static const struct option_row options[] = {USER_OPTION_NAMESPACE, USER_OPTIONS_SERVER};

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct order_args *a = ctx;

    if (row) {
        user_take(&a->user, row, value);
    } else {
        hk_vec_push(&a->names, user_name(value));
    }
    return 0;
}

static int send_command(struct user *u, const struct api_object *job, const char *action,
                        struct hk_err *err)
{
    HK_AUTO(answer_fini) struct answer made = {0};
    const struct json body = make_command(job, u->ns, action, &u->mem);
    const struct port_request req = {
        .verb = PORT_CREATE, .kind = api_kind(API_COMMAND), .ns = hk_str(u->ns), .body = &body};

    return ask(&u->ask, &req, &made, err);
}

static int delete_job(struct user *u, const struct api_object *job, struct hk_err *err)
{
    HK_AUTO(answer_fini) struct answer last = {0};
    const struct port_request req = {.verb = PORT_DELETE,
                                     .kind = api_kind(API_JOB),
                                     .ns = job->ns,
                                     .name = job->name,
                                     .if_uid = job->uid};

    return ask(&u->ask, &req, &last, err);
}

/* An order that would have no effect is a mistake. */
static int check(const struct verb *v, const struct api_object *job, struct hk_err *err)
{
    const struct hk_str phase = progress_phase(job);
    const bool aborted = hk_str_starts(phase, "Abort");

    if ((v == &verb_suspend && progress_is_over(job)) || (v == &verb_resume && !aborted)) {
        return hk_fail(err, HK_EINVAL, "job '%.*s' is %.*s, there is nothing to %s",
                       HK_FMT(job->name), HK_FMT(phase), v->name);
    }
    return 0;
}

static int obey(struct user *u, const struct verb *v, const char *name, struct hk_err *err)
{
    HK_AUTO(answer_fini) struct answer job = {0};
    const char *done = "cancelled";
    int rc = user_get(u, API_JOB, name, &job, err);

    rc = rc < 0 ? rc : check(v, job.objects.at[0], err);
    if (rc < 0) {
        return rc;
    }
    if (v == &verb_cancel) {
        rc = delete_job(u, job.objects.at[0], err);
    } else {
        done = v == &verb_suspend ? "suspending" : "resuming";
        rc = send_command(u, job.objects.at[0], v == &verb_suspend ? "AbortJob" : "ResumeJob", err);
    }
    if (rc == 0) {
        printf("%s %s\n", name, done);
    }
    return rc;
}

/* One that cannot be obeyed does not save the others. */
static int run(const struct verb *v, int argc, char **argv)
{
    struct order_args a = {0};
    struct user u = {0};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, take, &a), status = USER_OK;

    if (rc != 0) {
        status = user_parsed(rc);
    } else if (a.names.len == 0) {
        verb_complain("%s: want the names of jobs (see 'hekla jobs')", v->name);
        status = USER_TROUBLE;
    } else {
        rc = user_open(&u, &a.user, &err);
        status = rc < 0 ? user_fail(v, rc, &err) : USER_OK;
        for (uint32_t i = 0; rc == 0 && i < a.names.len; i++) {
            const int one = obey(&u, v, a.names.at[i], &err);
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
    .names = "jobs",
    .about = "end jobs and remove them",
    .options = options,
    .noption = HK_LEN(options),
    .text = "Deletes the jobs, as vcancel does: what runs of them is ended, and they are gone from "
            "the lists.",
    .rest = USER_EXIT_STATUS,
    .run = run,
};

const struct verb verb_suspend = {
    .name = "suspend",
    .args = "JOB...",
    .names = "jobs",
    .about = "end the pods of jobs for now, and keep the jobs",
    .options = options,
    .noption = HK_LEN(options),
    .text = "Asks for the jobs to be aborted, as vsuspend does: their pods are ended and their "
            "room is free for others until 'hekla resume'. What has succeeded stays done.",
    .rest = USER_EXIT_STATUS,
    .run = run,
};

const struct verb verb_resume = {
    .name = "resume",
    .args = "JOB...",
    .names = "jobs",
    .about = "let suspended jobs go on",
    .options = options,
    .noption = HK_LEN(options),
    .text = "Asks for suspended jobs to be started again, as vresume does: they wait in their "
            "queue as if they were new.",
    .rest = USER_EXIT_STATUS,
    .run = run,
};
