// SPDX-License-Identifier: Apache-2.0
// GET /backup: a stream of all objects at one revision, for `hekla backup`. The snapshot takes one
// reference for each object; the rest is written as fast as the client reads. The stream contains
// all secrets, so only administrators get it, whatever the roles allow.
#include "apiserver/server_priv.h"
#include "store/store_files.h"

struct backup_stream {
    struct exchange *x;
    struct store_copy copy;
    struct store_backup backup;
};

static bool backup_pull(void *ctx, struct hk_buf *out, size_t room)
{
    struct backup_stream *b = ctx;

    return store_backup_write(&b->backup, out, room);
}

static void backup_ended(void *ctx)
{
    struct backup_stream *b = ctx;

    store_copy_fini(&b->copy);
    exchange_free(b->x);
    hk_free(b);
}

bool backup_serve(struct exchange *x)
{
    static const struct http_header headers[] = {
        {HK_STR("Content-Type"), HK_STR("text/plain; charset=utf-8")},
        {HK_STR("Cache-Control"), HK_STR("no-store")},
    };
    struct backup_stream *b;

    if (!hk_str_is(x->route.path, "/backup") || !hk_str_is(x->http->method, "GET")) {
        return false;
    }
    if (!auth_is_admin(&x->user)) {
        exchange_refuse(x, 403, "Forbidden",
                        "forbidden: a backup contains every secret: only members of system:masters "
                        "may read it");
        answer_refusal(x);
        return true;
    }
    b = hk_zalloc(sizeof(*b));
    b->x = x;
    store_copy_open(x->server->opts.store, &b->copy);
    b->backup.copy = &b->copy;
    x->server->counters.requests[2]++;
    http_reply_stream(x->http, 200, headers, HK_LEN(headers),
                      &(struct http_stream){
                          .pull = backup_pull, .ended = backup_ended, .ctx = b, .finite = true});
    return true;
}
