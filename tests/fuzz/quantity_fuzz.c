// SPDX-License-Identifier: Apache-2.0
// Quantities: the canonical form of whatever is read reads back as the same value and form, and
// adding and taking away again changes nothing.

#include "codec/quantity.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_buf_fini) struct hk_buf once = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf twice = {0};
    const struct quantity one = quantity_of(1, QUANTITY_DECIMAL_SI);
    struct hk_err err = {0};
    struct quantity q, back;

    if (quantity_parse((struct hk_str){(const char *)data, size}, &q, &err) < 0) {
        hk_assert(err.code == HK_EINVAL && err.text[0] != '\0');
        return 0;
    }

    quantity_write(q, &once);
    hk_assert(quantity_parse(hk_buf_str(&once), &back, &err) == 0);
    hk_assert(quantity_cmp(q, back) == 0);
    quantity_write(back, &twice);
    hk_assert(hk_str_eq(hk_buf_str(&once), hk_buf_str(&twice)));

    const int64_t units = quantity_value(q);
    if (units > INT64_MIN && units < INT64_MAX) {
        hk_assert(quantity_milli(q) / 1000 <= units || units < 0);
        hk_assert(quantity_cmp(quantity_sub(quantity_add(q, one), one), q) == 0);
    }
    return 0;
}
