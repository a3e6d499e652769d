// SPDX-License-Identifier: Apache-2.0
// What is installed, built in: the YAML of objects/ with its parts put together. Words that begin
// with a dollar sign are for install.c to fill in.
#pragma once

#include <stddef.h>

struct install_text {
    const char *name; /* "rbac"; NULL behind the last one */
    const char *text; /* YAML, some documents */
    size_t len;
};

extern const struct install_text install_texts[];
