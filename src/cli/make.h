// SPDX-License-Identifier: Apache-2.0
// The objects that commands create, from what was typed. Trees live in the arena given, and borrow
// the strings they are made of.
#pragma once

#include "api/object.h"
#include "base/clock.h"

struct make_job {
    const char *name, *ns, *scheduler, *image;
    const char *requests, *limits; /* "cpu=1,memory=100Mi" */
    const char *command;           /* words as for a shell; "" leaves it to the image */
    int64_t min, replicas;
};

/* A job of one task. */
int make_job(const struct make_job *j, struct hk_arena *a, struct json *ret,
             struct hk_err *err) HK_CHECKED;
/* "name=quantity" pairs between commas as a ResourceList; "" is none. */
int make_resources(const char *text, struct hk_arena *a, struct json *ret,
                   struct hk_err *err) HK_CHECKED;
/* Splits as a shell does: quotes, backslashes and comments, no expansion. */
int make_words(const char *text, struct hk_arena *a, struct json *ret,
               struct hk_err *err) HK_CHECKED;
/* The first document of a manifest, whatever it says of its kind, as one of that kind. */
int make_from_text(enum api_kind_id kind, struct hk_str text, struct hk_arena *a, struct json *ret,
                   struct hk_err *err) HK_CHECKED;
struct json make_queue(const char *name, int64_t weight, const char *state, struct hk_arena *a);
/* The merge patch that sets a queue's weight. */
struct json make_weight(int64_t weight, struct hk_arena *a);
/* Asks the controller of the target for an action: "AbortJob", "CloseQueue"... */
struct json make_command(const struct api_object *target, const char *ns, const char *action,
                         struct hk_arena *a);

/* ---- make_run.c ---- */

struct make_env {
    const char *name, *value;
};

/* A command as a job of equal tasks, each one of which is one pod. Unset members are NULL or 0. */
struct make_run {
    const char *name, *ns, *image;
    const char *queue, *workdir, *priority;
    int64_t count;                  /* of tasks */
    int64_t min;                    /* that start together */
    const char *cpu, *memory, *gpu; /* of each task; NULL asks for none */
    const struct make_env *env;
    uint32_t nenv;
    const char *const *plugins; /* "svc", "pytorch=--port=1", besides env */
    uint32_t nplugin;
    int64_t retries; /* after a failure */
    int64_t time_s;  /* the longest a task may run */
    bool literal;    /* words in braces are not replaced */
    const char *const *argv;
    uint32_t argc;
};

/* In the command {index}, {count}, {name} and {job} become the task's index, the number of tasks
 * and the name of the job; nothing else in it is touched on its way to the process. */
int make_run(const struct make_run *r, struct hk_arena *a, struct json *ret,
             struct hk_err *err) HK_CHECKED;
/* A name for a job of that command: "train-x7k2p". */
void make_run_name(const char *command, struct hk_rand *rand, struct hk_buf *out);
/* "90s", "1h30m", "MM:SS", "HH:MM:SS", "D-HH:MM:SS". */
int make_run_time(const char *text, int64_t *ret_s, struct hk_err *err) HK_CHECKED;
