// SPDX-License-Identifier: Apache-2.0
// Makes, checks and removes directories for volumes.
#include "agent/pod/volume_dir.h"

#include "agent/host/host.h"
#include "base/file.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int volume_fail_errno(struct hk_err *err, const char *verb, const char *path)
{
    const int e = errno;
    const enum hk_code code = e == ENOENT ? HK_ENOTFOUND : e == EACCES ? HK_EDENIED : HK_EIO;

    return hk_fail(err, code, "cannot %s '%s': %s", verb, path, strerror(e));
}

int volume_mkdir(const char *path, unsigned mode, struct hk_err *err)
{
    if (mkdir(path, mode) < 0) {
        return errno == EEXIST ? 0 : volume_fail_errno(err, "make", path);
    }
    return chmod(path, mode) < 0 ? volume_fail_errno(err, "set the mode of", path) : 0;
}

int volume_write_file(const char *path, struct hk_str text, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf old = {0};
    int rc;

    if (hk_read_file(path, text.n + 1, &old, NULL) == 0 && hk_str_eq(hk_buf_str(&old), text)) {
        return 0;
    }
    rc = hk_write_file(path, text, err);
    if (rc == 0 && chmod(path, 0644) < 0) {
        return volume_fail_errno(err, "set the mode of", path);
    }
    return rc;
}

static int volume_dir_remove_entry(const char *path, const struct stat *st, int type,
                                   struct FTW *at)
{
    if (type == FTW_DP || type == FTW_DNR) {
        rmdir(path);
    } else {
        unlink(path);
    }
    return 0;
}

bool volume_remove(const char *path)
{
    nftw(path, volume_dir_remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    return access(path, F_OK) < 0 && errno == ENOENT;
}

/* ---- paths ---- */

bool volume_path_stays(struct hk_str path)
{
    struct hk_str part;

    if (path.n == 0 || path.s[0] == '/') {
        return false;
    }
    while (hk_str_cut(&path, '/', &part)) {
        if (hk_str_is(part, "..")) {
            return false;
        }
    }
    return true;
}

int volume_make_parents(const char *dir, struct hk_str path, unsigned mode, struct hk_arena *a,
                        struct hk_err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < path.n; i++) {
        if (path.s[i] == '/') {
            rc = volume_mkdir(hk_arena_printf(a, "%s/%.*s", dir, (int)i, path.s), mode, err);
        }
    }
    return rc;
}

bool volume_path_is_below(const char *path, const char *dir)
{
    const size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

bool volume_is_covered(const struct host *h, const char *path)
{
    char part[PATH_MAX], real[PATH_MAX];

    if ((size_t)snprintf(part, sizeof(part), "%s", path) >= sizeof(part)) {
        return true;
    }
    while (!realpath(part, real)) { /* a missing part would be created in the part that exists */
        char *slash = strrchr(part, '/');
        if (!slash || slash == part) {
            return false;
        }
        *slash = '\0';
    }
    for (const char *const *dir = h->o.covered; *dir; dir++) {
        if (volume_path_is_below(real, *dir)) {
            return true;
        }
    }
    return false;
}

bool volume_is_mounted(const char *path)
{
    const char *slash = strrchr(path, '/');
    char above[PATH_MAX];
    struct stat st, up;

    snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
    return stat(path, &st) == 0 && stat(above, &up) == 0 && st.st_dev != up.st_dev;
}
