// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the process runtime.
#pragma once

#include "agent/process/state.h"
#include "base/vec.h"

#include <sys/types.h>

/* ---- cgroup.c: limits, and which process belongs to which container ---- */

enum process_controller {
    PROCESS_CPU = 1,
    PROCESS_MEMORY = 2,
    PROCESS_PIDS = 4,
};
enum { PROCESS_HIERARCHIES = 4 };

/* The hierarchies where we may create groups, each with the directory of our own group. */
struct process_groups {
    struct process_hierarchy {
        char *base;
        bool v2;
        unsigned controllers; /* set of enum process_controller */
    } at[PROCESS_HIERARCHIES];
    uint32_t len;
    unsigned controllers; /* union of all hierarchies */
    bool track;           /* find a container's processes by group: no pid namespaces */
};

void process_groups_find(struct process_groups *g);
/* Adds the version 2 hierarchy mounted at that path; own is the directory of our group. Groups are
 * created in the nearest ancestor of own that can delegate controllers. */
void process_groups_add_unified(struct process_groups *g, const char *mount, const char *own);
void process_groups_fini(struct process_groups *g);
/* Group names are paths below our own group: "POD" or "POD/CONTAINER". An existing group gets the
 * limits. Creates no group when there is nothing to limit or track. */
int process_group_make(const struct process_groups *g, const char *name,
                       const struct runtime_limits *limits, struct hk_err *err) HK_CHECKED;
/* Descriptors to which a process writes "0" to join. Returns how many; the caller closes them. */
uint32_t process_group_open(const struct process_groups *g, const char *name,
                            int fds[PROCESS_HIERARCHIES]);
/* Default limit of processes and threads per pod, so low that no pod can use them all up. */
int64_t process_group_pids_max(const struct process_groups *g);
/* Creates a group shared by all pods that need none of their own, and limits their processes
 * together. Joining a version 1 group takes milliseconds, starting in it costs nothing, so one
 * group per pod would be slow. Returns its directory, NULL when there is none and pods can have
 * their own. */
char *process_group_common(const struct process_groups *g, int64_t pids);
/* The group's limit has refused a fork. */
bool process_group_was_full(const struct process_groups *g, const char *name);
/* The kernel killed a process of the group for lack of memory. */
bool process_group_oom(const struct process_groups *g, const char *name);
/* The same, counted over the whole machine. */
int64_t process_oom_kills(void);
void process_group_kill(const struct process_groups *g, const char *name);
/* Removes the group and its subgroups; false while processes are left. */
bool process_group_remove(const struct process_groups *g, const char *name);

/* ---- start.c: the shim and the command ---- */

enum { PROCESS_MESSAGE = 512 };

/* Text of errno, starting in lower case: printf("..." PROCESS_WHY, PROCESS_WHY_OF(errno)). strerror
 * may use the heap. */
#define PROCESS_WHY "%c%s"
#define PROCESS_WHY_OF(e) *strerrordesc_np(e) | 0x20, strerrordesc_np(e) + 1

enum process_isolation {
    PROCESS_PLAIN, /* none */
    PROCESS_USER,  /* namespaces, inside a user namespace with one user */
    PROCESS_FULL,  /* namespaces, and every user */
};

struct process_user {
    uid_t uid;
    gid_t gid;
    int64_t inner_uid, inner_gid; /* what they are in a user namespace */
};

/* Everything a shim needs. spawner.c sends it to the spawner: add new pointers and
 * descriptors there. */
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
    int *trees;                         /* nmount entries, scratch */
    uint32_t nmount;
    const char *const *covers; /* directories to hide, ended by NULL */
    const char *root;          /* or NULL */
    const char *changes;       /* to root, which is an image's; NULL: root is used directly */
    bool root_read_only;
    const char *scratch; /* an empty directory for mounts, also mounted over hidden directories */
    bool own_ipc;        /* use an IPC namespace of its pod */

    int64_t data_bytes; /* limit on each process's memory; 0 none */
    int64_t max_pids;   /* limit on processes of the user in this namespace; 0 none */
    int group_fds[PROCESS_HIERARCHIES];
    uint32_t ngroup_fd;

    /* Directory of the records. A container's shim inherits its lock and releases it once the
     * command runs; commands inside the container wait for that. */
    int state_fd;
    const char *end_name; /* the record of the end */
    int log_fd;           /* directory of the log, -1: none */
    const char *log_name;
    int64_t log_max_bytes;

    int join;             /* pidfd of the shim whose namespaces to enter, -1 none */
    int join_state;       /* directory of its records, -1 none: wait until it is set up */
    int ipc;              /* pidfd of a shim whose IPC namespace to share, -1: a new one */
    int in, out, err_out; /* streams without a log; -1: /dev/null */
    bool beside;          /* a command inside a container: no state, ends with the agent */
};

/* Runs in the spawner with all signals blocked: forks the shim. -1 with errno on failure. */
int process_start_launch(const struct process_launch *l, int *ret_pidfd);
/* Makes the shim send a signal to the command's process group. */
void process_shim_signal(int pidfd, int signo);
/* Sends the shim a command about the streams: a RUNTIME_ word and its value. */
void process_shim_tell(int pidfd, enum runtime_word word, int value);
/* The strongest isolation that the machine permits. */
enum process_isolation process_isolation(void);
/* Whether it permits IPC namespaces, too. */
bool process_can_have_ipc(enum process_isolation isolation);

/* ---- spawner.c ---- */

struct spawner;
/* Puts the shims it forks from now on into the group of that directory. spawner_free removes the
 * group if it is empty. */
void spawner_join(struct spawner *n, const char *group);
int spawner_launch(struct spawner *n, const struct process_launch *l, int *ret_pidfd,
                   struct hk_err *err) HK_CHECKED;

/* ---- cover.c: directories hidden from containers ---- */

struct process_cover {
    HK_VEC(char *) dirs;
    HK_VEC(char *) points; /* all paths to them, ended by NULL; empty: not looked up yet */
    int mounts_fd;         /* signals changed mounts; -1: not open */
};

/* dirs is ended by NULL; NULL hides nothing. */
void process_cover_init(struct process_cover *c, const char *const *dirs);
void process_cover_fini(struct process_cover *c);
/* All current paths to them, ended by NULL. Valid until the next call. */
const char *const *process_cover_points(struct process_cover *c);

/* ---- plan.c: preparing a start ---- */

/* Where and how containers run. */
struct process_home {
    struct hk_clock *clock;
    char *dir;
    char *scratch; /* one empty directory for all; each container mounts over it privately */
    char *shm;     /* has a directory per pod, mounted as /dev/shm; NULL: the machine's */
    bool own_ipc;  /* pods have IPC namespaces */
    struct process_cover cover;
    int64_t log_max_bytes;
    int64_t pids_max; /* for each pod without a limit; 0: such pods share one group */
    enum process_isolation isolation;
    struct process_groups groups;
};

/* A launch and what it points to. Call process_plan_fini even after a failure. */
struct process_plan {
    struct process_launch launch;
    struct hk_buf pod; /* the pod's file */
    HK_VEC(struct runtime_mount) mounts;
    HK_VEC(int) trees;
    char *key, *dir, *group, *log_dir;
    char *shm; /* the pod's shared memory, or NULL */
};

/* sibling: pidfd of a shim of the same pod, -1: none. */
int process_plan_make(struct process_plan *p, struct process_home *h,
                      const struct runtime_container *c, int sibling,
                      struct hk_err *err) HK_CHECKED;
void process_plan_fini(struct process_plan *p);
/* Closes the launch's descriptors; the shim has its own copies. */
void process_launch_close(struct process_launch *l);
/* The group of a pod, or of its container with that key (NAME.ATTEMPT). */
char *process_group_name(const char *uid, const char *key);

/* ---- listener.c: the sockets that processes of a pod listen on ---- */

/* See find_listener of runtime_ops; pidfds are those of the pod's shims. */
int process_listener_find(const int *pidfds, uint32_t n, const char *address, uint16_t port,
                          struct runtime_listener *inout, struct hk_err *err) HK_CHECKED;

/* ---- home.c: shared memory and caveats ---- */

/* Sets the directory for the pods' /dev/shm. NULL, or a directory that cannot be created: pods use
 * the machine's. */
void process_shm_open(struct process_home *h, const char *dir);
int process_shm_make(const struct process_home *h, const char *uid, struct hk_err *err) HK_CHECKED;
/* False when a part of it is left. */
bool process_shm_remove(const struct process_home *h, const char *uid);
/* What is not enforced, separated by "; "; "" nothing. */
void process_caveats(const struct process_home *h, struct hk_buf *out);

/* ---- command.c: the child of the shim that executes the command ---- */

/* How a command that never ran is reported: an exit code, or PROCESS_AGAIN when the machine lacked
 * something that may return. */
enum {
    PROCESS_AGAIN = 1,
    PROCESS_NOT_EXECUTABLE = 126,
    PROCESS_NOT_FOUND = 127,
    PROCESS_CANNOT_RUN = 128,
};

/* The command starts in the memory of its shim, on its own stack (clone with CLONE_VM, as
 * posix_spawn does); the address sanitizer would report that. */
#define ON_BORROWED_STACK __attribute__((no_sanitize_address))

/* The errno says that processes, memory, descriptors or disk space ran out. */
bool process_may_pass(int e);
/* Writes the code as one byte and a message to the descriptor, and exits. */
__attribute__((noreturn, format(printf, 3, 4))) void process_give_up(int report, int code,
                                                                     const char *fmt, ...);
__attribute__((noreturn)) void process_exec(const struct process_launch *l, int report);

/* ---- mount.c: the container's file systems; runs in the shim ---- */

/* Sets up root, mounts and /proc in the current mount namespace. Returns -1 with a message. */
int process_mount(const struct process_launch *l, char message[PROCESS_MESSAGE]);

/* ---- image_root.c: the root of an image; runs in the shim ---- */

/* The root as a mount that is not attached yet. Returns a descriptor, or -1 with a message. */
int process_image_open(const struct process_launch *l, char message[PROCESS_MESSAGE]);
/* Attaches it over the directory and mounts /proc and /sys in it. Returns a descriptor of its
 * directory, or -1 with a message. */
int process_image_attach(const struct process_launch *l, int tree, int onto,
                         char message[PROCESS_MESSAGE]);
/* Makes parts of /proc and /sys read-only, or hides them, once the root has been entered. */
int process_image_protect(const struct process_launch *l, char message[PROCESS_MESSAGE]);
/* The container has all capabilities: it sees the machine's devices. */
bool process_image_is_privileged(const struct process_launch *l);

/* ---- rights.c: capabilities; runs in the command's process before exec ---- */

/* The command starts in the memory of its shim, on its own stack (clone with CLONE_VM, as
 * posix_spawn does); the address sanitizer would report that. */
#define ON_BORROWED_STACK __attribute__((no_sanitize_address))

/* Returns -1 with a message. */
int process_rights_drop(const struct runtime_rights *r, char message[PROCESS_MESSAGE]);

/* ---- input.c: standard input from attached clients; runs in the shim ---- */

#define PROCESS_IN_FILE "stdin"

/* Set hold and typed to -1 to initialise. */
struct process_input {
    int hold;  /* keeps the pipe open while no client is attached; -1: none, or ended */
    int typed; /* input for a terminal; -1: none */
    size_t at, len;
    char keys[4096]; /* not yet written to the terminal: [at, len) */
};

/* The command's standard input, unless it has a terminal; -1 with errno on failure. */
int process_input_open(struct process_input *i, int state_fd, bool tty);
/* Ends the input after the attached clients have gone. */
void process_input_end(struct process_input *i);
/* Copies input to the terminal as far as it accepts it. */
void process_input_type(struct process_input *i, int terminal);

/* ---- log.c: output as CRI logs; runs in the shim ---- */

enum { PROCESS_LINE = 16 << 10, PROCESS_LOG_OUT = 64 << 10 };

/* A number of lines, and of bytes of output. */
struct process_log_part {
    int64_t lines, bytes;
};

struct process_log {
    struct hk_clock *clock;
    int dir_fd, fd;
    const char *name;
    int64_t size, max_bytes;
    int64_t lost;                      /* lines not written since the last success */
    int why;                           /* errno */
    bool torn;                         /* the file ends with an incomplete record */
    struct process_log_part part, old; /* contents of the file and of its predecessor */
    struct process_log_part removed;   /* contents of removed files */
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
/* Adds output of a stream (0 stdout, 1 stderr). */
void process_log_add(struct process_log *l, int stream, const char *p, size_t n);
void process_log_flush(struct process_log *l);
/* Writes unfinished lines as partial ones, so that prompts show up at once. */
void process_log_show(struct process_log *l);
/* Writes unfinished lines as partial ones. */
void process_log_fini(struct process_log *l);
