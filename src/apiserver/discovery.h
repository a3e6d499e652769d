// SPDX-License-Identifier: Apache-2.0
// Discovery: which groups, versions and resources there are, what each can do and what people call
// it. Both the documents per group and the aggregated form, from the rows of kinds.
#pragma once

#include "store/rest.h"

/* Resources that are answered but never stored, one after the other; NULL past the last. */
const struct api_kind *discovery_transient(size_t i);
/* Answers /api, /apis and what lies below them down to a group's version; false for other paths and
 * unknown groups. The type is written only when it is not plain JSON. */
bool discovery_answer(struct rest *r, struct hk_str path, struct hk_str accept, struct hk_buf *body,
                      const char **type);
