// SPDX-License-Identifier: Apache-2.0
// Completion of half-typed command lines, for the scripts of 'hekla completion'.
#pragma once

#include "cmd/verbs.h"

/* The verb for a program name: "vc-scheduler" is the scheduler; NULL: none. */
const struct verb *verb_of_server(struct hk_str program);
/* The name without directories. */
struct hk_str verb_program_name(const char *path);

/* The hidden verb that shells run, under any of the program's names. */
#define COMPLETE_VERB "__complete"
