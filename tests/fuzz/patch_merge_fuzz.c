// SPDX-License-Identifier: Apache-2.0
// Merge patches, as a list of target and patch: applying one twice changes nothing more.
#include "api/patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What we hold can be written and read again. */
static void check_writable(const struct json *v)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    HK_AUTO(hk_arena_fini) struct hk_arena arena = {0};
    struct json back;

    json_write(v, &text);
    hk_assert(json_parse(hk_buf_str(&text), JSON_DUP_REJECT, &arena, &back, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena arena = {0};
    struct json pair;

    if (json_parse((struct hk_str){(const char *)data, size}, 0, &arena, &pair, NULL) < 0 ||
        pair.type != JSON_ARRAY || pair.len < 2) {
        return 0;
    }
    struct json once = json_clone(&pair.items[0], &arena);
    api_patch_merge(&once, &pair.items[1], &arena);
    check_writable(&once);
    struct json twice = json_clone(&once, &arena);
    api_patch_merge(&twice, &pair.items[1], &arena);
    hk_assert(json_equal(&once, &twice));
    return 0;
}
