// SPDX-License-Identifier: Apache-2.0
// Sets of fields for server-side apply. A set is a trie in the format of managedFields in
// Kubernetes, so it is stored without conversion:
//
//   "f:name"        a member of an object
//   "k:{...}"       the element of a list with these keys; "." inside: the element itself
//   "v:..."         the element of a list of plain values
//
// A leaf is a field. Atomic maps and lists without keys are single fields.
#include "api/type.h"
#include "store/rest_priv.h"

enum list_form { LIST_ATOMIC, LIST_SET, LIST_MAP };

/* ---- shapes ---- */

struct fields_topo fields_root(const struct rest_kind *k)
{
    return (struct fields_topo){
        .type = api_type_of(k->flags & REST_CUSTOM ? NULL : k->kind),
        .schema = k->schema,
    };
}

struct fields_topo fields_of_kind(const struct api_kind *kind)
{
    return (struct fields_topo){.type = api_type_of(kind)};
}

static struct fields_topo topo_member(struct fields_topo t, struct hk_str key)
{
    struct fields_topo m = {0};

    if (t.field && (t.field->flags & API_MAP)) {
        m.type = t.field->type;
    } else if (t.type) {
        m.field = api_type_name(t.type, key);
        m.type = m.field ? m.field->type : NULL;
    }
    m.schema = json_get_str(json_get(t.schema, "properties"), key);
    if (!m.schema) {
        m.schema = json_get(t.schema, "additionalProperties");
    }
    return m;
}

static struct fields_topo topo_element(struct fields_topo t)
{
    return (struct fields_topo){
        .type = t.field ? t.field->type : NULL,
        .schema = json_get(t.schema, "items"),
    };
}

/* Kubernetes' types with structType=atomic: one field for their owner. */
static bool is_atomic_type(const struct api_type *type)
{
    static const char *const names[] = {
        "ConfigMapKeySelector",
        "CrossVersionObjectReference",
        "FileKeySelector",
        "LabelSelector",
        "LocalObjectReference",
        "MatchResources",
        "NodeSelector",
        "NodeSelectorTerm",
        "ObjectFieldSelector",
        "ObjectReference",
        "OwnerReference",
        "ParamKind",
        "ParamRef",
        "ResourceFieldSelector",
        "RoleRef",
        "ScopeSelector",
        "SecretKeySelector",
        "SecretReference",
        "ServiceBackendPort",
        "TypedLocalObjectReference",
    };

    for (size_t i = 0; type && i < HK_LEN(names); i++) {
        if (!strcmp(type->name, names[i])) {
            return true;
        }
    }
    return false;
}

static bool is_atomic_map(struct fields_topo t)
{
    const struct json *form = json_get(t.schema, "x-kubernetes-map-type");

    if (t.field && t.field->flags & API_REPLACE) {
        return true;
    }
    return (is_atomic_type(t.type) && !(t.field && t.field->flags & API_MAP)) ||
           hk_str_is(json_str(form, HK_STR("")), "atomic");
}

static enum list_form list_form(struct fields_topo t)
{
    const struct hk_str form =
        json_str(json_get(t.schema, "x-kubernetes-list-type"), HK_STR("atomic"));

    if (t.field && t.field->merge_key) {
        return LIST_MAP;
    }
    if (t.field && (t.field->flags & API_SET)) {
        return LIST_SET;
    }
    return hk_str_is(form, "map") ? LIST_MAP : hk_str_is(form, "set") ? LIST_SET : LIST_ATOMIC;
}

static void key_add(struct json *keys, const struct json *v, struct hk_str name, struct hk_arena *a)
{
    const struct json *part = json_get_str(v, name);

    if (part) {
        json_put(keys, a, name, *part);
    }
}

static struct hk_str edge(const char *kind, const struct json *v, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_adds(&text, kind);
    json_write(v, &text);
    return hk_arena_str(a, hk_buf_str(&text));
}

/* The branch name of a list element. */
static struct hk_str element_edge(struct fields_topo t, enum list_form form, const struct json *v,
                                  struct hk_arena *a)
{
    const struct json *names = json_get(t.schema, "x-kubernetes-list-map-keys");
    struct json keys = json_make_object();

    if (form == LIST_SET) {
        return edge("v:", v, a);
    }
    if (t.field && t.field->merge_key) {
        key_add(&keys, v, hk_str(t.field->merge_key), a);
    }
    for (uint32_t i = 0; json_is(names, JSON_ARRAY) && i < names->len; i++) {
        key_add(&keys, v, json_str(&names->items[i], HK_STR("")), a);
    }
    return edge("k:", &keys, a);
}

static bool element_is(const struct json *v, const struct json *keys)
{
    for (uint32_t i = 0; i < keys->len; i++) {
        const struct json *part = json_get_str(v, keys->members[i].key);
        if (!part || !json_equal(part, &keys->members[i].value)) {
            return false;
        }
    }
    return true;
}

/* The index of the branch's element in the list, or HK_NONE. */
static uint32_t element_find(const struct json *list, struct hk_str branch, struct hk_arena *a)
{
    const struct hk_str text = {branch.s + 2, branch.n - 2};
    struct json want;

    if (!json_is(list, JSON_ARRAY) || json_parse(text, 0, a, &want, NULL) < 0) {
        return HK_NONE;
    }
    for (uint32_t i = 0; i < list->len; i++) {
        if (branch.s[0] == 'v' ? json_equal(&list->items[i], &want)
                               : element_is(&list->items[i], &want)) {
            return i;
        }
    }
    return HK_NONE;
}

static const struct json *rest_fields_find_branch(const struct json *v, struct hk_str branch,
                                                  struct hk_arena *a)
{
    if (hk_str_starts(branch, "f:")) {
        return json_get_str(v, (struct hk_str){branch.s + 2, branch.n - 2});
    }
    const uint32_t i = branch.n > 2 ? element_find(v, branch, a) : HK_NONE;
    return i == HK_NONE ? NULL : &v->items[i];
}

/* ---- sets ---- */

static struct json *rest_fields_add_branch(struct json *set, struct hk_str branch,
                                           struct hk_arena *a)
{
    const struct json *had = json_get_str(set, branch);

    return json_put(set, a, branch, had ? *had : json_make_object());
}

static struct hk_str member_edge(struct hk_str key, struct hk_arena *a)
{
    return hk_str(hk_arena_printf(a, "f:%.*s", HK_FMT(key)));
}

static void rest_fields_collect_set(struct fields_topo t, const struct json *v, struct json *set,
                                    struct hk_arena *a)
{
    const enum list_form form = v->type == JSON_ARRAY ? list_form(t) : LIST_ATOMIC;

    for (uint32_t i = 0; v->type == JSON_OBJECT && !is_atomic_map(t) && i < v->len; i++) {
        const struct json_member *m = &v->members[i];
        rest_fields_collect_set(topo_member(t, m->key), &m->value,
                                rest_fields_add_branch(set, member_edge(m->key, a), a), a);
    }
    for (uint32_t i = 0; form != LIST_ATOMIC && i < v->len; i++) {
        struct json *branch =
            rest_fields_add_branch(set, element_edge(t, form, &v->items[i], a), a);
        if (form == LIST_MAP && !is_atomic_map(topo_element(t))) {
            rest_fields_add_branch(branch, HK_STR("."), a);
            rest_fields_collect_set(topo_element(t), &v->items[i], branch, a);
        }
    }
}

/* Removes fields without an owner: the object's identity and fields that the server sets. */
static void rest_fields_remove_server_fields(struct json *set, struct hk_arena *a)
{
    static const char *const server[] = {
        "f:name",     "f:namespace",  "f:uid",           "f:creationTimestamp",
        "f:selfLink", "f:generation", "f:managedFields", "f:resourceVersion",
    };
    const struct json *meta = json_get(set, "f:metadata");

    json_del(set, "f:apiVersion");
    json_del(set, "f:kind");
    if (!meta) {
        return;
    }
    struct json *edit = rest_fields_add_branch(set, HK_STR("f:metadata"), a);
    for (size_t i = 0; i < HK_LEN(server); i++) {
        json_del(edit, server[i]);
    }
    if (edit->len == 0) {
        json_del(set, "f:metadata");
    }
}

struct json fields_of(struct fields_topo t, const struct json *v, struct hk_arena *a)
{
    struct json set = json_make_object();

    rest_fields_collect_set(t, v, &set, a);
    rest_fields_remove_server_fields(&set, a);
    return set;
}

struct json fields_union(const struct json *x, const struct json *y, struct hk_arena *a)
{
    struct json set = json_clone(x, a);

    for (uint32_t i = 0; i < y->len; i++) {
        const struct json_member *m = &y->members[i];
        const struct json *had = json_get_str(&set, m->key);
        json_put(&set, a, m->key, had ? fields_union(had, &m->value, a) : m->value);
    }
    return set;
}

struct json fields_minus(const struct json *x, const struct json *y, struct hk_arena *a)
{
    struct json set = json_make_object();

    y = json_index(y, a);
    for (uint32_t i = 0; i < x->len; i++) {
        const struct json_member *m = &x->members[i];
        const struct json *other = json_get_str(y, m->key);
        if (!other || (m->value.len > 0 && other->len == 0)) {
            json_put(&set, a, m->key, m->value);
        } else if (m->value.len > 0) {
            const struct json left = fields_minus(&m->value, other, a);
            if (left.len > 0) {
                json_put(&set, a, m->key, left);
            }
        }
    }
    return set;
}

/* Whether one side names an empty map or list, and the other owns fields in it: they agree. */
static bool is_empty_holder(const struct json *set, const struct json *other,
                            const struct json *value)
{
    return set->len == 0 && other->len > 0 && value && value->len == 0 &&
           (value->type == JSON_OBJECT || value->type == JSON_ARRAY);
}

struct json fields_dispute(const struct json *x, const struct json *y, const struct json *v,
                           const struct json *w, struct hk_arena *a)
{
    struct json set = json_make_object();

    y = json_index(y, a);
    v = json_index(v, a);
    w = json_index(w, a);
    for (uint32_t i = 0; i < x->len; i++) {
        const struct json_member *m = &x->members[i];
        const struct json *other = json_get_str(y, m->key);
        if (!other || hk_str_is(m->key, ".")) {
            continue;
        }
        const struct json *one = rest_fields_find_branch(v, m->key, a);
        const struct json *two = rest_fields_find_branch(w, m->key, a);
        if (m->value.len > 0 && other->len > 0) {
            const struct json sub = fields_dispute(&m->value, other, one, two, a);
            if (sub.len > 0) {
                json_put(&set, a, m->key, sub);
            }
        } else if (!is_empty_holder(&m->value, other, two) &&
                   (!one || !two || !json_equal(one, two))) {
            json_put(&set, a, m->key, json_make_object());
        }
    }
    return set;
}

/* ---- comparing two states ---- */

struct diff {
    struct json *changed, *gone;
    struct hk_arena *mem;
};

static void diff_values(struct fields_topo t, const struct json *a, const struct json *b,
                        struct diff d);

/* Adds a branch that one side lacks. */
static void add_branch(struct json *set, struct fields_topo t, struct hk_str branch,
                       const struct json *v, struct hk_arena *mem)
{
    struct json all = json_make_object();

    rest_fields_collect_set(t, v, &all, mem);
    json_put(set, mem, branch, all);
}

/* Compares one branch of b; a is NULL where a lacks the branch. */
static void diff_branch(struct fields_topo t, struct hk_str branch, const struct json *a,
                        const struct json *b, struct diff d)
{
    struct json changed = json_make_object();
    struct json gone = json_make_object();

    if (!a) {
        add_branch(d.changed, t, branch, b, d.mem);
        return;
    }
    if (json_equal(a, b)) {
        return;
    }
    diff_values(t, a, b, (struct diff){&changed, &gone, d.mem});
    if (changed.len > 0 || gone.len == 0) {
        json_put(d.changed, d.mem, branch, changed);
    }
    if (gone.len > 0) {
        json_put(d.gone, d.mem, branch, gone);
    }
}

static void diff_lists(struct fields_topo t, enum list_form form, const struct json *a,
                       const struct json *b, struct diff d)
{
    for (uint32_t i = 0; i < b->len; i++) {
        const struct hk_str branch = element_edge(t, form, &b->items[i], d.mem);
        diff_branch(topo_element(t), branch, rest_fields_find_branch(a, branch, d.mem),
                    &b->items[i], d);
    }
    for (uint32_t i = 0; i < a->len; i++) {
        const struct hk_str branch = element_edge(t, form, &a->items[i], d.mem);
        if (!rest_fields_find_branch(b, branch, d.mem)) {
            add_branch(d.gone, topo_element(t), branch, &a->items[i], d.mem);
        }
    }
}

static void diff_values(struct fields_topo t, const struct json *a, const struct json *b,
                        struct diff d)
{
    const enum list_form form = b->type == JSON_ARRAY ? list_form(t) : LIST_ATOMIC;

    if (a->type != b->type) {
        return;
    }
    a = json_index(a, d.mem);
    b = json_index(b, d.mem);
    if (form != LIST_ATOMIC) {
        diff_lists(t, form, a, b, d);
    }
    for (uint32_t i = 0; b->type == JSON_OBJECT && !is_atomic_map(t) && i < b->len; i++) {
        const struct json_member *m = &b->members[i];
        diff_branch(topo_member(t, m->key), member_edge(m->key, d.mem), json_get_str(a, m->key),
                    &m->value, d);
    }
    for (uint32_t i = 0; b->type == JSON_OBJECT && !is_atomic_map(t) && i < a->len; i++) {
        const struct json_member *m = &a->members[i];
        if (!json_get_str(b, m->key)) {
            add_branch(d.gone, topo_member(t, m->key), member_edge(m->key, d.mem), &m->value,
                       d.mem);
        }
    }
}

void fields_diff(struct fields_topo t, const struct json *a, const struct json *b,
                 struct json *ret_changed, struct json *ret_gone, struct hk_arena *mem)
{
    *ret_changed = json_make_object();
    *ret_gone = json_make_object();
    diff_values(t, a, b, (struct diff){ret_changed, ret_gone, mem});
    rest_fields_remove_server_fields(ret_changed, mem);
    rest_fields_remove_server_fields(ret_gone, mem);
}

/* ---- changing objects ---- */

static void merge_lists(struct fields_topo t, enum list_form form, struct json *target,
                        const struct json *v, struct hk_arena *a)
{
    for (uint32_t i = 0; i < v->len; i++) {
        const struct hk_str branch = element_edge(t, form, &v->items[i], a);
        const uint32_t at = element_find(target, branch, a);
        if (at == HK_NONE) {
            json_push(target, a, v->items[i]);
        } else if (form == LIST_MAP) {
            fields_merge(topo_element(t), &target->items[at], &v->items[i], a);
        }
    }
}

void fields_merge(struct fields_topo t, struct json *target, const struct json *v,
                  struct hk_arena *a)
{
    const enum list_form form = v->type == JSON_ARRAY ? list_form(t) : LIST_ATOMIC;

    if (target->type == v->type && form != LIST_ATOMIC) {
        merge_lists(t, form, target, v, a);
        return;
    }
    if (target->type != JSON_OBJECT || v->type != JSON_OBJECT || is_atomic_map(t)) {
        *target = *v;
        return;
    }
    *target = *json_index(target, a);
    for (uint32_t i = 0; i < v->len; i++) {
        const struct json_member *m = &v->members[i];
        const struct json *had = json_get_str(target, m->key);
        struct json value = had ? *had : m->value;
        if (had) {
            fields_merge(topo_member(t, m->key), &value, &m->value, a);
        }
        json_put(target, a, m->key, value);
    }
}

/* ---- what may be merged ---- */

struct config_check {
    struct hk_arena *mem;
    struct hk_buf atomic;
    const char *undeclared;
};

static void config_check_value(struct config_check *k, struct fields_topo t, const struct json *v,
                               const char *path);

static bool config_declares(struct fields_topo t, struct hk_str key)
{
    return t.schema || !t.type || t.type == api_type_of(NULL) ||
           (t.field && (t.field->flags & API_MAP)) || api_type_name(t.type, key) ||
           hk_str_is(key, "apiVersion") || hk_str_is(key, "kind");
}

static void config_check_member(struct config_check *k, struct fields_topo t,
                                const struct json_member *m, const char *path)
{
    const char *at = hk_arena_printf(k->mem, "%s.%.*s", path, HK_FMT(m->key));

    if (!config_declares(t, m->key)) {
        k->undeclared = k->undeclared ? k->undeclared : at;
        return;
    }
    config_check_value(k, topo_member(t, m->key), &m->value, at);
}

static void config_check_value(struct config_check *k, struct fields_topo t, const struct json *v,
                               const char *path)
{
    const bool list = v->type == JSON_ARRAY;

    if ((list && list_form(t) == LIST_ATOMIC) || (v->type == JSON_OBJECT && is_atomic_map(t))) {
        hk_buf_addf(&k->atomic, "%s%s", k->atomic.len > 0 ? ", " : "", path);
        return;
    }
    for (uint32_t i = 0; v->type == JSON_OBJECT && i < v->len; i++) {
        config_check_member(k, t, &v->members[i], path);
    }
    for (uint32_t i = 0; list && i < v->len; i++) {
        config_check_value(k, topo_element(t), &v->items[i],
                           hk_arena_printf(k->mem, "%s[%u]", path, i));
    }
}

const char *fields_check_config(struct fields_topo t, const struct json *v, struct hk_arena *a)
{
    struct config_check k = {.mem = a};
    const char *why = NULL;

    config_check_value(&k, t, v, "");
    if (k.undeclared) {
        why = hk_arena_printf(a,
                              "failed to convert patch object to typed object: %s: field not "
                              "declared in schema",
                              k.undeclared);
    } else if (k.atomic.len > 0) {
        why = hk_arena_printf(
            a, "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %s",
            k.atomic.data);
    }
    hk_buf_fini(&k.atomic);
    return why;
}

static void remove_element(struct json *list, uint32_t at)
{
    memmove(&list->items[at], &list->items[at + 1], (list->len - at - 1) * sizeof(*list->items));
    list->len--;
}

static void remove_member(struct json *target, struct hk_str key, const struct json *set,
                          struct hk_arena *a)
{
    const struct json *had = json_get_str(target, key);

    if (!had) {
        return;
    }
    if (set->len == 0) {
        json_hide(target, key);
        return;
    }
    struct json value = *had;
    fields_remove(&value, set, a);
    if ((value.type == JSON_OBJECT || value.type == JSON_ARRAY) && value.len == 0) {
        json_hide(target, key);
    } else {
        json_put(target, a, key, value);
    }
}

void fields_remove(struct json *target, const struct json *set, struct hk_arena *a)
{
    *target = *json_index(target, a);
    for (uint32_t i = 0; i < set->len; i++) {
        const struct json_member *m = &set->members[i];
        if (hk_str_starts(m->key, "f:")) {
            remove_member(target, (struct hk_str){m->key.s + 2, m->key.n - 2}, &m->value, a);
            continue;
        }
        const uint32_t at = m->key.n > 2 ? element_find(target, m->key, a) : HK_NONE;
        if (at == HK_NONE) {
            continue;
        }
        if (m->value.len == 0 || json_get(&m->value, ".")) {
            remove_element(target, at);
        } else {
            fields_remove(&target->items[at], &m->value, a);
        }
    }
    json_remove_hidden(target);
}

/* ---- paths in messages ---- */

struct walk {
    struct hk_arena *mem;
    void (*fn)(void *ctx, const char *path);
    void *ctx;
};

/* ".name", "[name="c",...]" or "[="v"]". */
static const char *path_add(const char *path, struct hk_str branch, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct hk_str rest = {branch.s + 2, branch.n - 2};
    struct json keys;

    hk_buf_adds(&text, path);
    if (hk_str_starts(branch, "f:")) {
        hk_buf_addf(&text, ".%.*s", HK_FMT(rest));
    } else if (hk_str_starts(branch, "k:") && json_parse(rest, 0, a, &keys, NULL) == 0) {
        for (uint32_t i = 0; i < keys.len; i++) {
            hk_buf_addf(&text, "%s%.*s=", i == 0 ? "[" : ",", HK_FMT(keys.members[i].key));
            json_write(&keys.members[i].value, &text);
        }
        hk_buf_addc(&text, ']');
    } else {
        hk_buf_addf(&text, "[=%.*s]", HK_FMT(rest));
    }
    return hk_arena_str(a, hk_buf_str(&text)).s;
}

static void rest_fields_visit_leaves(const struct walk *w, const struct json *set, const char *path)
{
    for (uint32_t i = 0; i < set->len; i++) {
        const struct json_member *m = &set->members[i];
        if (hk_str_is(m->key, ".")) {
            continue;
        }
        const char *at = path_add(path, m->key, w->mem);
        if (m->value.len == 0) {
            w->fn(w->ctx, at);
        } else {
            rest_fields_visit_leaves(w, &m->value, at);
        }
    }
}

void fields_each(const struct json *set, struct hk_arena *a,
                 void (*fn)(void *ctx, const char *path), void *ctx)
{
    rest_fields_visit_leaves(&(struct walk){a, fn, ctx}, set, "");
}
