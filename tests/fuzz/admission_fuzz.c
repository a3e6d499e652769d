// SPDX-License-Identifier: Apache-2.0
// Admission on arbitrary objects: refused, or changed into something that passes through the same
// decoding and defaults again without another change.

#include "admission/admission.h"
#include "fuzz/fuzz.h"

/* The object after decode and mutate as text, or false when refused. */
static bool pass(const struct api_kind *kind, struct json *obj, struct hk_arena *mem,
                 struct hk_buf *out)
{
    struct hk_err err = {0};
    struct admission_request q = {
        .verb = ADMIT_CREATE,
        .kind = kind,
        .obj = obj,
        .ns = HK_STR("ns"),
        .mem = mem,
    };
    bool ok = admission_decode(&q, &err) == 0 && admission_mutate(&q, &err) == 0;

    if (ok) {
        ok = admission_validate(&q, &err) == 0;
        json_write(obj, out);
    }
    hk_assert(ok || err.text[0] != '\0');
    admission_request_fini(&q);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_arena mem = {0};
    struct json obj;
    HK_AUTO(hk_buf_fini) struct hk_buf once = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf twice = {0};

    if (json_parse((struct hk_str){(const char *)data, size}, 0, &mem, &obj, NULL) == 0 &&
        obj.type == JSON_OBJECT) {
        const struct api_kind *kind =
            api_kind_find(json_str(json_get(&obj, "apiVersion"), HK_STR("")),
                          json_str(json_get(&obj, "kind"), HK_STR("")));
        if (kind && pass(kind, &obj, &mem, &once)) {
            hk_assert(pass(kind, &obj, &mem, &twice));
            hk_assert(strcmp(once.data, twice.data) == 0);
        }
    }
    hk_arena_fini(&mem);
    return 0;
}
