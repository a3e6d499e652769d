// SPDX-License-Identifier: Apache-2.0
// The process runtime: the table of operations, the list of running tasks, and the cleanup of pods.
// The state is on disk:
//
//     POD/pod                what its containers share
//     POD/NAME.ATTEMPT/shim  the shim process of the container
//     POD/NAME.ATTEMPT/spec  what exec commands in it need
//     POD/NAME.ATTEMPT/end   how it ended
//     .root                  an empty directory
//
// The tasks in memory are only those whose end must be reported.

#include "agent/process/process.h"

#include "agent/process/process_priv.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOG_MAX_BYTES ((int64_t)10 << 20)
#define STOP_AGAIN_NS 10000000
#define SHIM_TRIES 1000
#define SHIM_WAIT_NS 1000000

struct process;

/* A container, or an exec command in one. */
struct task {
    struct process *owner;
    uint64_t id;
    char *uid, *key;  /* pod uid, and NAME.ATTEMPT of the container */
    char *end_path;   /* path of the record of its end */
    bool beside;      /* an exec command, not the container itself */
    bool quiet;       /* no caller knows its id: found while its pod was stopped */
    bool killed;      /* its shim got the order to kill it */
    int pidfd;        /* of its shim; -1: ended before it was adopted */
    int64_t start_ns; /* wall */
    struct net_watch *watch;
};

struct process {
    struct runtime base;
    struct net_loop *loop;
    struct spawner *spawner;
    struct runtime_sink sink;
    struct process_home home;
    char *link; /* symlink to its directory; NULL: none */
    HK_VEC(struct task *) tasks;
    HK_VEC(char *) stopping; /* uids of pods to remove */
    uint64_t last_id;
    struct net_timer *timer; /* for recorded ends and pods being stopped */
    int64_t oom_kills;       /* of the machine, at the last check */
    struct hk_buf caveats;
};

static struct process *process_of(struct runtime *r)
{
    return (struct process *)r;
}

/* ---- names ---- */

/* Names become path components. */
static bool name_ok(const char *name)
{
    return name && *name && *name != '.' && !strchr(name, '/') && strlen(name) < NAME_MAX / 2;
}

static bool is_stopping(const struct process *p, const char *uid)
{
    for (uint32_t k = 0; k < p->stopping.len; k++) {
        if (strcmp(p->stopping.at[k], uid) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- tasks ---- */

static struct task *task_find(const struct process *p, uint64_t id)
{
    for (uint32_t k = 0; k < p->tasks.len; k++) {
        if (p->tasks.at[k]->id == id) {
            return p->tasks.at[k];
        }
    }
    return NULL;
}

static struct task *task_of_container(const struct process *p, const char *uid, const char *key)
{
    for (uint32_t k = 0; k < p->tasks.len; k++) {
        struct task *t = p->tasks.at[k];
        if (!t->beside && strcmp(t->uid, uid) == 0 && strcmp(t->key, key) == 0) {
            return t;
        }
    }
    return NULL;
}

static void task_let_go(struct task *t)
{
    net_watch_del(t->watch);
    t->watch = NULL;
    if (t->pidfd >= 0) {
        close(t->pidfd);
        t->pidfd = -1;
    }
}

static void task_free(struct task *t)
{
    task_let_go(t);
    hk_free(t->uid);
    hk_free(t->key);
    hk_free(t->end_path);
    hk_free(t);
}

static void task_remove(struct task *t)
{
    struct process *p = t->owner;

    for (uint32_t k = 0; k < p->tasks.len; k++) {
        if (p->tasks.at[k] == t) {
            hk_vec_swap_remove(&p->tasks, k);
            return;
        }
    }
}

/* Without a memory limit the container has no cgroup that counts OOM kills: report only that the
 * machine was short of memory. */
static const char *machine_oom(struct process *p)
{
    const int64_t before = p->oom_kills;

    p->oom_kills = process_oom_kills();
    return p->oom_kills > before ? "killed while the machine was short of memory" : "";
}

/* Adds what the cgroups know about the end. Kernels differ in which group counts refused forks. */
static void look_at_groups(const struct process *p, const struct task *t, struct runtime_end *end)
{
    const struct process_groups *g = &p->home.groups;
    HK_AUTO(hk_freep) char *own = process_group_name(t->uid, t->key);
    HK_AUTO(hk_freep) char *pod = process_group_name(t->uid, NULL);

    end->oom = process_group_oom(g, own);
    if (end->code != 0 && !end->message[0] &&
        (process_group_was_full(g, own) || process_group_was_full(g, pod))) {
        end->message = "a fork was refused: the pod had reached its limit of processes";
    }
}

/* The attempt can start again: without the first of these files it counts as never started. */
static void process_remove_attempt_files(const struct process *p, const struct task *t)
{
    HK_AUTO(hk_freep)
    char *shim = process_path("%s/%s/%s/%s", p->home.dir, t->uid, t->key, PROCESS_SHIM_FILE);

    unlink(shim);
    unlink(t->end_path);
}

/* The shim was killed or its record is unreadable: no process manages the rest of the container. */
static void end_unknown(const struct task *t, const char *why, struct runtime_end *ret)
{
    struct process *p = t->owner;
    HK_AUTO(hk_freep) char *group = process_group_name(t->uid, t->key);
    const bool wanted = is_stopping(p, t->uid) || t->beside;

    *ret = (struct runtime_end){
        .code = 128 + SIGKILL,
        .signo = SIGKILL,
        .message = wanted ? "" : why,
        .start_ns = t->start_ns,
        .end_ns = p->home.clock->wall_ns(p->home.clock),
    };
    if (!t->beside) {
        process_group_kill(&p->home.groups, group);
    }
}

/* The shim is gone: reports how the container ended. The sink may call back into the runtime. */
static void task_end(struct task *t)
{
    struct process *p = t->owner;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_err err = {0};
    struct runtime_end end;

    task_let_go(t); /* frees a descriptor to read the record with, in case none is left */
    const int rc = process_state_end(t->end_path, &text, &end, &err);
    if (rc < 0) {
        end_unknown(t,
                    rc == -HK_ENOTFOUND ? "the process that looked after the container was killed"
                                        : err.text,
                    &end);
    }
    if (t->beside) {
        unlink(t->end_path);
    } else {
        look_at_groups(p, t, &end);
        if (end.signo == SIGKILL && !end.oom && !*end.message && !is_stopping(p, t->uid)) {
            end.message = machine_oom(p);
        }
    }
    if (end.again && !t->beside) {
        process_remove_attempt_files(p, t);
    }
    task_remove(t);
    if (!t->quiet) {
        p->sink.on_end(p->sink.ctx, t->id, &end);
    }
    task_free(t);
}

static void on_shim(void *ctx, uint32_t events)
{
    task_end(ctx);
}

/* Takes end_path and pidfd. */
static struct task *task_new(struct process *p, const char *uid, const char *key, char *end_path,
                             int pidfd)
{
    struct task *t = hk_zalloc(sizeof(*t));

    t->owner = p;
    t->id = ++p->last_id;
    t->uid = hk_strdup(uid);
    t->key = hk_strdup(key);
    t->end_path = end_path;
    t->pidfd = pidfd;
    t->start_ns = p->home.clock->wall_ns(p->home.clock);
    if (pidfd >= 0) {
        t->watch = net_watch_add(p->loop, pidfd, EPOLLIN, on_shim, t);
    } else {
        net_timer_at(p->timer, net_loop_now_ns(p->loop));
    }
    hk_vec_push(&p->tasks, t);
    return t;
}

/* ---- pods ---- */

static int pod_start(struct runtime *r, const struct runtime_pod *pod, struct hk_err *err)
{
    struct process *p = process_of(r);
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    HK_AUTO(hk_freep) char *dir = NULL, *file = NULL, *group = NULL;
    struct runtime_limits limits = pod->limits;
    int rc;

    if (!name_ok(pod->uid)) {
        return hk_fail(err, HK_EINVAL, "pod uid '%s' is no name", pod->uid ? pod->uid : "");
    }
    if (is_stopping(p, pod->uid)) {
        return hk_fail(err, HK_EBUSY, "pod '%s' is being stopped", pod->uid);
    }
    dir = process_path("%s/%s", p->home.dir, pod->uid);
    file = process_path("%s/%s", dir, PROCESS_POD_FILE);
    group = process_group_name(pod->uid, NULL);
    hk_buf_addf(&text, "%s%c%s%c%s", pod->hostname ? pod->hostname : "", 0,
                pod->hosts ? pod->hosts : "", 0, pod->host_ipc ? "host" : "");
    rc = process_state_mkdir(dir, err);
    if (rc < 0) {
        return rc;
    }
    rc = pod->host_ipc ? 0 : process_shm_make(&p->home, pod->uid, err);
    if (rc < 0) {
        return rc;
    }
    rc = process_state_write(file, hk_buf_str(&text), err);
    if (rc < 0) {
        return rc;
    }
    limits.pids = limits.pids > 0 ? limits.pids : p->home.pids_max;
    return process_group_make(&p->home.groups, group, &limits, err);
}

static void task_kill(struct task *t)
{
    if (t->pidfd < 0) {
        return;
    }
    if (t->owner->home.isolation != PROCESS_PLAIN && !t->beside) {
        pidfd_send_signal(t->pidfd, SIGKILL, NULL, 0); /* ends its whole pid namespace */
    } else {
        process_shim_signal(t->pidfd, SIGKILL);
    }
}

/* After the agent was killed, a new shim may not have written its shim file yet. Until then it
 * holds the lock on its directory. */
static void await_shim(const char *dir, const char *shim_path)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int k = 0; fd >= 0 && k < SHIM_TRIES; k++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || access(shim_path, F_OK) == 0) {
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = SHIM_WAIT_NS}, NULL);
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* Adds tasks for running containers of the pod that were not adopted. */
static void find_strays(struct process *p, const char *uid)
{
    HK_AUTO(hk_freep) char *dir = process_path("%s/%s", p->home.dir, uid);
    DIR *d = opendir(dir);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        HK_AUTO(hk_freep) char *file = process_path("%s/%s/%s", dir, e->d_name, PROCESS_SHIM_FILE);
        HK_AUTO(hk_freep) char *own = process_path("%s/%s", dir, e->d_name);
        struct process_shim shim;
        if (e->d_name[0] == '.' || task_of_container(p, uid, e->d_name)) {
            continue;
        }
        await_shim(own, file);
        if (process_state_shim(file, &shim, NULL) < 0) {
            continue;
        }
        const int pidfd = process_state_open(&shim);
        if (pidfd >= 0) {
            task_new(p, uid, e->d_name, process_path("%s/%s/%s", dir, e->d_name, PROCESS_END_FILE),
                     pidfd)
                ->quiet = true;
        }
    }
    if (d) {
        closedir(d);
    }
}

static void pod_stop(struct runtime *r, const char *uid)
{
    struct process *p = process_of(r);
    HK_AUTO(hk_freep) char *dir = NULL;

    if (!name_ok(uid) || is_stopping(p, uid)) {
        return;
    }
    dir = process_path("%s/%s", p->home.dir, uid);
    if (access(dir, F_OK) < 0) {
        return;
    }
    hk_vec_push(&p->stopping, hk_strdup(uid));
    find_strays(p, uid);
    for (uint32_t k = 0; k < p->tasks.len; k++) {
        if (strcmp(p->tasks.at[k]->uid, uid) == 0) {
            task_kill(p->tasks.at[k]);
        }
    }
    net_timer_at(p->timer, net_loop_now_ns(p->loop));
}

static bool has_task(const struct process *p, const char *uid)
{
    for (uint32_t k = 0; k < p->tasks.len; k++) {
        if (strcmp(p->tasks.at[k]->uid, uid) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns true if nothing is left of the pod. */
static bool clear_pod(struct process *p, const char *uid)
{
    HK_AUTO(hk_freep) char *group = process_group_name(uid, NULL);
    HK_AUTO(hk_freep) char *dir = process_path("%s/%s", p->home.dir, uid);

    process_group_kill(&p->home.groups, group);
    if (has_task(p, uid) || !process_group_remove(&p->home.groups, group)) {
        return false;
    }
    return process_shm_remove(&p->home, uid) && process_state_remove(dir);
}

/* Reports one end that was on record when its container was adopted. */
static bool tell_recorded(struct process *p)
{
    for (uint32_t k = 0; k < p->tasks.len; k++) {
        if (p->tasks.at[k]->pidfd < 0) {
            task_end(p->tasks.at[k]);
            return true;
        }
    }
    return false;
}

static void process_on_timer(void *ctx)
{
    struct process *p = ctx;

    while (tell_recorded(p)) {
    }
    for (uint32_t k = p->stopping.len; k-- > 0;) {
        if (clear_pod(p, p->stopping.at[k])) {
            hk_free(p->stopping.at[k]);
            hk_vec_swap_remove(&p->stopping, k);
        }
    }
    if (p->stopping.len > 0) {
        net_timer_at(p->timer, net_loop_now_ns(p->loop) + STOP_AGAIN_NS);
    }
}

static void each_pod(struct runtime *r, void (*fn)(void *ctx, const char *uid), void *ctx)
{
    struct process *p = process_of(r);
    HK_VEC(char *) uids = {0};
    DIR *d = opendir(p->home.dir);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        if (name_ok(e->d_name)) {
            hk_vec_push(&uids, hk_strdup(e->d_name));
        }
    }
    if (d) {
        closedir(d);
    }
    for (uint32_t k = 0; k < uids.len; k++) {
        fn(ctx, uids.at[k]);
        hk_free(uids.at[k]);
    }
    hk_vec_fini(&uids);
}

/* ---- starting ---- */

/* The shim of another running container of the pod; -1: none. */
static int find_sibling(const struct process *p, const char *uid)
{
    for (uint32_t k = 0; k < p->tasks.len; k++) {
        const struct task *t = p->tasks.at[k];
        if (!t->beside && t->pidfd >= 0 && strcmp(t->uid, uid) == 0) {
            return t->pidfd;
        }
    }
    return -1;
}

static struct task *find_target(const struct process *p, const char *uid, const char *name)
{
    const size_t n = strlen(name);

    for (uint32_t k = 0; k < p->tasks.len; k++) {
        struct task *t = p->tasks.at[k];
        if (!t->beside && t->pidfd >= 0 && strcmp(t->uid, uid) == 0 &&
            strncmp(t->key, name, n) == 0 && t->key[n] == '.' && !strchr(t->key + n + 1, '.')) {
            return t;
        }
    }
    return NULL;
}

/* Lets the container share the namespaces of its target; without isolation all share everything. */
static int plan_target(const struct process *p, const struct runtime_container *c,
                       struct process_plan *plan, struct hk_err *err)
{
    HK_AUTO(hk_freep) char *dir = NULL, *path = NULL;
    const struct task *t;

    if (!c->target || p->home.isolation == PROCESS_PLAIN) {
        return 0;
    }
    t = find_target(p, c->pod_uid, c->target);
    if (!t) {
        return hk_fail(err, HK_EBUSY, "container %s, whose processes to share, is not running",
                       c->target);
    }
    dir = process_path("%s/%s/%s", p->home.dir, t->uid, t->key);
    path = process_path("%s/" PROCESS_TARGET_FILE, plan->dir);
    plan->launch.join = t->pidfd;
    plan->launch.join_state = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return process_state_write(path, hk_str(t->key), err);
}

/* The shim whose namespaces a command in the container enters; -1: none, there is no isolation. */
static int find_namespaces(const struct process *p, const struct task *of, const char *dir,
                           int *ret, struct hk_err *err)
{
    HK_AUTO(hk_freep) char *path = process_path("%s/" PROCESS_TARGET_FILE, dir);
    HK_AUTO(hk_buf_fini) struct hk_buf key = {0};
    const struct task *t = of;

    *ret = -1;
    if (p->home.isolation == PROCESS_PLAIN) {
        return 0;
    }
    if (access(path, F_OK) == 0 && hk_read_file(path, NAME_MAX, &key, NULL) == 0) {
        t = task_of_container(p, of->uid, hk_buf_str(&key).s);
    }
    if (!t || t->pidfd < 0) {
        return hk_fail(err, HK_ENOTFOUND, "container not running");
    }
    *ret = t->pidfd;
    return 0;
}

static int process_runtime_start(struct runtime *r, const struct runtime_container *c,
                                 uint64_t *ret, struct hk_err *err)
{
    struct process *p = process_of(r);
    HK_AUTO(process_plan_fini)
    struct process_plan plan = {.launch = {.state_fd = -1, .log_fd = -1, .join_state = -1}};
    int rc, pidfd;

    if (!name_ok(c->pod_uid) || !name_ok(c->name)) {
        return hk_fail(err, HK_EINVAL, "container '%s' has no proper name", c->name);
    }
    if (!c->argv || !c->argv[0]) {
        return hk_fail(err, HK_EINVAL, "container '%s': no command specified", c->name);
    }
    if (is_stopping(p, c->pod_uid)) {
        return hk_fail(err, HK_EBUSY, "pod '%s' is being stopped", c->pod_uid);
    }
    rc = process_plan_make(&plan, &p->home, c, find_sibling(p, c->pod_uid), err);
    if (rc < 0) {
        return rc;
    }
    rc = plan_target(p, c, &plan, err);
    if (rc < 0) {
        return rc;
    }
    rc = spawner_launch(p->spawner, &plan.launch, &pidfd, err);
    if (rc < 0) {
        return rc;
    }
    *ret =
        task_new(p, c->pod_uid, plan.key, process_path("%s/%s", plan.dir, PROCESS_END_FILE), pidfd)
            ->id;
    return 0;
}

static int exec_beside(struct runtime *r, uint64_t container, const char *const *argv, int in,
                       int out, int err_out, uint64_t *ret, struct hk_err *err)
{
    struct process *p = process_of(r);
    struct task *of = task_find(p, container);
    HK_AUTO(process_spec_fini) struct process_spec spec = {0};
    HK_AUTO(hk_freep) char *dir = NULL, *spec_path = NULL, *end_name = NULL, *group = NULL;
    static const char *const no_covers[] = {NULL};
    struct process_launch l;
    int rc, join, pidfd;

    if (!of || of->beside || of->pidfd < 0) {
        return hk_fail(err, HK_ENOTFOUND, "container not running");
    }
    dir = process_path("%s/%s/%s", p->home.dir, of->uid, of->key);
    spec_path = process_path("%s/%s", dir, PROCESS_SPEC_FILE);
    end_name = process_path("exec-%" PRIu64, p->last_id + 1);
    group = process_group_name(of->uid, of->key);
    rc = process_state_load_spec(spec_path, &spec, err);
    if (rc < 0) {
        return rc;
    }
    rc = find_namespaces(p, of, dir, &join, err);
    if (rc < 0) {
        return rc;
    }
    const bool tty = in >= 0 && isatty(in);
    /* In a user namespace the agent's user is that one. */
    if (tty && spec.uid >= 0 && p->home.isolation != PROCESS_USER &&
        fchown(in, (uid_t)spec.uid, (gid_t)-1) < 0) {
        return hk_fail(err, HK_EIO, "cannot give the terminal to user %" PRId64 ": %m", spec.uid);
    }
    l = (struct process_launch){
        .clock = p->home.clock,
        .argv = argv,
        .env = spec.env.at,
        .cwd = spec.cwd,
        .uid = spec.uid,
        .gid = spec.gid,
        .groups = spec.groups.at,
        .ngroup = spec.groups.len,
        .rights = spec.rights,
        .state_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .end_name = end_name,
        .log_fd = -1,
        .isolation = p->home.isolation,
        .covers = no_covers, /* the container's covers apply */
        .join = join,
        .join_state = -1,
        .ipc = -1,
        .own_ipc = p->home.own_ipc,
        .in = in,
        .out = out,
        .err_out = err_out,
        .tty = tty,
        .beside = true,
    };
    l.ngroup_fd = process_group_open(&p->home.groups, group, l.group_fds);
    rc = spawner_launch(p->spawner, &l, &pidfd, err);
    process_launch_close(&l);
    if (rc < 0) {
        return rc;
    }
    struct task *t = task_new(p, of->uid, of->key, process_path("%s/%s", dir, end_name), pidfd);
    t->beside = true;
    *ret = t->id;
    return 0;
}

static void kill_task(struct runtime *r, uint64_t container, int signo)
{
    struct task *t = task_find(process_of(r), container);

    if (!t || t->pidfd < 0) {
        return;
    }
    if (signo == SIGKILL && t->killed) {
        pidfd_send_signal(t->pidfd, SIGKILL, NULL, 0); /* the shim did not react: end it */
        return;
    }
    t->killed |= signo == SIGKILL;
    process_shim_signal(t->pidfd, signo);
}

/* ---- streams of running containers ---- */

static int open_in(struct runtime *r, uint64_t container, int *ret, struct hk_err *err)
{
    struct process *p = process_of(r);
    struct task *t = task_find(p, container);
    HK_AUTO(hk_freep) char *path = NULL;

    if (!t) {
        return hk_fail(err, HK_ENOTFOUND, "container not running");
    }
    path = process_path("%s/%s/%s/%s", p->home.dir, t->uid, t->key, PROCESS_IN_FILE);
    *ret = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (*ret >= 0) {
        return 0;
    }
    return errno == ENXIO
               ? hk_fail(err, HK_EINVAL, "the container has closed its standard input")
               : hk_fail(err, HK_EINVAL, "the container's standard input cannot be opened: %m");
}

static void process_send_word(struct runtime *r, uint64_t container, enum runtime_word word,
                              int value)
{
    struct task *t = task_find(process_of(r), container);

    if (t && t->pidfd >= 0) {
        process_shim_tell(t->pidfd, word, value);
    }
}

static int process_find_listener(struct runtime *r, const char *uid, const char *address,
                                 uint16_t port, struct runtime_listener *inout, struct hk_err *err)
{
    const struct process *p = process_of(r);
    HK_VEC(int) shims = {0};
    int rc;

    for (uint32_t k = 0; k < p->tasks.len; k++) {
        if (p->tasks.at[k]->pidfd >= 0 && strcmp(p->tasks.at[k]->uid, uid) == 0) {
            hk_vec_push(&shims, p->tasks.at[k]->pidfd);
        }
    }
    rc = process_listener_find(shims.at, shims.len, address, port, inout, err);
    hk_vec_fini(&shims);
    return rc;
}

/* ---- adoption ---- */

static int process_runtime_adopt(struct runtime *r, const char *uid, const char *name,
                                 uint32_t attempt, uint64_t *ret, struct hk_err *err)
{
    struct process *p = process_of(r);
    HK_AUTO(hk_freep) char *key = NULL, *dir = NULL, *shim_path = NULL, *end_path = NULL;
    struct process_shim shim;
    struct task *t;
    int pidfd, rc;

    if (!name_ok(uid) || !name_ok(name)) {
        return hk_fail(err, HK_EINVAL, "container '%s' has no proper name", name);
    }
    key = process_path("%s.%u", name, attempt);
    t = task_of_container(p, uid, key);
    if (t) {
        t->quiet = false;
        *ret = t->id;
        return 0;
    }
    dir = process_path("%s/%s/%s", p->home.dir, uid, key);
    shim_path = process_path("%s/%s", dir, PROCESS_SHIM_FILE);
    end_path = process_path("%s/%s", dir, PROCESS_END_FILE);
    await_shim(dir, shim_path);
    rc = process_state_shim(shim_path, &shim, err);
    if (rc == -HK_ENOTFOUND) {
        return hk_fail(err, HK_EBUSY, "container '%s' never came to run", key);
    }
    if (rc < 0) {
        HK_AUTO(hk_freep) char *group = process_group_name(uid, key);
        process_group_kill(&p->home.groups, group); /* no shim manages it */
        return rc;
    }
    /* In this order: a shim writes the record before it exits. */
    pidfd = process_state_open(&shim);
    if (pidfd < 0 && access(end_path, F_OK) < 0) {
        return hk_fail(err, HK_ENOTFOUND, "container '%s' ended without a record", key);
    }
    t = task_new(p, uid, key, hk_take(end_path), pidfd);
    t->start_ns = shim.start_ns;
    *ret = t->id;
    return 0;
}

/* ---- the runtime ---- */

static const char *process_runtime_caveats(struct runtime *r)
{
    return hk_buf_str(&process_of(r)->caveats).s;
}

/* The directory may be a symlink. */
static void set_home(struct process *p, const char *dir)
{
    char target[PATH_MAX];
    const ssize_t n = readlink(dir, target, sizeof(target) - 1);

    p->link = n > 0 ? hk_strdup(dir) : NULL;
    p->home.dir = n > 0 ? hk_strndup(target, (size_t)n) : hk_strdup(dir);
    p->home.scratch = process_path("%s/.root", p->home.dir);
    mkdir(p->home.dir, 0711); /* the first pod reports a failure */
    mkdir(p->home.scratch, 0711);
}

/* No single pod can use up all pids. */
static void bound_pids(struct process *p, int64_t each)
{
    const int64_t share = process_group_pids_max(&p->home.groups);
    HK_AUTO(hk_freep)
    char *common =
        each == 0 && p->spawner ? process_group_common(&p->home.groups, share * 2) : NULL;

    p->home.pids_max = each > 0 ? each : common ? 0 : share;
    if (common) {
        spawner_join(p->spawner, common);
    }
}

static void count_pod(void *ctx, const char *uid)
{
    ++*(uint32_t *)ctx;
}

/* Removes the directory if it records nothing. */
static void remove_home(struct process *p)
{
    uint32_t npod = 0;

    each_pod(&p->base, count_pod, &npod);
    if (npod == 0) {
        rmdir(p->home.scratch);
        rmdir(p->home.dir);
        if (p->home.shm) {
            rmdir(p->home.shm);
        }
        if (p->link) {
            unlink(p->link);
        }
    }
}

static void process_free(struct runtime *r)
{
    struct process *p = process_of(r);

    remove_home(p);
    for (uint32_t k = 0; k < p->tasks.len; k++) {
        if (p->tasks.at[k]->beside) {
            pidfd_send_signal(p->tasks.at[k]->pidfd, SIGKILL, NULL, 0);
        }
        task_free(p->tasks.at[k]);
    }
    for (uint32_t k = 0; k < p->stopping.len; k++) {
        hk_free(p->stopping.at[k]);
    }
    hk_vec_fini(&p->tasks);
    hk_vec_fini(&p->stopping);
    net_timer_free(p->timer);
    process_groups_fini(&p->home.groups);
    hk_buf_fini(&p->caveats);
    hk_free(p->home.dir);
    hk_free(p->home.scratch);
    hk_free(p->home.shm);
    hk_free(p->link);
    process_cover_fini(&p->home.cover);
    hk_free(p);
}

static const struct runtime_ops process_ops = {
    .name = "process",
    .pod_start = pod_start,
    .pod_stop = pod_stop,
    .start = process_runtime_start,
    .kill = kill_task,
    .exec = exec_beside,
    .open_in = open_in,
    .tell = process_send_word,
    .find_listener = process_find_listener,
    .adopt = process_runtime_adopt,
    .each_pod = each_pod,
    .caveats = process_runtime_caveats,
    .free = process_free,
};

struct runtime *process_runtime_new(const struct process_opts *o)
{
    struct process *p = hk_zalloc(sizeof(*p));

    p->base.ops = &process_ops;
    p->loop = o->loop;
    p->spawner = o->spawner;
    p->home.clock = o->clock;
    p->sink = o->sink;
    p->home.log_max_bytes = o->log_max_bytes > 0 ? o->log_max_bytes : LOG_MAX_BYTES;
    p->timer = net_timer_new(o->loop, process_on_timer, p);
    set_home(p, o->dir);
    process_shm_open(&p->home, o->shm);
    process_cover_init(&p->home.cover, o->covered);
    if (!o->plain) {
        p->home.isolation = process_isolation();
        p->home.own_ipc = process_can_have_ipc(p->home.isolation);
        process_groups_find(&p->home.groups);
        p->home.groups.track = p->home.isolation == PROCESS_PLAIN;
    }
    bound_pids(p, o->pids_max);
    process_caveats(&p->home, &p->caveats);
    p->oom_kills = process_oom_kills();
    return &p->base;
}
