// SPDX-License-Identifier: Apache-2.0
// The output of a job's pods as one.
//
//   logs.c         the verb, and which logs are meant
//   logs_merge.c   what there is, in order of time
//   logs_follow.c  what there is and what is still to come
#pragma once

#include "cli/logline.h"
#include "cmd/live.h"

struct logs_opts {
    const char *task, *container; /* NULL: all; the first */
    int64_t index, tail, since_s; /* negative: all */
    bool previous, stamps;
    struct logline_how how;
};
#define LOGS_OPTS_DEFAULT                                                                          \
    {                                                                                              \
        .index = -1, .tail = -1, .since_s = -1                                                     \
    }

/* Whose output: the pods of a job, or one pod. */
struct logs_target {
    struct hk_str ns, job, pod; /* one of the two is "" */
    const char *label, *field;  /* selectors that find the pods */
};

/* Everything lives in the user's memory. */
struct logs_target logs_of_job(struct user *u, struct hk_str name);
/* The pod is meant by the task and the index that the options name. */
bool logs_wants(const struct logs_opts *o, const struct api_object *pod);
/* By task and index. */
void logs_sort(struct api_object **pods, uint32_t n);
/* The container whose output is meant; "" when there is none of that name. */
struct hk_str logs_container(const struct logs_opts *o, const struct api_object *pod);
/* How often it was started again; -1 before its first start. */
int64_t logs_starts(const struct api_object *pod, struct hk_str container);
/* The path of the log, lines with times in front. since_ns 0: as the options say. */
void logs_path(const struct logs_opts *o, struct hk_str ns, struct hk_str pod,
               struct hk_str container, bool follow, int64_t since_ns, struct hk_buf *out);

/* Prints what there is. Pods without output are told on stderr. */
int logs_merge(struct user *u, const struct verb *v, const struct logs_opts *o,
               const struct logs_target *t, struct hk_err *err) HK_CHECKED;

/* Prints what there is and what comes until the job, or the pod, has ended, and leaves the last
 * state of the job in *ret_job (NULL when it is gone; may be NULL for a pod). Ctrl-C ends it
 * earlier. */
int logs_follow(struct user *u, const struct logs_opts *o, const struct logs_target *t,
                struct api_object **ret_job, struct hk_err *err) HK_CHECKED;
