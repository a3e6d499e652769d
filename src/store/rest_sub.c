// SPDX-License-Identifier: Apache-2.0
// Subresources that change a part of an object: the binding of a pod to its node, and the scale of
// any kind with replicas.
#include "api/patch.h"
#include "store/rest_priv.h"

/* The kind and group that the body names, if any. Versions are converted without a change. */
static int check_body_kind(struct rest_call *c, const struct api_kind *kind,
                           const struct json *body)
{
    const struct hk_str name = json_str(json_get(body, "kind"), HK_STR(""));
    const struct hk_str version = json_str(json_get(body, "apiVersion"), HK_STR(""));
    struct hk_str rest = version, group;

    hk_str_cut(&rest, '/', &group);
    group = rest.s ? group : HK_STR("");
    if ((name.n == 0 || hk_str_is(name, kind->kind)) &&
        (version.n == 0 || hk_str_is(group, kind->group))) {
        return 0;
    }
    return rest_fail_bad(c,
                         "%.*s in version \"%.*s\" cannot be handled as a %s: the kind in the data "
                         "does not match the path",
                         HK_FMT(name), HK_FMT(version), kind->kind);
}

int rest_check_body_name(struct rest_call *c, const struct api_kind *kind, const struct json *body)
{
    if (hk_str_eq(rest_meta_str(body, "name"), c->name)) {
        return 0;
    }
    return rest_fail_bad(c, "name in URL does not match name in %s object", kind->kind);
}

int rest_decode_body(struct rest_call *c, const struct api_kind *kind, struct json *body)
{
    if (check_body_kind(c, kind, body) < 0) {
        return c->rc;
    }
    struct admission_request q = {.kind = kind, .obj = body, .mem = &c->mem};
    struct hk_err err = {0};
    const int rc = admission_decode(&q, &err);

    admission_request_fini(&q);
    return rc < 0 ? rest_fail_bad(c, "%s", err.text) : 0;
}

int rest_ask_sub(struct rest_call *c, const struct api_kind *kind, struct json *obj,
                 const struct json *old, uint64_t rv)
{
    struct webhook_subject s = {
        .verb = old ? ADMIT_UPDATE : ADMIT_CREATE,
        .row = c->k,
        .kind = kind,
        .sub = c->req->subresource,
        .ns = c->ns,
        .name = c->name,
        .obj = obj,
        .old = old,
        .dry_run = c->req->dry_run,
        .field_manager = c->req->field_manager,
        .rv = rv,
    };

    return rest_webhook_mutate(c, &s) < 0 ? c->rc : rest_webhook_validate(c, &s);
}

/* ---- binding ---- */

static const struct api_kind binding_kind = {
    .id = API_NKINDS,
    .group = "",
    .version = "v1",
    .kind = "Binding",
    .plural = "bindings",
    .singular = "binding",
    .namespaced = true,
};

static int check_binding(struct rest_call *c, const struct json *body, const struct store_obj *pod,
                         const struct json *old)
{
    const struct hk_str kind = json_str(json_at(body, "target.kind"), HK_STR(""));
    const struct hk_str bound = json_str(json_at(old, "spec.nodeName"), HK_STR(""));
    const struct json *gates = json_at(old, "spec.schedulingGates");

    if (kind.n > 0 && !hk_str_is(kind, "Node")) {
        rest_field_error(c, "FieldValueNotSupported", "target.kind",
                         "Unsupported value: \"%.*s\": supported values: \"Node\"", HK_FMT(kind));
    }
    if (json_str(json_at(body, "target.name"), HK_STR("")).n == 0) {
        rest_field_error(c, "FieldValueRequired", "target.name", "Required value");
    }
    if (c->adm.errors.len > 0) {
        return rest_fail_invalid(c);
    }
    if (rest_deleting(old)) {
        return rest_fail_conflict(c, "pod %.*s is being deleted, cannot be assigned to a host",
                                  HK_FMT(pod->name));
    }
    if (bound.n > 0) {
        return rest_fail_conflict(c, "pod %.*s is already assigned to node \"%.*s\"",
                                  HK_FMT(pod->name), HK_FMT(bound));
    }
    if (json_is(gates, JSON_ARRAY) && gates->len > 0) {
        return rest_fail_conflict(c, "pod %.*s has non-empty .spec.schedulingGates",
                                  HK_FMT(pod->name));
    }
    return 0;
}

/* A uid or resourceVersion in the binding must match the pod. */
static int check_meant(struct rest_call *c, const struct json *body, const struct store_obj *pod,
                       const struct json *old)
{
    const struct hk_str uid = rest_meta_str(body, "uid");
    const struct hk_str rv = rest_meta_str(body, "resourceVersion");

    if (uid.n > 0 && !hk_str_eq(uid, pod->uid)) {
        return rest_fail_conflict(
            c, "Precondition failed: UID in precondition: %.*s, UID in object meta: %.*s",
            HK_FMT(uid), HK_FMT(pod->uid));
    }
    if (rv.n > 0 && !hk_str_eq(rv, rest_meta_str(old, "resourceVersion"))) {
        return rest_fail_modified(c);
    }
    return 0;
}

static void merge_meta(struct rest_call *c, const struct json *body, struct json *doc,
                       const char *key)
{
    const struct json *from = json_get(json_get(body, "metadata"), key);

    if (json_is(from, JSON_OBJECT)) {
        const struct json copy = json_clone(from, &c->mem);
        api_patch_merge(rest_edit(rest_edit(doc, &c->mem, "metadata"), &c->mem, key), &copy,
                        &c->mem);
    }
}

int rest_bind(struct rest_call *c)
{
    struct json body = json_clone(c->req->body, &c->mem);
    struct json old;
    bool staged;
    const struct store_obj *head = rest_head_shared(c, c->k, c->ns, c->name, &old, &staged);

    if (!head) {
        return rest_fail_missing(c, c->k, c->name);
    }
    if (rest_decode_body(c, &binding_kind, &body) < 0 ||
        rest_check_body_name(c, &binding_kind, &body) < 0 ||
        check_meant(c, &body, head, &old) < 0 ||
        rest_ask_sub(c, &binding_kind, &body, NULL, 0) < 0 ||
        check_binding(c, &body, head, &old) < 0) {
        return c->rc;
    }
    struct json doc = json_clone(&old, &c->mem);
    json_set_str(rest_edit(&doc, &c->mem, "spec"), &c->mem, "nodeName",
                 json_str(json_at(&body, "target.name"), HK_STR("")));
    merge_meta(c, &body, &doc, "annotations");
    merge_meta(c, &body, &doc, "labels");
    rest_condition(c, &doc, "PodScheduled", "True", NULL, NULL);
    json_del(rest_edit(&doc, &c->mem, "status"), "nominatedNodeName");
    if (rest_commit(c, &doc, head, &old, staged) < 0) {
        return c->rc;
    }
    rest_succeed(c, 201);
    return 0;
}

/* ---- scale ---- */

static const struct api_kind scale_kind = {
    .id = API_NKINDS,
    .group = "autoscaling",
    .version = "v1",
    .kind = "Scale",
    .plural = "scales",
    .singular = "scale",
    .namespaced = true,
};

/* The CRD's path without its leading dot, or the default path. */
static const char *scale_path(struct rest_call *c, const char *key, const char *usual)
{
    const struct hk_str path = json_str(json_get(c->k->scale, key), hk_str(usual));
    const size_t dot = path.n > 0 && path.s[0] == '.';

    return hk_arena_strndup(&c->mem, path.s + dot, path.n - dot);
}

/* The selector as kubectl's text: made from a LabelSelector or a plain map, or already text. */
static struct hk_str selector_text(struct rest_call *c, const struct json *doc)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct json *v = json_at(doc, scale_path(c, "labelSelectorPath", "spec.selector"));
    struct api_selector s = {0};

    if (json_is(v, JSON_STRING)) {
        return json_str(v, HK_STR(""));
    }
    if (json_is(v, JSON_OBJECT) && !json_get(v, "matchLabels") &&
        !json_get(v, "matchExpressions")) {
        for (uint32_t i = 0; i < v->len; i++) {
            hk_buf_addf(&text, "%s%.*s=%.*s", i > 0 ? "," : "", HK_FMT(v->members[i].key),
                        HK_FMT(json_str(&v->members[i].value, HK_STR(""))));
        }
    } else if (api_selector_decode(v, &c->mem, &s, NULL) == 0) {
        api_selector_write(&s, &text);
    }
    return hk_arena_str(&c->mem, hk_buf_str(&text));
}

static struct json scale_of(struct rest_call *c, const struct json *doc)
{
    static const char *const shared[] = {"name", "namespace", "uid", "resourceVersion",
                                         "creationTimestamp"};
    struct hk_arena *a = &c->mem;
    struct json scale = json_make_object();

    json_set_cstr(&scale, a, "kind", "Scale");
    json_set_cstr(&scale, a, "apiVersion", "autoscaling/v1");
    struct json *meta = rest_edit(&scale, a, "metadata");
    for (size_t i = 0; i < HK_LEN(shared); i++) {
        const struct json *v = json_get(json_get(doc, "metadata"), shared[i]);
        if (v) {
            json_set(meta, a, shared[i], *v);
        }
    }
    json_set_int(rest_edit(&scale, a, "spec"), a, "replicas",
                 json_int(json_at(doc, scale_path(c, "specReplicasPath", "spec.replicas")), 0));
    struct json *status = rest_edit(&scale, a, "status");
    json_set_int(status, a, "replicas",
                 json_int(json_at(doc, scale_path(c, "statusReplicasPath", "status.replicas")), 0));
    json_set_str(status, a, "selector", selector_text(c, doc));
    return scale;
}

static void rest_scale_answer(struct rest_call *c)
{
    const struct json scale = scale_of(c, &c->obj->root);

    rest_answer_tree(c, &scale_kind, &scale);
}

int rest_scale_get(struct rest_call *c)
{
    const struct store_obj *o = store_get(c->r->store, c->k->res, c->ns, c->name);

    if (!o) {
        return rest_fail_missing(c, c->k, c->name);
    }
    if (rest_convert_state(c, o) < 0) {
        return c->rc;
    }
    c->obj = rest_object(c->r, c->k, o, true);
    rest_scale_answer(c);
    return c->rc;
}

/* The wanted Scale: the body, or the current Scale with the patch applied. */
static int wanted_scale(struct rest_call *c, const struct json *old, struct json *ret)
{
    static const struct rest_kind plain = {.kind = &scale_kind};

    if (c->req->verb == PORT_UPDATE) {
        *ret = json_clone(c->req->body, &c->mem);
        return 0;
    }
    const struct json now = scale_of(c, old);
    *ret = json_clone(&now, &c->mem);
    return rest_patch_apply(c, &plain, ret);
}

/* Sets the integer at a dotted path. */
static void put_path(struct rest_call *c, struct json *doc, struct hk_str path, int64_t value)
{
    struct hk_str part;

    while (hk_str_cut(&path, '.', &part) && path.s) {
        doc = rest_edit(doc, &c->mem, hk_arena_strndup(&c->mem, part.s, part.n));
    }
    json_put(doc, &c->mem, hk_arena_str(&c->mem, part), json_make_int(value));
}

int rest_scale_write(struct rest_call *c)
{
    struct json old;
    struct json scale;
    bool staged;
    const struct store_obj *head = rest_head(c, c->k, c->ns, c->name, &old, &staged);

    if (!head) {
        return rest_fail_missing(c, c->k, c->name);
    }
    if (wanted_scale(c, &old, &scale) < 0 || rest_decode_body(c, &scale_kind, &scale) < 0) {
        return c->rc;
    }
    struct json shown = scale_of(c, &old);
    if (rest_ask_sub(c, &scale_kind, &scale, &shown, head->rv) < 0) {
        return c->rc;
    }
    const int64_t n = json_int(json_at(&scale, "spec.replicas"), 0);
    if (n < 0) {
        return rest_fail_invalid_body(
            c, &(struct rest_body_fault){
                   .group = scale_kind.group,
                   .kind = scale_kind.kind,
                   .name = c->name,
                   .reason = "FieldValueInvalid",
                   .field = "spec.replicas",
                   .message = hk_arena_printf(
                       &c->mem, "Invalid value: %lld: must be greater than or equal to 0",
                       (long long)n)});
    }
    struct json doc = json_clone(&old, &c->mem);
    rest_view_show(c->k, &doc, &c->mem);
    put_path(c, &doc, hk_str(scale_path(c, "specReplicasPath", "spec.replicas")), n);
    const struct hk_str rv = rest_meta_str(&scale, "resourceVersion");
    if (rv.n > 0) {
        json_set_str(rest_edit(&doc, &c->mem, "metadata"), &c->mem, "resourceVersion", rv);
    }
    c->finish = rest_scale_answer;
    return rest_update_doc(c, NULL, &doc, head, &old, staged);
}
