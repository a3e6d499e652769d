// SPDX-License-Identifier: Apache-2.0
// What a CustomResourceDefinition is given when it is taken: the finalizer that holds it while
// objects of its kind exist, and the status of the accepted. What its rows then do is in
// rest_kinds.c.
#include "api/schema.h"
#include "store/rest_priv.h"

static void put_finalizer(struct rest_call *c, struct json *doc)
{
    struct json *meta = rest_edit(doc, &c->mem, "metadata");
    const struct json *old = json_get(meta, "finalizers");
    struct json list = json_is(old, JSON_ARRAY) ? json_clone(old, &c->mem) : json_make_array();

    json_push(&list, &c->mem, json_make_str(HK_STR(REST_CRD_FINALIZER)));
    json_put(meta, &c->mem, HK_STR("finalizers"), list);
}

/* Every version that may still be in the store stays listed. */
static void note_stored(struct rest_call *c, struct json *doc)
{
    struct hk_arena *a = &c->mem;
    const struct json *versions = json_at(doc, "spec.versions");
    const struct json *had = json_at(doc, "status.storedVersions");
    struct json list = json_is(had, JSON_ARRAY) ? json_clone(had, a) : json_make_array();

    for (uint32_t i = 0; json_is(versions, JSON_ARRAY) && i < versions->len; i++) {
        const struct json *name = json_get(&versions->items[i], "name");
        bool listed = !json_bool(json_get(&versions->items[i], "storage"), false);
        for (uint32_t k = 0; k < list.len; k++) {
            listed = listed || json_equal(&list.items[k], name);
        }
        if (!listed) {
            json_push(&list, a, *name);
        }
    }
    json_put(rest_edit(doc, a, "status"), a, HK_STR("storedVersions"), list);
}

/* A schema that cannot be applied is refused, not ignored. */
static void check_schemas(struct rest_call *c, const struct json *doc)
{
    const struct json *versions = json_at(doc, "spec.versions");

    for (uint32_t i = 0; json_is(versions, JSON_ARRAY) && i < versions->len; i++) {
        const struct json *doc_schema = json_at(&versions->items[i], "schema.openAPIV3Schema");
        struct schema *rules = NULL;
        struct hk_err why = {0};
        if (doc_schema && schema_new(doc_schema, &rules, &why) < 0) {
            rest_field_error(
                c, "FieldValueInvalid",
                hk_arena_printf(&c->mem, "spec.versions[%u].schema.openAPIV3Schema", i),
                "Invalid value: \"object\": %s", why.text);
        }
        schema_free(rules);
    }
}

void rest_crd_prepare(struct rest_call *c, struct json *doc, const struct json *old)
{
    struct hk_arena *a = &c->mem;

    check_schemas(c, doc);
    if (!old && !rest_has_finalizer(doc, REST_CRD_FINALIZER)) {
        put_finalizer(c, doc);
    }
    /* Rows change with the event of this write, before anybody is told: no step in between. */
    const struct json *names = json_at(doc, "spec.names");
    if (names) {
        json_put(rest_edit(doc, a, "status"), a, HK_STR("acceptedNames"), json_clone(names, a));
    }
    rest_condition(c, doc, "NamesAccepted", "True", "NoConflicts", "no conflicts found");
    rest_condition(c, doc, "Established", "True", "InitialNamesAccepted",
                   "the initial names have been accepted");
    note_stored(c, doc);
}
