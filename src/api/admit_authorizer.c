// SPDX-License-Identifier: Apache-2.0
// The authorizer of expressions: a chain of calls that collects what to ask, as in
//
//   authorizer.group('apps').resource('deployments').namespace('n').check('create').allowed()
//
// and asks at check(). Each call gives a new object.
#include "api/admit_expr_priv.h"

enum authorizer_stage { AT_USER, AT_PATH, AT_GROUP, AT_RESOURCE, AT_DECISION };

struct authorizer {
    const struct admit_run *run;
    enum authorizer_stage stage;
    struct admit_check check;
    bool allowed;
    struct cel_native native;
};

static int authorizer_field(void *ctx, struct hk_str name, struct hk_arena *a,
                            struct cel_value *ret, struct hk_err *err);
static int authorizer_call(void *ctx, struct hk_str method, const struct cel_value *args,
                           uint32_t nargs, struct hk_arena *a, struct cel_value *ret,
                           struct hk_err *err);

static struct authorizer *authorizer_next(const struct authorizer *from,
                                          enum authorizer_stage stage, struct hk_arena *a)
{
    struct authorizer *z = hk_arena_alloc(a, sizeof(*z));

    *z = *from;
    z->stage = stage;
    z->native = (struct cel_native){
        .type = "authorizer", .ctx = z, .field = authorizer_field, .call = authorizer_call};
    return z;
}

struct cel_value admit_authorizer_value(const struct admit_run *r)
{
    const struct authorizer z = {.run = r};

    return cel_of_native(&authorizer_next(&z, AT_USER, r->in.mem)->native);
}

/* authorizer.requestResource: the resource of the request itself. */
static int authorizer_field(void *ctx, struct hk_str name, struct hk_arena *a,
                            struct cel_value *ret, struct hk_err *err)
{
    const struct authorizer *z = ctx;

    if (z->stage != AT_USER || z->check.account_name.n > 0 || !hk_str_is(name, "requestResource")) {
        return -HK_ENOTFOUND;
    }
    struct authorizer *next = authorizer_next(z, AT_RESOURCE, a);
    next->check.ask = z->run->in.resource;
    *ret = cel_of_native(&next->native);
    return 0;
}

/* ---- the calls ---- */

static struct authorizer *authorizer_of_user(const struct authorizer *z, struct hk_str method,
                                             const struct cel_value *args, struct hk_arena *a)
{
    struct authorizer *next = authorizer_next(z, AT_USER, a);

    if (hk_str_is(method, "path")) {
        next->stage = AT_PATH;
        next->check.path = args[0].s;
    } else if (hk_str_is(method, "group")) {
        next->stage = AT_GROUP;
        next->check.ask = (struct rights_ask){.group = args[0].s};
    } else if (hk_str_is(method, "serviceAccount")) {
        next->check.account_ns = args[0].s;
        next->check.account_name = args[1].s;
    } else {
        return NULL;
    }
    return next;
}

static struct authorizer *authorizer_of_group(const struct authorizer *z, struct hk_str method,
                                              const struct cel_value *args, struct hk_arena *a)
{
    struct authorizer *next = authorizer_next(z, AT_RESOURCE, a);

    if (!hk_str_is(method, "resource")) {
        return NULL;
    }
    next->check.ask.resource = args[0].s;
    return next;
}

/* Selectors are accepted and change nothing: RBAC does not look at them. */
static struct authorizer *authorizer_of_resource(const struct authorizer *z, struct hk_str method,
                                                 const struct cel_value *args, struct hk_arena *a)
{
    struct authorizer *next = authorizer_next(z, AT_RESOURCE, a);

    if (hk_str_is(method, "subresource")) {
        next->check.ask.sub = args[0].s;
    } else if (hk_str_is(method, "namespace")) {
        next->check.ask.ns = args[0].s;
    } else if (hk_str_is(method, "name")) {
        next->check.ask.name = args[0].s;
    } else if (!hk_str_is(method, "fieldSelector") && !hk_str_is(method, "labelSelector")) {
        return NULL;
    }
    return next;
}

static struct authorizer *authorizer_ask(const struct authorizer *z, struct hk_str verb,
                                         struct hk_arena *a)
{
    struct authorizer *next = authorizer_next(z, AT_DECISION, a);

    next->check.ask.verb = verb;
    next->allowed = z->run->in.allows && z->run->in.allows(z->run->in.ctx, &next->check);
    return next;
}

static int authorizer_decision(const struct authorizer *z, struct hk_str method,
                               struct cel_value *ret)
{
    if (hk_str_is(method, "allowed")) {
        *ret = cel_of_bool(z->allowed);
    } else if (hk_str_is(method, "errored")) {
        *ret = cel_of_bool(false);
    } else if (hk_str_is(method, "reason") || hk_str_is(method, "error")) {
        *ret = cel_of_str(HK_STR(""));
    } else {
        return -HK_EUNSUP;
    }
    return 0;
}

static int authorizer_call(void *ctx, struct hk_str method, const struct cel_value *args,
                           uint32_t nargs, struct hk_arena *a, struct cel_value *ret,
                           struct hk_err *err)
{
    const struct authorizer *z = ctx;
    const bool asks = z->stage == AT_PATH || z->stage == AT_RESOURCE;
    struct authorizer *next;

    if (z->stage == AT_DECISION) {
        return authorizer_decision(z, method, ret);
    }
    if (asks && hk_str_is(method, "check")) {
        next = authorizer_ask(z, args[0].s, a);
    } else if (z->stage == AT_USER) {
        next = authorizer_of_user(z, method, args, a);
    } else if (z->stage == AT_GROUP) {
        next = authorizer_of_group(z, method, args, a);
    } else {
        next = z->stage == AT_RESOURCE ? authorizer_of_resource(z, method, args, a) : NULL;
    }
    if (!next) {
        return -HK_EUNSUP;
    }
    *ret = cel_of_native(&next->native);
    return 0;
}
