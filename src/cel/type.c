// SPDX-License-Identifier: Apache-2.0
// Types as the checker and messages see them: names, what fits what, and the fields of objects.
#include "cel/cel_priv.h"

static const char *const kind_names[CEL_NKINDS] = {
    [CEL_DYN] = "dyn",
    [CEL_NULL] = "null_type",
    [CEL_BOOL] = "bool",
    [CEL_INT] = "int",
    [CEL_UINT] = "uint",
    [CEL_DOUBLE] = "double",
    [CEL_STRING] = "string",
    [CEL_BYTES] = "bytes",
    [CEL_LIST] = "list",
    [CEL_MAP] = "map",
    [CEL_OBJECT] = "object",
    [CEL_TIMESTAMP] = "google.protobuf.Timestamp",
    [CEL_DURATION] = "google.protobuf.Duration",
    [CEL_TYPE] = "type",
    [CEL_OPTIONAL] = "optional_type",
    [CEL_IP] = "net.IP",
    [CEL_CIDR] = "net.CIDR",
    [CEL_QUANTITY] = "kubernetes.Quantity",
    [CEL_SEMVER] = "kubernetes.Semver",
    [CEL_URL] = "kubernetes.URL",
    [CEL_FORMAT] = "kubernetes.NamedFormat",
    [CEL_NATIVE] = "kubernetes.authorization.Authorizer",
};

static const struct cel_type plain_types[CEL_NKINDS] = {
    {.kind = CEL_DYN},      {.kind = CEL_NULL},     {.kind = CEL_BOOL},     {.kind = CEL_INT},
    {.kind = CEL_UINT},     {.kind = CEL_DOUBLE},   {.kind = CEL_STRING},   {.kind = CEL_BYTES},
    {.kind = CEL_LIST},     {.kind = CEL_MAP},      {.kind = CEL_OBJECT},   {.kind = CEL_TIMESTAMP},
    {.kind = CEL_DURATION}, {.kind = CEL_TYPE},     {.kind = CEL_OPTIONAL}, {.kind = CEL_IP},
    {.kind = CEL_CIDR},     {.kind = CEL_QUANTITY}, {.kind = CEL_SEMVER},   {.kind = CEL_URL},
    {.kind = CEL_FORMAT},   {.kind = CEL_NATIVE},
};

const struct cel_type *cel_type_of(enum cel_kind kind)
{
    return &plain_types[kind];
}

const char *type_kind_name(enum cel_kind kind)
{
    return kind_names[kind];
}

int type_kind_named(struct hk_str name)
{
    for (int kind = 0; kind < CEL_NKINDS; kind++) {
        if (kind != CEL_OBJECT && hk_str_is(name, kind_names[kind])) {
            return kind;
        }
    }
    return -1;
}

struct cel_type *type_with(enum cel_kind kind, const struct cel_type *elem, struct hk_arena *a)
{
    struct cel_type *t = hk_arena_zalloc(a, sizeof(*t));

    t->kind = kind;
    t->elem = elem;
    return t;
}

const struct cel_type *type_elem(const struct cel_type *t)
{
    return t->elem ? t->elem : cel_type_of(CEL_DYN);
}

char *type_text(const struct cel_type *t, struct hk_arena *a)
{
    const char *elem;

    switch (t->kind) {
    case CEL_TIMESTAMP:
        return hk_arena_printf(a, "timestamp");
    case CEL_DURATION:
        return hk_arena_printf(a, "duration");
    case CEL_NULL:
        return hk_arena_printf(a, "null");
    case CEL_LIST:
    case CEL_OPTIONAL:
        elem = type_text(type_elem(t), a);
        return hk_arena_printf(a, "%s(%s)", kind_names[t->kind], elem);
    case CEL_MAP:
        elem = type_text(type_elem(t), a);
        return hk_arena_printf(a, "map(%s, %s)", t->elem ? "string" : "dyn", elem);
    default:
        return hk_arena_printf(a, "%s", kind_names[t->kind]);
    }
}

/* As in cel-go, null is a value of objects and of the types that are not plain data. */
static bool type_may_be_null(enum cel_kind kind)
{
    return kind == CEL_OBJECT || kind == CEL_NULL || kind >= CEL_TIMESTAMP;
}

bool type_fits(const struct cel_type *a, const struct cel_type *b)
{
    if (a->kind == CEL_DYN || b->kind == CEL_DYN) {
        return true;
    }
    if (a->kind == CEL_NULL || b->kind == CEL_NULL) {
        return type_may_be_null(a->kind == CEL_NULL ? b->kind : a->kind);
    }
    /* A map literal may stand for an object. */
    if ((a->kind == CEL_MAP && b->kind == CEL_OBJECT) ||
        (a->kind == CEL_OBJECT && b->kind == CEL_MAP)) {
        return true;
    }
    if (a->name.n > 0 && b->name.n > 0 && !hk_str_eq(a->name, b->name)) {
        return false;
    }
    return a->kind == b->kind && (!a->elem || !b->elem || type_fits(a->elem, b->elem));
}

const struct cel_type *type_join(const struct cel_type *a, const struct cel_type *b)
{
    if (!a || !b) {
        return a ? a : b;
    }
    if (a == b) {
        return a;
    }
    if (a->kind == b->kind && a->kind != CEL_OBJECT && (a->elem || b->elem) && type_fits(a, b)) {
        return a->elem && b->elem ? a : a->elem ? b : a;
    }
    if (a->kind == b->kind && a->kind != CEL_OBJECT && type_fits(a, b)) {
        return a;
    }
    return cel_type_of(CEL_DYN);
}

const struct cel_field *type_field(const struct cel_type *t, struct hk_str name)
{
    for (uint32_t i = 0; i < t->nfields; i++) {
        if (hk_str_eq(t->fields[i].name, name)) {
            return &t->fields[i];
        }
    }
    return NULL;
}

const struct cel_field *type_field_of_key(const struct cel_type *t, struct hk_str key)
{
    for (uint32_t i = 0; i < t->nfields; i++) {
        if (hk_str_eq(t->fields[i].key, key)) {
            return &t->fields[i];
        }
    }
    return NULL;
}

/* ---- names of properties ---- */

static const char *const reserved_words[] = {
    "true",     "false",   "null",      "in",       "as",  "break",  "const",
    "continue", "else",    "for",       "function", "if",  "import", "let",
    "loop",     "package", "namespace", "return",   "var", "void",   "while",
};

static void escape_char(char c, char next, struct hk_buf *out)
{
    switch (c) {
    case '.':
        hk_buf_adds(out, "__dot__");
        break;
    case '-':
        hk_buf_adds(out, "__dash__");
        break;
    case '/':
        hk_buf_adds(out, "__slash__");
        break;
    default:
        if (c == '_' && next == '_') {
            hk_buf_adds(out, "__underscores__");
        } else {
            hk_buf_addc(out, c);
        }
    }
}

static bool may_escape(struct hk_str s)
{
    static const char other[] = "_.-/";

    for (size_t i = 0; i < s.n; i++) {
        const char c = s.s[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || !((c >= '0' && c <= '9') || (c != '\0' && strchr(other, c))))) {
            return i == 0 && c != '\0' && strchr(other, c);
        }
    }
    return s.n > 0;
}

bool cel_escape(struct hk_str property, struct hk_buf *out)
{
    for (size_t i = 0; i < HK_LEN(reserved_words); i++) {
        if (hk_str_is(property, reserved_words[i])) {
            hk_buf_addf(out, "__%.*s__", HK_FMT(property));
            return true;
        }
    }
    if (!may_escape(property)) {
        return false;
    }
    for (size_t i = 0; i < property.n; i++) {
        const char next = i + 1 < property.n ? property.s[i + 1] : '\0';
        escape_char(property.s[i], next, out);
        i += property.s[i] == '_' && next == '_';
    }
    return true;
}
