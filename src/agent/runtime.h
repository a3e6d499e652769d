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
};

/* 0: no limit. */
struct runtime_limits {
    int64_t cpu_milli, mem_bytes, pids;
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
    const char *message;      /* "" none; borrowed */
    int64_t start_ns, end_ns; /* wall */
};

struct runtime_sink {
    /* A container that was started or adopted has ended. Told exactly once for each. */
    void (*on_end)(void *ctx, uint64_t container, const struct runtime_end *end);
    void *ctx;
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
    /* What cannot be run at all fails here or, later, as an end with never_ran. *ret is never 0. */
    int (*start)(struct runtime *r, const struct runtime_container *c, uint64_t *ret,
                 struct hk_err *err);
    void (*kill)(struct runtime *r, uint64_t container, int signo);
    /* Runs a command beside a container (probes, hooks, exec): told as an end of its own id. out is
     * a descriptor its output goes to, or -1. */
    int (*exec)(struct runtime *r, uint64_t container, const char *const *argv, int in, int out,
                int err_out, uint64_t *ret, struct hk_err *err);
    /* After a restart of the agent: the container of that name and attempt, if it still runs or its
     * end is on record; -HK_ENOTFOUND when it is gone without a trace. */
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
