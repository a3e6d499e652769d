// SPDX-License-Identifier: Apache-2.0
// What the files of the process runtime share.
#pragma once

#include "agent/process_state.h"
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
    bool track;           /* groups say who belongs to whom: there are no pid namespaces */
};

void process_groups_find(struct process_groups *g);
/* The hierarchy of version 2 mounted at that path, in which our own group is the directory own: the
 * place for groups is the nearest from there on up that can hand controllers down. */
void process_groups_add_unified(struct process_groups *g, const char *mount, const char *own);
void process_groups_fini(struct process_groups *g);
/* Groups are named by a path below our own: "POD" or "POD/CONTAINER". One that is there already
 * gets the limits. Where there is nothing to limit and nothing to track none is made. */
int process_group_make(const struct process_groups *g, const char *name,
                       const struct runtime_limits *limits, struct hk_err *err) HK_CHECKED;
/* Descriptors to which a process writes "0" to join. Returns how many; the caller closes them. */
uint32_t process_group_open(const struct process_groups *g, const char *name,
                            int fds[PROCESS_HIERARCHIES]);
/* How many processes and threads one pod may have when nobody says: few enough that no pod can take
 * them all. */
int64_t process_group_pids_max(const struct process_groups *g);
/* A group for all who need none of their own, and a bound on their processes together. Joining a
 * group of version 1 takes milliseconds, being born in it nothing, so one for each would be too
 * many. Returns its directory; NULL when there is none, and pods can have their own. */
char *process_group_common(const struct process_groups *g, int64_t pids);
/* A fork in the group was refused. */
bool process_group_was_full(const struct process_groups *g, const char *name);
/* Something in the group was killed for want of memory. */
bool process_group_oom(const struct process_groups *g, const char *name);
/* How often that happened on the machine, whoever was killed. */
int64_t process_oom_kills(void);
void process_group_kill(const struct process_groups *g, const char *name);
/* The group and those in it; false while processes are left. */
bool process_group_remove(const struct process_groups *g, const char *name);

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

/* Everything a shim needs. It travels through the nursery (process_nursery.c), which has to be told
 * of new pointers and descriptors. */
struct process_launch {
    struct hk_clock *clock;
    const char *const *argv;
    const char *const *env;
    const char *cwd; /* NULL: / */
    int64_t uid, gid;
    const int64_t *groups;
    uint32_t ngroup;
    struct runtime_rights rights;
    bool tty, stdin_open;

    enum process_isolation isolation;
    struct process_user user;           /* the agent's, for a user namespace */
    const char *hostname;               /* NULL: the machine's */
    const struct runtime_mount *mounts; /* the shorter path first */
    int *trees;                         /* as many, scratch */
    uint32_t nmount;
    const char *root; /* or NULL */
    bool root_read_only;
    const char *scratch; /* an empty directory, to mount things at */

    int64_t data_bytes; /* limit on each process's memory; 0 none */
    int64_t max_pids;   /* limit on processes of the user in this namespace; 0 none */
    int group_fds[PROCESS_HIERARCHIES];
    uint32_t ngroup_fd;

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

/* In the nursery, with every signal blocked: forks the shim. -1 with errno when that fails. */
int process_launch(const struct process_launch *l, int *ret_pidfd);
/* Has the shim send a signal to the command's process group. */
void process_shim_signal(int pidfd, int signo);
/* Has it do something about the command's streams: a RUNTIME_ word and its value. */
void process_shim_tell(int pidfd, enum runtime_word word, int value);
/* The most that is permitted. */
enum process_isolation process_isolation(void);

/* ---- process_nursery.c: who forks ---- */

struct nursery;
/* Those it forks are in the group of that directory from now on. With the nursery the group goes
 * too, unless somebody is left in it. */
void nursery_join(struct nursery *n, const char *group);
int nursery_launch(struct nursery *n, const struct process_launch *l, int *ret_pidfd,
                   struct hk_err *err) HK_CHECKED;

/* ---- process_plan.c: what there must be before a start ---- */

/* Where and how containers run. */
struct process_home {
    struct hk_clock *clock;
    char *dir;
    char *scratch; /* one empty directory for all: each mounts over it in a namespace of its own */
    int64_t log_max_bytes;
    int64_t pids_max; /* of each pod that sets no limit; 0: they share one */
    enum process_isolation isolation;
    struct process_groups groups;
};

/* A launch and what it points to. Ended by process_plan_fini whatever came of it. */
struct process_plan {
    struct process_launch launch;
    struct hk_buf pod; /* the pod's file */
    HK_VEC(struct runtime_mount) mounts;
    HK_VEC(int) trees;
    char *key, *dir, *group, *log_dir;
};

int process_plan_make(struct process_plan *p, const struct process_home *h,
                      const struct runtime_container *c, struct hk_err *err) HK_CHECKED;
void process_plan_fini(struct process_plan *p);
/* The descriptors made for it; the shim has its own. */
void process_launch_close(struct process_launch *l);
char *process_path(const char *fmt, ...) HK_PRINTF(1, 2);
/* Of a pod, or of the container with that key (NAME.ATTEMPT). */
char *process_group_name(const char *uid, const char *key);

/* ---- process_command.c: what becomes the command; runs below the shim ---- */

/* What a command that never ran is reported with: an exit code, or PROCESS_AGAIN when it failed for
 * want of something that may be there later. */
enum {
    PROCESS_AGAIN = 1,
    PROCESS_NOT_EXECUTABLE = 126,
    PROCESS_NOT_FOUND = 127,
    PROCESS_CANNOT_RUN = 128,
};

/* The command is made in the memory of its shim, on a stack of its own (clone with CLONE_VM, as
 * posix_spawn does it): address sanitizers would take that for a mistake. */
#define ON_BORROWED_STACK __attribute__((no_sanitize_address))

/* The error is one of processes, memory, descriptors or room running out. */
bool process_may_pass(int e);
/* Writes the code, as one byte, and a message to the descriptor, and ends the process. */
__attribute__((noreturn, format(printf, 3, 4))) void process_give_up(int report, int code,
                                                                     const char *fmt, ...);
__attribute__((noreturn)) void process_exec(const struct process_launch *l, int report);

/* ---- process_mount.c: what the container sees; runs in the shim ---- */

/* In a mount namespace of its own: root, mounts and /proc. Returns -1 with a message. */
int process_mount(const struct process_launch *l, char message[PROCESS_MESSAGE]);

/* ---- process_rights.c: what the command may do; runs in it, before its exec ---- */

/* The command is made in the memory of its shim, on a stack of its own (clone with CLONE_VM, as
 * posix_spawn does it): address sanitizers would take that for a mistake. */
#define ON_BORROWED_STACK __attribute__((no_sanitize_address))

/* Returns -1 with a message. */
int process_rights_drop(const struct runtime_rights *r, char message[PROCESS_MESSAGE]);

/* ---- process_input.c: what is typed by those who attach; runs in the shim ---- */

#define PROCESS_IN_FILE "stdin"

/* Ready when hold and typed are -1. */
struct process_input {
    int hold;  /* keeps the input from ending while nobody is attached; -1: it has none, or ended */
    int typed; /* keys for a terminal; -1: none */
    size_t at, len;
    char keys[4096]; /* typed and not yet taken by the terminal: [at, len) */
};

/* The descriptor the command reads from, which is not to be used with a terminal; -1: errno says
 * why. */
int process_input_open(struct process_input *i, int state_fd, bool tty);
/* Nothing more will come once those who are attached have gone. */
void process_input_end(struct process_input *i);
/* Passes on what was typed, as far as the terminal takes it. */
void process_input_type(struct process_input *i, int terminal);

/* ---- process_log.c: output as CRI logs; runs in the shim ---- */

enum { PROCESS_LINE = 16 << 10, PROCESS_LOG_OUT = 64 << 10 };

struct process_log {
    struct hk_clock *clock;
    int dir_fd, fd;
    const char *name;
    int64_t size, max_bytes;
    int64_t lost; /* lines since the last that was written */
    int why;      /* errno */
    bool torn;    /* the file ends within a record */
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
/* Writes lines that have no end yet as partial ones: a prompt is to be seen before the answer. */
void process_log_show(struct process_log *l);
/* Lines without an end are written as partial ones. */
void process_log_fini(struct process_log *l);
