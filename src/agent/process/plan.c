// SPDX-License-Identifier: Apache-2.0
// Prepares a start before the shim is forked: directories, cgroups, descriptors, and the ordered
// mounts. process.c decides to start a container; the shim (start.c) does the rest.

#include "agent/process/process_priv.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <unistd.h>

#define POD_MAX ((size_t)64 << 10)

char *process_group_name(const char *uid, const char *key)
{
    return key ? process_path("hekla-%s/%s", uid, key) : process_path("hekla-%s", uid);
}

static void process_plan_close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

void process_launch_close(struct process_launch *l)
{
    process_plan_close_fd(l->state_fd);
    process_plan_close_fd(l->join_state);
    process_plan_close_fd(l->log_fd);
    for (uint32_t k = 0; k < l->ngroup_fd; k++) {
        close(l->group_fds[k]);
    }
}

void process_plan_fini(struct process_plan *p)
{
    process_launch_close(&p->launch);
    hk_buf_fini(&p->pod);
    hk_vec_fini(&p->mounts);
    hk_vec_fini(&p->trees);
    hk_free(p->key);
    hk_free(p->dir);
    hk_free(p->group);
    hk_free(p->log_dir);
    hk_free(p->shm);
}

/* Sorted by length: a parent comes before its children. */
static void add_mount(struct process_plan *p, struct runtime_mount m)
{
    uint32_t k;

    hk_vec_push(&p->mounts, m);
    hk_vec_push(&p->trees, -1);
    for (k = p->mounts.len - 1; k > 0 && strlen(p->mounts.at[k - 1].at) > strlen(m.at); k--) {
        p->mounts.at[k] = p->mounts.at[k - 1];
    }
    p->mounts.at[k] = m;
}

/* Adds the mount unless the container has one at that path. */
static void add_default(struct process_plan *p, const char *from, const char *at)
{
    for (uint32_t k = 0; k < p->mounts.len; k++) {
        if (strcmp(p->mounts.at[k].at, at) == 0) {
            return;
        }
    }
    add_mount(p, (struct runtime_mount){.from = from, .at = at, .own = true});
}

static int plan_mounts(struct process_plan *p, const struct runtime_container *c, const char *hosts,
                       struct hk_err *err)
{
    for (uint32_t k = 0; k < c->nmount; k++) {
        const char *at = c->mounts[k].at;
        if (at[0] != '/' || strlen(at) >= PATH_MAX) {
            return hk_fail(err, HK_EINVAL, "mount point '%s' is not an absolute path", at);
        }
        add_mount(p, c->mounts[k]);
    }
    if (*hosts) {
        add_default(p, hosts, "/etc/hosts");
    }
    if (p->shm) {
        add_default(p, p->shm, "/dev/shm");
    }
    p->launch.mounts = p->mounts.at;
    p->launch.nmount = p->mounts.len;
    p->launch.trees = p->trees.at;
    return 0;
}

static bool needs_mount(const struct runtime_container *c)
{
    for (uint32_t k = 0; k < c->nmount; k++) {
        if (!c->mounts[k].optional) {
            return true;
        }
    }
    return false;
}

/* Field n of the pod's file, where each ends with NUL; "" if there are fewer. */
static const char *pod_field(const struct process_plan *p, int n)
{
    const char *at = p->pod.data, *end = p->pod.data + p->pod.len;

    for (; n > 0 && at < end; n--) {
        at += strlen(at) + 1;
    }
    return at < end ? at : "";
}

/* The pod's shared memory: IPC namespace and /dev/shm. */
static void plan_ipc(struct process_plan *p, const struct process_home *h,
                     const struct runtime_container *c, int sibling)
{
    HK_AUTO(hk_freep) char *shm = h->shm ? process_path("%s/%s", h->shm, c->pod_uid) : NULL;

    p->shm = shm && access(shm, F_OK) == 0 ? hk_take(shm) : NULL; /* none for hostIPC */
    p->launch.own_ipc = h->own_ipc && !*pod_field(p, PROCESS_POD_HOST_IPC);
    /* Without root each container has its own user namespace and cannot share an IPC namespace. */
    p->launch.ipc = p->launch.own_ipc && h->isolation == PROCESS_FULL ? sibling : -1;
}

/* Without root, the only user of an image's container is the one that it wants. */
static struct process_user plan_user(const struct runtime_container *c)
{
    struct process_user u = {.uid = geteuid(), .gid = getegid()};

    u.inner_uid = c->changes && c->uid >= 0 ? c->uid : (int64_t)u.uid;
    u.inner_gid = c->changes && c->gid >= 0 ? c->gid : (int64_t)u.gid;
    return u;
}

static int plan_view(struct process_plan *p, struct process_home *h,
                     const struct runtime_container *c, int sibling, struct hk_err *err)
{
    HK_AUTO(hk_freep) char *file = process_path("%s/%s/%s", h->dir, c->pod_uid, PROCESS_POD_FILE);
    int rc;

    rc = hk_read_file(file, POD_MAX, &p->pod, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "pod '%s' has not been started", c->pod_uid);
    }
    if (h->isolation == PROCESS_PLAIN && (c->root || c->root_read_only || needs_mount(c))) {
        return hk_fail(err, HK_EUNSUP,
                       "container '%s': %s needs mount namespaces, which are not "
                       "permitted here",
                       c->name,
                       c->changes          ? "an image"
                       : c->root           ? "a root directory"
                       : c->root_read_only ? "a read-only root"
                                           : "a mount");
    }
    if (h->isolation == PROCESS_PLAIN) {
        return 0;
    }
    p->launch.isolation = h->isolation;
    p->launch.user = plan_user(c);
    p->launch.hostname = *pod_field(p, PROCESS_POD_HOSTNAME) ? p->pod.data : NULL;
    p->launch.root = c->root;
    p->launch.changes = c->changes;
    p->launch.scratch = h->scratch;
    p->launch.covers = process_cover_points(&h->cover);
    plan_ipc(p, h, c, sibling);
    return plan_mounts(p, c, pod_field(p, PROCESS_POD_HOSTS), err);
}

static int plan_log(struct process_plan *p, const struct process_home *h, const char *log,
                    struct hk_err *err)
{
    const char *slash = log ? strrchr(log, '/') : NULL;

    if (!log) {
        return 0;
    }
    if (!slash || strlen(slash) > NAME_MAX - 2) {
        return hk_fail(err, HK_EINVAL, "log '%s' is not an absolute path", log);
    }
    p->log_dir = hk_strndup(log, (size_t)(slash - log) + 1);
    p->launch.log_name = slash + 1;
    p->launch.log_max_bytes = h->log_max_bytes;
    p->launch.log_fd = open(p->log_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p->launch.log_fd < 0) {
        return hk_fail(err, HK_EIO, "cannot open directory '%s': %m", p->log_dir);
    }
    return 0;
}

static int plan_state(struct process_plan *p, const struct process_home *h,
                      const struct runtime_container *c, struct hk_err *err)
{
    HK_AUTO(hk_freep) char *spec = NULL, *shim = NULL, *shim_temp = NULL, *end_temp = NULL;
    int rc;

    p->key = process_path("%s.%u", c->name, c->attempt);
    p->dir = process_path("%s/%s/%s", h->dir, c->pod_uid, p->key);
    p->group = process_group_name(c->pod_uid, p->key);
    spec = process_path("%s/%s", p->dir, PROCESS_SPEC_FILE);
    shim = process_path("%s/%s", p->dir, PROCESS_SHIM_FILE);
    if (access(shim, F_OK) == 0) {
        return hk_fail(err, HK_EEXIST, "container '%s' was started before", p->key);
    }
    rc = process_state_mkdir(p->dir, err);
    if (rc < 0) {
        return rc;
    }
    rc = process_state_save_spec(spec, c, err);
    if (rc < 0) {
        return rc;
    }
    shim_temp = process_path("%s%s", shim, PROCESS_TEMP);
    end_temp = process_path("%s/%s%s", p->dir, PROCESS_END_FILE, PROCESS_TEMP);
    rc = process_state_reserve(shim_temp, err);
    if (rc < 0) {
        return rc;
    }
    rc = process_state_reserve(end_temp, err);
    if (rc < 0) {
        return rc;
    }
    p->launch.state_fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->launch.state_fd < 0 || flock(p->launch.state_fd, LOCK_EX | LOCK_NB) < 0) {
        return hk_fail(err, HK_EIO, "cannot lock directory '%s': %m", p->dir);
    }
    return 0;
}

int process_plan_make(struct process_plan *p, struct process_home *h,
                      const struct runtime_container *c, int sibling, struct hk_err *err)
{
    static const char *const no_covers[] = {NULL};
    int rc;

    p->launch = (struct process_launch){
        .clock = h->clock,
        .argv = c->argv,
        .env = c->env,
        .cwd = c->cwd,
        .uid = c->uid,
        .gid = c->gid,
        .groups = c->groups,
        .ngroup = c->ngroup,
        .rights = c->rights,
        .root_read_only = c->root_read_only,
        .tty = c->tty,
        .stdin_open = c->stdin_open,
        .state_fd = -1,
        .end_name = PROCESS_END_FILE,
        .log_fd = -1,
        .covers = no_covers,
        .join = -1,
        .join_state = -1,
        .ipc = -1,
        .in = -1,
        .out = -1,
        .err_out = -1,
    };
    if (!(h->groups.controllers & PROCESS_MEMORY)) {
        p->launch.data_bytes = c->limits.mem_bytes;
    }
    if (!(h->groups.controllers & PROCESS_PIDS) && h->isolation == PROCESS_USER) {
        p->launch.max_pids = h->pids_max; /* the kernel counts per user namespace */
    }
    rc = plan_state(p, h, c, err);
    if (rc < 0) {
        return rc;
    }
    rc = plan_view(p, h, c, sibling, err);
    if (rc < 0) {
        return rc;
    }
    rc = plan_log(p, h, c->log, err);
    if (rc < 0) {
        return rc;
    }
    rc = process_group_make(&h->groups, p->group, &c->limits, err);
    if (rc < 0) {
        return rc;
    }
    p->launch.ngroup_fd = process_group_open(&h->groups, p->group, p->launch.group_fds);
    return 0;
}
