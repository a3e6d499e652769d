// SPDX-License-Identifier: Apache-2.0
// Reading AdmissionReviews and writing their answers. What is refused first: the review itself, its
// resource, its operation (an unknown one may carry no object at all), then its objects.
#include "webhook/review.h"

#include "codec/base64.h"

#define REVIEW_VERSION "admission.k8s.io/v1"
#define ANSWER_HEAD                                                                                \
    "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"" REVIEW_VERSION "\",\"response\":{\"uid\":"

enum { REFUSED_CODE = 400 }; /* what an API server makes of a refusal without a code, too */

/* One review under way. */
struct exam {
    const struct webhook_review *r;
    struct json doc;
    const struct json *request; /* an object once it is known to be one, else NULL */
    struct admission_request q;
    struct hk_err err;
};

static const struct json *field(const struct json *obj, const char *key)
{
    const struct json *v = json_get(obj, key);

    return json_is(v, JSON_NULL) ? NULL : v;
}

static struct hk_str text(const struct json *obj, const char *key)
{
    return json_str(json_get(obj, key), HK_STR(""));
}

/* ---- reading ---- */

static int read_review(struct exam *x, struct hk_str body)
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
    request = field(&x->doc, "request");
    x->request = json_is(request, JSON_OBJECT) ? request : NULL; /* its uid goes into the answer */

    const struct hk_str version = text(&x->doc, "apiVersion"), kind = text(&x->doc, "kind");
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

/* As Go prints a GroupVersionResource. */
static int check_resource(struct exam *x)
{
    const struct api_kind *k = api_kind(x->r->rule->kind);
    const struct json *resource = field(x->request, "resource");

    if (hk_str_is(text(resource, "group"), k->group) &&
        hk_str_is(text(resource, "version"), k->version) &&
        hk_str_is(text(resource, "resource"), k->plural)) {
        return 0;
    }
    return hk_fail(&x->err, HK_EINVAL, "expect resource to be %s/%s, Resource=%s", k->group,
                   k->version, k->plural);
}

/* Objects say what they are, and it must be what the resource holds. */
static int check_object(struct exam *x, const char *key, const struct json *obj)
{
    const struct api_kind *k = api_kind(x->r->rule->kind);
    HK_AUTO(hk_buf_fini) struct hk_buf version = {0};

    if (!json_is(obj, JSON_OBJECT)) {
        return hk_fail(&x->err, HK_EINVAL, "request.%s: %s, want object", key,
                       obj ? json_type_name(obj->type) : "missing");
    }
    api_kind_write_version(k, &version);
    if (!hk_str_eq(text(obj, "apiVersion"), hk_buf_str(&version)) ||
        !hk_str_is(text(obj, "kind"), k->kind)) {
        return hk_fail(&x->err, HK_EINVAL, "request.%s: %.*s of %.*s, want %s of %s", key,
                       HK_FMT(text(obj, "kind")), HK_FMT(text(obj, "apiVersion")), k->kind,
                       version.data);
    }
    return 0;
}

/* An object as a typed server reads it; the tree is ours, so it may be mended in place. */
static int read_object(struct exam *x, const char *key, struct json **ret)
{
    struct json *obj = (struct json *)field(x->request, key);
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

/* A deletion carries the old object alone, and from old servers not even that. */
static int read_objects(struct exam *x)
{
    struct json *obj = NULL, *old = NULL;
    int rc = 0;

    if (x->q.verb != ADMIT_CREATE &&
        (x->q.verb == ADMIT_UPDATE || field(x->request, "oldObject"))) {
        rc = read_object(x, "oldObject", &old);
    }
    if (rc == 0 && x->q.verb != ADMIT_DELETE) {
        rc = read_object(x, "object", &obj);
    }
    x->q.obj = obj;
    x->q.old = old;
    return rc;
}

/* A name yet to be generated is empty in the request as it is in the object. */
static void read_names(struct exam *x)
{
    const struct json *meta = json_get(x->q.obj ? x->q.obj : x->q.old, "metadata");
    const struct hk_str own = text(meta, "name");

    x->q.ns = text(x->request, "namespace");
    x->q.name = own.n > 0 ? own : text(x->request, "name");
}

/* ---- judging ---- */

static int refuse_operation(struct exam *x, struct hk_str operation)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};

    if (!volcano_refuses_operation(x->r->rule, operation, &why)) {
        return 0;
    }
    x->q.denial = hk_arena_str(x->r->mem, hk_buf_str(&why)).s;
    return -HK_EINVAL;
}

static int judge(struct exam *x, struct hk_str body, struct json *ret_patch)
{
    struct hk_str operation;
    int rc = read_review(x, body);

    rc = rc < 0 ? rc : check_resource(x);
    if (rc < 0) {
        return rc;
    }
    operation = text(x->request, "operation");
    if (!find_verb(operation, &x->q.verb) || !(x->r->rule->verbs & 1U << x->q.verb)) {
        return refuse_operation(x, operation);
    }
    rc = read_objects(x);
    if (rc < 0) {
        return rc;
    }
    read_names(x);
    return volcano_review(x->r->rule, &x->q, x->r->options, ret_patch);
}

/* ---- answering ---- */

static void write_refusal(const struct exam *x, struct hk_buf *out)
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

static void write_warnings(const struct exam *x, struct hk_buf *out)
{
    for (uint32_t i = 0; i < x->q.warnings.len; i++) {
        hk_buf_adds(out, i > 0 ? "," : ",\"warnings\":[");
        json_write_str(hk_str(x->q.warnings.at[i]), out);
    }
    hk_buf_adds(out, x->q.warnings.len > 0 ? "]" : "");
}

bool webhook_review(const struct webhook_review *r, struct hk_str body, struct hk_buf *out)
{
    struct exam x = {.r = r,
                     .q = {.kind = api_kind(r->rule->kind),
                           .mem = r->mem,
                           .lookup = r->lookup,
                           .now_ns = r->now_ns}};
    struct json patch = json_make_array();
    const bool allowed = judge(&x, body, &patch) == 0;

    hk_buf_adds(out, ANSWER_HEAD);
    json_write_str(text(x.request, "uid"), out);
    if (allowed) {
        hk_buf_adds(out, ",\"allowed\":true");
        write_patch(&patch, out);
    } else {
        write_refusal(&x, out);
    }
    write_warnings(&x, out);
    hk_buf_adds(out, "}}");
    admission_request_fini(&x.q);
    return allowed;
}
