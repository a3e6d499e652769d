// SPDX-License-Identifier: Apache-2.0
// The image that a container runs in, if it does: its root file system, and what it says about
// command, environment, user and working directory.
#pragma once

#include "agent/pod/env.h"
#include "image/store.h"
#include "image/user.h"

struct pod_image {
    const char *root; /* NULL: the container runs in the machine's files */
    struct image_record record;
    struct image_config config;
    struct image_user user;
};

/* The root directory that --image-roots maps the image to, or NULL. */
const char *pod_image_mapped_root(const struct container *c, struct hk_arena *a);
/* Finds the image, and pulls it where that is configured. Negative: the container waits, with its
 * reason, until c->due_ns or until the pod is touched. */
int pod_image_choose(struct container *c, struct pod_image *ret);
/* Sets the variables of the image, which those of the container replace. */
void pod_image_env(const struct pod_image *i, struct env *e, struct hk_arena *a);
/* command and args of the container over entrypoint and cmd of the image; NULL when there is
 * none. */
const char *const *pod_image_argv(const struct pod_image *i, const struct container *c,
                                  const struct env *e, struct hk_arena *a);
/* Makes the directory for what this attempt changes in the root, and removes those of earlier
 * ones. */
int pod_image_prepare(const struct container *c, const struct pod_image *i, uint32_t attempt,
                      const char **ret, struct hk_err *err) HK_CHECKED;
/* Writes /etc/hostname and mounts it. */
int pod_image_mount_hostname(const struct pod *p, struct runtime_container *rc,
                             struct hk_err *err) HK_CHECKED;
/* Removes what containers changed from a pod's directory; false when a part is left. */
bool pod_image_remove(const char *pod_dir);
