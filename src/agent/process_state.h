// SPDX-License-Identifier: Apache-2.0
// What is on disk about containers and outlives the agent.
#pragma once

#include "agent/runtime.h"
#include "base/vec.h"

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
    struct runtime_rights rights;
    HK_VEC(const char *) env; /* ended by NULL */
};

#define PROCESS_SHIM_FILE "shim"
#define PROCESS_END_FILE "end"
#define PROCESS_SPEC_FILE "spec"
#define PROCESS_POD_FILE "pod"
#define PROCESS_TEMP ".tmp"
/* No record of a shim is longer. */
#define PROCESS_RECORD 1024

int process_state_mkdir(const char *path, struct hk_err *err) HK_CHECKED;
/* False when some of it is left. */
bool process_state_remove(const char *path);
/* Not flushed to the disk: after a power failure there is no container to be found. */
int process_state_write(const char *path, struct hk_str text, struct hk_err *err) HK_CHECKED;
/* A file with room for a record, which then is written whatever becomes of the disk. */
int process_state_reserve(const char *path, struct hk_err *err) HK_CHECKED;
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
