// SPDX-License-Identifier: Apache-2.0
// Checks a tree before it is evaluated: names are declared, functions exist and accept their
// arguments, fields exist in the schema. Gradual: dyn fits everything. Resolves names to slots and
// calls to their possible overloads on the way.
#include "cel/check_priv.h"

/* ---- problems ---- */

static void issue_line(const struct cel_source *src, uint32_t at, struct hk_str *line,
                       uint32_t *number)
{
    uint32_t from = 0;

    *number = 1;
    for (uint32_t i = 0; i < at && i < src->text.n; i++) {
        if (src->text.s[i] == '\n') {
            from = i + 1;
            ++*number;
        }
    }
    const char *end = memchr(src->text.s + from, '\n', src->text.n - from);
    line->s = src->text.s + from;
    line->n = end ? (size_t)(end - line->s) : src->text.n - from;
}

int cel_issue(struct cel_source *src, uint32_t at, const char *fmt, ...)
{
    struct hk_str line;
    uint32_t number;
    va_list ap;

    if (src->nissues++ >= CEL_ISSUES_MAX) {
        return -HK_EINVAL;
    }
    issue_line(src, at, &line, &number);
    const size_t bytes = HK_MIN((size_t)(src->text.s + at - line.s), line.n);
    const size_t column = text_count((struct hk_str){line.s, bytes});
    hk_buf_addf(&src->issues, "%sERROR: <input>:%u:%zu: ", src->issues.len > 0 ? "\n" : "", number,
                column + 1);
    va_start(ap, fmt);
    hk_buf_vaddf(&src->issues, fmt, ap);
    va_end(ap);
    hk_buf_addf(&src->issues, "\n | %.*s\n | ", HK_FMT(line));
    for (size_t i = 0; i < column; i++) {
        hk_buf_addc(&src->issues, '.');
    }
    hk_buf_addc(&src->issues, '^');
    return -HK_EINVAL;
}

const struct cel_type *cel_check_no_overload(struct checker *c, const struct cel_node *n,
                                             const char *name, const struct cel_type *const *types)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const uint32_t first = n->kind == NODE_CALL && n->receiver;

    if (first) {
        hk_buf_addf(&text, "%s.", type_text(types[0], c->src->a));
    }
    for (uint32_t i = first; i < n->nargs; i++) {
        hk_buf_addf(&text, "%s%s", i == first ? "(" : ", ", type_text(types[i], c->src->a));
    }
    hk_buf_adds(&text, n->nargs == first ? "()" : ")");
    cel_issue(c->src, n->at, "found no matching overload for '%s' applied to '%s'", name,
              text.data);
    return cel_check_dyn();
}

const struct cel_type *cel_check_dyn(void)
{
    return cel_type_of(CEL_DYN);
}

static const struct cel_type *check_mismatch(struct checker *c, const struct cel_node *n,
                                             const struct cel_type *want,
                                             const struct cel_type *have)
{
    cel_issue(c->src, n->at, "expected type '%s' but found '%s'", type_text(want, c->src->a),
              type_text(have, c->src->a));
    return cel_check_dyn();
}

/* ---- names ---- */

struct check_scope cel_check_push(struct checker *c, struct hk_str name,
                                  const struct cel_type *type)
{
    const struct check_scope s = {c->scope, name, type, c->nlocals};

    c->nlocals++;
    c->p->nlocals = HK_MAX(c->p->nlocals, c->nlocals);
    return s;
}

void cel_check_pop(struct checker *c, const struct check_scope *s)
{
    c->scope = s->up;
    c->nlocals--;
}

static const struct cel_type *check_variable(struct checker *c, struct cel_node *n,
                                             struct hk_str name)
{
    for (uint32_t i = 0; i < c->env->nvars; i++) {
        if (hk_str_eq(c->env->vars[i].name, name)) {
            n->kind = NODE_IDENT;
            n->local = false;
            n->slot = i;
            c->p->used |= UINT64_C(1) << HK_MIN(i, 63U);
            return c->env->vars[i].type ? c->env->vars[i].type : cel_check_dyn();
        }
    }
    return NULL;
}

/* A local, a variable or a type, or NULL. The node becomes what it names. */
static const struct cel_type *check_name(struct checker *c, struct cel_node *n, struct hk_str name)
{
    for (const struct check_scope *s = c->scope; s; s = s->up) {
        if (hk_str_eq(s->name, name)) {
            n->local = true;
            n->slot = s->slot;
            return s->type;
        }
    }
    const struct cel_type *t = check_variable(c, n, name);
    const int kind = t ? -1 : type_kind_named(name);
    if (kind >= 0) {
        n->kind = NODE_LITERAL;
        n->value = cel_of_kind((enum cel_kind)kind);
        return cel_type_of(CEL_TYPE);
    }
    return t;
}

static const struct cel_type *check_undeclared(struct checker *c, const struct cel_node *n,
                                               struct hk_str name)
{
    cel_issue(c->src, n->at, "undeclared reference to '%.*s' (in container '')", HK_FMT(name));
    return cel_check_dyn();
}

static const struct cel_type *check_ident(struct checker *c, struct cel_node *n)
{
    const struct cel_type *t = check_name(c, n, n->name);

    return t ? t : check_undeclared(c, n, n->name);
}

/* ---- fields ---- */

/* The type of a field; `in` may be an optional, and the result then is one. */
static const struct cel_type *check_field(struct checker *c, const struct cel_node *n,
                                          const struct cel_type *in)
{
    const struct cel_field *field;

    switch (in->kind) {
    case CEL_DYN:
        return cel_check_dyn();
    case CEL_MAP:
        return type_elem(in);
    case CEL_NATIVE:
        return cel_check_dyn();
    case CEL_OBJECT:
        field = type_field(in, n->name);
        if (!field) {
            cel_issue(c->src, n->at, "undefined field '%.*s'", HK_FMT(n->name));
        }
        return field ? field->type : cel_check_dyn();
    case CEL_OPTIONAL:
        return type_with(CEL_OPTIONAL, check_field(c, n, type_elem(in)), c->src->a);
    default:
        cel_issue(c->src, n->at, "type '%s' does not support field selection",
                  type_text(in, c->src->a));
        return cel_check_dyn();
    }
}

/* An optional result, unless it is one already. */
static const struct cel_type *check_optional(struct checker *c, bool optional,
                                             const struct cel_type *t)
{
    return optional && t->kind != CEL_OPTIONAL ? type_with(CEL_OPTIONAL, t, c->src->a) : t;
}

/* Whether the front of a qualified name is something that exists. */
static bool check_front_is_known(struct checker *c, const struct cel_node *n)
{
    struct cel_node probe;

    while (n->kind == NODE_SELECT) {
        n = n->args[0];
    }
    probe = *n;
    return n->kind != NODE_IDENT || check_name(c, &probe, n->name) != NULL;
}

static const struct cel_type *check_select(struct checker *c, struct cel_node *n)
{
    if (!check_front_is_known(c, n)) {
        const struct hk_str name = parse_qualified_name(n, c->src->a);
        const struct cel_type *t = name.s ? check_name(c, n, name) : NULL;
        if (t) {
            return t;
        }
    }
    const struct cel_type *in = cel_check_node(c, n->args[0]);
    return check_optional(c, n->optional, check_field(c, n, in));
}

static const struct cel_type *check_has(struct checker *c, struct cel_node *n)
{
    check_field(c, n, cel_check_node(c, n->args[0]));
    return cel_type_of(CEL_BOOL);
}

static const struct cel_type *check_index(struct checker *c, struct cel_node *n)
{
    const struct cel_type *types[2] = {cel_check_node(c, n->args[0]),
                                       cel_check_node(c, n->args[1])};
    const bool chained = types[0]->kind == CEL_OPTIONAL;
    const struct cel_type *in = chained ? type_elem(types[0]) : types[0];
    const enum cel_kind key = types[1]->kind;
    const bool number = key == CEL_DYN || key == CEL_INT || key == CEL_UINT || key == CEL_DOUBLE;

    if (in->kind == CEL_DYN || (in->kind == CEL_LIST && number) ||
        (in->kind == CEL_MAP && (!in->elem || key == CEL_STRING || key == CEL_DYN))) {
        return check_optional(c, n->optional || chained, type_elem(in));
    }
    return cel_check_no_overload(c, n, "_[_]", types);
}

/* ---- calls ---- */

static const struct cel_type *check_result(struct checker *c, const struct cel_func *f,
                                           const struct cel_type *const *types)
{
    const char letter = func_result(f);

    switch (letter) {
    case '=':
        return types[0];
    case 'e':
        return type_elem(types[0]);
    case 'O':
        return type_with(CEL_OPTIONAL, types[0], c->src->a);
    case 'S':
        return type_with(CEL_LIST, cel_type_of(CEL_STRING), c->src->a);
    case 'Y':
        return type_with(CEL_LIST, cel_type_of(CEL_INT), c->src->a);
    case 'P':
        return type_with(CEL_OPTIONAL, type_with(CEL_LIST, cel_type_of(CEL_STRING), c->src->a),
                         c->src->a);
    default:
        return cel_type_of(func_letter_kind(letter));
    }
}

/* Compiles a constant pattern, so that a bad one is found now. */
static void check_pattern(struct checker *c, struct cel_node *n)
{
    const struct cel_node *arg = n->nargs > 1 ? n->args[1] : NULL;
    struct hk_err why = {0};
    struct re2 *re;

    if (n->nfuncs == 0 || !func_has_pattern(n->funcs[0]) || !arg || arg->kind != NODE_LITERAL ||
        arg->value.kind != CEL_STRING) {
        return;
    }
    if (re2_compile(arg->value.s, &re, &why) < 0) {
        cel_issue(c->src, arg->at, "invalid matches argument: %s", why.text);
        return;
    }
    hk_vec_push(&c->p->patterns, re);
    n->re = re;
}

/* Constant times and durations are read now, too. */
static void check_time_literal(struct checker *c, const struct cel_node *n)
{
    const struct cel_node *arg = n->nargs == 1 ? n->args[0] : NULL;
    struct cel_time time;
    int64_t ns;

    if (!arg || arg->kind != NODE_LITERAL || arg->value.kind != CEL_STRING) {
        return;
    }
    if ((hk_str_is(n->name, "duration") && !cel_duration_parse(arg->value.s, &ns)) ||
        (hk_str_is(n->name, "timestamp") && cel_time_parse(arg->value.s, &time) < 0)) {
        cel_issue(c->src, arg->at, "invalid %.*s argument", HK_FMT(n->name));
    }
}

static bool check_overload_fits(const struct cel_func *f, const struct cel_node *n,
                                const struct cel_type *const *types)
{
    for (uint32_t i = 0; i < n->nargs; i++) {
        const enum cel_kind kind = types[i]->kind == CEL_OBJECT ? CEL_MAP : types[i]->kind;
        if (kind != CEL_DYN && !func_letter_fits(func_param(f, i), kind)) {
            return false;
        }
    }
    return true;
}

static const struct cel_type *check_overloads(struct checker *c, struct cel_node *n,
                                              const struct cel_type *const *types)
{
    const struct cel_type *result = NULL;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n->nfuncs; i++) {
        if (check_overload_fits(n->funcs[i], n, types)) {
            result = type_join(result, check_result(c, n->funcs[i], types));
            n->funcs[kept++] = n->funcs[i];
        }
    }
    n->nfuncs = kept;
    if (!result) {
        return cel_check_no_overload(c, n, hk_arena_strndup(c->src->a, n->name.s, n->name.n),
                                     types);
    }
    check_pattern(c, n);
    check_time_literal(c, n);
    return result;
}

/* "sets.contains(a, b)" was read as a call of a receiver "sets". */
static void check_unqualify(struct checker *c, struct cel_node *n)
{
    const struct hk_str front =
        n->receiver ? parse_qualified_name(n->args[0], c->src->a) : (struct hk_str){0};

    if (!front.s) {
        return;
    }
    const struct hk_str name =
        hk_str(hk_arena_printf(c->src->a, "%.*s.%.*s", HK_FMT(front), HK_FMT(n->name)));
    if (func_is_global(name)) {
        n->name = name;
        n->receiver = false;
        n->args++;
        n->nargs--;
    }
}

static const struct cel_type *check_call(struct checker *c, struct cel_node *n)
{
    const struct cel_type **types;

    check_unqualify(c, n);
    const int found = func_candidates(n->name, n->receiver, n->nargs, c->src->a, &n->funcs);
    if (found < 0) {
        return check_undeclared(c, n, n->name);
    }
    n->nfuncs = (uint32_t)found;
    types = hk_arena_array(c->src->a, n->nargs, sizeof(const struct cel_type *));
    const bool mixed = c->mixed;
    c->mixed |= n->receiver && hk_str_is(n->name, "format");
    for (uint32_t i = 0; i < n->nargs; i++) {
        types[i] = cel_check_node(c, n->args[i]);
    }
    c->mixed = mixed;
    return check_overloads(c, n, types);
}

/* ---- lists and maps ---- */

/* An element or value: behind "?" an optional, whose content counts. */
static const struct cel_type *check_element(struct checker *c, struct cel_node *n)
{
    if (n->kind != NODE_MAYBE) {
        return cel_check_node(c, n);
    }
    const struct cel_type *t = cel_check_node(c, n->args[0]);
    if (t->kind != CEL_OPTIONAL && t->kind != CEL_DYN) {
        return check_mismatch(c, n->args[0], type_with(CEL_OPTIONAL, t, c->src->a), t);
    }
    return type_elem(t);
}

/* Kubernetes wants elements of one type; dyn() in front of one allows others. */
static const struct cel_type *check_same(struct checker *c, const struct cel_node *n,
                                         const struct cel_type *all, const struct cel_type *one)
{
    if (all && !c->mixed && !type_fits(all, one)) {
        return check_mismatch(c, n, all, one);
    }
    return type_join(all, one);
}

static const struct cel_type *check_list(struct checker *c, struct cel_node *n)
{
    const struct cel_type *elem = NULL;

    for (uint32_t i = 0; i < n->nargs; i++) {
        elem = check_same(c, n->args[i], elem, check_element(c, n->args[i]));
    }
    return type_with(CEL_LIST, elem, c->src->a);
}

static const struct cel_type *check_map(struct checker *c, struct cel_node *n)
{
    const struct cel_type *key = NULL, *value = NULL;

    for (uint32_t i = 0; i + 1 < n->nargs; i += 2) {
        key = check_same(c, n->args[i], key, cel_check_node(c, n->args[i]));
        value = check_same(c, n->args[i + 1], value, check_element(c, n->args[i + 1]));
    }
    /* A map type knows only the type of its values, and stands for one with string keys. */
    return type_with(CEL_MAP, key && key->kind == CEL_STRING ? value : NULL, c->src->a);
}

static const struct cel_type *check_struct(struct checker *c, struct cel_node *n)
{
    const char *const *names = c->env->structs;
    bool known = false;

    for (; names && *names && !known; names++) {
        const size_t len = strlen(*names);
        known = hk_str_starts(n->name, *names) && (n->name.n == len || n->name.s[len] == '.');
    }
    if (!known) {
        return check_undeclared(c, n, n->name);
    }
    for (uint32_t i = 0; i + 1 < n->nargs; i += 2) {
        check_element(c, n->args[i + 1]);
    }
    struct cel_type *t = type_with(CEL_MAP, NULL, c->src->a);
    t->name = n->name;
    return t;
}

/* ---- all nodes ---- */

static const struct cel_type *check_literal(const struct cel_node *n)
{
    return cel_type_of(n->value.kind);
}

static const struct cel_type *check_bind(struct checker *c, struct cel_node *n)
{
    const struct check_scope s = cel_check_push(c, n->name, cel_check_node(c, n->args[0]));

    n->slot = s.slot;
    c->scope = &s;
    const struct cel_type *t = cel_check_node(c, n->args[1]);
    cel_check_pop(c, &s);
    return t;
}

const struct cel_type *cel_check_node(struct checker *c, struct cel_node *n)
{
    switch (n->kind) {
    case NODE_LITERAL:
        return check_literal(n);
    case NODE_IDENT:
        return check_ident(c, n);
    case NODE_SELECT:
        return check_select(c, n);
    case NODE_HAS:
        return check_has(c, n);
    case NODE_INDEX:
        return check_index(c, n);
    case NODE_CALL:
        return check_call(c, n);
    case NODE_LIST:
        return check_list(c, n);
    case NODE_MAP:
        return check_map(c, n);
    case NODE_STRUCT:
        return check_struct(c, n);
    case NODE_MACRO:
        return cel_check_macro(c, n);
    case NODE_BIND:
        return check_bind(c, n);
    case NODE_MAYBE:
        cel_issue(c->src, n->at, "unexpected '?'");
        return cel_check_dyn();
    default:
        return cel_check_operator(c, n);
    }
}

int cel_check_program(struct cel_source *src, const struct cel_env *env, struct cel_program *p)
{
    struct checker c = {.src = src, .env = env, .p = p};
    const struct cel_type *t = cel_check_node(&c, p->root);

    p->type = t;
    if (src->nissues == 0 && env->result != CEL_DYN && t->kind != CEL_DYN &&
        t->kind != env->result) {
        /* Not a place in the text: Kubernetes says it without one. */
        hk_buf_addf(&src->issues, "must evaluate to a %s", type_kind_name(env->result));
        return -HK_EUNSUP;
    }
    return src->nissues > 0 ? -HK_EINVAL : 0;
}
