// SPDX-License-Identifier: Apache-2.0
// The identities that tokens carry. A token is valid until it expires, and only while its service
// account, and the pod or secret it is bound to, are still the same objects.
#include "apiserver/account.h"

#include "apiserver/server_priv.h"
#include "apiserver/token.h"

static const struct store_obj *account_find_object(const struct server *s, const char *plural,
                                                   struct hk_str ns, struct hk_str name)
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

static bool still_bound(const struct server *s, const struct rest_token *t)
{
    const struct store_obj *o;

    if (t->bound_kind.n == 0) {
        return true;
    }
    o = account_find_object(s, hk_str_is(t->bound_kind, "pod") ? "pods" : "secrets", t->ns,
                            t->bound_name);
    return o && hk_str_eq(o->uid, t->bound_uid);
}

bool account_by_token(const struct server *s, struct hk_str token, struct hk_arena *mem,
                      struct auth_user *ret)
{
    struct hk_clock *clock = s->opts.clock;
    struct rest_token t;

    if (s->opts.token_key.n == 0 ||
        !token_verify(s->opts.token_key, token, clock->wall_ns(clock) / 1000000000, mem, &t)) {
        return false;
    }
    const struct store_obj *account = account_find_object(s, "serviceaccounts", t.ns, t.account);
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

/* ---- signing ---- */

void account_sign(void *ctx, const struct rest_token *t, struct hk_buf *out)
{
    const struct server *s = ctx;

    token_sign(s->opts.token_key, t, out);
}
