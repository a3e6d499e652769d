// SPDX-License-Identifier: Apache-2.0
// The HTTP form of a port_request: method, path with query, body and its type.
#pragma once

#include "api/port.h"

struct target {
    const char *method;
    const char *media;  /* of the body, NULL without */
    struct hk_buf path; /* "/api/v1/namespaces/default/pods?limit=500" */
    struct hk_buf body;
};

/* Appends s percent-encoded, except for characters that are safe anywhere in a URL. */
void target_escape(struct hk_str s, struct hk_buf *out);

/* Fails (HK_EINVAL) when the request lacks a field that its verb needs. timeout_s limits a watch on
 * the server's side. */
int target_make(const struct port_request *req, uint32_t timeout_s, struct target *ret,
                struct hk_err *err) HK_CHECKED;
void target_fini(struct target *t);
