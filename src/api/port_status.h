// SPDX-License-Identifier: Apache-2.0
// Kubernetes Status objects as a client reads them: into a port_status, and down to the one code
// our callers decide by.
#pragma once

#include "api/port.h"

/* The code a refusal means: by its reason, or by the HTTP code when the reason is unknown. */
enum hk_code port_status_code(struct hk_str reason, int http);
/* Reads a tree of kind Status; what it lacks stays unset. Strings live in a. */
void port_status_read(const struct json *doc, struct hk_arena *a, struct port_status *ret);
