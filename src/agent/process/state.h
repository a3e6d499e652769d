// SPDX-License-Identifier: Apache-2.0
// Files about containers that outlive the agent.
#pragma once

#include "agent/host/runtime.h"
#include "base/vec.h"

/* The record that the shim (start.c) writes about itself. */
struct process_shim {
    int64_t pid, start_ticks; /* start_ticks as in /proc/PID/stat */
    int64_t start_ns;         /* wall */
};

/* The settings of a running container, for commands run inside it. End with process_spec_fini. */
struct process_spec {
    struct hk_buf text;
    const char *cwd; /* NULL: / */
    int64_t uid, gid;
    HK_VEC(int64_t) groups;
    struct runtime_rights rights;
    HK_VEC(const char *) env; /* ended by NULL */
};

#define PROCESS_SHIM_FILE "shim"
#define PROCESS_END_FILE "end"
#define PROCESS_SPEC_FILE "spec"
#define PROCESS_TARGET_FILE "target" /* NAME.ATTEMPT of the container whose namespaces it shares */
#define PROCESS_POD_FILE "pod"
/* The fields of PROCESS_POD_FILE, separated by NUL. The last is non-empty for a pod in the
 * machine's IPC namespace. */
enum { PROCESS_POD_HOSTNAME, PROCESS_POD_HOSTS, PROCESS_POD_HOST_IPC };
#define PROCESS_TEMP ".tmp"
/* The longest record of a shim. */
#define PROCESS_RECORD 1024

/* Formats a path; the caller frees it. */
char *process_path(const char *fmt, ...) HK_PRINTF(1, 2);
int process_state_mkdir(const char *path, struct hk_err *err) HK_CHECKED;
/* Removes a tree; false when a part of it is left. */
bool process_state_remove(const char *path);
/* Not flushed to disk: a power failure ends the containers, too. */
int process_state_write(const char *path, struct hk_str text, struct hk_err *err) HK_CHECKED;
/* Creates a file with space for a record, so that a full disk cannot prevent the write. */
int process_state_reserve(const char *path, struct hk_err *err) HK_CHECKED;
/* -HK_ENOTFOUND without the file. ret->message points into text. */
int process_state_end(const char *path, struct hk_buf *text, struct runtime_end *ret,
                      struct hk_err *err) HK_CHECKED;
int process_state_shim(const char *path, struct process_shim *ret, struct hk_err *err) HK_CHECKED;
/* Parses fields 1 (pid) and 22 (start time) of a stat file. */
bool process_state_stat(struct hk_str text, int64_t *ret_pid, int64_t *ret_ticks);
/* A pidfd of the shim, -1 if it is gone or its pid belongs to another process. */
int process_state_open(const struct process_shim *s);
int process_state_save_spec(const char *path, const struct runtime_container *c,
                            struct hk_err *err) HK_CHECKED;
int process_state_load_spec(const char *path, struct process_spec *ret,
                            struct hk_err *err) HK_CHECKED;
void process_spec_fini(struct process_spec *s);
