// SPDX-License-Identifier: Apache-2.0
// The pair in use. A new one replaces it only when certificate and key belong together: files are
// written one after the other, and half of a change is none.
#include "webhook/certs.h"

#include "base/file.h"
#include "base/log.h"
#include "net/files.h"
#include "net/identity.h"

enum { MAX_PEM_BYTES = 1 << 20 };

struct webhook_certs {
    struct webhook_certs_opts o;
    struct cert_pair pair;
    char *ca_pem;
    struct net_files *files;
    struct webhook_secret *secret;
};

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Says whether anything is other than before. */
static bool take(struct webhook_certs *c, const char *cert, const char *key, const char *ca)
{
    if (same(c->pair.cert_pem, cert) && same(c->pair.key_pem, key) && same(c->ca_pem, ca)) {
        return false;
    }
    cert_pair_fini(&c->pair);
    hk_free(c->ca_pem);
    c->pair = (struct cert_pair){hk_strdup(cert), hk_strdup(key)};
    c->ca_pem = ca ? hk_strdup(ca) : NULL;
    return true;
}

/* ---- files ---- */

static int read_all(struct webhook_certs *c, struct hk_buf text[static 3], struct hk_err *err)
{
    const char *const paths[] = {c->o.cert_file, c->o.key_file, c->o.ca_file};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < HK_LEN(paths); i++) {
        rc = paths[i] ? hk_read_file(paths[i], MAX_PEM_BYTES, &text[i], err) : 0;
    }
    return rc;
}

/* 1 when something changed, 0 when not. */
static int load(struct webhook_certs *c, struct hk_err *err)
{
    struct hk_buf text[3] = {0};
    struct identity *id = NULL;
    int rc = read_all(c, text, err);

    if (rc == 0) {
        rc = identity_new(hk_buf_str(&text[0]).s, hk_buf_str(&text[1]).s, &id, err);
        rc = rc < 0 ? hk_wrap(err, rc, "'%s' and '%s'", c->o.cert_file, c->o.key_file) : 0;
    }
    if (rc == 0) {
        rc = take(c, text[0].data, text[1].data, c->o.ca_file ? hk_buf_str(&text[2]).s : NULL);
    }
    identity_unref(id);
    for (size_t i = 0; i < HK_LEN(text); i++) {
        hk_buf_fini(&text[i]);
    }
    return rc;
}

static void on_files(void *ctx)
{
    struct webhook_certs *c = ctx;
    struct hk_err err = {0};
    const int rc = load(c, &err);

    if (rc < 0) {
        hk_log(HK_LOG_ERROR, "certificate files not taken", "err=\"%s\"", err.text);
    } else if (rc > 0) {
        hk_log(HK_LOG_INFO, "certificate files changed", "path=%s", c->o.cert_file);
        c->o.changed(c->o.ctx);
    }
}

static int open_files(struct webhook_certs *c, struct hk_err *err)
{
    const char *const paths[] = {c->o.cert_file, c->o.key_file, c->o.ca_file};
    const struct net_files_opts o = {
        .loop = c->o.loop, .paths = paths, .npaths = HK_LEN(paths), .changed = on_files, .ctx = c};
    int rc = net_files_new(&o, &c->files, err);

    rc = rc < 0 ? rc : load(c, err);
    return HK_MIN(rc, 0);
}

/* ---- the Secret ---- */

static void on_found(void *ctx, const char *cert_pem, const char *key_pem, const char *ca_pem)
{
    struct webhook_certs *c = ctx;

    if (take(c, cert_pem, key_pem, ca_pem)) {
        c->o.changed(c->o.ctx);
    }
}

/* ---- life ---- */

int webhook_certs_new(const struct webhook_certs_opts *o, struct webhook_certs **ret,
                      struct hk_err *err)
{
    struct webhook_certs *c = hk_zalloc(sizeof(*c));
    int rc = 0;

    c->o = *o;
    if (o->cert_file) {
        rc = open_files(c, err);
    } else {
        c->secret = webhook_secret_new(&(struct webhook_secret_opts){.loop = o->loop,
                                                                     .clock = o->clock,
                                                                     .port = o->port,
                                                                     .ns = o->ns,
                                                                     .service = o->service,
                                                                     .host = o->host,
                                                                     .found = on_found,
                                                                     .ctx = c});
    }
    if (rc < 0) {
        webhook_certs_free(c);
        return rc;
    }
    *ret = c;
    return 0;
}

const struct cert_pair *webhook_certs_pair(const struct webhook_certs *c)
{
    return &c->pair;
}

const char *webhook_certs_ca(const struct webhook_certs *c)
{
    return c->ca_pem;
}

void webhook_certs_free(struct webhook_certs *c)
{
    if (!c) {
        return;
    }
    net_files_free(c->files);
    webhook_secret_free(c->secret);
    cert_pair_fini(&c->pair);
    hk_free(c->ca_pem);
    hk_free(c);
}
