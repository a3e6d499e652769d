// SPDX-License-Identifier: Apache-2.0
// Shared by Jobs and PodGroups.
#pragma once

#include "api/field_priv.h"

/* networkTopology, into struct api_network_topology. */
extern const struct field_record podgroup_topology_record;
