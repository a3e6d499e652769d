// SPDX-License-Identifier: Apache-2.0
// Creating and freeing pods.
#pragma once

#include "agent/pod/pods.h"

/* The worker in the record of what the process died of (base/crumb.h). */
#define AGENT_CRUMB "agent"

/* Whether the process died of this pod twice. It is not run until it changes. */
bool pod_is_skipped(const struct api_object *o);
/* Adds the pod to the set. Finds what an earlier agent left of the pod, if there was one. */
struct pod *pod_new(struct pods *ps, struct api_object *o);
/* Containers keep running. */
void pod_free(struct pod *p);
