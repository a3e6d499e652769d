// SPDX-License-Identifier: Apache-2.0
// Field errors: path, reason and message, worded like Kubernetes' field package. One function per
// type of error, and the checks that all kinds share.
#include "admission/admission_priv.h"

void path_write(const struct path *p, struct hk_buf *out)
{
    if (p->up) {
        path_write(p->up, out);
    }
    switch (p->form) {
    case PATH_FIELD:
        if (out->len > 0 && p->key.n > 0) {
            hk_buf_addc(out, '.');
        }
        hk_buf_addstr(out, p->key);
        break;
    case PATH_INDEX:
        hk_buf_addf(out, "[%u]", p->index);
        break;
    case PATH_KEY:
        hk_buf_addf(out, "[%.*s]", HK_FMT(p->key));
        break;
    }
}

void cause_add(struct admission_request *q, const char *reason, const char *field,
               const char *message)
{
    hk_vec_push(&q->errors, (struct field_error){
                                .reason = reason,
                                .field = hk_arena_strndup(q->mem, field, strlen(field)),
                                .message = hk_arena_strndup(q->mem, message, strlen(message)),
                            });
}

static void cause_add_at_path(struct admission_request *q, const char *reason, const struct path *p,
                              const struct hk_buf *body)
{
    HK_AUTO(hk_buf_fini) struct hk_buf field = {0};

    path_write(p, &field);
    cause_add(q, reason, hk_buf_str(&field).s, hk_buf_str(body).s);
}

void cause_required(struct admission_request *q, const struct path *p, const char *detail)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_adds(&body, "Required value");
    if (detail && *detail) {
        hk_buf_addf(&body, ": %s", detail);
    }
    cause_add_at_path(q, "FieldValueRequired", p, &body);
}

static void invalid(struct admission_request *q, const struct path *p, const struct json *value,
                    const char *fmt, va_list ap)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_adds(&body, "Invalid value: ");
    if (value) {
        json_write(value, &body);
    } else {
        hk_buf_adds(&body, "null");
    }
    hk_buf_adds(&body, ": ");
    hk_buf_vaddf(&body, fmt, ap);
    cause_add_at_path(q, "FieldValueInvalid", p, &body);
}

void cause_invalid(struct admission_request *q, const struct path *p, const struct json *value,
                   const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    invalid(q, p, value, fmt, ap);
    va_end(ap);
}

void cause_invalid_str(struct admission_request *q, const struct path *p, struct hk_str value,
                       const char *fmt, ...)
{
    const struct json v = json_make_str(value);
    va_list ap;

    va_start(ap, fmt);
    invalid(q, p, &v, fmt, ap);
    va_end(ap);
}

void cause_forbidden(struct admission_request *q, const struct path *p, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
    va_list ap;

    hk_buf_adds(&body, "Forbidden: ");
    va_start(ap, fmt);
    hk_buf_vaddf(&body, fmt, ap);
    va_end(ap);
    cause_add_at_path(q, "FieldValueForbidden", p, &body);
}

void cause_unsupported(struct admission_request *q, const struct path *p, struct hk_str value,
                       const char *const *allowed)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_adds(&body, "Unsupported value: ");
    json_write_str(value, &body);
    for (uint32_t i = 0; allowed[i]; i++) {
        hk_buf_adds(&body, i == 0 ? ": supported values: " : ", ");
        json_write_str(hk_str(allowed[i]), &body);
    }
    cause_add_at_path(q, "FieldValueNotSupported", p, &body);
}

static void quoted(struct admission_request *q, const char *reason, const char *words,
                   const struct path *p, struct hk_str value)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_addf(&body, "%s: ", words);
    json_write_str(value, &body);
    cause_add_at_path(q, reason, p, &body);
}

void cause_duplicate(struct admission_request *q, const struct path *p, struct hk_str value)
{
    quoted(q, "FieldValueDuplicate", "Duplicate value", p, value);
}

void cause_not_found(struct admission_request *q, const struct path *p, struct hk_str value)
{
    quoted(q, "FieldValueNotFound", "Not found", p, value);
}

void cause_too_long(struct admission_request *q, const struct path *p, uint32_t max_bytes)
{
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_addf(&body, "Too long: may not be more than %u bytes", max_bytes);
    cause_add_at_path(q, "FieldValueTooLong", p, &body);
}

/* ---- shared checks ---- */

void cause_check_enum(struct admission_request *q, const struct path *up, const struct json *obj,
                      const char *key, const char *const *allowed)
{
    const struct path p = path_field(up, key);
    const struct hk_str value = edit_str(obj, key);

    if (!edit_has(obj, key)) {
        return;
    }
    for (uint32_t i = 0; allowed[i]; i++) {
        if (hk_str_is(value, allowed[i])) {
            return;
        }
    }
    cause_unsupported(q, &p, value, allowed);
}

void cause_check_min(struct admission_request *q, const struct path *up, const struct json *obj,
                     const char *key, int64_t min)
{
    const struct json *v = json_get(obj, key);
    const struct path p = path_field(up, key);

    if (v && json_int(v, min) < min) {
        if (min == 1) {
            cause_invalid(q, &p, v, "must be greater than 0");
        } else {
            cause_invalid(q, &p, v, "must be greater than or equal to %lld", (long long)min);
        }
    }
}

void cause_check_immutable(struct admission_request *q, const struct path *up,
                           const struct json *obj, const struct json *old, const char *key)
{
    const struct json *a = json_get(obj, key);
    const struct json *b = json_get(old, key);
    const struct path p = path_field(up, key);
    const bool same = !edit_has(obj, key) || !edit_has(old, key)
                          ? edit_has(obj, key) == edit_has(old, key)
                          : json_equal(a, b);

    if (!same) {
        cause_invalid(q, &p, a, "field is immutable");
    }
}

bool cause_check_present(struct admission_request *q, const struct path *up, const struct json *obj,
                         const char *key)
{
    const struct json *v = json_get(obj, key);
    const struct path p = path_field(up, key);
    const bool empty = v && v->len == 0 &&
                       (v->type == JSON_STRING || v->type == JSON_ARRAY || v->type == JSON_OBJECT);

    if (edit_has(obj, key) && !empty) {
        return true;
    }
    cause_required(q, &p, NULL);
    return false;
}

/* ---- the error message ---- */

static void write_error(const struct field_error *e, struct hk_buf *out)
{
    hk_buf_addf(out, "%s: %s", e->field, e->message);
}

void admission_write_invalid(const struct admission_request *q, struct hk_buf *out)
{
    const struct api_kind *k = q->kind;
    const bool many = q->errors.len > 1;

    hk_buf_addf(out, "%s%s%s \"%.*s\" is invalid: ", k->kind, *k->group ? "." : "", k->group,
                HK_FMT(q->name));
    hk_buf_adds(out, many ? "[" : "");
    for (uint32_t i = 0; i < q->errors.len; i++) {
        hk_buf_adds(out, i > 0 ? ", " : "");
        write_error(&q->errors.at[i], out);
    }
    hk_buf_adds(out, many ? "]" : "");
}
