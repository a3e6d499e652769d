// SPDX-License-Identifier: Apache-2.0
// What runs on the machine for pods that the API does not know.
#pragma once

#include "agent/past.h"
#include "agent/pod/pods.h"

struct leftovers {
    struct pods *pods;
    struct past past;
    bool swept;        /* they were removed, or are kept */
    struct json found; /* uids only the runtime has, during the sweep */
    struct json kept;  /* uids of pods that the API lost and the agent keeps */
    uint32_t ntold;    /* how many of them were logged */
    bool keeps_files;  /* files of such pods exist */
};

void leftovers_init(struct leftovers *l, struct pods *ps);
void leftovers_fini(struct leftovers *l);
/* Call it once all pods of the node are known, at this revision of the API: removes what belongs to
 * none of them, or keeps it because the API has gone back in time. */
void leftovers_sweep(struct leftovers *l, uint64_t rv);
/* Pods are missing from a list of this revision because the API lost data. */
bool leftovers_may_be_lost(const struct leftovers *l, uint64_t rv);
/* Keeps what runs for the pod. */
void leftovers_keep(struct leftovers *l, struct hk_str uid);
/* The API knows the pod again: it continues as a normal pod. */
void leftovers_forget(struct leftovers *l, struct hk_str uid);
/* Logs which pods are kept since the last call. */
void leftovers_tell(struct leftovers *l);
/* Records the revision as seen, unless something is kept. */
void leftovers_note(struct leftovers *l, uint64_t rv);
/* Something runs that belongs neither to a pod of the API nor to a kept one. */
bool leftovers_has_strays(const struct leftovers *l);
