// SPDX-License-Identifier: Apache-2.0
// Structs that expressions build: "Object{spec: Object.spec{...}}". Their fields have no declared
// types, but the name of each struct must be the path of the field that holds it.
#include "cel/cel_priv.h"

enum { STRUCT_VALUES_MAX = 1000000 }; /* the same value may be part of a result many times */

struct struct_check {
    struct hk_arena *a;
    struct hk_err *err;
    uint32_t left;
};

static int check_structs_below(struct struct_check *c, struct cel_value v, struct hk_str path);

static int check_struct_list(struct struct_check *c, const struct cel_list *l, struct hk_str path)
{
    for (uint32_t i = 0; !l->json && i < l->len; i++) {
        const int rc = check_structs_below(c, l->items[i], path);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int check_struct_name(struct struct_check *c, struct hk_str name, struct hk_str path)
{
    if (!path.s || hk_str_eq(name, path)) {
        return 0;
    }
    return hk_fail(c->err, HK_EINVAL,
                   "type mismatch: unexpected type name \"%.*s\", expected \"%.*s\", which matches "
                   "field name path from root Object type",
                   HK_FMT(hk_str_head(name, 128)), HK_FMT(hk_str_head(path, 128)));
}

/* The path of what is in a field: none for an operation of a patch, whose value may be any struct. */
static struct hk_str check_struct_path(struct struct_check *c, const struct cel_map *m,
                                       struct hk_str key)
{
    return hk_str_is(m->name, "JSONPatch")
               ? (struct hk_str){0}
               : hk_str(hk_arena_printf(c->a, "%.*s.%.*s", HK_FMT(m->name), HK_FMT(key)));
}

/* Fields of a struct lengthen the path, keys of a plain map do not. */
static int check_struct_fields(struct struct_check *c, const struct cel_map *m, struct hk_str path)
{
    int rc = m->name.s ? check_struct_name(c, m->name, path) : 0;

    for (uint32_t i = 0; rc == 0 && !m->json && i < m->len; i++) {
        const struct cel_entry *e = &m->entries[i];
        rc = check_structs_below(c, e->value, m->name.s ? check_struct_path(c, m, e->key.s) : path);
    }
    return rc;
}

static int check_structs_below(struct struct_check *c, struct cel_value v, struct hk_str path)
{
    if (c->left-- == 0) {
        c->left = 0;
        return hk_fail(c->err, HK_ELIMIT, "more than %d values", STRUCT_VALUES_MAX);
    }
    return v.kind == CEL_LIST  ? check_struct_list(c, v.list, path)
           : v.kind == CEL_MAP ? check_struct_fields(c, v.map, path)
                               : 0;
}

int cel_check_structs(struct cel_value v, struct hk_arena *a, struct hk_err *err)
{
    struct struct_check c = {a, err, STRUCT_VALUES_MAX};

    return check_structs_below(&c, v, (struct hk_str){0});
}
