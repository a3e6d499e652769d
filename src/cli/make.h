// SPDX-License-Identifier: Apache-2.0
// Objects that commands create from their arguments. Trees live in the given arena and borrow their
// strings.
#pragma once

#include "api/object.h"
#include "base/clock.h"

struct make_job {
    const char *name, *ns, *scheduler, *image;
    const char *requests, *limits; /* "cpu=1,memory=100Mi" */
    const char *command;           /* words as in a shell; "": the image's command */
    int64_t min, replicas;
};

/* Makes a job of one task. */
int make_job(const struct make_job *j, struct hk_arena *a, struct json *ret,
             struct hk_err *err) HK_CHECKED;
/* Parses comma-separated "name=quantity" pairs into a ResourceList; "" is none. */
int make_resources(const char *text, struct hk_arena *a, struct json *ret,
                   struct hk_err *err) HK_CHECKED;
/* Splits like a shell: quotes, backslashes and comments, no expansion. */
int make_words(const char *text, struct hk_arena *a, struct json *ret,
               struct hk_err *err) HK_CHECKED;
/* The first document of a manifest, treated as this kind whatever its own kind is. */
int make_from_text(enum api_kind_id kind, struct hk_str text, struct hk_arena *a, struct json *ret,
                   struct hk_err *err) HK_CHECKED;
struct json make_queue(const char *name, int64_t weight, const char *state, struct hk_arena *a);
/* The merge patch that sets a queue's weight. */
struct json make_weight(int64_t weight, struct hk_arena *a);
/* A Command that requests an action from the target's controller: "AbortJob", "CloseQueue"... */
struct json make_command(const struct api_object *target, const char *ns, const char *action,
                         struct hk_arena *a);

/* ---- make_run.c ---- */

struct make_env {
    const char *name, *value;
};

/* A command run as a job of equal tasks, one pod each. Unset members are NULL or 0. */
struct make_run {
    const char *name, *ns, *image;
    const char *queue, *workdir, *priority;
    int64_t count;                  /* number of tasks */
    int64_t min;                    /* number of tasks that start together */
    const char *cpu, *memory, *gpu; /* per task; NULL: none */
    const struct make_env *env;
    uint32_t nenv;
    const char *const *plugins; /* "svc", "pytorch=--port=1", in addition to env */
    uint32_t nplugin;
    int64_t retries; /* after a failure */
    int64_t time_s;  /* time limit of a task */
    bool literal;    /* do not replace words in braces */
    const char *const *argv;
    uint32_t argc;
};

/* In the command, {index}, {count}, {name} and {job} become the task's index, the number of tasks
 * and the name of the job; everything else is passed on unchanged. */
int make_run(const struct make_run *r, struct hk_arena *a, struct json *ret,
             struct hk_err *err) HK_CHECKED;
/* Makes a job name from a command: "train-x7k2p". */
void make_run_name(const char *command, struct hk_rand *rand, struct hk_buf *out);
/* "90s", "1h30m", "MM:SS", "HH:MM:SS", "D-HH:MM:SS". */
int make_run_time(const char *text, int64_t *ret_s, struct hk_err *err) HK_CHECKED;
