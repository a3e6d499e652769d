// SPDX-License-Identifier: Apache-2.0
// Directories that no container may see: the server's data directory (keys, tokens, files of other
// pods) and the records of running containers. This file finds all paths that lead to them: a file
// system may be mounted at several places. The shim covers all of them (mount.c) before it
// resolves any path that a user named.

#include "agent/process/process_priv.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOUNTS_MAX ((size_t)64 << 20)

/* A line of mountinfo: a part of a device and its mount point. */
struct cover_mount {
    struct hk_str device; /* "MAJOR:MINOR" */
    char root[PATH_MAX], at[PATH_MAX];
};

/* Decodes blanks, newlines and backslashes, which are a backslash and three octal digits. */
static bool copy_path(struct hk_str from, char *to, size_t room)
{
    size_t n = 0;

    for (size_t i = 0; i < from.n; i++) {
        char c = from.s[i];
        if (c == '\\' && i + 3 < from.n) {
            c = (char)((from.s[i + 1] - '0') << 6 | (from.s[i + 2] - '0') << 3 |
                       (from.s[i + 3] - '0'));
            i += 3;
        }
        if (n + 1 >= room) {
            return false;
        }
        to[n++] = c;
    }
    to[n] = '\0';
    return n > 0;
}

static bool parse_mount(struct hk_str line, struct cover_mount *ret)
{
    struct hk_str id, parent, root, at;

    return hk_str_cut(&line, ' ', &id) && hk_str_cut(&line, ' ', &parent) &&
           hk_str_cut(&line, ' ', &ret->device) && hk_str_cut(&line, ' ', &root) &&
           hk_str_cut(&line, ' ', &at) && copy_path(root, ret->root, sizeof(ret->root)) &&
           copy_path(at, ret->at, sizeof(ret->at));
}

/* The part of path below dir; "": dir itself; NULL: not below. */
static const char *process_cover_path_below(const char *path, const char *dir)
{
    const size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

    return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0') ? path + n : NULL;
}

/* The mount that holds a resolved path; of several at one place the last is on top. */
static bool find_mount(struct hk_str mounts, const char *path, struct cover_mount *ret)
{
    struct cover_mount m;
    struct hk_str line;
    size_t best = 0;
    bool found = false;

    while (hk_str_cut(&mounts, '\n', &line)) {
        if (parse_mount(line, &m) && process_cover_path_below(path, m.at) && strlen(m.at) >= best) {
            best = strlen(m.at);
            *ret = m;
            found = true;
        }
    }
    return found;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static void add_point(struct process_cover *c, const char *path)
{
    for (uint32_t k = 0; k < c->points.len; k++) {
        if (strcmp(c->points.at[k], path) == 0) {
            return;
        }
    }
    hk_vec_push(&c->points, hk_strdup(path));
}

/* Adds mounts of the same device that contain the directory or a part of it. */
static void add_other_points(struct process_cover *c, struct hk_str mounts, const char *dir,
                             const char *in_device, const struct cover_mount *of)
{
    struct cover_mount m;
    struct hk_str line;

    while (hk_str_cut(&mounts, '\n', &line)) {
        const char *rest;
        if (!parse_mount(line, &m) || !hk_str_eq(m.device, of->device)) {
            continue;
        }
        rest = process_cover_path_below(in_device, m.root);
        if (rest) {
            HK_AUTO(hk_freep) char *point = process_path("%s%s", m.at, rest);
            if (is_same_file(point, dir)) { /* else another mount hides it */
                add_point(c, point);
            }
        } else if (process_cover_path_below(m.root, in_device) &&
                   !process_cover_path_below(m.at, dir)) {
            add_point(c, m.at);
        }
    }
}

static void find_points(struct process_cover *c, struct hk_str mounts, const char *dir)
{
    HK_AUTO(hk_freep) char *in_device = NULL;
    struct cover_mount m;

    if (access(dir, F_OK) < 0) {
        return;
    }
    add_point(c, dir);
    if (!find_mount(mounts, dir, &m)) {
        return;
    }
    in_device = process_path("%s%s", strcmp(m.root, "/") == 0 ? "" : m.root,
                             process_cover_path_below(dir, m.at));
    add_other_points(c, mounts, dir, in_device, &m);
}

static void clear_points(struct process_cover *c)
{
    for (uint32_t k = 0; k < c->points.len; k++) {
        hk_free(c->points.at[k]);
    }
    hk_vec_clear(&c->points);
}

/* The kernel reports a change until the file is opened again. */
static bool have_mounts_changed(const struct process_cover *c)
{
    struct pollfd p = {.fd = c->mounts_fd, .events = POLLPRI};

    return c->mounts_fd < 0 || (poll(&p, 1, 0) > 0 && p.revents != 0);
}

static bool are_points_there(const struct process_cover *c)
{
    for (uint32_t k = 0; k < c->dirs.len; k++) {
        if (access(c->dirs.at[k], F_OK) < 0) {
            return false;
        }
    }
    return true;
}

const char *const *process_cover_points(struct process_cover *c)
{
    HK_AUTO(hk_buf_fini) struct hk_buf mounts = {0};

    if (c->points.len == 0 || have_mounts_changed(c) || !are_points_there(c)) {
        if (c->mounts_fd >= 0) {
            close(c->mounts_fd);
        }
        /* Open first: a change during the read is then reported next time. */
        c->mounts_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        (void)!hk_read_file("/proc/self/mountinfo", MOUNTS_MAX, &mounts, NULL);
        clear_points(c);
        for (uint32_t k = 0; k < c->dirs.len; k++) {
            find_points(c, hk_buf_str(&mounts), c->dirs.at[k]);
        }
        hk_vec_push(&c->points, NULL);
    }
    return (const char *const *)c->points.at;
}

void process_cover_init(struct process_cover *c, const char *const *dirs)
{
    char real[PATH_MAX];

    *c = (struct process_cover){.mounts_fd = -1};
    for (; dirs && *dirs; dirs++) {
        hk_vec_push(&c->dirs, hk_strdup(realpath(*dirs, real) ? real : *dirs));
    }
}

void process_cover_fini(struct process_cover *c)
{
    clear_points(c);
    hk_vec_fini(&c->points);
    for (uint32_t k = 0; k < c->dirs.len; k++) {
        hk_free(c->dirs.at[k]);
    }
    hk_vec_fini(&c->dirs);
    if (c->mounts_fd >= 0) {
        close(c->mounts_fd);
    }
}
