// SPDX-License-Identifier: Apache-2.0
// Shared by the files of show.h only.
//
//   show.c        times, ages, and tables as wide as what is in them
//   show_job.c    jobs and their events
//   show_queue.c  queues
//   show_flow.c   flows and templates, and whole objects
//   show_pod.c    pods
//   show_server.c how a server is
#pragma once

#include "cli/show.h"

#define SHOW_NOTHING "No resources found\n"

/* The string at the dotted path, "" when absent. */
struct hk_str show_str(const struct json *obj, const char *path);
int64_t show_int(const struct json *obj, const char *path);
/* The list at the path, an empty one when absent. */
const struct json *show_list(const struct json *obj, const char *path);
/* Of metadata: a label or an annotation. */
struct hk_str show_label(const struct json *obj, const char *map, const char *key);
/* A cell: the text, and blanks up to the width. */
void show_cell(struct hk_str text, size_t width, struct hk_buf *out);
void show_number(int64_t n, size_t width, struct hk_buf *out);
/* The calendar day in the local zone. */
void show_date(const struct json *stamp, struct hk_buf *out);

enum { SHOW_MAX_COLUMNS = 6 };

/* Rows that are written when all are known; a column is as wide as its heading and head_room, or
 * as its longest value and room. */
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
