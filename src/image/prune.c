// SPDX-License-Identifier: Apache-2.0
// Removes images, and what no image needs. Containers in whose directory a link leads to a root
// keep that root; the exclusive lock keeps imports and starts of containers away.
#include "image/store.h"

#include "image/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- uses ---- */

void image_uses_fini(struct image_uses *u)
{
    hk_vec_fini(u);
}

bool image_uses_have(const struct image_uses *u, const struct image_digest *root)
{
    for (uint32_t i = 0; i < u->len; i++) {
        if (image_digest_is(&u->at[i], root)) {
            return true;
        }
    }
    return false;
}

static int fail_search(const char *name, struct hk_err *err)
{
    return hk_fail(err, HK_EIO, "cannot find out which images are in use: '%s': %m", name);
}

struct use_search {
    int dir;
    struct image_uses *uses;
};

static int add_use(void *ctx, const char *name, struct hk_err *err)
{
    const struct use_search *s = ctx;
    HK_AUTO(hk_buf_fini) struct hk_buf link = {0};
    char target[PATH_MAX];
    struct image_digest root;
    ssize_t n;

    hk_buf_addf(&link, "%s/" IMAGE_USE, name);
    n = readlinkat(s->dir, link.data, target, sizeof(target));
    if (n > IMAGE_HEX && n < (ssize_t)sizeof(target) &&
        image_digest_parse_hex((struct hk_str){target + n - IMAGE_HEX, IMAGE_HEX}, &root)) {
        hk_vec_push(s->uses, root);
    }
    return 0;
}

static int add_uses_of_pod(void *ctx, const char *uid, struct hk_err *err)
{
    const struct use_search *s = ctx;
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    hk_buf_addf(&path, "%s/" IMAGE_USES, uid);
    HK_AUTO(image_close) int dir = openat(s->dir, path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct use_search below = {.dir = dir, .uses = s->uses};

    if (dir < 0) {
        return errno == ENOENT || errno == ENOTDIR ? 0 : fail_search(uid, err);
    }
    return image_tree_each(dir, add_use, &below, err);
}

int image_uses_find(const struct image_store *s, struct image_uses *ret, struct hk_err *err)
{
    HK_AUTO(image_close)
    int pods = openat(s->data, "node/pods", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct use_search search = {.dir = pods, .uses = ret};

    if (pods < 0) {
        return errno == ENOENT ? 0 : fail_search("node/pods", err);
    }
    return image_tree_each(pods, add_uses_of_pod, &search, err);
}

/* ---- removal ---- */

static int remove_name(const struct image_store *s, struct hk_str name, struct hk_err *err)
{
    const struct image_digest key = image_digest_of(name);
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    hk_buf_addf(&path, "names/%s", key.hex);
    if (unlinkat(s->dir, path.data, 0) < 0 && errno != ENOENT) {
        return hk_fail(err, HK_EIO, "cannot remove the image \"%.*s\": %m", HK_FMT(name));
    }
    return 0;
}

int image_store_remove(const struct image_store *s, const struct image_record *r,
                       struct hk_err *err)
{
    HK_AUTO(image_uses_fini) struct image_uses uses = {0};
    int rc = image_uses_find(s, &uses, err);

    if (rc < 0) {
        return rc;
    }
    if (image_uses_have(&uses, &r->root)) {
        return hk_fail(err, HK_EBUSY,
                       "the image \"%.*s\" is used by a container: delete its pod "
                       "first",
                       HK_FMT(r->name));
    }
    return remove_name(s, r->name, err);
}

struct pruning {
    const struct image_records *all;
    const struct image_uses *uses;
    int dir;
    uint32_t *count;
    bool (*is_needed)(const struct pruning *p, const struct image_digest *d);
};

static bool is_root_needed(const struct pruning *p, const struct image_digest *d)
{
    for (uint32_t i = 0; i < p->all->len; i++) {
        if (image_digest_is(&p->all->at[i].root, d)) {
            return true;
        }
    }
    return image_uses_have(p->uses, d);
}

static bool is_blob_needed(const struct pruning *p, const struct image_digest *d)
{
    for (uint32_t i = 0; i < p->all->len; i++) {
        if (image_digest_is(&p->all->at[i].id, d) || image_digest_is(&p->all->at[i].manifest, d)) {
            return true;
        }
    }
    return false;
}

static bool is_layer_needed(const struct pruning *p, const struct image_digest *d)
{
    for (uint32_t i = 0; i < p->all->len; i++) {
        const struct image_record *r = &p->all->at[i];

        for (uint32_t k = 0; k < r->nlayer; k++) {
            if (image_digest_is(&r->layers[k], d)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_never_needed(const struct pruning *p, const struct image_digest *d)
{
    return false;
}

static int prune_entry(void *ctx, const char *name, struct hk_err *err)
{
    const struct pruning *p = ctx;
    struct image_digest d = {0};

    if (image_digest_parse_hex(hk_str(name), &d) && p->is_needed(p, &d)) {
        return 0;
    }
    if (image_tree_remove(p->dir, name) < 0) {
        return hk_fail(err, HK_EIO, "cannot remove '%s': %m", name);
    }
    ++*p->count;
    return 0;
}

static int prune_dir(const struct image_store *s, const char *name, struct pruning *p,
                     struct hk_err *err)
{
    HK_AUTO(image_close) int dir = openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    p->dir = dir;
    return dir < 0 ? 0 : image_tree_each(dir, prune_entry, p, err);
}

static int prune_names(const struct image_store *s, struct image_records *all,
                       const struct image_uses *uses, struct image_pruned *ret, struct hk_err *err)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < all->len; i++) {
        const struct image_record *r = &all->at[i];
        int rc;

        if (image_uses_have(uses, &r->root)) {
            all->at[kept++] = *r;
            continue;
        }
        rc = remove_name(s, r->name, err);
        if (rc < 0) {
            return rc;
        }
        ret->nimage++;
    }
    all->len = kept;
    return 0;
}

int image_store_prune(const struct image_store *s, const char *data_dir, bool unused,
                      struct image_pruned *ret, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(image_uses_fini) struct image_uses uses = {0};
    struct image_records all = {0};
    const struct {
        const char *dir;
        uint32_t *count;
        bool (*is_needed)(const struct pruning *p, const struct image_digest *d);
    } parts[] = {{"tmp", &ret->nother, is_never_needed},
                 {"roots", &ret->nother, is_root_needed},
                 {"layers", &ret->nlayer, is_layer_needed},
                 {"blobs/sha256", &ret->nother, is_blob_needed}};
    int rc = image_store_list(data_dir, &a, &all, err);

    if (rc < 0) {
        return rc;
    }
    rc = image_uses_find(s, &uses, err);
    if (rc < 0) {
        return rc;
    }
    rc = unused ? prune_names(s, &all, &uses, ret, err) : 0;
    for (size_t i = 0; rc == 0 && i < HK_LEN(parts); i++) {
        rc = prune_dir(s, parts[i].dir,
                       &(struct pruning){.all = &all,
                                         .uses = &uses,
                                         .count = parts[i].count,
                                         .is_needed = parts[i].is_needed},
                       err);
    }
    return rc;
}
