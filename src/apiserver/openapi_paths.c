// SPDX-License-Identifier: Apache-2.0
// Paths: where the objects of a kind are, the operations there and their parameters. Clients use
// them to find the kind of a path and the server's features: dry run, field validation, strategic
// merge patches.
#include "apiserver/openapi_priv.h"

enum {
    PARAM_WRITE = 1 << 0,  /* dryRun, fieldManager, fieldValidation */
    PARAM_FORCE = 1 << 1,  /* for server-side apply */
    PARAM_LIST = 1 << 2,   /* selectors, chunks */
    PARAM_DELETE = 1 << 3, /* dryRun, grace, propagation */
    PARAM_WATCH = 1 << 4,
};

static const struct param {
    unsigned when; /* added if any of these is set */
    const char *name, *type, *about;
} params[] = {
    {PARAM_WRITE | PARAM_DELETE, "dryRun", "string",
     "\"All\" goes through every step but stores nothing."},
    {PARAM_WRITE, "fieldManager", "string", "Name of whoever makes the change."},
    {PARAM_WRITE, "fieldValidation", "string",
     "What is done about unknown and doubled fields: Ignore, Warn or Strict."},
    {PARAM_FORCE, "force", "boolean", "Takes fields over from other managers, when applying."},
    {PARAM_LIST, "labelSelector", "string", "Limits the answer to objects with such labels."},
    {PARAM_LIST, "fieldSelector", "string", "Limits the answer to objects with such fields."},
    {PARAM_LIST, "limit", "integer", "How many objects to answer with at most."},
    {PARAM_LIST, "continue", "string", "Token of an earlier answer that goes on where it ended."},
    {PARAM_LIST, "resourceVersion", "string", "State of the store the answer must not be behind."},
    {PARAM_LIST, "resourceVersionMatch", "string", "How resourceVersion is meant."},
    {PARAM_LIST, "timeoutSeconds", "integer", "Seconds after which the server ends the call."},
    {PARAM_WATCH, "watch", "boolean", "Streams changes instead of answering with a list."},
    {PARAM_WATCH, "allowWatchBookmarks", "boolean", "Whether the stream may hold bookmarks."},
    {PARAM_LIST, "sendInitialEvents", "boolean", "Whether the stream begins with what is there."},
    {PARAM_DELETE, "gracePeriodSeconds", "integer", "Seconds to end in good order."},
    {PARAM_DELETE, "orphanDependents", "boolean", "Older form of propagationPolicy."},
    {PARAM_DELETE, "propagationPolicy", "string",
     "What becomes of dependents: Orphan, Background or Foreground."},
};

/* Operations; body and answer are objects of the kind unless the row says otherwise. */
static const struct operation {
    const char *method, *verb, *action;
    unsigned params;
    bool body, list, status; /* status: the answer is a Status */
} operations[] = {
    {"get", "list", "list", PARAM_LIST | PARAM_WATCH, false, true, false},
    {"post", "create", "post", PARAM_WRITE, true, false, false},
    {"delete", "deleteCollection", "deletecollection", PARAM_LIST | PARAM_DELETE, false, false,
     true},
    {"get", "read", "get", 0, false, false, false},
    {"put", "replace", "put", PARAM_WRITE, true, false, false},
    {"patch", "patch", "patch", PARAM_WRITE | PARAM_FORCE, true, false, false},
    {"delete", "delete", "delete", PARAM_DELETE, false, false, true},
};
enum {
    OPERATION_LIST,
    OPERATION_CREATE,
    OPERATION_DELETE_ALL,
    OPERATION_READ,
    OPERATION_REPLACE,
    OPERATION_PATCH,
    OPERATION_DELETE
};

/* The path that is being described. */
struct place {
    const struct openapi_kind *kind;
    struct hk_str name;      /* of the schema */
    struct hk_str gvk[3];    /* of the objects there: group, version, kind */
    const char *where;       /* "Namespaced", "" */
    const char *sub, *extra; /* ends of operationId: "Status", "ForAllNamespaces" */
};

/* ---- parameters ---- */

static struct json make_param(struct openapi_doc *d, const char *name, const char *in,
                              const char *type, const char *about)
{
    struct json p = json_make_object();
    struct json schema = json_make_object();

    json_set_cstr(&p, d->mem, "name", name);
    json_set_cstr(&p, d->mem, "in", in);
    json_set_cstr(&p, d->mem, "description", about);
    if (!strcmp(in, "path")) {
        json_set_bool(&p, d->mem, "required", true);
    }
    if (d->v2) {
        json_set_cstr(&p, d->mem, "type", type);
    } else {
        json_set_cstr(&schema, d->mem, "type", type);
        json_set(&p, d->mem, "schema", schema);
    }
    return p;
}

static struct json path_params(struct openapi_doc *d, const char *path)
{
    struct json list = json_make_array();

    if (strstr(path, "{name}")) {
        json_push(&list, d->mem, make_param(d, "name", "path", "string", "Name of the object."));
    }
    if (strstr(path, "{namespace}")) {
        json_push(&list, d->mem,
                  make_param(d, "namespace", "path", "string", "Namespace of the object."));
    }
    return list;
}

static struct json query_params(struct openapi_doc *d, unsigned when)
{
    struct json list = json_make_array();

    for (size_t i = 0; i < HK_LEN(params); i++) {
        if (params[i].when & when) {
            json_push(&list, d->mem,
                      make_param(d, params[i].name, "query", params[i].type, params[i].about));
        }
    }
    return list;
}

/* ---- bodies ---- */

static const char *const formats[] = {"application/json", "application/yaml"};
/* The strategic one only for kinds with known merge keys. */
static const char *const patch_formats[] = {
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
};

struct media {
    const char *const *at;
    size_t n;
};

static struct media body_media(const struct place *p, const struct operation *operation)
{
    const bool custom = p->kind->row && (p->kind->row->flags & REST_CUSTOM);

    if (strcmp(operation->method, "patch") != 0) {
        return (struct media){formats, HK_LEN(formats)};
    }
    return (struct media){patch_formats, HK_LEN(patch_formats) - (custom ? 1 : 0)};
}

static struct json media_list(struct openapi_doc *d, struct media m)
{
    struct json list = json_make_array();

    for (size_t i = 0; i < m.n; i++) {
        json_push(&list, d->mem, json_make_str(hk_str(m.at[i])));
    }
    return list;
}

/* {"application/json": {"schema": ...}, ...} */
static struct json media_schemas(struct openapi_doc *d, struct media m, struct json schema)
{
    struct json content = json_make_object();

    for (size_t i = 0; i < m.n; i++) {
        struct json type = json_make_object();
        json_set(&type, d->mem, "schema", schema);
        json_set(&content, d->mem, m.at[i], type);
    }
    return content;
}

static struct json object_schema(struct openapi_doc *d, const struct place *p, bool patch)
{
    struct json any = json_make_object();

    if (!patch) {
        return openapi_ref(d, p->name);
    }
    json_set_cstr(&any, d->mem, "type", "object");
    json_set_cstr(&any, d->mem, "description", "A patch.");
    return any;
}

static void put_body(struct openapi_doc *d, const struct place *p,
                     const struct operation *operation, struct json *op, struct json *list)
{
    const struct media m = body_media(p, operation);
    const struct json schema = object_schema(d, p, !strcmp(operation->method, "patch"));
    struct json body = json_make_object();

    if (d->v2) {
        json_set(op, d->mem, "consumes", media_list(d, m));
        json_set_cstr(&body, d->mem, "name", "body");
        json_set_cstr(&body, d->mem, "in", "body");
        json_set_bool(&body, d->mem, "required", true);
        json_set(&body, d->mem, "schema", schema);
        json_push(list, d->mem, body);
    } else {
        json_set(&body, d->mem, "content", media_schemas(d, m, schema));
        json_set_bool(&body, d->mem, "required", true);
        json_set(op, d->mem, "requestBody", body);
    }
}

static void put_responses(struct openapi_doc *d, const struct place *p,
                          const struct operation *operation, struct json *op)
{
    const char *suffix = operation->list ? "List" : "";
    const char *name = hk_arena_printf(d->mem, "%.*s%s", HK_FMT(p->name), suffix);
    const struct media m = {formats, HK_LEN(formats)};
    struct json ok = json_make_object(), all = json_make_object();

    json_set_cstr(&ok, d->mem, "description", "OK");
    if (!operation->status && d->v2) {
        json_set(&ok, d->mem, "schema", openapi_ref(d, hk_str(name)));
    } else if (!operation->status) {
        json_set(&ok, d->mem, "content", media_schemas(d, m, openapi_ref(d, hk_str(name))));
    }
    json_set(&all, d->mem, !strcmp(operation->method, "post") ? "201" : "200", ok);
    if (d->v2) {
        json_set(op, d->mem, "produces", media_list(d, m));
    }
    json_set(op, d->mem, "responses", all);
}

/* ---- operations ---- */

/* "rbac.authorization.k8s.io" to "RbacAuthorization", "" to "Core". */
static void write_camel(struct hk_str group, struct hk_buf *out)
{
    struct hk_str part;

    if (group.n == 0) {
        hk_buf_adds(out, "Core");
    }
    if (hk_str_ends(group, ".k8s.io")) {
        group.n -= strlen(".k8s.io");
    }
    while (hk_str_cut(&group, '.', &part)) {
        if (part.n > 0) {
            const char c = part.s[0];
            hk_buf_addc(out, c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c);
            hk_buf_add(out, part.s + 1, part.n - 1);
        }
    }
}

static const char *operation_id(struct openapi_doc *d, const struct place *p,
                                const struct operation *operation)
{
    const struct api_kind *k = p->kind->kind;
    HK_AUTO(hk_buf_fini) struct hk_buf id = {0};

    hk_buf_adds(&id, operation->verb);
    write_camel(hk_str(k->group), &id);
    write_camel(hk_str(k->version), &id);
    hk_buf_addf(&id, "%s%s%s%s", p->where, k->kind, p->sub, p->extra);
    return hk_arena_str(d->mem, hk_buf_str(&id)).s;
}

static void put_operation(struct openapi_doc *d, const struct place *p,
                          const struct operation *operation, struct json *item)
{
    struct json op = json_make_object();
    struct json list = query_params(d, operation->params);
    const char *kind = hk_arena_str(d->mem, p->gvk[2]).s;

    json_set_cstr(&op, d->mem, "operationId", operation_id(d, p, operation));
    if (operation->body) {
        put_body(d, p, operation, &op, &list);
    }
    if (list.len > 0) {
        json_set(&op, d->mem, "parameters", list);
    }
    put_responses(d, p, operation, &op);
    json_set_cstr(&op, d->mem, "x-kubernetes-action", operation->action);
    json_set(&op, d->mem, "x-kubernetes-group-version-kind",
             openapi_gvk(d, p->gvk[0], p->gvk[1], kind));
    json_set(item, d->mem, operation->method, op);
}

static void put_path(struct openapi_doc *d, const struct place *p, const char *path, unsigned which)
{
    struct json item = json_make_object();
    const struct json list = path_params(d, path);

    for (size_t i = 0; i < HK_LEN(operations); i++) {
        if (which & 1U << i) {
            put_operation(d, p, &operations[i], &item);
        }
    }
    if (list.len > 0) {
        json_set(&item, d->mem, "parameters", list);
    }
    json_set(&d->paths, d->mem, path, item);
}

/* ---- the paths of a kind ---- */

static void put_subresources(struct openapi_doc *d, const struct place *p, const char *object)
{
    const unsigned which = 1U << OPERATION_READ | 1U << OPERATION_REPLACE | 1U << OPERATION_PATCH;
    struct place at = *p;

    if (rest_kind_has(p->kind->row, "status")) {
        at.sub = "Status";
        put_path(d, &at, hk_arena_printf(d->mem, "%s/status", object), which);
    }
    if (rest_kind_has(p->kind->row, "scale")) {
        at.sub = "Scale";
        at.name = openapi_add_type(d, api_type_find(HK_STR("autoscaling/v1"), HK_STR("Scale")));
        at.gvk[0] = HK_STR("autoscaling");
        at.gvk[1] = HK_STR("v1");
        at.gvk[2] = HK_STR("Scale");
        put_path(d, &at, hk_arena_printf(d->mem, "%s/scale", object), which);
    }
}

void openapi_add_paths(struct openapi_doc *d, const struct openapi_kind *k)
{
    const struct api_kind *kind = k->kind;
    const char *root = hk_arena_printf(
        d->mem, "%s%s/%s", kind->group[0] == '\0' ? "/api" : "/apis/", kind->group, kind->version);
    const char *all = hk_arena_printf(
        d->mem, "%s%s/%s", root, kind->namespaced ? "/namespaces/{namespace}" : "", kind->plural);
    const char *object = hk_arena_printf(d->mem, "%s/{name}", all);
    struct place p = {
        .kind = k,
        .name = openapi_name(d, k),
        .gvk = {hk_str(kind->group), hk_str(kind->version), hk_str(kind->kind)},
        .where = kind->namespaced ? "Namespaced" : "",
        .sub = "",
        .extra = "",
    };

    if (!k->row) {
        put_path(d, &p, all, 1U << OPERATION_CREATE);
        return;
    }
    const bool collection = !(k->row->flags & REST_NO_COLLECTION);
    put_path(d, &p, all,
             1U << OPERATION_LIST | 1U << OPERATION_CREATE |
                 (collection ? 1U << OPERATION_DELETE_ALL : 0));
    put_path(d, &p, object,
             1U << OPERATION_READ | 1U << OPERATION_REPLACE | 1U << OPERATION_PATCH |
                 1U << OPERATION_DELETE);
    put_subresources(d, &p, object);
    if (kind->namespaced) {
        p.where = "";
        p.extra = "ForAllNamespaces";
        put_path(d, &p, hk_arena_printf(d->mem, "%s/%s", root, kind->plural), 1U << OPERATION_LIST);
    }
}
