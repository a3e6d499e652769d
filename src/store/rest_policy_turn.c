// SPDX-License-Identifier: Apache-2.0
// What the expressions of policies and of matchConditions see: the object in the version of the
// matched row, the request, its namespace, parameters and the rights of the user.
#include "store/rest_policy_priv.h"

/* ---- the request ---- */

static struct json turn_names(struct hk_arena *a, const struct api_kind *k, bool resource)
{
    struct json v = json_make_object();

    json_set_cstr(&v, a, "group", k->group);
    json_set_cstr(&v, a, "version", k->version);
    json_set_cstr(&v, a, resource ? "resource" : "kind", resource ? k->plural : k->kind);
    return v;
}

/* The request of the call, also when it has ended for the client. */
static const struct port_request *turn_port_request(const struct rest_call *c)
{
    return c->req ? c->req : c->asking ? rest_webhook_request(c) : NULL;
}

static const struct port_user *turn_user(const struct rest_call *c)
{
    const struct port_request *q = turn_port_request(c);

    return q ? q->user : NULL;
}

static void turn_set_parsed(struct rest_call *c, struct json *to, const char *key,
                            const struct hk_buf *text)
{
    struct json v;

    if (json_parse(hk_arena_str(&c->mem, hk_buf_str(text)), 0, &c->mem, &v, NULL) == 0) {
        json_set(to, &c->mem, key, v);
    }
}

static void turn_set_user(struct policy_turn *t, struct json *request)
{
    HK_AUTO(hk_buf_fini) struct hk_buf user = {0}, options = {0};

    webhook_write_user(turn_user(t->c), &user);
    webhook_write_options(t->s, &options);
    turn_set_parsed(t->c, request, "userInfo", &user);
    turn_set_parsed(t->c, request, "options", &options);
}

static struct json turn_request(struct policy_turn *t)
{
    const struct webhook_subject *s = t->s;
    struct hk_arena *a = &t->c->mem;
    struct json q = json_make_object();

    json_set(&q, a, "kind", turn_names(a, s->kind ? s->kind : t->row->kind, false));
    json_set(&q, a, "resource", turn_names(a, t->row->kind, true));
    json_set(&q, a, "requestKind", turn_names(a, s->kind ? s->kind : s->row->kind, false));
    json_set(&q, a, "requestResource", turn_names(a, s->row->kind, true));
    if (s->sub) {
        json_set_cstr(&q, a, "subResource", s->sub);
        json_set_cstr(&q, a, "requestSubResource", s->sub);
    }
    if (!s->unnamed && s->name.n > 0) {
        json_set_str(&q, a, "name", s->name);
    }
    if (s->ns.n > 0) {
        json_set_str(&q, a, "namespace", s->ns);
    }
    json_set_cstr(&q, a, "operation", webhook_operation(s));
    json_set_bool(&q, a, "dryRun", s->dry_run);
    turn_set_user(t, &q);
    return q;
}

/* ---- objects ---- */

/* The object in the version of the row, without the name that the server has generated. */
static const struct json *turn_show(struct policy_turn *t, const struct json *doc)
{
    const struct webhook_subject *s = t->s;
    struct json *shown;

    if (!doc || ((s->kind || t->row->storage) && !s->unnamed)) {
        return doc;
    }
    shown = hk_arena_alloc(&t->c->mem, sizeof(*shown));
    *shown = json_clone(doc, &t->c->mem);
    if (s->unnamed) {
        json_del(rest_edit(shown, &t->c->mem, "metadata"), "name");
    }
    if (!s->kind) {
        rest_view_show(t->row, shown, &t->c->mem);
    }
    return shown;
}

static const struct json *turn_namespace(const struct policy_turn *t)
{
    struct rest_call *c = t->c;
    struct json *doc = hk_arena_alloc(&c->mem, sizeof(*doc));
    bool staged;

    if (t->s->ns.n == 0 || t->s->row->res == c->r->namespaces->res) {
        return NULL;
    }
    return rest_head_shared(c, c->r->namespaces, HK_STR(""), t->s->ns, doc, &staged) ? doc : NULL;
}

static void turn_view(struct policy_turn *t, const struct rest_kind *row)
{
    if (t->row == row) {
        return;
    }
    t->row = row;
    t->object = turn_show(t, t->s->obj);
    t->old = turn_show(t, t->s->old);
    t->request = turn_request(t);
    t->ns = t->ns ? t->ns : turn_namespace(t);
}

void policy_turn_changed(struct policy_turn *t)
{
    t->row = NULL;
}

/* ---- rights ---- */

/* The user that a service account is. */
static struct port_user turn_account(struct rest_call *c, const struct admit_check *check)
{
    const char **groups = hk_arena_array(&c->mem, 3, sizeof(*groups));

    groups[0] = "system:serviceaccounts";
    groups[1] = hk_arena_printf(&c->mem, "system:serviceaccounts:%.*s", HK_FMT(check->account_ns));
    groups[2] = "system:authenticated";
    return (struct port_user){
        .name = hk_arena_printf(&c->mem, "system:serviceaccount:%.*s:%.*s",
                                HK_FMT(check->account_ns), HK_FMT(check->account_name)),
        .groups = groups,
        .ngroups = 3,
    };
}

/* Our own programs may do everything. */
static bool turn_allows(void *ctx, const struct admit_check *check)
{
    struct rest_call *c = ctx;
    const struct port_user *user = turn_user(c);
    struct port_user account;

    if (check->account_name.n > 0) {
        account = turn_account(c, check);
        user = &account;
    }
    return !user || (c->r->authorize && c->r->authorize(c->r->authorize_ctx, user, check));
}

static struct rights_ask turn_resource(const struct policy_turn *t)
{
    const struct webhook_subject *s = t->s;

    return (struct rights_ask){
        .group = hk_str(s->row->kind->group),
        .resource = hk_str(s->row->kind->plural),
        .sub = hk_str(s->sub ? s->sub : ""),
        .ns = s->row->kind->namespaced ? s->ns : HK_STR(""),
        .name = s->unnamed ? HK_STR("") : s->name,
    };
}

/* ---- evaluation ---- */

struct admit_run *policy_turn_run(struct policy_turn *t, const struct admit_exprs *x,
                                  const struct rest_kind *row, const struct json *params)
{
    turn_view(t, row);
    const struct admit_input in = {
        .exprs = x,
        .object = t->object,
        .old = t->old,
        .request = &t->request,
        .ns = t->ns,
        .params = params,
        .resource = turn_resource(t),
        .allows = turn_allows,
        .ctx = t->c,
        .mem = &t->c->mem,
    };
    return admit_run_new(&in);
}

uint64_t policy_turn_budget(const struct policy_turn *t, uint64_t budget)
{
    return HK_MIN(budget, t->left);
}

void policy_turn_spend(struct policy_turn *t, uint64_t budget, uint64_t left)
{
    const uint64_t spent = budget - HK_MIN(budget, left);

    t->left -= HK_MIN(t->left, spent);
    t->c->r->work += spent * POLICY_WORK;
}

/* "a" alone, or "[a, b]" of several. */
static const char *turn_join(struct hk_arena *a, const struct hk_buf *list, uint32_t n)
{
    return n > 1 ? hk_arena_printf(a, "[%s]", list->data)
                 : hk_arena_strndup(a, list->data, list->len);
}

struct turn_verdict {
    struct hk_buf errors;
    uint32_t nerrors;
    bool over; /* the budget is used up */
    bool holds;
};

/* One condition that is false decides, whatever errors the others have. */
static void turn_conditions(struct admit_run *run, const struct webhook_conditions *w,
                            uint64_t *budget, struct turn_verdict *v)
{
    v->holds = true;
    for (uint32_t i = 0; i < w->len && !v->over; i++) {
        const struct webhook_condition *one = &w->at[i];
        bool holds = false;
        const int rc = one->expr ? admit_run_bool(run, one->expr, budget, &holds) : -HK_EINVAL;
        if (rc == 0 && !holds) {
            v->holds = false;
            v->nerrors = 0;
            return;
        }
        if (rc < 0) {
            v->over = rc == -HK_ELIMIT;
            hk_buf_addf(&v->errors, "%s%s", v->nerrors > 0 ? ", " : "",
                        one->expr ? admit_run_why(run) : one->why);
            v->nerrors++;
        }
    }
}

int policy_turn_match(struct policy_turn *t, struct admit_run *run,
                      const struct webhook_conditions *w, bool ignore, bool *ret,
                      const char **ret_why)
{
    const uint64_t budget = policy_turn_budget(t, ADMIT_CONDITIONS_BUDGET);
    struct turn_verdict v = {0};
    uint64_t left = budget;
    int rc = 0;

    turn_conditions(run, w, &left, &v);
    policy_turn_spend(t, budget, left);
    *ret = v.holds && v.nerrors == 0;
    if (v.nerrors > 0 && !ignore) {
        *ret_why = turn_join(&t->c->mem, &v.errors, v.nerrors);
        rc = -HK_EINVAL;
    }
    hk_buf_fini(&v.errors);
    return rc;
}

/* ---- parameters ---- */

static const struct rest_kind *params_kind(struct rest_call *c, const struct policy *p)
{
    const struct rest_kind *k = rest_kind_by_name(c->r, p->param_version, p->param_kind);

    return k && k->served ? k : NULL;
}

const char *policy_params_check(struct rest_call *c, const struct policy *p)
{
    if (p->param_kind.n == 0 || params_kind(c, p)) {
        return NULL;
    }
    return hk_arena_printf(&c->mem,
                           "failed to find resource referenced by paramKind: '%.*s, Kind=%.*s'",
                           HK_FMT(p->param_version), HK_FMT(p->param_kind));
}

struct params_search {
    struct rest_call *c;
    const struct rest_kind *k;
    struct api_selector selector;
    policy_params *found;
};

static const struct json *params_show(struct rest_call *c, const struct rest_kind *k,
                                      const struct json *doc)
{
    struct json *shown = hk_arena_alloc(&c->mem, sizeof(*shown));

    *shown = *doc;
    if (!k->storage) {
        *shown = json_clone(doc, &c->mem);
        rest_view_show(k, shown, &c->mem);
    }
    return shown;
}

static bool params_on_object(void *ctx, const struct store_obj *o)
{
    const struct params_search *w = ctx;
    struct rest_call *c = w->c;
    struct api_object *obj = rest_object(c->r, rest_kind_by_res(c->r, w->k->res), o, true);
    struct api_meta meta;

    if (!obj) {
        return true;
    }
    if (api_meta_decode(&obj->root, &c->mem, &meta, NULL) < 0 ||
        !api_selector_match(&w->selector, &meta.labels)) {
        api_object_unref(obj);
        return true;
    }
    hk_vec_push(&c->borrowed, obj);
    hk_vec_push(w->found, params_show(c, w->k, &obj->root));
    return w->found->len <= POLICY_MAX_PARAMS;
}

static int params_select(struct rest_call *c, const struct rest_kind *k, struct hk_str ns,
                         const struct json *selector, policy_params *ret, const char **ret_why)
{
    struct params_search w = {.c = c, .k = k, .found = ret};

    if (api_selector_decode(selector, &c->mem, &w.selector, NULL) < 0) {
        *ret_why = "paramRef.selector is invalid";
        return -HK_EINVAL;
    }
    store_scan(c->r->store, k->res, ns, HK_STR(""), HK_STR(""), params_on_object, &w);
    if (ret->len > POLICY_MAX_PARAMS) {
        *ret_why =
            hk_arena_printf(&c->mem, "paramRef selects more than %d objects", POLICY_MAX_PARAMS);
        return -HK_ELIMIT;
    }
    return 0;
}

static void params_get(struct rest_call *c, const struct rest_kind *k, struct hk_str ns,
                       struct hk_str name, policy_params *ret)
{
    struct json doc;
    bool staged;

    if (rest_head_shared(c, rest_kind_by_res(c->r, k->res), ns, name, &doc, &staged)) {
        hk_vec_push(ret, params_show(c, k, &doc));
    }
}

/* The namespace of the parameters. */
static int params_namespace(const struct policy_turn *t, const struct rest_kind *k,
                            const struct json *ref, struct hk_str *ret, const char **ret_why)
{
    const struct hk_str wanted = json_str_field(ref, "namespace");

    *ret = !k->kind->namespaced ? HK_STR("") : wanted.n > 0 ? wanted : t->s->ns;
    if (k->kind->namespaced && ret->n == 0) {
        *ret_why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped "
                   "resources";
        return -HK_EINVAL;
    }
    if (!k->kind->namespaced && wanted.n > 0) {
        *ret_why = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
        return -HK_EINVAL;
    }
    return 0;
}

int policy_params_find(struct policy_turn *t, const struct policy_binding *b, policy_params *ret,
                       const char **ret_why)
{
    const struct rest_kind *k = params_kind(t->c, b->policy);
    const struct json *selector = json_get(b->param_ref, "selector");
    struct hk_str ns;
    int rc;

    if (!k || !b->param_ref) {
        hk_vec_push(ret, NULL);
        return 0;
    }
    rc = params_namespace(t, k, b->param_ref, &ns, ret_why);
    if (rc == 0 && json_is(selector, JSON_OBJECT)) {
        rc = params_select(t->c, k, ns, selector, ret, ret_why);
    } else if (rc == 0) {
        params_get(t->c, k, ns, json_str_field(b->param_ref, "name"), ret);
    }
    if (rc == 0 && ret->len == 0 &&
        !hk_str_is(json_str_field(b->param_ref, "parameterNotFoundAction"), "Allow")) {
        *ret_why = "no params found for policy binding with `Deny` parameterNotFoundAction";
        return -HK_ENOTFOUND;
    }
    return rc;
}
