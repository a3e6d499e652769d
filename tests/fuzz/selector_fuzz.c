// SPDX-License-Identifier: Apache-2.0
// Label and field selectors from text. What a label selector writes must read back to the same
// text, and no selector may crash when it is matched.
#include "api/selector.h"
#include "fuzz/fuzz.h"

static void label_selector(struct hk_str text, struct hk_arena *a)
{
    struct api_kv pairs[] = {{HK_STR("a"), HK_STR("1")}, {HK_STR("b"), HK_STR("")}};
    const struct api_map labels = {pairs, HK_LEN(pairs)};
    HK_AUTO(hk_buf_fini) struct hk_buf once = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf twice = {0};
    struct api_selector s;
    struct api_selector again;
    struct hk_err err = {0};

    if (api_selector_parse(text, a, &s, &err) < 0) {
        hk_assert(err.code == HK_EINVAL && err.text[0] != '\0');
        return;
    }
    api_selector_write(&s, &once);
    hk_assert(api_selector_parse(hk_buf_str(&once), a, &again, &err) == 0);
    api_selector_write(&again, &twice);
    hk_assert(hk_str_eq(hk_buf_str(&once), hk_buf_str(&twice)));
    hk_assert(api_selector_match(&s, &labels) == api_selector_match(&again, &labels));
}

static void field_selector(struct hk_str text, struct hk_arena *a)
{
    struct api_field_selector s;
    struct hk_err err = {0};
    struct json doc = json_make_object();

    json_put(&doc, a, HK_STR("a"), json_make_int(1));
    if (api_field_selector_parse(text, a, &s, &err) == 0) {
        api_field_selector_match(&s, &doc);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct hk_str text = {(const char *)data, size};

    label_selector(text, &a);
    field_selector(text, &a);
    return 0;
}
