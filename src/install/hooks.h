// SPDX-License-Identifier: Apache-2.0
// The registration of the admission server, from the table of its rules. What it cannot answer
// stops Volcano's own kinds and nothing else: of pods it sees only those that ask for Volcano, and
// they go on without it.
#pragma once

#include "install/install.h"

/* Appends one configuration for each rule that is not disabled. */
void install_hooks(const struct install_opts *o, struct hk_arena *a, struct json *ret);
