// SPDX-License-Identifier: Apache-2.0
// Certificates and keys in memory that libcurl can open by name.
#pragma once

#include "base/err.h"

struct pem_file {
    int fd; /* -1: none */
    char path[32];
};

/* Makes the new file before closing the old one: its different name stops libcurl from reusing a
 * connection made with the old one. */
int pem_file_set(struct pem_file *p, const char *text, struct hk_err *err) HK_CHECKED;
void pem_file_fini(struct pem_file *p);
