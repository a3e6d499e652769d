// SPDX-License-Identifier: Apache-2.0
// One attempt of a call over HTTP, and the meaning of its outcome: an answer, another attempt after
// a pause, or a failure. A write is repeated only if its body had not started to go out: a server
// acts only on complete bodies.
#include "client/client_priv.h"

#include "api/port_status.h"
#include "client/decode.h"

#include <strings.h>

enum { MAX_RETRY_AFTER_S = 300, MAX_WARNINGS = 64, LEASE_LAST_MS = 1000 };

static bool is_read(const struct call *k)
{
    return k->verb == PORT_GET || k->verb == PORT_LIST || k->verb == PORT_WATCH;
}

static bool is_list(const struct call *k)
{
    return k->verb == PORT_LIST || k->verb == PORT_DELETE_COLLECTION;
}

/* ---- callbacks of libcurl ---- */

static size_t on_body_wanted(char *to, size_t size, size_t n, void *ctx)
{
    struct call *k = ctx;
    const size_t part = HK_MIN(size * n, k->target.body.len - k->sent);

    memcpy(to, k->target.body.data + k->sent, part);
    k->sent += part;
    return part;
}

/* Always fails: otherwise libcurl would repeat a write by itself. */
static int on_rewind(void *ctx, curl_off_t offset, int origin)
{
    return CURL_SEEKFUNC_FAIL;
}

static long http_code(const struct call *k)
{
    long code = 0;

    curl_easy_getinfo(k->easy->curl, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

static size_t client_call_on_bytes(char *data, size_t size, size_t n, void *ctx)
{
    struct call *k = ctx;
    const struct hk_str bytes = {data, size * n};

    if (k->verb == PORT_WATCH && http_code(k) == 200) {
        if (k->c->waiting_bytes > k->c->o.max_waiting_bytes) {
            watch_pause(k);
            return CURL_WRITEFUNC_PAUSE;
        }
        return watch_bytes(k, bytes) ? bytes.n : 0;
    }
    if (k->on_bytes && http_code(k) == 200) {
        if (k->held) {
            return CURL_WRITEFUNC_PAUSE;
        }
        k->on_bytes(k->sink.ctx, bytes);
        return bytes.n;
    }
    if (is_list(k) && http_code(k) == 200) {
        return list_reader_feed(&k->list, bytes, &k->unreadable) < 0 ? 0 : bytes.n;
    }
    if (bytes.n > k->c->o.max_answer_bytes - k->answer.len) {
        hk_fail(&k->unreadable, HK_ELIMIT, "the answer is larger than %zu bytes",
                k->c->o.max_answer_bytes);
        return 0;
    }
    hk_buf_addstr(&k->answer, bytes);
    return bytes.n;
}

/* 299 - "text" */
static void add_warning(struct call *k, struct hk_str value)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const char *p = memchr(value.s, '"', value.n), *end = value.s + value.n;

    if (!p || k->warnings.len == MAX_WARNINGS) {
        return;
    }
    for (p++; p < end && *p != '"'; p++) {
        p += *p == '\\' && p + 1 < end;
        hk_buf_addc(&text, *p);
    }
    hk_vec_push(&k->warnings, hk_strndup(hk_buf_str(&text).s, text.len));
}

static size_t client_call_on_header(char *data, size_t size, size_t n, void *ctx)
{
    struct call *k = ctx;
    struct hk_str value = {data, size * n}, name;
    int64_t s;

    hk_str_cut(&value, ':', &name);
    if (name.n > 0 && name.s[0] == '\r' && http_code(k) >= 200) {
        k->http = (int)http_code(k); /* the end of the headers, and not those of a proxy */
        meter_answer(k);
    }
    if (value.s) {
        value = hk_str_trim(value);
        if (name.n == 11 && strncasecmp(name.s, "Retry-After", 11) == 0) {
            if (hk_str_int(value, &s) && s >= 0) {
                k->retry_after_s = (int32_t)HK_MIN(s, (int64_t)MAX_RETRY_AFTER_S);
            }
        } else if (name.n == 7 && strncasecmp(name.s, "Warning", 7) == 0) {
            add_warning(k, value);
        }
    }
    return size * n;
}

/* ---- starting ---- */

static struct curl_slist *make_headers(const struct call *k)
{
    struct curl_slist *list = auth_add_headers(k->c, NULL);

    list = curl_slist_append(list, k->on_bytes ? "Accept: */*" : "Accept: application/json");
    list = curl_slist_append(list, "Expect:");
    if (k->c->host_header) {
        list = curl_slist_append(list, k->c->host_header);
    }
    if (k->target.media) {
        HK_AUTO(hk_buf_fini) struct hk_buf type = {0};
        hk_buf_addf(&type, "Content-Type: %s", k->target.media);
        list = curl_slist_append(list, type.data);
    }
    return list;
}

static void set_body(struct call *k, CURL *curl)
{
    if (!k->target.media) {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, NULL);
        return;
    }
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, k->target.method);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)k->target.body.len);
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_body_wanted);
    curl_easy_setopt(curl, CURLOPT_READDATA, k);
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_rewind);
}

static void set_options(struct call *k, CURL *curl)
{
    HK_AUTO(hk_buf_fini) struct hk_buf url = {0};
    const struct client *c = k->c;
    const bool zip = k->verb == PORT_LIST && !c->config.disable_compression;
    const int64_t timeout_ms = call_is_stream(k) ? 0 : c->o.request_timeout_ms;

    hk_buf_addf(&url, "%s%s", c->base_url, k->target.path.data);
    k->headers = make_headers(k);
    curl_easy_setopt(curl, CURLOPT_URL, url.data);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, k->headers);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, zip ? "gzip" : NULL);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, client_call_on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, k);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, client_call_on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, k);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, k);
    set_body(k, curl);
}

static void forget_warnings(struct call *k)
{
    while (k->warnings.len > 0) {
        hk_free(hk_vec_pop(&k->warnings));
    }
}

/* The counter of the slots that the call uses. */
static uint32_t *counter(struct call *k)
{
    struct client *c = k->c;

    return call_is_stream(k) ? &c->watches : k->rank == RANK_LEASE ? &c->leases : &c->active;
}

void call_start(struct call *k)
{
    struct client *c = k->c;

    k->state = CALL_ACTIVE;
    k->attempts++;
    k->sent = 0;
    k->http = 0;
    k->unreadable = (struct hk_err){0};
    list_reader_clear(&k->list);
    k->retry_after_s = -1;
    hk_buf_clear(&k->answer);
    forget_warnings(k);
    k->epoch = c->auth.epoch;
    k->easy = multi_take(c);
    set_options(k, k->easy->curl);
    *counter(k) += 1;
    if (k->verb == PORT_WATCH) {
        watch_begin(k);
    }
    curl_multi_add_handle(curl_loop_multi(c->curl), k->easy->curl);
}

void call_release(struct call *k)
{
    struct client *c = k->c;

    if (!k->easy) {
        return;
    }
    curl_multi_remove_handle(curl_loop_multi(c->curl), k->easy->curl);
    if (k->timer) {
        net_timer_off(k->timer);
    }
    multi_give(c, hk_take(k->easy));
    curl_slist_free_all(k->headers);
    k->headers = NULL;
    *counter(k) -= 1;
    c->npaused -= k->paused;
    k->paused = false;
    client_pump_soon(c);
}

/* ---- retries ---- */

static void on_pause_over(void *ctx)
{
    client_queue(ctx, true);
}

/* Doubles the pause and subtracts up to half of it at random, but waits at least as long as the
 * server asked. Pauses for a lease stay short, because it expires meanwhile. */
static int64_t pause_ns(struct call *k)
{
    const struct client_opts *o = &k->c->o;
    const int64_t last_ms =
        k->rank <= RANK_LEASE ? HK_MIN(o->retry_last_ms, LEASE_LAST_MS) : o->retry_last_ms;
    int64_t ms = o->retry_first_ms;

    for (uint32_t i = 1; i < k->attempts && ms < last_ms; i++) {
        ms *= 2;
    }
    ms = HK_MIN(ms, last_ms);
    ms -= (int64_t)(hk_rand_unit(o->rand) * 0.5 * (double)ms);
    if (k->retry_after_s >= 0) {
        ms = (int64_t)k->retry_after_s * 1000 + ms / 4;
    }
    return ms * 1000000;
}

/* False after the last attempt. */
static bool try_again(struct call *k)
{
    struct client *c = k->c;

    if (k->verb == PORT_WATCH || k->attempts > c->o.retries) {
        return false;
    }
    if (!k->timer) {
        k->timer = net_timer_new(c->o.loop, on_pause_over, k);
    }
    meter_retry(k);
    k->state = CALL_WAITING;
    net_timer_at(k->timer, net_loop_now_ns(c->o.loop) + pause_ns(k));
    return true;
}

/* ---- answers ---- */

static void take_warnings(struct call *k, struct message *m)
{
    if (k->warnings.len == 0) {
        return;
    }
    const char **at = hk_arena_array(&m->mem, k->warnings.len, sizeof(*at));
    for (uint32_t i = 0; i < k->warnings.len; i++) {
        at[i] = hk_arena_strndup(&m->mem, k->warnings.at[i], strlen(k->warnings.at[i]));
    }
    m->msg.warnings = at;
    m->msg.nwarnings = k->warnings.len;
}

static int take_list(struct call *k, struct message *m)
{
    struct decode_list list;
    const int rc = list_reader_finish(&k->list, &m->mem, &list, &m->err);

    if (rc == 0) {
        m->msg.items = list.items;
        m->msg.nitems = list.nitems;
        m->msg.rv = list.rv;
        m->msg.cont = list.cont;
        m->msg.remaining = list.remaining;
    }
    return rc;
}

static int take_object(struct call *k, struct message *m)
{
    const int rc =
        decode_object(k->kind, hk_buf_str(&k->answer), k->text_only, &m->msg.obj, &m->err);

    if (rc == 0) {
        m->msg.rv = m->msg.obj->rv;
    }
    return rc;
}

static void take_status(struct call *k, long http, struct message *m)
{
    decode_status(hk_buf_str(&k->answer), (int)http, &m->mem, &m->status);
    if (m->status.retry_after_s == 0 && k->retry_after_s > 0) {
        m->status.retry_after_s = k->retry_after_s;
    }
    m->msg.status = &m->status;
    if (!m->status.success) {
        m->msg.rc = hk_fail(&m->err, port_status_code(hk_str(m->status.reason), m->status.code),
                            "%s", m->status.message);
    }
}

/* A truncated answer must not be taken for a refusal. */
static int take_outcome(struct call *k, long http, struct message *m)
{
    struct json doc;
    const int rc = json_parse(hk_buf_str(&k->answer), 0, &m->mem, &doc, &m->err);

    if (rc == 0) {
        take_status(k, http, m);
    }
    return rc;
}

static void succeed(struct call *k, long http)
{
    struct message *m = client_message(k, PORT_DONE);
    int rc = 0;

    if (k->verb == PORT_DELETE_COLLECTION && http == 200) {
        hk_buf_addstr(&k->answer, hk_buf_str(&k->list.shell)); /* may be a Status */
    }
    if (k->verb != PORT_LIST && decode_is_status(hk_buf_str(&k->answer))) {
        rc = take_outcome(k, http, m);
    } else if (is_list(k)) {
        rc = take_list(k, m);
    } else {
        rc = take_object(k, m);
        m->msg.created = rc == 0 && http == 201;
    }
    if (rc < 0) {
        m->msg.rc = hk_fail(&m->err, HK_EIO, "cannot read the answer to %s of %s: %s",
                            port_verb_name(k->verb), k->kind->plural, m->err.text);
    }
    take_warnings(k, m);
    client_finish(k, m);
}

/* True if the server refused for now and did nothing. */
static bool put_off(const struct call *k, long http)
{
    if (http == 429) { /* an eviction with a Status: a budget forbids it; else: overload */
        return !k->eviction || !decode_is_status(hk_buf_str(&k->answer));
    }
    if (http == 503) {
        return is_read(k) || k->retry_after_s >= 0;
    }
    return http >= 500 && is_read(k) && k->retry_after_s >= 0;
}

static void refused(struct call *k, long http)
{
    if (http == 401 && !k->refreshed && auth_renew(k->c, k->epoch)) {
        k->refreshed = true;
        k->attempts--;
        client_queue(k, true);
        return;
    }
    if (put_off(k, http) && try_again(k)) {
        return;
    }
    struct message *m = client_message(k, PORT_DONE);
    take_status(k, http, m);
    if (m->msg.rc == 0) { /* a Status of success in an error answer */
        m->msg.rc = hk_fail(&m->err, port_status_code(HK_STR(""), (int)http),
                            "the server answered with HTTP code %ld", http);
    }
    take_warnings(k, m);
    client_finish(k, m);
}

/* ---- failures ---- */

static bool is_tls_trust(CURLcode rc)
{
    return rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CERTPROBLEM ||
           rc == CURLE_SSL_CACERT_BADFILE || rc == CURLE_SSL_ISSUER_ERROR;
}

/* libcurl's messages name our internal files. */
static void explain_distrust(const char *error, char why[CURL_ERROR_SIZE])
{
    const char *files = strstr(error, ". CAfile:");
    const int n = files ? (int)(files - error) : (int)strlen(error);

    snprintf(why, CURL_ERROR_SIZE, "%.*s; the kubeconfig may be of another server",
             HK_MIN(n, CURL_ERROR_SIZE / 2), error);
}

static void broke(struct call *k, CURLcode rc, const char *why)
{
    const bool read = is_read(k), unsent = !read && k->sent == 0;
    const bool late = rc == CURLE_OPERATION_TIMEDOUT;
    const bool worth_it =
        (unsent || (read && !late)) && !is_tls_trust(rc) && k->unreadable.code == 0;
    const char *verb = port_verb_name(k->verb), *plural = k->kind->plural;

    if (worth_it && try_again(k)) {
        return;
    }
    if (read && k->unreadable.code != 0) {
        client_finish(k, client_failure(k, k->unreadable.code == HK_ELIMIT ? HK_ELIMIT : HK_EIO,
                                        "cannot read the answer to %s of %s: %s", verb, plural,
                                        k->unreadable.text));
    } else if (read) {
        client_finish(
            k, client_failure(k, late ? HK_ETIMEOUT : HK_EIO, "%s of %s: %s", verb, plural, why));
    } else if (unsent) {
        client_finish(k,
                      client_failure(k, HK_EBUSY, "%s of %s was not sent: %s", verb, plural, why));
    } else {
        client_finish(k, client_failure(k, late ? HK_ETIMEOUT : HK_EIO,
                                        "%s of %s may have taken effect: %s", verb, plural, why));
    }
}

void call_end(struct call *k, CURLcode rc)
{
    const long http = http_code(k);
    char why[CURL_ERROR_SIZE];

    if (is_tls_trust(rc)) {
        explain_distrust(k->easy->error, why);
    } else {
        snprintf(why, sizeof(why), "%s",
                 k->easy->error[0] != '\0' ? k->easy->error : curl_easy_strerror(rc));
    }
    call_release(k);
    if (k->http == 0) {
        meter_answer(k);
    }
    if (k->verb == PORT_WATCH && http == 200) {
        client_finish(k, watch_outcome(k, rc, why));
    } else if (k->on_bytes && http == 200) {
        client_finish(k, get_stream_outcome(k, rc, why));
    } else if (rc != CURLE_OK) {
        broke(k, rc, why);
    } else if (http >= 200 && http < 300) {
        succeed(k, http);
    } else {
        refused(k, http);
    }
}
