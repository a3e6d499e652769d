// SPDX-License-Identifier: Apache-2.0
// Similar words, for messages that suggest what the user meant.
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The number of letters to change, add or remove to turn one word into the other; a word of more
 * than 32 letters is far from every other. */
size_t word_distance(const char *a, const char *b);
/* Whether a typing mistake explains the difference: one letter, or two in words of four or more. */
bool word_is_near(const char *typed, const char *word);
