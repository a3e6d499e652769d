// SPDX-License-Identifier: Apache-2.0
// What a data directory holds before the first client comes: Volcano's custom resource definitions
// and the roles of every cluster, brought up to this program's version at every start.
#pragma once

#include "store/rest.h"

/* Runs rest's port until the definitions are stored. Fails with the name of the one that cannot be.
 */
int bootstrap_crds(struct rest *r, struct hk_err *err) HK_CHECKED;
/* The roles and bindings every cluster begins with. */
int bootstrap_roles(struct rest *r, struct hk_err *err) HK_CHECKED;
/* Makes the queues root and default, the system's priority classes and the default storage class
 * where they are missing; the
 * definitions must be there. */
int bootstrap_objects(struct rest *r, struct hk_err *err) HK_CHECKED;
