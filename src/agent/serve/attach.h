// SPDX-License-Identifier: Apache-2.0
// Clients that watch and feed a running container.
#pragma once

#include "agent/serve/serve.h"

/* Answers the call, now or later. On failure the caller must answer it. */
int pod_attach_serve(struct serve *s, const struct node_call *call, struct hk_err *err) HK_CHECKED;
