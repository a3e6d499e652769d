// SPDX-License-Identifier: Apache-2.0
// Regular expressions: the first line is the pattern, the rest the text. No pattern may crash or
// take long, and the same pattern gives the same answer twice.
#include "codec/re2.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str text = {(const char *)data, size}, pattern;
    struct hk_err err = {0};
    struct re2 *re;

    if (!hk_str_cut(&text, '\n', &pattern)) {
        return 0;
    }
    if (re2_compile(pattern, &re, &err) < 0) {
        hk_assert(err.text[0] != '\0');
        return 0;
    }
    hk_assert(re2_matches(re, text) == re2_matches(re, text));
    re2_free(re);
    return 0;
}
