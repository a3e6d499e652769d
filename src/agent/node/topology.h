// SPDX-License-Identifier: Apache-2.0
// The Numatopology of a node.
#pragma once

#include "agent/node/node.h"

struct topology {
    struct node *node;
    uint64_t call;         /* in flight, or 0 */
    bool exists, patching; /* the last call found the object; this call patches it */
    int64_t due_ns;
};

void topology_init(struct topology *t, struct node *n);
void topology_fini(struct topology *t);
int64_t topology_tick(struct topology *t, int64_t now_ns);
