// SPDX-License-Identifier: Apache-2.0
// One request and its answer: refuses the request, keeps it in the list of pending calls, ends it.
// All other files of the server call this one, and it calls none of them.
#include "apiserver/server_priv.h"

#include <stdarg.h>

int exchange_refuse(struct exchange *x, int code, const char *reason, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    x->refusal = (struct port_status){
        .code = code,
        .reason = reason,
        .message = hk_arena_strndup(&x->mem, hk_buf_str(&text).s, text.len),
    };
    return -HK_EINVAL;
}

void exchange_wait(struct exchange *x)
{
    struct server *s = x->server;

    x->next = s->pending;
    if (x->next) {
        x->next->prev = x;
    }
    s->pending = x;
}

static void pending_remove(struct exchange *x)
{
    if (x->prev) {
        x->prev->next = x->next;
    } else {
        x->server->pending = x->next;
    }
    if (x->next) {
        x->next->prev = x->prev;
    }
}

void exchange_settle(struct exchange *x)
{
    if (x->call != 0) {
        pending_remove(x);
        x->call = 0;
    }
    net_timer_free(x->deadline);
    x->deadline = NULL;
}

void exchange_free(struct exchange *x)
{
    exchange_settle(x);
    x->server->counters.in_flight--;
    hk_arena_pool_give(&x->server->mem, &x->body_mem);
    hk_arena_pool_give(&x->server->mem, &x->mem);
    hk_free(x);
}
