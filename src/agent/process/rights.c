// SPDX-License-Identifier: Apache-2.0
// Drops the capabilities that a container must not have although its user has them. Runs between
// fork and exec: only system calls and stack.
#include "agent/process/process_priv.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Other users have no capabilities, and may not change the bounding set. */
ON_BORROWED_STACK static bool may_matter(unsigned cap)
{
    return geteuid() == 0 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1;
}

ON_BORROWED_STACK int process_rights_drop(const struct runtime_rights *r,
                                          char message[PROCESS_MESSAGE])
{
    if (r->dropped) {
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    }
    for (unsigned cap = 0; cap <= CAP_LAST_CAP; cap++) {
        if ((r->dropped & (uint64_t)1 << cap) && may_matter(cap) &&
            prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            snprintf(message, PROCESS_MESSAGE, "cannot drop capability %u: " PROCESS_WHY, cap,
                     PROCESS_WHY_OF(errno));
            return -1;
        }
    }
    if (r->no_new && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        snprintf(message, PROCESS_MESSAGE, "cannot forbid new privileges: " PROCESS_WHY,
                 PROCESS_WHY_OF(errno));
        return -1;
    }
    return 0;
}
