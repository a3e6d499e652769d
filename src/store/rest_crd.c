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

/* A position in a schema, linked to its parent in the caller's stack frame. */
struct place {
    const struct place *up;
    const char *field;
    struct hk_str key; /* of a map, if not empty */
    uint32_t index;    /* index in a list */
    bool listed;
};

static void place_write(const struct place *p, struct hk_buf *out)
{
    if (p->up) {
        place_write(p->up, out);
        hk_buf_addc(out, '.');
    }
    hk_buf_adds(out, p->field);
    if (p->key.n > 0) {
        hk_buf_addf(out, "[%.*s]", HK_FMT(p->key));
    } else if (p->listed) {
        hk_buf_addf(out, "[%u]", p->index);
    }
}

static void warn_rule(struct rest_call *c, const struct place *at, struct hk_str rule)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    place_write(at, &path);
    rest_warn(c, "%s.rule: this server does not evaluate the rule and will not enforce it: %.*s",
              path.data, HK_FMT(rule));
}

/* Warns about rules that are not enforced. The caller compiled the schema, so depth is bounded. */
static void warn_rules(struct rest_call *c, const struct place *at, const struct json *schema)
{
    static const char *const maps[] = {"properties", "patternProperties"};
    static const char *const nodes[] = {"items", "additionalProperties", "not"};
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    const struct json *rules = json_get(schema, "x-kubernetes-validations");

    for (uint32_t i = 0; json_is(rules, JSON_ARRAY) && i < rules->len; i++) {
        const struct place here = {at, "x-kubernetes-validations", .index = i, .listed = true};
        const struct hk_str rule = json_str(json_get(&rules->items[i], "rule"), HK_STR(""));
        if (!schema_knows_rule(rule)) {
            warn_rule(c, &here, rule);
        }
    }
    for (size_t k = 0; k < HK_LEN(maps); k++) {
        const struct json *map = json_get(schema, maps[k]);
        for (uint32_t i = 0; json_is(map, JSON_OBJECT) && i < map->len; i++) {
            const struct place here = {at, maps[k], .key = map->members[i].key};
            warn_rules(c, &here, &map->members[i].value);
        }
    }
    for (size_t k = 0; k < HK_LEN(nodes); k++) {
        const struct place here = {.up = at, .field = nodes[k]};
        if (json_is(json_get(schema, nodes[k]), JSON_OBJECT)) {
            warn_rules(c, &here, json_get(schema, nodes[k]));
        }
    }
    for (size_t k = 0; k < HK_LEN(lists); k++) {
        const struct json *list = json_get(schema, lists[k]);
        for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
            const struct place here = {at, lists[k], .index = i, .listed = true};
            warn_rules(c, &here, &list->items[i]);
        }
    }
}

/* A schema that cannot be applied is refused, not ignored. */
static void check_schemas(struct rest_call *c, const struct json *doc)
{
    const struct json *versions = json_at(doc, "spec.versions");

    for (uint32_t i = 0; json_is(versions, JSON_ARRAY) && i < versions->len; i++) {
        const struct json *schema = json_at(&versions->items[i], "schema.openAPIV3Schema");
        const struct place version = {NULL, "spec.versions", .index = i, .listed = true};
        const struct place at = {.up = &version, .field = "schema.openAPIV3Schema"};
        struct schema *rules = NULL;
        struct hk_err why = {0};
        if (schema && schema_new(schema, &rules, &why) < 0) {
            rest_field_error(
                c, "FieldValueInvalid",
                hk_arena_printf(&c->mem, "spec.versions[%u].schema.openAPIV3Schema", i),
                "Invalid value: \"object\": %s", why.text);
        } else if (schema) {
            warn_rules(c, &at, schema);
        }
        schema_free(rules);
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
