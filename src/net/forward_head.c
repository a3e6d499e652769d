// SPDX-License-Identifier: Apache-2.0
// Heads of forwarded requests and answers. Upstream: UpgradeAwareHandler and Transport in
// apimachinery/pkg/util/proxy, and Go's httputil.ReverseProxy.
#include "net/forward_priv.h"

#include "net/http_head.h"

#include <strings.h>

static bool name_is(struct hk_str name, const char *want)
{
    return name.n == strlen(want) && strncasecmp(name.s, want, name.n) == 0;
}

static bool name_is_in(struct hk_str name, const char *const *list, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (name_is(name, list[k])) {
            return true;
        }
    }
    return false;
}

static bool name_starts(struct hk_str name, const char *prefix)
{
    return name.n >= strlen(prefix) && strncasecmp(name.s, prefix, strlen(prefix)) == 0;
}

/* Belongs to one connection: by its name, or because Connection lists it. */
static bool is_hop_by_hop(struct hk_str name, struct hk_str connection)
{
    static const char *const names[] = {
        "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
        "Te",         "Trailer",          "Upgrade",    "Transfer-Encoding",  "Content-Length"};
    struct hk_str word;

    while (connection.n > 0 && hk_str_cut(&connection, ',', &word)) {
        word = hk_str_trim(word);
        if (word.n == name.n && strncasecmp(word.s, name.s, name.n) == 0) {
            return true;
        }
    }
    return name_is_in(name, names, HK_LEN(names));
}

/* ---- requests ---- */

struct forward_request {
    struct hk_buf *out;
    struct hk_str connection; /* the client's header */
    struct hk_str forwarded_for;
    bool has_agent;
};

static void write_header(struct hk_buf *out, struct hk_str name, struct hk_str value)
{
    hk_buf_addf(out, "%.*s: %.*s\r\n", HK_FMT(name), HK_FMT(value));
}

/* The server gets neither the client's credentials nor an identity that only this server gives. */
static void forward_add_header(void *ctx, struct hk_str name, struct hk_str value)
{
    static const char *const ours[] = {"Host", "Expect", "Authorization", "X-Forwarded-For",
                                       "X-Forwarded-Uri"};
    struct forward_request *r = ctx;

    if (name_is(name, "X-Forwarded-For")) {
        r->forwarded_for = value;
    }
    r->has_agent |= name_is(name, "User-Agent");
    if (!is_hop_by_hop(name, r->connection) && !name_is_in(name, ours, HK_LEN(ours)) &&
        !name_starts(name, "X-Remote-") && !name_starts(name, "Impersonate-")) {
        write_header(r->out, name, value);
    }
}

/* "::1:5000" to "::1". */
static struct hk_str address_part(struct hk_str peer)
{
    const char *colon = memrchr(peer.s, ':', peer.n);

    return (struct hk_str){peer.s, colon ? (size_t)(colon - peer.s) : peer.n};
}

static void write_forwarded(const struct forward *f, const struct forward_request *r)
{
    const struct hk_str peer = address_part(f->http->peer);

    hk_buf_addf(r->out, "X-Forwarded-For: %.*s%s%.*s\r\n", HK_FMT(r->forwarded_for),
                r->forwarded_for.n > 0 ? ", " : "", HK_FMT(peer));
    if (!f->upgrade) {
        write_header(r->out, HK_STR("X-Forwarded-Uri"), f->http->path);
    }
}

static void write_framing(struct forward *f, struct hk_buf *out)
{
    const struct hk_str length = http_request_header(f->http, "Content-Length");

    if (f->upgrade) {
        hk_buf_adds(out, "Connection: Upgrade\r\n");
        write_header(out, HK_STR("Upgrade"), http_request_header(f->http, "Upgrade"));
    } else {
        hk_buf_adds(out, "Connection: close\r\n");
    }
    f->chunked = f->streamed && length.n == 0;
    if (f->chunked) {
        hk_buf_adds(out, "Transfer-Encoding: chunked\r\n");
    } else if (f->streamed) {
        write_header(out, HK_STR("Content-Length"), length);
    } else if (f->http->body.n > 0 || length.n > 0) {
        hk_buf_addf(out, "Content-Length: %zu\r\n", f->http->body.n);
    }
}

void forward_write_request(struct forward *f, const struct forward_opts *o)
{
    struct hk_buf *out = &f->there.buf;
    struct forward_request r = {
        .out = out,
        .connection = http_request_header(o->http, "Connection"),
        .forwarded_for = HK_STR(""),
    };
    const struct hk_str host =
        o->host_header.n > 0 ? o->host_header : http_request_header(o->http, "Host");

    hk_buf_addf(out, "%.*s %.*s HTTP/1.1\r\nHost: %.*s\r\n", HK_FMT(o->http->method),
                HK_FMT(o->path), HK_FMT(host));
    http_request_headers(o->http, forward_add_header, &r);
    for (uint32_t k = 0; k < o->nheaders; k++) {
        write_header(out, o->headers[k].name, o->headers[k].value);
    }
    write_forwarded(f, &r);
    write_framing(f, out);
    hk_buf_adds(out, "\r\n");
    hk_buf_addstr(out, o->http->body);
}

/* ---- answers ---- */

struct forward_url {
    struct hk_str scheme, host, path; /* path: with query and fragment */
};

static struct forward_url split_url(struct hk_str url)
{
    const struct hk_str none = HK_STR("");
    struct forward_url u = {none, none, url};
    const char *slashes = url.n > 1 ? memmem(url.s, url.n, "//", 2) : NULL;
    const char *slash = memchr(url.s, '/', url.n);

    if (!slashes || slash != slashes || (slashes > url.s && slashes[-1] != ':')) {
        return u;
    }
    const char *host = slashes + 2, *end = url.s + url.n, *path = host;
    while (path < end && *path != '/' && *path != '?' && *path != '#') {
        path++;
    }
    u.scheme = (struct hk_str){url.s, (size_t)(slashes - url.s)};
    u.host = (struct hk_str){host, (size_t)(path - host)};
    u.path = (struct hk_str){path, (size_t)(end - path)};
    return u;
}

/* Upstream: Transport.rewriteURL. */
static void write_location(const struct forward *f, struct hk_str url, struct hk_buf *out)
{
    const struct hk_str asked = http_request_header(f->http, "Host");
    const struct forward_url u = split_url(url);
    const bool same = hk_str_eq(u.host, asked);

    if ((u.host.n > 0 && !same && !hk_str_is(u.host, f->authority)) ||
        !hk_str_starts(u.path, "/")) {
        hk_buf_addstr(out, url);
        return;
    }
    if (u.host.n > 0 && same) {
        hk_buf_addf(out, "%.*s//%.*s", HK_FMT(u.scheme), HK_FMT(u.host));
    }
    if (!hk_str_starts(u.path, f->prefix)) {
        hk_buf_adds(out, f->prefix);
    }
    hk_buf_addstr(out, u.path);
}

static bool is_for_client(const struct forward *f, struct hk_str name, struct hk_str connection)
{
    static const char *const cors[] = {
        "Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
        "Access-Control-Allow-Methods", "Access-Control-Allow-Origin"};

    if (f->stage == AGREED && name_is(name, "Upgrade")) {
        return true;
    }
    return !is_hop_by_hop(name, connection) && !name_is_in(name, cors, HK_LEN(cors));
}

static bool is_text(struct hk_str s)
{
    for (size_t k = 0; k < s.n; k++) {
        if ((unsigned char)s.s[k] < ' ' && s.s[k] != '\t') {
            return false;
        }
    }
    return true;
}

/* Offsets, until the text stays where it is. */
static void add_client_header(const struct forward *f, struct hk_str name, struct hk_str value,
                              struct forward_headers *ret)
{
    struct http_header h = {{NULL, name.n}, {NULL, 0}};

    hk_buf_addstr(&ret->text, name);
    hk_buf_addc(&ret->text, '\0');
    const size_t from = ret->text.len;
    if (name_is(name, "Location") && !f->upgrade) {
        write_location(f, value, &ret->text);
    } else {
        hk_buf_addstr(&ret->text, value);
    }
    h.value.n = ret->text.len - from;
    hk_buf_addc(&ret->text, '\0');
    hk_vec_push(&ret->list, h);
}

void forward_headers_read(const struct forward *f, struct hk_str head, struct forward_headers *ret)
{
    const struct hk_str connection = http_head_get(head, "Connection");
    struct hk_str line, name;
    size_t at = 0;

    hk_str_cut(&head, '\n', &line); /* the status */
    while (hk_str_cut(&head, '\n', &line)) {
        if (!hk_str_cut(&line, ':', &name) || name.n == 0 || !line.s) {
            continue;
        }
        line = hk_str_trim(line);
        if (is_text(name) && is_text(line) && is_for_client(f, name, connection)) {
            add_client_header(f, name, line, ret);
        }
    }
    for (uint32_t k = 0; k < ret->list.len; k++) {
        struct http_header *h = &ret->list.at[k];
        h->name.s = ret->text.data + at;
        h->value.s = h->name.s + h->name.n + 1;
        at += h->name.n + h->value.n + 2;
    }
}

void forward_headers_fini(struct forward_headers *h)
{
    hk_buf_fini(&h->text);
    hk_vec_fini(&h->list);
}
