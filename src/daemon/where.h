// SPDX-License-Identifier: Apache-2.0
// The default data directory of a server, and whether a server runs in a directory. A server holds
// a lock on DIR/server while it lives: the kernel releases it however the server ends, and children
// do not inherit it. The text in the file describes the holder.
#pragma once

#include "cli/option.h"

#include <sys/types.h>

/* Appends the default directory. Fails for a user without a home directory. */
#define WHERE_DEFAULT_TEXT                                                                         \
    "/var/lib/hekla for root, else hekla in $XDG_STATE_HOME or ~/.local/state"
int where_default(struct hk_buf *ret, struct hk_err *err) HK_CHECKED;
/* The option of verbs that work with the server of a directory. */
struct where_opts {
    const char *dir; /* NULL: not given */
};
extern const struct option_row where_options[];
/* If *dir is NULL, sets it to the default directory, stored in own. */
int where_settle(const char **dir, struct hk_buf *own, struct hk_err *err) HK_CHECKED;
/* Creates the directory and missing parents, accessible to their owner only. */
int where_make(const char *dir, struct hk_err *err) HK_CHECKED;

/* Claims the directory for this process until it exits. *ret is a descriptor to keep open;
 * -HK_EBUSY if another server has it. */
int where_claim(const char *dir, int *ret, struct hk_err *err) HK_CHECKED;
/* Records that the server is ready. */
int where_tell(int claim, const char *verb, const char *url, int64_t now_ns,
               struct hk_err *err) HK_CHECKED;

/* A running server. Texts are "" until it is ready. */
struct where_server {
    pid_t pid;
    int pidfd;
    char verb[32], version[32], url[128], since[32];
};

/* The server of the directory; -HK_ENOTFOUND if there is none. Do not call it in the server's own
 * process, which would lose its claim. */
int where_find(const char *dir, struct where_server *ret, struct hk_err *err) HK_CHECKED;
void where_server_fini(struct where_server *s);
