// SPDX-License-Identifier: Apache-2.0
// What this machine has to offer, as the kernel tells it: the processors we may run on, the memory
// that is there or that our control group leaves us, and room for pods; and where the runtime keeps
// its records.
#include "cmd/node.h"

#include "agent/process.h"
#include "base/file.h"
#include "codec/json.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PODS_MAX 500

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

/* Processes do not outlive the machine, so neither need their records: they are kept in memory,
 * where a hundred small files a second cost nothing. DIR/run is a link to them, or the directory
 * itself where there is no such place. */
static int run_dir(const char *dir, struct hk_arena *a, const char **ret, struct hk_err *err)
{
    const char *link = hk_arena_printf(a, "%s/run", dir), *memory = NULL, *place;
    char target[PATH_MAX] = "";
    struct stat st;

    if (lstat(link, &st) < 0 || S_ISLNK(st.st_mode)) {
        memory = memory_dir(a);
    }
    if (!memory || stat(dir, &st) < 0) {
        unlink(link);
        *ret = link;
        return make_dir(link, err);
    }
    *ret = place = hk_arena_printf(a, "%s/%llx-%llx", memory, (unsigned long long)st.st_dev,
                                   (unsigned long long)st.st_ino);
    if (readlink(link, target, sizeof(target) - 1) < 0 || strcmp(target, place) != 0) {
        unlink(link);
        if (symlink(place, link) < 0) {
            return hk_fail(err, HK_EIO, "cannot make the link '%s': %m", link);
        }
    }
    return make_dir(place, err);
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
    const char *name = o->name ? o->name : host_name(&a);
    const char *dir = hk_arena_printf(&a, "%s/node", o->dir);
    const char *runs;
    const struct json has = capacity(&a), known_by = labels(name, &a);
    int rc = make_dir(dir, err);

    rc = rc < 0 ? rc : run_dir(dir, &a, &runs, err);
    if (rc < 0) {
        return rc;
    }
    n->runtime = process_runtime_new(&(struct process_opts){.loop = o->loop,
                                                            .nursery = o->nursery,
                                                            .clock = o->clock,
                                                            .dir = runs,
                                                            .sink = {on_end, n},
                                                            .pids_max = o->pod_max_pids});
    n->agent = agent_new(&(struct agent_opts){.port = o->port,
                                              .shared_port = true,
                                              .clock = o->clock,
                                              .rand = o->rand,
                                              .runtime = n->runtime,
                                              .api_host = o->api_host,
                                              .api_port = hk_arena_printf(&a, "%u", o->api_port),
                                              .dir = dir,
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
    *n = (struct node){0};
}
