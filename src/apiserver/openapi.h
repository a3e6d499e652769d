// SPDX-License-Identifier: Apache-2.0
// OpenAPI as far as clients need it before they write: enough for kubectl to leave the checking of
// fields to the server.
#pragma once

#include "store/rest.h"

/* Answers /openapi/v2, /openapi/v3 and the documents the latter lists; false for other paths. The
 * type is written only when it is not plain JSON. */
bool openapi_answer(struct rest *r, struct hk_str path, struct hk_str accept, struct hk_buf *body,
                    const char **type);
