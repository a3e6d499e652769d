// SPDX-License-Identifier: Apache-2.0
// Amounts of resources in JSON: reads and writes ResourceLists, and sums up pods.
#pragma once

#include "codec/json.h"
#include "codec/quantity.h"

/* The amount under the name in a ResourceList; false when absent or unreadable. */
bool amount_get(const struct json *list, struct hk_str name, struct quantity *ret);
void amount_put(struct json *list, struct hk_arena *a, struct hk_str name, struct quantity v);
/* A pod spec's total of one resource; field is "requests" or "limits". Includes sidecars, init
 * containers, overhead and pod-level resources. False when no container sets it. */
bool amount_of_pod(const struct json *spec, const char *field, struct hk_str name,
                   struct quantity *ret);
const char *amount_text(struct quantity v, struct hk_arena *a);
