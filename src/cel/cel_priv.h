// SPDX-License-Identifier: Apache-2.0
// Inside of the CEL room: the syntax tree, values, functions and the state of an evaluation.
//
//   text -> lex.c -> parse.c (macro.c) -> check.c -> program -> eval.c -> op.c, func.c -> lib_*.c
#pragma once

#include "base/vec.h"
#include "cel/cel.h"
#include "codec/re2.h"

/* ---- syntax tree ---- */

enum cel_node_kind {
    NODE_LITERAL,
    NODE_IDENT,
    NODE_SELECT, /* args[0].name */
    NODE_HAS,    /* has(args[0].name) */
    NODE_INDEX,  /* args[0][args[1]] */
    NODE_CALL,   /* name(args) or, as a receiver call, args[0].name(args[1], ...) */
    NODE_LIST,
    NODE_MAP,    /* args: key, value, key, value, ... */
    NODE_STRUCT, /* name{args}; keys are string literals */
    NODE_MAYBE,  /* "?" in front of an element or value: args[0] is an optional */
    NODE_NOT,
    NODE_NEG,
    NODE_AND, /* any number of args */
    NODE_OR,
    NODE_COND,
    NODE_BINARY,
    NODE_MACRO, /* args: range, [filter,] body */
    NODE_BIND,  /* cel.bind(name, args[0], args[1]) */
};

enum cel_op {
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
};

enum cel_macro {
    MACRO_ALL,
    MACRO_EXISTS,
    MACRO_EXISTS_ONE,
    MACRO_MAP,
    MACRO_FILTER,
    MACRO_TRANSFORM_LIST,
    MACRO_TRANSFORM_MAP,
    MACRO_TRANSFORM_ENTRY,
    MACRO_SORT_BY,
    MACRO_OPT_MAP,
    MACRO_OPT_FLAT_MAP,
};

struct cel_func;

struct cel_node {
    enum cel_node_kind kind;
    uint8_t op;           /* enum cel_op or enum cel_macro */
    uint8_t nvars;        /* of a macro: 1 or 2 */
    bool optional;        /* "?." and "[?" */
    bool receiver;        /* of a call */
    uint32_t at;          /* byte offset in the text */
    uint32_t height;      /* 1 for a leaf */
    struct hk_str name;   /* identifier, field, function, first variable */
    struct hk_str second; /* second variable of a macro */
    struct cel_node **args;
    uint32_t nargs;
    struct cel_value value; /* of a literal */
    /* Set by the checker. */
    bool local;
    uint32_t slot; /* of an identifier, in locals or in variables; of a macro its first local */
    const struct cel_func **funcs; /* of a call: the overloads that may fit */
    uint32_t nfuncs;
    const struct re2 *re; /* of a call with a constant pattern */
};

enum {
    CEL_DEPTH_MAX = 250,  /* nested parts of an expression */
    CEL_HEIGHT_MAX = 600, /* of the tree; chains such as a + b + c are deep but not nested */
    CEL_ISSUES_MAX = 10,
};

/* Where a compilation keeps its results and problems. */
struct cel_source {
    struct hk_str text;
    struct hk_arena *a;
    struct hk_buf issues;
    uint32_t nissues;
};

/* Adds a problem; returns -HK_EINVAL. */
int cel_issue(struct cel_source *src, uint32_t at, const char *fmt, ...) HK_PRINTF(3, 4);

struct cel_program {
    struct hk_arena arena;
    struct cel_node *root;
    const struct cel_type *type;
    uint32_t nlocals;
    uint64_t used; /* bit per variable; the last bit also stands for those beyond */
    HK_VEC(struct re2 *) patterns;
};

/* ---- tokens ---- */

enum lex_kind { LEX_END, LEX_IDENT, LEX_LITERAL, LEX_PUNCT };

struct lex_token {
    enum lex_kind kind;
    uint32_t at;
    struct hk_str text;
    struct cel_value value; /* of a literal */
};

/* Reads the token at *at and moves behind it. */
int lex_next(struct cel_source *src, uint32_t *at, struct lex_token *ret);

/* ---- parser ---- */

int parse_expression(struct cel_source *src, struct cel_node **ret);
/* Turns a call into a macro, if it is one. */
int macro_expand(struct cel_source *src, struct cel_node *call);
/* The name that identifiers joined by dots spell, such as "object.spec"; .s is NULL for anything
 * else. */
struct hk_str parse_qualified_name(const struct cel_node *n, struct hk_arena *a);

/* ---- types ---- */

/* "list(int)", as cel-go prints it. */
char *type_text(const struct cel_type *t, struct hk_arena *a);
/* "int", "net.IP": the name of a kind, which is also the identifier of the type. */
const char *type_kind_name(enum cel_kind kind);
/* The kind that an identifier such as "int" stands for, or -1. */
int type_kind_named(struct hk_str name);
/* Whether a value of one type may be used where the other is expected; dyn fits everything. */
bool type_fits(const struct cel_type *a, const struct cel_type *b);
/* The type of values of either. */
const struct cel_type *type_join(const struct cel_type *a, const struct cel_type *b);
struct cel_type *type_with(enum cel_kind kind, const struct cel_type *elem, struct hk_arena *a);
const struct cel_type *type_elem(const struct cel_type *t);
const struct cel_field *type_field(const struct cel_type *t, struct hk_str name);
const struct cel_field *type_field_of_key(const struct cel_type *t, struct hk_str key);

int cel_check_program(struct cel_source *src, const struct cel_env *env, struct cel_program *p);

/* ---- values ---- */

/* From JSON, with elements converted on demand, or built by the expression. */
struct cel_list {
    uint32_t len;
    const struct json *json;
    const struct cel_type *type; /* of the list; may be NULL */
    const struct cel_value *items;
};

struct cel_entry {
    struct cel_value key, value;
};

struct cel_map {
    uint32_t len;
    const struct json *json;
    const struct cel_type *type; /* of the map or object; may be NULL */
    struct hk_str name;          /* of a struct; else .s is NULL */
    const struct cel_entry *entries;
};

/* An address of 4 or 16 bytes, and the length of its prefix: the whole address, except for a CIDR. */
struct cel_net {
    uint8_t addr[16];
    uint8_t size;
    uint8_t bits;
    bool cidr;
};

struct cel_semver {
    uint64_t major, minor, patch;
    struct hk_str pre, build;
};

struct cel_url {
    struct hk_str scheme, host, path, query;
};

struct cel_value cel_null(void);
struct cel_value cel_of_uint(uint64_t u);
struct cel_value cel_of_double(double d);
struct cel_value cel_of_bytes(struct hk_str s);
struct cel_value cel_of_kind(enum cel_kind kind);
struct cel_value cel_of_duration(int64_t ns);
struct cel_value cel_of_list(const struct cel_value *items, uint32_t len, struct hk_arena *a);
struct cel_value cel_of_map(const struct cel_entry *entries, uint32_t len, struct hk_arena *a);
struct cel_value cel_of_struct(struct hk_str name, const struct cel_entry *fields, uint32_t len,
                               struct hk_arena *a);
struct cel_value cel_list_at(const struct cel_list *l, uint32_t i, struct hk_arena *a);
struct cel_entry cel_map_at(const struct cel_map *m, uint32_t i, struct hk_arena *a);
uint32_t cel_value_len(struct cel_value v); /* of a list or map */

/* ---- evaluation ---- */

struct cel_run {
    const struct cel_program *p;
    const struct cel_value *vars;
    struct cel_value *locals;
    struct hk_arena *a;
    struct hk_err *err;
    uint64_t left;        /* cost that may still be spent */
    const struct re2 *re; /* of the call under way, if its pattern is constant */
    struct hk_str name;   /* of the function under way */
};

/* Spends cost; -HK_ELIMIT when there is none left. */
int cel_spend(struct cel_run *r, uint64_t cost);
/* A tenth of the bytes, rounded up: what cel-go charges for passing over a text. */
int cel_spend_text(struct cel_run *r, size_t bytes);
/* An error of the expression. */
int cel_error(struct cel_run *r, const char *fmt, ...) HK_PRINTF(2, 3);
int cel_no_overload(struct cel_run *r);

bool cel_is_number(struct cel_value v);
/* -1, 0, 1, or 2 when one is not a number; exact for all pairs of number kinds. */
int cel_compare_numbers(struct cel_value a, struct cel_value b);
/* Less, equal, greater; fails for kinds that have no order. */
int cel_compare(struct cel_run *r, struct cel_value a, struct cel_value b, int *ret);
int cel_equal(struct cel_run *r, struct cel_value a, struct cel_value b, bool *ret);
int cel_find_key(struct cel_run *r, const struct cel_map *m, struct cel_value key, bool *found,
                 struct cel_value *ret);
int cel_operate(struct cel_run *r, enum cel_op op, struct cel_value a, struct cel_value b,
                struct cel_value *ret);
/* The elements of a list in the order of their keys, of which there is one per element. */
int cel_sort(struct cel_run *r, const struct cel_list *l, const struct cel_value *keys,
             struct cel_value *ret);
int cel_negate(struct cel_run *r, struct cel_value v, struct cel_value *ret);
int cel_call(struct cel_run *r, const struct cel_node *n, const struct cel_value *args,
             struct cel_value *ret);

/* ---- functions ---- */

enum cel_cost {
    COST_ONE,
    COST_TEXT,    /* passes over the first argument */
    COST_SECOND,  /* passes over the second argument */
    COST_PRODUCT, /* may pass over the first argument for each byte of the second */
    COST_REGEX,
    COST_NAMED, /* matches the second argument against a pattern of about a hundred bytes */
    COST_ITEMS, /* visits each element of the first argument */
    COST_CHECK, /* asks the authorizer */
};

/* One overload. Its signature is [receiver "."] parameters ":" result, one letter each:
 *   b bool  i int  u uint  d double  s string  y bytes  n null  L list  M map  t timestamp
 *   D duration  T type  o optional  I ip  C cidr  q quantity  v semver  U url  F format
 *   N native  * any
 * and of results only: = the type of the first argument, e its element, S list of strings,
 *   Y list of ints, O optional of the first argument, P optional list of strings. */
struct cel_func {
    const char *name;
    const char *sig;
    int (*call)(struct cel_run *r, const struct cel_value *v, uint32_t n, struct cel_value *ret);
    enum cel_cost cost;
};

struct cel_lib {
    const struct cel_func *funcs;
    size_t len;
};

/* The overloads of that name and shape. Returns their number, or -1 if no function has the name. */
int func_candidates(struct hk_str name, bool receiver, uint32_t nargs, struct hk_arena *a,
                    const struct cel_func ***ret);
bool func_is_global(struct hk_str name);
/* The letter of the i-th argument, the receiver first; its result letter. */
char func_param(const struct cel_func *f, uint32_t i);
char func_result(const struct cel_func *f);
bool func_letter_fits(char letter, enum cel_kind kind);
enum cel_kind func_letter_kind(char letter);

extern const struct cel_lib cel_lib_core, cel_lib_convert, cel_lib_time, cel_lib_optional,
    cel_lib_strings, cel_lib_format, cel_lib_lists, cel_lib_sets, cel_lib_regex, cel_lib_url,
    cel_lib_net, cel_lib_quantity, cel_lib_semver, cel_lib_named, cel_lib_base64, cel_lib_authz,
    cel_lib_patch;

/* ---- helpers of libraries ---- */

/* Decodes one character; invalid bytes count as one character U+FFFD of one byte. */
uint32_t text_decode(struct hk_str s, size_t at, size_t *len);
size_t text_count(struct hk_str s);
/* Appends and spends cost, so that no result is larger than its cost allows. */
int text_add(struct cel_run *r, struct hk_buf *out, struct hk_str s);
struct cel_value text_value(const struct hk_buf *out, struct hk_arena *a);

int cel_time_parse(struct hk_str s, struct cel_time *ret);
bool cel_date_parse(struct hk_str s, struct cel_time *ret);
void cel_time_write(struct cel_time t, struct hk_buf *out);
/* "3600.5s", as CEL prints durations. */
void cel_duration_write(int64_t ns, struct hk_buf *out);
bool cel_duration_parse(struct hk_str s, int64_t *ret_ns);
/* The shortest text that reads back as the same double, as Go's %v. */
void cel_double_write(double d, struct hk_buf *out);
bool cel_time_in_range(int64_t s);
void cel_net_write(const struct cel_net *n, struct hk_buf *out);
int semver_compare(const struct cel_semver *a, const struct cel_semver *b);
bool url_is_valid(struct hk_str s, struct hk_arena *a);
void url_write(const struct cel_url *u, struct hk_buf *out);
/* Whether the second argument is a regular expression. */
bool func_has_pattern(const struct cel_func *f);
