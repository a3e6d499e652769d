// SPDX-License-Identifier: Apache-2.0
// Lists of jobs, pods, queues, nodes and flows, as tables (cli/list.h) or objects.
#pragma once

#include "user/user.h"

enum listing_format { /* in the order of the choices of --output */
                      LISTING_TABLE,
                      LISTING_WIDE,
                      LISTING_JSON,
                      LISTING_YAML,
                      LISTING_NAME,
};

struct listing_opts {
    struct user_opts user;
    const char *selector, *queue; /* NULL: all */
    enum listing_format format;
    bool watch;
    struct option_list names; /* empty: all */
};

/* Prints the list with that plural: "jobs", "pods", "queues", "nodes" or "flows". With watch it
 * continues until it fails: a terminal shows the table as it changes, a pipe gets each changed
 * row. */
int listing_print(struct user *u, const char *plural, const struct listing_opts *o,
                  struct hk_err *err) HK_CHECKED;
