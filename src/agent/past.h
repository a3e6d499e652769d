// SPDX-License-Identifier: Apache-2.0
// The newest revision of the API that this agent or an earlier one saw.
#pragma once

#include "codec/json.h"

struct past {
    const char *dir; /* NULL: not stored */
    int fd;
    uint64_t rv; /* 0 none */
};

void past_init(struct past *p, const char *dir);
void past_fini(struct past *p);
/* An API that is now at rv has lost revisions that the agent saw. */
bool past_is_ahead(const struct past *p, uint64_t rv);
void past_note(struct past *p, uint64_t rv);
/* Writes the uids of kept pods to AGENT_KEPT_FILE; removes the file when there are none. */
void past_tell_kept(const struct past *p, const struct json *uids);
