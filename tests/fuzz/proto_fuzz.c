// SPDX-License-Identifier: Apache-2.0
// Protobuf bodies: what can be read can be written as JSON and read again.
#include "api/proto.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena arena = {0};
    struct json v;

    if (api_proto_decode((struct hk_str){(const char *)data, size}, &arena, &v, NULL) == 0) {
        fuzz_check_writable(&v);
    }
    return 0;
}
