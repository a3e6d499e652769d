// SPDX-License-Identifier: Apache-2.0
// Forbids error-prone libc calls. Every room includes this through base/mem.h.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With fortified libc these are macros to clang, and a macro cannot be poisoned. */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atof gets
