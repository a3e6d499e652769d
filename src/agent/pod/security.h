// SPDX-License-Identifier: Apache-2.0
// The user and the privileges of a container.
#pragma once

#include "agent/pod/pod.h"

/* Fails when the securityContext is contradictory or not supported. */
int pod_security(const struct container *c, struct runtime_container *rc,
                 struct hk_err *err) HK_CHECKED;
