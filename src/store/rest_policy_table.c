// SPDX-License-Identifier: Apache-2.0
// The stored admission policies and their bindings. Read anew when one of them changes; a policy
// that did not change keeps its compiled expressions.
#include "store/rest_policy_priv.h"

static const char *policy_text(struct hk_arena *a, struct hk_str s)
{
    return hk_arena_strndup(a, s.s, s.n);
}

/* ---- one policy ---- */

/* The expression, or NULL with the reason in *why. An absent one is NULL without a reason. */
static struct admit_expr *policy_compile(struct policy *p, struct hk_str text, enum admit_want want,
                                         bool authorizer, const char **why)
{
    struct admit_expr *e = NULL;
    const char *reason;

    if (hk_str_trim(text).n > 0 &&
        admit_expr_add(&p->exprs, text, want, authorizer, &e, &reason) < 0) {
        *why = hk_arena_printf(&p->mem, "compilation error: %s", reason);
        return NULL;
    }
    return e;
}

static void policy_read_validation(struct policy *p, const struct json *doc)
{
    const struct hk_str text = json_str_field(doc, "expression");
    const struct hk_str message = hk_str_trim(json_str_field(doc, "message"));
    const struct hk_str reason = json_str_field(doc, "reason");
    const char *unused = NULL;
    struct policy_validation v = {0};

    v.expr = policy_compile(p, text, ADMIT_BOOL, true, &v.why);
    v.message_expr =
        policy_compile(p, json_str_field(doc, "messageExpression"), ADMIT_STRING, false, &unused);
    v.message = message.n > 0 ? policy_text(&p->mem, message)
                              : hk_arena_printf(&p->mem, "failed expression: %.*s",
                                                HK_FMT(hk_str_trim(text)));
    v.reason = reason.n > 0 ? policy_text(&p->mem, reason) : "Invalid";
    hk_vec_push(&p->validations, v);
}

static void policy_read_note(struct policy *p, const struct json *doc)
{
    struct policy_note n = {.key = policy_text(&p->mem, json_str_field(doc, "key"))};

    n.expr = policy_compile(p, hk_str_trim(json_str_field(doc, "valueExpression")), ADMIT_NOTE,
                            true, &n.why);
    hk_vec_push(&p->notes, n);
}

static void policy_read_mutation(struct policy *p, const struct json *doc)
{
    struct policy_mutation m = {
        .patch = hk_str_is(json_str_field(doc, "patchType"), "JSONPatch"),
    };
    const struct json *holder = json_get(doc, m.patch ? "jsonPatch" : "applyConfiguration");

    m.expr = policy_compile(p, json_str_field(holder, "expression"),
                            m.patch ? ADMIT_PATCH : ADMIT_OBJECT, true, &m.why);
    hk_vec_push(&p->mutations, m);
}

static void policy_read_variables(struct policy *p, const struct json *list)
{
    const char *why;

    p->exprs.variables = json_len(list) > 0;
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct json *v = &list->items[i];
        if (admit_expr_add_variable(&p->exprs, json_str_field(v, "name"),
                                    json_str_field(v, "expression"), &why) < 0) {
            p->bad = hk_arena_printf(&p->mem, "compilation error: %s", why);
        }
    }
}

static void policy_each(struct policy *p, const struct json *list,
                        void (*read)(struct policy *p, const struct json *doc))
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        read(p, &list->items[i]);
    }
}

static void policy_read_spec(struct policy *p, const struct json *spec)
{
    const struct json *params = json_get(spec, "paramKind");

    p->ignore = hk_str_is(json_str_field(spec, "failurePolicy"), "Ignore");
    p->if_needed = hk_str_is(json_str_field(spec, "reinvocationPolicy"), "IfNeeded");
    p->param_version = json_str_field(params, "apiVersion");
    p->param_kind = json_str_field(params, "kind");
    p->exprs.params = p->param_kind.n > 0;
    p->exprs.patches = p->mutating;
    webhook_terms_read(&p->terms, json_get(spec, "matchConstraints"), &p->mem);
    p->bad = p->terms.bad;
    webhook_conditions_read(&p->conditions, json_get(spec, "matchConditions"), &p->exprs);
    policy_read_variables(p, json_get(spec, "variables"));
    policy_each(p, json_get(spec, "validations"), policy_read_validation);
    policy_each(p, json_get(spec, "auditAnnotations"), policy_read_note);
    policy_each(p, json_get(spec, "mutations"), policy_read_mutation);
}

static struct policy *policy_new(const struct store_obj *o, bool mutating)
{
    struct policy *p = hk_zalloc(sizeof(*p));
    struct json doc;

    p->refs = 1;
    p->rv = o->rv;
    p->mutating = mutating;
    p->name = policy_text(&p->mem, o->name);
    if (json_parse(hk_arena_str(&p->mem, o->text), 0, &p->mem, &doc, NULL) == 0) {
        policy_read_spec(p, json_get(&doc, "spec"));
    }
    return p;
}

static void policy_unref(struct policy *p)
{
    if (--p->refs == 0) {
        admit_exprs_fini(&p->exprs);
        hk_vec_fini(&p->conditions);
        hk_vec_fini(&p->validations);
        hk_vec_fini(&p->notes);
        hk_vec_fini(&p->mutations);
        hk_arena_fini(&p->mem);
        hk_free(p);
    }
}

/* ---- the table ---- */

struct policy_reading {
    struct rest *r;
    struct policy_table *table;
    bool mutating;
};

static struct policy *policy_find(const struct policy_table *t, struct hk_str name, bool mutating)
{
    for (uint32_t i = 0; t && i < t->policies.len; i++) {
        struct policy *p = t->policies.at[i];
        if (p->mutating == mutating && hk_str_is(name, p->name)) {
            return p;
        }
    }
    return NULL;
}

static bool policy_on_policy(void *ctx, const struct store_obj *o)
{
    const struct policy_reading *w = ctx;
    struct policy *p = policy_find(w->r->policies, o->name, w->mutating);

    if (p && p->rv == o->rv) {
        p->refs++;
    } else {
        p = policy_new(o, w->mutating);
    }
    hk_vec_push(&w->table->policies, p);
    return true;
}

static unsigned policy_actions(const struct json *list)
{
    unsigned acts = 0;

    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct hk_str one = json_str(&list->items[i], HK_STR(""));
        acts |= hk_str_is(one, "Deny")    ? POLICY_DENY
                : hk_str_is(one, "Warn")  ? POLICY_WARN
                : hk_str_is(one, "Audit") ? POLICY_AUDIT
                                          : 0U;
    }
    return acts;
}

static bool policy_on_binding(void *ctx, const struct store_obj *o)
{
    const struct policy_reading *w = ctx;
    struct hk_arena *a = &w->table->mem;
    struct json doc;

    if (json_parse(hk_arena_str(a, o->text), 0, a, &doc, NULL) < 0) {
        return true;
    }
    const struct json *spec = json_get(&doc, "spec"), *match = json_get(spec, "matchResources");
    const struct json *ref = json_get(spec, "paramRef");
    struct policy_binding b = {
        .name = policy_text(a, o->name),
        .policy = policy_find(w->table, json_str_field(spec, "policyName"), w->mutating),
        .bound = json_is(match, JSON_OBJECT),
        .param_ref = json_is(ref, JSON_OBJECT) ? ref : NULL,
        .actions = json_get(spec, "validationActions"),
    };
    b.acts = policy_actions(b.actions);
    if (b.bound) {
        webhook_terms_read(&b.terms, match, a);
    }
    if (b.policy) {
        hk_vec_push(&w->table->bindings, b);
    }
    return true;
}

static int policy_binding_cmp(const void *a, const void *b)
{
    const struct policy_binding *x = a, *y = b;
    const int order = strcmp(x->policy->name, y->policy->name);

    return x->policy->mutating != y->policy->mutating ? (x->policy->mutating ? -1 : 1)
           : order != 0                               ? order
                                                      : strcmp(x->name, y->name);
}

static void policy_scan(struct policy_reading *w, const struct rest_kind *k, bool mutating,
                        bool (*fn)(void *ctx, const struct store_obj *o))
{
    w->mutating = mutating;
    store_scan(w->r->store, k->res, HK_STR(""), HK_STR(""), HK_STR(""), fn, w);
}

static void policy_table_read(struct rest *r)
{
    struct policy_table *t = hk_zalloc(sizeof(*t));
    struct policy_reading w = {.r = r, .table = t};

    t->refs = 1;
    policy_scan(&w, r->policy_kinds[0], true, policy_on_policy);
    policy_scan(&w, r->policy_kinds[2], false, policy_on_policy);
    policy_scan(&w, r->policy_kinds[1], true, policy_on_binding);
    policy_scan(&w, r->policy_kinds[3], false, policy_on_binding);
    if (t->bindings.len > 0) {
        qsort(t->bindings.at, t->bindings.len, sizeof(*t->bindings.at), policy_binding_cmp);
    }
    while (t->nmutating < t->bindings.len && t->bindings.at[t->nmutating].policy->mutating) {
        t->nmutating++;
    }
    policy_table_unref(r->policies);
    r->policies = t;
}

struct policy_table *policy_table(struct rest *r)
{
    if (r->policies_suspended) {
        return NULL;
    }
    if (r->policies_changed) {
        r->policies_changed = false;
        policy_table_read(r);
    }
    return r->policies && r->policies->bindings.len > 0 ? r->policies : NULL;
}

struct policy_table *policy_table_ref(struct policy_table *t)
{
    t->refs++;
    return t;
}

void policy_table_unref(struct policy_table *t)
{
    if (t && --t->refs == 0) {
        for (uint32_t i = 0; i < t->policies.len; i++) {
            policy_unref(t->policies.at[i]);
        }
        hk_vec_fini(&t->policies);
        hk_vec_fini(&t->bindings);
        hk_arena_fini(&t->mem);
        hk_free(t);
    }
}

/* ---- the port's side ---- */

void rest_suspend_policies(struct rest *r, bool suspended)
{
    r->policies_suspended = suspended;
}

void rest_authorize_by(struct rest *r, rest_authorize_fn *authorize, void *ctx)
{
    r->authorize = authorize;
    r->authorize_ctx = ctx;
}

void rest_policy_feed(struct rest *r, const struct store_event *ev)
{
    for (size_t i = 0; i < HK_LEN(r->policy_kinds); i++) {
        r->policies_changed = r->policies_changed || ev->obj->res == r->policy_kinds[i]->res;
    }
}

void rest_policy_fini(struct rest *r)
{
    policy_table_unref(hk_take(r->policies));
}

void rest_policy_set_status(struct rest_call *c, struct json *doc)
{
    if (c->k->res != c->r->policy_kinds[2]->res || rest_deleting(doc)) {
        return;
    }
    struct json *status = rest_edit(doc, &c->mem, "status");
    json_set_int(status, &c->mem, "observedGeneration",
                 json_int(json_at(doc, "metadata.generation"), 1));
    json_set_object(status, &c->mem, "typeChecking");
}
