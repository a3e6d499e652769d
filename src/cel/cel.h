// SPDX-License-Identifier: Apache-2.0
// CEL, the Common Expression Language, with the options and libraries that Kubernetes enables: an
// expression is compiled once into a program, which is then evaluated over JSON values.
//
// Differences from Kubernetes: costs are counted at run time only, there is no estimate at compile
// time; the checker is gradual, a value without a declared type may be used as anything.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/quantity.h"

/* Kinds of values; CEL_DYN and CEL_OBJECT are kinds of types only. */
enum cel_kind {
    CEL_DYN, /* any; the value zero, so that a zeroed type is dyn */
    CEL_NULL,
    CEL_BOOL,
    CEL_INT,
    CEL_UINT,
    CEL_DOUBLE,
    CEL_STRING,
    CEL_BYTES,
    CEL_LIST,
    CEL_MAP,
    CEL_OBJECT, /* a map with declared fields */
    CEL_TIMESTAMP,
    CEL_DURATION,
    CEL_TYPE,
    CEL_OPTIONAL,
    CEL_IP,
    CEL_CIDR,
    CEL_QUANTITY,
    CEL_SEMVER,
    CEL_URL,
    CEL_FORMAT,
    CEL_NATIVE, /* of the caller */
    CEL_NKINDS,
};

/* How lists compare and merge: x-kubernetes-list-type. */
enum cel_list_type { CEL_LIST_ATOMIC, CEL_LIST_SET, CEL_LIST_MAP };

struct cel_field {
    struct hk_str name; /* in expressions, escaped: see cel_escape */
    struct hk_str key;  /* in JSON */
    const struct cel_type *type;
};

/* A type, made by the caller, usually from a schema; it must outlive the values made with it. */
struct cel_type {
    enum cel_kind kind;
    const struct cel_type *elem;    /* of a list, map (its values) or optional; NULL: dyn */
    const struct cel_field *fields; /* of an object */
    uint32_t nfields;
    bool date; /* a timestamp that is a date in JSON */
    enum cel_list_type list;
    const struct json *keys; /* of CEL_LIST_MAP: names of the fields that identify an element */
    struct hk_str name;      /* of a map that is a struct, such as "Object.spec" */
};

/* The type of that kind without details. */
const struct cel_type *cel_type_of(enum cel_kind kind);

/* Seconds since 1970, and nanoseconds from 0 to 999999999. */
struct cel_time {
    int64_t s;
    int32_t ns;
};

struct cel_value;
struct cel_run;

/* An object of the caller: the authorizer, or variables computed on demand. Both calls return 0 or
 * a negative code with the reason in err. */
struct cel_native {
    const char *type;
    void *ctx;
    /* -HK_ENOTFOUND: no such field. May be NULL. */
    int (*field)(void *ctx, struct hk_str name, struct hk_arena *a, struct cel_value *ret,
                 struct hk_err *err);
    /* -HK_EUNSUP: no such method. May be NULL. */
    int (*call)(void *ctx, struct hk_str method, const struct cel_value *args, uint32_t nargs,
                struct hk_arena *a, struct cel_value *ret, struct hk_err *err);
};

/* A value. Everything behind pointers lives in the arena of the evaluation or in the JSON that the
 * value was made from. */
struct cel_value {
    enum cel_kind kind;
    union {
        bool b;
        int64_t i; /* int; duration in nanoseconds; of a type value its enum cel_kind */
        uint64_t u;
        double d;
        struct hk_str s; /* string, bytes; the name of a format */
        struct cel_time t;
        const struct cel_list *list;
        const struct cel_map *map;
        const struct cel_value *inner; /* of an optional; NULL: none */
        const struct cel_net *net;     /* ip, cidr */
        const struct quantity *q;
        const struct cel_semver *semver;
        const struct cel_url *url;
        const struct cel_native *native;
    };
};

struct cel_var {
    struct hk_str name;          /* may contain dots */
    const struct cel_type *type; /* NULL: dyn */
};

/* What an expression may refer to. */
struct cel_env {
    const struct cel_var *vars;
    uint32_t nvars;
    enum cel_kind result; /* CEL_DYN: any */
    /* Names of structs that the expression may build, such as "Object"; also "Object.spec". NULL or
     * ended by NULL. */
    const char *const *structs;
};

enum {
    CEL_TEXT_MAX = 64 << 10,
    CEL_CALL_LIMIT = 1000000, /* of one evaluation: Kubernetes' PerCallLimit */
    CEL_BUDGET = 10000000,    /* of all in a request: Kubernetes' RuntimeCELCostBudget */
};

struct cel_program;

/* Errors have the form that cel-go gives them, with the line and a caret:
 * "ERROR: <input>:1:6: undefined field 'x'\n | self.x > 0\n | .....^". Several are joined by line
 * breaks. A program is immutable and may be shared by threads; the text is copied.
 * -HK_EUNSUP: its value is not of the wanted kind. */
int cel_compile(struct hk_str text, const struct cel_env *env, struct cel_program **ret,
                struct hk_err *err) HK_CHECKED;
/* Takes NULL. */
void cel_program_free(struct cel_program *p);
/* Whether the expression refers to the variable of that index. */
bool cel_program_uses(const struct cel_program *p, uint32_t var);
/* The type of its value, as far as it is known before the evaluation. Lives as long as the program
 * and the types of its environment. */
const struct cel_type *cel_program_type(const struct cel_program *p);
/* The height of its tree, which bounds the stack that an evaluation needs. */
uint32_t cel_program_height(const struct cel_program *p);

/* Evaluates over the values of the environment's variables, in its order. *budget, if not NULL, is
 * reduced by the cost; the evaluation ends when it is used up.
 * -HK_EINVAL: an error of the expression, such as "no such key: x"; -HK_ELIMIT: too expensive or
 * too deep. */
int cel_eval(const struct cel_program *p, const struct cel_value *vars, uint64_t *budget,
             struct hk_arena *a, struct cel_value *ret, struct hk_err *err) HK_CHECKED;

/* A view of the JSON as a value of the type (NULL: dyn). JSON that does not fit the type is
 * given its natural one. The JSON must outlive the value. */
struct cel_value cel_of_json(const struct json *v, const struct cel_type *type, struct hk_arena *a);
struct cel_value cel_of_str(struct hk_str s);
struct cel_value cel_of_bool(bool b);
struct cel_value cel_of_int(int64_t i);
struct cel_value cel_of_native(const struct cel_native *native);
struct cel_value cel_none(void);
/* An optional that holds the value. */
struct cel_value cel_some(struct cel_value v, struct hk_arena *a);
/* Fails for values that have no form in JSON, and for more than a million of them. */
int cel_to_json(struct cel_value v, struct hk_arena *a, struct json *ret,
                struct hk_err *err) HK_CHECKED;

/* Checks that structs inside of the value have the names of the fields that hold them: the struct in
 * field "spec" of an Object is an Object.spec. A struct at the top may have any name. */
int cel_check_structs(struct cel_value v, struct hk_arena *a, struct hk_err *err) HK_CHECKED;

/* Writes the name by which expressions refer to a property: "a-b" is "a__dash__b". False if no
 * expression can refer to it. */
bool cel_escape(struct hk_str property, struct hk_buf *out);
