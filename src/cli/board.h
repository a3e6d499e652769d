// SPDX-License-Identifier: Apache-2.0
// Overview of the cluster with its queues, jobs and nodes, and bars of requested versus available
// resources. A frame is a list of lines.
#pragma once

#include "cli/list.h"

enum board_sort { BOARD_BY_STATE, BOARD_BY_AGE, BOARD_BY_SIZE, BOARD_BY_NAME, BOARD_NSORTS };

const char *board_sort_name(enum board_sort sort);

struct board {
    struct list_set jobs, groups, pods, nodes, queues;
    enum board_sort sort;
    bool namespaces; /* show a namespace column */
    bool help;       /* show the key help instead */
    bool keys;       /* keys are available */
    int64_t now_ns;
};

/* Writes as many lines as the terminal has; without a terminal all lines. */
void board_write(const struct board *b, const struct term *t, struct hk_buf *out);

/* Redraws a frame: writes only the lines that differ, from the top of the screen. An empty `before`
 * clears the screen. */
void board_change(struct hk_str before, struct hk_str after, struct hk_buf *out);
