// SPDX-License-Identifier: Apache-2.0
// JSON patch: a list of operations on values named by JSON pointers (RFC 6901). Two limits keep a
// small patch from making a large object: the total size of copies, and the decoder's depth limit
// for every inserted value.
#include "api/patch.h"

enum { COPY_MAX = 3 * 1024 * 1024 }; /* bytes of JSON, total of all copies in a patch */

struct op {
    const char *verb;
    struct hk_str path, from;
    const struct json *value;
};

struct patcher {
    struct json *root;
    struct hk_arena *a;
    struct hk_err *err;
    size_t copied;
};

/* ---- pointers ---- */

/* One step of a pointer with "~1" and "~0" unescaped. */
static struct hk_str unescape(struct hk_str token, struct hk_arena *a)
{
    if (token.n == 0 || !memchr(token.s, '~', token.n)) {
        return token;
    }
    char *out = hk_arena_strndup(a, token.s, token.n);
    size_t n = 0;
    for (size_t i = 0; i < token.n; i++) {
        const char next = i + 1 < token.n ? token.s[i + 1] : '\0';
        if (token.s[i] == '~' && (next == '0' || next == '1')) {
            out[n++] = next == '0' ? '~' : '/';
            i++;
        } else {
            out[n++] = token.s[i];
        }
    }
    return (struct hk_str){out, n};
}

static bool read_index(struct hk_str token, uint32_t *ret)
{
    uint32_t n = 0;

    if (token.n == 0 || token.n > 9 || (token.n > 1 && token.s[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < token.n; i++) {
        if (token.s[i] < '0' || token.s[i] > '9') {
            return false;
        }
        n = n * 10 + (uint32_t)(token.s[i] - '0');
    }
    *ret = n;
    return true;
}

static struct json *child(struct json *v, struct hk_str token)
{
    uint32_t i;

    if (v->type == JSON_OBJECT) {
        return (struct json *)json_get_str(v, token);
    }
    if (v->type == JSON_ARRAY && read_index(token, &i) && i < v->len) {
        return &v->items[i];
    }
    return NULL;
}

/* The container of the value, which need not exist; NULL if there is no container. *last is the
 * last step, *depth the number of steps. path is not "". */
static struct json *find_parent(struct patcher *p, struct hk_str path, struct hk_str *last,
                                uint32_t *depth)
{
    struct hk_str rest = {path.s + 1, path.n - 1}, token;
    struct json *v = p->root;

    *depth = 1;
    hk_str_cut(&rest, '/', &token);
    while (v && rest.s) {
        v = child(v, unescape(token, p->a));
        hk_str_cut(&rest, '/', &token);
        ++*depth;
    }
    *last = unescape(token, p->a);
    return v;
}

static struct json *patch_json_find_value(struct patcher *p, struct hk_str path)
{
    struct hk_str last;
    uint32_t depth;

    if (path.n == 0) {
        return p->root;
    }
    struct json *parent = find_parent(p, path, &last, &depth);
    return parent ? child(parent, last) : NULL;
}

/* ---- limits ---- */

static uint32_t depth_of(const struct json *v)
{
    uint32_t deepest = 0;

    if (v->type != JSON_ARRAY && v->type != JSON_OBJECT) {
        return 0;
    }
    for (uint32_t i = 0; i < v->len; i++) {
        const struct json *c = v->type == JSON_ARRAY ? &v->items[i] : &v->members[i].value;
        const uint32_t depth = depth_of(c); /* inside HK_MAX it would run twice at every level */
        deepest = HK_MAX(deepest, depth);
    }
    return deepest + 1;
}

/* The approximate size as text. */
static size_t size_of(const struct json *v)
{
    size_t size = 8;

    if (v->type == JSON_STRING) {
        return size + v->len;
    }
    for (uint32_t i = 0; v->type == JSON_ARRAY && i < v->len; i++) {
        size += size_of(&v->items[i]);
    }
    for (uint32_t i = 0; v->type == JSON_OBJECT && i < v->len; i++) {
        size += v->members[i].key.n + size_of(&v->members[i].value);
    }
    return size;
}

/* ---- operations ---- */

static int patch_json_fail_missing(struct patcher *p, const struct op *op, struct hk_str path)
{
    return hk_fail(p->err, HK_EINVAL, "%s operation does not apply: doc is missing path: '%.*s'",
                   op->verb, HK_FMT(path));
}

static void patch_json_insert_item(struct json *list, uint32_t at, struct json v,
                                   struct hk_arena *a)
{
    json_push(list, a, v);
    memmove(&list->items[at + 1], &list->items[at], (list->len - 1 - at) * sizeof(v));
    list->items[at] = v;
}

/* Puts a value in the patcher's memory at op->path. */
static int patch_json_add_value(struct patcher *p, const struct op *op, struct json v)
{
    struct hk_str last;
    uint32_t depth, at;

    if (op->path.n == 0) {
        *p->root = v;
        return 0;
    }
    struct json *parent = find_parent(p, op->path, &last, &depth);
    if (depth + depth_of(&v) > JSON_MAX_DEPTH) {
        return hk_fail(p->err, HK_ELIMIT, "%s '%.*s': deeper than %d levels", op->verb,
                       HK_FMT(op->path), JSON_MAX_DEPTH);
    }
    if (json_is(parent, JSON_OBJECT)) {
        json_put(parent, p->a, last, v);
        return 0;
    }
    if (!json_is(parent, JSON_ARRAY)) {
        return patch_json_fail_missing(p, op, op->path);
    }
    at = parent->len;
    if (!hk_str_is(last, "-") && (!read_index(last, &at) || at > parent->len)) {
        return hk_fail(p->err, HK_EINVAL, "%s operation does not apply: '%.*s': invalid index",
                       op->verb, HK_FMT(op->path));
    }
    patch_json_insert_item(parent, at, v, p->a);
    return 0;
}

static int patch_json_remove_value(struct patcher *p, const struct op *op, struct hk_str path,
                                   struct json *ret)
{
    struct hk_str last;
    uint32_t depth;

    struct json *parent = path.n > 0 ? find_parent(p, path, &last, &depth) : NULL;
    struct json *v = parent ? child(parent, last) : NULL;
    if (!v) {
        return patch_json_fail_missing(p, op, path);
    }
    *ret = *v;
    if (parent->type == JSON_OBJECT) {
        json_del(parent, hk_arena_strndup(p->a, last.s, last.n));
    } else {
        const size_t i = (size_t)(v - parent->items);
        memmove(v, v + 1, (parent->len - i - 1) * sizeof(*v));
        parent->len--;
    }
    return 0;
}

static int do_copy(struct patcher *p, const struct op *op)
{
    const struct json *v = patch_json_find_value(p, op->from);

    if (!v) {
        return patch_json_fail_missing(p, op, op->from);
    }
    p->copied += size_of(v);
    if (p->copied > COPY_MAX) {
        return hk_fail(p->err, HK_ELIMIT, "copies of more than %d bytes", COPY_MAX);
    }
    return patch_json_add_value(p, op, json_clone(v, p->a));
}

/* A missing member is added, which differs from RFC 6902 but matches kube-apiserver. */
static int do_replace(struct patcher *p, const struct op *op)
{
    struct json *v = patch_json_find_value(p, op->path);
    struct json *parent = NULL;
    struct hk_str last;
    uint32_t depth = 0;

    if (op->path.n > 0) {
        parent = find_parent(p, op->path, &last, &depth);
    }
    if (!v) {
        return json_is(parent, JSON_OBJECT)
                   ? patch_json_add_value(p, op, json_clone(op->value, p->a))
                   : patch_json_fail_missing(p, op, op->path);
    }
    if (depth + depth_of(op->value) > JSON_MAX_DEPTH) {
        return hk_fail(p->err, HK_ELIMIT, "replace '%.*s': deeper than %d levels", HK_FMT(op->path),
                       JSON_MAX_DEPTH);
    }
    *v = json_clone(op->value, p->a);
    return 0;
}

static int do_test(struct patcher *p, const struct op *op)
{
    static const struct json null = {.type = JSON_NULL};
    const struct json *v = patch_json_find_value(p, op->path);

    if (json_equal(v ? v : &null, op->value)) {
        return 0;
    }
    return hk_fail(p->err, HK_EINVAL, "testing value %.*s failed", HK_FMT(op->path));
}

static int do_add(struct patcher *p, const struct op *op)
{
    return patch_json_add_value(p, op, json_clone(op->value, p->a));
}

static int do_remove(struct patcher *p, const struct op *op)
{
    struct json v;

    return patch_json_remove_value(p, op, op->path, &v);
}

static int do_move(struct patcher *p, const struct op *op)
{
    struct json v;
    const int rc = patch_json_remove_value(p, op, op->from, &v);

    if (rc < 0) {
        return rc;
    }
    return patch_json_add_value(p, op, v);
}

static const struct verb {
    const char *name;
    int (*apply)(struct patcher *p, const struct op *op);
    bool value, from; /* members it needs besides a path */
} verbs[] = {
    {"add", do_add, true, false},         {"remove", do_remove, false, false},
    {"replace", do_replace, true, false}, {"move", do_move, false, true},
    {"copy", do_copy, false, true},       {"test", do_test, true, false},
};

/* ---- reading ---- */

static bool is_pointer(const struct json *v)
{
    return json_is(v, JSON_STRING) && (v->len == 0 || v->s[0] == '/');
}

static const struct verb *find_verb(struct hk_str name)
{
    for (size_t i = 0; i < HK_LEN(verbs); i++) {
        if (hk_str_is(name, verbs[i].name)) {
            return &verbs[i];
        }
    }
    return NULL;
}

static int read_op(const struct json *v, struct op *ret, const struct verb **ret_verb,
                   struct hk_err *err)
{
    const struct hk_str name = json_str_field(v, "op");
    const struct verb *verb = find_verb(name);
    const struct json *path = json_get(v, "path");
    const struct json *from = json_get(v, "from");
    const struct json *value = json_get(v, "value");

    if (!verb) {
        return hk_fail(err, HK_EINVAL, "unknown operation '%.*s'", HK_FMT(name));
    }
    if (!is_pointer(path)) {
        return hk_fail(err, HK_EINVAL, "%s: path is missing or not a JSON pointer", verb->name);
    }
    if (verb->from && !is_pointer(from)) {
        return hk_fail(err, HK_EINVAL, "%s: from is missing or not a JSON pointer", verb->name);
    }
    if (verb->value && !value) {
        return hk_fail(err, HK_EINVAL, "%s: value is missing", verb->name);
    }
    *ret = (struct op){verb->name, json_str(path, HK_STR("")), json_str(from, HK_STR("")), value};
    *ret_verb = verb;
    return 0;
}

int api_patch_json_check(const struct json *patch, struct hk_err *err)
{
    const struct verb *verb;
    struct op op;
    int rc = 0;

    if (!json_is(patch, JSON_ARRAY)) {
        return hk_fail(err, HK_EINVAL, "a JSON patch must be a list of operations");
    }
    if (patch->len > API_PATCH_MAX_OPS) {
        return hk_fail(err, HK_ELIMIT,
                       "The allowed maximum operations in a JSON patch is %d, got %u",
                       API_PATCH_MAX_OPS, patch->len);
    }
    for (uint32_t i = 0; i < patch->len && rc == 0; i++) {
        rc = read_op(&patch->items[i], &op, &verb, err);
    }
    return rc;
}

int api_patch_json(struct json *target, const struct json *patch, struct hk_arena *a,
                   struct hk_err *err)
{
    struct patcher p = {.root = target, .a = a, .err = err};
    const struct verb *verb;
    struct op op;
    int rc;

    rc = api_patch_json_check(patch, err);
    for (uint32_t i = 0; rc == 0 && i < patch->len; i++) {
        rc = read_op(&patch->items[i], &op, &verb, err);
        if (rc == 0) {
            rc = verb->apply(&p, &op);
        }
    }
    return rc;
}
