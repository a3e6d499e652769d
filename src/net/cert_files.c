// SPDX-License-Identifier: Apache-2.0
// Certificate files that are reloaded when they change. New contents replace the old only if
// certificate and key match: files are written one after the other, so a change may be half
// complete.
#include "net/cert_files.h"

#include "base/file.h"
#include "base/log.h"
#include "net/files.h"
#include "net/identity.h"

enum { MAX_PEM_BYTES = 1 << 20 };

struct cert_files {
    struct cert_files_opts o;
    struct cert_set now;
    struct net_files *watch;
};

static int cert_files_read_all(struct cert_files *c, struct hk_buf text[static 3],
                               struct hk_err *err)
{
    const char *const paths[] = {c->o.cert_file, c->o.key_file, c->o.ca_file};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < HK_LEN(paths); i++) {
        rc = paths[i] ? hk_read_file(paths[i], MAX_PEM_BYTES, &text[i], err) : 0;
    }
    return rc;
}

/* Returns 1 if something changed, otherwise 0. */
static int cert_files_load(struct cert_files *c, struct hk_err *err)
{
    struct hk_buf text[3] = {0};
    struct identity *id = NULL;
    int rc = cert_files_read_all(c, text, err);

    if (rc == 0) {
        rc = identity_new(hk_buf_str(&text[0]).s, hk_buf_str(&text[1]).s, &id, err);
        if (rc < 0) {
            hk_wrap(err, rc, "'%s' and '%s'", c->o.cert_file, c->o.key_file);
        }
    }
    if (rc == 0) {
        rc = cert_set_take(&c->now, text[0].data, text[1].data,
                           c->o.ca_file ? hk_buf_str(&text[2]).s : NULL);
    }
    identity_unref(id);
    for (size_t i = 0; i < HK_LEN(text); i++) {
        hk_buf_fini(&text[i]);
    }
    return rc;
}

static void on_files(void *ctx)
{
    struct cert_files *c = ctx;
    struct hk_err err = {0};
    const int rc = cert_files_load(c, &err);

    if (rc < 0) {
        hk_log(HK_LOG_ERROR, "cannot use the certificate files", "err=\"%s\"", err.text);
    } else if (rc > 0) {
        hk_log(HK_LOG_INFO, "certificate files changed", "path=%s", c->o.cert_file);
        c->o.changed(c->o.ctx);
    }
}

int cert_files_new(const struct cert_files_opts *o, struct cert_files **ret, struct hk_err *err)
{
    const char *const paths[] = {o->cert_file, o->key_file, o->ca_file};
    struct cert_files *c = hk_zalloc(sizeof(*c));
    int rc;

    c->o = *o;
    rc = net_files_new(&(struct net_files_opts){.loop = o->loop,
                                                .paths = paths,
                                                .npaths = HK_LEN(paths),
                                                .changed = on_files,
                                                .ctx = c},
                       &c->watch, err);
    if (rc == 0) {
        rc = cert_files_load(c, err);
    }
    if (rc < 0) {
        cert_files_free(c);
        return rc;
    }
    *ret = c;
    return 0;
}

const struct cert_set *cert_files_now(const struct cert_files *c)
{
    return &c->now;
}

void cert_files_free(struct cert_files *c)
{
    if (c) {
        net_files_free(c->watch);
        cert_set_fini(&c->now);
        hk_free(c);
    }
}
