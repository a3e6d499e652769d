// SPDX-License-Identifier: Apache-2.0
// The resolv.conf of a pod.
#pragma once

#include "agent/pod/pod.h"

/* For pods that do not see the machine's own, and for containers with a root of their own: writes the
 * file and mounts it. */
int pod_dns_mount(const struct pod *p, struct runtime_container *rc, struct hk_err *err) HK_CHECKED;
