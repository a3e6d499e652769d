// SPDX-License-Identifier: Apache-2.0
// What this machine has to offer, as the kernel tells it: the processors we may run on, the memory
// that is there or that our control group leaves us, and room for pods.
#include "cmd/node.h"

#include "agent/process.h"
#include "base/file.h"
#include "codec/json.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PODS_MAX 500
#define MEMORY "/dev/shm"

/* ---- what there is ---- */

static int64_t cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* A limit in a file of a control group; none is INT64_MAX. */
static int64_t limit_in(const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int64_t n;

    if (hk_read_file(path, 64, &text, NULL) < 0 ||
        !hk_str_int(hk_str_trim(hk_buf_str(&text)), &n) || n <= 0) {
        return INT64_MAX;
    }
    return n;
}

static int64_t memory_bytes(void)
{
    struct sysinfo info;
    const int64_t total = sysinfo(&info) == 0 ? (int64_t)info.totalram * (int64_t)info.mem_unit : 0;

    return HK_MIN(total, HK_MIN(limit_in("/sys/fs/cgroup/memory.max"),
                                limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes")));
}

static void put(struct json *obj, struct hk_arena *a, const char *key, const char *value)
{
    json_put(obj, a, hk_str(key), json_make_str(hk_arena_str(a, hk_str(value))));
}

static struct json capacity(struct hk_arena *a)
{
    struct json list = json_make_object();

    put(&list, a, "cpu", hk_arena_printf(a, "%lld", (long long)cpus()));
    put(&list, a, "memory", hk_arena_printf(a, "%lldKi", (long long)(memory_bytes() / 1024)));
    put(&list, a, "pods", hk_arena_printf(a, "%d", PODS_MAX));
    return list;
}

static struct json labels(const char *name, struct hk_arena *a)
{
    struct json map = json_make_object();
    struct utsname u;
    const char *arch = uname(&u) == 0 ? u.machine : "unknown";

    put(&map, a, "kubernetes.io/hostname", name);
    put(&map, a, "kubernetes.io/os", "linux");
    put(&map, a, "kubernetes.io/arch",
        strcmp(arch, "x86_64") == 0    ? "amd64"
        : strcmp(arch, "aarch64") == 0 ? "arm64"
                                       : arch);
    return map;
}

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

/* ---- the node ---- */

static void on_end(void *ctx, uint64_t container, const struct runtime_end *end)
{
    struct node *n = ctx;

    if (n->agent) {
        agent_on_end(n->agent, container, end);
    }
}

static int make_dir(const char *path, struct hk_err *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        return hk_fail(err, HK_EIO, "cannot make the directory '%s': %m", path);
    }
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    remove(path);
    return 0;
}

/* Of data directories that were removed without a word, also by others of this user. */
static void sweep_memory(void)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const char *prefix = hk_arena_printf(&a, "hekla-%u-", geteuid());
    DIR *dir = opendir(MEMORY);

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        HK_AUTO(hk_buf_fini) struct hk_buf owner = {0};
        const char *path = hk_arena_printf(&a, MEMORY "/%s", e->d_name);

        if (hk_str_starts(hk_str(e->d_name), prefix) &&
            hk_read_file(hk_arena_printf(&a, "%s/of", path), PATH_MAX, &owner, NULL) == 0 &&
            owner.len > 0 && access(owner.data, F_OK) < 0 && errno == ENOENT) {
            nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* Records of what runs are worth nothing once the machine has stopped, and are made and removed
 * with every container: they belong in memory, if there is a place that is ours alone. */
static char *memory_dir(const char *dir)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    char real[PATH_MAX];
    struct stat st;

    sweep_memory();
    if (!realpath(dir, real)) {
        return NULL;
    }
    hk_buf_addf(&path, MEMORY "/hekla-%u-%016llx", geteuid(),
                (unsigned long long)hk_hash(real, strlen(real), 0));
    if ((mkdir(path.data, 0711) < 0 && errno != EEXIST) || lstat(path.data, &st) < 0 ||
        !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        hk_write_file(hk_arena_printf(&a, "%s/of", path.data), hk_str(real), NULL) < 0) {
        return NULL;
    }
    return hk_strdup(path.data);
}

/* The directory of an earlier start stays as it is, link or not. */
static int make_runs(struct node *n, const char *dir, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const char *runs;

    n->runs = hk_strdup(hk_arena_printf(&a, "%s/run", dir));
    n->memory = memory_dir(dir);
    if (n->memory) {
        runs = hk_arena_printf(&a, "%s/run", n->memory);
        n->nets = hk_strdup(hk_arena_printf(&a, "%s/net", n->memory));
        if (make_dir(runs, err) < 0 || make_dir(n->nets, err) < 0) {
            return -HK_EIO;
        }
        if (symlink(runs, n->runs) < 0 && errno == EEXIST && access(n->runs, F_OK) < 0) {
            unlink(n->runs); /* a link to what is no more */
        }
    }
    return make_dir(n->runs, err);
}

/* What is empty is nobody's. */
static void remove_runs(struct node *n)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};

    if (n->memory && rmdir(hk_arena_printf(&a, "%s/run", n->memory)) == 0) {
        unlink(n->runs);
        rmdir(n->nets);
        unlink(hk_arena_printf(&a, "%s/of", n->memory));
        rmdir(n->memory);
    }
    hk_free(n->memory);
    hk_free(n->nets);
    hk_free(n->runs);
}

int node_start(struct node *n, const struct node_opts *o, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const char *name = o->name ? o->name : host_name(&a);
    const char *dir = hk_arena_printf(&a, "%s/node", o->dir);
    const struct json has = capacity(&a), known_by = labels(name, &a);
    int rc = make_dir(dir, err);

    rc = rc < 0 ? rc : make_runs(n, dir, err);
    if (rc < 0) {
        return rc;
    }
    n->runtime = process_runtime_new(&(struct process_opts){.nursery = o->nursery,
                                                            .loop = o->loop,
                                                            .clock = o->clock,
                                                            .dir = n->runs,
                                                            .sink = {on_end, n}});
    n->agent = agent_new(&(struct agent_opts){.port = o->port,
                                              .shared_port = true,
                                              .clock = o->clock,
                                              .rand = o->rand,
                                              .runtime = n->runtime,
                                              .dir = dir,
                                              .memory_dir = n->nets,
                                              .node = name,
                                              .loop = o->loop,
                                              .capacity = &has,
                                              .allocatable = &has,
                                              .labels = &known_by,
                                              .image_roots = o->image_roots});
    return 0;
}

void node_end(struct node *n)
{
    agent_free(n->agent);
    if (n->runtime) {
        n->runtime->ops->free(n->runtime);
    }
    remove_runs(n);
    *n = (struct node){0};
}
