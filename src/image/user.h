// SPDX-License-Identifier: Apache-2.0
// The users and groups of an image, from the files of its root file system.
#pragma once

#include "base/arena.h"
#include "base/err.h"

enum { IMAGE_GROUPS_MAX = 64 };

struct image_user {
    int64_t uid, gid;
    const char *home;                 /* in the arena; NULL: not known */
    int64_t groups[IMAGE_GROUPS_MAX]; /* supplementary */
    uint32_t ngroup;
};

/* Looks up "USER[:GROUP]", each a name or a number; "" is root. Group 0 if the user has none. */
int image_user_find(const char *root, struct hk_str text, struct hk_arena *a,
                    struct image_user *ret, struct hk_err *err) HK_CHECKED;
/* Whether the text names the user by a number; true for "". */
bool image_user_is_number(struct hk_str text);
