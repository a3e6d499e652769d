// SPDX-License-Identifier: Apache-2.0
// The configured admission webhooks: read from the stored configurations when these change, and
// matched with each write as kube-apiserver does: rules, then selectors of namespace and object.
#include "api/meta.h"
#include "codec/base64.h"
#include "store/rest_webhook_priv.h"

enum { DEFAULT_TIMEOUT_S = 10 };

#define GROUP "admissionregistration.k8s.io"

/* ---- reading configurations ---- */

static const char *const review_versions[] = {"v1", "v1beta1"};

/* The first version in the webhook's list that this server speaks. */
static const char *choose_version(const struct json *hook)
{
    const struct json *list = json_get(hook, "admissionReviewVersions");

    for (uint32_t i = 0; i < json_len(list); i++) {
        for (size_t k = 0; k < HK_LEN(review_versions); k++) {
            if (hk_str_is(json_str(&list->items[i], HK_STR("")), review_versions[k])) {
                return review_versions[k];
            }
        }
    }
    return NULL;
}

static const char *text_copy(struct hk_arena *a, struct hk_str s)
{
    return hk_arena_strndup(a, s.s, s.n);
}

static void read_ca(struct webhook *h, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf pem = {0};
    const struct hk_str coded = json_str_field(h->client, "caBundle");

    if (coded.n == 0) {
        return;
    }
    if (base64_read(coded, &pem)) {
        h->ca_pem = text_copy(a, hk_buf_str(&pem));
    } else {
        h->bad = "clientConfig.caBundle is not base64";
    }
}

static void read_selector(struct webhook_terms *t, const struct json *v, struct hk_arena *a,
                          struct api_selector *ret)
{
    static const struct json everything = {.type = JSON_OBJECT};

    if (api_selector_decode(json_is(v, JSON_OBJECT) ? v : &everything, a, ret, NULL) < 0) {
        t->bad = "a selector is invalid";
    }
}

static void read_common_terms(struct webhook_terms *t, const struct json *doc, struct hk_arena *a)
{
    t->equivalent = !hk_str_is(json_str_field(doc, "matchPolicy"), "Exact");
    read_selector(t, json_get(doc, "namespaceSelector"), a, &t->namespaces);
    read_selector(t, json_get(doc, "objectSelector"), a, &t->objects);
}

void webhook_terms_read(struct webhook_terms *t, const struct json *doc, struct hk_arena *a)
{
    t->rules = json_get(doc, "resourceRules");
    t->excluded = json_get(doc, "excludeResourceRules");
    t->any = json_len(t->rules) == 0;
    read_common_terms(t, doc, a);
}

void webhook_conditions_read(struct webhook_conditions *w, const struct json *list,
                             struct admit_exprs *x)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct hk_str text = hk_str_trim(json_str_field(&list->items[i], "expression"));
        struct webhook_condition one = {0};
        const char *why;
        if (admit_expr_add(x, text, ADMIT_BOOL, true, &one.expr, &why) < 0) {
            one.expr = NULL;
            one.why = hk_arena_printf(&x->mem, "compilation error: %s", why);
        }
        hk_vec_push(w, one);
    }
}

static void add_webhook(struct webhook_table *t, const struct json *hook, bool mutating)
{
    const struct hk_str side_effects = json_str_field(hook, "sideEffects");
    struct webhook h = {
        .name = text_copy(&t->mem, json_str_field(hook, "name")),
        .mutating = mutating,
        .ignore = hk_str_is(json_str_field(hook, "failurePolicy"), "Ignore"),
        .if_needed = hk_str_is(json_str_field(hook, "reinvocationPolicy"), "IfNeeded"),
        .dry_runs = hk_str_is(side_effects, "None") || hk_str_is(side_effects, "NoneOnDryRun"),
        .version = choose_version(hook),
        .timeout_s = json_int(json_get(hook, "timeoutSeconds"), DEFAULT_TIMEOUT_S),
        .terms.rules = json_get(hook, "rules"),
        .client = json_get(hook, "clientConfig"),
    };

    read_ca(&h, &t->mem);
    read_common_terms(&h.terms, hook, &t->mem);
    h.bad = h.bad ? h.bad : h.terms.bad;
    webhook_conditions_read(&h.conditions, json_get(hook, "matchConditions"), &h.exprs);
    if (!h.version) {
        h.bad = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
    }
    hk_vec_push(&t->at, h);
}

struct reading {
    struct webhook_table *t;
    bool mutating;
};

static bool on_configuration(void *ctx, const struct store_obj *o)
{
    const struct reading *w = ctx;
    struct json doc;

    if (json_parse(hk_arena_str(&w->t->mem, o->text), 0, &w->t->mem, &doc, NULL) == 0) {
        const struct json *hooks = json_get(&doc, "webhooks");
        for (uint32_t i = 0; i < json_len(hooks); i++) {
            add_webhook(w->t, &hooks->items[i], w->mutating);
        }
    }
    return true;
}

static void read_table(struct rest *r)
{
    struct webhook_table *t = hk_zalloc(sizeof(*t));
    struct reading w = {t, true};

    t->refs = 1;
    store_scan(r->store, r->webhooks_mutating->res, HK_STR(""), HK_STR(""), HK_STR(""),
               on_configuration, &w);
    t->nmutating = t->at.len;
    w.mutating = false;
    store_scan(r->store, r->webhooks_validating->res, HK_STR(""), HK_STR(""), HK_STR(""),
               on_configuration, &w);
    webhook_table_unref(r->webhooks);
    r->webhooks = t;
    if (t->at.len == 0) {
        webhook_table_unref(hk_take(r->webhooks));
    }
}

struct webhook_table *webhook_table(struct rest *r)
{
    if (!r->webhook_caller) {
        return NULL;
    }
    if (r->webhooks_changed) {
        r->webhooks_changed = false;
        read_table(r);
    }
    return r->webhooks;
}

struct webhook_table *webhook_table_ref(struct webhook_table *t)
{
    t->refs++;
    return t;
}

void webhook_table_unref(struct webhook_table *t)
{
    if (t && --t->refs == 0) {
        for (uint32_t i = 0; i < t->at.len; i++) {
            admit_exprs_fini(&t->at.at[i].exprs);
            hk_vec_fini(&t->at.at[i].conditions);
        }
        hk_vec_fini(&t->at);
        hk_arena_fini(&t->mem);
        hk_free(t);
    }
}

/* ---- matching ---- */

static bool list_has(const struct json *list, const char *word)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct hk_str v = json_str(&list->items[i], HK_STR(""));
        if (hk_str_is(v, "*") || hk_str_is(v, word)) {
            return true;
        }
    }
    return false;
}

/* "pods", "pods/status"; a star stands for any name, and alone for any without a subresource. */
static bool matches_resource(const struct json *list, const char *plural, const char *sub)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct hk_str rest = json_str(&list->items[i], HK_STR("")), name, part = HK_STR("");
        if (hk_str_cut(&rest, '/', &name) && rest.s) {
            part = rest;
        }
        if ((hk_str_is(name, "*") || hk_str_is(name, plural)) &&
            (hk_str_is(part, "*") || hk_str_is(part, sub ? sub : ""))) {
            return true;
        }
    }
    return false;
}

static bool is_namespace(const struct webhook_subject *s)
{
    return s->row->kind->group[0] == '\0' && strcmp(s->row->kind->plural, "namespaces") == 0;
}

static bool matches_scope(struct hk_str scope, const struct webhook_subject *s)
{
    const bool namespaced = s->ns.n > 0 && !is_namespace(s);

    return scope.n == 0 || hk_str_is(scope, "*") ||
           (hk_str_is(scope, "Namespaced") ? namespaced : !namespaced);
}

const char *webhook_operation(const struct webhook_subject *s)
{
    static const char *const operations[] = {
        [ADMIT_CREATE] = "CREATE",
        [ADMIT_UPDATE] = "UPDATE",
        [ADMIT_DELETE] = "DELETE",
        [ADMIT_CONNECT] = "CONNECT",
    };

    return operations[s->verb];
}

/* resourceNames, which only policies have; absent ones match every name. */
static bool matches_name(const struct json *names, const struct webhook_subject *s)
{
    const struct hk_str name = s->unnamed ? HK_STR("") : s->name;

    for (uint32_t i = 0; i < json_len(names); i++) {
        if (hk_str_eq(json_str(&names->items[i], HK_STR("")), name)) {
            return true;
        }
    }
    return json_len(names) == 0;
}

static bool matches_row(const struct json *rules, const struct webhook_subject *s,
                        const struct api_kind *k)
{
    for (uint32_t i = 0; i < json_len(rules); i++) {
        const struct json *rule = &rules->items[i];
        if (matches_scope(json_str_field(rule, "scope"), s) &&
            list_has(json_get(rule, "operations"), webhook_operation(s)) &&
            list_has(json_get(rule, "apiGroups"), k->group) &&
            list_has(json_get(rule, "apiVersions"), k->version) &&
            matches_resource(json_get(rule, "resources"), k->plural, s->sub) &&
            matches_name(json_get(rule, "resourceNames"), s)) {
            return true;
        }
    }
    return false;
}

/* The row that a rule names: the request's own, or another version of the same objects. */
static const struct rest_kind *find_row(const struct rest *r, const struct json *rules,
                                        bool equivalent, const struct webhook_subject *s)
{
    if (matches_row(rules, s, s->row->kind)) {
        return s->row;
    }
    /* Another version is asked about only where this server converts by itself. */
    for (uint32_t i = 0;
         equivalent && !s->row->conversion && json_len(rules) > 0 && i < rest_kinds(r); i++) {
        const struct rest_kind *k = rest_kind_at(r, i);
        if (k != s->row && k->served && k->res == s->row->res && matches_row(rules, s, k->kind)) {
            return k;
        }
    }
    return NULL;
}

static bool matches_labels(struct rest_call *c, const struct api_selector *s,
                           const struct json *doc)
{
    struct api_meta meta;

    return doc && api_meta_decode(doc, &c->mem, &meta, NULL) == 0 &&
           api_selector_match(s, &meta.labels);
}

static bool matches_namespace(struct rest_call *c, const struct api_selector *selector,
                              const struct webhook_subject *s)
{
    static const struct json unlabelled = {.type = JSON_OBJECT};
    struct json doc;
    bool staged;

    if (selector->len == 0 || s->ns.n == 0) {
        return true;
    }
    if (is_namespace(s) && !s->sub && s->verb != ADMIT_DELETE) {
        return matches_labels(c, selector, s->obj);
    }
    if (!rest_head_shared(c, c->r->namespaces, HK_STR(""), s->ns, &doc, &staged)) {
        doc = unlabelled;
    }
    return matches_labels(c, selector, &doc);
}

const struct rest_kind *webhook_terms_match(struct rest_call *c, const struct webhook_terms *t,
                                            const struct webhook_subject *s)
{
    const struct rest_kind *row = t->any ? s->row : find_row(c->r, t->rules, t->equivalent, s);

    if (!row || !matches_namespace(c, &t->namespaces, s) ||
        find_row(c->r, t->excluded, t->equivalent, s)) {
        return NULL;
    }
    if (t->objects.len > 0 && !matches_labels(c, &t->objects, s->obj) &&
        !matches_labels(c, &t->objects, s->old)) {
        return NULL;
    }
    return row;
}

bool webhook_exempt(const struct webhook_subject *s)
{
    static const char *const kinds[] = {
        "validatingwebhookconfigurations", "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",     "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",       "mutatingadmissionpolicybindings",
    };

    for (size_t i = 0; i < HK_LEN(kinds); i++) {
        if (strcmp(s->row->kind->group, GROUP) == 0 &&
            strcmp(s->row->kind->plural, kinds[i]) == 0) {
            return true;
        }
    }
    return false;
}
