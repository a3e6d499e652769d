// SPDX-License-Identifier: Apache-2.0
// The commands for jobs.
#include "cli/make.h"
#include "cli/show.h"
#include "cmd/vcctl.h"

#include <stdlib.h>

/* ---- run ---- */

static int vcctl_job_create_job(struct vcctl *v, const char *ns, const struct json *body,
                                struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer made = {0};
    const int rc = vcctl_create(v, API_JOB, ns, body, &made, err);

    if (rc == 0 && made.objects.len > 0) {
        hk_buf_addf(&v->out, "run job %.*s successfully\n", HK_FMT(made.objects.at[0]->name));
    }
    return rc;
}

static int run_job(struct vcctl *v, const struct make_job *j, struct hk_err *err)
{
    struct json body;
    const int rc = make_job(j, &v->mem, &body, err);

    return rc < 0 ? rc : vcctl_job_create_job(v, j->ns, &body, err);
}

static int vcctl_job_run_file(struct vcctl *v, const char *path, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_err why = {0};
    struct json body;

    if (!strstr(path, ".yaml") && !strstr(path, ".yml")) {
        return hk_fail(err, HK_EINVAL, "only support yaml file");
    }
    int rc = vcctl_read(path, &text, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "failed to read file, err");
    }
    rc = make_from_text(API_JOB, hk_buf_str(&text), &v->mem, &body, &why);
    if (rc < 0) {
        return hk_fail(err, HK_EINVAL, "failed to unmarshal file, err:  %s", why.text);
    }
    return vcctl_job_create_job(v, vcctl_value(v, "namespace"), &body, err);
}

static struct make_job job_of_flags(const struct vcctl *v)
{
    return (struct make_job){.name = vcctl_value(v, "name"),
                             .ns = vcctl_value(v, "namespace"),
                             .scheduler = vcctl_value(v, "scheduler"),
                             .image = vcctl_value(v, "image"),
                             .requests = vcctl_value(v, "requests"),
                             .limits = vcctl_value(v, "limits"),
                             .command = "",
                             .min = command_int(v->line, "min"),
                             .replicas = command_int(v->line, "replicas")};
}

int vcctl_job_run(struct vcctl *v, struct hk_err *err)
{
    const char *path = vcctl_value(v, "filename");
    const struct make_job j = job_of_flags(v);
    struct json list;
    int rc;

    if (path[0] == '\0' && j.name[0] == '\0') {
        return hk_fail(err, HK_EINVAL, "job name cannot be left blank");
    }
    if (path[0] == '\0') {
        return run_job(v, &j, err);
    }
    /* Check the resource flags first, although the file overrides them. */
    rc = make_resources(j.requests, &v->mem, &list, err);
    if (rc < 0) {
        return rc;
    }
    rc = make_resources(j.limits, &v->mem, &list, err);
    return rc < 0 ? rc : vcctl_job_run_file(v, path, err);
}

/* The flag (even if empty), else the environment variable, else the default. */
static const char *flag_or_env(const struct vcctl *v, const char *flag, const char *variable,
                               const char *last)
{
    const char *value = getenv(variable);

    if (command_has(v->line, flag)) {
        return vcctl_value(v, flag);
    }
    return value && value[0] != '\0' ? value : last;
}

int vcctl_vsub(struct vcctl *v, struct hk_err *err)
{
    struct make_job j = job_of_flags(v);

    j.command = vcctl_value(v, "command");
    j.image = flag_or_env(v, "image", "VOLCANO_DEFAULT_IMAGE", "busybox");
    j.ns = flag_or_env(v, "namespace", "VOLCANO_DEFAULT_JOB_NAMESPACE", "default");
    j.scheduler = flag_or_env(v, "scheduler", "VOLCANO_SCHEDULER_NAME", "volcano");
    if (j.name[0] == '\0') {
        return hk_fail(err, HK_EINVAL, "job name cannot be left blank");
    }
    return run_job(v, &j, err);
}

/* ---- list and view ---- */

static int vcctl_job_list_jobs(struct vcctl *v, const char *queue, bool loose, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer jobs = {0};
    const struct show_jobs how = {
        {queue, vcctl_value(v, "scheduler"), vcctl_value(v, "selector")},
        command_bool(v->line, "all-namespaces"),
        loose,
    };
    const int rc = vcctl_list(v, API_JOB, vcctl_list_ns(v), &jobs, err);

    if (rc == 0) {
        show_jobs(jobs.objects.at, jobs.objects.len, &how, &v->out);
    }
    return rc;
}

int vcctl_job_list(struct vcctl *v, struct hk_err *err)
{
    return vcctl_job_list_jobs(v, vcctl_value(v, "queue"), false, err);
}

static int view_job(struct vcctl *v, bool conditions, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer job = {0}, events = {0};
    const char *ns = vcctl_value(v, "namespace");
    struct hk_err why = {0};
    const int rc = vcctl_get(v, API_JOB, ns, vcctl_value(v, "name"), &job, err);

    if (rc < 0) {
        return rc;
    }
    if (vcctl_list(v, API_EVENT, ns, &events, &why) < 0) {
        fprintf(stderr, "Failed to list events: %s\n", why.text);
    }
    show_job(&job.objects.at[0]->root, conditions, &v->out);
    show_events(job.objects.at[0]->name, events.objects.at, events.objects.len, v->now_ns, &v->out);
    return 0;
}

int vcctl_job_view(struct vcctl *v, struct hk_err *err)
{
    if (vcctl_value(v, "name")[0] == '\0') {
        return hk_fail(
            err, HK_EINVAL,
            "job name (specified by --name or -N) is mandatory to view a particular job");
    }
    return view_job(v, true, err);
}

int vcctl_vjobs(struct vcctl *v, struct hk_err *err)
{
    return vcctl_value(v, "name")[0] != '\0' ? view_job(v, false, err)
                                             : vcctl_job_list_jobs(v, "", true, err);
}

/* ---- suspend, resume and delete ---- */

static int vcctl_job_want_name(const struct vcctl *v, const char *verb, struct hk_err *err)
{
    if (vcctl_value(v, "name")[0] == '\0') {
        return hk_fail(err, HK_EINVAL, "job name is mandatory to %s a particular job", verb);
    }
    return 0;
}

static int vcctl_job_send_command(struct vcctl *v, const char *verb, const char *action,
                                  struct hk_err *err)
{
    const char *ns = vcctl_value(v, "namespace");
    const int rc = vcctl_job_want_name(v, verb, err);

    return rc < 0 ? rc : vcctl_order(v, API_JOB, ns, vcctl_value(v, "name"), ns, action, err);
}

int vcctl_job_suspend(struct vcctl *v, struct hk_err *err)
{
    return vcctl_job_send_command(v, "suspend", "AbortJob", err);
}

int vcctl_job_resume(struct vcctl *v, struct hk_err *err)
{
    return vcctl_job_send_command(v, "resume", "ResumeJob", err);
}

static int vcctl_job_delete_job(struct vcctl *v, const char *verb, struct hk_err *err)
{
    const char *name = vcctl_value(v, "name");
    int rc = vcctl_job_want_name(v, verb, err);

    if (rc == 0) {
        rc = vcctl_delete(v, API_JOB, vcctl_value(v, "namespace"), name, err);
    }
    if (rc == 0) {
        hk_buf_addf(&v->out, "%s job %s successfully\n", verb, name);
    }
    return rc;
}

int vcctl_job_delete(struct vcctl *v, struct hk_err *err)
{
    return vcctl_job_delete_job(v, "delete", err);
}

int vcctl_vcancel(struct vcctl *v, struct hk_err *err)
{
    return vcctl_job_delete_job(v, "cancel", err);
}
