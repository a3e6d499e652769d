// SPDX-License-Identifier: Apache-2.0
// Discovery: the groups, versions and resources, with their verbs and names. Writes the documents
// per group and the aggregated form from the rows of kinds.
#pragma once

#include "store/rest.h"

/* Resources that are never stored, by index; NULL past the last. */
const struct api_kind *discovery_transient(size_t i);
/* Answers /api, /apis and paths below them down to a group's version; false for other paths and
 * unknown groups. Sets *type only when it is not plain JSON. */
bool discovery_answer(struct rest *r, struct hk_str path, struct hk_str accept, struct hk_buf *body,
                      const char **type);
