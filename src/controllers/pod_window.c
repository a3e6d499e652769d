// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the pod window, for job_window.c and work_window.c.
#include "controllers/pod_window.h"

bool pod_window_is_needed(int64_t replicas, int64_t gang)
{
    return replicas > gang + POD_WINDOW;
}

int64_t pod_window_room(const struct pod_window *w)
{
    int64_t room = w->size - w->waiting;

    if (room < w->size / 4 && room < w->missing) {
        room = 0; /* wait for more room: small steps would cost a pass for each placed pod */
    }
    return HK_MAX(HK_MIN(w->missing, HK_MAX(w->lacking, room)), 0);
}

bool pod_window_counts(const struct pod_digest *d)
{
    return d->phase == POD_PENDING && d->node[0] == '\0' && !d->terminating;
}
