// SPDX-License-Identifier: Apache-2.0
// What a data directory holds before the first client comes: Volcano's custom resource definitions,
// brought up to this program's version at every start.
#pragma once

#include "store/rest.h"

/* Runs rest's port until the definitions are stored. Fails with the name of the one that cannot be.
 */
int bootstrap_crds(struct rest *r, struct hk_err *err) HK_CHECKED;
