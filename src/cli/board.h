// SPDX-License-Identifier: Apache-2.0
// All that goes on at a glance: the cluster, its queues, jobs and nodes, with bars of what is asked
// for of what there is. One frame is a list of lines.
#pragma once

#include "cli/list.h"

enum board_sort { BOARD_BY_STATE, BOARD_BY_AGE, BOARD_BY_SIZE, BOARD_BY_NAME, BOARD_NSORTS };

const char *board_sort_name(enum board_sort sort);

struct board {
    struct list_set jobs, groups, pods, nodes, queues;
    enum board_sort sort;
    bool namespaces; /* a column for them */
    bool help;       /* what the keys do, instead */
    bool keys;       /* there are keys to tell of */
    int64_t now_ns;
};

/* On a terminal as many lines as it has, elsewhere all of them. */
void board_write(const struct board *b, const struct term *t, struct hk_buf *out);

/* Turns one frame into another: writes only the lines that differ, from the top of the screen. An
 * empty `before` clears it. */
void board_change(struct hk_str before, struct hk_str after, struct hk_buf *out);
