// SPDX-License-Identifier: Apache-2.0
// Brings images into the store: from archives of "docker save", from OCI archives and directories,
// and from what "skopeo copy ... dir:" writes.
#pragma once

#include "image/store.h"

struct image_import {
    const char *data_dir;
    const char *from;  /* a file, "-" for stdin, or a directory */
    const char *name;  /* for the only image; NULL: as the archive says */
    int64_t max_bytes; /* unpacked */
    int64_t now_s;
};

struct image_imported {
    HK_VEC(struct image_record) images;
    uint32_t nskipped; /* devices and sockets that were left out */
};

void image_imported_fini(struct image_imported *i);
/* Names and lists of the result are in the arena. After a failure the store has the images that
 * were complete before it. Changes the working directory of the process during the call. */
int image_import(const struct image_import *o, struct hk_arena *a, struct image_imported *ret,
                 struct hk_err *err) HK_CHECKED;
