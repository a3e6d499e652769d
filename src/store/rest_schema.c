// SPDX-License-Identifier: Apache-2.0
// Applies the schema of a CustomResourceDefinition to objects of its kind: removes unknown fields,
// adds defaults and reports violations as field errors. Kinds without a schema are not changed. A
// new schema does not rewrite stored objects: they are pruned and defaulted whenever they are read.
#include "api/schema.h"
#include "store/rest_priv.h"

static void on_unknown(void *ctx, const char *path)
{
    struct rest_call *c = ctx;

    hk_vec_push(&c->adm.unknown, hk_arena_strndup(&c->mem, path, strlen(path)));
}

static void on_error(void *ctx, const char *reason, const char *field, const char *message)
{
    rest_field_error(ctx, reason, field, "%s", message);
}

void rest_schema_apply(struct rest_call *c, struct json *doc)
{
    const struct schema_sink sink = {.ctx = c, .unknown = on_unknown};

    if (c->k->rules) {
        schema_prune(c->k->rules, doc, &c->mem, &sink);
        schema_default(c->k->rules, doc, &c->mem);
    }
}

bool rest_schema_outdated(const struct rest_kind *k, const struct store_obj *o)
{
    return k->rules && o->rv < k->schema_rv;
}

void rest_schema_refresh(const struct rest_kind *k, struct json *doc, struct hk_arena *mem)
{
    if (k->rules) {
        schema_prune(k->rules, doc, mem, NULL);
        schema_default(k->rules, doc, mem);
    }
}

void rest_schema_drop_unknown(const struct rest_kind *k, struct json *doc, struct hk_arena *mem)
{
    if (k->rules) {
        schema_prune(k->rules, doc, mem, NULL);
    }
}

void rest_schema_validate(struct rest_call *c, const struct json *doc, const struct json *old)
{
    const struct schema_sink sink = {.ctx = c, .error = on_error};

    if (c->k->rules) {
        schema_validate(c->k->rules, doc, old, &c->mem, &sink);
    }
}
