// SPDX-License-Identifier: Apache-2.0
// The one gRPC call that kubelet makes: grpc.health.v1.Health/Check. The request takes four HTTP/2
// frames. Of the answer only the first DATA frame matters; a server that ends the stream or the
// connection without one is not serving.
//
// Header fields are written as literals (RFC 7541, 6.2.2), with names from the static table if
// possible, so no dynamic table is needed.
//
// Written here, because one call with a fixed request does not justify gRPC's C++ library. nghttp2
// would bring many streams, flow control and header compression, and the probe needs none of them.
#include "net/probe_priv.h"

#define FRAME_HEADER 9u
#define STREAM 1u
#define STRING_MAX 126u /* longest length in one byte */

enum { FRAME_DATA = 0, FRAME_HEADERS = 1, FRAME_RST = 3, FRAME_SETTINGS = 4, FRAME_GOAWAY = 7 };
enum { FLAG_END_STREAM = 1, FLAG_END_HEADERS = 4, FLAG_PADDED = 8 };
/* Indices of the static table. */
enum { NAME_AUTHORITY = 1, NAME_PATH = 4, NAME_CONTENT_TYPE = 31 };
#define FIELD_METHOD_POST 0x83
#define FIELD_SCHEME_HTTP 0x86

static void put_u8(struct hk_buf *out, unsigned n)
{
    hk_buf_addc(out, (char)(unsigned char)n);
}

static void put_be(struct hk_buf *out, uint32_t n, unsigned bytes)
{
    while (bytes-- > 0) {
        put_u8(out, n >> (8 * bytes) & 0xff);
    }
}

static void put_frame(struct hk_buf *out, unsigned type, unsigned flags, uint32_t stream,
                      const struct hk_buf *payload)
{
    put_be(out, payload ? (uint32_t)payload->len : 0, 3);
    put_u8(out, type);
    put_u8(out, flags);
    put_be(out, stream, 4);
    if (payload) {
        hk_buf_addstr(out, hk_buf_str(payload));
    }
}

static void put_string(struct hk_buf *out, struct hk_str s)
{
    s = hk_str_head(s, STRING_MAX);
    put_u8(out, (unsigned)s.n);
    hk_buf_addstr(out, s);
}

/* A name from the table: four bits of index, a larger one continues in a second byte. */
static void put_field(struct hk_buf *out, unsigned name, struct hk_str value)
{
    if (name < 15) {
        put_u8(out, name);
    } else {
        put_u8(out, 15);
        put_u8(out, name - 15);
    }
    put_string(out, value);
}

static void put_headers(struct hk_buf *out, const struct net_probe_opts *o)
{
    HK_AUTO(hk_buf_fini) struct hk_buf fields = {0}, authority = {0};

    hk_buf_addf(&authority, "%.*s:%u", HK_FMT(o->host), o->port);
    put_u8(&fields, FIELD_METHOD_POST);
    put_u8(&fields, FIELD_SCHEME_HTTP);
    put_field(&fields, NAME_PATH, HK_STR("/grpc.health.v1.Health/Check"));
    put_field(&fields, NAME_AUTHORITY, hk_buf_str(&authority));
    put_field(&fields, NAME_CONTENT_TYPE, HK_STR("application/grpc"));
    put_u8(&fields, 0); /* a name that is not in the table */
    put_string(&fields, HK_STR("te"));
    put_string(&fields, HK_STR("trailers"));
    put_frame(out, FRAME_HEADERS, FLAG_END_HEADERS, STREAM, &fields);
}

/* message HealthCheckRequest { string service = 1; }, after gRPC's flag and length. */
static void put_message(struct hk_buf *out, struct hk_str service)
{
    HK_AUTO(hk_buf_fini) struct hk_buf message = {0}, body = {0};

    if (service.n > 0) {
        put_u8(&message, 1 << 3 | 2);
        put_string(&message, service);
    }
    put_u8(&body, 0);
    put_be(&body, (uint32_t)message.len, 4);
    hk_buf_addstr(&body, hk_buf_str(&message));
    put_frame(out, FRAME_DATA, FLAG_END_STREAM, STREAM, &body);
}

void probe_grpc_request(const struct net_probe_opts *o, struct hk_buf *out)
{
    hk_buf_adds(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    put_frame(out, FRAME_SETTINGS, 0, 0, NULL);
    put_headers(out, o);
    put_message(out, o->path);
}

/* ---- the answer ---- */

static uint32_t get_be(const unsigned char *p, unsigned bytes)
{
    uint32_t n = 0;

    while (bytes-- > 0) {
        n = n << 8 | *p++;
    }
    return n;
}

/* message HealthCheckResponse { ServingStatus status = 1; }: SERVING is 1. */
static int serves(const unsigned char *p, uint32_t n, unsigned flags)
{
    if (flags & FLAG_PADDED) {
        if (n == 0 || p[0] >= n) {
            return 0;
        }
        n -= 1 + p[0];
        p++;
    }
    return n >= 7 && p[0] == 0 && get_be(p + 1, 4) >= 2 && p[5] == (1 << 3 | 0) && p[6] == 1;
}

int probe_grpc_answer(const struct hk_buf *in)
{
    const unsigned char *p = (const unsigned char *)in->data;
    size_t left = in->len;

    while (left >= FRAME_HEADER) {
        const uint32_t n = get_be(p, 3), stream = get_be(p + 5, 4) & INT32_MAX;
        const unsigned type = p[3], flags = p[4];

        if (left < FRAME_HEADER + n) {
            return -1;
        }
        if (type == FRAME_DATA && stream == STREAM && n > 0) {
            return serves(p + FRAME_HEADER, n, flags);
        }
        if (type == FRAME_GOAWAY || type == FRAME_RST ||
            (stream == STREAM && (flags & FLAG_END_STREAM))) {
            return 0;
        }
        p += FRAME_HEADER + n;
        left -= FRAME_HEADER + n;
    }
    return -1;
}
