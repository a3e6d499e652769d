// SPDX-License-Identifier: Apache-2.0
// Objects as the table "kubectl get" prints: columns of the kind, cells made on the server.
#pragma once

#include "store/rest.h"

/* What stands over the rows of a table. */
struct printer_page {
    uint64_t rv;
    struct hk_str cont; /* token of the next page, "" at the end */
    int64_t remaining;  /* objects behind this page, 0 unknown or none */
};

/* A whole meta.k8s.io/v1 Table, appended. include_object is "Metadata", "Object" or "None". */
void printer_write(const struct rest_kind *k, const struct store_obj *const *objs, uint32_t n,
                   const struct printer_page *page, const char *include_object, int64_t now_ns,
                   struct hk_buf *out);
