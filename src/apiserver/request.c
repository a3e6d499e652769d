// SPDX-License-Identifier: Apache-2.0
// Translates HTTP to the port: the verb of a method, and the contents of query and body. Writes the
// messages of refusals; the port enforces the rules about objects.
#include "apiserver/server_priv.h"

/* ---- bodies ---- */

/* Go's name for the type of the value. */
static const char *seen_type(const struct json *v)
{
    switch (v->type) {
    case JSON_INT:
    case JSON_UINT:
    case JSON_DOUBLE:
        return "number";
    case JSON_BOOL:
        return "bool";
    default:
        return json_type_name(v->type);
    }
}

static int apiserver_request_check_names(struct exchange *x, const struct json *body)
{
    static const char *const members[] = {"apiVersion", "kind"};

    for (uint32_t k = 0; k < HK_LEN(members); k++) {
        const struct json *v = json_get(body, members[k]);
        if (v && !json_is(v, JSON_STRING) && !json_is(v, JSON_NULL)) {
            return exchange_refuse(
                x, 400, "BadRequest",
                "the object provided is unrecognized (must be of type %s): couldn't get "
                "version/kind; json parse error: json: cannot unmarshal %s into Go "
                "struct field .%s of type string",
                x->kind->kind->kind, seen_type(v), members[k]);
        }
    }
    return 0;
}

/* An object without kind and apiVersion gets those of the path. */
static int check_kind(struct exchange *x, struct json *body)
{
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};
    const struct api_kind *k = x->kind->kind;

    if (!json_is(body, JSON_OBJECT)) {
        return exchange_refuse(
            x, 400, "BadRequest",
            "the object provided is unrecognized (must be of type %s): it is a JSON %s", k->kind,
            json_type_name(body->type));
    }
    if (apiserver_request_check_names(x, body) < 0) {
        return -HK_EINVAL;
    }
    api_kind_write_version(k, &version);
    const struct hk_str got_version = json_str_field(body, "apiVersion");
    const struct hk_str got_kind = json_str_field(body, "kind");
    if (got_version.n > 0 && !hk_str_eq(got_version, hk_buf_str(&version))) {
        return exchange_refuse(
            x, 400, "BadRequest",
            "the API version in the data (%.*s) does not match the expected API version "
            "(%s)",
            HK_FMT(got_version), version.data);
    }
    if (got_kind.n > 0 && !hk_str_is(got_kind, k->kind)) {
        return exchange_refuse(
            x, 400, "BadRequest",
            "%.*s in version \"%s\" cannot be handled as a %s: the kind in the data does "
            "not match the path",
            HK_FMT(got_kind), k->version, k->kind);
    }
    if (got_version.n == 0) {
        json_set_str_copy(body, &x->mem, "apiVersion", hk_buf_str(&version));
    }
    if (got_kind.n == 0) {
        json_set_cstr(body, &x->mem, "kind", k->kind);
    }
    return 0;
}

/* The kind of body that a subresource accepts; NULL: the object itself. */
static const char *body_kind(struct hk_str sub)
{
    static const struct {
        const char *sub, *kind;
    } rows[] = {{"binding", "Binding"},
                {"eviction", "Eviction"},
                {"scale", "Scale"},
                {"token", "TokenRequest"}};

    for (uint32_t k = 0; k < HK_LEN(rows); k++) {
        if (hk_str_is(sub, rows[k].sub)) {
            return rows[k].kind;
        }
    }
    return NULL;
}

static int apiserver_request_read_body(struct exchange *x)
{
    const char *foreign = body_kind(x->route.sub);
    struct json *body = hk_arena_zalloc(&x->mem, sizeof(*body));
    int rc = body_decode(x, foreign ? foreign : x->kind->kind->kind, body);

    if (rc == 0 && !foreign) {
        rc = check_kind(x, body);
    }
    x->req.body = body;
    return rc;
}

/* ---- queries ---- */

/* An invalid option: of CreateOptions, ListOptions and so on. */
static int refuse_option(struct exchange *x, const char *options, struct port_cause cause)
{
    struct port_cause *kept = hk_arena_zalloc(&x->mem, sizeof(*kept));

    *kept = cause;
    exchange_refuse(x, 422, "Invalid", "%s.meta.k8s.io \"\" is invalid: %s: %s", options,
                    cause.field, cause.message);
    x->refusal.group = "meta.k8s.io";
    x->refusal.kind = options;
    x->refusal.causes = kept;
    x->refusal.ncauses = 1;
    return -HK_EINVAL;
}

static int forbid_option(struct exchange *x, const char *options, const char *field,
                         const char *why)
{
    const char *text = hk_arena_printf(&x->mem, "Forbidden: %s", why);

    return refuse_option(x, options, (struct port_cause){"FieldValueForbidden", field, text});
}

/* value is the value as JSON. */
static int refuse_option_value(struct exchange *x, const char *options, const char *field,
                               const char *value, const char *supported)
{
    const char *text =
        hk_arena_printf(&x->mem, "Unsupported value: %s: supported values: %s", value, supported);

    return refuse_option(x, options, (struct port_cause){"FieldValueNotSupported", field, text});
}

static const char *quote_option(struct exchange *x, struct hk_str value)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    json_write_str(value, &text);
    return hk_arena_strndup(&x->mem, text.data, text.len);
}

static int refuse_match(struct exchange *x, const char *why)
{
    return forbid_option(x, "ListOptions", "resourceVersionMatch", why);
}

static int take_rv(struct exchange *x, struct hk_str text, uint64_t *ret)
{
    int64_t rv = 0;

    if (text.n > 0 && (!hk_str_int(text, &rv) || rv < 0)) {
        return exchange_refuse(x, 400, "BadRequest", "invalid resource version \"%.*s\"",
                               HK_FMT(text));
    }
    *ret = (uint64_t)rv;
    return 0;
}

static int take_match(struct exchange *x, bool watch)
{
    const struct hk_str match = query_get(&x->query, "resourceVersionMatch");
    const struct hk_str rv = query_get(&x->query, "resourceVersion");
    const bool initial = query_has(&x->query, "sendInitialEvents");

    if (initial && !watch) {
        return forbid_option(x, "ListOptions", "sendInitialEvents",
                             "sendInitialEvents is forbidden for list");
    }
    if (watch) {
        if (match.n > 0 && !initial) {
            return refuse_match(x, "resourceVersionMatch is forbidden for watch unless "
                                   "sendInitialEvents is provided");
        }
        if (initial && !hk_str_is(match, "NotOlderThan")) {
            return refuse_match(x, "sendInitialEvents requires setting resourceVersionMatch to "
                                   "NotOlderThan");
        }
        return 0;
    }
    if (match.n == 0) {
        return 0;
    }
    if (rv.n == 0) {
        return refuse_match(x, "resourceVersionMatch is forbidden unless resourceVersion is "
                               "provided");
    }
    if (query_get(&x->query, "continue").n > 0) {
        return refuse_match(x, "resourceVersionMatch is forbidden when continue is provided");
    }
    const bool exact = hk_str_is(match, "Exact");
    if (exact && hk_str_is(rv, "0")) {
        return refuse_match(x, "resourceVersionMatch \"exact\" is forbidden for resourceVersion "
                               "\"0\"");
    }
    if (!exact && !hk_str_is(match, "NotOlderThan")) {
        return refuse_option_value(x, "ListOptions", "resourceVersionMatch", quote_option(x, match),
                                   "\"Exact\", \"NotOlderThan\", \"\"");
    }
    x->req.match = exact ? PORT_MATCH_EXACT : PORT_MATCH_NOT_OLDER;
    return 0;
}

static int take_selection(struct exchange *x, bool watch)
{
    struct port_request *q = &x->req;
    int64_t limit = 0;
    int rc = take_match(x, watch);

    if (rc < 0) {
        return rc;
    }
    rc = take_rv(x, query_get(&x->query, "resourceVersion"), &q->rv);
    if (rc < 0) {
        return rc;
    }
    q->label_selector = query_get(&x->query, "labelSelector");
    q->field_selector = query_get(&x->query, "fieldSelector");
    q->cont = query_get(&x->query, "continue");
    if (q->cont.n > 0 && q->rv > 0) {
        return exchange_refuse(x, 400, "BadRequest",
                               "specifying resource version is not allowed when using continue");
    }
    const struct hk_str text = query_get(&x->query, "limit");
    if (text.n > 0 && !hk_str_int(text, &limit)) {
        return exchange_refuse(x, 400, "BadRequest", "invalid limit \"%.*s\"", HK_FMT(text));
    }
    q->limit = (uint32_t)HK_MIN(HK_MAX(limit, 0), (int64_t)UINT32_MAX);
    const struct hk_str timeout = query_get(&x->query, "timeoutSeconds");
    if (timeout.n > 0 && !hk_str_int(timeout, &limit)) {
        return exchange_refuse(x, 400, "BadRequest", "invalid timeoutSeconds \"%.*s\"",
                               HK_FMT(timeout));
    }
    return 0;
}

static int take_watch(struct exchange *x)
{
    struct port_request *q = &x->req;
    const int rc = take_selection(x, true);

    q->verb = PORT_WATCH;
    q->bookmarks = query_bool(&x->query, "allowWatchBookmarks");
    if (query_has(&x->query, "sendInitialEvents")) {
        q->initial =
            query_bool(&x->query, "sendInitialEvents") ? PORT_INITIAL_SEND : PORT_INITIAL_SKIP;
    }
    if (rc == 0 && x->route.name.n > 0) { /* one object, requested by its own path */
        q->name = HK_STR("");
        q->field_selector =
            hk_str(hk_arena_printf(&x->mem, "metadata.name=%.*s%s%.*s", HK_FMT(x->route.name),
                                   q->field_selector.n > 0 ? "," : "", HK_FMT(q->field_selector)));
    }
    return rc;
}

static const char *options_name(const struct exchange *x)
{
    switch (x->req.verb) {
    case PORT_CREATE:
        return "CreateOptions";
    case PORT_UPDATE:
        return "UpdateOptions";
    case PORT_PATCH:
        return "PatchOptions";
    default:
        return "DeleteOptions";
    }
}

static int take_dry_run_value(struct exchange *x, struct hk_str value)
{
    if (!hk_str_is(value, "All")) {
        const char *list = hk_arena_printf(&x->mem, "[%s]", quote_option(x, value));
        return refuse_option_value(x, options_name(x), "dryRun", list, "\"All\"");
    }
    x->req.dry_run = true;
    return 0;
}

static int take_dry_run(struct exchange *x)
{
    for (uint32_t k = 0; k < x->query.len; k++) {
        const struct query_param *p = &x->query.at[k];
        if (hk_str_is(p->key, "dryRun") && take_dry_run_value(x, p->value) < 0) {
            return -HK_EINVAL;
        }
    }
    return 0;
}

/* The name of a client that gives no fieldManager, as kube-apiserver finds it: its User-Agent up to
 * the slash, cut at the first byte that is not printable. */
static struct hk_str program_of(struct hk_str agent)
{
    size_t n = 0;

    while (n < agent.n && n < PORT_FIELD_MANAGER_MAX && agent.s[n] != '/' && agent.s[n] >= ' ' &&
           agent.s[n] <= '~') {
        n++;
    }
    return (struct hk_str){agent.s, n};
}

static int take_write(struct exchange *x)
{
    const struct hk_str validation = query_get(&x->query, "fieldValidation");

    x->req.field_manager = query_get(&x->query, "fieldManager");
    if (x->req.field_manager.n == 0 &&
        !body_type_is(body_type(x), port_patch_media(PORT_PATCH_APPLY))) {
        x->req.field_manager = program_of(http_request_header(x->http, "User-Agent"));
    }
    x->req.validate = PORT_VALIDATE_WARN;
    if (hk_str_is(validation, "Strict")) {
        x->req.validate = PORT_VALIDATE_STRICT;
    } else if (hk_str_is(validation, "Ignore")) {
        x->req.validate = PORT_VALIDATE_IGNORE;
    } else if (validation.n > 0 && !hk_str_is(validation, "Warn")) {
        return refuse_option_value(x, options_name(x), "fieldValidation",
                                   quote_option(x, validation),
                                   "\"\", \"Ignore\", \"Strict\", \"Warn\"");
    }
    return take_dry_run(x);
}

/* ---- deletions ---- */

static int take_propagation(struct exchange *x, struct hk_str policy)
{
    static const struct {
        const char *name;
        enum port_propagation value;
    } rows[] = {{"Background", PORT_PROPAGATE_BACKGROUND},
                {"Foreground", PORT_PROPAGATE_FOREGROUND},
                {"Orphan", PORT_PROPAGATE_ORPHAN}};

    for (uint32_t k = 0; k < HK_LEN(rows); k++) {
        if (hk_str_is(policy, rows[k].name)) {
            x->req.propagation = rows[k].value;
            return 0;
        }
    }
    return policy.n == 0
               ? 0
               : refuse_option_value(x, "DeleteOptions", "propagationPolicy",
                                     quote_option(x, policy),
                                     "\"Foreground\", \"Background\", \"Orphan\", \"nil\"");
}

static int take_orphan(struct exchange *x, struct hk_str policy, bool orphan)
{
    if (x->req.propagation != PORT_PROPAGATE_DEFAULT) {
        const char *text = hk_arena_printf(
            &x->mem,
            "Invalid value: %s: orphanDependents and deletionPropagation cannot be both set",
            quote_option(x, policy));
        return refuse_option(x, "DeleteOptions",
                             (struct port_cause){"FieldValueInvalid", "propagationPolicy", text});
    }
    x->req.propagation = orphan ? PORT_PROPAGATE_ORPHAN : PORT_PROPAGATE_BACKGROUND;
    return 0;
}

static int check_options(struct exchange *x, const struct json *body)
{
    static const struct {
        const char *member;
        enum json_type type;
        const char *wanted;
    } rows[] = {{"gracePeriodSeconds", JSON_INT, "int64"},
                {"orphanDependents", JSON_BOOL, "bool"},
                {"propagationPolicy", JSON_STRING, "v1.DeletionPropagation"},
                {"preconditions", JSON_OBJECT, "v1.Preconditions"},
                {"dryRun", JSON_ARRAY, "[]string"}};

    if (!json_is(body, JSON_OBJECT)) {
        return exchange_refuse(
            x, 400, "BadRequest",
            "the object provided is unrecognized (must be of type DeleteOptions): it is "
            "a JSON %s",
            json_type_name(body->type));
    }
    const struct hk_str kind = json_str_field(body, "kind");
    if (kind.n > 0 && !hk_str_is(kind, "DeleteOptions")) {
        return exchange_refuse(
            x, 400, "BadRequest",
            "%.*s in version \"%.*s\" cannot be handled as a DeleteOptions: the kind in the data "
            "does not match the path",
            HK_FMT(kind), HK_FMT(json_str_field(body, "apiVersion")));
    }
    for (uint32_t k = 0; k < HK_LEN(rows); k++) {
        const struct json *v = json_get(body, rows[k].member);
        if (v && !json_is(v, rows[k].type) && !json_is(v, JSON_NULL)) {
            return exchange_refuse(
                x, 400, "BadRequest",
                "DeleteOptions in version \"v1\" cannot be handled as a DeleteOptions: "
                "json: cannot unmarshal %s into Go struct field DeleteOptions.%s of type "
                "%s",
                seen_type(v), rows[k].member, rows[k].wanted);
        }
    }
    return 0;
}

static int take_options_body(struct exchange *x)
{
    struct port_request *q = &x->req;
    struct json body;
    int rc = body_decode(x, "DeleteOptions", &body);

    if (rc < 0) {
        return rc;
    }
    rc = check_options(x, &body);
    if (rc < 0) {
        return rc;
    }
    const struct json *grace = json_get(&body, "gracePeriodSeconds");
    if (json_is(grace, JSON_INT)) {
        q->has_grace = true;
        q->grace_s = grace->i;
    }
    const struct hk_str policy = json_str_field(&body, "propagationPolicy");
    rc = take_propagation(x, policy);
    const struct json *orphan = json_get(&body, "orphanDependents");
    if (rc == 0 && json_is(orphan, JSON_BOOL)) {
        rc = take_orphan(x, policy, orphan->b);
    }
    const struct json *dry = json_get(&body, "dryRun");
    for (uint32_t k = 0; rc == 0 && k < json_len(dry); k++) {
        rc = take_dry_run_value(x, json_str(json_item(dry, k), HK_STR("")));
    }
    q->if_uid = json_str_at(&body, "preconditions.uid");
    const struct hk_str rv = json_str_at(&body, "preconditions.resourceVersion");
    if (rc < 0) {
        return rc;
    }
    return take_rv(x, rv, &q->if_rv);
}

static int take_options_query(struct exchange *x)
{
    struct port_request *q = &x->req;
    const struct hk_str grace = query_get(&x->query, "gracePeriodSeconds");

    if (grace.n > 0 && !hk_str_int(grace, &q->grace_s)) {
        return exchange_refuse(x, 400, "BadRequest", "invalid gracePeriodSeconds \"%.*s\"",
                               HK_FMT(grace));
    }
    q->has_grace = grace.n > 0;
    const struct hk_str policy = query_get(&x->query, "propagationPolicy");
    const int rc = take_propagation(x, policy);
    if (rc == 0 && query_has(&x->query, "orphanDependents")) {
        return take_orphan(x, policy, query_bool(&x->query, "orphanDependents"));
    }
    return rc;
}

static int take_delete(struct exchange *x)
{
    const int rc = x->http->body.n > 0 ? take_options_body(x) : take_options_query(x);

    if (rc < 0) {
        return rc;
    }
    return take_dry_run(x);
}

/* ---- patches ---- */

static int take_patch_body(struct exchange *x, enum port_patch type)
{
    struct json *body = hk_arena_zalloc(&x->mem, sizeof(*body));

    x->req.patch = type;
    x->req.force = query_bool(&x->query, "force");
    x->req.body = body;
    if (type != PORT_PATCH_APPLY && query_has(&x->query, "force")) {
        return forbid_option(x, "PatchOptions", "force",
                             "may not be specified for non-apply patch");
    }
    if (body_check_memory(x) < 0) {
        return -HK_EFULL;
    }
    if (type == PORT_PATCH_APPLY) {
        return body_decode_yaml(x, x->kind->kind->kind, body);
    }
    struct hk_err err = {0};
    if (body_parse_json(x, body, &err) < 0) {
        return exchange_refuse(x, 400, "BadRequest", "error decoding patch: %s", err.text);
    }
    return 0;
}

static int take_patch(struct exchange *x)
{
    const bool custom = x->kind->flags & REST_CUSTOM;
    const struct hk_str type = body_type(x);
    const int rc = take_write(x);

    for (enum port_patch k = PORT_PATCH_JSON; rc == 0 && k <= PORT_PATCH_APPLY; k++) {
        if (body_type_is(type, port_patch_media(k)) && !(custom && k == PORT_PATCH_STRATEGIC)) {
            return take_patch_body(x, k);
        }
    }
    if (rc < 0) {
        return rc;
    }
    return body_refuse_type(x, custom
                                   ? "application/json-patch+json, application/merge-patch+json, "
                                     "application/apply-patch+yaml"
                                   : "application/json-patch+json, application/merge-patch+json, "
                                     "application/strategic-merge-patch+json, "
                                     "application/apply-patch+yaml");
}

/* ---- verbs ---- */

static int refuse_method(struct exchange *x)
{
    return exchange_refuse(x, 405, "MethodNotAllowed",
                           "the server does not allow this method on the requested resource");
}

static int build_get(struct exchange *x)
{
    const bool watch = x->route.watch || query_bool(&x->query, "watch");

    if (watch && hk_str_is(x->http->method, "HEAD")) {
        return refuse_method(x);
    }
    if (watch && x->route.sub.n == 0) {
        return take_watch(x);
    }
    if (x->route.name.n > 0) {
        x->req.verb = PORT_GET;
        return take_rv(x, query_get(&x->query, "resourceVersion"), &x->req.rv);
    }
    x->req.verb = PORT_LIST;
    return take_selection(x, false);
}

static int build_create(struct exchange *x)
{
    x->req.verb = PORT_CREATE;
    const int rc = take_write(x);
    if (rc < 0) {
        return rc;
    }
    return apiserver_request_read_body(x);
}

static int build_update(struct exchange *x)
{
    x->req.verb = PORT_UPDATE;
    const int rc = take_write(x);
    if (rc < 0) {
        return rc;
    }
    return apiserver_request_read_body(x);
}

static int build_patch(struct exchange *x)
{
    x->req.verb = PORT_PATCH;
    return take_patch(x);
}

static int build_delete(struct exchange *x)
{
    x->req.verb = PORT_DELETE;
    return take_delete(x);
}

static int build_delete_collection(struct exchange *x)
{
    x->req.verb = PORT_DELETE_COLLECTION;
    const int rc = take_selection(x, false);
    if (rc < 0) {
        return rc;
    }
    return take_delete(x);
}

/* The meaning of each method, on a collection, an object, and a subresource. */
static const struct {
    const char *method;
    int (*collection)(struct exchange *x);
    int (*object)(struct exchange *x);
    int (*sub)(struct exchange *x);
} methods[] = {
    {"GET", build_get, build_get, build_get},
    {"HEAD", build_get, build_get, build_get},
    {"POST", build_create, NULL, build_create},
    {"PUT", NULL, build_update, build_update},
    {"PATCH", NULL, build_patch, build_patch},
    {"DELETE", build_delete_collection, build_delete, NULL},
};

int request_build(struct exchange *x)
{
    const struct route *r = &x->route;
    const bool homeless = x->kind->kind->namespaced && r->ns.n == 0;

    x->req.kind = x->kind->kind;
    x->req.ns = r->ns;
    x->req.name = r->name;
    x->req.subresource = r->sub.n > 0 ? r->sub.s : NULL;
    x->req.text_only = true;
    for (uint32_t k = 0; k < HK_LEN(methods); k++) {
        if (!hk_str_is(x->http->method, methods[k].method)) {
            continue;
        }
        int (*build)(struct exchange *) = r->sub.n > 0    ? methods[k].sub
                                          : r->name.n > 0 ? methods[k].object
                                                          : methods[k].collection;
        if (!build || (homeless && build == build_create)) {
            return refuse_method(x);
        }
        return build(x);
    }
    return refuse_method(x);
}

/* ---- streams to pods ---- */

/* All values of the parameter, as a list of texts or of numbers. */
static struct json connect_list(struct exchange *x, const char *key, bool numbers)
{
    struct json list = json_make_array();
    int64_t number;

    for (uint32_t k = 0; k < x->query.len; k++) {
        const struct query_param *p = &x->query.at[k];
        if (!hk_str_is(p->key, key)) {
            continue;
        }
        if (!numbers) {
            json_push(&list, &x->mem, json_make_str(p->value));
        } else if (hk_str_int(p->value, &number)) {
            json_push(&list, &x->mem, json_make_int(number));
        }
    }
    return list;
}

static const char *const connect_switches[] = {"stdin", "stdout", "stderr", "tty"};

/* As the options are written in JSON: false and empty ones are absent. */
static struct json *connect_options(struct exchange *x, const char *kind)
{
    static const char *const texts[] = {"container", "path"};
    struct json *v = hk_arena_alloc(&x->mem, sizeof(*v));
    struct hk_arena *a = &x->mem;

    *v = json_make_object();
    json_set_cstr(v, a, "kind", kind);
    json_set_cstr(v, a, "apiVersion", "v1");
    for (size_t i = 0; i < HK_LEN(connect_switches); i++) {
        if (query_bool(&x->query, connect_switches[i])) {
            json_set_bool(v, a, connect_switches[i], true);
        }
    }
    for (size_t i = 0; i < HK_LEN(texts); i++) {
        json_set_str_or_del(v, a, texts[i], query_get(&x->query, texts[i]));
    }
    json_set_or_del(v, a, "command", connect_list(x, "command", false));
    json_set_or_del(v, a, "ports", connect_list(x, "ports", true));
    return v;
}

void request_build_connect(struct exchange *x, const char *kind)
{
    struct json *options = connect_options(x, kind);

    if (hk_str_is(x->route.sub, "proxy") && x->route.rest.n > 0) {
        json_set_cstr(options, &x->mem, "path",
                      hk_arena_printf(&x->mem, "/%.*s", HK_FMT(x->route.rest)));
    }
    x->req = (struct port_request){
        .verb = PORT_CREATE,
        .kind = x->kind->kind,
        .ns = x->route.ns,
        .name = x->route.name,
        .subresource = x->route.sub.s,
        .body = options,
    };
}

static void connect_add_param(struct hk_buf *out, const char *key, struct hk_str value)
{
    hk_buf_addf(out, "%s%s=", out->len > 0 ? "&" : "", key);
    for (size_t i = 0; i < value.n; i++) {
        const unsigned char c = (unsigned char)value.s[i];
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        hk_buf_addf(out, plain ? "%c" : "%%%02X", c);
    }
}

struct hk_str request_connect_query(struct exchange *x, const struct json *options)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    const struct json *command = json_get(options, "command");

    for (size_t i = 0; i < HK_LEN(connect_switches); i++) {
        if (json_bool(json_get(options, connect_switches[i]), false)) {
            connect_add_param(&out, connect_switches[i], HK_STR("true"));
        }
    }
    if (json_str_field(options, "container").n > 0) {
        connect_add_param(&out, "container", json_str_field(options, "container"));
    }
    for (uint32_t i = 0; i < json_len(command); i++) {
        connect_add_param(&out, "command", json_str(&command->items[i], HK_STR("")));
    }
    return hk_arena_str(&x->mem, hk_buf_str(&out));
}
