// SPDX-License-Identifier: Apache-2.0
// Makes the root file system of an image from its unpacked layers.
#pragma once

#include "base/err.h"

/* Adds the files of an unpacked layer to the tree in `to`, as hard links, and removes what the
 * layer's whiteouts name. Both are on one file system. */
int image_merge(int layer, int to, struct hk_err *err) HK_CHECKED;
