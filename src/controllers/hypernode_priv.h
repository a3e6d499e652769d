// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the HyperNode controller.
#pragma once

#include "controllers/kinds.h"
#include "controllers/pass.h"

/* Creates, updates and deletes the HyperNodes derived from node labels. */
void hypernode_discover(struct pass *t);
