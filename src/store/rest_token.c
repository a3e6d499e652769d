// SPDX-License-Identifier: Apache-2.0
// serviceaccounts/NAME/token: checks TokenRequests. The function set with rest_sign_tokens signs
// them. Tokens are not stored.
#include "store/rest_priv.h"

enum { DEFAULT_S = 3600, MIN_S = 600 };
#define MAX_S ((int64_t)1 << 32)
/* The time kubelets request when a pod sets none, and the time they get, because old programs read
 * the file only once: Kubernetes' WarnOnlyBoundTokenExpirationPeriod. The token becomes invalid
 * with its pod anyway. */
#define ASKED_FOR_PODS_S 3607
#define GIVEN_TO_PODS_S ((int64_t)365 * 24 * 3600)

static const struct api_kind request_kind = {
    .id = API_NKINDS,
    .group = "authentication.k8s.io",
    .version = "v1",
    .kind = "TokenRequest",
    .plural = "tokenrequests",
    .singular = "tokenrequest",
    .namespaced = true,
};

void rest_sign_tokens(struct rest *r, rest_sign_fn *sign, void *ctx)
{
    r->sign = sign;
    r->sign_ctx = ctx;
}

static int fail_request(struct rest_call *c, struct hk_str name, const char *field,
                        const char *message)
{
    return rest_fail_invalid_body(c, &(struct rest_body_fault){.group = request_kind.group,
                                                               .kind = request_kind.kind,
                                                               .name = name,
                                                               .reason = "FieldValueInvalid",
                                                               .field = field,
                                                               .message = message});
}

static int check_duration(struct rest_call *c, int64_t seconds)
{
    const char *fault = seconds < MIN_S   ? "may not specify a duration less than 10 minutes"
                        : seconds > MAX_S ? "may not specify a duration larger than 2^32 seconds"
                                          : NULL;

    if (!fault) {
        return 0;
    }
    return fail_request(
        c, HK_STR(""), "spec.expirationSeconds",
        hk_arena_printf(&c->mem, "Invalid value: %lld: %s", (long long)seconds, fault));
}

/* The name and namespace of the request, if any, must be those of the account. */
static int check_account(struct rest_call *c, const struct json *body)
{
    const struct hk_str name = rest_meta_str(body, "name");
    const struct hk_str ns = rest_meta_str(body, "namespace");

    if (name.n > 0 && !hk_str_eq(name, c->name)) {
        return fail_request(c, c->name, "metadata.name",
                            hk_arena_printf(&c->mem,
                                            "Invalid value: \"%.*s\": must match the service "
                                            "account name if specified",
                                            HK_FMT(name)));
    }
    if (ns.n > 0 && !hk_str_eq(ns, c->ns)) {
        return fail_request(c, c->name, "metadata.namespace",
                            hk_arena_printf(&c->mem,
                                            "Invalid value: \"%.*s\": must match the service "
                                            "account namespace if specified",
                                            HK_FMT(ns)));
    }
    return 0;
}

static int rest_token_check_uid(struct rest_call *c, const char *plural, struct hk_str name,
                                struct hk_str wanted, struct hk_str uid)
{
    if (wanted.n == 0 || hk_str_eq(wanted, uid)) {
        return 0;
    }
    return rest_fail(c, 409, HK_ECONFLICT, "Conflict",
                     "Operation cannot be fulfilled on %s \"%.*s\": the UID in the bound object "
                     "reference (%.*s) does not match the UID in record. The object might have "
                     "been deleted and then recreated",
                     plural, HK_FMT(name), HK_FMT(wanted));
}

static int check_pod(struct rest_call *c, const struct json *pod)
{
    if (hk_str_eq(json_str(json_at(pod, "spec.serviceAccountName"), HK_STR("")), c->name)) {
        return 0;
    }
    return rest_fail_bad(c,
                         "cannot bind token for serviceaccount \"%.*s\" to pod running with "
                         "different serviceaccount name.",
                         HK_FMT(c->name));
}

/* Binds the token to the life of the object that the request names, if any. */
static int rest_token_bind_to_object(struct rest_call *c, const struct json *ref,
                                     struct rest_token *t)
{
    const struct hk_str kind = json_str(json_get(ref, "kind"), HK_STR(""));
    const struct hk_str name = json_str(json_get(ref, "name"), HK_STR(""));
    const struct hk_str uid = json_str(json_get(ref, "uid"), HK_STR(""));
    const bool pod = hk_str_is(kind, "Pod");
    const struct rest_kind *k;
    const struct store_obj *o;
    struct json doc;
    bool staged;

    if (!json_is(ref, JSON_OBJECT)) {
        return 0;
    }
    if (!pod && !hk_str_is(kind, "Secret")) {
        return rest_fail_bad(c, "cannot bind token to object of type %.*s", HK_FMT(kind));
    }
    k = rest_kind_of(c->r, api_kind(pod ? API_POD : API_SECRET));
    o = rest_head(c, k, c->ns, name, &doc, &staged);
    if (!o) {
        return rest_fail_missing(c, k, name);
    }
    if (rest_token_check_uid(c, k->kind->plural, name, uid, o->uid) < 0) {
        return c->rc;
    }
    t->bound_kind = pod ? HK_STR("pod") : HK_STR("secret");
    t->bound_name = hk_arena_str(&c->mem, name);
    t->bound_uid = hk_arena_str(&c->mem, o->uid);
    return pod ? check_pod(c, &doc) : 0;
}

static void set_times(struct rest_call *c, int64_t seconds, struct rest_token *t)
{
    const bool own = !t->audiences && hk_str_is(t->bound_kind, "pod");

    t->issued_s = rest_now(c->r) / REST_SECOND;
    t->expires_s = t->issued_s + (own && seconds == ASKED_FOR_PODS_S ? GIVEN_TO_PODS_S : seconds);
}

/* Answers with the request and the token. expirationTimestamp is the requested one: the time to
 * request a new token. */
static int rest_token_write_answer(struct rest_call *c, const struct json *body,
                                   const struct rest_token *t, int64_t seconds)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_arena *a = &c->mem;
    struct json doc = json_clone(body, a);
    struct json *meta = rest_edit(&doc, a, "metadata"), *status;

    json_set_cstr(&doc, a, "kind", "TokenRequest");
    json_set_cstr(&doc, a, "apiVersion", "authentication.k8s.io/v1");
    json_set_str(meta, a, "name", c->name);
    json_set_str(meta, a, "namespace", c->ns);
    json_set_str(meta, a, "uid", t->account_uid);
    json_set_time(meta, a, "creationTimestamp", t->issued_s * REST_SECOND);
    json_set_int(rest_edit(&doc, a, "spec"), a, "expirationSeconds", seconds);
    c->r->sign(c->r->sign_ctx, t, &text);
    json_del(&doc, "status");
    status = rest_edit(&doc, a, "status");
    json_set_str(status, a, "token", hk_arena_str(a, hk_buf_str(&text)));
    json_set_time(status, a, "expirationTimestamp", (t->issued_s + seconds) * REST_SECOND);
    return rest_answer_tree(c, &request_kind, &doc);
}

int rest_token(struct rest_call *c)
{
    struct json body = json_clone(c->req->body, &c->mem);
    struct rest_token t = {.ns = c->ns, .account = c->name};
    struct json doc;
    bool staged;
    const struct store_obj *account = rest_head(c, c->k, c->ns, c->name, &doc, &staged);

    if (!c->r->sign) {
        return rest_fail_unknown(c);
    }
    if (!account) {
        return rest_fail_missing(c, c->k, c->name);
    }
    if (rest_decode_body(c, &request_kind, &body) < 0 || check_account(c, &body) < 0 ||
        rest_ask_sub(c, &request_kind, &body, NULL, 0) < 0) {
        return c->rc;
    }
    const struct json *audiences = json_at(&body, "spec.audiences");
    const int64_t seconds = json_int(json_at(&body, "spec.expirationSeconds"), DEFAULT_S);
    if (check_duration(c, seconds) < 0 ||
        rest_token_bind_to_object(c, json_at(&body, "spec.boundObjectRef"), &t) < 0) {
        return c->rc;
    }
    t.account_uid = account->uid;
    t.audiences = json_is(audiences, JSON_ARRAY) && audiences->len > 0 ? audiences : NULL;
    t.id = hk_str(hk_arena_printf(&c->mem, "%016llx%016llx",
                                  (unsigned long long)hk_rand_u64(c->r->rand),
                                  (unsigned long long)hk_rand_u64(c->r->rand)));
    set_times(c, seconds, &t);
    return rest_token_write_answer(c, &body, &t, seconds);
}
