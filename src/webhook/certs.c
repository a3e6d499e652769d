// SPDX-License-Identifier: Apache-2.0
// Chooses the source of the serving certificate, files or the Secret, for webhook/manager.c.
#include "webhook/certs.h"

#include "net/cert_files.h"

struct webhook_certs {
    struct webhook_certs_opts o;
    struct cert_files *files; /* NULL: use the Secret */
    struct webhook_secret *secret;
    struct cert_set found; /* content of the Secret */
};

static void on_found(void *ctx, const char *cert_pem, const char *key_pem, const char *ca_pem)
{
    struct webhook_certs *c = ctx;

    if (cert_set_take(&c->found, cert_pem, key_pem, ca_pem)) {
        c->o.changed(c->o.ctx);
    }
}

int webhook_certs_new(const struct webhook_certs_opts *o, struct webhook_certs **ret,
                      struct hk_err *err)
{
    struct webhook_certs *c = hk_zalloc(sizeof(*c));
    int rc = 0;

    c->o = *o;
    if (o->cert_file) {
        rc = cert_files_new(&(struct cert_files_opts){.loop = o->loop,
                                                      .cert_file = o->cert_file,
                                                      .key_file = o->key_file,
                                                      .ca_file = o->ca_file,
                                                      .changed = o->changed,
                                                      .ctx = o->ctx},
                            &c->files, err);
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

const struct cert_set *webhook_certs_now(const struct webhook_certs *c)
{
    return c->files ? cert_files_now(c->files) : &c->found;
}

void webhook_certs_free(struct webhook_certs *c)
{
    if (c) {
        cert_files_free(c->files);
        webhook_secret_free(c->secret);
        cert_set_fini(&c->found);
        hk_free(c);
    }
}
