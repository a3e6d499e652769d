// SPDX-License-Identifier: Apache-2.0
// The objects that commands create, from what was typed. Trees live in the arena given, and borrow
// the strings they are made of.
#pragma once

#include "api/object.h"

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
