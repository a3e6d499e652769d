// SPDX-License-Identifier: Apache-2.0
// How far a typed word is from a known one.
#include "cli/word.h"

#include "base/mem.h"

#include <string.h>

enum { MAX_WORD = 32 };

/* The Levenshtein distance. */
size_t word_distance(const char *a, const char *b)
{
    size_t row[MAX_WORD + 1];
    const size_t na = strlen(a), nb = strlen(b);

    if (na > MAX_WORD || nb > MAX_WORD) {
        return MAX_WORD;
    }
    for (size_t k = 0; k <= nb; k++) {
        row[k] = k;
    }
    for (size_t i = 1; i <= na; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t k = 1; k <= nb; k++) {
            const size_t swap = corner + (a[i - 1] != b[k - 1]);
            corner = row[k];
            row[k] = HK_MIN(HK_MIN(row[k], row[k - 1]) + 1, swap);
        }
    }
    return row[nb];
}

bool word_is_near(const char *typed, const char *word)
{
    return word_distance(typed, word) <= (strlen(typed) < 4 ? 1 : 2);
}
