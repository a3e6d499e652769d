// SPDX-License-Identifier: Apache-2.0
// Watches of the objects that volumes show.
#pragma once

#include "agent/pod/pods.h"

/* Starts watching an object that one of the pod's volumes shows. */
void source_watch(struct pod *p, struct ref *r);
void source_drop(struct pod *p, struct ref *r);
int64_t source_tick(struct pods *ps, int64_t now_ns);
