// SPDX-License-Identifier: Apache-2.0
// An explanation for people, from the document that programs get.
#pragma once

#include "cli/term.h"
#include "codec/json.h"

void show_explain(const struct json *answer, const struct term *t, struct hk_buf *out);
