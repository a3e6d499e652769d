// SPDX-License-Identifier: Apache-2.0
// Control groups, of both versions and of machines that mix them: in every hierarchy that has a
// controller of ours, and in the unified one for its kill switch, a pod has a group below the
// agent's own, or beside it where version 2 wants that, and its containers have groups in it. Where
// no group can be made the hierarchy is left out and process.c says so.

#include "agent/process_priv.h"

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
#define CPU_QUOTA_MIN_US 1000 /* the kernel takes no less */

static const struct {
    const char *name;
    unsigned bit;
} controllers[] = {
    {"cpu", PROCESS_CPU},
    {"memory", PROCESS_MEMORY},
    {"pids", PROCESS_PIDS},
};

/* The controllers of ours in a list. */
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

/* ---- files of groups ---- */

static void join_path(char path[PATH_MAX], const char *base, const char *name, const char *file)
{
    snprintf(path, PATH_MAX, "%s%s%s%s%s", base, *name ? "/" : "", name, *file ? "/" : "", file);
}

static bool write_value(const char *base, const char *name, const char *file, const char *value)
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

/* The number behind a word that begins a line. */
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

/* Hands the controllers on to the groups below. */
static unsigned hand_down(const char *base, const char *name, unsigned wanted)
{
    unsigned ret = 0;

    for (size_t k = 0; k < HK_LEN(controllers); k++) {
        char value[16];
        snprintf(value, sizeof(value), "+%s", controllers[k].name);
        if ((wanted & controllers[k].bit) &&
            write_value(base, name, "cgroup.subtree_control", value)) {
            ret |= controllers[k].bit;
        }
    }
    return ret;
}

/* ---- which hierarchies there are ---- */

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

/* Our own group in the hierarchy with one of those controllers (none: the unified one), from lines
 * "ID:CONTROLLERS:PATH". */
static struct hk_str own_group(struct hk_str lines, unsigned wanted)
{
    struct hk_str line, id, list;

    while (hk_str_cut(&lines, '\n', &line)) {
        if (!hk_str_cut(&line, ':', &id) || !hk_str_cut(&line, ':', &list)) {
            continue;
        }
        if (wanted ? (controllers_in(list, ',') & wanted) != 0 : hk_str_is(id, "0")) {
            return line;
        }
    }
    return (struct hk_str){0};
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

/* In version 2 a group that has controllers for those below holds no processes itself, the root
 * excepted, which alone has no type. To ask for them nevertheless would spoil the groups below. */
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
        add_hierarchy(g, own, true, 0); /* for its kill switch */
    }
}

/* The directory of our own group. The mount shows the hierarchy from root on; our own path counts
 * from the top. */
static void own_base(struct hk_str mount, struct hk_str root, struct hk_str own, struct hk_buf *ret)
{
    if (root.n > 1 && own.n >= root.n && memcmp(own.s, root.s, root.n) == 0) {
        own = (struct hk_str){own.s + root.n, own.n - root.n};
    }
    hk_buf_addstr(ret, mount);
    if (own.n > 1) {
        hk_buf_addstr(ret, own);
    }
}

/* One line of mountinfo: ID PARENT DEV ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS */
static void look_at_mount(struct process_groups *g, struct hk_str line, struct hk_str own_lines)
{
    struct hk_str field[6], part;
    unsigned set;

    for (size_t k = 0; k < HK_LEN(field); k++) {
        if (!hk_str_cut(&line, ' ', &field[k])) {
            return;
        }
    }
    while (hk_str_cut(&line, ' ', &part) && !hk_str_is(part, "-")) {
    }
    struct hk_str type, source;
    if (!hk_str_cut(&line, ' ', &type) || !hk_str_cut(&line, ' ', &source)) {
        return;
    }
    HK_AUTO(hk_buf_fini) struct hk_buf base = {0};
    const bool v2 = hk_str_is(type, "cgroup2");
    set = hk_str_is(type, "cgroup") ? controllers_in(line, ',') : 0;
    if (!v2 && !(set & ~g->controllers)) {
        return;
    }
    const struct hk_str own = own_group(own_lines, set);
    if (!own.s) {
        return;
    }
    own_base(field[4], field[3], own, &base);
    if (v2) {
        HK_AUTO(hk_freep) char *mount = hk_strndup(field[4].s, field[4].n);
        process_groups_add_unified(g, mount, base.data);
    } else if (can_make_groups(base.data)) {
        add_hierarchy(g, base.data, false, set);
    }
}

void process_groups_find(struct process_groups *g)
{
    HK_AUTO(hk_buf_fini) struct hk_buf mounts = {0}, own = {0};
    struct hk_str rest, line;

    if (hk_read_file("/proc/self/mountinfo", PROC_MAX, &mounts, NULL) < 0 ||
        hk_read_file("/proc/self/cgroup", PROC_MAX, &own, NULL) < 0) {
        return;
    }
    rest = hk_buf_str(&mounts);
    while (hk_str_cut(&rest, '\n', &line)) {
        look_at_mount(g, line, hk_buf_str(&own));
    }
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
        return write_value(h->base, name, "cpu.max", text);
    }
    snprintf(text, sizeof(text), "%lld", (long long)quota);
    return write_value(h->base, name, "cpu.cfs_quota_us", text);
}

static bool limit_memory(const struct process_hierarchy *h, const char *name, int64_t bytes)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)bytes);
    if (!write_value(h->base, name, h->v2 ? "memory.max" : "memory.limit_in_bytes", text)) {
        return false;
    }
    /* Swap would only put the end off; not every kernel counts it. */
    write_value(h->base, name, h->v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
                h->v2 ? "0" : text);
    return true;
}

static bool limit_pids(const struct process_hierarchy *h, const char *name, int64_t pids)
{
    char text[32];

    snprintf(text, sizeof(text), "%lld", (long long)pids);
    return write_value(h->base, name, "pids.max", text);
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

/* To make a group costs more than a fork. With a pid namespace, which takes everybody along that is
 * in it, a hierarchy of version 1 is of use only where there is something to limit. In version 2
 * processes must not be beside groups, so there everything has one. */
static bool is_wanted(const struct process_groups *g, const struct process_hierarchy *h,
                      const struct runtime_limits *limits)
{
    return g->track || (h->v2 && h->controllers) ||
           ((h->controllers & PROCESS_CPU) && limits->cpu_milli > 0) ||
           ((h->controllers & PROCESS_MEMORY) && limits->mem_bytes > 0) ||
           ((h->controllers & PROCESS_PIDS) && limits->pids > 0);
}

/* The group, if it is wanted or the one it is in is there: 1 made, 0 not. */
static int make_dir(const struct process_hierarchy *h, const char *name, bool wanted,
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
        mkdir(path, 0755); /* if that fails, so does the next */
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

        rc = make_dir(h, name, is_wanted(g, h, limits), err);
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

/* A limit as the kernel writes it; INT64_MAX: none, or not to be read. */
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

/* ---- the end of groups ---- */

/* Calls fn for the groups right below. */
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

/* Version 1 has no switch: members are killed one by one, each looked up again once a descriptor
 * holds it. */
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
        if (g->at[k].v2 && write_value(g->at[k].base, name, "cgroup.kill", "1")) {
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
