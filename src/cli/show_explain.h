// SPDX-License-Identifier: Apache-2.0
// Writes an explanation as text, from its JSON document.
#pragma once

#include "cli/term.h"
#include "codec/json.h"

void show_explain(const struct json *answer, const struct term *t, struct hk_buf *out);
