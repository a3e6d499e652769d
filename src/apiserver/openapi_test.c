// SPDX-License-Identifier: Apache-2.0
// OpenAPI documents: all references resolve, they contain what kubectl needs to explain, validate
// and write, and their hashes differ between states.
#include "apiserver/openapi_priv.h"

#include "apiserver/crds.h"
#include "codec/protobuf.h"
#include "codec/yaml.h"
#include "store/rest_rig_test.h"

#define V2_PROTO "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

struct world {
    struct rig rig;
    struct openapi *openapi;
};

/* Defines widgets whose spec has these properties. */
static void define(struct world *w, const char *props, enum port_verb verb)
{
    const char *body = hk_arena_printf(
        &w->rig.mem,
        "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition',"
        "'metadata':{'name':'widgets.example.com'},'spec':{'group':'example.com',"
        "'scope':'Namespaced','names':{'plural':'widgets','singular':'widget','kind':'Widget'},"
        "'versions':[{'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':"
        "{'type':'object','description':'A widget.','properties':{'spec':{'type':'object',"
        "'required':['size'],'properties':{%s}}}}}}]}}",
        props);
    const struct step s = {.kind = "CustomResourceDefinition",
                           .req = {.verb = verb, .name = HK_STR("widgets.example.com")},
                           .body = body,
                           .code = verb == PORT_CREATE ? 201 : 200};

    rig_step(&w->rig, &s, "define", 0);
}

#define SIZE "'size':{'type':'integer','description':'How large it is.'}"

static int begin(void **state)
{
    struct world *w = hk_zalloc(sizeof(*w));

    *state = w;
    rig_open(&w->rig, false);
    w->openapi = openapi_new(w->rig.rest);
    define(w, SIZE, PORT_CREATE);
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;

    openapi_free(w->openapi);
    rig_close(&w->rig);
    hk_free(w);
    return 0;
}

static bool ask_raw(struct world *w, const char *path, const char *hash, const char *accept,
                    struct openapi_reply *ret)
{
    return openapi_answer(
        w->openapi, &(struct openapi_query){hk_str(path), hk_str(accept), hk_str(hash), {0}}, ret);
}

/* The document as a tree, NULL if there is none. */
static const struct json *ask(struct world *w, const char *path)
{
    struct json *v = hk_arena_zalloc(&w->rig.mem, sizeof(*v));
    struct openapi_reply r;
    struct hk_err err = {0};

    if (!ask_raw(w, path, "", "application/json", &r)) {
        return NULL;
    }
    assert_int_equal(r.code, 200);
    if (json_parse(hk_arena_str(&w->rig.mem, r.body), JSON_DUP_REJECT, &w->rig.mem, v, &err) < 0) {
        fail_msg("%s: %s", path, err.text);
    }
    return v;
}

static const char *text_at(struct world *w, const struct json *v, const char *path)
{
    return hk_arena_str(&w->rig.mem, json_str(json_at(v, path), HK_STR("-"))).s;
}

/* ---- documents are consistent ---- */

struct rules {
    const struct json *schemas;
    const char *prefix;
    bool v2;
    uint32_t refs;
};

static void check_ref(struct rules *rules, const struct json *v, struct hk_str ref)
{
    const size_t n = strlen(rules->prefix);

    rules->refs++;
    if (!hk_str_starts(ref, rules->prefix) ||
        !json_get_str(rules->schemas, (struct hk_str){ref.s + n, ref.n - n})) {
        fail_msg("%.*s leads nowhere", HK_FMT(ref));
    }
    if (v->len > 1 && (!rules->v2 || json_get(v, "type") || json_get(v, "properties"))) {
        fail_msg("%.*s does not stand alone", HK_FMT(ref));
    }
}

/* Checks everything that has a $ref or looks like a schema. Clients of version 2 refuse a document
 * that contains a list without items. */
static void check_tree(struct rules *rules, const struct json *v)
{
    const struct hk_str ref = json_str(json_get(v, "$ref"), HK_STR(""));

    if (ref.n > 0) {
        check_ref(rules, v, ref);
    }
    if (rules->v2 && hk_str_is(json_str(json_get(v, "type"), HK_STR("")), "array")) {
        assert_true(json_is(json_get(v, "items"), JSON_OBJECT));
    }
    for (uint32_t i = 0; json_is(v, JSON_OBJECT) && i < v->len; i++) {
        check_tree(rules, &v->members[i].value);
    }
    for (uint32_t i = 0; json_is(v, JSON_ARRAY) && i < v->len; i++) {
        check_tree(rules, &v->items[i]);
    }
}

static void references_resolve(void **state)
{
    const struct json *v2 = ask(*state, "/openapi/v2");
    const struct json *index = json_get(ask(*state, "/openapi/v3"), "paths");
    struct rules rules = {json_get(v2, "definitions"), "#/definitions/", true, 0};

    assert_string_equal(text_at(*state, v2, "swagger"), "2.0");
    check_tree(&rules, v2);
    assert_true(rules.refs > 1000);
    for (uint32_t i = 0; i < index->len; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
        hk_buf_addf(&path, "/openapi/v3/%.*s", HK_FMT(index->members[i].key));
        const struct json *doc = ask(*state, hk_buf_str(&path).s);
        rules =
            (struct rules){json_at(doc, "components.schemas"), "#/components/schemas/", false, 0};
        check_tree(&rules, doc);
        assert_true(rules.refs > 0);
    }
}

static void every_served_kind_is_listed(void **state)
{
    struct world *w = *state;
    const struct json *paths = json_get(ask(w, "/openapi/v2"), "paths");

    for (uint32_t i = 0; i < rest_kinds(w->rig.rest); i++) {
        const struct api_kind *k = rest_kind_at(w->rig.rest, i)->kind;
        const char *path = hk_arena_printf(
            &w->rig.mem, "%s%s/%s%s/%s/{name}", k->group[0] == '\0' ? "/api" : "/apis/", k->group,
            k->version, k->namespaced ? "/namespaces/{namespace}" : "", k->plural);
        if (!json_get(paths, path)) {
            fail_msg("no path %s", path);
        }
    }
}

/* ---- hashes ---- */

/* The hash of a group version in the index. */
static const char *hash_of(struct world *w, const char *root)
{
    const struct json *index = json_get(ask(w, "/openapi/v3"), "paths");
    const char *url = text_at(w, json_get(index, root), "serverRelativeURL");
    const char *hash = strstr(url, "?hash=");

    if (!hash || strncmp(url, "/openapi/v3/", 12) != 0 || strncmp(url + 12, root, strlen(root))) {
        fail_msg("%s: %s", root, url);
    }
    return hash + strlen("?hash=");
}

static void hashes_lead_to_documents(void **state)
{
    struct world *w = *state;
    const char *hash = hash_of(w, "apis/apps/v1");
    struct openapi_reply r;

    assert_true(ask_raw(w, "/openapi/v3/apis/apps/v1", hash, "application/json", &r));
    assert_int_equal(r.code, 200);
    assert_true(r.immutable);
    assert_string_equal(r.tag, hash);
    assert_true(ask_raw(w, "/openapi/v3/apis/apps/v1", "0123", "application/json", &r));
    assert_int_equal(r.code, 301);
    assert_string_equal(r.tag, hash);
    assert_true(ask_raw(w, "/openapi/v3/apis/apps/v1", "", "application/json", &r));
    assert_int_equal(r.code, 200);
    assert_false(r.immutable);
    assert_false(ask_raw(w, "/openapi/v3/apis/nobody/v1", "", "application/json", &r));
    assert_false(ask_raw(w, "/openapi/v3/apps", "", "application/json", &r));
    assert_false(ask_raw(w, "/openapi/v4", "", "application/json", &r));
}

static void known_tags_spare_the_body(void **state)
{
    static const char *const paths[] = {"/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1"};
    struct world *w = *state;

    for (size_t i = 0; i < HK_LEN(paths); i++) {
        struct openapi_reply first, again;
        assert_true(ask_raw(w, paths[i], "", "application/json", &first));
        const char *tag = hk_arena_printf(&w->rig.mem, "\"%s\"", first.tag);
        assert_true(openapi_answer(
            w->openapi,
            &(struct openapi_query){hk_str(paths[i]), HK_STR("*/*"), HK_STR(""), hk_str(tag)},
            &again));
        assert_int_equal(again.code, 304);
        assert_int_equal(again.body.n, 0);
    }
}

static void hashes_follow_definitions(void **state)
{
    struct world *w = *state;
    const char *custom = hash_of(w, "apis/example.com/v1");
    const char *builtin = hash_of(w, "api/v1");
    struct openapi_reply before, after;

    assert_true(ask_raw(w, "/openapi/v2", "", "application/json", &before));
    define(w, SIZE ",'colour':{'type':'string'}", PORT_UPDATE);
    assert_string_not_equal(hash_of(w, "apis/example.com/v1"), custom);
    assert_string_equal(hash_of(w, "api/v1"), builtin);
    assert_true(ask_raw(w, "/openapi/v2", "", "application/json", &after));
    assert_string_not_equal(after.tag, before.tag);
    define(w, SIZE, PORT_UPDATE);
    assert_string_equal(hash_of(w, "apis/example.com/v1"), custom);
}

static void documents_leave_with_their_definition(void **state)
{
    struct world *w = *state;
    const struct step gone = {.kind = "CustomResourceDefinition",
                              .req = {.verb = PORT_DELETE, .name = HK_STR("widgets.example.com")},
                              .code = 200};

    hash_of(w, "apis/example.com/v1");
    rig_step(&w->rig, &gone, "leave", 0);
    assert_null(json_get(json_get(ask(w, "/openapi/v3"), "paths"), "apis/example.com/v1"));
    assert_null(ask(w, "/openapi/v3/apis/example.com/v1"));
}

/* ---- contents that clients need ---- */

static bool has_param(const struct json *op, const char *name)
{
    const struct json *params = json_get(op, "parameters");

    for (uint32_t i = 0; json_item(params, i); i++) {
        if (hk_str_is(json_str(json_get(json_item(params, i), "name"), HK_STR("")), name)) {
            return true;
        }
    }
    return false;
}

static void each_patch_type_lists_its_media_types(void **state)
{
    static const struct {
        const char *doc, *path, *kind;
        bool strategic;
    } cases[] = {
        {"/openapi/v3/api/v1", "/api/v1/namespaces/{namespace}/pods/{name}", "Pod", true},
        {"/openapi/v3/api/v1", "/api/v1/nodes/{name}/status", "Node", true},
        {"/openapi/v3/apis/apps/v1",
         "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale", "Scale", true},
        {"/openapi/v3/apis/example.com/v1",
         "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}", "Widget", false},
        {"/openapi/v2", "/api/v1/namespaces/{namespace}/pods/{name}", "Pod", false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct json *paths = json_get(ask(*state, cases[i].doc), "paths");
        const struct json *patch = json_get(json_get(paths, cases[i].path), "patch");
        const struct json *gvk = json_get(patch, "x-kubernetes-group-version-kind");
        if (!has_param(patch, "dryRun") || !has_param(patch, "fieldValidation")) {
            fail_msg("%s: dryRun and fieldValidation are missing", cases[i].path);
        }
        assert_string_equal(text_at(*state, gvk, "kind"), cases[i].kind);
        assert_int_equal(json_get(json_at(patch, "requestBody.content"),
                                  "application/strategic-merge-patch+json") != NULL,
                         cases[i].strategic);
    }
}

#define CORE "io.k8s.api.core.v1."

static void built_in_types_are_described(void **state)
{
    static const struct {
        const char *schema, *path, *want;
    } cases[] = {
        {CORE "Pod", "properties.spec.description", "What the pod runs, and where it may run."},
        {CORE "Pod", "type", "object"},
        {CORE "PodSpec", "properties.containers.type", "array"},
        {CORE "PodSpec", "properties.containers.x-kubernetes-patch-merge-key", "name"},
        {CORE "PodSpec", "properties.containers.x-kubernetes-patch-strategy", "merge"},
        {CORE "PodSpec", "properties.volumes.x-kubernetes-patch-strategy", "merge,retainKeys"},
        {CORE "PodSpec", "properties.priority.format", "int32"},
        {CORE "PodSpec", "properties.activeDeadlineSeconds.format", "int64"},
        {CORE "PodSpec", "properties.nodeSelector.additionalProperties.type", "string"},
        {CORE "Secret", "properties.data.additionalProperties.format", "byte"},
        {CORE "Volume", "properties.emptyDir.description",
         "Empty directory that lives as long as the pod."},
        {CORE "PodList", "properties.items.type", "array"},
    };
    const struct json *v3 = json_at(ask(*state, "/openapi/v3/api/v1"), "components.schemas");
    const struct json *v2 = json_get(ask(*state, "/openapi/v2"), "definitions");

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        assert_string_equal(text_at(*state, json_get(v3, cases[i].schema), cases[i].path),
                            cases[i].want);
        assert_string_equal(text_at(*state, json_get(v2, cases[i].schema), cases[i].path),
                            cases[i].want);
    }
    const struct json *required = json_get(json_get(v3, CORE "PodSpec"), "required");
    assert_int_equal(required->len, 1);
    assert_true(hk_str_is(json_str(json_item(required, 0), HK_STR("")), "containers"));
}

/* Versions that share a type are still two kinds. */
static void kinds_are_found_by_version(void **state)
{
    struct world *w = *state;
    const struct json *all = json_get(ask(w, "/openapi/v2"), "definitions");

    for (uint32_t i = 0; i < rest_kinds(w->rig.rest); i++) {
        const struct api_kind *k = rest_kind_at(w->rig.rest, i)->kind;
        uint32_t found = 0;
        for (uint32_t m = 0; m < all->len; m++) {
            const struct json *gvk =
                json_item(json_get(&all->members[m].value, "x-kubernetes-group-version-kind"), 0);
            found += !strcmp(text_at(w, gvk, "kind"), k->kind) &&
                     !strcmp(text_at(w, gvk, "version"), k->version) &&
                     !strcmp(text_at(w, gvk, "group"), k->group);
        }
        if (found != 1) {
            fail_msg("%s/%s %s: want 1 schema, have %u", k->group, k->version, k->kind, found);
        }
    }
}

/* ---- custom resources ---- */

static void custom_schemas_fit_their_version(void **state)
{
    static const struct {
        const char *prop, *v3, *v2; /* the complete property "size" */
    } cases[] = {
        {"{'type':'string','enum':['a','b'],'default':'a'}",
         "{'type':'string','enum':['a','b'],'default':'a'}",
         "{'type':'string','enum':['a','b'],'default':'a'}"},
        {"{'type':'integer','nullable':true}", "{'type':'integer','nullable':true}", "{}"},
        {"{'type':'array','nullable':true,'items':{'type':'string'}}",
         "{'type':'array','nullable':true,'items':{'type':'string'}}", "{}"},
        {"{'x-kubernetes-int-or-string':true}",
         "{'$ref':'#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString'}",
         "{'$ref':'#/definitions/io.k8s.apimachinery.pkg.util.intstr.IntOrString'}"},
        {"{'x-kubernetes-int-or-string':true,'default':3}",
         "{'x-kubernetes-int-or-string':true,'default':3}",
         "{'x-kubernetes-int-or-string':true,'default':3}"},
        {"{'type':'object','x-kubernetes-preserve-unknown-fields':true,"
         "'properties':{'a':{'type':'string'}}}",
         "{'type':'object','x-kubernetes-preserve-unknown-fields':true,"
         "'properties':{'a':{'type':'string'}}}",
         "{'type':'object','x-kubernetes-preserve-unknown-fields':true}"},
        {"{'type':'object','additionalProperties':{'type':'integer','minimum':1}}",
         "{'type':'object','additionalProperties':{'type':'integer','minimum':1}}",
         "{'type':'object','additionalProperties':{'type':'integer','minimum':1}}"},
    };
    struct world *w = *state;
    const char *path = "properties.spec.properties.size";

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        define(w, hk_arena_printf(&w->rig.mem, "'size':%s", cases[i].prop), PORT_UPDATE);
        const struct json *v3 =
            json_get(json_at(ask(w, "/openapi/v3/apis/example.com/v1"), "components.schemas"),
                     "com.example.v1.Widget");
        const struct json *v2 =
            json_get(json_get(ask(w, "/openapi/v2"), "definitions"), "com.example.v1.Widget");
        if (!json_equal(json_at(v3, path), rig_json(&w->rig, cases[i].v3)) ||
            !json_equal(json_at(v2, path), rig_json(&w->rig, cases[i].v2))) {
            fail_msg("case %zu, %s", i, cases[i].prop);
        }
        assert_string_equal(text_at(w, v3, "description"), "A widget.");
        assert_non_null(json_at(v3, "properties.metadata.allOf"));
        assert_non_null(json_at(v2, "properties.apiVersion"));
    }
}

/* Stored definitions may not have been validated, or by another version: any schema contents still
 * result in a document. */
static void odd_schemas_spoil_no_document(void **state)
{
    static const char *const schemas[] = {
        "{'type':'object','properties':[]}",
        "{'type':'object','properties':'x'}",
        "{'type':'object','properties':null,'x-kubernetes-embedded-resource':true}",
        "{'type':'object','properties':{'a':null,'b':7,'c':[]}}",
        "{'type':7,'items':[],'additionalProperties':[],'required':{}}",
        "{}",
        "[]",
    };
    struct world *w = *state;

    for (size_t i = 0; i < HK_LEN(schemas); i++) {
        struct openapi_doc d = {.mem = &w->rig.mem,
                                .v2 = i % 2 == 0,
                                .schemas = json_make_object(),
                                .paths = json_make_object()};
        const struct json made = openapi_custom(&d, rig_json(&w->rig, schemas[i]));

        assert_int_equal(made.type, JSON_OBJECT);
    }
}

static void pod_specs_are_described_wherever_they_are(void **state)
{
    struct world *w = *state;

    define(w,
           SIZE ",'work':{'type':'object','properties':{'volumes':{'type':'array','items':"
                "{'type':'object'}},'restartPolicy':{'type':'string','description':'Mine.'},"
                "'containers':{'type':'array','items':{'type':'object','properties':"
                "{'image':{'type':'string'},'other':{'type':'string'}}}}}}",
           PORT_UPDATE);
    const struct json *schema =
        json_get(json_at(ask(w, "/openapi/v3/apis/example.com/v1"), "components.schemas"),
                 "com.example.v1.Widget");
    const struct json *work = json_at(schema, "properties.spec.properties.work.properties");
    const struct json *inner = json_at(work, "containers.items.properties");
    assert_string_equal(text_at(w, work, "volumes.description"),
                        "Storage that containers of the pod can mount.");
    assert_string_equal(text_at(w, work, "restartPolicy.description"), "Mine.");
    assert_string_equal(text_at(w, inner, "image.description"), "Image to run.");
    assert_null(json_at(inner, "other.description"));
}

static void check_described(const struct json *schema, const char *path, struct hk_arena *mem)
{
    const struct json *props = json_get(schema, "properties");
    const struct json *parts[] = {json_get(schema, "items"),
                                  json_get(schema, "additionalProperties")};

    for (uint32_t i = 0; props && i < props->len; i++) {
        const struct json_member *m = &props->members[i];
        const char *inner = hk_arena_printf(mem, "%s.%.*s", path, HK_FMT(m->key));
        if (!json_get(&m->value, "description")) {
            fail_msg("%s is not described", inner);
        }
        check_described(&m->value, inner, mem);
    }
    for (size_t i = 0; i < HK_LEN(parts); i++) {
        if (parts[i]) {
            check_described(parts[i], path, mem);
        }
    }
}

static void install(struct world *w, const struct crd_file *f)
{
    struct yaml_docs docs = {0};

    assert_int_equal(yaml_parse((struct hk_str){f->text, f->len}, 0, &w->rig.mem, &docs, NULL), 0);
    const struct port_request req = {.verb = PORT_CREATE,
                                     .kind = rig_kind(&w->rig, "CustomResourceDefinition"),
                                     .body = &docs.at[0]};
    struct answer a = rig_ask(&w->rig, &req);
    assert_int_equal(a.code, 201);
    answer_fini(&a);
}

static void every_field_of_volcano_is_described(void **state)
{
    struct world *w = *state;
    uint32_t n = 0;

    for (const struct crd_file *f = crd_files; f->name; f++) {
        install(w, f);
    }
    const struct json *all = json_get(ask(w, "/openapi/v2"), "definitions");
    for (uint32_t i = 0; i < all->len; i++) {
        const struct hk_str name = all->members[i].key;
        if (hk_str_starts(name, "sh.volcano.") && !hk_str_ends(name, "List")) {
            check_described(&all->members[i].value, hk_arena_str(&w->rig.mem, name).s, &w->rig.mem);
            n++;
        }
    }
    assert_int_equal(n, 14);
}

/* ---- protobuf ---- */

/* The bytes of the first field with that number; empty if there is none. */
static struct hk_str field(struct hk_str message, uint32_t number)
{
    struct protobuf_field f;

    while (protobuf_next(&message, &f, NULL) > 0) {
        if (f.number == number) {
            return f.bytes;
        }
    }
    return (struct hk_str){0};
}

/* The value of a pair by name, in a list of pairs. */
static struct hk_str named(struct hk_str pairs, uint32_t number, const char *name)
{
    struct protobuf_field f;

    while (protobuf_next(&pairs, &f, NULL) > 0) {
        if (f.number == number && hk_str_is(field(f.bytes, 1), name)) {
            return field(f.bytes, 2);
        }
    }
    return (struct hk_str){0};
}

static void compare_schema(const struct json *want, struct hk_str have)
{
    static const struct {
        const char *key;
        uint32_t number;
    } texts[] = {{"$ref", 1}, {"format", 2}, {"description", 4}, {"pattern", 13}};
    const struct json *props = json_get(want, "properties");
    struct hk_str rest = field(have, 25);
    struct protobuf_field f;
    uint32_t n = 0;

    for (size_t i = 0; i < HK_LEN(texts); i++) {
        assert_true(hk_str_eq(field(have, texts[i].number),
                              json_str(json_get(want, texts[i].key), HK_STR(""))));
    }
    assert_true(hk_str_eq(field(field(have, 22), 1), json_str(json_get(want, "type"), HK_STR(""))));
    while (protobuf_next(&rest, &f, NULL) > 0) {
        compare_schema(json_get_str(props, field(f.bytes, 1)), field(f.bytes, 2));
        n++;
    }
    assert_int_equal(n, props ? props->len : 0);
    if (json_get(want, "items")) {
        compare_schema(json_get(want, "items"), field(field(have, 23), 1));
    }
    if (json_get(want, "additionalProperties")) {
        compare_schema(json_get(want, "additionalProperties"), field(field(have, 21), 1));
    }
}

static void protobuf_and_json_documents_are_equal(void **state)
{
    struct world *w = *state;
    const struct json *definitions = json_get(ask(w, "/openapi/v2"), "definitions");
    struct openapi_reply r;
    struct protobuf_field f;
    uint32_t n = 0;

    assert_true(ask_raw(w, "/openapi/v2", "", V2_PROTO, &r));
    assert_string_equal(r.type, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    assert_true(hk_str_is(field(r.body, 1), "2.0"));
    struct hk_str rest = field(r.body, 9);
    while (protobuf_next(&rest, &f, NULL) > 0) {
        compare_schema(&definitions->members[n].value, field(f.bytes, 2));
        n++;
    }
    assert_int_equal(n, definitions->len);
}

static void protobuf_has_extensions_and_parameters(void **state)
{
    struct openapi_reply r;

    assert_true(ask_raw(*state, "/openapi/v2", "", V2_PROTO, &r));
    const struct hk_str pod = named(field(r.body, 9), 1, CORE "Pod");
    const struct hk_str gvk = field(named(pod, 31, "x-kubernetes-group-version-kind"), 2);
    assert_true(hk_str_is(gvk, "[{\"group\":\"\",\"kind\":\"Pod\",\"version\":\"v1\"}]"));
    const struct hk_str item =
        named(field(r.body, 8), 2, "/api/v1/namespaces/{namespace}/pods/{name}");
    const struct hk_str patch = field(item, 8);
    const struct hk_str query = field(field(field(field(patch, 8), 1), 2), 3);
    assert_true(hk_str_is(field(query, 4), "dryRun"));
    assert_true(hk_str_is(field(query, 2), "query"));
    assert_true(hk_str_is(field(named(patch, 13, "x-kubernetes-group-version-kind"), 2),
                          "{\"group\":\"\",\"kind\":\"Pod\",\"version\":\"v1\"}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(references_resolve, begin, end),
        cmocka_unit_test_setup_teardown(every_served_kind_is_listed, begin, end),
        cmocka_unit_test_setup_teardown(hashes_lead_to_documents, begin, end),
        cmocka_unit_test_setup_teardown(known_tags_spare_the_body, begin, end),
        cmocka_unit_test_setup_teardown(hashes_follow_definitions, begin, end),
        cmocka_unit_test_setup_teardown(documents_leave_with_their_definition, begin, end),
        cmocka_unit_test_setup_teardown(each_patch_type_lists_its_media_types, begin, end),
        cmocka_unit_test_setup_teardown(built_in_types_are_described, begin, end),
        cmocka_unit_test_setup_teardown(kinds_are_found_by_version, begin, end),
        cmocka_unit_test_setup_teardown(custom_schemas_fit_their_version, begin, end),
        cmocka_unit_test_setup_teardown(odd_schemas_spoil_no_document, begin, end),
        cmocka_unit_test_setup_teardown(pod_specs_are_described_wherever_they_are, begin, end),
        cmocka_unit_test_setup_teardown(every_field_of_volcano_is_described, begin, end),
        cmocka_unit_test_setup_teardown(protobuf_and_json_documents_are_equal, begin, end),
        cmocka_unit_test_setup_teardown(protobuf_has_extensions_and_parameters, begin, end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
