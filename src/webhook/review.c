// SPDX-License-Identifier: Apache-2.0
// Reads AdmissionReviews and writes the responses. Checks in this order: the review itself, its
// resource, its operation (an unknown one may have no object at all), then its objects.
#include "webhook/review.h"

#include "codec/base64.h"

#define REVIEW_VERSION "admission.k8s.io/v1"
#define ANSWER_HEAD                                                                                \
    "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"" REVIEW_VERSION "\",\"response\":{\"uid\":"

enum { REFUSED_CODE = 400 }; /* also what an API server uses for a refusal without a code */

/* One review in progress. */
struct review_call {
    const struct webhook_review *r;
    struct json doc;
    const struct json *request; /* NULL until it is known to be an object */
    struct admission_request q;
    struct rights rights; /* of the requesting user, as q sees them */
    bool may;             /* the answer to ask */
    bool asked;
    struct rights_ask ask;
    struct hk_err err;
};

static const struct json *webhook_review_non_null_field(const struct json *obj, const char *key)
{
    const struct json *v = json_get(obj, key);

    return json_is(v, JSON_NULL) ? NULL : v;
}

/* ---- reading ---- */

static int read_review(struct review_call *x, struct hk_str body)
{
    const struct json *request;
    struct hk_err why = {0};

    if (json_parse(body, 0, x->r->mem, &x->doc, &why) < 0) {
        return hk_fail(&x->err, HK_EINVAL, "couldn't get version/kind; json parse error: %s",
                       why.text);
    }
    if (x->doc.type != JSON_OBJECT) {
        return hk_fail(&x->err, HK_EINVAL,
                       "couldn't get version/kind; json parse error: %s, want object",
                       json_type_name(x->doc.type));
    }
    request = webhook_review_non_null_field(&x->doc, "request");
    x->request = json_is(request, JSON_OBJECT) ? request : NULL; /* the response needs its uid */

    const struct hk_str version = json_str_field(&x->doc, "apiVersion");
    const struct hk_str kind = json_str_field(&x->doc, "kind");
    if (!hk_str_is(version, REVIEW_VERSION) || !hk_str_is(kind, "AdmissionReview")) {
        return hk_fail(&x->err, HK_EINVAL,
                       "no kind \"%.*s\" is registered for version \"%.*s\", want "
                       "\"AdmissionReview\" of \"" REVIEW_VERSION "\"",
                       HK_FMT(kind), HK_FMT(version));
    }
    if (!x->request) {
        return hk_fail(&x->err, HK_EINVAL, "request: %s, want object",
                       request ? json_type_name(request->type) : "missing");
    }
    return 0;
}

/* Formats a GroupVersionResource like Go. */
static int check_resource(struct review_call *x)
{
    const struct api_kind *k = api_kind(x->r->rule->kind);
    const struct json *resource = webhook_review_non_null_field(x->request, "resource");

    if (hk_str_is(json_str_field(resource, "group"), k->group) &&
        hk_str_is(json_str_field(resource, "version"), k->version) &&
        hk_str_is(json_str_field(resource, "resource"), k->plural)) {
        return 0;
    }
    return hk_fail(&x->err, HK_EINVAL, "expect resource to be %s/%s, Resource=%s", k->group,
                   k->version, k->plural);
}

/* The object's own apiVersion and kind must match the resource. */
static int check_object(struct review_call *x, const char *key, const struct json *obj)
{
    const struct api_kind *k = api_kind(x->r->rule->kind);
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};

    if (!json_is(obj, JSON_OBJECT)) {
        return hk_fail(&x->err, HK_EINVAL, "request.%s: %s, want object", key,
                       obj ? json_type_name(obj->type) : "missing");
    }
    api_kind_write_version(k, &version);
    if (!hk_str_eq(json_str_field(obj, "apiVersion"), hk_buf_str(&version)) ||
        !hk_str_is(json_str_field(obj, "kind"), k->kind)) {
        return hk_fail(&x->err, HK_EINVAL, "request.%s: %.*s of %.*s, want %s of %s", key,
                       HK_FMT(json_str_field(obj, "kind")),
                       HK_FMT(json_str_field(obj, "apiVersion")), k->kind, version.data);
    }
    return 0;
}

/* Decodes an object like a typed server, in place: the tree belongs to this review. */
static int webhook_review_read_object(struct review_call *x, const char *key, struct json **ret)
{
    struct json *obj = (struct json *)webhook_review_non_null_field(x->request, key);
    int rc = check_object(x, key, obj);

    if (rc == 0) {
        x->q.obj = obj;
        rc = admission_decode(&x->q, &x->err);
        *ret = obj;
    }
    return rc;
}

static bool find_verb(struct hk_str operation, enum admission_verb *ret)
{
    static const char *const names[] = {
        [ADMIT_CREATE] = "CREATE", [ADMIT_UPDATE] = "UPDATE", [ADMIT_DELETE] = "DELETE"};

    for (size_t i = 0; i < HK_LEN(names); i++) {
        if (hk_str_is(operation, names[i])) {
            *ret = (enum admission_verb)i;
            return true;
        }
    }
    return false;
}

/* A delete carries only the old object, from old servers not even that. */
static int read_objects(struct review_call *x)
{
    struct json *obj = NULL, *old = NULL;
    int rc = 0;

    if (x->q.verb != ADMIT_CREATE &&
        (x->q.verb == ADMIT_UPDATE || webhook_review_non_null_field(x->request, "oldObject"))) {
        rc = webhook_review_read_object(x, "oldObject", &old);
    }
    if (rc == 0 && x->q.verb != ADMIT_DELETE) {
        rc = webhook_review_read_object(x, "object", &obj);
    }
    x->q.obj = obj;
    x->q.old = old;
    return rc;
}

/* A name that is yet to be generated is empty in both the request and the object. */
static void read_names(struct review_call *x)
{
    const struct json *meta = json_get(x->q.obj ? x->q.obj : x->q.old, "metadata");
    const struct hk_str own = json_str_field(meta, "name");

    x->q.ns = json_str_field(x->request, "namespace");
    x->q.name = own.n > 0 ? own : json_str_field(x->request, "name");
}

/* ---- rights ---- */

static bool review_note_ask(void *ctx, const struct rights_ask *ask)
{
    struct review_call *x = ctx;

    x->asked = true;
    x->ask = *ask;
    return x->may;
}

static void read_user(struct review_call *x)
{
    const struct json *user = webhook_review_non_null_field(x->request, "userInfo");

    x->rights = (struct rights){.ctx = x,
                                .user = hk_arena_str(x->r->mem, json_str_field(user, "username")).s,
                                .allows = review_note_ask};
    x->q.rights = &x->rights;
}

/* ---- judging ---- */

static int refuse_operation(struct review_call *x, struct hk_str operation)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};

    if (!volcano_refuses_operation(x->r->rule, operation, &why)) {
        return 0;
    }
    x->q.denial = hk_arena_str(x->r->mem, hk_buf_str(&why)).s;
    return -HK_EINVAL;
}

static int webhook_review_evaluate(struct review_call *x, struct hk_str body,
                                   struct json *ret_patch)
{
    struct hk_str operation;
    int rc = read_review(x, body);

    if (rc < 0) {
        return rc;
    }
    rc = check_resource(x);
    if (rc < 0) {
        return rc;
    }
    operation = json_str_field(x->request, "operation");
    if (!find_verb(operation, &x->q.verb) || !(x->r->rule->verbs & 1U << x->q.verb)) {
        return refuse_operation(x, operation);
    }
    rc = read_objects(x);
    if (rc < 0) {
        return rc;
    }
    read_names(x);
    read_user(x);
    return volcano_review(x->r->rule, &x->q, x->r->options, ret_patch);
}

/* ---- answering ---- */

static void write_refusal(const struct review_call *x, struct hk_buf *out)
{
    hk_buf_addf(out, ",\"allowed\":false,\"status\":{\"metadata\":{},\"message\":");
    json_write_str(hk_str(x->q.denial ? x->q.denial : x->err.text), out);
    hk_buf_addf(out, ",\"code\":%d}", REFUSED_CODE);
}

static void write_patch(const struct json *patch, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf steps = {0};

    if (patch->len == 0) {
        return;
    }
    json_write(patch, &steps);
    hk_buf_adds(out, ",\"patch\":\"");
    base64_write(hk_buf_str(&steps), out);
    hk_buf_adds(out, "\",\"patchType\":\"JSONPatch\"");
}

static void write_warnings(const struct review_call *x, struct hk_buf *out)
{
    for (uint32_t i = 0; i < x->q.warnings.len; i++) {
        hk_buf_adds(out, i > 0 ? "," : ",\"warnings\":[");
        json_write_str(hk_str(x->q.warnings.at[i]), out);
    }
    hk_buf_adds(out, x->q.warnings.len > 0 ? "]" : "");
}

/* True when the request is allowed, or would be if the user has the right in x->ask. */
static bool evaluate_request(const struct webhook_review *r, struct review_call *x,
                             struct hk_str body, struct hk_buf *out)
{
    struct json patch = json_make_array();
    bool allowed;

    x->r = r;
    x->q = (struct admission_request){
        .kind = api_kind(r->rule->kind), .mem = r->mem, .lookup = r->lookup, .now_ns = r->now_ns};
    allowed = webhook_review_evaluate(x, body, &patch) == 0;
    hk_buf_adds(out, ANSWER_HEAD);
    json_write_str(json_str_field(x->request, "uid"), out);
    if (allowed) {
        hk_buf_adds(out, ",\"allowed\":true");
        write_patch(&patch, out);
    } else {
        write_refusal(x, out);
    }
    write_warnings(x, out);
    hk_buf_adds(out, "}}");
    admission_request_fini(&x->q);
    return allowed;
}

bool webhook_review(const struct webhook_review *r, struct hk_str body, struct hk_buf *out)
{
    struct review_call x = {0};

    return evaluate_request(r, &x, body, out);
}

/* ---- asking for rights ---- */

static struct json access_review_of(const struct review_call *x)
{
    static const char *const same[] = {"uid", "groups", "extra"};
    const struct json *user = webhook_review_non_null_field(x->request, "userInfo");
    struct hk_arena *a = x->r->mem;
    struct json doc = json_make_object(), spec = json_make_object(),
                attributes = json_make_object();

    json_set_str_or_del(&spec, a, "user", json_str_field(user, "username"));
    for (size_t i = 0; i < HK_LEN(same); i++) {
        const struct json *v = webhook_review_non_null_field(user, same[i]);
        if (v) {
            json_set(&spec, a, same[i], *v);
        }
    }
    json_set_str_or_del(&attributes, a, "verb", x->ask.verb);
    json_set_str_or_del(&attributes, a, "group", x->ask.group);
    json_set_str_or_del(&attributes, a, "resource", x->ask.resource);
    json_set_str_or_del(&attributes, a, "subresource", x->ask.sub);
    json_set_str_or_del(&attributes, a, "namespace", x->ask.ns);
    json_set_str_or_del(&attributes, a, "name", x->ask.name);
    json_set(&spec, a, "resourceAttributes", attributes);
    json_set_cstr(&doc, a, "apiVersion", "authorization.k8s.io/v1");
    json_set_cstr(&doc, a, "kind", "SubjectAccessReview");
    json_set(&doc, a, "spec", spec);
    return doc;
}

bool webhook_review_asks(const struct webhook_review *r, struct hk_str body, struct hk_buf *out,
                         struct webhook_question *ret)
{
    struct review_call yes = {.may = true}, no = {0};

    *ret = (struct webhook_question){0};
    (void)evaluate_request(r, &no, body, &ret->denied);
    if (!no.asked) {
        *out = ret->denied;
        ret->denied = (struct hk_buf){0};
        return false;
    }
    (void)evaluate_request(r, &yes, body, &ret->allowed);
    ret->access_review = access_review_of(&yes);
    return true;
}

void webhook_question_fini(struct webhook_question *q)
{
    hk_buf_fini(&q->allowed);
    hk_buf_fini(&q->denied);
}
