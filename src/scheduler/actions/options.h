// SPDX-License-Identifier: Apache-2.0
// Option rows shared by several actions.
#pragma once

#include "scheduler/plugin.h"

#define OPT_ERROR_CACHE                                                                            \
    {                                                                                              \
        .key = "predicateErrorCacheEnable", .type = OPT_IGNORED, .dflt = "true",                   \
        .help = "answers are exact here and remembered as long as they hold"                       \
    }
