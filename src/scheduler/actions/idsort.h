// SPDX-License-Identifier: Apache-2.0
// Sorts ids with the caller's comparison. Stable. Sorted or strictly reversed input costs one pass:
// pods of a job are usually created in the order they are placed.
#pragma once

#include "base/arena.h"
#include "base/heap.h"

void idsort(uint32_t *at, uint32_t n, hk_heap_less *less, void *ctx, struct hk_arena *mem);
