// SPDX-License-Identifier: Apache-2.0
// Commands in pods, for several verbs: finds the server, pod and container, and runs a command
// there with its streams on local descriptors.
#pragma once

#include "user/user.h"

/* Exit status for a local failure, not one of the command; as in ssh. */
enum { REMOTE_TROUBLE = 255 };

struct remote_opts {
    struct user_opts user;
    const char *container;
};

/* The options, for the table of a verb. */
extern const struct option_row remote_options[];

struct remote {
    struct user user;
    const char *wanted;          /* the container; NULL: not given */
    const char *pod, *container; /* set by remote_find */
};

/* Does not connect. On failure, call remote_close() anyway. */
int remote_open(struct remote *r, const struct remote_opts *o, struct hk_err *err) HK_CHECKED;
void remote_close(struct remote *r);
/* Finds the pod with that name, or a running one of a job: JOB[/TASK[/INDEX]]. */
int remote_find(struct remote *r, const char *typed, struct hk_err *err) HK_CHECKED;

/* A command for the pod that was found. Descriptors are borrowed; -1: none. */
struct remote_command {
    const char *const *argv; /* ended by NULL */
    int in, out, err_out;
    bool tty; /* in is a local terminal for all streams, raw during the call; err_out is unused */
};
/* Returns when the command has ended: its exit code, or negative. */
int remote_run(struct remote *r, const struct remote_command *c, struct hk_err *err);
