// SPDX-License-Identifier: Apache-2.0
// Shared by the files of make.h only: make.c (what vcctl makes), make_run.c (the job of one line).
#pragma once

#include "cli/make.h"

void make_put(struct json *obj, struct hk_arena *a, const char *key, struct json v);
void make_put_str(struct json *obj, struct hk_arena *a, const char *key, const char *s);
/* A list of one. */
struct json make_one(struct hk_arena *a, struct json item);
/* An object of the kind, with that for metadata. */
struct json make_object(enum api_kind_id id, struct json meta, struct hk_arena *a);
