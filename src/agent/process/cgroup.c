// SPDX-License-Identifier: Apache-2.0
// Control groups of versions 1, 2 and mixed machines. In every hierarchy with a needed controller,
// and in the unified one for cgroup.kill, a pod has a group below the agent's own (or next to it
// where version 2 requires that), with groups for its containers inside. A hierarchy in which no
// group can be created is left out, and process.c reports it.

#include "agent/process/process_priv.h"

#include "base/cgroup.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROC_MAX ((size_t)16 << 20)
#define PIDS_SHARE 4
#define COMMON "hekla-pods"
#define CPU_PERIOD_US 100000
#define CPU_QUOTA_MIN_US 1000 /* the kernel's minimum */

static const struct {
    const char *name;
    unsigned bit;
} controllers[] = {
    {"cpu", PROCESS_CPU},
    {"memory", PROCESS_MEMORY},
    {"pids", PROCESS_PIDS},
};

/* The needed controllers in a list. */
static unsigned controllers_in(struct hk_str list, char sep)
{
    struct hk_str rest = hk_str_trim(list), part;
    unsigned ret = 0;

    while (hk_str_cut(&rest, sep, &part)) {
        for (size_t k = 0; k < HK_LEN(controllers); k++) {
            ret |= hk_str_is(part, controllers[k].name) ? controllers[k].bit : 0;
        }
    }
    return ret;
}

/* ---- cgroup files ---- */

static void join_path(char path[PATH_MAX], const char *base, const char *name, const char *file)
{
    snprintf(path, PATH_MAX, "%s%s%s%s%s", base, *name ? "/" : "", name, *file ? "/" : "", file);
}

static bool process_cgroup_write_value(const char *base, const char *name, const char *file,
                                       const char *value)
{
    char path[PATH_MAX];
    int fd;

    join_path(path, base, name, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    const bool ok = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
    close(fd);
    return ok;
}

/* The number after a word at the start of a line. */
static int64_t read_count(const char *base, const char *name, const char *file, const char *word)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    char path[PATH_MAX];
    struct hk_str rest, line, first;
    int64_t n;

    join_path(path, base, name, file);
    if (hk_read_file(path, PROC_MAX, &text, NULL) < 0) {
        return 0;
    }
    rest = hk_buf_str(&text);
    while (hk_str_cut(&rest, '\n', &line)) {
        if (hk_str_cut(&line, ' ', &first) && hk_str_is(first, word) && hk_str_int(line, &n)) {
            return n;
        }
    }
    return 0;
}

/* Enables the controllers for the groups below. */
static unsigned hand_down(const char *base, const char *name, unsigned wanted)
{
    unsigned ret = 0;

    for (size_t k = 0; k < HK_LEN(controllers); k++) {
        char value[16];
        snprintf(value, sizeof(value), "+%s", controllers[k].name);
        if ((wanted & controllers[k].bit) &&
            process_cgroup_write_value(base, name, "cgroup.subtree_control", value)) {
            ret |= controllers[k].bit;
        }
    }
    return ret;
}

/* ---- hierarchies ---- */

static bool can_make_groups(const char *base)
{
    char path[PATH_MAX], name[64];

    snprintf(name, sizeof(name), "hekla-probe-%d", (int)getpid());
    join_path(path, base, name, "");
    if (mkdir(path, 0755) < 0) {
        return false;
    }
    rmdir(path);
    return true;
}

static unsigned unified_controllers(const char *base)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    char path[PATH_MAX];

    join_path(path, base, "", "cgroup.controllers");
    if (hk_read_file(path, PROC_MAX, &text, NULL) < 0) {
        return 0;
    }
    return hand_down(base, "", controllers_in(hk_buf_str(&text), ' '));
}

static void add_hierarchy(struct process_groups *g, const char *base, bool v2, unsigned set)
{
    if (g->len < PROCESS_HIERARCHIES) {
        g->at[g->len++] = (struct process_hierarchy){hk_strdup(base), v2, set};
        g->controllers |= set;
    }
}

/* In version 2, a group that enables controllers for its children must hold no processes, except
 * for the root, the only group without a type. Otherwise the children become invalid. */
static bool holds_processes(const char *base)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    char path[PATH_MAX];

    join_path(path, base, "", "cgroup.type");
    if (access(path, F_OK) < 0) {
        return false;
    }
    join_path(path, base, "", "cgroup.procs");
    return hk_read_file(path, PROC_MAX, &text, NULL) < 0 || text.len > 0;
}

void process_groups_add_unified(struct process_groups *g, const char *mount, const char *own)
{
    HK_AUTO(hk_freep) char *at = hk_strdup(own);
    const size_t top = strlen(mount);
    unsigned set = 0;

    while (can_make_groups(at)) {
        set = holds_processes(at) ? 0 : unified_controllers(at);
        if (set != 0 || strlen(at) <= top) {
            break;
        }
        *strrchr(at, '/') = '\0';
    }
    if (set != 0) {
        add_hierarchy(g, at, true, set);
    } else if (can_make_groups(own)) {
        add_hierarchy(g, own, true, 0); /* for cgroup.kill */
    }
}

static void groups_add_hierarchy(void *ctx, const struct hk_cgroup *c)
{
    struct process_groups *g = ctx;
    const unsigned set = c->v2 ? 0 : controllers_in(c->options, ',');

    if (c->v2) {
        process_groups_add_unified(g, c->mount, c->own);
    } else if ((set & ~g->controllers) && can_make_groups(c->own)) {
        add_hierarchy(g, c->own, false, set);
    }
}

void process_groups_find(struct process_groups *g)
{
    hk_cgroup_each("", groups_add_hierarchy, g);
}

void process_groups_fini(struct process_groups *g)
{
    for (uint32_t k = 0; k < g->len; k++) {
        hk_free(g->at[k].base);
    }
    *g = (struct process_groups){0};
}

/* ---- groups ---- */

static bool limit_cpu(const struct process_hierarchy *h, const char *name, int64_t milli)
{
    const int64_t quota = HK_MAX(milli * (CPU_PERIOD_US / 1000), CPU_QUOTA_MIN_US);
    char text[64];

    if (h->v2) {
        snprintf(text, sizeof(text), "%lld %d", (long long)quota, CPU_PERIOD_US);
        return process_cgroup_write_value(h->base, name, "cpu.max", text);
    }
    snprintf(text, sizeof(text), "%lld", (long long)quota);
    return process_cgroup_write_value(h->base, name, "cpu.cfs_quota_us", text);
}

static bool limit_memory(const struct process_hierarchy *h, const char *name, int64_t bytes)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)bytes);
    if (!process_cgroup_write_value(h->base, name, h->v2 ? "memory.max" : "memory.limit_in_bytes",
                                    text)) {
        return false;
    }
    /* Swap would only delay the OOM kill; not every kernel accounts for it. */
    process_cgroup_write_value(h->base, name,
                               h->v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
                               h->v2 ? "0" : text);
    return true;
}

static bool limit_pids(const struct process_hierarchy *h, const char *name, int64_t pids)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)pids);
    return process_cgroup_write_value(h->base, name, "pids.max", text);
}

static int set_limits(const struct process_hierarchy *h, const char *name,
                      const struct runtime_limits *limits, struct hk_err *err)
{
    if ((h->controllers & PROCESS_CPU) && limits->cpu_milli > 0 &&
        !limit_cpu(h, name, limits->cpu_milli)) {
        return hk_fail(err, HK_EIO, "cgroup '%s': cannot limit cpu: %m", name);
    }
    if ((h->controllers & PROCESS_MEMORY) && limits->mem_bytes > 0 &&
        !limit_memory(h, name, limits->mem_bytes)) {
        return hk_fail(err, HK_EIO, "cgroup '%s': cannot limit memory: %m", name);
    }
    if ((h->controllers & PROCESS_PIDS) && limits->pids > 0 && !limit_pids(h, name, limits->pids)) {
        return hk_fail(err, HK_EIO, "cgroup '%s': cannot limit pids: %m", name);
    }
    return 0;
}

/* Creating a group costs more than a fork. A pid namespace already ends all processes in it, so a
 * version 1 hierarchy is only needed for limits. In version 2 processes must not be next to groups,
 * so there every container has one. */
static bool process_cgroup_is_needed(const struct process_groups *g,
                                     const struct process_hierarchy *h,
                                     const struct runtime_limits *limits)
{
    return g->track || (h->v2 && h->controllers) ||
           ((h->controllers & PROCESS_CPU) && limits->cpu_milli > 0) ||
           ((h->controllers & PROCESS_MEMORY) && limits->mem_bytes > 0) ||
           ((h->controllers & PROCESS_PIDS) && limits->pids > 0);
}

/* Creates the group if it is wanted or its parent exists: 1 created, 0 not. */
static int process_cgroup_make_dir(const struct process_hierarchy *h, const char *name, bool wanted,
                                   struct hk_err *err)
{
    const char *slash = strchr(name, '/');
    char path[PATH_MAX], above[NAME_MAX];

    if (!slash && !wanted) {
        return 0;
    }
    if (slash && wanted) {
        snprintf(above, sizeof(above), "%.*s", (int)(slash - name), name);
        join_path(path, h->base, above, "");
        mkdir(path, 0755); /* a failure shows in the next call */
    }
    join_path(path, h->base, name, "");
    if (mkdir(path, 0755) == 0 || errno == EEXIST) {
        return 1;
    }
    return wanted || errno != ENOENT ? hk_fail(err, HK_EIO, "cannot make cgroup '%s': %m", path)
                                     : 0;
}

int process_group_make(const struct process_groups *g, const char *name,
                       const struct runtime_limits *limits, struct hk_err *err)
{
    for (uint32_t k = 0; k < g->len; k++) {
        const struct process_hierarchy *h = &g->at[k];
        int rc;

        rc = process_cgroup_make_dir(h, name, process_cgroup_is_needed(g, h, limits), err);
        if (rc < 0) {
            return rc;
        }
        if (rc == 0) {
            continue;
        }
        if (h->v2 && !strchr(name, '/')) {
            hand_down(h->base, name, h->controllers);
        }
        rc = set_limits(h, name, limits, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

uint32_t process_group_open(const struct process_groups *g, const char *name,
                            int fds[PROCESS_HIERARCHIES])
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < g->len; k++) {
        char path[PATH_MAX];
        join_path(path, g->at[k].base, name, "cgroup.procs");
        const int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
            fds[n++] = fd;
        }
    }
    return n;
}

/* A limit in the kernel's format; INT64_MAX: none, or unreadable. */
static int64_t read_limit(const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    int64_t n;

    if (hk_read_file(path, PROC_MAX, &text, NULL) < 0 ||
        !hk_str_int(hk_str_trim(hk_buf_str(&text)), &n)) {
        return INT64_MAX;
    }
    return n;
}

int64_t process_group_pids_max(const struct process_groups *g)
{
    int64_t most =
        HK_MIN(read_limit("/proc/sys/kernel/pid_max"), read_limit("/proc/sys/kernel/threads-max"));

    for (uint32_t k = 0; k < g->len; k++) {
        char path[PATH_MAX];
        join_path(path, g->at[k].base, "", "pids.max");
        if (g->at[k].controllers & PROCESS_PIDS) {
            most = HK_MIN(most, read_limit(path));
        }
    }
    return HK_MAX(most / PIDS_SHARE, 1);
}

static const struct process_hierarchy *pids_of(const struct process_groups *g)
{
    for (uint32_t k = 0; k < g->len; k++) {
        if (g->at[k].controllers & PROCESS_PIDS) {
            return &g->at[k];
        }
    }
    return NULL;
}

char *process_group_common(const struct process_groups *g, int64_t pids)
{
    const struct process_hierarchy *h = pids_of(g);
    char path[PATH_MAX];

    if (!h || h->v2 || g->track) {
        return NULL;
    }
    join_path(path, h->base, COMMON, "");
    if ((mkdir(path, 0755) < 0 && errno != EEXIST) || !limit_pids(h, COMMON, pids)) {
        return NULL;
    }
    return hk_strdup(path);
}

bool process_group_was_full(const struct process_groups *g, const char *name)
{
    for (uint32_t k = 0; k < g->len; k++) {
        if ((g->at[k].controllers & PROCESS_PIDS) &&
            read_count(g->at[k].base, name, "pids.events", "max") > 0) {
            return true;
        }
    }
    return false;
}

bool process_group_oom(const struct process_groups *g, const char *name)
{
    for (uint32_t k = 0; k < g->len; k++) {
        const struct process_hierarchy *h = &g->at[k];
        if ((h->controllers & PROCESS_MEMORY) &&
            read_count(h->base, name, h->v2 ? "memory.events" : "memory.oom_control", "oom_kill") >
                0) {
            return true;
        }
    }
    return false;
}

int64_t process_oom_kills(void)
{
    return read_count("/proc", ".", "vmstat", "oom_kill");
}

/* ---- removal of groups ---- */

/* Calls fn for the direct children. */
static void each_below(const struct process_hierarchy *h, const char *name,
                       void (*fn)(const struct process_hierarchy *h, const char *name))
{
    char path[PATH_MAX];
    struct dirent *e;
    DIR *dir;

    join_path(path, h->base, name, "");
    dir = opendir(path);
    if (!dir) {
        return;
    }
    while ((e = readdir(dir))) {
        if (e->d_type == DT_DIR && e->d_name[0] != '.') {
            char below[2 * NAME_MAX];
            snprintf(below, sizeof(below), "%s/%s", name, e->d_name);
            fn(h, below);
        }
    }
    closedir(dir);
}

static bool is_member(const char *path, struct hk_str pid)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_str rest, line;

    if (hk_read_file(path, PROC_MAX, &text, NULL) < 0) {
        return false;
    }
    rest = hk_buf_str(&text);
    while (hk_str_cut(&rest, '\n', &line)) {
        if (hk_str_eq(line, pid)) {
            return true;
        }
    }
    return false;
}

/* Version 1 has no cgroup.kill: kills each member, after a pidfd holds it and a second look finds
 * it. */
static void kill_members(const struct process_hierarchy *h, const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    char path[PATH_MAX];
    struct hk_str rest, line;
    int64_t pid;

    join_path(path, h->base, name, "cgroup.procs");
    if (hk_read_file(path, PROC_MAX, &text, NULL) < 0) {
        return;
    }
    rest = hk_buf_str(&text);
    while (hk_str_cut(&rest, '\n', &line)) {
        const int pidfd = hk_str_int(line, &pid) && pid > 0 ? pidfd_open((pid_t)pid, 0) : -1;
        if (pidfd < 0) {
            continue;
        }
        if (is_member(path, line)) {
            pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
        }
        close(pidfd);
    }
}

void process_group_kill(const struct process_groups *g, const char *name)
{
    for (uint32_t k = 0; k < g->len; k++) {
        if (g->at[k].v2 && process_cgroup_write_value(g->at[k].base, name, "cgroup.kill", "1")) {
            return;
        }
    }
    for (uint32_t k = 0; k < g->len; k++) {
        each_below(&g->at[k], name, kill_members);
        kill_members(&g->at[k], name);
    }
}

static void remove_group(const struct process_hierarchy *h, const char *name)
{
    char path[PATH_MAX];

    join_path(path, h->base, name, "");
    rmdir(path);
}

bool process_group_remove(const struct process_groups *g, const char *name)
{
    bool gone = true;

    for (uint32_t k = 0; k < g->len; k++) {
        char path[PATH_MAX];
        join_path(path, g->at[k].base, name, "");
        each_below(&g->at[k], name, remove_group);
        gone &= rmdir(path) == 0 || errno == ENOENT;
    }
    return gone;
}
