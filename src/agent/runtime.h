// SPDX-License-Identifier: Apache-2.0
// What runs containers on a node, behind one table of operations. Two makers: `process`, where a
// container is a process of this machine, and `simulate`, where time passes and nothing runs. The
// agent (pod.h) decides what to run and when; a runtime starts, signals and reports.
//
// One thread. Nothing blocks for long: starting forks, ends are told through the sink from the
// loop.
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

struct json;
struct runtime;

/* A path of the host that appears at a path of the container. */
struct runtime_mount {
    const char *from, *at;
    bool read_only;
    bool optional; /* the container runs without it where mounts are not permitted */
};

/* 0: no limit. */
struct runtime_limits {
    int64_t cpu_milli, mem_bytes, pids;
};

/* What a container may not do although its user could. */
struct runtime_rights {
    uint64_t dropped; /* set of capabilities, by the kernel's numbers */
    bool no_new;      /* nothing it runs may do more than it could */
};

/* What the containers of a pod share. Everything is borrowed for the call. */
struct runtime_pod {
    const char *uid, *ns, *name;
    const char *hostname;
    const char *dir;     /* the pod's own directory on the host, made by the agent */
    const char *hosts;   /* a file to be seen as /etc/hosts, or NULL */
    const char *address; /* its address in 127.64.0.0/10, or NULL: the host's */
    struct runtime_limits limits;
};

struct runtime_container {
    const char *pod_uid, *name;
    uint32_t attempt;        /* restarts so far: with uid and name, who it is */
    const char *const *argv; /* ended by NULL; argv[0] is looked up in the PATH of env */
    const char *const *env;  /* "NAME=value", ended by NULL; all there is */
    const char *cwd;         /* NULL: / */
    int64_t uid, gid;        /* -1: as the agent */
    const int64_t *groups;   /* supplementary */
    uint32_t ngroup;
    struct runtime_rights rights;
    bool root_read_only; /* but not its mounts */
    const struct runtime_mount *mounts;
    uint32_t nmount;
    struct runtime_limits limits;
    const char *root; /* a root file system to run in, or NULL */
    const char *log;  /* file its output goes to, in the form of CRI logs */
    /* For runtimes that run nothing: what the pod says of its fate, and since when it is said to
     * run, wall, 0: from now on. */
    const struct json *annotations;
    int64_t started_ns;
    bool tty, stdin_open;
};

struct runtime_end {
    int code;  /* 128 + signal when a signal ended it */
    int signo; /* or 0 */
    bool oom;
    bool never_ran;           /* could not be started; message says why */
    bool again;               /* for want of something that may be there later: nothing of it is
                               * left, and the same attempt may be started once more */
    const char *message;      /* "" none; borrowed */
    int64_t start_ns, end_ns; /* wall */
};

struct runtime_sink {
    /* A container that was started or adopted has ended. Told exactly once for each. */
    void (*on_end)(void *ctx, uint64_t container, const struct runtime_end *end);
    void *ctx;
};

/* What can be said about the streams of a container. */
enum runtime_word {
    RUNTIME_IN_ENDS, /* nobody will attach to its standard input any more */
    RUNTIME_RESIZE,  /* its terminal: columns << 16 | rows */
};

struct runtime_ops {
    const char *name; /* "process", "simulate" */
    bool hollow;      /* runs nothing: needs neither command nor files, and keeps no records */
    /* How long the container takes from being wanted to being started. NULL: no time. */
    int64_t (*delay)(struct runtime *r, const struct runtime_container *c);
    /* Also of a pod that was found again after a restart of the agent, before its containers are
     * adopted. */
    int (*pod_start)(struct runtime *r, const struct runtime_pod *pod, struct hk_err *err);
    /* Ends whatever is left of the pod and removes what was made for it; containers that still ran
     * are told as ended. */
    void (*pod_stop)(struct runtime *r, const char *pod_uid);
    /* What cannot be run at all fails here or, later, as an end with never_ran. *ret is never 0.
     * -HK_EIO, -HK_EBUSY: the machine could not, and may be asked again. */
    int (*start)(struct runtime *r, const struct runtime_container *c, uint64_t *ret,
                 struct hk_err *err);
    /* SIGKILL a second time spares nothing, not even the record of the end. */
    void (*kill)(struct runtime *r, uint64_t container, int signo);
    /* Runs a command beside a container (probes, hooks, exec): told as an end of its own id. in,
     * out and err_out are its streams, -1: none; a terminal as in becomes the one that controls it.
     * When it cannot be run the end has never_ran, and the code 126, or 127 when there is no such
     * file. */
    int (*exec)(struct runtime *r, uint64_t container, const char *const *argv, int in, int out,
                int err_out, uint64_t *ret, struct hk_err *err);
    /* The standard input of a container with stdin_open: a descriptor to write to, which does not
     * block and is the caller's. NULL, as the next: it has no streams. */
    int (*open_in)(struct runtime *r, uint64_t container, int *ret, struct hk_err *err);
    void (*tell)(struct runtime *r, uint64_t container, enum runtime_word word, int value);
    /* After a restart of the agent: the container of that name and attempt, if it still runs or its
     * end is on record; -HK_ENOTFOUND when it is gone without a trace, -HK_EBUSY when it never came
     * to run and is to be started. */
    int (*adopt)(struct runtime *r, const char *pod_uid, const char *name, uint32_t attempt,
                 uint64_t *ret, struct hk_err *err);
    /* Pods that have anything here, for those nobody wants any more. Returns when fn has been
     * called for each uid. */
    void (*each_pod)(struct runtime *r, void (*fn)(void *ctx, const char *uid), void *ctx);
    /* What the runtime could not enforce and why, for the pod's status; "" nothing. */
    const char *(*caveats)(struct runtime *r);
    void (*free)(struct runtime *r);
};

/* Makers embed this first. */
struct runtime {
    const struct runtime_ops *ops;
};
