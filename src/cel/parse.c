// SPDX-License-Identifier: Apache-2.0
// Reads an expression into a tree: precedence climbing over the tokens of lex.c. The depth of
// nesting and the height of the tree are bounded, so that recursion over it is, too.
#include "cel/cel_priv.h"

struct parser {
    struct cel_source *src;
    uint32_t at; /* behind the current token */
    struct lex_token t;
    uint32_t depth;
};

typedef HK_VEC(struct cel_node *) node_vec;

static int parse_expr(struct parser *p, struct cel_node **ret);

/* ---- tokens ---- */

static int parse_advance(struct parser *p)
{
    return lex_next(p->src, &p->at, &p->t);
}

static bool parse_at(const struct parser *p, const char *punct)
{
    return p->t.kind == LEX_PUNCT && hk_str_is(p->t.text, punct);
}

static bool parse_at_word(const struct parser *p, const char *word)
{
    return p->t.kind == LEX_IDENT && hk_str_is(p->t.text, word);
}

static int parse_unexpected(const struct parser *p, const char *wanted)
{
    if (p->t.kind == LEX_END) {
        return cel_issue(p->src, p->t.at, "Syntax error: unexpected end, expecting %s", wanted);
    }
    const uint32_t end = p->at;
    const struct hk_str seen =
        hk_str_head((struct hk_str){p->src->text.s + p->t.at, end - p->t.at}, 40);
    return cel_issue(p->src, p->t.at, "Syntax error: unexpected '%.*s', expecting %s", HK_FMT(seen),
                     wanted);
}

static int parse_expect(struct parser *p, const char *punct)
{
    char wanted[8];

    if (parse_at(p, punct)) {
        return parse_advance(p);
    }
    snprintf(wanted, sizeof(wanted), "'%s'", punct);
    return parse_unexpected(p, wanted);
}

/* Moves on if the punctuation is there: 1, 0, or a negative code. */
static int parse_accept(struct parser *p, const char *punct)
{
    if (!parse_at(p, punct)) {
        return 0;
    }
    const int rc = parse_advance(p);
    return rc < 0 ? rc : 1;
}

/* ---- nodes ---- */

static struct cel_node *parse_node(struct parser *p, enum cel_node_kind kind, uint32_t at)
{
    struct cel_node *n = hk_arena_zalloc(p->src->a, sizeof(*n));

    n->kind = kind;
    n->at = at;
    n->height = 1;
    return n;
}

/* Copies the operands into the node; refuses a tree that gets too high. */
static int parse_set_args(struct parser *p, struct cel_node *n, struct cel_node *const *args,
                          uint32_t len)
{
    n->args = hk_arena_array(p->src->a, len, sizeof(struct cel_node *));
    n->nargs = len;
    for (uint32_t i = 0; i < len; i++) {
        n->args[i] = args[i];
        n->height = HK_MAX(n->height, args[i]->height + 1);
    }
    return n->height > CEL_HEIGHT_MAX
               ? cel_issue(p->src, n->at, "expression recursion limit exceeded: %d", CEL_HEIGHT_MAX)
               : 0;
}

struct hk_str parse_qualified_name(const struct cel_node *n, struct hk_arena *a)
{
    if (n->kind == NODE_IDENT) {
        return n->name;
    }
    if (n->kind != NODE_SELECT || n->optional) {
        return (struct hk_str){0};
    }
    const struct hk_str front = parse_qualified_name(n->args[0], a);
    return front.s ? hk_str(hk_arena_printf(a, "%.*s.%.*s", HK_FMT(front), HK_FMT(n->name)))
                   : front;
}

/* ---- lists of expressions ---- */

/* An element or value, with "?" in front if it is optional. */
static int parse_maybe(struct parser *p, bool may, struct cel_node **ret)
{
    const uint32_t at = p->t.at;
    const int optional = may ? parse_accept(p, "?") : 0;
    int rc = optional < 0 ? optional : parse_expr(p, ret);

    if (rc == 0 && optional > 0) {
        struct cel_node *n = parse_node(p, NODE_MAYBE, at);
        rc = parse_set_args(p, n, ret, 1);
        *ret = n;
    }
    return rc;
}

/* Up to the closing bracket, which may follow a comma if `trailing`. */
static int parse_items(struct parser *p, const char *close, bool list, node_vec *out)
{
    while (!parse_at(p, close)) {
        struct cel_node *n = NULL;
        int rc = parse_maybe(p, list, &n);
        if (rc < 0) {
            return rc;
        }
        hk_vec_push(out, n);
        rc = parse_accept(p, ",");
        if (rc < 0) {
            return rc;
        }
        if (rc == 0 || (!list && parse_at(p, close))) {
            return rc == 0 ? parse_expect(p, close) : parse_unexpected(p, "an expression");
        }
    }
    return parse_advance(p);
}

/* The key of a map is an expression, that of a struct a name. */
static int parse_key(struct parser *p, bool named, struct cel_node **ret)
{
    if (!named) {
        return parse_expr(p, ret);
    }
    if (p->t.kind != LEX_IDENT) {
        return parse_unexpected(p, "the name of a field");
    }
    *ret = parse_node(p, NODE_LITERAL, p->t.at);
    (*ret)->value = cel_of_str(p->t.text);
    return parse_advance(p);
}

static int parse_entry(struct parser *p, bool named, node_vec *out)
{
    const uint32_t at = p->t.at;
    const int optional = parse_accept(p, "?");
    struct cel_node *key = NULL, *value = NULL;
    int rc = optional < 0 ? optional : parse_key(p, named, &key);

    if (rc == 0) {
        rc = parse_expect(p, ":");
    }
    if (rc == 0) {
        rc = parse_expr(p, &value);
    }
    if (rc == 0 && optional > 0) {
        struct cel_node *n = parse_node(p, NODE_MAYBE, at);
        rc = parse_set_args(p, n, &value, 1);
        value = n;
    }
    if (rc == 0) {
        hk_vec_push(out, key);
        hk_vec_push(out, value);
    }
    return rc;
}

/* Behind the opening brace. */
static int parse_entries(struct parser *p, bool named, node_vec *out)
{
    while (!parse_at(p, "}")) {
        int rc = parse_entry(p, named, out);
        if (rc == 0) {
            rc = parse_accept(p, ",");
        }
        if (rc < 0) {
            return rc;
        }
        if (rc == 0) {
            return parse_expect(p, "}");
        }
    }
    return parse_advance(p);
}

static int parse_braces(struct parser *p, struct cel_node *n)
{
    node_vec args = {0};
    int rc = parse_advance(p);

    if (rc == 0) {
        rc = parse_entries(p, n->kind == NODE_STRUCT, &args);
    }
    if (rc == 0) {
        rc = parse_set_args(p, n, args.at, args.len);
    }
    hk_vec_fini(&args);
    return rc;
}

/* ---- calls ---- */

/* At the opening parenthesis; target may be NULL. */
static int parse_call(struct parser *p, struct cel_node *target, struct hk_str name, uint32_t at,
                      struct cel_node **ret)
{
    struct cel_node *n = parse_node(p, NODE_CALL, at);
    node_vec args = {0};
    int rc;

    n->name = name;
    n->receiver = target != NULL;
    if (target) {
        hk_vec_push(&args, target);
    }
    rc = parse_advance(p);
    if (rc == 0) {
        rc = parse_items(p, ")", false, &args);
    }
    if (rc == 0) {
        rc = parse_set_args(p, n, args.at, args.len);
    }
    hk_vec_fini(&args);
    *ret = n;
    return rc < 0 ? rc : macro_expand(p->src, n);
}

static int parse_selection(struct parser *p, struct cel_node **n)
{
    const uint32_t at = p->t.at;
    int rc = parse_advance(p);
    const int optional = rc < 0 ? rc : parse_accept(p, "?");

    if (optional < 0) {
        return optional;
    }
    if (p->t.kind != LEX_IDENT) {
        return parse_unexpected(p, "the name of a field");
    }
    const struct hk_str name = p->t.text;
    rc = parse_advance(p);
    if (rc == 0 && optional == 0 && parse_at(p, "(")) {
        return parse_call(p, *n, name, p->t.at, n);
    }
    struct cel_node *select = parse_node(p, NODE_SELECT, at);
    select->name = name;
    select->optional = optional > 0;
    if (rc == 0) {
        rc = parse_set_args(p, select, n, 1);
    }
    *n = select;
    return rc;
}

static int parse_index(struct parser *p, struct cel_node **n)
{
    struct cel_node *index = parse_node(p, NODE_INDEX, p->t.at), *args[2] = {*n, NULL};
    int rc = parse_advance(p);
    const int optional = rc < 0 ? rc : parse_accept(p, "?");

    rc = optional < 0 ? optional : parse_expr(p, &args[1]);
    if (rc == 0) {
        rc = parse_expect(p, "]");
    }
    if (rc == 0) {
        rc = parse_set_args(p, index, args, 2);
    }
    index->optional = optional > 0;
    *n = index;
    return rc;
}

/* ---- primary expressions ---- */

static bool parse_is_reserved(struct hk_str word)
{
    static const char *const words[] = {
        "as", "break", "const", "continue", "else",      "for",    "function", "if",   "import",
        "in", "let",   "loop",  "package",  "namespace", "return", "var",      "void", "while"};

    for (size_t i = 0; i < HK_LEN(words); i++) {
        if (hk_str_is(word, words[i])) {
            return true;
        }
    }
    return false;
}

static int parse_literal(struct parser *p, struct cel_value v, struct cel_node **ret)
{
    *ret = parse_node(p, NODE_LITERAL, p->t.at);
    (*ret)->value = v;
    return parse_advance(p);
}

/* The lexer reads 2^63 as the smallest integer. */
static bool parse_is_least_int(const struct parser *p)
{
    return p->t.kind == LEX_LITERAL && p->t.value.kind == CEL_INT && p->t.value.i == INT64_MIN;
}

static int parse_word(struct parser *p, struct cel_node **ret)
{
    const struct hk_str name = p->t.text;
    const uint32_t at = p->t.at;

    if (hk_str_is(name, "true") || hk_str_is(name, "false")) {
        return parse_literal(p, cel_of_bool(name.n == 4), ret);
    }
    if (hk_str_is(name, "null")) {
        return parse_literal(p, cel_null(), ret);
    }
    if (parse_is_reserved(name)) {
        return cel_issue(p->src, at, "reserved identifier: %.*s", HK_FMT(name));
    }
    const int rc = parse_advance(p);
    if (rc == 0 && parse_at(p, "(")) {
        return parse_call(p, NULL, name, at, ret);
    }
    *ret = parse_node(p, NODE_IDENT, at);
    (*ret)->name = name;
    return rc;
}

static int parse_group(struct parser *p, struct cel_node **ret)
{
    int rc = parse_advance(p);

    if (rc == 0) {
        rc = parse_expr(p, ret);
    }
    return rc < 0 ? rc : parse_expect(p, ")");
}

static int parse_list(struct parser *p, struct cel_node **ret)
{
    node_vec items = {0};
    int rc;

    *ret = parse_node(p, NODE_LIST, p->t.at);
    rc = parse_advance(p);
    if (rc == 0) {
        rc = parse_items(p, "]", true, &items);
    }
    if (rc == 0) {
        rc = parse_set_args(p, *ret, items.at, items.len);
    }
    hk_vec_fini(&items);
    return rc;
}

static int parse_primary(struct parser *p, struct cel_node **ret)
{
    if (parse_is_least_int(p)) { /* 2^63 needs a minus: parse_minus */
        return cel_issue(p->src, p->t.at, "invalid int literal");
    }
    if (p->t.kind == LEX_LITERAL) {
        return parse_literal(p, p->t.value, ret);
    }
    if (parse_at(p, "(")) {
        return parse_group(p, ret);
    }
    if (parse_at(p, "[")) {
        return parse_list(p, ret);
    }
    if (parse_at(p, "{")) {
        *ret = parse_node(p, NODE_MAP, p->t.at);
        return parse_braces(p, *ret);
    }
    const int rc = parse_accept(p, "."); /* ".name" is the same as "name": there is one container */
    if (rc < 0) {
        return rc;
    }
    return p->t.kind == LEX_IDENT ? parse_word(p, ret) : parse_unexpected(p, "an expression");
}

/* "Object.spec{...}", where the expression so far is a name. */
static int parse_struct(struct parser *p, struct cel_node **n)
{
    const struct hk_str name = parse_qualified_name(*n, p->src->a);

    if (!name.s) {
        return parse_unexpected(p, "an operator");
    }
    *n = parse_node(p, NODE_STRUCT, p->t.at);
    (*n)->name = name;
    return parse_braces(p, *n);
}

static int parse_member(struct parser *p, struct cel_node **ret)
{
    int rc = parse_primary(p, ret);

    while (rc == 0) {
        if (parse_at(p, ".")) {
            rc = parse_selection(p, ret);
        } else if (parse_at(p, "[")) {
            rc = parse_index(p, ret);
        } else if (parse_at(p, "{")) {
            rc = parse_struct(p, ret);
        } else {
            break;
        }
    }
    return rc;
}

/* ---- operators ---- */

/* A minus in front of an integer belongs to it: only so can the smallest one be written. */
static bool parse_fold_minus(struct cel_node *n)
{
    if (n->kind != NODE_LITERAL || (n->value.kind != CEL_INT && n->value.kind != CEL_DOUBLE)) {
        return false;
    }
    if (n->value.kind == CEL_DOUBLE) {
        n->value.d = -n->value.d;
    } else {
        n->value.i = (int64_t)(0 - (uint64_t)n->value.i);
    }
    return true;
}

static int parse_unary(struct parser *p, struct cel_node **ret);

static int parse_minus(struct parser *p, struct cel_node **ret)
{
    const uint32_t at = p->t.at;
    struct cel_node *inner = NULL;
    int rc = parse_advance(p);

    if (rc == 0 && parse_is_least_int(p)) {
        return parse_literal(p, p->t.value, ret);
    }
    const bool literal = p->t.kind == LEX_LITERAL;
    if (rc == 0) {
        rc = parse_unary(p, &inner);
    }
    if (rc < 0) {
        return rc;
    }
    if (literal && parse_fold_minus(inner)) {
        *ret = inner;
        return 0;
    }
    *ret = parse_node(p, NODE_NEG, at);
    return parse_set_args(p, *ret, &inner, 1);
}

static int parse_unary(struct parser *p, struct cel_node **ret)
{
    const uint32_t at = p->t.at;
    struct cel_node *inner = NULL;
    int rc;

    if (!parse_at(p, "!") && !parse_at(p, "-")) {
        return parse_member(p, ret);
    }
    if (++p->depth > CEL_DEPTH_MAX) {
        return cel_issue(p->src, at, "expression recursion limit exceeded: %d", CEL_DEPTH_MAX);
    }
    if (parse_at(p, "-")) {
        rc = parse_minus(p, ret);
    } else {
        *ret = parse_node(p, NODE_NOT, at);
        rc = parse_advance(p);
        if (rc == 0) {
            rc = parse_unary(p, &inner);
        }
        if (rc == 0) {
            rc = parse_set_args(p, *ret, &inner, 1);
        }
    }
    p->depth--;
    return rc;
}

static const struct {
    const char *text;
    enum cel_op op;
    int precedence;
} binary_ops[] = {
    {"==", OP_EQ, 1}, {"!=", OP_NE, 1}, {"<", OP_LT, 1},  {"<=", OP_LE, 1},
    {">", OP_GT, 1},  {">=", OP_GE, 1}, {"+", OP_ADD, 2}, {"-", OP_SUB, 2},
    {"*", OP_MUL, 3}, {"/", OP_DIV, 3}, {"%", OP_MOD, 3},
};

/* The operator at this place; its precedence, or 0. */
static int parse_operator(const struct parser *p, enum cel_op *op)
{
    if (parse_at_word(p, "in")) {
        *op = OP_IN;
        return 1;
    }
    for (size_t i = 0; i < HK_LEN(binary_ops); i++) {
        if (parse_at(p, binary_ops[i].text)) {
            *op = binary_ops[i].op;
            return binary_ops[i].precedence;
        }
    }
    return 0;
}

static int parse_binary(struct parser *p, int least, struct cel_node **ret)
{
    int rc = least > 3 ? parse_unary(p, ret) : parse_binary(p, least + 1, ret);
    enum cel_op op = OP_IN; /* parse_operator says which */

    while (rc == 0 && least <= 3 && parse_operator(p, &op) == least) {
        struct cel_node *n = parse_node(p, NODE_BINARY, p->t.at), *args[2] = {*ret, NULL};
        n->op = op;
        rc = parse_advance(p);
        if (rc == 0) {
            rc = parse_binary(p, least + 1, &args[1]);
        }
        if (rc == 0) {
            rc = parse_set_args(p, n, args, 2);
        }
        *ret = n;
    }
    return rc;
}

/* Operands joined by && or ||, as one node. */
static int parse_logic(struct parser *p, bool either, struct cel_node **ret)
{
    const char *word = either ? "||" : "&&";
    const uint32_t at = p->t.at;
    node_vec args = {0};
    int rc, more;

    do {
        struct cel_node *n = NULL;
        rc = either ? parse_logic(p, false, &n) : parse_binary(p, 1, &n);
        if (rc == 0) {
            hk_vec_push(&args, n);
        }
        more = rc < 0 ? rc : parse_accept(p, word);
    } while (more > 0);
    if (more == 0 && args.len == 1) {
        *ret = args.at[0];
    } else if (more == 0) {
        *ret = parse_node(p, either ? NODE_OR : NODE_AND, at);
        more = parse_set_args(p, *ret, args.at, args.len);
    }
    hk_vec_fini(&args);
    return more;
}

static int parse_conditional(struct parser *p, struct cel_node **ret)
{
    struct cel_node *args[3] = {0};
    int rc = parse_logic(p, true, &args[0]);

    if (rc < 0 || !parse_at(p, "?")) {
        *ret = args[0];
        return rc;
    }
    *ret = parse_node(p, NODE_COND, p->t.at);
    rc = parse_advance(p);
    if (rc == 0) {
        rc = parse_logic(p, true, &args[1]);
    }
    if (rc == 0) {
        rc = parse_expect(p, ":");
    }
    if (rc == 0) {
        rc = parse_expr(p, &args[2]);
    }
    return rc < 0 ? rc : parse_set_args(p, *ret, args, 3);
}

static int parse_expr(struct parser *p, struct cel_node **ret)
{
    if (++p->depth > CEL_DEPTH_MAX) {
        return cel_issue(p->src, p->t.at, "expression recursion limit exceeded: %d", CEL_DEPTH_MAX);
    }
    const int rc = parse_conditional(p, ret);
    p->depth--;
    return rc;
}

int parse_expression(struct cel_source *src, struct cel_node **ret)
{
    struct parser p = {.src = src};
    int rc = parse_advance(&p);

    if (rc == 0) {
        rc = parse_expr(&p, ret);
    }
    if (rc == 0 && p.t.kind != LEX_END) {
        rc = parse_unexpected(&p, "an operator or the end");
    }
    return rc;
}
