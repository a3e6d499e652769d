// SPDX-License-Identifier: Apache-2.0
// Imports images. Layers are unpacked and merged below images/tmp; when they are on disk they are
// renamed to their final names, and the name of the image comes last:
//
//     archive --> tmp/source --> documents --> tmp/layerN, checked --> tmp/root
//                                         all synced --> layers/ roots/ blobs/ --> names/
//
// Another import may be first to bring a layer: the one that is there stays.
#include "image/import.h"

#include "image/merge.h"
#include "image/tree.h"
#include "image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRIES_MAX 2000000
#define IMAGES_MAX 256
#define INDEX_DEPTH 3
#define TRIES 1000

struct import {
    const struct image_import *o;
    struct hk_arena *a;
    struct image_imported *ret;
    struct image_store store;
    struct image_budget budget;
    char tmp_name[64]; /* below images; "" none */
    int tmp;
    int source;
    const char *blobs; /* where documents and layers are, by digest: "blobs/sha256/" or "" */
    bool named;        /* the name of the options has been given to an image */
};

/* A layer in the source. */
struct layer_file {
    const char *path;
    const struct image_descriptor *is; /* NULL: only the content is checked */
};

/* ---- temporary files ---- */

static int make_temp(struct import *x, struct hk_err *err)
{
    for (int i = 0; i < TRIES; i++) {
        snprintf(x->tmp_name, sizeof(x->tmp_name), "tmp/%d-%d", (int)getpid(), i);
        if (mkdirat(x->store.dir, x->tmp_name, 0700) == 0) {
            x->tmp = openat(x->store.dir, x->tmp_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            break;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return x->tmp < 0 ? hk_fail(err, HK_EIO, "cannot make a temporary directory: %m") : 0;
}

static void import_end(struct import *x)
{
    image_close(&x->source);
    if (x->tmp >= 0) {
        close(x->tmp);
        image_tree_remove(x->store.dir, x->tmp_name);
    }
    image_store_close(&x->store);
}

/* Makes NAME and NAME/tree: the outer directory can be renamed whatever the mode of the tree is.
 * Returns a descriptor of the tree or a negative code. */
static int make_tree(const struct import *x, const char *name, struct hk_err *err)
{
    char path[64];
    int fd = -1;

    snprintf(path, sizeof(path), "%s/tree", name);
    if (mkdirat(x->tmp, name, 0700) == 0 && mkdirat(x->tmp, path, 0755) == 0) {
        fd = openat(x->tmp, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0 || fchmod(fd, 0755) < 0) {
        return hk_fail(err, HK_EIO, "cannot make a temporary directory: %m");
    }
    return fd;
}

/* ---- the source ---- */

static int open_source_archive(struct import *x, int from, struct hk_err *err)
{
    struct image_unpacked done;
    int rc;

    x->source = make_tree(x, "source", err);
    if (x->source < 0) {
        return x->source;
    }
    rc = image_unpack(&(struct image_unpack){.from = from, .to = x->source, .budget = &x->budget},
                      &done, err);
    x->budget.bytes = x->o->max_bytes; /* its layers are unpacked once more */
    return rc < 0 ? hk_wrap(err, rc, "'%s' cannot be unpacked", x->o->from) : 0;
}

static int open_source(struct import *x, struct hk_err *err)
{
    const bool stdin_only = strcmp(x->o->from, "-") == 0;
    HK_AUTO(image_close) int file = stdin_only ? -1 : open(x->o->from, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (!stdin_only && (file < 0 || fstat(file, &st) < 0)) {
        return hk_fail(err, errno == ENOENT ? HK_ENOTFOUND : HK_EIO, "cannot open '%s': %m",
                       x->o->from);
    }
    if (!stdin_only && S_ISDIR(st.st_mode)) {
        x->source = fcntl(file, F_DUPFD_CLOEXEC, 0);
        return x->source < 0 ? hk_fail(err, HK_EIO, "cannot open '%s': %m", x->o->from) : 0;
    }
    return open_source_archive(x, stdin_only ? STDIN_FILENO : file, err);
}

static bool has_file(const struct import *x, const char *path)
{
    HK_AUTO(image_close) int fd = image_tree_open_file(x->source, path);

    return fd >= 0;
}

/* Reads a small file of the source; the text is in the arena. */
static int read_source(const struct import *x, const char *path, struct hk_str *ret,
                       struct hk_err *err)
{
    HK_AUTO(image_close) int fd = image_tree_open_file(x->source, path);
    struct stat st;
    size_t n = 0;

    if (fd < 0 || fstat(fd, &st) < 0) {
        return hk_fail(err, HK_ENOTFOUND, "the image has no readable file \"%.200s\"", path);
    }
    if (st.st_size > IMAGE_DOCUMENT_MAX) {
        return hk_fail(err, HK_ELIMIT, "\"%.200s\" has %lld bytes, at most %d are read", path,
                       (long long)st.st_size, IMAGE_DOCUMENT_MAX);
    }
    char *text = hk_arena_alloc(x->a, (size_t)st.st_size + 1);
    for (ssize_t got = 1; got > 0 && n < (size_t)st.st_size; n += (size_t)got) {
        got = read(fd, text + n, (size_t)st.st_size - n);
        if (got < 0) {
            return hk_fail(err, HK_EIO, "cannot read \"%.200s\": %m", path);
        }
    }
    text[n] = '\0';
    *ret = (struct hk_str){text, n};
    return 0;
}

static const char *blob_path(const struct import *x, const struct image_digest *d)
{
    return hk_arena_printf(x->a, "%s%s", x->blobs, d->hex);
}

/* Reads a document and checks that it is the one that was referred to. */
static int read_blob(const struct import *x, const struct image_descriptor *d, struct hk_str *ret,
                     struct hk_err *err)
{
    struct image_digest is;
    int rc = read_source(x, blob_path(x, &d->digest), ret, err);

    if (rc < 0) {
        return rc;
    }
    is = image_digest_of(*ret);
    if (!image_digest_is(&is, &d->digest)) {
        return hk_fail(err, HK_EINVAL,
                       "damaged: a document should have the digest sha256:%s and "
                       "has sha256:%s",
                       d->digest.hex, is.hex);
    }
    return 0;
}

static int parse_blob(const struct import *x, const struct image_descriptor *d, struct hk_str *text,
                      struct json *ret, struct hk_err *err)
{
    int rc = read_blob(x, d, text, err);

    if (rc < 0) {
        return rc;
    }
    rc = image_document_parse(*text, x->a, ret, err);
    return rc < 0 ? hk_wrap(err, rc, "sha256:%s", d->digest.hex) : 0;
}

/* ---- layers ---- */

static bool has_part(const struct import *x, const char *dir, const struct image_digest *d)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", dir, d->hex);
    return faccessat(x->store.dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int check_layer(const struct layer_file *f, const struct image_digest *want,
                       const struct image_unpacked *is, struct hk_err *err)
{
    if (f->is && !image_digest_is(&f->is->digest, &is->file)) {
        return hk_fail(err, HK_EINVAL,
                       "damaged: should have the digest sha256:%s and has sha256:%s",
                       f->is->digest.hex, is->file.hex);
    }
    if (!image_digest_is(want, &is->content)) {
        return hk_fail(err, HK_EINVAL,
                       "damaged: unpacked it should have the digest sha256:%s and "
                       "has sha256:%s",
                       want->hex, is->content.hex);
    }
    return 0;
}

/* The layer could not be unpacked: replaces the reason if it is not the one that was meant. */
static int check_file(int from, const struct layer_file *f, int rc, struct hk_err *err)
{
    struct image_hash h = {0};
    struct image_digest is;
    char buf[16 << 10];
    ssize_t n = lseek(from, 0, SEEK_SET);

    while (n >= 0 && (n = read(from, buf, sizeof(buf))) > 0) {
        image_hash_add(&h, buf, (size_t)n);
    }
    is = image_hash_end(&h);
    return n < 0 || image_digest_is(&is, &f->is->digest)
               ? rc
               : hk_fail(err, HK_EINVAL,
                         "damaged: should have the digest sha256:%s and has sha256:%s",
                         f->is->digest.hex, is.hex);
}

static int unpack_layer(struct import *x, const char *name, const struct layer_file *f,
                        const struct image_digest *want, struct hk_err *err)
{
    HK_AUTO(image_close) int from = image_tree_open_file(x->source, f->path);
    struct image_unpacked done;
    int rc;

    if (from < 0) {
        return hk_fail(err, HK_ENOTFOUND, "the image has no readable file \"%.200s\"", f->path);
    }
    HK_AUTO(image_close) int to = make_tree(x, name, err);
    if (to < 0) {
        return to;
    }
    rc = image_unpack(
        &(struct image_unpack){.from = from, .to = to, .layer = true, .budget = &x->budget}, &done,
        err);
    x->ret->nskipped += done.nskipped;
    if (rc < 0) {
        /* Damage is what the user should hear of, not what it did to the parser. */
        return f->is && rc == -HK_EINVAL ? check_file(from, f, rc, err) : rc;
    }
    return check_layer(f, want, &done, err);
}

/* The layer that already has an equal one before it in the image is not unpacked again. */
static bool came_before(const struct image_config *c, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        if (image_digest_is(&c->layers[k], &c->layers[i])) {
            return true;
        }
    }
    return false;
}

static void layer_temp(uint32_t i, char ret[32])
{
    snprintf(ret, 32, "layer%u", i);
}

static int unpack_layers(struct import *x, const struct image_config *c,
                         const struct layer_file *files, struct hk_err *err)
{
    char name[32];

    for (uint32_t i = 0; i < c->nlayer; i++) {
        if (has_part(x, "layers", &c->layers[i]) || came_before(c, i)) {
            continue;
        }
        layer_temp(i, name);
        const int rc = unpack_layer(x, name, &files[i], &c->layers[i], err);
        if (rc < 0) {
            return hk_wrap(err, rc, "layer %u", i + 1);
        }
    }
    return 0;
}

/* Renames what an import made; what another one has put there meanwhile is the same. */
static int publish(const struct import *x, const char *name, const char *dir,
                   const struct image_digest *d, struct hk_err *err)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", dir, d->hex);
    if (renameat2(x->tmp, name, x->store.dir, path, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno == ENOENT || errno == EEXIST || errno == ENOTEMPTY) {
        return 0; /* it was there before, or is now */
    }
    return hk_fail(err, HK_EIO, "cannot rename to 'images/%s': %m", path);
}

static int publish_layers(const struct import *x, const struct image_config *c, struct hk_err *err)
{
    char name[32];
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < c->nlayer; i++) {
        layer_temp(i, name);
        rc = publish(x, name, "layers", &c->layers[i], err);
    }
    return rc;
}

static void remove_temps(const struct import *x, const struct image_config *c)
{
    char name[32];

    for (uint32_t i = 0; i < c->nlayer; i++) {
        layer_temp(i, name);
        image_tree_remove(x->tmp, name);
    }
    image_tree_remove(x->tmp, "root");
}

/* ---- the root ---- */

/* The chain ID of the OCI specification. */
static struct image_digest chain_of(const struct image_config *c)
{
    struct image_digest chain = image_digest_of(HK_STR(""));

    for (uint32_t i = 0; i < c->nlayer; i++) {
        struct image_hash h = {0};

        if (i == 0) {
            chain = c->layers[0];
            continue;
        }
        image_hash_add(&h, "sha256:", 7);
        image_hash_add(&h, chain.hex, IMAGE_HEX);
        image_hash_add(&h, " sha256:", 8);
        image_hash_add(&h, c->layers[i].hex, IMAGE_HEX);
        chain = image_hash_end(&h);
    }
    return chain;
}

static int open_layer(const struct import *x, const struct image_config *c, uint32_t i)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "layers/%s/tree", c->layers[i].hex);
    fd = openat(x->store.dir, path, flags);
    for (uint32_t k = 0; fd < 0 && k <= i; k++) {
        if (image_digest_is(&c->layers[k], &c->layers[i])) {
            snprintf(path, sizeof(path), "layer%u/tree", k);
            fd = openat(x->tmp, path, flags);
        }
    }
    return fd;
}

static int make_root(struct import *x, const struct image_config *c, struct hk_err *err)
{
    HK_AUTO(image_close) int root = make_tree(x, "root", err);
    int rc = HK_MIN(root, 0);

    for (uint32_t i = 0; rc == 0 && i < c->nlayer; i++) {
        HK_AUTO(image_close) int layer = open_layer(x, c, i);

        rc = layer < 0 ? hk_fail(err, HK_EIO, "cannot open layer %u: %m", i + 1)
                       : image_merge(layer, root, err);
    }
    return rc;
}

/* ---- an image ---- */

static int check_platform(const struct image_config *c, struct hk_err *err)
{
    if (image_platform_fits(c->os, c->architecture)) {
        return 0;
    }
    return hk_fail(err, HK_EUNSUP, "the image is for %.*s/%.*s, and this machine runs linux/%s",
                   HK_FMT(hk_str_head(c->os, 32)), HK_FMT(hk_str_head(c->architecture, 32)),
                   image_architecture());
}

static int sync_all(const struct import *x, struct hk_err *err)
{
    return syncfs(x->store.dir) < 0 ? hk_fail(err, HK_EIO, "cannot write the image: %m") : 0;
}

static int make_parts(struct import *x, const struct image_config *c,
                      const struct layer_file *files, const struct image_digest *chain,
                      struct hk_err *err)
{
    int rc = unpack_layers(x, c, files, err);

    if (rc < 0) {
        return rc;
    }
    rc = has_part(x, "roots", chain) ? 0 : make_root(x, c, err);
    if (rc < 0) {
        return rc;
    }
    rc = sync_all(x, err);
    if (rc < 0) {
        return rc;
    }
    rc = publish_layers(x, c, err);
    return rc < 0 ? rc : publish(x, "root", "roots", chain, err);
}

struct found {
    struct hk_str config, manifest; /* texts; manifest may be "" */
    const struct layer_file *layers;
    uint32_t nlayer;
    const struct hk_str *names;
    uint32_t nname;
};

static int record_names(struct import *x, const struct found *f, struct image_record *r,
                        struct hk_err *err)
{
    for (uint32_t i = 0; i < f->nname; i++) {
        struct image_name full;
        int rc = image_name_parse(f->names[i], &full, err);

        if (rc < 0) {
            return rc;
        }
        r->name = hk_arena_str(x->a, hk_str(full.text));
        rc = image_store_put(&x->store, r, err);
        if (rc < 0) {
            return rc;
        }
        hk_vec_push(&x->ret->images, *r);
    }
    return 0;
}

static int64_t size_of(const struct import *x, const struct found *f)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < f->nlayer; i++) {
        HK_AUTO(image_close) int fd = image_tree_open_file(x->source, f->layers[i].path);
        struct stat st;

        sum += fd >= 0 && fstat(fd, &st) == 0 ? st.st_size : 0;
    }
    return sum;
}

static int import_parts(struct import *x, const struct found *f, const struct image_config *c,
                        struct hk_err *err)
{
    struct image_record r = {.root = chain_of(c),
                             .layers = c->layers,
                             .nlayer = c->nlayer,
                             .size = size_of(x, f),
                             .imported_s = x->o->now_s};
    int rc = make_parts(x, c, f->layers, &r.root, err);

    remove_temps(x, c);
    if (rc < 0) {
        return rc;
    }
    rc = image_store_put_blob(&x->store, f->config, &r.id, err);
    if (rc < 0) {
        return rc;
    }
    rc = f->manifest.n > 0 ? image_store_put_blob(&x->store, f->manifest, &r.manifest, err) : 0;
    if (rc < 0) {
        return rc;
    }
    rc = sync_all(x, err);
    return rc < 0 ? rc : record_names(x, f, &r, err);
}

static int import_found(struct import *x, const struct found *f, struct hk_err *err)
{
    struct image_config c;
    struct json doc;
    int rc;

    if (x->ret->images.len >= IMAGES_MAX) {
        return hk_fail(err, HK_ELIMIT, "it holds more than %d images", IMAGES_MAX);
    }
    rc = image_document_parse(f->config, x->a, &doc, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "configuration of the image");
    }
    rc = image_config_parse(&doc, x->a, &c, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "configuration of the image");
    }
    rc = check_platform(&c, err);
    if (rc < 0) {
        return rc;
    }
    if (c.nlayer != f->nlayer) {
        return hk_fail(err, HK_EINVAL,
                       "the numbers of layers differ: %u in the manifest, %u in the "
                       "configuration",
                       f->nlayer, c.nlayer);
    }
    return import_parts(x, f, &c, err);
}

/* Chooses the names: that of the options, else those of the archive. */
static int choose_names(struct import *x, struct found *f, struct hk_err *err)
{
    struct hk_str *one;

    if (!x->o->name && f->nname == 0) {
        return hk_fail(err, HK_EINVAL, "the archive does not name its image: give --name");
    }
    if (!x->o->name) {
        return 0;
    }
    if (x->named) {
        return hk_fail(err, HK_EINVAL, "it holds several images: --name is for a single one");
    }
    x->named = true;
    one = hk_arena_array(x->a, 1, sizeof(*one));
    *one = hk_str(x->o->name);
    f->names = one;
    f->nname = 1;
    return 0;
}

/* ---- OCI and skopeo ---- */

static int import_manifest(struct import *x, const struct json *doc, struct hk_str text,
                           const struct hk_str *names, uint32_t nname, struct hk_err *err)
{
    struct found f = {.manifest = text, .names = names, .nname = nname};
    struct image_manifest m;
    struct layer_file *layers;
    int rc = image_manifest_parse(doc, x->a, &m, err);

    if (rc < 0) {
        return hk_wrap(err, rc, "manifest");
    }
    layers = hk_arena_array(x->a, m.nlayer, sizeof(*layers));
    for (uint32_t i = 0; i < m.nlayer; i++) {
        layers[i] = (struct layer_file){blob_path(x, &m.layers[i].digest), &m.layers[i]};
    }
    f.layers = layers;
    f.nlayer = m.nlayer;
    rc = read_blob(x, &m.config, &f.config, err);
    if (rc < 0) {
        return rc;
    }
    rc = choose_names(x, &f, err);
    return rc < 0 ? rc : import_found(x, &f, err);
}

static bool descriptor_fits(const struct image_descriptor *d)
{
    return image_platform_fits(json_str_field(d->platform, "os"),
                               json_str_field(d->platform, "architecture"));
}

static int fail_no_platform(const struct json *index, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf list = {0};

    for (uint32_t i = 0; i < json_len(json_get(index, "manifests")) && list.len < 200; i++) {
        const struct json *p = json_get(json_item(json_get(index, "manifests"), i), "platform");

        hk_buf_addf(&list, "%s%.*s/%.*s", list.len > 0 ? ", " : "",
                    HK_FMT(hk_str_head(json_str_field(p, "os"), 32)),
                    HK_FMT(hk_str_head(json_str_field(p, "architecture"), 32)));
    }
    return hk_fail(err, HK_EUNSUP, "the image is for %s, and this machine runs linux/%s",
                   list.data ? list.data : "no platform", image_architecture());
}

static int import_descriptor(struct import *x, const struct image_descriptor *d, uint32_t depth,
                             const struct hk_str *names, uint32_t nname, struct hk_err *err);

/* Imports the first manifest of the index for this machine. */
static int import_from_index(struct import *x, const struct json *index, uint32_t depth,
                             const struct hk_str *names, uint32_t nname, struct hk_err *err)
{
    for (uint32_t i = 0; i < json_len(json_get(index, "manifests")); i++) {
        struct image_descriptor d;
        int rc = image_index_item(index, i, &d, err);

        if (rc < 0) {
            return rc;
        }
        if (descriptor_fits(&d)) {
            return import_descriptor(x, &d, depth + 1, names, nname, err);
        }
    }
    return fail_no_platform(index, err);
}

static int import_descriptor(struct import *x, const struct image_descriptor *d, uint32_t depth,
                             const struct hk_str *names, uint32_t nname, struct hk_err *err)
{
    struct hk_str text;
    struct json doc;
    int rc = parse_blob(x, d, &text, &doc, err);

    if (rc < 0) {
        return rc;
    }
    if (!image_is_index(&doc)) {
        return import_manifest(x, &doc, text, names, nname, err);
    }
    return depth >= INDEX_DEPTH ? hk_fail(err, HK_ELIMIT, "indexes within indexes")
                                : import_from_index(x, &doc, depth, names, nname, err);
}

/* A reference name may be only a tag. */
static bool find_annotated_name(const struct image_descriptor *d, struct hk_str *ret)
{
    const struct hk_str full = json_str_field(d->annotations, "io.containerd.image.name");
    const struct hk_str ref = json_str_field(d->annotations, "org.opencontainers.image.ref.name");

    *ret = full.n > 0 ? full : ref;
    return full.n > 0 || hk_str_contains(ref, "/") || hk_str_contains(ref, ":");
}

static bool was_imported(const struct import *x, struct hk_str name)
{
    struct image_name full;

    for (uint32_t i = 0; i < x->ret->images.len; i++) {
        if (image_name_parse(name, &full, NULL) == 0 &&
            hk_str_is(x->ret->images.at[i].name, full.text)) {
            return true;
        }
    }
    return false;
}

/* Each entry is an image, but entries for other platforms, and further ones of the same name,
 * belong to an image for several platforms. */
static int import_layout(struct import *x, const struct json *index, struct hk_err *err)
{
    const uint32_t n = json_len(json_get(index, "manifests"));
    bool any = false;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        struct image_descriptor d;
        struct hk_str name;

        rc = image_index_item(index, i, &d, err);
        if (rc < 0) {
            return rc;
        }
        const bool has_name = find_annotated_name(&d, &name);
        if (!descriptor_fits(&d) || (has_name && !x->o->name && was_imported(x, name)) ||
            (x->named && d.platform)) {
            continue;
        }
        any = true;
        rc = import_descriptor(x, &d, 0, &name, has_name, err);
    }
    return rc < 0 || any ? rc : fail_no_platform(index, err);
}

/* ---- docker save ---- */

/* The name of a configuration is its digest: "HEX.json" or "blobs/sha256/HEX". */
static int check_saved_config(struct hk_str path, struct hk_str text, struct hk_err *err)
{
    const struct image_digest is = image_digest_of(text);
    const char *slash = memrchr(path.s, '/', path.n);
    const char *from = slash ? slash + 1 : path.s;
    struct image_digest want;

    if (path.s + path.n - from >= IMAGE_HEX &&
        image_digest_parse_hex((struct hk_str){from, IMAGE_HEX}, &want) &&
        !image_digest_is(&want, &is)) {
        return hk_fail(err, HK_EINVAL, "damaged: \"%.*s\" has the digest sha256:%s",
                       HK_FMT(hk_str_head(path, 150)), is.hex);
    }
    return 0;
}

static int import_saved(struct import *x, const struct json *entry, struct hk_err *err)
{
    struct image_saved s;
    struct found f = {0};
    struct layer_file *layers;
    int rc = image_saved_parse(entry, x->a, &s, err);

    if (rc < 0) {
        return hk_wrap(err, rc, "manifest.json");
    }
    layers = hk_arena_array(x->a, s.nlayer, sizeof(*layers));
    for (uint32_t i = 0; i < s.nlayer; i++) {
        layers[i] = (struct layer_file){hk_arena_str(x->a, s.layers[i]).s, NULL};
    }
    f = (struct found){.layers = layers, .nlayer = s.nlayer, .names = s.names, .nname = s.nname};
    rc = read_source(x, hk_arena_str(x->a, s.config).s, &f.config, err);
    if (rc < 0) {
        return rc;
    }
    rc = check_saved_config(s.config, f.config, err);
    if (rc < 0) {
        return rc;
    }
    rc = choose_names(x, &f, err);
    return rc < 0 ? rc : import_found(x, &f, err);
}

static int import_all_saved(struct import *x, const struct json *list, struct hk_err *err)
{
    int rc = json_len(list) == 0 ? hk_fail(err, HK_EINVAL, "it holds no image") : 0;

    for (uint32_t i = 0; rc == 0 && i < json_len(list); i++) {
        rc = import_saved(x, json_item(list, i), err);
    }
    return rc;
}

/* ---- the whole ---- */

static int parse_top(const struct import *x, const char *path, struct hk_str *text,
                     struct json *ret, struct hk_err *err)
{
    int rc = read_source(x, path, text, err);

    if (rc < 0) {
        return rc;
    }
    rc = image_document_parse(*text, x->a, ret, err);
    return rc < 0 ? hk_wrap(err, rc, "%s", path) : 0;
}

/* Archives of newer Dockers are both: their index knows more. */
static int import_source(struct import *x, struct hk_err *err)
{
    struct hk_str text;
    struct json doc;
    int rc;

    x->blobs = "blobs/sha256/";
    if (has_file(x, "index.json")) {
        rc = parse_top(x, "index.json", &text, &doc, err);
        return rc < 0 ? rc : import_layout(x, &doc, err);
    }
    if (!has_file(x, "manifest.json")) {
        return hk_fail(err, HK_EINVAL,
                       "neither an OCI image nor the output of \"docker save\": it "
                       "has no index.json and no manifest.json");
    }
    rc = parse_top(x, "manifest.json", &text, &doc, err);
    if (rc < 0) {
        return rc;
    }
    if (json_is(&doc, JSON_ARRAY)) {
        return import_all_saved(x, &doc, err);
    }
    x->blobs = "";
    return import_manifest(x, &doc, text, NULL, 0, err);
}

static int import_run(struct import *x, struct hk_err *err)
{
    struct image_name name;
    int rc = x->o->name ? image_name_parse(hk_str(x->o->name), &name, err) : 0;

    if (rc < 0) {
        return rc;
    }
    rc = image_store_open(&x->store, x->o->data_dir, IMAGE_SHARED, err);
    if (rc < 0) {
        return rc;
    }
    rc = make_temp(x, err);
    if (rc < 0) {
        return rc;
    }
    rc = open_source(x, err);
    if (rc < 0) {
        return rc;
    }
    rc = import_source(x, err);
    return rc < 0 ? hk_wrap(err, rc, "'%s'", x->o->from) : 0;
}

int image_import(const struct image_import *o, struct hk_arena *a, struct image_imported *ret,
                 struct hk_err *err)
{
    struct import x = {.o = o,
                       .a = a,
                       .ret = ret,
                       .store = {.dir = -1, .data = -1, .lock = -1},
                       .budget = {.bytes = o->max_bytes, .entries = ENTRIES_MAX},
                       .tmp = -1,
                       .source = -1};
    const int rc = import_run(&x, err);

    import_end(&x);
    return rc;
}

void image_imported_fini(struct image_imported *i)
{
    hk_vec_fini(&i->images);
}
