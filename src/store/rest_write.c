// SPDX-License-Identifier: Apache-2.0
// Creates, updates and patches: the order of checks from a body to a write.
//
//   decode -> identity -> system metadata -> status apart -> defaults and mutation
//     -> mutating webhooks -> empty structs -> generation -> validation -> validating webhooks
//     -> store
//
// Where webhooks are asked, the write stops and starts again later (rest_webhook.c).
//
// A patch is an update whose body is computed from the newest state. No other write comes between
// reading that state and staging the write, so patches never conflict with one another.
#include "api/patch.h"
#include "api/type.h"
#include "base/log.h"
#include "store/rest_priv.h"

enum { GENERATE_TRIES = 8 };

/* ---- unknown and duplicate fields ---- */

static void list_fault(struct hk_buf *out, const char *what, const char *field)
{
    hk_buf_addf(out, "%s%s field \"%s\"", out->len > 0 ? ", " : "", what, field);
}

static int fail_strict(struct rest_call *c)
{
    HK_AUTO(hk_buf_fini) struct hk_buf list = {0};
    const struct api_kind *k = c->k->kind;

    for (uint32_t i = 0; i < c->adm.unknown.len; i++) {
        list_fault(&list, "unknown", c->adm.unknown.at[i]);
    }
    for (uint32_t i = 0; i < c->req->nduplicates; i++) {
        list_fault(&list, "duplicate", c->req->duplicates[i]);
    }
    if (c->req->verb == PORT_PATCH) {
        rest_field_error(c, "FieldValueInvalid", "patch",
                         "Invalid value: \"object\": strict decoding error: %s", list.data);
        return rest_fail_invalid(c);
    }
    return rest_fail_bad(
        c, "%s in version \"%s\" cannot be handled as a %s: strict decoding error: %s", k->kind,
        k->version, k->kind, list.data);
}

/* Handles unknown fields of the last step and, if the whole body was checked, duplicates. */
static int check_unknown_fields(struct rest_call *c, bool whole)
{
    const uint32_t twice = whole ? c->req->nduplicates : 0;

    if (c->adm.unknown.len + twice > 0 && c->req->validate == PORT_VALIDATE_STRICT) {
        return fail_strict(c);
    }
    for (uint32_t i = 0; i < c->adm.unknown.len && c->req->validate == PORT_VALIDATE_WARN; i++) {
        rest_warn(c, "unknown field \"%s\"", c->adm.unknown.at[i]);
    }
    for (uint32_t i = 0; i < twice && c->req->validate == PORT_VALIDATE_WARN; i++) {
        rest_warn(c, "duplicate field \"%s\"", c->req->duplicates[i]);
    }
    hk_vec_clear(&c->adm.unknown);
    return 0;
}

/* ---- admission ---- */

static void admission_begin(struct rest_call *c, const char *sub, struct json *doc,
                            const struct json *old)
{
    struct admission_request *q = &c->adm;

    q->verb = old ? ADMIT_UPDATE : ADMIT_CREATE;
    q->kind = rest_kind_by_res(c->r, c->k->res)->kind;
    q->subresource = sub;
    q->obj = doc;
    q->old = old;
    q->ns = c->ns;
    q->name = c->name;
    q->dry_run = c->req->dry_run;
    q->mem = &c->mem;
    q->lookup = &c->r->lookup;
    q->rights = c->req->rights;
    q->volcano = c->r->volcano;
    q->tolerations = c->r->tolerations;
    q->now_ns = rest_now(c->r);
    c->r->lookup_call = c;
}

/* A patched object of the wrong form is a fault of the patch. */
static int fail_decode(struct rest_call *c, const struct json *doc, int rc)
{
    static const char handled[] = "cannot be handled as a ";
    const char *at = strstr(c->err.text, handled);
    const char *why = at ? strstr(at, ": ") : NULL;

    if (!why || c->req->verb != PORT_PATCH || c->req->patch == PORT_PATCH_APPLY) {
        return rest_fail_admission(c, rc);
    }
    return rest_fail_patched(c, doc, hk_arena_strndup(&c->mem, why + 2, strlen(why + 2)));
}

static int rest_write_decode_object(struct rest_call *c, const char *sub, struct json *doc,
                                    const struct json *old)
{
    if (!c->r->admission) {
        return 0;
    }
    admission_begin(c, sub, doc, old);
    c->adm.kind = c->k->kind; /* not yet converted to the storage version */
    const int rc = admission_decode(&c->adm, &c->err);
    return rc < 0 ? fail_decode(c, doc, rc) : check_unknown_fields(c, false);
}

static int mutate(struct rest_call *c, const char *sub, struct json *doc, const struct json *old)
{
    if (!c->r->admission) {
        return 0;
    }
    admission_begin(c, sub, doc, old);
    const int rc = admission_mutate(&c->adm, &c->err);
    if (rc < 0) {
        return rest_fail_admission(c, rc);
    }
    if (!api_type_fill(api_type_of(c->adm.kind), &c->mem, doc)) {
        return rest_fail(c, 413, HK_ELIMIT, "RequestEntityTooLarge",
                         "the object lacks more than %d fields that are always written",
                         API_FILL_MAX);
    }
    return 0;
}

static void log_audit(const struct rest_call *c)
{
    if (c->adm.audit) {
        hk_log(HK_LOG_WARN, "audit", "kind=%s namespace=%.*s name=%.*s note=\"%s\"",
               c->adm.kind->kind, HK_FMT(c->ns), HK_FMT(c->name), c->adm.audit);
    }
}

static int validate(struct rest_call *c, const char *sub, struct json *doc, const struct json *old)
{
    int rc = 0;

    if (c->r->admission) {
        admission_begin(c, sub, doc, old);
        rc = admission_validate(&c->adm, &c->err);
        log_audit(c);
    }
    if (rc < 0) {
        return rest_fail_admission(c, rc);
    }
    return c->adm.errors.len > 0 ? rest_fail_invalid(c) : 0;
}

/* ---- webhooks ---- */

static void isolate(struct rest_call *c, const char *sub, struct json *doc, const struct json *old);

static void keep_member(struct rest_call *c, struct json *to, const struct json *from,
                        const char *key)
{
    const struct json *v = json_get(from, key);

    if (v) {
        json_set(to, &c->mem, key, json_clone(v, &c->mem));
    } else {
        json_del(to, key);
    }
}

/* Restores the metadata that webhooks may not change. */
static void restore_meta(struct rest_call *c, struct json *doc, const struct json *before)
{
    static const char *const kept[] = {
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
        "managedFields",
    };
    struct json *meta = rest_edit(doc, &c->mem, "metadata");

    for (size_t i = 0; i < HK_LEN(kept); i++) {
        keep_member(c, meta, json_get(before, "metadata"), kept[i]);
    }
}

/* Treats a patched object as one that a client has sent. */
static int settle_patched(struct rest_call *c, const struct webhook_subject *s,
                          const struct json *before)
{
    restore_meta(c, s->obj, before);
    isolate(c, s->sub, s->obj, before);
    rest_schema_apply(c, s->obj);
    hk_vec_clear(&c->adm.unknown);
    if (!c->r->admission) {
        return 0;
    }
    admission_begin(c, s->sub, s->obj, s->old);
    int rc = admission_decode(&c->adm, &c->err);
    hk_vec_clear(&c->adm.unknown);
    if (rc < 0) {
        const struct hk_err why = c->err;
        return rest_fail(c, 500, HK_EIO, "InternalError", "Internal error occurred: %s", why.text);
    }
    rc = admission_default(&c->adm, &c->err);
    return rc < 0 ? rest_fail_admission(c, rc) : 0;
}

static int mutate_again(struct rest_call *c, const struct webhook_subject *s)
{
    return mutate(c, s->sub, s->obj, s->old);
}

static struct webhook_subject subject_of(struct rest_call *c, const char *sub, struct json *doc,
                                         const struct json *old, const struct store_obj *head)
{
    return (struct webhook_subject){
        .verb = old ? ADMIT_UPDATE : ADMIT_CREATE,
        .row = c->k,
        .sub = sub,
        .ns = c->k == c->r->namespaces ? c->name : c->ns,
        .name = c->name,
        .obj = doc,
        .old = old,
        .dry_run = c->req->dry_run,
        .field_manager = c->req->field_manager,
        .rv = head ? head->rv : 0,
        .settle = settle_patched,
        .again = mutate_again,
    };
}

/* ---- create ---- */

static bool is_crd(const struct rest_call *c)
{
    return c->k == c->r->crds;
}

static bool name_is_generated(const struct rest_call *c)
{
    return rest_meta_str(c->req->body, "name").n == 0 && c->req->name.n == 0;
}

static int prepare_new(struct rest_call *c, struct json *doc)
{
    if (rest_write_decode_object(c, NULL, doc, NULL) < 0 || rest_check_identity(c, doc) < 0) {
        return c->rc;
    }
    rest_view_take(c->k, doc, &c->mem);
    if (rest_meta_create(c, doc) < 0) {
        return c->rc;
    }
    if (c->k->kind->status && !(c->k->flags & REST_KEEP_STATUS)) {
        json_del(doc, "status");
    }
    rest_csr_create(c, doc);
    rest_schema_apply(c, doc);
    if (check_unknown_fields(c, true) < 0 || mutate(c, NULL, doc, NULL) < 0) {
        return c->rc;
    }
    struct webhook_subject s = subject_of(c, NULL, doc, NULL, NULL);
    s.unnamed = name_is_generated(c);
    if (rest_webhook_mutate(c, &s) < 0) {
        return c->rc;
    }
    if (is_crd(c)) {
        rest_crd_prepare(c, doc, NULL);
    }
    if (rest_service_allocate(c, NULL, doc, NULL) < 0) {
        return c->rc;
    }
    rest_policy_set_status(c, doc);
    rest_schema_validate(c, doc, NULL);
    if (validate(c, NULL, doc, NULL) < 0) {
        return c->rc;
    }
    s.unnamed = false;
    return rest_webhook_validate(c, &s);
}

/* Draws another generated name if the first is taken, a few times. */
static int find_name(struct rest_call *c, struct json *doc)
{
    const bool generated = name_is_generated(c);
    bool staged;

    for (int tries = 1; store_head(c->r->store, c->k->res, c->ns, c->name, &staged); tries++) {
        if (!generated) {
            return rest_fail_exists(c, c->name);
        }
        if (tries == GENERATE_TRIES) {
            c->status.retry_after_s = 1;
            return rest_fail(c, 409, HK_EEXIST, "AlreadyExists",
                             "%s \"%.*s\" already exists, the server was not able to generate a "
                             "unique name for the object",
                             rest_resource(c, c->k->kind), HK_FMT(c->name));
        }
        rest_generate_name(c, doc);
    }
    return 0;
}

/* An update or apply that creates the object also needs the create right. */
static int check_create_right(struct rest_call *c)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};
    const struct api_kind *k = c->k->kind;
    const struct rights_ask ask = {.verb = HK_STR("create"),
                                   .group = hk_str(k->group),
                                   .resource = hk_str(k->plural),
                                   .ns = c->ns,
                                   .name = c->name};

    if (c->req->verb == PORT_CREATE || rights_allow(c->req->rights, &ask)) {
        return 0;
    }
    rights_write_refusal(c->req->rights->user, &ask, &why);
    return rest_fail(c, 403, HK_EDENIED, "Forbidden", "%s \"%.*s\" is forbidden: %s",
                     rest_resource(c, k), HK_FMT(c->name), why.data);
}

/* Limits a namespace without a ResourceQuota, so that it cannot fill the server. */
static int check_number(struct rest_call *c)
{
    const uint32_t max = c->r->max_per_namespace;
    const uint32_t n = c->k->kind->namespaced ? store_count_in(c->r->store, c->k->res, c->ns) : 0;
    const char *what = rest_resource(c, c->k->kind);

    if (max == 0 || n < max) {
        return 0;
    }
    return rest_fail(c, 403, HK_EDENIED, "Forbidden",
                     "%s \"%.*s\" is forbidden: namespace \"%.*s\" holds %u %s, and at most %u are "
                     "allowed (--max-objects-per-namespace); delete some of them first",
                     what, HK_FMT(c->name), HK_FMT(c->ns), n, what, max);
}

int rest_create_doc(struct rest_call *c, struct json *doc)
{
    if (check_create_right(c) < 0 || rest_check_memory(c) < 0) {
        return c->rc;
    }
    if (c->k->ending) {
        return rest_fail(c, 405, HK_EUNSUP, "MethodNotAllowed",
                         "create not allowed while custom resource definition is terminating");
    }
    if (prepare_new(c, doc) < 0 || find_name(c, doc) < 0 || check_number(c) < 0) {
        return c->rc;
    }
    c->created = true;
    if (c->req->dry_run) {
        return rest_answer_tree(c, c->k->kind, doc);
    }
    return rest_store(c, STORE_CREATE, c->k, c->ns, c->name, doc, 0);
}

int rest_create(struct rest_call *c)
{
    struct json doc = json_clone(c->req->body, &c->mem);

    return rest_create_doc(c, &doc);
}

/* ---- update ---- */

/* A status write changes only .status (and, for old kinds, labels and annotations). */
static void isolate_status(struct rest_call *c, struct json *doc, const struct json *old)
{
    static const char *const hung[] = {"labels", "annotations", "finalizers"};
    struct json result = json_clone(old, &c->mem);
    struct json *meta = rest_edit(&result, &c->mem, "metadata");
    /* deploymentStatusStrategy of kube-apiserver alone keeps the stored labels. */
    const size_t from = c->k->kind->id == API_DEPLOYMENT ? 1 : 0;

    for (size_t i = from; i < HK_LEN(hung) && !(c->k->flags & (REST_CUSTOM | REST_STATUS_ONLY));
         i++) {
        keep_member(c, meta, json_get(doc, "metadata"), hung[i]);
    }
    keep_member(c, &result, doc, "status");
    /* The client's identity fields are checked later. */
    keep_member(c, meta, json_get(doc, "metadata"), "resourceVersion");
    keep_member(c, meta, json_get(doc, "metadata"), "uid");
    *doc = result;
}

/* Finalizers in a namespace's spec change only through the finalize subresource. */
static void isolate_finalize(struct rest_call *c, struct json *doc, const struct json *old)
{
    const struct json *wanted = json_at(doc, "spec.finalizers");
    const struct json list = wanted ? json_clone(wanted, &c->mem) : json_make_array();
    struct json result = json_clone(old, &c->mem);

    json_set(rest_edit(&result, &c->mem, "spec"), &c->mem, "finalizers", list);
    keep_member(c, rest_edit(&result, &c->mem, "metadata"), json_get(doc, "metadata"),
                "resourceVersion");
    *doc = result;
}

static void isolate(struct rest_call *c, const char *sub, struct json *doc, const struct json *old)
{
    if (sub && (!strcmp(sub, "status") || !strcmp(sub, "approval"))) {
        isolate_status(c, doc, old);
    } else if (sub && !strcmp(sub, "finalize")) {
        isolate_finalize(c, doc, old);
    } else if (sub && !strcmp(sub, "ephemeralcontainers")) {
        rest_pod_ephemeral(c, doc, old);
    } else if (sub && !strcmp(sub, "resize")) {
        rest_pod_resize(c, doc, old);
    } else if (c->k->kind->status) {
        keep_member(c, doc, old, "status");
    }
    rest_csr_isolate(c, sub, doc, old);
    if (c->k == c->r->namespaces && (!sub || strcmp(sub, "finalize") != 0)) {
        keep_member(c, rest_edit(doc, &c->mem, "spec"), json_get(old, "spec"), "finalizers");
    }
}

/* True: the deleted object has neither finalizers nor a grace period left. */
static bool may_go(const struct rest_call *c, const struct json *doc)
{
    const struct json *held = c->k == c->r->namespaces ? json_at(doc, "spec.finalizers") : NULL;

    return rest_deleting(doc) && rest_finalizers(doc) == 0 && (!held || held->len == 0) &&
           json_int(json_at(doc, "metadata.deletionGracePeriodSeconds"), 0) == 0;
}

/* Whether a write that changes nothing moves the object to the present storage version. */
static bool is_stale(const struct rest_call *c, const struct store_obj *head)
{
    return c->k->many_versions && rest_stored_otherwise(rest_kind_by_res(c->r, c->k->res), head);
}

int rest_commit(struct rest_call *c, struct json *doc, const struct store_obj *head,
                const struct json *old, bool staged)
{
    if (c->req && c->req->dry_run) {
        return rest_answer_tree(c, c->k->kind, doc);
    }
    if (may_go(c, doc)) {
        return rest_store(c, STORE_DELETE, c->k, head->ns, head->name, doc, head->rv);
    }
    /* The answer must not show a state that is not durable yet: such a state is written again. */
    if (!staged && json_equal(doc, old) && !is_stale(c, head)) {
        if (c->items.len > 0) {
            return 0; /* one of a collection: the list is the answer */
        }
        api_object_unref(c->obj);
        c->obj = rest_object(c->r, c->k, head, true);
        c->rv = head->rv;
        if (c->finish) {
            c->finish(c);
        }
        return 0;
    }
    return rest_store(c, STORE_UPDATE, c->k, head->ns, head->name, doc, head->rv);
}

int rest_update_doc(struct rest_call *c, const char *sub, struct json *doc,
                    const struct store_obj *head, const struct json *old, bool staged)
{
    if (rest_write_decode_object(c, sub, doc, old) < 0 || rest_check_identity(c, doc) < 0) {
        return c->rc;
    }
    rest_view_take(c->k, doc, &c->mem);
    isolate(c, sub, doc, old);
    if (rest_meta_update(c, doc, old) < 0) {
        return c->rc;
    }
    rest_schema_apply(c, doc);
    if (check_unknown_fields(c, true) < 0 || mutate(c, sub, doc, old) < 0) {
        return c->rc;
    }
    const bool scale = c->req->subresource && strcmp(c->req->subresource, "scale") == 0;
    struct webhook_subject s = subject_of(c, sub, doc, old, head);
    if (!scale && rest_webhook_mutate(c, &s) < 0) { /* webhooks have seen the Scale */
        return c->rc;
    }
    if (is_crd(c) && !sub && !rest_deleting(doc)) {
        rest_crd_prepare(c, doc, old);
    }
    if (rest_service_allocate(c, sub, doc, old) < 0) {
        return c->rc;
    }
    rest_meta_generation(c, doc, old);
    if (!sub) {
        rest_policy_set_status(c, doc);
    }
    if (!c->managed) {
        rest_apply_note(c, sub, doc, old);
    }
    rest_schema_validate(c, doc, old);
    if (sub && !strcmp(sub, "resize")) {
        rest_pod_check_resize(c, doc, old);
    }
    if (validate(c, sub, doc, old) < 0 || (!scale && rest_webhook_validate(c, &s) < 0)) {
        return c->rc;
    }
    return rest_commit(c, doc, head, old, staged);
}

int rest_update(struct rest_call *c)
{
    const char *sub = c->req->subresource;
    struct json old;
    bool staged;

    if (rest_convert_head(c, c->ns, c->name) < 0) {
        return c->rc;
    }
    if (sub && !strcmp(sub, "scale")) {
        return rest_scale_write(c);
    }
    const struct store_obj *head = rest_head_shared(c, c->k, c->ns, c->name, &old, &staged);
    struct json doc = json_clone(c->req->body, &c->mem);
    if (!head && !sub && (c->k->flags & REST_CREATE_ON_UPDATE)) {
        json_del(rest_edit(&doc, &c->mem, "metadata"), "resourceVersion");
        return rest_create_doc(c, &doc);
    }
    if (!head) {
        return rest_fail_missing(c, c->k, c->name);
    }
    if (rest_meta_str(&doc, "name").n == 0) {
        return rest_fail_bad(c,
                             "the name of the object (%.*s based on URL) was undeterminable: name "
                             "must be provided",
                             HK_FMT(c->name));
    }
    return rest_update_doc(c, sub, &doc, head, &old, staged);
}

/* ---- patch ---- */

static int fail_media(struct rest_call *c)
{
    return rest_fail(c, 415, HK_EUNSUP, "UnsupportedMediaType",
                     "the body of the request was in an unknown format - accepted media types "
                     "include: application/json-patch+json, application/merge-patch+json, "
                     "application/apply-patch+yaml");
}

static bool is_list_of_objects(const struct json *v)
{
    bool all = json_is(v, JSON_ARRAY);

    for (uint32_t i = 0; all && i < v->len; i++) {
        all = v->items[i].type == JSON_OBJECT;
    }
    return all;
}

/* A patch of another form is a bad request, an operation that cannot work an invalid one. */
static int fail_json_patch(struct rest_call *c, int rc)
{
    const struct hk_err why = c->err;

    if (rc == -HK_ELIMIT) {
        return rest_fail(c, 413, HK_ELIMIT, "RequestEntityTooLarge", "%s", why.text);
    }
    return is_list_of_objects(c->req->body) ? rest_fail_patch(c, why.text)
                                            : rest_fail_bad(c, "%s", why.text);
}

static int patch_json(struct rest_call *c, struct json *doc)
{
    const struct json *patch = c->req->body;
    int rc = api_patch_json_check(patch, &c->err);

    if (rc < 0) {
        return fail_json_patch(c, rc);
    }
    rc = api_patch_json(doc, patch, &c->mem, &c->err);
    return rc < 0 ? fail_json_patch(c, -HK_EINVAL) : 0;
}

static int patch_strategic(struct rest_call *c, const struct rest_kind *k, struct json *doc)
{
    if (k->flags & REST_CUSTOM) {
        return fail_media(c);
    }
    /* A copy: the call outlives the request. */
    const struct json patch = json_clone(c->req->body, &c->mem);
    const int rc = api_patch_strategic(doc, &patch, k->kind, &c->mem, &c->err);
    if (rc < 0) {
        const struct hk_err why = c->err;
        return rest_fail_bad(c, "%s", why.text);
    }
    return 0;
}

/* Go's name for the type of a JSON value. */
static const char *json_word(const struct json *v)
{
    return json_is(v, JSON_BOOL)     ? "bool"
           : json_is(v, JSON_OBJECT) ? "object"
           : json_is(v, JSON_ARRAY)  ? "array"
                                     : "number";
}

/* apiVersion and kind of a patched object are texts, and kubectl's decoders need both. */
static int check_patched_kind(struct rest_call *c, const struct rest_kind *k,
                              const struct json *doc)
{
    static const char *const keys[] = {"kind", "apiVersion"};

    if (!json_is(doc, JSON_OBJECT)) {
        return rest_fail_patched(
            c, doc,
            hk_arena_printf(&c->mem,
                            "couldn't get version/kind; json parse error: "
                            "json: cannot unmarshal %s into Go value of type "
                            "struct { APIVersion string \"json:"
                            "\\\"apiVersion,omitempty\\\"\"; Kind string "
                            "\"json:\\\"kind,omitempty\\\"\" }",
                            json_is(doc, JSON_STRING) ? "string" : json_word(doc)));
    }
    for (size_t i = 0; i < HK_LEN(keys); i++) {
        const struct json *v = json_get(doc, keys[i]);
        if (v && !json_is(v, JSON_NULL) && !json_is(v, JSON_STRING)) {
            return rest_fail_patched(
                c, doc,
                hk_arena_printf(&c->mem,
                                "couldn't get version/kind; json parse error: json: cannot "
                                "unmarshal %s into Go struct field .%s of type string",
                                json_word(v), keys[i]));
        }
    }
    if ((k->flags & REST_CUSTOM) && json_str_field(doc, "kind").n == 0) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        json_write(doc, &text);
        return rest_fail_patched(
            c, doc,
            hk_arena_printf(&c->mem, "Object 'Kind' is missing in '%.*s'",
                            HK_FMT(hk_str_head(hk_buf_str(&text), REST_SHOWN_MAX))));
    }
    if ((k->flags & REST_CUSTOM) && json_str_field(doc, "apiVersion").n == 0) {
        rest_field_error(c, "FieldValueInvalid", "apiVersion", "Invalid value: \"\": must be %s/%s",
                         k->kind->group, k->kind->version);
        return rest_fail_invalid(c);
    }
    return 0;
}

static int patch_any(struct rest_call *c, const struct rest_kind *k, struct json *doc)
{
    if (c->req->force && c->req->patch != PORT_PATCH_APPLY) {
        rest_field_error(c, "FieldValueForbidden", "force",
                         "Forbidden: may not be specified for non-apply patch");
        return rest_fail_invalid(c);
    }
    if (c->req->patch == PORT_PATCH_JSON) {
        return patch_json(c, doc);
    }
    if (!json_is(c->req->body, JSON_OBJECT)) {
        return rest_fail_bad(c, "a patch of type %s must be an object",
                             port_patch_media(c->req->patch));
    }
    if (c->req->patch == PORT_PATCH_STRATEGIC) {
        return patch_strategic(c, k, doc);
    }
    const struct json patch = json_clone(c->req->body, &c->mem);
    api_patch_merge(doc, &patch, &c->mem);
    return 0;
}

int rest_patch_apply(struct rest_call *c, const struct rest_kind *k, struct json *doc)
{
    return patch_any(c, k, doc) < 0 ? c->rc : check_patched_kind(c, k, doc);
}

int rest_patch(struct rest_call *c)
{
    const char *sub = c->req->subresource;
    struct json old;
    bool staged;

    if (rest_convert_head(c, c->ns, c->name) < 0) {
        return c->rc;
    }
    if (sub && !strcmp(sub, "scale")) {
        return rest_scale_write(c);
    }
    if (c->req->patch == PORT_PATCH_APPLY) {
        return rest_apply(c);
    }
    const struct store_obj *head = rest_head_shared(c, c->k, c->ns, c->name, &old, &staged);
    if (!head) {
        return rest_fail_missing(c, c->k, c->name);
    }
    struct json doc = json_clone(&old, &c->mem);
    rest_view_show(c->k, &doc, &c->mem);
    if (rest_patch_apply(c, c->k, &doc) < 0) {
        return c->rc;
    }
    return rest_update_doc(c, sub, &doc, head, &old, staged);
}
