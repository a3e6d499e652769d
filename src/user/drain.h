// SPDX-License-Identifier: Apache-2.0
// Takes a node out of service: no new pods on it, and its pods evicted.
#pragma once

#include "user/user.h"

struct drain_opts {
    const char *node;
    int64_t grace_s;    /* -1: what each pod says */
    int64_t timeout_ns; /* 0: no limit */
    bool force;         /* also evict pods that no controller would create again */
    bool dry_run;
};

/* Closes or opens the node to new pods, and says so on stdout. */
int drain_cordon(struct user *u, const char *node, bool closed, struct hk_err *err) HK_CHECKED;
/* Cordons the node, evicts its pods and waits until they have ended; prints each step. *ret is the
 * exit status: USER_OK, USER_TIMEOUT, or 130 after Ctrl-C. Fails without evicting anything if a pod
 * would not be created again. */
int drain_node(struct user *u, const struct drain_opts *o, int *ret, struct hk_err *err) HK_CHECKED;
