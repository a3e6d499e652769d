// SPDX-License-Identifier: Apache-2.0
// The status of a pod in the API.
#pragma once

#include "agent/pod/pods.h"

/* Restores conditions and times that an earlier agent reported. */
void pod_status_recall(struct pod *p);
/* Sends the status when it differs from the last one; returns the time of the next try. */
int64_t pod_status_report(struct pod *p, int64_t now_ns);
/* What the runtime cannot enforce of this pod's requests; "" nothing. */
const char *pod_status_caveats(const struct pod *p);
/* Reports a ready pod again when a foreign write marked it as not ready. */
void pod_status_compare(struct pod *p, const struct api_object *o);
/* The API has the pod's current status. */
bool pod_status_told(const struct pod *p);
