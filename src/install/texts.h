// SPDX-License-Identifier: Apache-2.0
// The objects to install, built in: the assembled YAML of objects/. install.c replaces words that
// start with a dollar sign.
#pragma once

#include <stddef.h>

struct install_text {
    const char *name; /* "rbac"; NULL after the last one */
    const char *text; /* YAML, one or more documents */
    size_t len;
};

extern const struct install_text install_texts[];
