// SPDX-License-Identifier: Apache-2.0
// One row per rule with its configuration, if that exists. A row that differs is written. A failed
// write, conflicts included, is repeated after a pause, from the state that the watch shows then.
#include "webhook/publish.h"

#include "admission/volcano.h"
#include "api/feed.h"
#include "base/log.h"
#include "codec/base64.h"
#include "net/cert.h"

#define PREFIX "volcano-admission-service"
#define PAUSE_NS ((int64_t)1000 * 1000 * 1000)

enum { MAX_RULES = 32, MUTATING = 0, VALIDATING = 1, NFEEDS };

static const struct api_kind kinds[NFEEDS] = {
    [MUTATING] = {.id = API_NKINDS,
                  .group = "admissionregistration.k8s.io",
                  .version = "v1",
                  .kind = "MutatingWebhookConfiguration",
                  .plural = "mutatingwebhookconfigurations",
                  .singular = "mutatingwebhookconfiguration"},
    [VALIDATING] = {.id = API_NKINDS,
                    .group = "admissionregistration.k8s.io",
                    .version = "v1",
                    .kind = "ValidatingWebhookConfiguration",
                    .plural = "validatingwebhookconfigurations",
                    .singular = "validatingwebhookconfiguration"},
};

struct row {
    struct webhook_publish *owner;
    const struct volcano_rule *rule; /* NULL: not enabled */
    char name[WEBHOOK_PUBLISH_NAME];
    struct api_object *obj; /* NULL: does not exist */
    uint64_t call;
    int64_t due_ns; /* of the next attempt; INT64_MAX: none is needed */
};

struct followed_configs {
    struct webhook_publish *owner;
    bool wanted;
    struct feed feed;
};

struct webhook_publish {
    struct webhook_publish_opts o;
    struct hk_intern str;
    struct followed_configs followed[NFEEDS];
    struct row rows[MAX_RULES];
    struct hk_buf bundle; /* base64; empty: nothing to publish */
    struct hk_buf first;  /* certificate that a bundle must contain; empty: exact match */
};

static int64_t webhook_publish_now_ns(const struct webhook_publish *p)
{
    return p->o.clock->mono_ns(p->o.clock);
}

/* ---- comparing ---- */

static bool hook_differs(const struct webhook_publish *p, const struct json *hook)
{
    const struct hk_str coded = json_str_at(hook, "clientConfig.caBundle");
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (hk_str_eq(coded, hk_buf_str(&p->bundle))) {
        return false;
    }
    return p->first.len == 0 || cert_read_base64(coded, &text, NULL) < 0 ||
           !hk_str_contains(hk_buf_str(&text), p->first.data);
}

static bool webhook_publish_bundle_differs(const struct row *r)
{
    const struct json *hooks = r->obj ? json_get(&r->obj->root, "webhooks") : NULL;

    for (uint32_t i = 0; i < json_len(hooks); i++) {
        if (hook_differs(r->owner, json_item(hooks, i))) {
            return r->owner->bundle.len > 0;
        }
    }
    return false;
}

bool webhook_publish_settled(const struct webhook_publish *p)
{
    for (size_t i = 0; i < MAX_RULES; i++) {
        if (webhook_publish_bundle_differs(&p->rows[i])) {
            return false;
        }
    }
    return true;
}

/* ---- writing ---- */

static void webhook_publish_on_written(void *ctx, const struct port_msg *m)
{
    struct row *r = ctx;

    r->call = 0;
    if (m->rc == 0) {
        hk_log(HK_LOG_INFO, "authority published", "configuration=%s", r->name);
    } else {
        hk_log(m->rc == -HK_ECONFLICT ? HK_LOG_INFO : HK_LOG_ERROR, "authority not published",
               "configuration=%s err=\"%s\"", r->name, m->err->text);
    }
    /* The watch shows the result; until then the row is unchanged. */
    r->due_ns = webhook_publish_now_ns(r->owner) + PAUSE_NS;
}

static void webhook_publish_set_bundle(struct json *hooks, struct hk_str bundle, struct hk_arena *a)
{
    for (uint32_t i = 0; i < hooks->len; i++) {
        struct json *hook = &hooks->items[i];
        struct json client = json_make_object();

        if (hook->type != JSON_OBJECT) {
            continue;
        }
        if (json_is(json_get(hook, "clientConfig"), JSON_OBJECT)) {
            client = *json_get(hook, "clientConfig");
        }
        json_set_str(&client, a, "caBundle", bundle);
        json_set(hook, a, "clientConfig", client);
    }
}

static void webhook_publish_write_row(struct row *r)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json doc = json_clone(&r->obj->root, &a);

    webhook_publish_set_bundle((struct json *)json_get(&doc, "webhooks"),
                               hk_buf_str(&r->owner->bundle), &a);
    r->due_ns = INT64_MAX;
    r->call = port_update(r->owner->o.port, r->obj->kind, NULL, &doc,
                          (struct port_sink){webhook_publish_on_written, r});
}

/* Writes the row if it differs and no write is in flight. */
static void attend(struct row *r)
{
    if (!webhook_publish_bundle_differs(r)) {
        r->due_ns = INT64_MAX;
    } else if (r->call == 0) {
        webhook_publish_write_row(r);
    }
}

/* ---- from the API ---- */

static struct row *webhook_publish_find_row(struct followed_configs *sh, struct hk_str name)
{
    const bool mutates = sh == &sh->owner->followed[MUTATING];

    for (size_t i = 0; i < MAX_RULES; i++) {
        struct row *r = &sh->owner->rows[i];
        if (r->rule && r->rule->mutates == mutates && hk_str_is(name, r->name)) {
            return r;
        }
    }
    return NULL;
}

static void tell_if_settled(struct webhook_publish *p)
{
    if (webhook_publish_settled(p)) {
        p->o.settled(p->o.ctx);
    }
}

static void webhook_publish_on_put(void *ctx, struct api_object *o)
{
    struct followed_configs *sh = ctx;
    struct row *r = webhook_publish_find_row(sh, o->name);

    if (r) {
        api_object_unref(r->obj);
        r->obj = api_object_ref(o);
        attend(r);
        tell_if_settled(sh->owner);
    }
}

static void webhook_publish_on_del(void *ctx, struct hk_str ns, struct hk_str name,
                                   const struct api_object *last)
{
    struct followed_configs *sh = ctx;
    struct row *r = webhook_publish_find_row(sh, name);

    if (r) {
        api_object_unref(r->obj);
        r->obj = NULL;
        tell_if_settled(sh->owner);
    }
}

static void webhook_publish_on_listed(void *ctx)
{
    const struct followed_configs *sh = ctx;
    const bool mutates = sh == &sh->owner->followed[MUTATING];

    for (size_t i = 0; i < MAX_RULES; i++) {
        const struct row *r = &sh->owner->rows[i];
        if (r->rule && r->rule->mutates == mutates && !r->obj) {
            hk_log(HK_LOG_WARN, "no webhook configuration", "path=%s configuration=%s",
                   r->rule->path, r->name);
        }
    }
}

/* ---- open and close ---- */

void webhook_publish_name(const char *path, char *out, size_t room)
{
    snprintf(out, room, PREFIX "%s", path);
    for (; *out != '\0'; out++) {
        if (*out == '/') {
            *out = '-';
        }
    }
}

static void open_followed_configs(struct webhook_publish *p, unsigned which)
{
    static const struct feed_ops ops = {.put = webhook_publish_on_put,
                                        .del = webhook_publish_on_del,
                                        .listed = webhook_publish_on_listed};
    struct followed_configs *sh = &p->followed[which];

    if (sh->wanted) {
        feed_init(&sh->feed, &(struct feed_opts){.port = p->o.port,
                                                 .clock = p->o.clock,
                                                 .str = &p->str,
                                                 .kind = &kinds[which],
                                                 .ops = &ops,
                                                 .ctx = sh});
    }
}

struct webhook_publish *webhook_publish_new(const struct webhook_publish_opts *o)
{
    struct webhook_publish *p = hk_zalloc(sizeof(*p));

    p->o = *o;
    for (uint32_t i = 0; i < NFEEDS; i++) {
        p->followed[i].owner = p;
    }
    for (uint32_t i = 0; i < MAX_RULES; i++) {
        p->rows[i].owner = p;
        p->rows[i].due_ns = INT64_MAX;
    }
    for (uint32_t i = 0; volcano_rules[i].path; i++) {
        if (o->disabled & 1U << i) {
            continue;
        }
        p->rows[i].rule = &volcano_rules[i];
        webhook_publish_name(volcano_rules[i].path, p->rows[i].name, sizeof(p->rows[i].name));
        p->followed[volcano_rules[i].mutates ? MUTATING : VALIDATING].wanted = true;
    }
    for (unsigned i = 0; i < NFEEDS; i++) {
        open_followed_configs(p, i);
    }
    return p;
}

void webhook_publish_free(struct webhook_publish *p)
{
    if (!p) {
        return;
    }
    for (uint32_t i = 0; i < NFEEDS; i++) {
        if (p->followed[i].wanted) {
            feed_fini(&p->followed[i].feed);
        }
    }
    for (uint32_t i = 0; i < MAX_RULES; i++) {
        if (p->rows[i].call) {
            port_cancel(p->o.port, p->rows[i].call);
        }
        api_object_unref(p->rows[i].obj);
    }
    hk_buf_fini(&p->bundle);
    hk_buf_fini(&p->first);
    hk_intern_fini(&p->str);
    hk_free(p);
}

void webhook_publish_set(struct webhook_publish *p, const char *ca_pem, bool exact)
{
    hk_buf_clear(&p->bundle);
    hk_buf_clear(&p->first);
    if (ca_pem) {
        base64_write(hk_str(ca_pem), &p->bundle);
        hk_buf_add(&p->first, ca_pem, exact ? 0 : cert_first(ca_pem));
    }
    for (uint32_t i = 0; i < MAX_RULES; i++) {
        attend(&p->rows[i]);
    }
    tell_if_settled(p);
}

int64_t webhook_publish_tick(struct webhook_publish *p, int64_t now_ns)
{
    int64_t next = INT64_MAX;

    for (uint32_t i = 0; i < NFEEDS; i++) {
        if (p->followed[i].wanted) {
            const int64_t at = feed_tick(&p->followed[i].feed, now_ns);
            next = HK_MIN(next, at);
        }
    }
    for (uint32_t i = 0; i < MAX_RULES; i++) {
        if (p->rows[i].due_ns <= now_ns) {
            attend(&p->rows[i]);
        }
        next = HK_MIN(next, p->rows[i].due_ns);
    }
    return next;
}
