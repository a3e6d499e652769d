// SPDX-License-Identifier: Apache-2.0
// The registration of the admission server, from the table of its rules. If the server fails, only
// writes of Volcano's own kinds are blocked: it sees only pods that ask for Volcano, and these pass
// without it.
#pragma once

#include "install/install.h"

/* Appends one configuration for each rule that is not disabled. */
void install_hooks(const struct install_opts *o, struct hk_arena *a, struct json *ret);
