// SPDX-License-Identifier: Apache-2.0
// The initial content of a data directory: Volcano's custom resource definitions and the standard
// roles, updated to this program's version at every start.
#pragma once

#include "store/rest.h"

/* Runs rest's port until the definitions are stored. On failure the error names the definition. */
int bootstrap_crds(struct rest *r, struct hk_err *err) HK_CHECKED;
/* Stores the standard roles and bindings. */
int bootstrap_roles(struct rest *r, struct hk_err *err) HK_CHECKED;
/* Creates the queues root and default, the system's priority classes and the default storage class
 * where missing; needs the definitions. */
int bootstrap_objects(struct rest *r, struct hk_err *err) HK_CHECKED;
