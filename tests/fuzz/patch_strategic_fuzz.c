// SPDX-License-Identifier: Apache-2.0
// Strategic merge patches, as a list of target, patch and, as a number, the kind.
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
    const int64_t id = json_int(json_item(&pair, 2), API_POD);
    const struct api_kind *kind = id >= 0 && id < API_NKINDS ? api_kind(id) : NULL;
    const struct json before = json_clone(&pair.items[1], &arena);
    struct json target = json_clone(&pair.items[0], &arena);
    if (api_patch_strategic(&target, &pair.items[1], kind, &arena, NULL) == 0) {
        check_writable(&target);
    }
    hk_assert(json_equal(&before, &pair.items[1]));
    return 0;
}
