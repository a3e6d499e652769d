// SPDX-License-Identifier: Apache-2.0
// Shows the output of all pods of a job together.
//
//   logs.c         which logs
//   logs_merge.c   existing output, in order of time
//   logs_follow.c  existing and future output
#pragma once

#include "cli/logline.h"
#include "user/live.h"

struct logs_opts {
    const char *task, *container; /* NULL: all tasks; the first container */
    int64_t index, tail, since_s; /* negative: all */
    bool previous, stamps;
    struct logline_how how;
};
#define LOGS_OPTS_DEFAULT                                                                          \
    {                                                                                              \
        .index = -1, .tail = -1, .since_s = -1                                                     \
    }

/* The source of the output: the pods of a job, or one pod. */
struct logs_target {
    struct hk_str ns, job, pod; /* job or pod is "" */
    bool over;                  /* the job has ended */
    const char *label, *field;  /* selectors for the pods */
};

/* Finds a job with that name, else a pod. *ret_many: whether there may be several pods. Allocates in
 * the user's memory, as logs_of_job does. */
int logs_find(struct user *u, const char *name, struct logs_target *ret, bool *ret_many,
              struct hk_err *err) HK_CHECKED;
struct logs_target logs_of_job(struct user *u, struct hk_str name);
/* Whether the pod matches the task and index of the options. */
bool logs_wants(const struct logs_opts *o, const struct api_object *pod);
/* Sorts by task and index. */
void logs_sort(struct api_object **pods, uint32_t n);
/* The selected container; "" if there is none with that name. */
struct hk_str logs_container(const struct logs_opts *o, const struct api_object *pod);
/* The number of restarts; -1 before the first start. */
int64_t logs_starts(const struct api_object *pod, struct hk_str container);
/* The API path of the log, with timestamps. since_ns 0: from the options. */
void logs_path(const struct logs_opts *o, struct hk_str ns, struct hk_str pod,
               struct hk_str container, bool follow, int64_t since_ns, struct hk_buf *out);

/* If the line says that a part of the pod's log is lost, prints it on stderr and returns true. */
bool logs_tell_loss(struct hk_str pod, struct hk_str line);

/* Prints the existing output. Names pods without output on stderr. */
int logs_merge(struct user *u, const struct verb *v, const struct logs_opts *o,
               const struct logs_target *t, struct hk_err *err) HK_CHECKED;

/* Prints existing and new output until the job or pod has ended, and stores the last state of the
 * job in *ret_job (NULL if it is deleted; may be NULL for a pod). Ctrl-C ends it earlier. */
int logs_follow(struct user *u, const struct logs_opts *o, const struct logs_target *t,
                struct api_object **ret_job, struct hk_err *err) HK_CHECKED;
