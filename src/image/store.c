// SPDX-License-Identifier: Apache-2.0
// Finds, lists and records images. prune.c removes them.
#include "image/store.h"

#include "base/file.h"
#include "image/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMAGES "images"
#define RECORD_MAX ((size_t)256 << 10)
#define RECORDS_MAX 100000

/* ---- opening ---- */

static int make_store_dirs(struct image_store *s, struct hk_err *err)
{
    static const char *const dirs[] = {"names", "blobs", "blobs/sha256", "layers", "roots", "tmp"};

    for (size_t i = 0; i < HK_LEN(dirs); i++) {
        if (mkdirat(s->dir, dirs[i], 0700) < 0 && errno != EEXIST) {
            return hk_fail(err, HK_EIO, "cannot make the directory '" IMAGES "/%s': %m", dirs[i]);
        }
    }
    return 0;
}

static int open_store_dir(struct image_store *s, const char *data_dir, struct hk_err *err)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    struct stat st;

    s->data = open(data_dir, flags);
    if (s->data < 0) {
        return hk_fail(err, HK_EIO, "cannot open the directory '%s': %m", data_dir);
    }
    if (fstat(s->data, &st) < 0 || st.st_uid != geteuid()) {
        return hk_fail(err, HK_EDENIED,
                       "the directory '%s' belongs to another user, who has to run this command",
                       data_dir);
    }
    if (mkdirat(s->data, IMAGES, 0700) < 0 && errno != EEXIST) {
        return hk_fail(err, HK_EIO, "cannot make the directory '%s/" IMAGES "': %m", data_dir);
    }
    s->dir = openat(s->data, IMAGES, flags);
    return s->dir < 0
               ? hk_fail(err, HK_EIO, "cannot open the directory '%s/" IMAGES "': %m", data_dir)
               : make_store_dirs(s, err);
}

int image_store_open(struct image_store *s, const char *data_dir, enum image_lock lock,
                     struct hk_err *err)
{
    int rc;

    *s = (struct image_store){.dir = -1, .data = -1, .lock = -1};
    rc = open_store_dir(s, data_dir, err);
    if (rc < 0) {
        return rc;
    }
    s->lock = openat(s->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    do {
        rc = s->lock < 0 ? -1 : flock(s->lock, lock == IMAGE_SHARED ? LOCK_SH : LOCK_EX);
    } while (rc < 0 && errno == EINTR);
    return rc < 0 ? hk_fail(err, HK_EIO, "cannot lock '%s/" IMAGES "': %m", data_dir) : 0;
}

void image_store_close(struct image_store *s)
{
    image_close(&s->lock);
    image_close(&s->dir);
    image_close(&s->data);
    *s = (struct image_store){.dir = -1, .data = -1, .lock = -1};
}

/* ---- records ---- */

static bool parse_hex(const struct json *doc, const char *key, struct image_digest *ret)
{
    return image_digest_parse_hex(json_str_field(doc, key), ret);
}

static int record_parse(struct hk_str text, struct hk_arena *a, struct image_record *ret,
                        struct hk_err *err)
{
    struct image_record r = {0};
    struct json doc;
    const struct json *layers;
    int rc = image_document_parse(text, a, &doc, err);

    if (rc < 0) {
        return rc;
    }
    layers = json_get(&doc, "layers");
    r.name = json_str_field(&doc, "name");
    r.nlayer = HK_MIN(json_len(layers), IMAGE_LAYERS_MAX);
    r.layers = hk_arena_array(a, r.nlayer, sizeof(*r.layers));
    r.size = json_int_at(&doc, "size");
    r.imported_s = json_int_at(&doc, "importedAt");
    parse_hex(&doc, "manifest", &r.manifest);
    for (uint32_t i = 0; i < r.nlayer; i++) {
        if (!image_digest_parse_hex(json_str(json_item(layers, i), HK_STR("")), &r.layers[i])) {
            return hk_fail(err, HK_EINVAL, "not the record of an image");
        }
    }
    if (r.name.n == 0 || !parse_hex(&doc, "id", &r.id) || !parse_hex(&doc, "root", &r.root)) {
        return hk_fail(err, HK_EINVAL, "not the record of an image");
    }
    *ret = r;
    return 0;
}

static int record_read(const char *path, struct hk_arena *a, struct image_record *ret,
                       struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int rc = hk_read_file(path, RECORD_MAX, &text, err);

    if (rc < 0) {
        return rc;
    }
    rc = record_parse(hk_arena_str(a, hk_buf_str(&text)), a, ret, err);
    return rc < 0 ? hk_wrap(err, rc, "'%s'", path) : 0;
}

static const char *names_dir(const char *data_dir, struct hk_arena *a)
{
    return hk_arena_printf(a, "%s/" IMAGES "/names", data_dir);
}

static int compare_records(const void *x, const void *y)
{
    const struct image_record *a = x, *b = y;

    return hk_str_cmp(a->name, b->name);
}

int image_store_list(const char *data_dir, struct hk_arena *a, struct image_records *ret,
                     struct hk_err *err)
{
    HK_VEC(struct image_record) all = {0};
    const char *path = names_dir(data_dir, a);
    DIR *dir = opendir(path);
    int rc = 0;

    for (const struct dirent *e; rc == 0 && dir && (e = readdir(dir));) {
        struct image_digest key;
        struct image_record r;

        if (!image_digest_parse_hex(hk_str(e->d_name), &key) || all.len == RECORDS_MAX) {
            continue;
        }
        rc = record_read(hk_arena_printf(a, "%s/%s", path, e->d_name), a, &r, err);
        if (rc == 0) {
            hk_vec_push(&all, r);
        }
        rc = rc == -HK_ENOTFOUND ? 0 : rc; /* removed meanwhile */
    }
    if (dir) {
        closedir(dir);
    }
    if (rc == 0) {
        ret->len = all.len;
        ret->at = hk_arena_array(a, all.len, sizeof(*ret->at));
        if (all.len > 0) {
            qsort(all.at, all.len, sizeof(*all.at), compare_records);
            memcpy(ret->at, all.at, all.len * sizeof(*all.at));
        }
    }
    hk_vec_fini(&all);
    return rc;
}

/* The image of that repository whose manifest or configuration has the digest. */
static int find_digest(const char *data_dir, const struct image_name *name, struct hk_arena *a,
                       struct image_record *ret, struct hk_err *err)
{
    struct image_records all;
    int rc = image_store_list(data_dir, a, &all, err);

    for (uint32_t i = 0; rc == 0 && i < all.len; i++) {
        const struct image_record *r = &all.at[i];
        const size_t n = name->repository_len;

        if (r->name.n > n && strchr(":@", r->name.s[n]) && memcmp(r->name.s, name->text, n) == 0 &&
            (image_digest_is(&r->manifest, &name->digest) ||
             image_digest_is(&r->id, &name->digest))) {
            *ret = *r;
            return 0;
        }
    }
    return rc < 0 ? rc : hk_fail(err, HK_ENOTFOUND, "there is no image \"%s\"", name->text);
}

int image_store_find(const char *data_dir, const struct image_name *name, struct hk_arena *a,
                     struct image_record *ret, struct hk_err *err)
{
    const struct image_digest key = image_digest_of(hk_str(name->text));
    const char *path = hk_arena_printf(a, "%s/%s", names_dir(data_dir, a), key.hex);

    if (access(path, F_OK) == 0) {
        return record_read(path, a, ret, err);
    }
    return name->digest.hex[0] ? find_digest(data_dir, name, a, ret, err)
                               : hk_fail(err, HK_ENOTFOUND, "there is no image \"%s\"", name->text);
}

int image_store_config(const char *data_dir, const struct image_record *r, struct hk_arena *a,
                       struct image_config *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const char *path = hk_arena_printf(a, "%s/" IMAGES "/blobs/sha256/%s", data_dir, r->id.hex);
    struct json doc;
    int rc = hk_read_file(path, IMAGE_DOCUMENT_MAX, &text, err);

    if (rc < 0) {
        return rc;
    }
    rc = image_document_parse(hk_arena_str(a, hk_buf_str(&text)), a, &doc, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "'%s'", path);
    }
    rc = image_config_parse(&doc, a, ret, err);
    return rc < 0 ? hk_wrap(err, rc, "'%s'", path) : 0;
}

const char *image_store_root(const char *data_dir, const struct image_record *r, struct hk_arena *a)
{
    return hk_arena_printf(a, "%s/" IMAGES "/roots/%s/tree", data_dir, r->root.hex);
}

int64_t image_store_stamp(const char *data_dir)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct stat st;

    hk_buf_addf(&path, "%s/" IMAGES "/names", data_dir);
    return stat(path.data, &st) < 0 ? 0
                                    : (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

const char *image_record_id(const struct image_record *r, struct hk_arena *a)
{
    const char *at = memchr(r->name.s, '@', r->name.n);
    const char *colon = memrchr(r->name.s, ':', r->name.n);
    const size_t n = (size_t)((at ? at : colon ? colon : r->name.s + r->name.n) - r->name.s);

    return r->manifest.hex[0]
               ? hk_arena_printf(a, "%.*s@sha256:%s", (int)n, r->name.s, r->manifest.hex)
               : hk_arena_printf(a, "sha256:%s", r->id.hex);
}

/* ---- uses ---- */

int image_store_use(const char *data_dir, const struct image_record *r, const char *use_dir,
                    struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf lock = {0}, root = {0}, link = {0};

    hk_buf_addf(&lock, "%s/" IMAGES "/lock", data_dir);
    hk_buf_addf(&root, "%s/" IMAGES "/roots/%s", data_dir, r->root.hex);
    hk_buf_addf(&link, "%s/" IMAGE_USE, use_dir);
    HK_AUTO(image_close) int fd = open(lock.data, O_RDWR | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0) {
        return hk_fail(err, HK_EBUSY, "images are being removed at the moment");
    }
    if (access(root.data, F_OK) < 0) {
        return hk_fail(err, HK_ENOTFOUND,
                       "the files of the image \"%.*s\" are gone: import it "
                       "again",
                       HK_FMT(r->name));
    }
    if (symlink(root.data, link.data) < 0 && errno != EEXIST) {
        return hk_fail(err, HK_EIO, "cannot make '%s': %m", link.data);
    }
    return 0;
}

/* ---- writing ---- */

static int sync_dir(int dir, const char *name, struct hk_err *err)
{
    HK_AUTO(image_close) int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || fsync(fd) < 0 ? hk_fail(err, HK_EIO, "cannot write '" IMAGES "/%s': %m", name)
                                   : 0;
}

static int write_text(int fd, struct hk_str text)
{
    while (text.n > 0) {
        const ssize_t n = write(fd, text.s, text.n);

        if (n < 0 && errno != EINTR) {
            return -1;
        }
        text.s += n > 0 ? n : 0;
        text.n -= n > 0 ? (size_t)n : 0;
    }
    return fsync(fd);
}

/* Several processes may write the same name: the temporary name is this process's own. */
static int put_file(const struct image_store *s, const char *dir, const char *name,
                    struct hk_str text, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf temp = {0}, path = {0};

    hk_buf_addf(&temp, "tmp/%d.%s", (int)getpid(), name);
    hk_buf_addf(&path, "%s/%s", dir, name);
    HK_AUTO(image_close)
    int fd = openat(s->dir, temp.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write_text(fd, text) < 0 || renameat(s->dir, temp.data, s->dir, path.data) < 0) {
        const enum hk_code code = errno == ENOSPC || errno == EDQUOT ? HK_EFULL : HK_EIO;

        hk_fail(err, code, "cannot write '" IMAGES "/%s': %m", path.data);
        unlinkat(s->dir, temp.data, 0);
        return -(int)code;
    }
    return sync_dir(s->dir, dir, err);
}

int image_store_put_blob(const struct image_store *s, struct hk_str text, struct image_digest *ret,
                         struct hk_err *err)
{
    *ret = image_digest_of(text);
    return put_file(s, "blobs/sha256", ret->hex, text, err);
}

int image_store_put(const struct image_store *s, const struct image_record *r, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct image_digest key = image_digest_of(r->name);
    struct json doc = json_make_object(), *layers;

    json_set_str(&doc, &a, "name", r->name);
    json_set_cstr(&doc, &a, "id", r->id.hex);
    json_set_cstr(&doc, &a, "manifest", r->manifest.hex);
    json_set_cstr(&doc, &a, "root", r->root.hex);
    json_set_int(&doc, &a, "size", r->size);
    json_set_int(&doc, &a, "importedAt", r->imported_s);
    layers = json_set_array(&doc, &a, "layers");
    for (uint32_t i = 0; i < r->nlayer; i++) {
        json_push(layers, &a, json_make_str(hk_str(r->layers[i].hex)));
    }
    json_write(&doc, &text);
    hk_buf_addc(&text, '\n');
    return put_file(s, "names", key.hex, hk_buf_str(&text), err);
}
