// SPDX-License-Identifier: Apache-2.0
// Strategic merge patches, as a list of target, patch and, as a number, the kind.
#include "api/patch.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena arena = {0};
    struct json pair;

    if (!fuzz_read_pair(data, size, &arena, &pair)) {
        return 0;
    }
    const int64_t id = json_int(json_item(&pair, 2), API_POD);
    const struct api_kind *kind = id >= 0 && id < API_NKINDS ? api_kind(id) : NULL;
    const struct json before = json_clone(&pair.items[1], &arena);
    struct json target = json_clone(&pair.items[0], &arena);
    if (api_patch_strategic(&target, &pair.items[1], kind, &arena, NULL) == 0) {
        fuzz_check_writable(&target);
    }
    hk_assert(json_equal(&before, &pair.items[1]));
    return 0;
}
