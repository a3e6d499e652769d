// SPDX-License-Identifier: Apache-2.0
// The YAML reader on arbitrary bytes. What it accepts must survive being written and read again.

#include "codec/yaml.h"
#include "fuzz/fuzz.h"

static void check_round_trip(const struct json *v, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct yaml_docs again;

    yaml_write(v, &out);
    const int rc = yaml_parse(hk_buf_str(&out), YAML_DUP_REJECT, a, &again, NULL);
    hk_assert(rc == 0);
    hk_assert(again.len == 1);
    hk_assert(json_equal(v, &again.at[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct hk_str text = {(const char *)data, size};
    struct yaml_docs docs;
    struct hk_err err = {0};

    if (yaml_parse(text, 0, &a, &docs, &err) < 0) {
        hk_assert(strncmp(err.text, "line ", 5) == 0);
        return 0;
    }
    for (uint32_t i = 0; i < docs.len; i++) {
        check_round_trip(&docs.at[i], &a);
    }
    return 0;
}
