// SPDX-License-Identifier: Apache-2.0
// What a port_request looks like on the wire: method, path with query, body and its type.
#pragma once

#include "api/port.h"

struct target {
    const char *method;
    const char *media;  /* of the body, NULL without */
    struct hk_buf path; /* "/api/v1/namespaces/default/pods?limit=500" */
    struct hk_buf body;
};

/* Percent-encoded, but for what stands for itself anywhere in a URL. */
void target_escape(struct hk_str s, struct hk_buf *out);

/* Fails (HK_EINVAL) when the request lacks what its verb needs. timeout_s bounds a watch on the
 * server's side. */
int target_make(const struct port_request *req, uint32_t timeout_s, struct target *ret,
                struct hk_err *err) HK_CHECKED;
void target_fini(struct target *t);
