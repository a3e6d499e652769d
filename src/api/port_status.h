// SPDX-License-Identifier: Apache-2.0
// Reads Kubernetes Status objects into a port_status, and maps them to our error codes.
#pragma once

#include "api/port.h"

/* The error code of a refusal: by its reason, or by the HTTP code when the reason is unknown. */
enum hk_code port_status_code(struct hk_str reason, int http);
/* Whether a refusal has a cause with that reason; s may be NULL. */
bool port_status_has_cause(const struct port_status *s, const char *reason);
/* Whether the refusal says that the namespace is being deleted. */
bool port_status_namespace_ends(const struct port_status *s);
/* Reads a tree of kind Status; missing fields stay unset. Strings live in a. */
void port_status_read(const struct json *doc, struct hk_arena *a, struct port_status *ret);
