// SPDX-License-Identifier: Apache-2.0
// One line per fact, key=value pairs, on stderr: hk_log(HK_LOG_WARN, "queue has no such parent",
// "queue=%s parent=%s", name, parent). Only mains, request handlers and loops log.
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

enum hk_log_level { HK_LOG_ERROR, HK_LOG_WARN, HK_LOG_INFO, HK_LOG_DEBUG };

void hk_log_set_level(enum hk_log_level level);
enum hk_log_level hk_log_level(void);
/* event is quoted as msg="..."; fmt gives the pairs and may be NULL. Values are quoted and escaped
 * where logfmt needs it. Supports only the conversions d i u x c s f m, without flags. */
void hk_log_write(enum hk_log_level level, const char *event, const char *fmt, ...) HK_PRINTF(3, 4);

/* From now on lines start with the time, and repeated lines are only counted: a line appears again
 * with repeated=N before the next different line, and every ten seconds while it repeats. NULL
 * switches this off. */
void hk_log_set_clock(struct hk_clock *clock);
/* Writes a repeat count that is due. Call it from time to time. */
void hk_log_tick(void);
/* Redirects stdout and stderr to the end of the file. */
int hk_log_open(const char *path, struct hk_err *err) HK_CHECKED;
/* Opens the same path again, after log rotation; false without a log file. On failure lines go
 * where they went before. */
bool hk_log_reopen(void);

#define hk_log(level, event, ...)                                                                  \
    do {                                                                                           \
        if ((level) <= hk_log_level()) {                                                           \
            hk_log_write((level), (event), __VA_ARGS__);                                           \
        }                                                                                          \
    } while (0)
