// SPDX-License-Identifier: Apache-2.0
// This machine as a node: its name, its directories, where the runtime keeps its records, and what
// is put together to run pods.
#include "cmd/node.h"

#include "agent/machine.h"
#include "agent/process.h"
#include "cmd/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* Host names may hold what names of nodes may not. */
static char *host_name(struct hk_arena *a)
{
    char name[256] = "";

    if (gethostname(name, sizeof(name) - 1) < 0 || name[0] == '\0') {
        return hk_arena_printf(a, "localhost");
    }
    for (char *at = name; *at; at++) {
        if (*at >= 'A' && *at <= 'Z') {
            *at = (char)(*at - 'A' + 'a');
        } else if (*at == '_') {
            *at = '-';
        }
    }
    return hk_arena_printf(a, "%s", name);
}

/* ---- options ---- */

static bool is_node_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    const size_t n = strlen(name);

    return n > 0 && n <= 253 && strspn(name, letters) > 0 && strchr(letters, name[n - 1]) &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.")] == '\0';
}

bool node_take(struct node_flags *f, const struct option_row *row, const char *value, int *ret,
               struct hk_err *err)
{
    *ret = 0;
    if (strcmp(row->name, "node") == 0) {
        f->name = value;
    } else if (strcmp(row->name, "no-node") == 0) {
        f->no_node = true;
    } else if (strcmp(row->name, "image-roots") == 0) {
        f->image_roots = value;
    } else if (strcmp(row->name, "pod-max-pids") == 0) {
        *ret = daemon_take_int(row, value, 1, INT32_MAX, &f->pod_max_pids, err);
    } else if (strcmp(row->name, "no-isolation") == 0) {
        f->plain = true;
    } else {
        return false;
    }
    return true;
}

int node_check(const struct node_flags *f, struct hk_err *err)
{
    if (f->name && !is_node_name(f->name)) {
        return hk_fail(err, HK_EINVAL,
                       "option --node is '%s', want lower case letters, digits, '-' and '.'",
                       f->name);
    }
    if (f->image_roots && access(f->image_roots, R_OK) < 0) {
        return hk_fail(err, HK_EINVAL, "option --image-roots: cannot read '%s': %m",
                       f->image_roots);
    }
    return 0;
}

const char *node_name(const struct node_flags *f, struct hk_arena *a)
{
    return f->name ? f->name : host_name(a);
}

#define NETS ".net" /* behind the name of the directory of what runs */
#define OWNER ".of" /* a link to the node's own directory */

/* ---- where records of what runs are kept ---- */

static int make_dir(const char *path, struct hk_err *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        return hk_fail(err, HK_EIO, "cannot make the directory '%s': %m", path);
    }
    return 0;
}

/* A directory in memory for this user alone, NULL: there is none. */
static const char *memory_dir(struct hk_arena *a)
{
    const char *of_user = getenv("XDG_RUNTIME_DIR");
    const char *places[] = {
        geteuid() == 0 ? "/run/hekla" : NULL,
        of_user && *of_user == '/' ? hk_arena_printf(a, "%s/hekla", of_user) : NULL,
        hk_arena_printf(a, "/dev/shm/hekla-%u", geteuid()),
    };

    for (size_t i = 0; i < HK_LEN(places); i++) {
        struct statfs fs;
        struct stat st;
        if (!places[i] || make_dir(places[i], NULL) < 0) {
            continue;
        }
        if (statfs(places[i], &fs) == 0 && fs.f_type == TMPFS_MAGIC && lstat(places[i], &st) == 0 &&
            S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0) {
            return places[i];
        }
        rmdir(places[i]); /* only when we made it just now */
    }
    return NULL;
}

/* Entries that are somebody's: names of our own begin with a dot. */
static uint32_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    uint32_t n = 0;

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        n += e->d_name[0] != '.';
    }
    if (dir) {
        closedir(dir);
    }
    return n;
}

/* The two directories of a node, unless it has pods. */
static void forget_node(const char *nets, struct hk_arena *a)
{
    const char *place = hk_arena_strndup(a, nets, strlen(nets) - strlen(NETS));

    if (count_entries(nets) > 0 || count_entries(place) > 0) {
        return;
    }
    rmdir(hk_arena_printf(a, "%s/.root", place));
    rmdir(place);
    unlink(hk_arena_printf(a, "%s/" OWNER, nets));
    rmdir(nets);
}

/* Of servers that were killed, and whose directories have been removed since. */
static void sweep_memory(const char *memory, struct hk_arena *a)
{
    DIR *dir = opendir(memory);

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        const char *nets = hk_arena_printf(a, "%s/%s", memory, e->d_name);
        char owner[PATH_MAX] = "";

        if (hk_str_ends(hk_str(e->d_name), NETS) &&
            readlink(hk_arena_printf(a, "%s/" OWNER, nets), owner, sizeof(owner) - 1) > 0 &&
            access(owner, F_OK) < 0 && errno == ENOENT) {
            forget_node(nets, a);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* Processes do not outlive the machine, so neither need their records: they are kept in memory,
 * where a hundred small files a second cost nothing. DIR/run is a link to them, or the directory
 * itself where there is no such place. */
static int make_runs(struct node *n, const char *dir, const char *link, struct hk_arena *a,
                     struct hk_err *err)
{
    const char *memory = NULL, *place;
    char target[PATH_MAX] = "";
    struct stat st;

    if (lstat(link, &st) < 0 || S_ISLNK(st.st_mode)) {
        memory = memory_dir(a);
    }
    if (!memory || stat(dir, &st) < 0) {
        unlink(link);
        return make_dir(link, err);
    }
    place = hk_arena_printf(a, "%s/%llx-%llx", memory, (unsigned long long)st.st_dev,
                            (unsigned long long)st.st_ino);
    if (readlink(link, target, sizeof(target) - 1) < 0 || strcmp(target, place) != 0) {
        unlink(link);
        if (symlink(place, link) < 0) {
            return hk_fail(err, HK_EIO, "cannot make the link '%s': %m", link);
        }
    }
    sweep_memory(memory, a);
    n->nets = hk_strdup(hk_arena_printf(a, "%s" NETS, place));
    int rc = make_dir(n->nets, err);
    rc = rc < 0 ? rc : make_dir(place, err);
    if (rc == 0 && symlink(dir, hk_arena_printf(a, "%s/" OWNER, n->nets)) < 0 && errno != EEXIST) {
        return hk_fail(err, HK_EIO, "cannot make a link in '%s': %m", n->nets);
    }
    return rc;
}

/* ---- the node ---- */

static void on_end(void *ctx, uint64_t container, const struct runtime_end *end)
{
    struct node *n = ctx;

    if (n->agent) {
        agent_on_end(n->agent, container, end);
    }
}

int node_start(struct node *n, const struct node_opts *o, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct node_flags *f = o->flags;
    const struct machine machine = {.root = "", .dir = o->dir};
    const struct json has = machine_capacity(&machine, &a), words = machine_labels(&machine, &a);
    char top[PATH_MAX]; /* others see the path, from other directories */
    const char *dir, *runs;
    int rc;

    if (!realpath(o->dir, top)) {
        return hk_fail(err, HK_EIO, "cannot find the directory '%s': %m", o->dir);
    }
    dir = hk_arena_printf(&a, "%s/node", top);
    runs = hk_arena_printf(&a, "%s/run", dir);
    rc = make_dir(dir, err);
    rc = rc < 0 ? rc : make_runs(n, dir, runs, &a, err);
    if (rc < 0) {
        return rc;
    }
    n->runtime = process_runtime_new(&(struct process_opts){.loop = o->loop,
                                                            .nursery = o->nursery,
                                                            .clock = o->clock,
                                                            .dir = runs,
                                                            .sink = {on_end, n},
                                                            .pids_max = f->pod_max_pids,
                                                            .plain = f->plain});
    n->agent = agent_new(&(struct agent_opts){.port = o->port,
                                              .shared_port = true,
                                              .clock = o->clock,
                                              .rand = o->rand,
                                              .runtime = n->runtime,
                                              .api_host = o->api_host,
                                              .api_port = hk_arena_printf(&a, "%u", o->api_port),
                                              .dir = dir,
                                              .memory_dir = n->nets,
                                              .node = node_name(f, &a),
                                              .address = o->address,
                                              .serve_port = o->serve_port,
                                              .loop = o->loop,
                                              .capacity = &has,
                                              .allocatable = &has,
                                              .labels = &words,
                                              .machine = &machine,
                                              .image_roots = f->image_roots});
    return 0;
}

void node_end(struct node *n)
{
    agent_free(n->agent);
    if (n->runtime) {
        n->runtime->ops->free(n->runtime);
    }
    if (n->nets) {
        HK_AUTO(hk_arena_fini) struct hk_arena a = {0};

        forget_node(n->nets, &a);
    }
    hk_free(n->nets);
    *n = (struct node){0};
}
