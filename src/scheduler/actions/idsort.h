// SPDX-License-Identifier: Apache-2.0
// Sorts ids under a caller's order. Stable; ids that come in order, or strictly against it, cost
// one pass: pods of a job are born in the order they will be taken.
#pragma once

#include "base/arena.h"
#include "base/heap.h"

void idsort(uint32_t *at, uint32_t n, hk_heap_less *less, void *ctx, struct hk_arena *mem);
