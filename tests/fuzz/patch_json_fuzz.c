// SPDX-License-Identifier: Apache-2.0
// JSON patches, as a list of target and patch: what comes out can be written and read again, so
// no patch builds what the decoder would refuse.
#include "api/patch.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena arena = {0};
    struct json pair;

    if (!fuzz_read_pair(data, size, &arena, &pair)) {
        return 0;
    }
    struct json target = json_clone(&pair.items[0], &arena);
    if (api_patch_json(&target, &pair.items[1], &arena, NULL) == 0) {
        fuzz_check_writable(&target);
    }
    return 0;
}
