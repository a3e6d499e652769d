// SPDX-License-Identifier: Apache-2.0
// Schemas, as a list of schema and object: what was pruned once has nothing left to prune, and
// defaults filled in stay as they are. Rules are reviewed and evaluated, for new objects and updates.
#include "api/schema.h"
#include "fuzz/fuzz.h"

static void on_unknown(void *ctx, const char *path)
{
    ++*(uint32_t *)ctx;
}

static void on_error(void *ctx, const char *reason, const char *field, const char *message)
{
    hk_assert(reason && field && message);
    ++*(uint32_t *)ctx;
}

static void check_object(const struct schema *s, struct json *obj, struct hk_arena *a)
{
    uint32_t unknown = 0, errors = 0;
    const struct schema_sink sink = {&unknown, on_error, on_unknown};
    const struct schema_sink error_sink = {&errors, on_error, on_unknown};

    schema_prune(s, obj, a, NULL);
    schema_prune(s, obj, a, &sink);
    hk_assert(unknown == 0);
    schema_default(s, obj, a);
    struct json again = json_clone(obj, a);
    schema_default(s, &again, a);
    hk_assert(json_equal(obj, &again));
    hk_assert(schema_validate(s, obj, NULL, a, &error_sink) == (errors == 0));
    errors = 0;
    hk_assert(schema_validate(s, obj, &again, a, &error_sink) == (errors == 0));
    schema_check_rules(s, a, &error_sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena arena = {0};
    struct json pair;

    if (!fuzz_read_pair(data, size, &arena, &pair)) {
        return 0;
    }
    struct schema *s;
    if (schema_new(&pair.items[0], &s, NULL) == 0) {
        struct json obj = json_clone(&pair.items[1], &arena);
        check_object(s, &obj, &arena);
        schema_free(s);
    }
    return 0;
}
