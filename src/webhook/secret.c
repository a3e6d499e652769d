// SPDX-License-Identifier: Apache-2.0
// The life of the Secret with the certificates, one call at a time:
//
//   get --exists and valid--> report, get again later
//    |  --missing--> make, create --------------+
//    |  --invalid or expiring--> make, update --+--> report
//    '<---- another replica was first ----------'     (any other failure: get again after a pause)
#include "webhook/secret.h"

#include "base/log.h"
#include "net/cert.h"
#include "net/identity.h"

#define SECRET_NAME "volcano-admission-secret"
#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
#define DAY_S ((int64_t)86400)

enum {
    CERT_DAYS = 365,
    RENEW_DAYS = 60,
    LOOK_S = 60, /* between two checks of a valid Secret */
    PAUSE_FIRST_S = 1,
    PAUSE_LAST_S = 32,
};

struct webhook_secret {
    struct webhook_secret_opts o;
    struct net_timer *timer;
    uint64_t call;
    int64_t pause_s;
    char *name; /* "service.ns.svc" */
};

/* The three PEM texts of a Secret. */
struct trio {
    struct hk_buf cert, key, ca;
};

static void trio_fini(struct trio *t)
{
    hk_buf_fini(&t->cert);
    hk_buf_fini(&t->key);
    hk_buf_fini(&t->ca);
}

static int64_t now_s(const struct webhook_secret *s)
{
    return s->o.clock->wall_ns(s->o.clock) / SECOND_NS;
}

static void look_after(struct webhook_secret *s, int64_t seconds)
{
    net_timer_at(s->timer, net_loop_now_ns(s->o.loop) + seconds * SECOND_NS);
}

/* ---- judging ---- */

static bool webhook_secret_read_part(const struct json *data, const char *key, struct hk_buf *out)
{
    return cert_read_base64(json_str_field(data, key), out, NULL) == 0 && out->len > 0 &&
           strlen(out->data) == out->len;
}

static bool read_trio(const struct json *secret, struct trio *ret)
{
    const struct json *data = json_get(secret, "data");

    return webhook_secret_read_part(data, "tls.crt", &ret->cert) &&
           webhook_secret_read_part(data, "tls.key", &ret->key) &&
           webhook_secret_read_part(data, "ca.crt", &ret->ca);
}

static bool belong_together(const struct trio *t)
{
    struct identity *id = NULL;
    const bool ok = identity_new(t->cert.data, t->key.data, &id, NULL) == 0;

    identity_unref(id);
    return ok;
}

static bool is_good(const struct webhook_secret *s, const struct trio *t)
{
    int64_t end_s = 0;

    return belong_together(t) && cert_serves(t->cert.data, t->ca.data, s->name) &&
           (!s->o.host || cert_serves(t->cert.data, t->ca.data, s->o.host)) &&
           cert_expiry(t->cert.data, &end_s, NULL) == 0 && end_s - now_s(s) > RENEW_DAYS * DAY_S;
}

/* ---- making ---- */

static int sign(const struct webhook_secret *s, struct cert_pair *ca, struct cert_pair *ret,
                struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf shorter = {0};
    const char *names[4] = {s->o.service, NULL, s->name, s->o.host};
    const struct cert_opts authority = {
        .cn = "volcano-admission-ca", .now_s = now_s(s), .days = CERT_DAYS};
    const struct cert_opts serving = {.cn = s->name,
                                      .names = names,
                                      .nnames = s->o.host ? 4 : 3,
                                      .server = true,
                                      .now_s = now_s(s),
                                      .days = CERT_DAYS};
    int rc;

    hk_buf_addf(&shorter, "%s.%s", s->o.service, s->o.ns);
    names[1] = shorter.data;
    rc = cert_make_ca(&authority, ca, err);
    if (rc < 0) {
        return rc;
    }
    return cert_make(&serving, ca, ret, err);
}

/* Keeps the newest CA of the old bundle while it is valid. */
static void keep_authority(const struct webhook_secret *s, const struct hk_buf *old,
                           struct hk_buf *bundle)
{
    const size_t n = cert_first(hk_buf_str(old).s);
    int64_t end_s = 0;

    if (n > 0 && cert_expiry(old->data, &end_s, NULL) == 0 && end_s > now_s(s)) {
        hk_buf_add(bundle, old->data, n);
        hk_buf_addc(bundle, '\n');
    }
}

static void secret_set_base64(struct json *data, struct hk_arena *a, const char *key,
                              const char *text)
{
    HK_AUTO(hk_buf_fini) struct hk_buf coded = {0};

    cert_write_base64(text, &coded);
    json_set_str_copy(data, a, key, hk_buf_str(&coded));
}

static int webhook_secret_fill_data(const struct webhook_secret *s, const struct trio *old,
                                    struct json *secret, struct hk_arena *a, struct hk_err *err)
{
    HK_AUTO(cert_pair_fini) struct cert_pair ca = {0};
    HK_AUTO(cert_pair_fini) struct cert_pair pair = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf bundle = {0};
    struct json data = json_make_object();
    const int rc = sign(s, &ca, &pair, err);

    if (rc < 0) {
        return rc;
    }
    if (json_is(json_get(secret, "data"), JSON_OBJECT)) {
        data = *json_get(secret, "data");
    }
    hk_buf_adds(&bundle, ca.cert_pem);
    keep_authority(s, &old->ca, &bundle);
    secret_set_base64(&data, a, "tls.crt", pair.cert_pem);
    secret_set_base64(&data, a, "tls.key", pair.key_pem);
    secret_set_base64(&data, a, "ca.crt", bundle.data);
    json_set(secret, a, "data", data);
    return 0;
}

static struct json new_secret(const struct webhook_secret *s, struct hk_arena *a)
{
    struct json meta = json_make_object(), secret = json_make_object();

    json_set_cstr(&meta, a, "name", SECRET_NAME);
    json_set_cstr(&meta, a, "namespace", s->o.ns);
    json_set_cstr(&secret, a, "apiVersion", "v1");
    json_set_cstr(&secret, a, "kind", "Secret");
    json_set(&secret, a, "metadata", meta);
    json_set_cstr(&secret, a, "type", "Opaque");
    return secret;
}

/* ---- calls ---- */

static void webhook_secret_get(void *ctx);
static void webhook_secret_on_written(void *ctx, const struct port_msg *m);

static void webhook_secret_retry_later(struct webhook_secret *s, const char *what,
                                       const struct hk_err *err)
{
    hk_log(HK_LOG_ERROR, what, "secret=%s/" SECRET_NAME " err=\"%s\"", s->o.ns, err->text);
    look_after(s, s->pause_s);
    s->pause_s = HK_MIN(s->pause_s * 2, (int64_t)PAUSE_LAST_S);
}

/* old is the current Secret, NULL when there is none. */
static void webhook_secret_create_or_renew(struct webhook_secret *s, const struct api_object *old,
                                           const struct trio *before)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct port_sink sink = {webhook_secret_on_written, s};
    struct json secret = old ? json_clone(&old->root, &a) : new_secret(s, &a);
    struct hk_err err = {0};

    if (webhook_secret_fill_data(s, before, &secret, &a, &err) < 0) {
        webhook_secret_retry_later(s, "cannot make certificates", &err);
        return;
    }
    s->call = old ? port_update(s->o.port, api_kind(API_SECRET), NULL, &secret, sink)
                  : port_create(s->o.port, api_kind(API_SECRET), hk_str(s->o.ns), &secret, sink);
}

/* True when the Secret is valid; then reports it and schedules the next check. */
static bool use(struct webhook_secret *s, const struct api_object *secret, struct trio *t)
{
    if (!read_trio(&secret->root, t) || !is_good(s, t)) {
        return false;
    }
    s->pause_s = PAUSE_FIRST_S;
    look_after(s, LOOK_S);
    s->o.found(s->o.ctx, t->cert.data, t->key.data, t->ca.data);
    return true;
}

static void webhook_secret_on_written(void *ctx, const struct port_msg *m)
{
    static const struct hk_err changed = {.text = "what was stored is not what was sent"};
    struct webhook_secret *s = ctx;
    HK_AUTO(trio_fini) struct trio t = {0};

    s->call = 0;
    if (m->rc == -HK_EEXIST || m->rc == -HK_ECONFLICT) {
        webhook_secret_get(s); /* another replica was faster */
    } else if (m->rc < 0) {
        webhook_secret_retry_later(s, "cannot store certificates", m->err);
    } else if (!use(s, m->obj, &t)) {
        webhook_secret_retry_later(s, "cannot store certificates", &changed);
    } else {
        hk_log(HK_LOG_INFO, "certificates stored", "secret=%s/" SECRET_NAME, s->o.ns);
    }
}

static void on_looked(void *ctx, const struct port_msg *m)
{
    struct webhook_secret *s = ctx;
    HK_AUTO(trio_fini) struct trio t = {0};

    s->call = 0;
    if (m->rc < 0 && m->rc != -HK_ENOTFOUND) {
        webhook_secret_retry_later(s, "cannot read certificates", m->err);
    } else if (m->rc < 0 || !use(s, m->obj, &t)) {
        webhook_secret_create_or_renew(s, m->rc < 0 ? NULL : m->obj, &t);
    }
}

static void webhook_secret_get(void *ctx)
{
    struct webhook_secret *s = ctx;

    s->call = port_get(s->o.port, api_kind(API_SECRET), hk_str(s->o.ns), HK_STR(SECRET_NAME),
                       (struct port_sink){on_looked, s});
}

/* ---- open and close ---- */

struct webhook_secret *webhook_secret_new(const struct webhook_secret_opts *o)
{
    struct webhook_secret *s = hk_zalloc(sizeof(*s));
    struct hk_buf name = {0};

    s->o = *o;
    s->pause_s = PAUSE_FIRST_S;
    hk_buf_addf(&name, "%s.%s.svc", o->service, o->ns);
    s->name = name.data;
    s->timer = net_timer_new(o->loop, webhook_secret_get, s);
    webhook_secret_get(s);
    return s;
}

void webhook_secret_free(struct webhook_secret *s)
{
    if (!s) {
        return;
    }
    if (s->call) {
        port_cancel(s->o.port, s->call);
    }
    net_timer_free(s->timer);
    hk_free(s->name);
    hk_free(s);
}
