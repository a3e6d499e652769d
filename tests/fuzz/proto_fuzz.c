// SPDX-License-Identifier: Apache-2.0
// Protobuf bodies: what can be read can be written as JSON and read again.
#include "api/proto.h"

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
    struct json v;

    if (api_proto_decode((struct hk_str){(const char *)data, size}, &arena, &v, NULL) == 0) {
        check_writable(&v);
    }
    return 0;
}
