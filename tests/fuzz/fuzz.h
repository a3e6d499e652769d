// SPDX-License-Identifier: Apache-2.0
// What fuzz targets share: the entry point that libFuzzer and replay.c call, and checks.
#pragma once

#include "codec/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What we hold can be written and read again. */
static inline void fuzz_check_writable(const struct json *v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    HK_AUTO(hk_arena_fini) struct hk_arena arena = {0};
    struct json back;

    json_write(v, &text);
    hk_assert(json_parse(hk_buf_str(&text), JSON_DUP_REJECT, &arena, &back, NULL) == 0);
}

/* Reads a list of two values or more. */
static inline bool fuzz_read_pair(const uint8_t *data, size_t size, struct hk_arena *a,
                                  struct json *ret)
{
    return json_parse((struct hk_str){(const char *)data, size}, 0, a, ret, NULL) == 0 &&
           ret->type == JSON_ARRAY && ret->len >= 2;
}
