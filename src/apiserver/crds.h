// SPDX-License-Identifier: Apache-2.0
// Volcano's custom resource definitions, built in: the assembled YAML of crds/.
#pragma once

#include <stddef.h>

struct crd_file {
    const char *name; /* "batch.volcano.sh_jobs"; NULL after the last one */
    const char *text; /* YAML, one document */
    size_t len;
};

extern const struct crd_file crd_files[];
