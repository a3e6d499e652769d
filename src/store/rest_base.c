// SPDX-License-Identifier: Apache-2.0
// Clocks, wakeups and warnings of the port. Calls no other rest file.
#include "store/rest_priv.h"

#include <stdarg.h>
#include <unistd.h>

int64_t rest_now(const struct rest *r)
{
    return r->clock->wall_ns(r->clock);
}

int64_t rest_mono(const struct rest *r)
{
    return r->clock->mono_ns(r->clock);
}

void rest_wake(struct rest *r)
{
    const uint64_t one = 1;

    if (!r->poll_requested) {
        r->poll_requested = true;
        (void)!write(r->event_fd, &one, sizeof(one));
    }
}

void rest_unwake(struct rest *r)
{
    uint64_t wakes;

    if (r->poll_requested) {
        r->poll_requested = false;
        (void)!read(r->event_fd, &wakes, sizeof(wakes));
    }
}

void rest_request_poll(struct rest *r)
{
    r->poll_requested_for_outcomes = false;
    rest_wake(r);
}

void rest_warn(struct rest_call *c, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    hk_vec_push(&c->adm.warnings, hk_arena_strndup(&c->mem, b.data, b.len));
}
