// SPDX-License-Identifier: Apache-2.0
// This machine as a node: its name, its directories, the place of the runtime's records, and the
// parts that run pods.
#include "host/node.h"

#include "agent/host/machine.h"
#include "agent/process/process.h"
#include "codec/quantity.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define LOG_LEAST_MILLI ((int64_t)1000 * (64 << 10))

enum { COVERED_MAX = 4 };

/* Host names may contain characters that node names may not. */
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

const struct option_row node_name_options[] = {
    ROW_TEXT_OR('n', "node", "NAME", struct node_flags, name, "the host name",
                "The name of this machine as a node."),
    ROW_END,
};

const struct option_row node_pod_options[] = {
    ROW_TEXT(0, "image-roots", "FILE", struct node_flags, image_roots, NULL,
             "Root file systems of images: lines with an image and a directory. They are used "
             "before those of the store of 'hekla image'."),
    ROW_CHOICE(0, "images", "HOW", struct node_flags, images, "machine store pull", "machine",
               "What a container runs in whose image is not in the store of 'hekla image': the "
               "files of this machine, if it has a command; nothing, so that it waits until the "
               "image is imported; or the image, which is pulled as its imagePullPolicy says. "
               "Pulling needs skopeo."),
    ROW_INT_OR(
        0, "pod-max-pids", "N", struct node_flags, pod_max_pids, 1, INT32_MAX,
        "a quarter of what the machine allows; with cgroups of version 1, half of it for all "
        "pods together",
        "The most processes and threads of one pod. The cgroup controller of pids is needed."),
    ROW_QUANTITY("container-log-max-size", struct node_flags, log_max, LOG_LEAST_MILLI, "10Mi",
                 "The most bytes of a container's log, such as 100Mi. A full log is kept once "
                 "and a new one begins: older output is gone, and readers are told so."),
    ROW_FLAG(0, "end-unknown-pods", struct node_flags, end_unknown,
             "End pods that run here and that the API does not know, also when the API has gone "
             "back in time: after a restore, a salvage or --accept-data-loss. Without this option "
             "such pods are kept, and 'hekla status' counts them. In all other cases unknown pods "
             "are ended anyway."),
    ROW_FLAG(0, "no-isolation", struct node_flags, plain,
             "Run containers as plain processes, without namespaces and control groups, as where "
             "neither is permitted. The status of a pod says what is not enforced."),
    ROW_END,
};

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

#define NETS ".net" /* suffix to the name of the records' directory */
#define SHM ".shm"  /* suffix to the name of the shared memory's directory */
#define SHM_TOP "/dev/shm/hekla-%u"
#define OWNER ".of" /* a symlink to the node's own directory */

/* ---- the place of the runtime's records ---- */

static int node_make_dir(const char *path, struct hk_err *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        return hk_fail(err, HK_EIO, "cannot create the directory '%s': %m", path);
    }
    return 0;
}

/* A directory in memory for this user only; NULL: none. */
static const char *memory_dir(struct hk_arena *a)
{
    const char *of_user = getenv("XDG_RUNTIME_DIR");
    const char *places[] = {
        geteuid() == 0 ? "/run/hekla" : NULL,
        of_user && *of_user == '/' ? hk_arena_printf(a, "%s/hekla", of_user) : NULL,
        hk_arena_printf(a, SHM_TOP, geteuid()),
    };

    for (size_t i = 0; i < HK_LEN(places); i++) {
        struct statfs fs;
        struct stat st;
        if (!places[i] || node_make_dir(places[i], NULL) < 0) {
            continue;
        }
        if (statfs(places[i], &fs) == 0 && fs.f_type == TMPFS_MAGIC && lstat(places[i], &st) == 0 &&
            S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0) {
            return places[i];
        }
        rmdir(places[i]); /* only if it was just created */
    }
    return NULL;
}

/* The name for a node below a directory that holds one per node. */
static const char *name_in_memory(const struct stat *dir, struct hk_arena *a)
{
    return hk_arena_printf(a, "%llx-%llx", (unsigned long long)dir->st_dev,
                           (unsigned long long)dir->st_ino);
}

/* The place of pods' shared memory: on the tmpfs that programs use for it anyway. NULL: none. */
static const char *shm_dir(const struct node *n, const char *dir, struct hk_arena *a)
{
    const char *top = hk_arena_printf(a, SHM_TOP, geteuid());
    struct statfs fs;
    struct stat st, own;

    if (stat(dir, &own) < 0 || node_make_dir(top, NULL) < 0 || statfs(top, &fs) < 0 ||
        fs.f_type != TMPFS_MAGIC || lstat(top, &st) < 0 || !S_ISDIR(st.st_mode) ||
        st.st_uid != geteuid() || chmod(top, 0711) < 0) {
        return NULL;
    }
    if (n->nets) {
        const char *name = strrchr(n->nets, '/') + 1;

        return hk_arena_printf(a, "%s/%.*s" SHM, top, (int)(strlen(name) - strlen(NETS)), name);
    }
    return hk_arena_printf(a, "%s/%s" SHM, top, name_in_memory(&own, a));
}

/* Entries of pods: names that the runtime uses itself begin with a dot. */
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

/* Removes both directories of a node, unless it has pods. */
static void forget_node(const char *nets, struct hk_arena *a)
{
    const char *place = hk_arena_strndup(a, nets, strlen(nets) - strlen(NETS));

    if (count_entries(nets) > 0 || count_entries(place) > 0) {
        return;
    }
    rmdir(hk_arena_printf(a, "%s/.root", place));
    unlink(hk_arena_printf(a, "%s/" AGENT_REVISION_FILE, place));
    unlink(hk_arena_printf(a, "%s/" AGENT_KEPT_FILE, place));
    rmdir(place);
    rmdir(hk_arena_printf(a, SHM_TOP "%s" SHM, geteuid(), strrchr(place, '/')));
    unlink(hk_arena_printf(a, "%s/" OWNER, nets));
    rmdir(nets);
}

/* Removes directories of killed servers whose data directories no longer exist. */
static void node_sweep_memory(const char *memory, struct hk_arena *a)
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

/* Returns the records' directory that the link names, if it was made for this node directory: a
 * copy has another inode number. Otherwise a new one, because inode numbers are reused, and
 * leftovers of the old directory must not be taken for those of the new one. */
static const char *choose_runs(const char *memory, const struct stat *dir, const char *target,
                               struct hk_rand *rand, struct hk_arena *a)
{
    const char *head = hk_arena_printf(a, "%s/%s", memory, name_in_memory(dir, a));
    const size_t n = strlen(head);

    if (strncmp(target, head, n) == 0 && (target[n] == '\0' || target[n] == '-')) {
        return target;
    }
    return hk_arena_printf(a, "%s-%016llx", head, (unsigned long long)hk_rand_u64(rand));
}

/* Processes do not survive a reboot, so their records need not either: they are kept in memory,
 * where a hundred small files per second cost nothing. DIR/run is a symlink to them, or the
 * directory itself if there is no such place. */
static int make_runs(struct node *n, const char *dir, const char *link, struct hk_rand *rand,
                     struct hk_arena *a, struct hk_err *err)
{
    const char *memory = NULL, *place;
    char target[PATH_MAX] = "";
    struct stat st;

    if (lstat(link, &st) < 0 || S_ISLNK(st.st_mode)) {
        memory = memory_dir(a);
    }
    if (!memory || stat(dir, &st) < 0) {
        unlink(link);
        return node_make_dir(link, err);
    }
    (void)!readlink(link, target, sizeof(target) - 1);
    place = choose_runs(memory, &st, target, rand, a);
    if (strcmp(target, place) != 0) {
        unlink(link);
        if (symlink(place, link) < 0) {
            return hk_fail(err, HK_EIO, "cannot create the link '%s': %m", link);
        }
    }
    node_sweep_memory(memory, a);
    n->nets = hk_strdup(hk_arena_printf(a, "%s" NETS, place));
    int rc = node_make_dir(n->nets, err);
    if (rc < 0) {
        return rc;
    }
    rc = node_make_dir(place, err);
    if (rc == 0 && symlink(dir, hk_arena_printf(a, "%s/" OWNER, n->nets)) < 0 && errno != EEXIST) {
        return hk_fail(err, HK_EIO, "cannot create a link in '%s': %m", n->nets);
    }
    return rc;
}

/* ---- the node ---- */

static void node_on_end(void *ctx, uint64_t container, const struct runtime_end *end)
{
    struct node *n = ctx;

    if (n->agent) {
        agent_on_end(n->agent, container, end);
    }
}

static const char *node_parent_of(const char *path, struct hk_arena *a)
{
    return hk_arena_strndup(a, path, (size_t)(strrchr(path, '/') - path));
}

/* Hides the directory from containers; NULL: none. */
static void add_covered(const char *list[COVERED_MAX + 1], const char *dir)
{
    uint32_t n = 0;

    while (dir && list[n] && strcmp(list[n], dir) != 0) {
        n++;
    }
    if (dir) {
        list[n] = dir;
    }
}

/* The processes of pods. Fills covered: directories that pods do not see. */
static void node_start_runtime(struct node *n, const struct node_opts *o, const char *top,
                               const char *runs, const char **covered, struct hk_arena *a)
{
    const char *shm = shm_dir(n, hk_arena_printf(a, "%s/node", top), a);
    char secret[PATH_MAX];

    add_covered(covered, top);
    add_covered(covered, n->nets ? node_parent_of(n->nets, a) : NULL);
    add_covered(covered, shm ? node_parent_of(shm, a) : NULL);
    /* Pods of a normal user may read what that user may; pods of root may run as any user. */
    if (o->credentials && geteuid() == 0 && realpath(o->credentials, secret)) {
        add_covered(covered, hk_arena_strndup(a, secret, strlen(secret)));
    }
    n->runtime = process_runtime_new(
        &(struct process_opts){.loop = o->loop,
                               .spawner = o->spawner,
                               .clock = o->clock,
                               .dir = runs,
                               .sink = {node_on_end, n},
                               .log_max_bytes = quantity_value(o->flags->log_max),
                               .pids_max = o->flags->pod_max_pids,
                               .plain = o->flags->plain,
                               .covered = covered,
                               .shm = shm});
}

int node_start(struct node *n, const struct node_opts *o, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct node_flags *f = o->flags;
    const struct machine machine = {.root = "", .dir = o->dir};
    const struct json has = machine_capacity(&machine, &a), words = machine_labels(&machine, &a);
    char top[PATH_MAX]; /* absolute: other processes use it from other directories */
    const char *covered[COVERED_MAX + 1] = {NULL};
    const char *dir, *runs;
    int rc;

    if (!realpath(o->dir, top)) {
        return hk_fail(err, HK_EIO, "cannot find the directory '%s': %m", o->dir);
    }
    dir = hk_arena_printf(&a, "%s/node", top);
    runs = hk_arena_printf(&a, "%s/run", dir);
    rc = node_make_dir(dir, err);
    if (rc < 0) {
        return rc;
    }
    rc = make_runs(n, dir, runs, o->rand, &a, err);
    if (rc < 0) {
        return rc;
    }
    node_start_runtime(n, o, top, runs, covered, &a);
    n->agent = agent_new(&(struct agent_opts){.port = o->port,
                                              .shared_port = true,
                                              .clock = o->clock,
                                              .rand = o->rand,
                                              .runtime = n->runtime,
                                              .api_host = o->api_host,
                                              .api_port = hk_arena_printf(&a, "%u", o->api_port),
                                              .dir = dir,
                                              .memory_dir = n->nets,
                                              .record_dir = runs,
                                              .end_unknown = f->end_unknown,
                                              .node = node_name(f, &a),
                                              .address = o->address,
                                              .serve_port = o->serve_port,
                                              .lease_ns = o->lease_ns,
                                              .loop = o->loop,
                                              .services = o->services,
                                              .dns = o->dns,
                                              .domain = o->domain,
                                              .capacity = &has,
                                              .allocatable = &has,
                                              .labels = &words,
                                              .machine = &machine,
                                              .image_roots = f->image_roots,
                                              .images = top,
                                              .image_policy = f->images,
                                              .covered = covered});
    return 0;
}

void node_end(struct node *n)
{
    agent_free(n->agent);
    if (n->runtime) {
        n->runtime->ops->free(n->runtime);
    }
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};

    if (n->nets) {
        forget_node(n->nets, &a);
    }
    rmdir(hk_arena_printf(&a, SHM_TOP, geteuid())); /* unless another server's pods use it */
    hk_free(n->nets);
    *n = (struct node){0};
}
