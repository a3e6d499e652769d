// SPDX-License-Identifier: Apache-2.0
// How much memory this process may use, and how much it uses. Out of memory aborts (base/mem.h), so
// code that stores data for clients asks here first, and refuses while the rest of the process
// still has room.
//
//   0 ........ low ........ high ........ last ........ limit
//   ENOUGH     |            | SHORT       | NONE
//              | SHORT until here, once it was reached
//
// The limits are those that the kernel enforces on the process: address space and data (ulimit -v
// and -d), the memory of its control groups and of the machine; and one that an operator sets. Each
// is compared with the process's own use of what it limits.
#pragma once

#include "base/err.h"

enum hk_room {
    HK_ROOM_ENOUGH,
    HK_ROOM_SHORT, /* only what keeps the system going should grow */
    HK_ROOM_NONE,  /* nothing at all should grow */
};

struct hk_budget;

struct hk_budget_opts {
    uint64_t limit_bytes; /* for memory that is resident; 0: only the kernel's limits hold */
    const char *root;     /* in front of the paths of /proc and /sys; NULL but for tests */
};

/* Reads the limits and measures. Call it before other threads start: where the address space is
 * limited, all threads are made to share one heap. */
struct hk_budget *hk_budget_new(const struct hk_budget_opts *o);
/* Takes NULL. */
void hk_budget_free(struct hk_budget *b);

/* NULL means a process without limits in all of these. */

enum hk_room hk_budget_room(const struct hk_budget *b);
/* Announces that the bytes will be kept; measures again after some of them. */
void hk_budget_spend(struct hk_budget *b, size_t bytes);
/* Measures now; if there is little room, first returns freed memory to the kernel. Call it about
 * once a second: otherwise new room goes unnoticed. */
enum hk_room hk_budget_measure(struct hk_budget *b);
/* Whether the bytes can be used for a moment without exceeding the limits themselves. */
bool hk_budget_fits(struct hk_budget *b, size_t bytes);
/* Why requests are refused; NULL while there is enough room. Changes with the next measurement. */
const struct hk_err *hk_budget_failure(const struct hk_budget *b);
/* The limit closest to being reached, 0: none; and how much of it is used. */
uint64_t hk_budget_limit(const struct hk_budget *b);
uint64_t hk_budget_used(const struct hk_budget *b);
