// SPDX-License-Identifier: Apache-2.0
// Objects that wait for a conversion webhook, gathered into reviews: what is wanted within one turn of
// the loop, in the same version, goes out together. If a review of several objects fails because of
// what they are, each is asked about alone, so that nobody suffers from another one's object.
#include "store/rest_convert_priv.h"

static struct rest_conversion *how_ref(struct rest_conversion *how)
{
    how->refs++;
    return how;
}

static void how_unref(struct rest_conversion *how)
{
    rest_conversion_unref(how);
}

void conversion_batch_free(struct conversion_batch *b)
{
    struct converter *t = b->r->converter;

    for (uint32_t i = 0; i < t->batches.len; i++) {
        if (t->batches.at[i] == b) {
            memmove(t->batches.at + i, t->batches.at + i + 1,
                    (t->batches.len - i - 1) * sizeof(*t->batches.at));
            t->batches.len--;
            break;
        }
    }
    webhook_ask_free(b->ask);
    for (uint32_t i = 0; i < b->at.len; i++) {
        conversion_unref(b->at.at[i]);
    }
    hk_vec_fini(&b->at);
    how_unref(b->how);
    hk_free(b);
}

/* ---- gathering ---- */

static bool takes(const struct conversion_batch *b, const struct conversion *v)
{
    return !b->closed && b->to == v->to && b->how == v->how && b->at.len < CONVERT_MAX_OBJECTS &&
           b->bytes + v->text.len <= CONVERT_MAX_BATCH;
}

static struct conversion_batch *batch_new(struct conversion *v)
{
    struct conversion_batch *b = hk_zalloc(sizeof(*b));

    b->r = v->r;
    b->to = v->to;
    b->how = how_ref(v->how);
    b->closed = v->alone;
    hk_vec_push(&v->r->converter->batches, b);
    return b;
}

void conversion_queue(struct conversion *v)
{
    struct converter *t = v->r->converter;
    struct conversion_batch *b = NULL;

    for (uint32_t i = t->batches.len; !v->alone && i > 0 && !b; i--) {
        b = takes(t->batches.at[i - 1], v) ? t->batches.at[i - 1] : NULL;
    }
    if (!b) {
        b = batch_new(v);
    }
    hk_vec_push(&b->at, conversion_ref(v));
    b->bytes += v->text.len;
    rest_request_poll(v->r);
}

/* ---- answers ---- */

static void fail_all(struct conversion_batch *b, const char *why)
{
    for (uint32_t i = 0; i < b->at.len; i++) {
        struct conversion *v = b->at.at[i];
        v->why = hk_strdup(why);
        conversion_end(v, false);
    }
}

static void ask_one_by_one(struct conversion_batch *b)
{
    for (uint32_t i = 0; i < b->at.len; i++) {
        b->at.at[i]->alone = true;
        conversion_queue(b->at.at[i]);
    }
}

static void batch_accept(struct conversion *v, const struct json *converted)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct json doc;
    struct hk_err err = {0};

    if (conversion_accept(v, converted, &mem, &doc, &err) < 0) {
        v->why = hk_strdup(err.text);
        conversion_end(v, false);
        return;
    }
    hk_buf_clear(&v->text);
    json_write(&doc, &v->text);
    conversion_end(v, true);
}

/* The call of the webhook itself failed. */
static void fail_call(struct conversion_batch *b, const char *why)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    static const char prefix[] = "failed to call webhook: ";

    hk_buf_adds(&text, "conversion webhook for ");
    conversion_write_kind(b->at.at[0], &text);
    hk_buf_addf(&text, " failed: %s",
                hk_str_starts(hk_str(why), prefix) ? why + sizeof(prefix) - 1 : why);
    fail_all(b, text.data);
}

static void on_converted(struct webhook_ask *a)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct conversion_batch *b = a->ctx;
    const struct json *list;
    struct hk_err err = {0};

    if (a->why.len > 0) {
        fail_call(b, a->why.data);
    } else if (conversion_read_review(b, a->uid, hk_buf_str(&a->body), &mem, &list, &err) == 0) {
        for (uint32_t i = 0; i < b->at.len; i++) {
            batch_accept(b->at.at[i], &list->items[i]);
        }
    } else if (b->at.len > 1) {
        ask_one_by_one(b);
    } else {
        fail_all(b, err.text);
    }
    conversion_batch_free(b);
}

/* ---- sending ---- */

/* False: it has failed at once, and is gone. */
static bool batch_send(struct conversion_batch *b)
{
    struct webhook_ask *a = hk_zalloc(sizeof(*a));
    struct hk_err err = {0};

    b->closed = true;
    *a = (struct webhook_ask){
        .r = b->r, .ctx = b, .hook = &b->how->hook, .row = b->to, .answered = on_converted};
    b->ask = a;
    rest_write_uid(b->r, a->uid);
    if (!b->r->webhook_caller) {
        hk_fail(&err, HK_EIO, "this program calls no webhooks");
    } else if (webhook_target(b->r, a->hook, &a->mem, &a->target, &err) == 0) {
        a->target.max_reply = CONVERT_MAX_REPLY;
        conversion_write_review(b, a->uid, &a->review);
        webhook_post_queue(a);
        return true;
    }
    a->state = WEBHOOK_ANSWERED;
    fail_call(b, err.text);
    conversion_batch_free(b);
    return false;
}

void conversion_send(struct rest *r)
{
    struct converter *t = r->converter;

    for (uint32_t i = 0; i < t->batches.len;) {
        struct conversion_batch *b = t->batches.at[i];
        i += b->ask || batch_send(b) ? 1 : 0; /* else the next one has taken its place */
    }
}
