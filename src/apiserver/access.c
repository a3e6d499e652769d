// SPDX-License-Identifier: Apache-2.0
// Identity by token or certificate, then the identity asked for by Impersonate-* headers, then the
// verdict of RBAC. Everybody who is known belongs to the group system:authenticated.
#include "apiserver/access.h"

#include "apiserver/account.h"
#include "apiserver/server_priv.h"

#include <strings.h>

#define ACCOUNT_PREFIX "system:serviceaccount:"
#define RBAC_GROUP "rbac.authorization.k8s.io"
#define AUTHENTICATED "system:authenticated"

/* ---- identity ---- */

static bool has_group(const struct auth_user *u, const char *group)
{
    for (uint32_t i = 0; i < u->ngroups; i++) {
        if (strcmp(u->groups[i], group) == 0) {
            return true;
        }
    }
    return false;
}

static void join(struct auth_user *u, const char *group, struct hk_arena *mem)
{
    const char **groups = hk_arena_array(mem, u->ngroups + 1, sizeof(*groups));

    if (has_group(u, group)) {
        return;
    }
    for (uint32_t i = 0; i < u->ngroups; i++) {
        groups[i] = u->groups[i];
    }
    groups[u->ngroups++] = group;
    u->groups = groups;
}

bool access_by_token(const struct server *s, struct hk_str token, struct hk_arena *mem,
                     struct auth_user *ret)
{
    *ret = auth_by_token(s->opts.auth, token);
    if (!ret->name && !account_by_token(s, token, mem, ret)) {
        return false;
    }
    join(ret, AUTHENTICATED, mem);
    return true;
}

/* A token that is given decides, even when a certificate comes with it. */
bool access_identify(const struct server *s, const struct http_request *q, struct hk_arena *mem,
                     struct auth_user *ret)
{
    struct hk_str token;

    if (auth_bearer(q, &token)) {
        return access_by_token(s, token, mem, ret);
    }
    if (!auth_by_certificate(q, ret)) {
        return false;
    }
    join(ret, AUTHENTICATED, mem);
    return true;
}

/* ---- verdicts ---- */

bool access_allows(struct exchange *x, const struct auth_user *u, const struct rbac_ask *ask)
{
    return auth_is_admin(u) || rbac_allows(x->server->rbac, u, ask);
}

/* `pods "p" is forbidden: ` and why. */
static int refuse_resource(struct exchange *x, const struct rbac_ask *ask, const char *why)
{
    const char *resource = hk_arena_printf(&x->mem, "%.*s%s%.*s", HK_FMT(ask->plural),
                                           ask->group.n > 0 ? "." : "", HK_FMT(ask->group));
    const int rc =
        refuse(x, 403, "Forbidden", "%s%s%.*s%s is forbidden: %s", resource,
               ask->name.n > 0 ? " \"" : "", HK_FMT(ask->name), ask->name.n > 0 ? "\"" : "", why);

    x->refusal.name = ask->name.n > 0 ? hk_arena_str(&x->mem, ask->name).s : NULL;
    x->refusal.group = ask->group.n > 0 ? hk_arena_str(&x->mem, ask->group).s : NULL;
    x->refusal.kind = hk_arena_str(&x->mem, ask->plural).s;
    return rc;
}

static int require(struct exchange *x, const struct rbac_ask *ask)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};

    if (access_allows(x, &x->user, ask)) {
        return 0;
    }
    rbac_write_refusal(&x->user, ask, &why);
    return ask->path.n > 0 ? refuse(x, 403, "Forbidden", "forbidden: %s", why.data)
                           : refuse_resource(x, ask, why.data);
}

/* ---- as somebody else ---- */

/* What the Impersonate-* headers ask for. */
struct wish {
    struct hk_arena *mem;
    struct auth_user user;
    HK_VEC(const char *) groups;
    bool any, extra;
};

static void on_header(void *ctx, struct hk_str name, struct hk_str value)
{
    static const char prefix[] = "Impersonate-";
    struct wish *w = ctx;

    if (name.n < strlen(prefix) || strncasecmp(name.s, prefix, strlen(prefix)) != 0) {
        return;
    }
    const char *what = name.s + strlen(prefix);
    const char *text = hk_arena_strndup(w->mem, value.s, value.n);
    w->any = true;
    if (strcasecmp(what, "User") == 0) {
        w->user.name = text;
    } else if (strcasecmp(what, "Group") == 0) {
        hk_vec_push(&w->groups, text);
    } else if (strcasecmp(what, "Uid") == 0) {
        w->user.uid = text;
    } else {
        w->extra = true;
    }
}

/* The namespace and name in "system:serviceaccount:NS:NAME". */
static bool split_account(const char *user, struct hk_str *ns, struct hk_str *name)
{
    struct hk_str rest = hk_str(user);

    if (!hk_str_starts(rest, ACCOUNT_PREFIX)) {
        return false;
    }
    rest.s += strlen(ACCOUNT_PREFIX);
    rest.n -= strlen(ACCOUNT_PREFIX);
    *name = HK_STR("");
    return hk_str_cut(&rest, ':', ns) && hk_str_cut(&rest, ':', name) && name->n > 0;
}

static int may_impersonate(struct exchange *x, const struct wish *w)
{
    struct rbac_ask ask = {.verb = HK_STR("impersonate"), .plural = HK_STR("users")};
    int rc;

    ask.name = hk_str(w->user.name);
    if (split_account(w->user.name, &ask.ns, &ask.name)) {
        ask.plural = HK_STR("serviceaccounts");
    }
    rc = require(x, &ask);
    for (uint32_t i = 0; rc == 0 && i < w->groups.len; i++) {
        rc = require(x, &(struct rbac_ask){.verb = ask.verb,
                                           .plural = HK_STR("groups"),
                                           .name = hk_str(w->groups.at[i])});
    }
    if (rc == 0 && w->user.uid) {
        rc = require(x, &(struct rbac_ask){.verb = ask.verb,
                                           .group = HK_STR("authentication.k8s.io"),
                                           .plural = HK_STR("uids"),
                                           .name = hk_str(w->user.uid)});
    }
    return rc;
}

/* Accounts are in their groups unless others were asked for. */
static struct auth_user person_of(struct exchange *x, const struct wish *w)
{
    struct auth_user u = w->user;
    struct hk_str ns, name;

    for (uint32_t i = 0; i < w->groups.len; i++) {
        join(&u, w->groups.at[i], &x->mem);
    }
    if (u.ngroups == 0 && split_account(u.name, &ns, &name)) {
        account_groups(ns, &x->mem, &u);
    }
    join(&u, strcmp(u.name, "system:anonymous") == 0 ? "system:unauthenticated" : AUTHENTICATED,
         &x->mem);
    return u;
}

static int impersonate_as(struct exchange *x, const struct wish *w)
{
    if (!w->any) {
        return 0;
    }
    if (!w->user.name || w->user.name[0] == '\0') {
        return refuse(x, 500, "InternalError",
                      "Internal error occurred: requested impersonation of groups, uid or extra "
                      "without impersonating a user");
    }
    if (w->extra && !auth_is_admin(&x->user)) {
        return refuse(x, 403, "Forbidden", "forbidden: User \"%s\" cannot impersonate extra fields",
                      x->user.name);
    }
    const int rc = may_impersonate(x, w);
    if (rc == 0) {
        x->user = person_of(x, w);
    }
    return rc;
}

static int impersonate(struct exchange *x)
{
    struct wish w = {.mem = &x->mem};

    http_request_headers(x->http, on_header, &w);
    const int rc = impersonate_as(x, &w);
    hk_vec_fini(&w.groups);
    return rc;
}

/* ---- what is asked for ---- */

static struct hk_str verb_of(const struct exchange *x)
{
    static const struct {
        const char *method, *one, *many;
    } rows[] = {
        {"GET", "get", "list"},       {"HEAD", "get", "list"},
        {"POST", "create", "create"}, {"PUT", "update", "update"},
        {"PATCH", "patch", "patch"},  {"DELETE", "delete", "deletecollection"},
    };
    const struct route *r = &x->route;

    if (hk_str_is(x->http->method, "GET") && r->sub.n == 0 &&
        (r->watch || query_bool(&x->query, "watch"))) {
        return HK_STR("watch");
    }
    for (size_t i = 0; i < HK_LEN(rows); i++) {
        if (hk_str_is(x->http->method, rows[i].method)) {
            return hk_str(r->name.n > 0 ? rows[i].one : rows[i].many);
        }
    }
    return x->http->method;
}

/* A list or watch of one object by its name is a question about that object. */
static struct hk_str selected_name(const struct exchange *x)
{
    struct hk_str rest = query_get(&x->query, "fieldSelector"), term;

    while (rest.n > 0 && hk_str_cut(&rest, ',', &term)) {
        struct hk_str key;
        if (hk_str_cut(&term, '=', &key) && hk_str_is(key, "metadata.name") && term.s) {
            return term.n > 0 && term.s[0] == '=' ? (struct hk_str){term.s + 1, term.n - 1} : term;
        }
    }
    return HK_STR("");
}

static struct hk_str lower(struct exchange *x, struct hk_str s)
{
    char *copy = hk_arena_strndup(&x->mem, s.s, s.n);

    for (char *c = copy; *c; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    }
    return (struct hk_str){copy, s.n};
}

static struct rbac_ask ask_of(struct exchange *x)
{
    const struct route *r = &x->route;

    if (!r->resource) {
        return (struct rbac_ask){.verb = lower(x, x->http->method), .path = r->path};
    }
    struct rbac_ask ask = {
        .verb = verb_of(x),
        .group = r->group,
        .plural = r->plural,
        .sub = r->sub,
        .ns = r->ns,
        .name = r->name.n > 0 ? r->name : selected_name(x),
    };
    if (r->group.n == 0 && hk_str_is(r->plural, "namespaces")) {
        ask.ns = r->name; /* a namespace is in itself */
    }
    return ask;
}

/* WebSockets begin with GET, but whoever may only read shall not run commands. */
static bool opens_stream(const struct rbac_ask *ask)
{
    return ask->group.n == 0 && hk_str_is(ask->plural, "pods") && hk_str_is(ask->verb, "get") &&
           (hk_str_is(ask->sub, "exec") || hk_str_is(ask->sub, "attach") ||
            hk_str_is(ask->sub, "portforward"));
}

int access_check(struct exchange *x)
{
    if (!access_identify(x->server, x->http, &x->mem, &x->user)) {
        return refuse(x, 401, "Unauthorized", "Unauthorized");
    }
    const int rc = impersonate(x);
    if (rc < 0 || auth_is_admin(&x->user)) {
        return rc;
    }
    struct rbac_ask ask = ask_of(x);
    const int allowed = require(x, &ask);
    if (allowed < 0 || !opens_stream(&ask)) {
        return allowed;
    }
    ask.verb = HK_STR("create");
    return require(x, &ask);
}

/* ---- giving rights away ---- */

static int refuse_grant(struct exchange *x, const struct rbac_ask *ask)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};

    hk_buf_addf(&why, "user \"%s\" (groups=[", x->user.name);
    for (uint32_t i = 0; i < x->user.ngroups; i++) {
        hk_buf_addf(&why, "%s\"%s\"", i > 0 ? " " : "", x->user.groups[i]);
    }
    hk_buf_adds(&why, "]) is attempting to grant RBAC permissions not currently held");
    return refuse_resource(x, ask, why.data);
}

/* What a patch makes of an object is not known here: it needs the right to everything. */
static int check_role(struct exchange *x, struct rbac_ask ask)
{
    ask.verb = HK_STR("escalate");
    if (access_allows(x, &x->user, &ask) ||
        (x->req.verb != PORT_PATCH &&
         rbac_covers(x->server->rbac, &x->user, ask.ns, json_get(x->req.body, "rules")))) {
        return 0;
    }
    return refuse_grant(x, &ask);
}

static int check_binding(struct exchange *x, struct rbac_ask ask)
{
    const struct json *ref = json_get(x->req.body, "roleRef");
    const bool local = hk_str_is(json_str(json_get(ref, "kind"), HK_STR("")), "Role");
    const struct rbac_ask bind = {
        .verb = HK_STR("bind"),
        .group = HK_STR(RBAC_GROUP),
        .plural = local ? HK_STR("roles") : HK_STR("clusterroles"),
        .ns = ask.ns,
        .name = json_str(json_get(ref, "name"), HK_STR("")),
    };

    if (access_allows(x, &x->user, &bind)) {
        return 0;
    }
    const struct json *rules =
        x->req.verb == PORT_PATCH ? NULL : rbac_role_rules(x->server->rbac, ask.ns, ref);
    if (rules) {
        /* copied: evaluating may write the book of roles anew */
        const struct json copy = json_clone(rules, &x->mem);
        if (rbac_covers(x->server->rbac, &x->user, ask.ns, &copy)) {
            return 0;
        }
    }
    return refuse_grant(x, &ask);
}

int access_check_grant(struct exchange *x)
{
    const enum port_verb verb = x->req.verb;
    const struct rbac_ask ask = ask_of(x);

    if (auth_is_admin(&x->user) || !hk_str_is(ask.group, RBAC_GROUP) ||
        (verb != PORT_CREATE && verb != PORT_UPDATE && verb != PORT_PATCH)) {
        return 0;
    }
    return hk_str_ends(ask.plural, "bindings") ? check_binding(x, ask) : check_role(x, ask);
}
