// SPDX-License-Identifier: Apache-2.0
// Protection from writes that crash the server. A client repeats a request that got no answer, so
// one bad request could crash the server again and again. The crash record (base/crumb.h) notes
// each object being written; an object whose write crashed the server twice is refused until its
// body changes.
#include "base/crumb.h"
#include "base/log.h"
#include "store/rest_priv.h"

enum { WORKER_MAX = 128 };

/* The name of the written object; "" if the server is to generate one. */
static struct hk_str guard_name(const struct rest_call *c)
{
    return c->req->name.n > 0 ? c->req->name
                              : json_str(json_at(c->req->body, "metadata.name"), HK_STR(""));
}

static bool guard_skips(const struct rest_call *c, const char *worker, struct hk_str name)
{
    bool news;

    /* Never 0, which means an unknown version. */
    if (!hk_crumb_any() ||
        !hk_crumb_skips(worker, c->ns, name, json_hash(c->req->body) | 1, &news)) {
        return false;
    }
    if (news) {
        hk_log(HK_LOG_ERROR, "skipping an object",
               "controller=admission kind=%s object=%.*s%s%.*s why=\"not written: the server died "
               "of it twice. Change it, and report the backtrace in the log\"",
               c->k->kind->singular, HK_FMT(c->ns), c->ns.n > 0 ? "/" : "", HK_FMT(name));
    }
    return true;
}

enum rest_guard rest_guard_enter(struct rest_call *c)
{
    const enum port_verb verb = c->req->verb;
    char worker[WORKER_MAX];
    struct hk_str name;

    if (verb != PORT_CREATE && verb != PORT_UPDATE && verb != PORT_PATCH) {
        return REST_GUARD_NONE; /* a deletion is never refused: it may be the remedy */
    }
    name = guard_name(c);
    if (name.n == 0) {
        return REST_GUARD_NONE;
    }
    snprintf(worker, sizeof(worker), "admission of %s", c->k->kind->plural);
    if (guard_skips(c, worker, name)) {
        rest_fail(
            c, 500, HK_EIO, "InternalError",
            "%s \"%.*s\" is not written: the server died of this object twice. Change it, and "
            "report the backtrace in the server's log",
            c->k->kind->plural, HK_FMT(name));
        return REST_GUARD_REFUSED;
    }
    hk_crumb_enter(worker, c->ns, name);
    return REST_GUARD_ENTERED;
}
