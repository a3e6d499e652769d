// SPDX-License-Identifier: Apache-2.0
// The life of a pod.
#pragma once

#include "agent/pod/pods.h"

/* A newer state of the object. */
void pod_changed(struct pod *p, struct api_object *o);
/* The pod was deleted from the API. */
void pod_vanished(struct pod *p);
/* Does what is due and sets due_ns; false when nothing is left of the pod. */
bool pod_step(struct pod *p, int64_t now_ns);
/* The pod is finished, and nothing about it is pending. */
bool pod_rests(const struct pod *p);
/* Handles an end from the runtime; false when it does not belong to the pod. */
bool pod_on_end(struct pod *p, uint64_t id, const struct runtime_end *end);
/* Evicts the pod like a kubelet: Failed at once, without a restart. */
void pod_evict(struct pod *p, const char *message, int64_t now_ns);
