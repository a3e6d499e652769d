// SPDX-License-Identifier: Apache-2.0
// The termination message of a container.
#pragma once

#include "agent/pod/pod.h"

/* Creates the message file and mounts it. */
int pod_message_mount(const struct container *c, struct runtime_container *rc,
                      struct hk_err *err) HK_CHECKED;
/* Copies the file's text into the container's end. */
void pod_message_collect(struct container *c);
/* Removes the file. */
void pod_message_remove(const struct container *c);
void pod_message_set(struct container_end *e, struct hk_str text);
