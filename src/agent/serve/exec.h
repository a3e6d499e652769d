// SPDX-License-Identifier: Apache-2.0
// Commands that clients run in containers.
#pragma once

#include "agent/serve/serve.h"

/* Answers the call, now or later. On failure the caller must answer it. */
int pod_exec_serve(struct serve *s, const struct node_call *call, struct hk_err *err) HK_CHECKED;
/* Handles the end of a command; ignores a command that no exec request started. */
void pod_exec_on_end(struct serve *s, uint64_t id, const struct runtime_end *end);
