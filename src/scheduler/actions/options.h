// SPDX-License-Identifier: Apache-2.0
// Rows that several actions have in their option tables.
#pragma once

#include "scheduler/plugin.h"

#define OPT_ERROR_CACHE                                                                            \
    {                                                                                              \
        .key = "predicateErrorCacheEnable", .type = OPT_IGNORED, .dflt = "true",                   \
        .help = "answers are exact here and remembered as long as they hold"                       \
    }
