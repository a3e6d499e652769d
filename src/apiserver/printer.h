// SPDX-License-Identifier: Apache-2.0
// Objects as the table that "kubectl get" prints: columns by kind, cells made on the server.
#pragma once

#include "store/rest.h"

/* List metadata of a table. */
struct printer_page {
    uint64_t rv;
    struct hk_str cont; /* token of the next page, "" at the end */
    int64_t remaining;  /* objects after this page, 0 if none or unknown */
};

/* Append a meta.k8s.io/v1 Table in parts: its head, then rows; the caller separates rows by commas
 * and ends with "]}". include_object is "Metadata", "Object" or "None". */
void printer_write_head(const struct rest_kind *k, const struct printer_page *page,
                        struct hk_buf *out);
void printer_write_row(const struct rest_kind *k, const struct store_obj *obj,
                       const char *include_object, int64_t now_ns, struct hk_buf *out);
