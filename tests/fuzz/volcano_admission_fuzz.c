// SPDX-License-Identifier: Apache-2.0
// Volcano's rules on arbitrary objects, each over each: refused with words, or allowed with a patch
// that fits the object, and fits what came of it again.

#include "admission/volcano.h"
#include "api/patch.h"
#include "fuzz/fuzz.h"

/* The object is all there is, under every name: its own queue, parent and child. */
static const struct json *get(void *ctx, const struct api_kind *kind, struct hk_str ns,
                              struct hk_str name)
{
    return ctx;
}

static void each(void *ctx, const struct api_kind *kind, struct hk_str ns,
                 bool (*fn)(void *arg, const struct json *obj), void *arg)
{
    fn(arg, ctx);
}

static void review(const struct volcano_rule *rule, const struct admission_request *q,
                   const struct volcano_options *opts)
{
    struct admission_request once = *q;
    struct admission_request twice = *q;
    struct json obj = json_clone(q->obj, q->mem);
    struct json patch = json_make_array();

    if (volcano_review(rule, &once, opts, &patch) < 0) {
        hk_assert(once.denial[0] != '\0');
        return;
    }
    hk_assert(rule->mutates || patch.len == 0);
    if (patch.len == 0) {
        return;
    }
    hk_assert(api_patch_json(&obj, &patch, q->mem, NULL) == 0);
    twice.obj = &obj;
    hk_assert(volcano_review(rule, &twice, opts, &patch) == 0);
    hk_assert(api_patch_json(&obj, &patch, q->mem, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_arena mem = {0};
    struct json obj;

    if (json_parse((struct hk_str){(const char *)data, size}, 0, &mem, &obj, NULL) == 0 &&
        obj.type == JSON_OBJECT) {
        const struct admission_lookup lookup = {.ctx = &obj, .get = get, .each = each};
        /* The object is its own configuration as well, where it has the shape. */
        const struct volcano_options opts = {
            .conf = volcano_check_conf(&obj, NULL) == 0 ? &obj : NULL,
            .gate_queue_admission = true,
            .refuse_busy_queues = true,
        };
        for (const struct volcano_rule *rule = volcano_rules; rule->path; rule++) {
            for (enum admission_verb verb = ADMIT_CREATE; verb <= ADMIT_DELETE; verb++) {
                const struct admission_request q = {
                    .verb = verb,
                    .kind = api_kind(rule->kind),
                    .obj = &obj,
                    .old = &obj,
                    .ns = HK_STR("ns"),
                    .name = json_str(json_at(&obj, "metadata.name"), HK_STR("")),
                    .mem = &mem,
                    .lookup = &lookup,
                };
                review(rule, &q, &opts);
            }
        }
    }
    hk_arena_fini(&mem);
    return 0;
}
