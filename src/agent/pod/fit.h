// SPDX-License-Identifier: Apache-2.0
// Whether the node has room for a pod.
#pragma once

#include "agent/pod/pods.h"

/* Computes what the node has. */
void pod_fit_open(struct pods *ps);
/* All pods of the node are known: judges the waiting ones, oldest first. */
void pod_fit_begin(struct pods *ps);
/* True when the pod may start. Otherwise it waits, or was refused with fit_reason. */
bool pod_fit_judge(struct pod *p);
/* Books its amounts without a check: it runs already. */
void pod_fit_book(struct pod *p);
/* Releases the amounts of a pod that no longer runs. May be repeated. */
void pod_fit_release(struct pod *p);
