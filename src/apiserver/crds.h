// SPDX-License-Identifier: Apache-2.0
// Volcano's custom resource definitions, built in: the YAML of crds/ with its parts put together.
#pragma once

#include <stddef.h>

struct crd_file {
    const char *name; /* "batch.volcano.sh_jobs"; NULL behind the last one */
    const char *text; /* YAML, one document */
    size_t len;
};

extern const struct crd_file crd_files[];
