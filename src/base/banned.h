// SPDX-License-Identifier: Apache-2.0
// Calls that have cost others dearly. Every room includes this through base/mem.h.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Macros to clang when libc is fortified, and a macro cannot be poisoned. */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atof gets
