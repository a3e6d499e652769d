// SPDX-License-Identifier: Apache-2.0
// What a container wrote: records of its log, and the ends of files.
#pragma once

#include "base/str.h"

/* A record of a log in CRI format: "TIME STREAM F text", P for part of a line. */
struct output_record {
    struct hk_str time, text;
    bool partial, is_err;
};

bool output_parse(struct hk_str line, struct output_record *ret);
/* The last max bytes of a file at most, from the start of a character; "" none. */
void output_last_bytes(const char *path, size_t max, struct hk_buf *out);
/* The end of a log, for the message of a failed container; "" none. */
void output_log_end(const char *path, struct hk_buf *out);
