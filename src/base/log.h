// SPDX-License-Identifier: Apache-2.0
// One line per fact, key=value pairs, on stderr: hk_log(HK_LOG_WARN, "queue has no such parent",
// "queue=%s parent=%s", name, parent). Only mains, request handlers and loops log.
#pragma once

#include "base/mem.h"

enum hk_log_level { HK_LOG_ERROR, HK_LOG_WARN, HK_LOG_INFO, HK_LOG_DEBUG };

void hk_log_set_level(enum hk_log_level level);
enum hk_log_level hk_log_level(void);
/* event is quoted as msg="..."; fmt gives the pairs and may be NULL. */
void hk_log_write(enum hk_log_level level, const char *event, const char *fmt, ...) HK_PRINTF(3, 4);

#define hk_log(level, event, ...)                                                                  \
    do {                                                                                           \
        if ((level) <= hk_log_level()) {                                                           \
            hk_log_write((level), (event), __VA_ARGS__);                                           \
        }                                                                                          \
    } while (0)
