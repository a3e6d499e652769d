// SPDX-License-Identifier: Apache-2.0
// What the parts of the HyperNode controller say to each other.
#pragma once

#include "controllers/ctl.h"
#include "controllers/kinds.h"

/* One pass over what labels of nodes say: HyperNodes of that source are made, mended and deleted.
 */
void hypernode_discover(struct turn *t);
