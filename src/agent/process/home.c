// SPDX-License-Identifier: Apache-2.0
// State of the process runtime that all containers share: the /dev/shm directories of pods, and the
// messages about limits that cannot be enforced on this machine.

#include "agent/process/process_priv.h"

#include <errno.h>
#include <sys/stat.h>

/* ---- shared memory ---- */

void process_shm_open(struct process_home *h, const char *dir)
{
    if (dir && (mkdir(dir, 0711) == 0 || errno == EEXIST)) {
        h->shm = hk_strdup(dir);
    }
}

/* Shared by all containers of the pod, which may run as different users. */
int process_shm_make(const struct process_home *h, const char *uid, struct hk_err *err)
{
    HK_AUTO(hk_freep) char *path = NULL;

    if (!h->shm || h->isolation == PROCESS_PLAIN) {
        return 0;
    }
    path = process_path("%s/%s", h->shm, uid);
    if ((mkdir(path, 0700) < 0 && errno != EEXIST) || chmod(path, 01777) < 0) {
        return hk_fail(err, HK_EIO, "cannot make the directory of shared memory '%s': %m", path);
    }
    return 0;
}

bool process_shm_remove(const struct process_home *h, const char *uid)
{
    HK_AUTO(hk_freep) char *path = h->shm ? process_path("%s/%s", h->shm, uid) : NULL;

    return !path || process_state_remove(path);
}

/* ---- caveats ---- */

static void add_caveat(struct hk_buf *out, const char *text)
{
    if (out->len > 0) {
        hk_buf_adds(out, "; ");
    }
    hk_buf_adds(out, text);
}

void process_caveats(const struct process_home *h, struct hk_buf *out)
{
    if (h->isolation == PROCESS_USER) {
        add_caveat(out, "containers run as the user of the agent, others are refused");
    }
    if (h->isolation == PROCESS_PLAIN) {
        add_caveat(out, "no namespaces: mounts and root directories are refused, host name and "
                        "hosts file are the machine's");
        add_caveat(out, "containers can read the data directory of the server, with its keys and "
                        "tokens");
    }
    if (!h->own_ipc) {
        add_caveat(out, "IPC objects are shared with the machine");
    } else if (h->isolation == PROCESS_USER) {
        add_caveat(out, "each container has IPC objects of its own");
    }
    if (!h->shm || h->isolation == PROCESS_PLAIN) {
        add_caveat(out, "/dev/shm is the machine's");
    }
    if (h->isolation == PROCESS_PLAIN && h->groups.len == 0) {
        add_caveat(out, "what a container leaves in the background outlives a shim that is killed");
    }
    if (!(h->groups.controllers & PROCESS_CPU)) {
        add_caveat(out, "cpu limits are not enforced: no cgroup controller");
    }
    if (!(h->groups.controllers & PROCESS_MEMORY)) {
        add_caveat(out, "memory limits hold for each process alone: no cgroup controller");
    }
    if (!(h->groups.controllers & PROCESS_PIDS) && h->isolation != PROCESS_USER) {
        add_caveat(out, "pid limits are not enforced: no cgroup controller");
    }
}
