// SPDX-License-Identifier: Apache-2.0
// Objects as the table that "kubectl get" prints: columns by kind, cells made on the server.
#pragma once

#include "store/rest.h"

/* List metadata of a table. */
struct printer_page {
    const char *version; /* of meta.k8s.io, "v1" or "v1beta1" */
    uint64_t rv;
    struct hk_str cont; /* token of the next page, "" at the end */
    int64_t remaining;  /* objects after this page, 0 if none or unknown */
};

/* What all rows of a table have in common. */
struct printer_style {
    const char *version; /* as in printer_page */
    const char *include; /* of each object: "Metadata", "Object" or "None" */
    int64_t now_ns;      /* ages are counted from here */
};

/* Append a meta.k8s.io Table in parts: its head, then rows; the caller separates rows by commas and
 * ends with "]}". */
void printer_write_head(const struct rest_kind *k, const struct printer_page *page,
                        struct hk_buf *out);
void printer_write_row(const struct rest_kind *k, const struct store_obj *obj,
                       const struct printer_style *style, struct hk_buf *out);
