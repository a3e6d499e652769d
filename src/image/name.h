// SPDX-License-Identifier: Apache-2.0
// Names of images, as users and manifests write them.
#pragma once

#include "image/digest.h"

enum { IMAGE_NAME_MAX = 512 };

/* The full form: "busybox" is "docker.io/library/busybox:latest". A name with a digest has no
 * tag: "docker.io/library/busybox@sha256:...". */
struct image_name {
    char text[IMAGE_NAME_MAX];
    size_t repository_len; /* of the part before the tag or digest */
    struct image_digest digest;
};

int image_name_parse(struct hk_str text, struct image_name *ret, struct hk_err *err) HK_CHECKED;
