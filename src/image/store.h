// SPDX-License-Identifier: Apache-2.0
// The images of a server, in its data directory. Everything is named by what it contains, so that
// images share layers, and what a crash leaves behind is never taken for something complete.
//
//     images/names/HEX           one image: JSON; HEX is the digest of its full name
//     images/blobs/sha256/HEX    configurations and manifests
//     images/layers/HEX/tree     unpacked layers, by the digests of their tar archives
//     images/roots/HEX/tree      root file systems: hard links to the files of the layers
//     images/tmp/NAME            what an import is working on
//     images/lock                shared by imports and starts of containers, exclusive for removals
#pragma once

#include "base/vec.h"
#include "codec/json.h"
#include "image/manifest.h"
#include "image/name.h"

struct image_store {
    int dir; /* DATA/images */
    int data;
    int lock;
};

struct image_record {
    struct hk_str name;           /* full */
    struct image_digest id;       /* of the configuration */
    struct image_digest manifest; /* or "" */
    struct image_digest root;     /* images/roots/HEX: the chain of its layers */
    int64_t size, imported_s;     /* bytes of the layers as imported; wall time */
    struct image_digest *layers;
    uint32_t nlayer;
};

struct image_records {
    struct image_record *at;
    uint32_t len;
};

enum image_lock { IMAGE_SHARED, IMAGE_EXCLUSIVE };

/* Creates the directories where they are missing. Waits for the lock. */
int image_store_open(struct image_store *s, const char *data_dir, enum image_lock lock,
                     struct hk_err *err) HK_CHECKED;
void image_store_close(struct image_store *s);

/* ---- reading, which needs no lock ---- */

/* Finds the image by its name, or by its repository and digest. -HK_ENOTFOUND if there is none. */
int image_store_find(const char *data_dir, const struct image_name *name, struct hk_arena *a,
                     struct image_record *ret, struct hk_err *err) HK_CHECKED;
/* All images, ordered by name. Without a store there are none. */
int image_store_list(const char *data_dir, struct hk_arena *a, struct image_records *ret,
                     struct hk_err *err) HK_CHECKED;
int image_store_config(const char *data_dir, const struct image_record *r, struct hk_arena *a,
                       struct image_config *ret, struct hk_err *err) HK_CHECKED;
const char *image_store_root(const char *data_dir, const struct image_record *r,
                             struct hk_arena *a);
/* Changes when an image is added or removed; 0 without a store. */
int64_t image_store_stamp(const char *data_dir);
/* "NAME@sha256:..." of the manifest, else "sha256:..." of the configuration. */
const char *image_record_id(const struct image_record *r, struct hk_arena *a);

/* ---- uses ---- */

/* A container's directory for changes to its root, DATA/node/pods/UID/.roots/NAME.ATTEMPT, has a
 * link "image" to the root while it exists. */
#define IMAGE_USES ".roots"
#define IMAGE_USE "image"
/* Records a use. -HK_EBUSY while images are being removed, -HK_ENOTFOUND if the root is gone. */
int image_store_use(const char *data_dir, const struct image_record *r, const char *use_dir,
                    struct hk_err *err) HK_CHECKED;
/* A vector of roots in use. */
struct image_uses {
    struct image_digest *at;
    uint32_t len, cap;
};
void image_uses_fini(struct image_uses *u);
int image_uses_find(const struct image_store *s, struct image_uses *ret,
                    struct hk_err *err) HK_CHECKED;
bool image_uses_have(const struct image_uses *u, const struct image_digest *root);

/* ---- changes, under the lock ---- */

int image_store_put_blob(const struct image_store *s, struct hk_str text, struct image_digest *ret,
                         struct hk_err *err) HK_CHECKED;
/* Makes the record visible; everything that it names must be on disk. */
int image_store_put(const struct image_store *s, const struct image_record *r,
                    struct hk_err *err) HK_CHECKED;
/* Removes the name. -HK_EBUSY if a container uses the image. Needs the exclusive lock. */
int image_store_remove(const struct image_store *s, const struct image_record *r,
                       struct hk_err *err) HK_CHECKED;
struct image_pruned {
    uint32_t nimage, nlayer, nother;
};
/* Removes everything that no name and no container needs; with `unused` also images that no
 * container uses. Needs the exclusive lock. */
int image_store_prune(const struct image_store *s, const char *data_dir, bool unused,
                      struct image_pruned *ret, struct hk_err *err) HK_CHECKED;
