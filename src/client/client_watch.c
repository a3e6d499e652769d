// SPDX-License-Identifier: Apache-2.0
// Watches: cuts the stream into events as they arrive; each becomes a message at once. A stream
// fails if it ends inside an event, contains invalid data, or is silent for too long. A stream
// faster than its reader stays in the socket until the reader has caught up.
#include "client/client_priv.h"

#include "api/port_status.h"
#include "base/log.h"
#include "client/decode.h"

/* ---- silence ---- */

static void client_watch_set_stall_timer(struct call *k)
{
    net_timer_at(k->timer, k->heard_ns + k->c->o.watch_stall_ms * 1000000);
}

static void on_silence(void *ctx)
{
    struct call *k = ctx;
    const int64_t now = net_loop_now_ns(k->c->o.loop);

    if (k->paused) {
        k->heard_ns = now; /* we do not read now */
    }
    if (now - k->heard_ns < k->c->o.watch_stall_ms * 1000000) {
        client_watch_set_stall_timer(k);
        return;
    }
    /* The caller reports streams that end. Only this line shows that this one did not. */
    hk_log(HK_LOG_WARN, "no data from a watch, starting it again", "kind=%s silent_ms=%lld",
           k->kind->plural, (long long)k->c->o.watch_stall_ms);
    call_release(k);
    client_finish(k, client_failure(k, HK_ETIMEOUT, "watch of %s: no data for %lld ms",
                                    k->kind->plural, (long long)k->c->o.watch_stall_ms));
}

void watch_begin(struct call *k)
{
    if (!k->timer) {
        k->timer = net_timer_new(k->c->o.loop, on_silence, k);
    }
    k->heard_ns = net_loop_now_ns(k->c->o.loop);
    client_watch_set_stall_timer(k);
}

/* ---- events ---- */

/* An ERROR event ends the stream. */
static struct message *client_watch_make_error_message(struct call *k, struct message *m,
                                                       const struct decode_event *ev)
{
    m->msg.type = PORT_DONE;
    m->status = ev->status;
    m->msg.status = &m->status;
    m->msg.rc = hk_fail(&m->err, port_status_code(hk_str(ev->status.reason), ev->status.code), "%s",
                        ev->status.message ? ev->status.message : "the watch failed");
    return m;
}

static bool client_watch_wants_event(const struct call *k, const struct decode_event *ev)
{
    return ev->type != PORT_BOOKMARK || k->bookmarks || (k->initial_mark && ev->initial_end);
}

static int on_event(void *ctx, struct hk_str text)
{
    struct call *k = ctx;
    struct message *m = client_message(k, PORT_BOOKMARK);
    struct decode_event ev;
    const int rc = decode_event(k->kind, text, k->text_only, &m->mem, &ev, &m->err);

    if (rc < 0) {
        m->msg.type = PORT_DONE;
        m->msg.rc = hk_fail(&m->err, HK_EIO, "watch of %s: %s", k->kind->plural, m->err.text);
        k->last = m;
        return rc;
    }
    if (ev.type == PORT_DONE) {
        k->last = client_watch_make_error_message(k, m, &ev);
        return m->msg.rc;
    }
    m->msg.type = ev.type;
    m->msg.obj = ev.obj;
    m->msg.rv = ev.rv;
    m->msg.initial_end = ev.initial_end;
    if (client_watch_wants_event(k, &ev)) {
        client_send(k->c, m);
    } else {
        client_message_free(m);
    }
    return 0;
}

bool watch_bytes(struct call *k, struct hk_str bytes)
{
    struct hk_err err = {0};

    if (k->last) {
        return false;
    }
    k->heard_ns = net_loop_now_ns(k->c->o.loop);
    const int rc = frame_feed(&k->frame, bytes, on_event, k, &err);
    if (rc < 0 && !k->last) {
        k->last = client_failure(k, rc == -HK_ELIMIT ? HK_ELIMIT : HK_EIO, "watch of %s: %s",
                                 k->kind->plural, err.text);
    }
    return rc == 0;
}

struct message *watch_outcome(struct call *k, CURLcode rc, const char *why)
{
    if (k->last) {
        return hk_take(k->last);
    }
    if (rc != CURLE_OK) {
        return client_failure(k, HK_EIO, "watch of %s: %s", k->kind->plural, why);
    }
    if (frame_partial(&k->frame)) {
        return client_failure(k, HK_EIO, "watch of %s ended in the middle of an event",
                              k->kind->plural);
    }
    return client_message(k, PORT_DONE);
}

void watch_pause(struct call *k)
{
    k->c->npaused += !k->paused;
    k->paused = true;
}

/* Data that libcurl held back arrives at once and may end the stream, without a callback. */
static void client_watch_resume(struct call *k)
{
    k->paused = false;
    k->c->npaused--;
    k->heard_ns = net_loop_now_ns(k->c->o.loop);
    curl_easy_pause(k->easy->curl, CURLPAUSE_CONT);
    if (k->last) {
        call_release(k);
        client_finish(k, watch_outcome(k, CURLE_OK, ""));
    }
}

void watch_resume(struct client *c)
{
    for (uint32_t i = 0; c->npaused > 0 && i < c->calls.len; i++) {
        if (c->calls.at[i] && c->calls.at[i]->paused) {
            client_watch_resume(c->calls.at[i]);
        }
    }
}
