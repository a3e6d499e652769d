// SPDX-License-Identifier: Apache-2.0
// Files of a volume that change atomically, in the layout of kubelet:
//
//   KEY    -> ..data/KEY
//   ..data -> ..HASH
//   ..HASH/KEY
//
// The directory name is the hash of its contents. A change goes into a new directory, then a rename
// makes ..data point there: a reader that opens ..data/KEY gets the old state or the new one, and
// open files stay valid. A crash in between leaves only a directory that the next change removes.
#include "agent/pod/volume_files.h"

#include "agent/pod/volume_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA "..data"
#define TEMP "..temp"

struct writing {
    const struct volume_files *f;
    const char *dir;
    const char *version; /* "..HASH" */
    struct hk_arena *mem;
};

static int volume_files_fail_errno(struct hk_err *err, const char *verb, const char *path)
{
    return hk_fail(err, HK_EIO, "cannot %s '%s': %s", verb, path, strerror(errno));
}

/* ---- gathering ---- */

void volume_files_fini(struct volume_files *f)
{
    hk_vec_fini(&f->files);
}

int volume_files_add(struct volume_files *f, struct hk_str path, struct hk_str data, unsigned mode,
                     struct hk_err *err)
{
    if (!volume_path_stays(path) || hk_str_starts(path, "..")) {
        return hk_fail(err, HK_EINVAL, "path '%.*s' leaves the volume", HK_FMT(path));
    }
    for (uint32_t i = 0; i < f->files.len; i++) {
        if (hk_str_eq(f->files.at[i].path, path)) {
            f->files.at[i] = (struct volume_file){path, data, mode};
            return 0;
        }
    }
    hk_vec_push(&f->files, (struct volume_file){path, data, mode});
    return 0;
}

static const char *version_of(const struct volume_files *f, struct hk_arena *mem)
{
    uint64_t h = (uint64_t)f->group;

    for (uint32_t i = 0; i < f->files.len; i++) {
        const struct volume_file *file = &f->files.at[i];

        h = hk_hash(file->path.s, file->path.n, h + file->mode);
        h = hk_hash(file->data.s, file->data.n, h + file->data.n);
    }
    return hk_arena_printf(mem, "..%016llx", (unsigned long long)h);
}

/* ---- writing ---- */

static int volume_files_write_all(int fd, struct hk_str text)
{
    while (text.n > 0) {
        const ssize_t n = write(fd, text.s, text.n);

        if (n < 0 && errno != EINTR) {
            return -1;
        }
        text.s += HK_MAX(n, 0);
        text.n -= (size_t)HK_MAX(n, 0);
    }
    return 0;
}

static int write_file(const struct writing *w, const struct volume_file *file, struct hk_err *err)
{
    const char *top = hk_arena_printf(w->mem, "%s/%s", w->dir, w->version);
    const char *path = hk_arena_printf(w->mem, "%s/%.*s", top, HK_FMT(file->path));
    unsigned mode = file->mode;
    int rc = volume_make_parents(top, file->path, 0755, w->mem, err), fd;

    if (rc < 0) {
        return rc;
    }
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return volume_files_fail_errno(err, "open", path);
    }
    if (w->f->group >= 0) {
        mode |= (mode & 0400) >> 3;
    }
    if ((w->f->group >= 0 && fchown(fd, (uid_t)-1, (gid_t)w->f->group) < 0) ||
        fchmod(fd, mode) < 0 || volume_files_write_all(fd, file->data) < 0) {
        rc = volume_files_fail_errno(err, "write", path);
    }
    close(fd);
    return rc;
}

static bool points_to(const char *path, const char *target)
{
    char is[PATH_MAX];
    const ssize_t n = readlink(path, is, sizeof(is));

    return n >= 0 && hk_str_is((struct hk_str){is, (size_t)n}, target);
}

/* Makes path a symlink to target, replacing whatever was there. */
static int volume_files_replace_symlink(const struct writing *w, const char *path,
                                        const char *target, struct hk_err *err)
{
    const char *temp = hk_arena_printf(w->mem, "%s/" TEMP, w->dir);

    if (points_to(path, target)) {
        return 0;
    }
    unlink(temp);
    if (symlink(target, temp) < 0 || rename(temp, path) < 0) {
        return volume_files_fail_errno(err, "link", path);
    }
    return 0;
}

/* The first component of the path: the entry in the volume itself. */
static struct hk_str first_part(struct hk_str path)
{
    struct hk_str part = path;

    hk_str_cut(&path, '/', &part);
    return part;
}

static int link_files(const struct writing *w, struct hk_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < w->f->files.len; i++) {
        const struct hk_str top = first_part(w->f->files.at[i].path);

        rc =
            volume_files_replace_symlink(w, hk_arena_printf(w->mem, "%s/%.*s", w->dir, HK_FMT(top)),
                                         hk_arena_printf(w->mem, DATA "/%.*s", HK_FMT(top)), err);
    }
    return rc;
}

static bool volume_files_is_kept_entry(const struct writing *w, const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, DATA) == 0 ||
        strcmp(name, w->version) == 0) {
        return true;
    }
    for (uint32_t i = 0; i < w->f->files.len; i++) {
        if (hk_str_is(first_part(w->f->files.at[i].path), name)) {
            return true;
        }
    }
    return false;
}

static void remove_rest(const struct writing *w)
{
    DIR *dir = opendir(w->dir);

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        if (!volume_files_is_kept_entry(w, e->d_name)) {
            volume_remove(hk_arena_printf(w->mem, "%s/%s", w->dir, e->d_name));
        }
    }
    if (dir) {
        closedir(dir);
    }
}

int volume_files_write(const struct volume_files *f, const char *dir, struct hk_arena *mem,
                       struct hk_err *err)
{
    const struct writing w = {.f = f, .dir = dir, .version = version_of(f, mem), .mem = mem};
    const char *data = hk_arena_printf(mem, "%s/" DATA, dir);
    int rc;

    if (points_to(data, w.version)) {
        return 0;
    }
    rc = volume_mkdir(hk_arena_printf(mem, "%s/%s", dir, w.version), 0755, err);
    for (uint32_t i = 0; rc == 0 && i < f->files.len; i++) {
        rc = write_file(&w, &f->files.at[i], err);
    }
    if (rc < 0) {
        return rc;
    }
    rc = volume_files_replace_symlink(&w, data, w.version, err);
    if (rc < 0) {
        return rc;
    }
    rc = link_files(&w, err);
    if (rc < 0) {
        return rc;
    }
    remove_rest(&w);
    return 0;
}
