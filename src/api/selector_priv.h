// SPDX-License-Identifier: Apache-2.0
// Field readers of selectors for the decoders in api/.
#pragma once

#include "api/field_priv.h"
#include "api/selector.h"

/* A LabelSelector into a struct api_selector. */
field_read selector_field;
/* A plain map into a struct api_selector; an empty map is absent, as Services treat it. */
field_read selector_field_map;
/* A NodeSelector into a struct api_node_selector. */
field_read selector_field_node;

extern const struct field_record selector_node_term_record;
extern const struct field_record selector_topology_record; /* TopologySelectorTerm */
