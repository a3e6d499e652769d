// SPDX-License-Identifier: Apache-2.0
// Shared by the files of make.h only: make.c (objects of vcctl), make_run.c (a command as a job).
#pragma once

#include "cli/make.h"

/* A list of one. */
struct json make_one(struct hk_arena *a, struct json item);
/* An object of the kind with this metadata. */
struct json make_object(enum api_kind_id id, struct json meta, struct hk_arena *a);
