// SPDX-License-Identifier: Apache-2.0
// Ephemeral containers: added to a running pod for debugging (kubectl debug), started once, never
// changed or restarted. The phase and the conditions of the pod do not depend on them.
#pragma once

#include "agent/pod/pods.h"

/* Adds the ephemeral containers of that state of the pod which are not known yet. */
void pod_ephemeral_update(struct pod *p, struct api_object *o);
/* Starts those that are due. */
void pod_ephemeral_try(struct pod *p, int64_t now_ns);
void pod_ephemeral_free(struct pod *p);
