// SPDX-License-Identifier: Apache-2.0
// Container runtimes behind one table of operations. Two implementations: `process`, where a
// container is a process of this machine, and `simulate`, where only time passes. The agent
// (agent.h) decides what to run and when; a runtime starts, signals and reports.
//
// One thread. No operation blocks for long: start forks, and the sink reports ends from the loop.
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

#include <netinet/in.h>

struct json;
struct runtime;

/* Shows the host path `from` at the container path `at`. */
struct runtime_mount {
    const char *from, *at;
    const char *sub; /* mount only this path below from, or NULL; links cannot leave from */
    bool read_only;
    bool optional; /* the container runs without it where mounts are not permitted */
    bool own;      /* the agent made from for this pod: it may be below a covered directory */
};

/* Suffix to a log's name: a file "LINES BYTES\n" that counts the output already removed. */
#define POD_LOG_LOST ".lost"

/* 0: no limit. */
struct runtime_limits {
    int64_t cpu_milli, mem_bytes, pids;
};

/* Restrictions beyond those of the container's user. */
struct runtime_rights {
    uint64_t dropped; /* bit set of capabilities, by the kernel's numbers */
    bool no_new;      /* the no_new_privs flag */
};

/* What the containers of a pod share. Borrowed during the call. */
struct runtime_pod {
    const char *uid, *ns, *name;
    const char *hostname;
    const char *dir;     /* the pod's directory on the host, made by the agent */
    const char *hosts;   /* file to mount as /etc/hosts, or NULL */
    const char *address; /* its address in 127.64.0.0/10; NULL: the host's */
    struct runtime_limits limits;
    bool host_ipc; /* uses the machine's IPC namespace */
};

struct runtime_container {
    const char *pod_uid, *name;
    uint32_t attempt;        /* restarts so far; identifies it with uid and name */
    const char *const *argv; /* ended by NULL; argv[0] is looked up in the PATH of env */
    const char *const *env;  /* "NAME=value", ended by NULL; the whole environment */
    const char *cwd;         /* NULL: / */
    int64_t uid, gid;        /* -1: the agent's */
    const int64_t *groups;   /* supplementary */
    uint32_t ngroup;
    struct runtime_rights rights;
    bool root_read_only; /* mounts stay writable */
    const struct runtime_mount *mounts;
    uint32_t nmount;
    struct runtime_limits limits;
    const char *root; /* a root file system to run in, or NULL */
    /* A running container of the pod whose processes and files it shares, or NULL; then root and
     * mounts do not apply. -HK_EBUSY when that does not run. */
    const char *target;
    /* An empty directory for what the container changes in root, which itself stays as it is and
     * may be below a covered directory; NULL: root is used directly. */
    const char *changes;
    const char *log; /* file for its output, in CRI log format */
    /* For hollow runtimes: annotations that define its fate, and its start time, wall, 0: now. */
    const struct json *annotations;
    int64_t started_ns;
    bool tty, stdin_open;
};

/* Adds one mount; the list is in the arena. */
void runtime_add_mount(struct runtime_container *rc, struct runtime_mount m, struct hk_arena *a);

struct runtime_end {
    int code;  /* 128 + signal when a signal ended it */
    int signo; /* or 0 */
    bool oom;
    bool never_ran;           /* could not be started; message says why */
    bool again;               /* the machine lacked something that may return: nothing is left, the
                               * same attempt may be started again */
    const char *message;      /* "" none; borrowed */
    int64_t start_ns, end_ns; /* wall */
};

struct runtime_sink {
    /* A started or adopted container has ended. Called exactly once for each. */
    void (*on_end)(void *ctx, uint64_t container, const struct runtime_end *end);
    void *ctx;
};

/* Commands about the streams of a container. */
enum runtime_word {
    RUNTIME_IN_ENDS, /* no client will attach to its standard input any more */
    RUNTIME_RESIZE,  /* size of its terminal: columns << 16 | rows */
};

/* A TCP socket that a process of a pod listens on. */
struct runtime_listener {
    char address[INET6_ADDRSTRLEN]; /* where to connect to */
    uint64_t inode;                 /* identifies the socket; 0: none */
};

struct runtime_ops {
    const char *name; /* "process", "simulate" */
    bool hollow;      /* runs nothing: needs no command or files, keeps no records */
    /* How long to wait before the start of the container. NULL: no delay. */
    int64_t (*delay)(struct runtime *r, const struct runtime_container *c);
    /* After a restart of the agent also called for each pod found again, before its containers are
     * adopted. */
    int (*pod_start)(struct runtime *r, const struct runtime_pod *pod, struct hk_err *err);
    /* Ends what is left of the pod and removes its resources. Containers that still ran are
     * reported as ended. */
    void (*pod_stop)(struct runtime *r, const char *pod_uid);
    /* A container that cannot run fails here, or later as an end with never_ran. *ret is never 0.
     * -HK_EIO and -HK_EBUSY are temporary: try again. */
    int (*start)(struct runtime *r, const struct runtime_container *c, uint64_t *ret,
                 struct hk_err *err);
    /* A second SIGKILL also kills the shim, which loses the record of the end. */
    void (*kill)(struct runtime *r, uint64_t container, int signo);
    /* Runs a command inside a container (probes, hooks, exec); its end is reported under *ret. in,
     * out and err_out are its streams, -1: none. A terminal as `in` becomes the controlling one. If
     * it cannot run, the end has never_ran and code 126, or 127 when the file does not exist. */
    int (*exec)(struct runtime *r, uint64_t container, const char *const *argv, int in, int out,
                int err_out, uint64_t *ret, struct hk_err *err);
    /* Opens the standard input of a container with stdin_open: a non-blocking descriptor that the
     * caller closes. This and the next are NULL when containers have no streams. */
    int (*open_in)(struct runtime *r, uint64_t container, int *ret, struct hk_err *err);
    void (*tell)(struct runtime *r, uint64_t container, enum runtime_word word, int value);
    /* Finds where a process of the pod listens on that port: at the address of the pod (NULL: it has
     * none of its own) if possible, else on loopback, else anywhere. inout holds an earlier answer
     * for the same pod and port, which makes this cheap, or zeros. -HK_ENOTFOUND: no process of the
     * pod does. NULL when pods have no processes. */
    int (*find_listener)(struct runtime *r, const char *pod_uid, const char *address, uint16_t port,
                         struct runtime_listener *inout, struct hk_err *err);
    /* After a restart of the agent: finds the container of that name and attempt if it still runs
     * or its end is on record. -HK_ENOTFOUND when no trace is left, -HK_EBUSY when it never ran and
     * must be started. */
    int (*adopt)(struct runtime *r, const char *pod_uid, const char *name, uint32_t attempt,
                 uint64_t *ret, struct hk_err *err);
    /* Calls fn for the uid of each pod that has resources here, so that the agent finds
     * leftovers. */
    void (*each_pod)(struct runtime *r, void (*fn)(void *ctx, const char *uid), void *ctx);
    /* What the runtime cannot enforce and why, for the pod's status; "" nothing. */
    const char *(*caveats)(struct runtime *r);
    void (*free)(struct runtime *r);
};

/* Implementations embed this as their first member. */
struct runtime {
    const struct runtime_ops *ops;
};
