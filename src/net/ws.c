// SPDX-License-Identifier: Apache-2.0
// WebSocket frames:
//
//   FIN/op  MASK/length  [length of 2 or 8 bytes]  [mask of 4 bytes]  payload
//
// Written here, because libmicrohttpd hands over a bare socket and libcurl's WebSockets are only for
// clients; libwebsockets wants to own the loop, the TLS session and the connection.
#include "net/ws.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <strings.h>

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

enum {
    FIN = 0x80,
    RESERVED = 0x70,
    OP = 0x0f,
    CONTROL = 0x08, /* bit of an opcode */
    MASKED = 0x80,
    SHORT = 0x7f,
    LENGTH_2 = 126,
    LENGTH_8 = 127,
};

/* ---- the handshake ---- */

static void write_base64(const void *p, unsigned n, char *ret, size_t size)
{
    const gnutls_datum_t in = {(unsigned char *)p, n};
    gnutls_datum_t out;

    hk_assert(gnutls_base64_encode2(&in, &out) == 0 && out.size < size);
    memcpy(ret, out.data, out.size);
    ret[out.size] = '\0';
    gnutls_free(out.data);
}

void ws_accept(struct hk_str key, char ret[WS_ACCEPT_BYTES + 1])
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    unsigned char digest[20];

    hk_buf_addstr(&text, key);
    hk_buf_adds(&text, GUID);
    hk_assert(gnutls_hash_fast(GNUTLS_DIG_SHA1, text.data, text.len, digest) == 0);
    write_base64(digest, sizeof(digest), ret, WS_ACCEPT_BYTES + 1);
}

void ws_key(const unsigned char random[16], char ret[WS_KEY_BYTES + 1])
{
    write_base64(random, 16, ret, WS_KEY_BYTES + 1);
}

bool ws_header_has(struct hk_str header, const char *word)
{
    struct hk_str part;

    while (hk_str_cut(&header, ',', &part)) {
        part = hk_str_trim(part);
        if (part.n == strlen(word) && strncasecmp(part.s, word, part.n) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- reading ---- */

static int broken(struct ws_reader *r, const char *why, struct hk_err *err)
{
    r->close_code = WS_CLOSE_PROTOCOL;
    return hk_fail(err, HK_EINVAL, "websocket: %s", why);
}

/* The length of the head, as far as the bytes so far show it. */
static uint8_t head_size(const struct ws_reader *r)
{
    uint8_t n = 2;

    if (r->nhead < 2) {
        return n;
    }
    n += (r->head[1] & SHORT) == LENGTH_2 ? 2 : (r->head[1] & SHORT) == LENGTH_8 ? 8 : 0;
    return n + (r->head[1] & MASKED ? 4 : 0);
}

static uint64_t head_length(const struct ws_reader *r)
{
    const uint8_t brief = r->head[1] & SHORT;
    const int wide = brief == LENGTH_2 ? 2 : brief == LENGTH_8 ? 8 : 0;
    uint64_t n = wide ? 0 : brief;

    for (int k = 0; k < wide; k++) {
        n = n << 8 | r->head[2 + k];
    }
    return n;
}

static int check_control(struct ws_reader *r, struct hk_err *err)
{
    if (r->op != WS_CLOSE && r->op != WS_PING && r->op != WS_PONG) {
        return broken(r, "a control frame of no known kind", err);
    }
    if (!r->fin || r->left > WS_CONTROL_MAX) {
        return broken(r, "a control frame in pieces or too long", err);
    }
    r->ncontrol = 0;
    return 0;
}

static int check_data(struct ws_reader *r, struct hk_err *err)
{
    if (r->op > WS_BINARY) {
        return broken(r, "a data frame of no known kind", err);
    }
    if ((r->op == WS_MORE) != (r->message != 0)) {
        return broken(r, r->message ? "a message within a message" : "the rest of no message", err);
    }
    if (r->left > r->max_frame) {
        r->close_code = WS_CLOSE_TOO_LARGE;
        return hk_fail(err, HK_EINVAL, "websocket: a frame of %llu bytes, want at most %llu",
                       (unsigned long long)r->left, (unsigned long long)r->max_frame);
    }
    if (r->op != WS_MORE) {
        r->message = r->op;
        r->begun = false;
    }
    return 0;
}

/* Called when the head is complete. */
static int begin_frame(struct ws_reader *r, struct hk_err *err)
{
    const bool masked = r->head[1] & MASKED;

    if (r->head[0] & RESERVED) {
        return broken(r, "reserved bits are set", err);
    }
    if (masked != r->server) {
        return broken(r, masked ? "a masked frame of a server" : "an unmasked frame of a client",
                      err);
    }
    r->fin = r->head[0] & FIN;
    r->op = r->head[0] & OP;
    r->left = head_length(r);
    memcpy(r->mask, r->head + r->nhead - 4, masked ? 4 : 0);
    r->mask_at = 0;
    r->nhead = 0;
    r->in_frame = true;
    return r->op & CONTROL ? check_control(r, err) : check_data(r, err);
}

static void apply_mask(const unsigned char mask[4], uint8_t *at, char *p, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        p[k] = (char)((unsigned char)p[k] ^ mask[(*at + k) % 4]);
    }
    *at = (uint8_t)((*at + n) % 4);
}

/* Returns as much of the payload as has arrived. */
static struct hk_str take_payload(struct ws_reader *r, char **in, size_t *n)
{
    const size_t part = (size_t)HK_MIN(r->left, (uint64_t)*n);
    char *const p = *in;

    if (r->server) {
        apply_mask(r->mask, &r->mask_at, p, part);
    }
    r->left -= part;
    *in += part;
    *n -= part;
    return (struct hk_str){p, part};
}

static bool give_control(struct ws_reader *r, struct hk_str part, struct ws_piece *ret)
{
    memcpy(r->control + r->ncontrol, part.s, part.n);
    r->ncontrol = (uint8_t)(r->ncontrol + part.n);
    if (r->left > 0) {
        return false;
    }
    *ret = (struct ws_piece){r->op, true, true, {r->control, r->ncontrol}};
    return true;
}

/* False for an empty frame that is not the last of its message. */
static bool give_data(struct ws_reader *r, struct hk_str part, struct ws_piece *ret)
{
    const bool last = r->left == 0 && r->fin;

    *ret = (struct ws_piece){r->message, !r->begun, last, part};
    if (part.n == 0 && !last) {
        return false;
    }
    r->begun = true;
    r->message = last ? 0 : r->message;
    return true;
}

static bool ws_read_payload(struct ws_reader *r, char **in, size_t *n, struct ws_piece *ret)
{
    const struct hk_str part = take_payload(r, in, n);
    const bool told = r->op & CONTROL ? give_control(r, part, ret) : give_data(r, part, ret);

    r->in_frame = r->left > 0;
    return told;
}

int ws_read(struct ws_reader *r, char **in, size_t *n, struct ws_piece *ret, struct hk_err *err)
{
    while (*n > 0) {
        if (!r->in_frame) {
            r->head[r->nhead++] = (unsigned char)**in;
            (*in)++;
            (*n)--;
            if (r->nhead < 2 || r->nhead < head_size(r)) {
                continue;
            }
            const int rc = begin_frame(r, err);
            if (rc < 0) {
                return rc;
            }
        }
        /* Also for a frame without payload: no more bytes may come. */
        if ((*n > 0 || r->left == 0) && ws_read_payload(r, in, n, ret)) {
            return 1;
        }
    }
    return 0;
}

uint16_t ws_close_code(struct hk_str payload)
{
    return payload.n < 2
               ? WS_CLOSE_NORMAL
               : (uint16_t)((unsigned char)payload.s[0] << 8 | (unsigned char)payload.s[1]);
}

/* ---- writing ---- */

static void ws_write_head(enum ws_op op, uint64_t n, const unsigned char *mask, struct hk_buf *out)
{
    const int wide = n < LENGTH_2 ? 0 : n <= UINT16_MAX ? 2 : 8;
    const int brief = wide == 0 ? (int)n : wide == 2 ? LENGTH_2 : LENGTH_8;

    hk_buf_addc(out, (char)(FIN | op));
    hk_buf_addc(out, (char)(brief | (mask ? MASKED : 0)));
    for (int k = wide; k-- > 0;) {
        hk_buf_addc(out, (char)(n >> (8 * k)));
    }
    if (mask) {
        hk_buf_add(out, mask, 4);
    }
}

static void mask_from(struct hk_buf *out, size_t from, const unsigned char *mask)
{
    uint8_t at = 0;

    if (mask) {
        apply_mask(mask, &at, out->data + from, out->len - from);
    }
}

void ws_write(enum ws_op op, struct hk_str bytes, const unsigned char *mask, struct hk_buf *out)
{
    ws_write_head(op, bytes.n, mask, out);
    const size_t from = out->len;
    hk_buf_addstr(out, bytes);
    mask_from(out, from, mask);
}

void ws_write_channel(uint8_t channel, struct hk_str bytes, const unsigned char *mask,
                      struct hk_buf *out)
{
    ws_write_head(WS_BINARY, bytes.n + 1, mask, out);
    const size_t from = out->len;
    hk_buf_addc(out, (char)channel);
    hk_buf_addstr(out, bytes);
    mask_from(out, from, mask);
}

void ws_write_close(uint16_t code, struct hk_str why, const unsigned char *mask, struct hk_buf *out)
{
    char payload[WS_CONTROL_MAX] = {(char)(code >> 8), (char)code};
    const struct hk_str text = hk_str_head(why, sizeof(payload) - 2);

    memcpy(payload + 2, text.s, text.n);
    ws_write(WS_CLOSE, (struct hk_str){payload, text.n + 2}, mask, out);
}
