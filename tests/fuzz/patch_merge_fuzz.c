// SPDX-License-Identifier: Apache-2.0
// Merge patches, as a list of target and patch: applying one twice changes nothing more.
#include "api/patch.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena arena = {0};
    struct json pair;

    if (!fuzz_read_pair(data, size, &arena, &pair)) {
        return 0;
    }
    struct json once = json_clone(&pair.items[0], &arena);
    api_patch_merge(&once, &pair.items[1], &arena);
    fuzz_check_writable(&once);
    struct json twice = json_clone(&once, &arena);
    api_patch_merge(&twice, &pair.items[1], &arena);
    hk_assert(json_equal(&once, &twice));
    return 0;
}
