// SPDX-License-Identifier: Apache-2.0
// Shared by the files of show.h only.
//
//   show.c        times, ages, and tables as wide as their content
//   show_job.c    jobs and their events
//   show_queue.c  queues
//   show_flow.c   flows and templates, and whole objects
//   show_pod.c    pods
//   show_server.c state of a server
#pragma once

#include "cli/show.h"

#define SHOW_NOTHING "No resources found\n"

/* Of metadata: a label or an annotation. */
struct hk_str show_label(const struct json *obj, const char *map, const char *key);
/* Writes a cell: the text, padded with blanks to the width. */
void show_cell(struct hk_str text, size_t width, struct hk_buf *out);
void show_number(int64_t n, size_t width, struct hk_buf *out);
/* Writes the date in the local time zone. */
void show_date(const struct json *stamp, struct hk_buf *out);

enum { SHOW_MAX_COLUMNS = 6 };

/* A table that is written when all rows are known; a column is as wide as its heading plus
 * head_room, or as its longest value plus room. */
struct show_table {
    const char *heads[SHOW_MAX_COLUMNS];
    uint32_t ncolumns;
    size_t head_room, room;
    struct hk_str *cells;
    uint32_t len, cap;
    struct hk_arena mem;
};
void show_table_add(struct show_table *t, struct hk_str cell);
void show_table_write(const struct show_table *t, struct hk_buf *out);
void show_table_fini(struct show_table *t);
