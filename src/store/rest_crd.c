// SPDX-License-Identifier: Apache-2.0
// Prepares a CustomResourceDefinition for storage: adds the finalizer that keeps it while objects
// of its kind exist, and a status that says whether its names are free. If they are, rest_kinds.c
// serves the kind; if not, the definition waits until the names become free.
#include "api/schema.h"
#include "store/rest_priv.h"

static void put_finalizer(struct rest_call *c, struct json *doc)
{
    struct json *meta = rest_edit(doc, &c->mem, "metadata");
    const struct json *old = json_get(meta, "finalizers");
    struct json list = json_clone_as(old, JSON_ARRAY, &c->mem);

    json_push(&list, &c->mem, json_make_str(HK_STR(REST_CRD_FINALIZER)));
    json_set(meta, &c->mem, "finalizers", list);
}

/* Adds to status.storedVersions every version that may still be in the store. Validation runs
 * later: a version may have no name yet. */
static void note_stored(struct rest_call *c, struct json *doc)
{
    struct hk_arena *a = &c->mem;
    const struct json *versions = json_at(doc, "spec.versions");
    const struct json *had = json_at(doc, "status.storedVersions");
    struct json list = json_clone_as(had, JSON_ARRAY, a);

    for (uint32_t i = 0; json_is(versions, JSON_ARRAY) && i < versions->len; i++) {
        const struct json *name = json_get(&versions->items[i], "name");
        bool listed = !json_is(name, JSON_STRING) ||
                      !json_bool(json_get(&versions->items[i], "storage"), false);
        for (uint32_t k = 0; k < list.len; k++) {
            listed = listed || json_equal(&list.items[k], name);
        }
        if (!listed) {
            json_push(&list, a, *name);
        }
    }
    json_set(rest_edit(doc, a, "status"), a, "storedVersions", list);
}

/* ---- schemas ---- */

/* Where problems of a schema's rules are told. */
struct rules_report {
    struct rest_call *c;
    const char *at; /* the schema's path in the definition */
};

static void rest_crd_on_bad_rule(void *ctx, const char *reason, const char *field,
                                 const char *message)
{
    const struct rules_report *r = ctx;

    rest_field_error(r->c, reason,
                     hk_arena_printf(&r->c->mem, "%s%s%s", r->at, field[0] ? "." : "", field), "%s",
                     message);
}

static const struct json *version_schema(const struct json *versions, uint32_t i)
{
    return json_at(&versions->items[i], "schema.openAPIV3Schema");
}

/* Kubernetes keeps one schema for all versions if they are equal, and its messages show it. */
static bool versions_share_schema(const struct json *versions)
{
    for (uint32_t i = 0; i < json_len(versions); i++) {
        const struct json *schema = version_schema(versions, i);
        if (!schema || !json_equal(schema, version_schema(versions, 0))) {
            return false;
        }
    }
    return true;
}

/* A schema that cannot be applied is refused, not ignored. */
static void check_schema(struct rest_call *c, const struct json *schema, const char *at)
{
    struct rules_report report = {c, at};
    const struct schema_sink sink = {.ctx = &report, .error = rest_crd_on_bad_rule};
    struct schema *rules = NULL;
    struct hk_err why = {0};

    if (schema_new(schema, &rules, &why) < 0) {
        rest_field_error(c, "FieldValueInvalid", at, "Invalid value: \"object\": %s", why.text);
        return;
    }
    schema_check_rules(rules, &c->mem, &sink);
    schema_check_defaults(rules, &c->mem, &sink);
    schema_free(rules);
}

static void check_schemas(struct rest_call *c, const struct json *doc)
{
    const struct json *versions = json_at(doc, "spec.versions");
    const bool shared = versions_share_schema(versions);

    for (uint32_t i = 0; i < (shared ? HK_MIN(json_len(versions), 1U) : json_len(versions)); i++) {
        const struct json *schema = version_schema(versions, i);
        if (schema) {
            check_schema(
                c, schema,
                shared ? "spec.validation.openAPIV3Schema"
                       : hk_arena_printf(&c->mem, "spec.versions[%u].schema.openAPIV3Schema", i));
        }
    }
}

/* ---- names ---- */

static bool short_name_taken(const struct rest_kind *k, struct hk_str word)
{
    for (size_t i = 0; i < HK_LEN(k->kind->short_names) && k->kind->short_names[i]; i++) {
        if (hk_str_is(word, k->kind->short_names[i])) {
            return true;
        }
    }
    return false;
}

/* Whether the kind uses the word as a resource name. */
static bool resource_taken(const struct rest_kind *k, struct hk_str word)
{
    return hk_str_is(word, k->kind->plural) || hk_str_is(word, k->kind->singular) ||
           short_name_taken(k, word);
}

static bool kind_taken(const struct rest_kind *k, struct hk_str word)
{
    const struct hk_str list = json_str(json_get(k->names, "listKind"), HK_STR(""));

    return hk_str_is(word, k->kind->kind) || (list.n > 0 && hk_str_eq(word, list));
}

/* Tests the other served kinds of the group. */
static bool rest_crd_name_is_taken(struct rest_call *c, const struct json *spec, struct hk_str word,
                                   bool (*test)(const struct rest_kind *k, struct hk_str word))
{
    const struct hk_str group = json_str(json_get(spec, "group"), HK_STR(""));
    const struct hk_str plural = json_str(json_at(spec, "names.plural"), HK_STR(""));

    for (uint32_t i = 0; word.n > 0 && i < rest_kinds(c->r); i++) {
        const struct rest_kind *k = rest_kind_at(c->r, i);
        if (k->served && hk_str_is(group, k->kind->group) && !hk_str_is(plural, k->kind->plural) &&
            test(k, word)) {
            return true;
        }
    }
    return false;
}

/* Accepts the name if it is free; otherwise sets the condition's reason, such as "Singular". */
static void take_name(struct rest_call *c, const struct json *spec, const char *key,
                      struct json *accepted, const char **reason, struct hk_str *word)
{
    const struct json *v = json_get(json_get(spec, "names"), key);
    const struct hk_str name = json_str(v, HK_STR(""));
    const bool of_kind = hk_str_ends(hk_str(key), "ind");

    if (!v) {
        return;
    }
    if (rest_crd_name_is_taken(c, spec, name, of_kind ? kind_taken : resource_taken)) {
        *reason = hk_arena_printf(&c->mem, "%c%sConflict", key[0] - 'a' + 'A', key + 1);
        *word = name;
        return;
    }
    json_set(accepted, &c->mem, key, json_clone(v, &c->mem));
}

static void take_short_names(struct rest_call *c, const struct json *spec, struct json *accepted,
                             const char **reason, struct hk_str *word)
{
    const struct json *list = json_at(spec, "names.shortNames");

    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct hk_str name = json_str(&list->items[i], HK_STR(""));
        if (rest_crd_name_is_taken(c, spec, name, resource_taken)) {
            *reason = "ShortNamesConflict";
            *word = name;
            return;
        }
    }
    if (list) {
        json_set(accepted, &c->mem, "shortNames", json_clone(list, &c->mem));
    }
}

/* Established at once: the event of this write changes the kind rows before watchers see it. */
static void accept_names(struct rest_call *c, struct json *doc)
{
    static const char *const keys[] = {"plural", "singular", "kind", "listKind"};
    const struct json *spec = json_get(doc, "spec");
    struct json accepted = json_make_object();
    const struct json *categories = json_at(spec, "names.categories");
    const char *reason = NULL;
    struct hk_str word = HK_STR("");

    for (size_t i = 0; i < HK_LEN(keys); i++) {
        take_name(c, spec, keys[i], &accepted, &reason, &word);
    }
    take_short_names(c, spec, &accepted, &reason, &word);
    if (categories) {
        json_set(&accepted, &c->mem, "categories", json_clone(categories, &c->mem));
    }
    json_set(rest_edit(doc, &c->mem, "status"), &c->mem, "acceptedNames", accepted);
    if (reason) {
        rest_condition(c, doc, "NamesAccepted", "False", reason,
                       hk_arena_printf(&c->mem, "\"%.*s\" is already in use", HK_FMT(word)));
        rest_condition(c, doc, "Established", "False", "NotAccepted", "not all names are accepted");
        return;
    }
    rest_condition(c, doc, "NamesAccepted", "True", "NoConflicts", "no conflicts found");
    rest_condition(c, doc, "Established", "True", "InitialNamesAccepted",
                   "the initial names have been accepted");
}

bool rest_crd_established(const struct json *doc)
{
    const struct json *all = json_at(doc, "status.conditions");

    for (uint32_t i = 0; json_is(all, JSON_ARRAY) && i < all->len; i++) {
        if (hk_str_is(json_str(json_get(&all->items[i], "type"), HK_STR("")), "Established")) {
            return hk_str_is(json_str(json_get(&all->items[i], "status"), HK_STR("")), "True");
        }
    }
    return true;
}

void rest_crd_prepare(struct rest_call *c, struct json *doc, const struct json *old)
{
    const struct json *status = json_get(doc, "status");

    check_schemas(c, doc);
    if (status) { /* the object may share its status with the old one, which must not change */
        json_set(doc, &c->mem, "status", json_clone(status, &c->mem));
    }
    if (!old && !rest_has_finalizer(doc, REST_CRD_FINALIZER)) {
        put_finalizer(c, doc);
    }
    accept_names(c, doc);
    note_stored(c, doc);
}

/* ---- names that become free ---- */

void rest_crd_feed(struct rest *r, const struct store_event *ev)
{
    if (ev->obj->res == r->crds->res && ev->type != STORE_ADDED) {
        r->names_freed = true;
    }
}

struct waiting {
    HK_VEC(const struct store_obj *) at; /* holds references */
};

static bool on_definition(void *ctx, const struct store_obj *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct waiting *w = ctx;
    struct json doc;

    if (json_parse(o->text, 0, &mem, &doc, NULL) == 0 && !rest_crd_established(&doc) &&
        !rest_deleting(&doc)) {
        hk_vec_push(&w->at, store_obj_ref(o));
    }
    return true;
}

/* Sends an update without changes, so that rest_crd_prepare checks the definition again. */
static void try_again(struct rest *r, const struct store_obj *o)
{
    const struct json nothing = json_make_object();
    const struct port_request req = {
        .verb = PORT_PATCH,
        .kind = r->crds->kind,
        .name = o->name,
        .patch = PORT_PATCH_MERGE,
        .body = &nothing,
    };

    port_submit(&r->port, &req, (struct port_sink){0});
}

void rest_crd_run(struct rest *r)
{
    struct waiting w = {0};

    if (!r->names_freed) {
        return;
    }
    r->names_freed = false;
    store_scan(r->store, r->crds->res, HK_STR(""), HK_STR(""), HK_STR(""), on_definition, &w);
    for (uint32_t i = 0; i < w.at.len; i++) {
        try_again(r, w.at.at[i]);
        store_obj_unref(w.at.at[i]);
    }
    hk_vec_fini(&w.at);
}
