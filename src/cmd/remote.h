// SPDX-License-Identifier: Apache-2.0
// Commands in pods, for the verbs that run some: where the server is, which pod and container are
// meant, and a command there with its streams on descriptors here.
#pragma once

#include "cmd/user.h"

/* What failed here, and not in the pod; as ssh has it. */
enum { REMOTE_TROUBLE = 255 };

struct remote_opts {
    struct user_opts user;
    const char *container;
};

#define REMOTE_OPTIONS                                                                             \
    USER_OPTION_NAMESPACE,                                                                         \
        {'c', "container", "CONTAINER", NULL,                                                      \
         "The container (default: the pod's first, or the one its annotation "                     \
         "kubectl.kubernetes.io/default-container names)."},                                       \
        USER_OPTIONS_SERVER

/* True when the row is one of the options above. */
bool remote_take(struct remote_opts *o, const struct option_row *row, const char *value);

struct remote {
    struct user user;
    const char *wanted;          /* the container, NULL: not said */
    const char *pod, *container; /* after remote_find */
};

/* Does not connect. What there is after a failure is remote_close's. */
int remote_open(struct remote *r, const struct remote_opts *o, struct hk_err *err) HK_CHECKED;
void remote_close(struct remote *r);
/* Finds the pod of that name, or a running one of a job: JOB[/TASK[/INDEX]]. */
int remote_find(struct remote *r, const char *typed, struct hk_err *err) HK_CHECKED;

/* A command in the pod that was found. Descriptors are borrowed, -1: none. */
struct remote_command {
    const char *const *argv; /* ended by NULL */
    int in, out, err_out;
    bool tty; /* one terminal for all: in is ours, made raw meanwhile; err_out is not used */
};
/* Returns when it has ended: with its exit code, or negative. */
int remote_run(struct remote *r, const struct remote_command *c, struct hk_err *err);
