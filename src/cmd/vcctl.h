// SPDX-License-Identifier: Apache-2.0
// vcctl and its short forms.
//
//   vcctl.c        finds the command, connects, and reports the result
//   vcctl_job.c    jobs       vcctl_queue.c  queues
//   vcctl_flow.c   flows and templates        vcctl_pod.c    pods
#pragma once

#include "cli/command.h"
#include "user/ask.h"

/* Runs the program with the arguments after its name; returns the exit status. */
int vcctl_main(const struct command *program, int argc, char **argv);

/* A running command. */
struct vcctl {
    const struct command_line *line;
    struct ask ask;
    struct hk_arena mem;
    struct hk_buf out; /* printed at the end, even after a failure */
    int64_t now_ns;
};

/* Runs a command. On failure, err holds the reason. */
typedef int vcctl_fn(struct vcctl *v, struct hk_err *err);

vcctl_fn vcctl_job_run, vcctl_job_list, vcctl_job_view, vcctl_job_suspend, vcctl_job_resume,
    vcctl_job_delete;
vcctl_fn vcctl_vsub, vcctl_vjobs, vcctl_vcancel;
vcctl_fn vcctl_queue_create, vcctl_queue_delete, vcctl_queue_get, vcctl_queue_list,
    vcctl_queue_operate, vcctl_vqueues;
vcctl_fn vcctl_flow_create, vcctl_flow_delete, vcctl_flow_get, vcctl_flow_list, vcctl_flow_describe;
vcctl_fn vcctl_template_create, vcctl_template_delete, vcctl_template_get, vcctl_template_list,
    vcctl_template_describe;
vcctl_fn vcctl_pod_list;

/* The value of a flag. */
const char *vcctl_value(const struct vcctl *v, const char *flag);
/* The namespace flag; "" with --all-namespaces. */
const char *vcctl_list_ns(const struct vcctl *v);

/* Common requests. Objects are added to ret. */
int vcctl_get(struct vcctl *v, enum api_kind_id kind, const char *ns, const char *name,
              struct port_answer *ret, struct hk_err *err) HK_CHECKED;
int vcctl_list(struct vcctl *v, enum api_kind_id kind, const char *ns, struct port_answer *ret,
               struct hk_err *err) HK_CHECKED;
int vcctl_create(struct vcctl *v, enum api_kind_id kind, const char *ns, const struct json *body,
                 struct port_answer *ret, struct hk_err *err) HK_CHECKED;
int vcctl_delete(struct vcctl *v, enum api_kind_id kind, const char *ns, const char *name,
                 struct hk_err *err) HK_CHECKED;
/* Reads the target and requests the action with a Command in command_ns. */
int vcctl_order(struct vcctl *v, enum api_kind_id kind, const char *ns, const char *name,
                const char *command_ns, const char *action, struct hk_err *err) HK_CHECKED;
/* Reads a manifest; the error is "open PATH: why". */
int vcctl_read(const char *path, struct hk_buf *ret, struct hk_err *err) HK_CHECKED;
