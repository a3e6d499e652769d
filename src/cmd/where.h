// SPDX-License-Identifier: Apache-2.0
// Where a server keeps its things when nobody says, and whether one lives in a directory. A server
// holds a lock on DIR/server for as long as it lives: the kernel takes it back however the server
// ends, and children do not inherit it. The text in the file tells who holds it.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <sys/types.h>

/* Appends the directory. Fails for somebody without a home. */
#define WHERE_DEFAULT_TEXT                                                                         \
    "The default is /var/lib/hekla for root and hekla in $XDG_STATE_HOME or ~/.local/state for "   \
    "others."
int where_default(struct hk_buf *ret, struct hk_err *err) HK_CHECKED;
/* The same for an option that was not given: *dir is NULL, and then in own. */
int where_settle(const char **dir, struct hk_buf *own, struct hk_err *err) HK_CHECKED;
/* Makes the directory and those above it that are missing, for their owner only. */
int where_make(const char *dir, struct hk_err *err) HK_CHECKED;

/* Makes the directory this process's own until it ends. *ret is a descriptor to be kept open;
 * -HK_EBUSY when another server has it. */
int where_claim(const char *dir, int *ret, struct hk_err *err) HK_CHECKED;
/* Tells those who look that the server is ready. */
int where_tell(int claim, const char *verb, const char *url, int64_t now_ns,
               struct hk_err *err) HK_CHECKED;

/* A server. Texts are "" until it is ready. */
struct where_server {
    pid_t pid;
    int pidfd;
    char verb[32], version[32], url[128], since[32];
};

/* The server of the directory; -HK_ENOTFOUND when there is none. Not for the server's own process,
 * which would lose its claim. */
int where_find(const char *dir, struct where_server *ret, struct hk_err *err) HK_CHECKED;
void where_server_fini(struct where_server *s);
