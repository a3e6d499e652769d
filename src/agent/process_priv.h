// SPDX-License-Identifier: Apache-2.0
// What the files of the process runtime share.
#pragma once

#include "agent/process.h"
#include "base/vec.h"

#include <sys/types.h>

/* ---- process_cgroup.c: limits, and what belongs to whom ---- */

enum process_controller {
    PROCESS_CPU = 1,
    PROCESS_MEMORY = 2,
    PROCESS_PIDS = 4,
};
enum { PROCESS_HIERARCHIES = 4 };

/* The hierarchies in which we may make groups, each with the directory of our own group. */
struct process_groups {
    struct process_hierarchy {
        char *base;
        bool v2;
        unsigned controllers; /* set of enum process_controller */
    } at[PROCESS_HIERARCHIES];
    uint32_t len;
    unsigned controllers; /* of all */
};

void process_groups_find(struct process_groups *g);
void process_groups_fini(struct process_groups *g);
/* Groups are named by a path below our own: "POD" or "POD/CONTAINER". One that is there already
 * gets the limits. */
int process_group_make(const struct process_groups *g, const char *name,
                       const struct runtime_limits *limits, struct hk_err *err) HK_CHECKED;
/* Descriptors to which a process writes "0" to join. Returns how many; the caller closes them, and
 * *ret_born: the directory of a group in which it can be born instead, which does not stop every
 * fork of the machine for a while as joining does; -1 none. */
uint32_t process_group_open(const struct process_groups *g, const char *name,
                            int fds[PROCESS_HIERARCHIES], int *ret_born);
/* Something in the group was killed for want of memory. */
bool process_group_oom(const struct process_groups *g, const char *name);
void process_group_kill(const struct process_groups *g, const char *name);
/* The group and those in it; false while processes are left. */
bool process_group_remove(const struct process_groups *g, const char *name);

/* ---- process_state.c: what outlives the agent ---- */

/* Reads what the shim (process_start.c) wrote. */
struct process_shim {
    int64_t pid, start_ticks; /* the second as in /proc/PID/stat */
    int64_t start_ns;         /* wall */
};

/* A running container's surroundings, for commands beside it. Ends with process_spec_fini. */
struct process_spec {
    struct hk_buf text;
    const char *cwd; /* NULL: / */
    int64_t uid, gid;
    HK_VEC(int64_t) groups;
    HK_VEC(const char *) env; /* ended by NULL */
};

#define PROCESS_SHIM_FILE "shim"
#define PROCESS_END_FILE "end"
#define PROCESS_SPEC_FILE "spec"
#define PROCESS_POD_FILE "pod"

int process_state_mkdir(const char *path, struct hk_err *err) HK_CHECKED;
void process_state_remove(const char *path);
/* Not flushed to the disk: after a power failure there is no container to be found. */
int process_state_write(const char *path, struct hk_str text, struct hk_err *err) HK_CHECKED;
/* -HK_ENOTFOUND without the file. Messages are kept in text. */
int process_state_end(const char *path, struct hk_buf *text, struct runtime_end *ret,
                      struct hk_err *err) HK_CHECKED;
int process_state_shim(const char *path, struct process_shim *ret, struct hk_err *err) HK_CHECKED;
/* Fields 1 (pid) and 22 (start) of a stat file's text. */
bool process_state_stat(struct hk_str text, int64_t *ret_pid, int64_t *ret_ticks);
/* A descriptor of the process if it is still that one, else -1. */
int process_state_open(const struct process_shim *s);
int process_state_save_spec(const char *path, const struct runtime_container *c,
                            struct hk_err *err) HK_CHECKED;
int process_state_load_spec(const char *path, struct process_spec *ret,
                            struct hk_err *err) HK_CHECKED;
void process_spec_fini(struct process_spec *s);

/* ---- process_start.c: the shim and the command ---- */

enum { PROCESS_MESSAGE = 512 };

/* What errno means, in lower case as the rest of a message: printf("..." PROCESS_WHY,
 * PROCESS_WHY_OF(errno)). strerror may use the heap. */
#define PROCESS_WHY "%c%s"
#define PROCESS_WHY_OF(e) *strerrordesc_np(e) | 0x20, strerrordesc_np(e) + 1

enum process_isolation {
    PROCESS_PLAIN, /* none */
    PROCESS_USER,  /* namespaces, by way of a user namespace with one user in it */
    PROCESS_FULL,  /* namespaces, and every user */
};

struct process_user {
    uid_t uid;
    gid_t gid;
};

/* Everything a shim needs. It is a fork without exec: the pointers are good in it, the heap is
 * not to be used, for another thread may have been in the allocator. */
struct process_launch {
    struct process_nursery *nursery; /* who forks; NULL: the caller */
    struct hk_clock *clock;
    const char *const *argv;
    const char *const *env;
    const char *cwd; /* NULL: / */
    int64_t uid, gid;
    const int64_t *groups;
    uint32_t ngroup;
    bool tty, stdin_open;

    enum process_isolation isolation;
    struct process_user user;           /* the agent's, for a user namespace */
    const char *hostname;               /* NULL: the machine's */
    const struct runtime_mount *mounts; /* the shorter path first */
    int *trees;                         /* as many, scratch */
    uint32_t nmount;
    const char *root;    /* or NULL */
    const char *scratch; /* an empty directory, to mount things at */

    int64_t data_bytes; /* limit on each process's memory; 0 none */
    int group_fds[PROCESS_HIERARCHIES];
    uint32_t ngroup_fd;
    int born; /* as in process_group_open */

    /* Directory of the records. A container's shim is given the lock on it and lets go once the
     * command runs; commands beside it wait for that. */
    int state_fd;
    const char *end_name; /* the record of the end */
    int log_fd;           /* directory of the log, -1: none */
    const char *log_name;
    int64_t log_max_bytes;

    int join;             /* pidfd of the shim whose namespaces to enter, -1 none */
    int in, out, err_out; /* where there is no log; -1: /dev/null */
    bool beside;          /* a container: no state of its own, dies with the agent */
};

int process_launch(const struct process_launch *l, int *ret_pidfd, struct hk_err *err) HK_CHECKED;
/* Forks the shim with further flags; signals are blocked. Returns as fork in the parent only. */
pid_t process_fork(const struct process_launch *l, uint64_t flags, int *ret_pidfd);
/* Has the shim send a signal to the command's process group. */
void process_shim_signal(int pidfd, int signo);
/* The most that is permitted. */
enum process_isolation process_isolation(void);

/* ---- process_nursery.c ---- */

/* False when the nursery cannot do it. Else *ret_why is 0, or an errno. */
bool process_nursery_launch(struct process_nursery *n, const struct process_launch *l,
                            int *ret_pidfd, int *ret_why);

/* ---- process_plan.c: what there must be before a start ---- */

/* Where and how containers run. */
struct process_home {
    struct process_nursery *nursery; /* or NULL */
    struct hk_clock *clock;
    char *dir;
    int64_t log_max_bytes;
    enum process_isolation isolation;
    struct process_groups groups;
};

/* A launch and what it points to. Ended by process_plan_fini whatever came of it. */
struct process_plan {
    struct process_launch launch;
    struct hk_buf pod; /* the pod's file */
    HK_VEC(struct runtime_mount) mounts;
    HK_VEC(int) trees;
    char *key, *dir, *group, *scratch, *log_dir;
};

int process_plan_make(struct process_plan *p, const struct process_home *h,
                      const struct runtime_container *c, struct hk_err *err) HK_CHECKED;
void process_plan_fini(struct process_plan *p);
/* The descriptors made for it; the shim has its own. */
void process_launch_close(struct process_launch *l);
char *process_path(const char *fmt, ...) HK_PRINTF(1, 2);
/* Of a pod, or of the container with that key (NAME.ATTEMPT). */
char *process_group_name(const char *uid, const char *key);

/* ---- process_mount.c: what the container sees; runs in the shim ---- */

/* In a mount namespace of its own: root, mounts and /proc. Returns -1 with a message. */
int process_mount(const struct process_launch *l, char message[PROCESS_MESSAGE]);

/* ---- process_log.c: output as CRI logs; runs in the shim ---- */

enum { PROCESS_LINE = 16 << 10, PROCESS_LOG_OUT = 64 << 10 };

struct process_log {
    struct hk_clock *clock;
    int dir_fd, fd;
    const char *name;
    int64_t size, max_bytes;
    size_t out_len;
    struct {
        const char *name;
        size_t len;
        char line[PROCESS_LINE];
    } streams[2]; /* stdout, stderr */
    char out[PROCESS_LOG_OUT];
};

void process_log_init(struct process_log *l, struct hk_clock *clock, int dir_fd, const char *name,
                      int64_t max_bytes);
/* Takes what a stream (0 stdout, 1 stderr) has said. */
void process_log_add(struct process_log *l, int stream, const char *p, size_t n);
void process_log_flush(struct process_log *l);
/* Lines without an end are written as partial ones. */
void process_log_fini(struct process_log *l);
