// SPDX-License-Identifier: Apache-2.0
// TokenRequests and the identities they give. A token is good until it expires, and only as long as
// the account, and the pod or secret it is bound to, are still the same objects.
#include "apiserver/account.h"

#include "apiserver/server_priv.h"
#include "apiserver/token.h"
#include "codec/timefmt.h"

enum { DEFAULT_S = 3600, MIN_S = 600 };
#define MAX_S ((int64_t)1 << 32)

static const struct store_obj *find(const struct server *s, const char *plural, struct hk_str ns,
                                    struct hk_str name)
{
    const struct rest_kind *k =
        rest_kind_find(s->opts.rest, HK_STR(""), HK_STR("v1"), hk_str(plural));

    return store_get(s->opts.store, k->res, ns, name);
}

/* ---- identity ---- */

void account_groups(struct hk_str ns, struct hk_arena *mem, struct auth_user *u)
{
    const char **groups = hk_arena_array(mem, 2, sizeof(*groups));

    groups[0] = "system:serviceaccounts";
    groups[1] = hk_arena_printf(mem, "system:serviceaccounts:%.*s", HK_FMT(ns));
    u->groups = groups;
    u->ngroups = 2;
}

static bool still_bound(const struct server *s, const struct token *t)
{
    const struct store_obj *o;

    if (t->bound_kind.n == 0) {
        return true;
    }
    o = find(s, hk_str_is(t->bound_kind, "pod") ? "pods" : "secrets", t->ns, t->bound_name);
    return o && hk_str_eq(o->uid, t->bound_uid);
}

bool account_by_token(const struct server *s, struct hk_str token, struct hk_arena *mem,
                      struct auth_user *ret)
{
    struct hk_clock *clock = s->opts.clock;
    struct token t;

    if (s->opts.token_key.n == 0 ||
        !token_verify(s->opts.token_key, token, clock->wall_ns(clock) / 1000000000, mem, &t)) {
        return false;
    }
    const struct store_obj *account = find(s, "serviceaccounts", t.ns, t.account);
    if (!account || !hk_str_eq(account->uid, t.account_uid) || !still_bound(s, &t)) {
        return false;
    }
    *ret = (struct auth_user){
        .name = hk_arena_printf(mem, "system:serviceaccount:%.*s:%.*s", HK_FMT(t.ns),
                                HK_FMT(t.account)),
        .uid = hk_arena_str(mem, t.account_uid).s,
    };
    account_groups(t.ns, mem, ret);
    return true;
}

/* ---- requests ---- */

static int refuse_missing(struct exchange *x, const char *plural, struct hk_str name)
{
    const int rc = refuse(x, 404, "NotFound", "%s \"%.*s\" not found", plural, HK_FMT(name));

    x->refusal.name = hk_arena_str(&x->mem, name).s;
    x->refusal.kind = plural;
    return rc;
}

static int check_duration(struct exchange *x, int64_t seconds)
{
    const char *fault = seconds < MIN_S   ? "may not specify a duration less than 10 minutes"
                        : seconds > MAX_S ? "may not specify a duration larger than 2^32 seconds"
                                          : NULL;

    if (!fault) {
        return 0;
    }
    return refuse(x, 422, "Invalid",
                  "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: "
                  "Invalid value: %lld: %s",
                  (long long)seconds, fault);
}

static int check_pod(struct exchange *x, const struct store_obj *pod)
{
    struct json doc;

    if (json_parse(pod->text, 0, &x->mem, &doc, NULL) < 0 ||
        !hk_str_eq(json_str(json_at(&doc, "spec.serviceAccountName"), HK_STR("")), x->route.name)) {
        return refuse(x, 400, "BadRequest",
                      "cannot bind token for serviceaccount \"%.*s\" to pod running with different "
                      "serviceaccount name.",
                      HK_FMT(x->route.name));
    }
    return 0;
}

/* What the token is to live and die with, when the request names it. */
static int bind(struct exchange *x, const struct json *ref, struct token *t)
{
    const struct hk_str kind = json_str(json_get(ref, "kind"), HK_STR(""));
    const struct hk_str name = json_str(json_get(ref, "name"), HK_STR(""));
    const struct hk_str uid = json_str(json_get(ref, "uid"), HK_STR(""));
    const bool pod = hk_str_is(kind, "Pod");
    const char *plural = pod ? "pods" : "secrets";

    if (!json_is(ref, JSON_OBJECT)) {
        return 0;
    }
    if (!pod && !hk_str_is(kind, "Secret")) {
        return refuse(x, 400, "BadRequest", "cannot bind token to object of type %.*s",
                      HK_FMT(kind));
    }
    const struct store_obj *o = find(x->server, plural, x->route.ns, name);
    if (!o) {
        return refuse_missing(x, plural, name);
    }
    if (uid.n > 0 && !hk_str_eq(uid, o->uid)) {
        return refuse(x, 409, "Conflict",
                      "Operation cannot be fulfilled on %s \"%.*s\": the UID in the bound object "
                      "reference (%.*s) does not match the UID in record. The object might have "
                      "been deleted and then recreated",
                      plural, HK_FMT(name), HK_FMT(uid));
    }
    t->bound_kind = pod ? HK_STR("pod") : HK_STR("secret");
    t->bound_name = name;
    t->bound_uid = hk_arena_str(&x->mem, o->uid);
    return pod ? check_pod(x, o) : 0;
}

static struct json *put(struct exchange *x, struct json *obj, const char *key, struct json v)
{
    return json_put(obj, &x->mem, hk_str(key), v);
}

static struct json *object_at(struct exchange *x, struct json *obj, const char *key)
{
    struct json *v = (struct json *)json_get(obj, key);

    return json_is(v, JSON_OBJECT) ? v : put(x, obj, key, json_make_object());
}

static struct json time_value(struct exchange *x, int64_t seconds)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    time_write(seconds * 1000000000, &text);
    return json_make_str(hk_arena_str(&x->mem, hk_buf_str(&text)));
}

static void write_answer(struct exchange *x, struct json *doc, const struct token *t,
                         struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct json *metadata = object_at(x, doc, "metadata");
    struct json *status;

    put(x, metadata, "name", json_make_str(x->route.name));
    put(x, metadata, "namespace", json_make_str(x->route.ns));
    put(x, metadata, "creationTimestamp", time_value(x, t->issued_s));
    put(x, object_at(x, doc, "spec"), "expirationSeconds",
        json_make_int(t->expires_s - t->issued_s));
    token_sign(x->server->opts.token_key, t, &text);
    status = put(x, doc, "status", json_make_object());
    put(x, status, "token", json_make_str(hk_buf_str(&text)));
    put(x, status, "expirationTimestamp", time_value(x, t->expires_s));
    json_write(doc, out);
}

static int issue(struct exchange *x, struct hk_buf *out)
{
    struct hk_clock *clock = x->server->opts.clock;
    struct token t = {.ns = x->route.ns, .account = x->route.name};
    struct json doc;
    int rc = body_decode(x, "TokenRequest", &doc);

    if (rc < 0) {
        return rc;
    }
    const struct store_obj *account =
        find(x->server, "serviceaccounts", x->route.ns, x->route.name);
    if (!account) {
        return refuse_missing(x, "serviceaccounts", x->route.name);
    }
    const int64_t seconds = json_int(json_at(&doc, "spec.expirationSeconds"), DEFAULT_S);
    const struct json *audiences = json_at(&doc, "spec.audiences");
    rc = check_duration(x, seconds);
    rc = rc < 0 ? rc : bind(x, json_at(&doc, "spec.boundObjectRef"), &t);
    if (rc < 0) {
        return rc;
    }
    t.account_uid = account->uid;
    t.issued_s = clock->wall_ns(clock) / 1000000000;
    t.expires_s = t.issued_s + seconds;
    t.audiences = json_is(audiences, JSON_ARRAY) && audiences->len > 0 ? audiences : NULL;
    t.id = hk_str(hk_arena_printf(&x->mem, "%016llx%016llx",
                                  (unsigned long long)hk_rand_u64(x->server->opts.rand),
                                  (unsigned long long)hk_rand_u64(x->server->opts.rand)));
    put(x, &doc, "kind", json_make_str(HK_STR("TokenRequest")));
    put(x, &doc, "apiVersion", json_make_str(HK_STR("authentication.k8s.io/v1")));
    write_answer(x, &doc, &t, out);
    return 0;
}

bool account_answer(struct exchange *x)
{
    const struct route *r = &x->route;
    struct hk_buf body = {0};

    if (r->group.n > 0 || !hk_str_is(r->plural, "serviceaccounts") || !hk_str_is(r->sub, "token") ||
        r->ns.n == 0 || x->server->opts.token_key.n == 0) {
        return false;
    }
    if (!hk_str_is(x->http->method, "POST")) {
        refuse(x, 405, "MethodNotAllowed",
               "the server does not allow this method on the requested resource");
        answer_refusal(x);
    } else if (issue(x, &body) < 0) {
        answer_refusal(x);
    } else {
        answer_json(x, 201, &body);
    }
    return true;
}
