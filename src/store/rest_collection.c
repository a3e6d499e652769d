// SPDX-License-Identifier: Apache-2.0
// Deletion of a collection: lists it in slices as any list (rest_list.c), then deletes its objects
// in slices of the same size. A slice starts when the writes of the previous one are durable. So a
// large collection neither blocks the loop nor fills memory, and other calls write in between.
//
//   list in slices -> slice of deletions -> [their writes are durable] -> next slice ... -> done
#include "store/rest_priv.h"

struct rest_deleter {
    struct rest_delete_opts opts;
    uint32_t at; /* index into the call's items: the next one to delete */
};

void rest_deleter_free(struct rest_deleter *d)
{
    hk_free(d);
}

static void collection_end(struct rest_call *c)
{
    rest_deleter_free(hk_take(c->deleter));
    if (c->rc == 0) {
        c->name = HK_STR("");
    }
}

/* Frees the memory of one deletion, unless a new warning is in it. */
static void collection_release(struct rest_call *c, struct hk_arena_mark mark, uint32_t nwarnings)
{
    while (c->held.len > 0) {
        store_obj_unref(hk_vec_pop(&c->held));
    }
    if (c->adm.warnings.len == nwarnings) {
        hk_arena_rewind(&c->mem, mark);
    }
}

static void collection_delete_next(struct rest_call *c, struct rest_deleter *d)
{
    const struct api_object *item = c->items.at[d->at++];
    const struct hk_arena_mark mark = hk_arena_mark(&c->mem);
    const uint32_t nwarnings = c->adm.warnings.len;

    c->r->work += REST_WORK_OBJECT + REST_WORK_DELETED * item->text.n;
    c->name = item->name;
    const int rc = rest_delete_one(c, item->ns, item->name, &d->opts);
    if (rest_webhook_waits(c)) {
        d->at--; /* the same object again, when the webhooks have answered */
        c->rc = 0;
        collection_release(c, mark, nwarnings);
        return;
    }
    if (rc < 0 && c->rc != -HK_ENOTFOUND) {
        return;
    }
    rest_webhook_settled(c);
    rest_convert_forget(c);
    c->rc = 0; /* another call deleted the object meanwhile */
    c->has_status = false;
    hk_vec_clear(&c->causes);
    collection_release(c, mark, nwarnings);
}

void rest_delete_go_on(struct rest_call *c)
{
    struct rest_deleter *d = c->deleter;
    const uint64_t slice_end = c->r->work + REST_SLICE;

    while (c->rc == 0 && d->at < c->items.len && c->r->work < slice_end && !rest_webhook_waits(c)) {
        collection_delete_next(c, d);
    }
    if (rest_webhook_waits(c)) {
        return;
    }
    if (c->rc < 0 || d->at == c->items.len) {
        collection_end(c);
    }
}

int rest_delete_collection(struct rest_call *c)
{
    struct rest_deleter *d = hk_zalloc(sizeof(*d));

    d->opts = rest_delete_opts_of(c->req);
    d->opts.if_uid = hk_arena_str(&c->mem, d->opts.if_uid);
    c->deleter = d;
    rest_webhook_prepare(c);
    rest_delete_warn(c);
    if (rest_list(c) < 0) {
        collection_end(c);
    } else if (!c->lister) {
        rest_delete_go_on(c);
    }
    return c->rc;
}
