// SPDX-License-Identifier: Apache-2.0
// Questions to webhooks on their way: a queue in order of asking, limits for what is in flight, and
// deadlines. The time in the queue counts: a write waits for a webhook no longer than the webhook's
// timeoutSeconds, however many others wait for it.
#include "store/rest_webhook_priv.h"

static void webhook_post_forget(struct webhook_ask *a)
{
    struct rest *r = a->r;

    for (uint32_t i = 0; i < r->webhook_asks.len; i++) {
        if (r->webhook_asks.at[i] == a) {
            memmove(r->webhook_asks.at + i, r->webhook_asks.at + i + 1,
                    (r->webhook_asks.len - i - 1) * sizeof(*r->webhook_asks.at));
            r->webhook_asks.len--;
            break;
        }
    }
    if (a->state == WEBHOOK_SENT) {
        a->hook->posts--;
        r->webhook_posts--;
    }
    a->state = WEBHOOK_ANSWERED;
}

static void webhook_post_fail(struct webhook_ask *a, const char *why)
{
    hk_buf_addf(&a->why, "failed to call webhook: Post \"%s\": %s", a->target.url, why);
}

static void webhook_post_on_reply(void *arg, const struct webhook_reply *reply)
{
    struct webhook_ask *a = arg;

    webhook_post_forget(a);
    a->http = reply->http;
    if (reply->http == 0) {
        webhook_post_fail(a, reply->why);
    } else if (reply->http != 200) {
        hk_buf_addf(&a->why,
                    reply->http == 404
                        ? "failed to call webhook: the server could not find the requested resource"
                        : "failed to call webhook: an error on the server (\"%.*s\") has prevented "
                          "the request from succeeding",
                    HK_FMT(hk_str_head(hk_str_trim(reply->body), 200)));
    } else {
        hk_buf_addstr(&a->body, reply->body);
    }
    a->answered(a);
}

void webhook_post_queue(struct webhook_ask *a)
{
    a->deadline_ns = rest_mono(a->r) + a->hook->timeout_s * REST_SECOND;
    a->bytes = a->review.len;
    a->r->webhook_bytes += a->bytes;
    hk_vec_push(&a->r->webhook_asks, a);
    rest_request_poll(a->r);
}

void webhook_post_send(struct rest *r)
{
    for (uint32_t i = 0; i < r->webhook_asks.len && r->webhook_posts < WEBHOOK_MAX_POSTS; i++) {
        struct webhook_ask *a = r->webhook_asks.at[i];
        if (a->state == WEBHOOK_QUEUED && a->hook->posts < WEBHOOK_MAX_POSTS_EACH) {
            a->state = WEBHOOK_SENT;
            a->hook->posts++;
            r->webhook_posts++;
            a->target.body = hk_buf_str(&a->review);
            a->post = r->webhook_caller->post(r->webhook_caller->ctx, &a->target,
                                              webhook_post_on_reply, a);
            hk_buf_fini(&a->review);
            a->review = (struct hk_buf){0};
        }
    }
}

void webhook_post_tick(struct rest *r)
{
    const int64_t now_ns = rest_mono(r);

    for (uint32_t i = 0; i < r->webhook_asks.len;) {
        struct webhook_ask *a = r->webhook_asks.at[i];
        if (a->deadline_ns > now_ns) {
            i++;
            continue;
        }
        if (a->state == WEBHOOK_SENT) {
            r->webhook_caller->cancel(r->webhook_caller->ctx, a->post);
        }
        webhook_post_forget(a);
        webhook_post_fail(a, "context deadline exceeded");
        a->answered(a);
    }
}

int64_t webhook_post_next_ns(const struct rest *r)
{
    int64_t next = INT64_MAX;

    for (uint32_t i = 0; i < r->webhook_asks.len; i++) {
        next = HK_MIN(next, r->webhook_asks.at[i]->deadline_ns);
    }
    return next;
}

void webhook_ask_free(struct webhook_ask *a)
{
    if (!a) {
        return;
    }
    if (a->state == WEBHOOK_SENT) {
        a->r->webhook_caller->cancel(a->r->webhook_caller->ctx, a->post);
    }
    if (a->state != WEBHOOK_ANSWERED) {
        webhook_post_forget(a);
    }
    a->r->webhook_bytes -= a->bytes;
    hk_buf_fini(&a->review);
    hk_buf_fini(&a->body);
    hk_buf_fini(&a->why);
    hk_arena_fini(&a->mem);
    hk_free(a);
}
