// SPDX-License-Identifier: Apache-2.0
// Error answers: code, reason, message and details of a Kubernetes Status. Clients act on the
// reason and people read the message, so both are spelled here once, as in Kubernetes.
#include "store/rest_priv.h"

const char *rest_resource(struct rest_call *c, const struct api_kind *kind)
{
    if (kind->group[0] == '\0') {
        return kind->plural;
    }
    return hk_arena_printf(&c->mem, "%s.%s", kind->plural, kind->group);
}

static const char *rest_status_copy_str(struct rest_call *c, struct hk_str s)
{
    return s.n > 0 ? hk_arena_strndup(&c->mem, s.s, s.n) : NULL;
}

HK_PRINTF(2, 0) static const char *format(struct rest_call *c, const char *fmt, va_list ap)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    hk_buf_vaddf(&b, fmt, ap);
    return hk_arena_str(&c->mem, hk_buf_str(&b)).s;
}

/* Sets the name and resource that the error is about. */
static void details(struct rest_call *c, const struct api_kind *kind, struct hk_str name)
{
    c->status.name = rest_status_copy_str(c, name);
    c->status.group = kind->group[0] != '\0' ? kind->group : NULL;
    c->status.kind = kind->plural;
}

static int rest_status_fail(struct rest_call *c, int http, enum hk_code code, const char *reason,
                            const char *message)
{
    c->has_status = true;
    c->status.success = false;
    c->status.code = http;
    c->status.reason = reason;
    c->status.message = message;
    c->rc = hk_fail(&c->err, code, "%s", message);
    return c->rc;
}

int rest_fail(struct rest_call *c, int http, enum hk_code code, const char *reason, const char *fmt,
              ...)
{
    va_list ap;

    va_start(ap, fmt);
    const char *message = format(c, fmt, ap);
    va_end(ap);
    details(c, c->k->kind, c->name);
    return rest_status_fail(c, http, code, reason, message);
}

int rest_fail_bad(struct rest_call *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    const char *message = format(c, fmt, ap);
    va_end(ap);
    return rest_status_fail(c, 400, HK_EINVAL, "BadRequest", message);
}

int rest_fail_invalid_body(struct rest_call *c, const struct rest_body_fault *f)
{
    rest_cause(c, f->reason, f->field, f->message);
    c->status.name = rest_status_copy_str(c, f->name);
    c->status.group = f->group;
    c->status.kind = f->kind;
    return rest_status_fail(c, 422, HK_EINVAL, "Invalid",
                            hk_arena_printf(&c->mem, "%s.%s \"%.*s\" is invalid: %s: %s", f->kind,
                                            f->group, HK_FMT(f->name), f->field, f->message));
}

int rest_fail_patch(struct rest_call *c, const char *why)
{
    const char *message = hk_arena_printf(
        &c->mem, "the server rejected our request due to an error in our request: %s", why);

    return rest_status_fail(c, 422, HK_EINVAL, "Invalid", message);
}

int rest_fail_patched(struct rest_call *c, const struct json *doc, const char *why)
{
    HK_AUTO(hk_buf_fini) struct hk_buf shown = {0}, value = {0};

    json_write(doc, &shown);
    json_write_str(hk_str_head(hk_buf_str(&shown), REST_SHOWN_MAX), &value);
    const char *cause = hk_arena_printf(&c->mem, "Invalid value: %s: %s", value.data, why);
    rest_cause(c, "FieldValueInvalid", "patch", cause);
    return rest_status_fail(c, 422, HK_EINVAL, "Invalid",
                            hk_arena_printf(&c->mem, " \"\" is invalid: patch: %s", cause));
}

int rest_fail_unknown(struct rest_call *c)
{
    return rest_status_fail(c, 404, HK_ENOTFOUND, "NotFound",
                            "the server could not find the requested resource");
}

int rest_fail_missing(struct rest_call *c, const struct rest_kind *k, struct hk_str name)
{
    details(c, k->kind, name);
    return rest_status_fail(
        c, 404, HK_ENOTFOUND, "NotFound",
        hk_arena_printf(&c->mem, "%s \"%.*s\" not found", rest_resource(c, k->kind), HK_FMT(name)));
}

int rest_fail_exists(struct rest_call *c, struct hk_str name)
{
    details(c, c->k->kind, name);
    return rest_status_fail(c, 409, HK_EEXIST, "AlreadyExists",
                            hk_arena_printf(&c->mem, "%s \"%.*s\" already exists",
                                            rest_resource(c, c->k->kind), HK_FMT(name)));
}

int rest_fail_conflict(struct rest_call *c, const char *fmt, ...)
{
    const char *sub = c->req && c->req->verb == PORT_CREATE ? c->req->subresource : NULL;
    va_list ap;

    va_start(ap, fmt);
    const char *why = format(c, fmt, ap);
    va_end(ap);
    details(c, c->k->kind, c->name);
    if (sub) {
        c->status.kind = hk_arena_printf(&c->mem, "%s/%s", c->k->kind->plural, sub);
    }
    return rest_status_fail(c, 409, HK_ECONFLICT, "Conflict",
                            hk_arena_printf(&c->mem,
                                            "Operation cannot be fulfilled on %s%s%s \"%.*s\": %s",
                                            rest_resource(c, c->k->kind), sub ? "/" : "",
                                            sub ? sub : "", HK_FMT(c->name), why));
}

int rest_fail_modified(struct rest_call *c)
{
    return rest_fail_conflict(c, "the object has been modified; please apply your changes to the "
                                 "latest version and try again");
}

int rest_fail_method(struct rest_call *c)
{
    return rest_status_fail(c, 405, HK_EUNSUP, "MethodNotAllowed",
                            "the server does not allow this method on the requested resource");
}

int rest_fail_expired(struct rest_call *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    const char *message = format(c, fmt, ap);
    va_end(ap);
    return rest_status_fail(c, 410, HK_EGONE, "Expired", message);
}

void rest_cause(struct rest_call *c, const char *reason, const char *field, const char *message)
{
    hk_vec_push(&c->causes, (struct port_cause){reason, field, message});
}

void rest_field_error(struct rest_call *c, const char *reason, const char *field, const char *fmt,
                      ...)
{
    va_list ap;

    va_start(ap, fmt);
    const char *message = format(c, fmt, ap);
    va_end(ap);
    hk_vec_push(&c->adm.errors, (struct field_error){
                                    .reason = reason,
                                    .field = hk_arena_strndup(&c->mem, field, strlen(field)),
                                    .message = hk_arena_strndup(&c->mem, message, strlen(message)),
                                });
}

static void causes_of_errors(struct rest_call *c)
{
    for (uint32_t i = 0; i < c->adm.errors.len; i++) {
        const struct field_error *e = &c->adm.errors.at[i];
        rest_cause(c, e->reason, e->field, e->message);
    }
}

int rest_fail_invalid(struct rest_call *c)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    c->adm.kind = c->k->kind;
    c->adm.name = c->name;
    admission_write_invalid(&c->adm, &b);
    causes_of_errors(c);
    details(c, c->k->kind, c->name);
    c->status.kind = c->k->kind->kind;
    return rest_status_fail(c, 422, HK_EINVAL, "Invalid", hk_arena_str(&c->mem, hk_buf_str(&b)).s);
}

int rest_fail_admission(struct rest_call *c, int rc)
{
    const struct hk_err why = c->err; /* rest_fail() overwrites it */

    if (c->adm.denial) { /* the webhook denied the request without code and reason */
        return rest_status_fail(c, 400, HK_EINVAL, NULL, c->adm.denial);
    }
    if (rc == -HK_EDENIED) {
        causes_of_errors(c);
        return rest_fail(c, 403, HK_EDENIED, "Forbidden", "%s%s%.*s%s is forbidden: %s",
                         rest_resource(c, c->k->kind), c->name.n > 0 ? " \"" : "", HK_FMT(c->name),
                         c->name.n > 0 ? "\"" : "", c->adm.refusal ? c->adm.refusal : why.text);
    }
    if (rc == -HK_ENOTFOUND) {
        details(c, c->r->namespaces->kind, c->ns);
        return rest_status_fail(c, 404, HK_ENOTFOUND, "NotFound",
                                rest_status_copy_str(c, hk_str(why.text)));
    }
    if (rc == -HK_EINVAL) {
        return rest_fail_bad(c, "%s", why.text);
    }
    return rest_fail_store(c, rc);
}

int rest_fail_store(struct rest_call *c, int rc)
{
    const struct hk_err why = c->err;

    switch (-rc) {
    case HK_EEXIST:
        return rest_fail_exists(c, c->name);
    case HK_ENOTFOUND:
        return rest_fail_missing(c, c->k, c->name);
    case HK_ECONFLICT:
        return rest_fail_modified(c);
    case HK_EFULL:
        return rest_fail(c, 507, HK_EFULL, "InsufficientStorage", "%s", why.text);
    default:
        rest_cause(c, NULL, NULL, rest_status_copy_str(c, hk_str(why.text)));
        return rest_fail(c, 500, HK_EIO, "InternalError", "Internal error occurred: %s", why.text);
    }
}

static enum hk_code code_of_http(int http)
{
    return http == 403   ? HK_EDENIED
           : http == 404 ? HK_ENOTFOUND
           : http == 409 ? HK_ECONFLICT
           : http == 429 ? HK_EBUSY
           : http >= 500 ? HK_EIO
                         : HK_EINVAL;
}

int rest_fail_webhook(struct rest_call *c, int http, const char *reason, const char *message)
{
    return rest_status_fail(c, http, code_of_http(http), reason, message);
}

void rest_succeed(struct rest_call *c, int http)
{
    c->has_status = true;
    c->status = (struct port_status){.success = true, .code = http};
}
