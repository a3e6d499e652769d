// SPDX-License-Identifier: Apache-2.0
// Amounts of resources that a pod and its containers are limited to.
#pragma once

#include "agent/pod/pod.h"

struct quantity;

/* The quantity under that name in a ResourceList or other object; false when absent. */
bool pod_amount(const struct json *list, const char *name, struct quantity *ret);
struct runtime_limits pod_limits_of_container(const struct container *c);
/* The limit of the pod itself, else the sum over the containers if each has one. */
struct runtime_limits pod_limits(const struct pod *p);
/* The pod's memory limit, INT64_MAX: none. */
int64_t pod_limits_memory(const struct pod *p);
