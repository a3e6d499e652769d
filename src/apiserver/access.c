// SPDX-License-Identifier: Apache-2.0
// Authentication by token or certificate, then impersonation by Impersonate-* headers, then
// authorization by RBAC. Every authenticated user belongs to the group system:authenticated.
#include "apiserver/access.h"

#include "api/admit_expr.h"
#include "apiserver/account.h"
#include "apiserver/server_priv.h"

#include <strings.h>

#define ACCOUNT_PREFIX "system:serviceaccount:"
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

static void access_add_group(struct auth_user *u, const char *group, struct hk_arena *mem)
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
    access_add_group(ret, AUTHENTICATED, mem);
    return true;
}

/* A token takes precedence over a client certificate. */
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
    access_add_group(ret, AUTHENTICATED, mem);
    return true;
}

/* ---- authorization ---- */

bool access_allows(struct exchange *x, const struct auth_user *u, const struct rbac_ask *ask)
{
    return auth_is_admin(u) || rbac_allows(x->server->rbac, u, ask);
}

/* `pods "p" is forbidden: ` and the reason. */
static int refuse_resource(struct exchange *x, const struct rbac_ask *ask, const char *why)
{
    const char *resource = hk_arena_printf(&x->mem, "%.*s%s%.*s", HK_FMT(ask->plural),
                                           ask->group.n > 0 ? "." : "", HK_FMT(ask->group));
    const int rc = exchange_refuse(x, 403, "Forbidden", "%s%s%.*s%s is forbidden: %s", resource,
                                   ask->name.n > 0 ? " \"" : "", HK_FMT(ask->name),
                                   ask->name.n > 0 ? "\"" : "", why);

    x->refusal.name = ask->name.n > 0 ? hk_arena_str(&x->mem, ask->name).s : NULL;
    x->refusal.group = ask->group.n > 0 ? hk_arena_str(&x->mem, ask->group).s : NULL;
    x->refusal.kind = hk_arena_str(&x->mem, ask->plural).s;
    return rc;
}

static int access_require_allowed(struct exchange *x, const struct rbac_ask *ask)
{
    HK_AUTO(hk_buf_fini) struct hk_buf why = {0};

    if (access_allows(x, &x->user, ask)) {
        return 0;
    }
    rbac_write_refusal(&x->user, ask, &why);
    return ask->path.n > 0 ? exchange_refuse(x, 403, "Forbidden", "forbidden: %s", why.data)
                           : refuse_resource(x, ask, why.data);
}

/* ---- impersonation ---- */

/* The identity that the Impersonate-* headers request. */
struct wish {
    struct hk_arena *mem;
    struct auth_user user;
    HK_VEC(const char *) groups;
    bool any, extra;
};

static void access_on_header(void *ctx, struct hk_str name, struct hk_str value)
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
    rc = access_require_allowed(x, &ask);
    for (uint32_t i = 0; rc == 0 && i < w->groups.len; i++) {
        rc = access_require_allowed(x, &(struct rbac_ask){.verb = ask.verb,
                                                          .plural = HK_STR("groups"),
                                                          .name = hk_str(w->groups.at[i])});
    }
    if (rc == 0 && w->user.uid) {
        rc = access_require_allowed(x, &(struct rbac_ask){.verb = ask.verb,
                                                          .group = HK_STR("authentication.k8s.io"),
                                                          .plural = HK_STR("uids"),
                                                          .name = hk_str(w->user.uid)});
    }
    return rc;
}

/* A service account gets its default groups unless the request names groups. */
static struct auth_user requested_user(struct exchange *x, const struct wish *w)
{
    struct auth_user u = w->user;
    struct hk_str ns, name;

    for (uint32_t i = 0; i < w->groups.len; i++) {
        access_add_group(&u, w->groups.at[i], &x->mem);
    }
    if (u.ngroups == 0 && split_account(u.name, &ns, &name)) {
        account_groups(ns, &x->mem, &u);
    }
    access_add_group(
        &u, strcmp(u.name, "system:anonymous") == 0 ? "system:unauthenticated" : AUTHENTICATED,
        &x->mem);
    return u;
}

static int impersonate_as(struct exchange *x, const struct wish *w)
{
    if (!w->any) {
        return 0;
    }
    if (!w->user.name || w->user.name[0] == '\0') {
        return exchange_refuse(
            x, 500, "InternalError",
            "Internal error occurred: requested impersonation of groups, uid or extra "
            "without impersonating a user");
    }
    if (w->extra && !auth_is_admin(&x->user)) {
        return exchange_refuse(x, 403, "Forbidden",
                               "forbidden: User \"%s\" cannot impersonate extra fields",
                               x->user.name);
    }
    const int rc = may_impersonate(x, w);
    if (rc == 0) {
        x->user = requested_user(x, w);
    }
    return rc;
}

static int impersonate(struct exchange *x)
{
    struct wish w = {.mem = &x->mem};

    http_request_headers(x->http, access_on_header, &w);
    const int rc = impersonate_as(x, &w);
    hk_vec_fini(&w.groups);
    return rc;
}

/* ---- the requested action ---- */

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

/* For a list, watch or deletecollection with a metadata.name field selector, RBAC checks that
 * object name. Other verbs ignore the selector, so it cannot match a rule for them. */
static struct hk_str selected_name(const struct exchange *x, struct hk_str verb)
{
    struct hk_str rest = query_get(&x->query, "fieldSelector"), term;

    if (!hk_str_is(verb, "list") && !hk_str_is(verb, "watch") &&
        !hk_str_is(verb, "deletecollection")) {
        return HK_STR("");
    }
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
    const struct hk_str verb = verb_of(x);
    struct rbac_ask ask = {
        .verb = verb,
        .group = r->group,
        .plural = r->plural,
        .sub = r->sub,
        .ns = r->ns,
        .name = r->name.n > 0 ? r->name : selected_name(x, verb),
    };
    if (r->group.n == 0 && hk_str_is(r->plural, "namespaces")) {
        ask.ns = r->name; /* RBAC treats a namespace as inside itself */
    }
    return ask;
}

/* WebSockets start with GET, but a user with read rights only must not run commands. */
static bool opens_stream(const struct rbac_ask *ask)
{
    return ask->group.n == 0 && hk_str_is(ask->plural, "pods") && hk_str_is(ask->verb, "get") &&
           (hk_str_is(ask->sub, "exec") || hk_str_is(ask->sub, "attach") ||
            hk_str_is(ask->sub, "portforward"));
}

int access_check(struct exchange *x)
{
    if (!access_identify(x->server, x->http, &x->mem, &x->user)) {
        return exchange_refuse(x, 401, "Unauthorized", "Unauthorized");
    }
    const int rc = impersonate(x);
    if (rc < 0 || auth_is_admin(&x->user)) {
        return rc;
    }
    struct rbac_ask ask = ask_of(x);
    const int allowed = access_require_allowed(x, &ask);
    if (allowed < 0 || !opens_stream(&ask)) {
        return allowed;
    }
    ask.verb = HK_STR("create");
    return access_require_allowed(x, &ask);
}

/* ---- rights, for rules about objects ---- */

static bool rights_allows(void *ctx, const struct rights_ask *ask)
{
    struct exchange *x = ctx;
    const struct rbac_ask wanted = {.verb = ask->verb,
                                    .group = ask->group,
                                    .plural = ask->resource,
                                    .sub = ask->sub,
                                    .ns = ask->ns,
                                    .name = ask->name};

    return access_allows(x, &x->user, &wanted);
}

static bool rights_covers(void *ctx, struct hk_str ns, const struct json *rules)
{
    struct exchange *x = ctx;

    return rbac_covers(x->server->rbac, &x->user, ns, rules);
}

static bool rights_covers_role(void *ctx, struct hk_str ns, const struct json *role_ref)
{
    struct exchange *x = ctx;
    const struct json *rules = rbac_role_rules(x->server->rbac, ns, role_ref);

    if (!rules) {
        return false;
    }
    /* copied: rbac_covers may rebuild the roles */
    const struct json copy = json_clone(rules, &x->mem);
    return rbac_covers(x->server->rbac, &x->user, ns, &copy);
}

void access_lend_rights(struct exchange *x)
{
    x->person = (struct port_user){.name = x->user.name,
                                   .uid = x->user.uid,
                                   .groups = x->user.groups,
                                   .ngroups = x->user.ngroups};
    x->req.user = &x->person;
    if (auth_is_admin(&x->user)) {
        return;
    }
    x->rights = (struct rights){.ctx = x,
                                .user = x->user.name,
                                .groups = x->user.groups,
                                .ngroups = x->user.ngroups,
                                .allows = rights_allows,
                                .covers = rights_covers,
                                .covers_role = rights_covers_role};
    x->req.rights = &x->rights;
}

bool access_on_check(void *ctx, const struct port_user *user, const struct admit_check *check)
{
    const struct server *s = ctx;
    const struct rights_ask *ask = &check->ask;
    const struct auth_user u = {
        .name = user->name, .uid = user->uid, .groups = user->groups, .ngroups = user->ngroups};
    const struct rbac_ask wanted = {.verb = ask->verb,
                                    .group = ask->group,
                                    .plural = ask->resource,
                                    .sub = ask->sub,
                                    .ns = ask->ns,
                                    .name = ask->name,
                                    .path = check->path};

    return auth_is_admin(&u) || rbac_allows(s->rbac, &u, &wanted);
}
