// SPDX-License-Identifier: Apache-2.0
// Unpacks tar archives, plain or compressed, into directories. libarchive reads and writes; this
// file decides what is written where. An archive is hostile until proven otherwise: nothing is
// written outside the directory, and the amount is limited.
#pragma once

#include "image/digest.h"

/* What an import may still unpack. */
struct image_budget {
    int64_t bytes, entries;
};

struct image_unpack {
    int from;   /* the file */
    int to;     /* an empty directory */
    bool layer; /* keeps owners, modes and whiteouts; else: the archive of an image */
    struct image_budget *budget;
};

struct image_unpacked {
    struct image_digest file, content; /* of the file as it is, and without compression */
    int64_t content_bytes;
    uint32_t nskipped; /* devices and sockets, which are left out */
};

/* A whiteout ".wh.NAME" removes NAME of the layers below; it becomes an empty file of that name.
 * An archive may have no entries for parent directories: those are made, and marked with the file
 * IMAGE_IMPLICIT. */
#define IMAGE_WHITEOUT ".wh."
#define IMAGE_OPAQUE ".wh..wh..opq" /* hides all that the layers below have in the directory */
#define IMAGE_IMPLICIT ".wh..wh.hekla"

/* Changes the working directory of the process during the call. */
int image_unpack(const struct image_unpack *u, struct image_unpacked *ret,
                 struct hk_err *err) HK_CHECKED;
