// SPDX-License-Identifier: Apache-2.0
// Frames of SPDY/3.1: eight bytes of head, then data of a stream, or a control frame. One zlib
// stream per direction compresses the headers of the whole connection, starting with a dictionary
// that the protocol defines. Our direction needs no dictionary: we send only empty headers.
//
// Written here, because SPDY was given up in 2016, and no library that is still maintained has it;
// kubectl before 1.31 and many clients speak nothing else.
#include "net/spdy.h"

#include <zlib.h>

enum {
    VERSION = 3,
    HEAD = 8,
    MAX_CONTROL = 64 << 10, /* compressed headers of a stream */
    MAX_HEADERS = 64 << 10, /* and their size after decompression */
    FLAG_FIN = 1,
    CONTROL = 0x80,
    STATUS_CANCEL = 5,
};

enum frame_type {
    SYN_STREAM = 1,
    SYN_REPLY = 2,
    RST_STREAM = 3,
    PING = 6,
    GOAWAY = 7,
    HEADERS = 8,
};

struct spdy {
    unsigned char head[HEAD];
    uint8_t nhead;
    uint32_t left;         /* bytes of the frame still to come */
    struct hk_buf control; /* the frame so far, if it is a control frame */
    uint32_t ended;        /* report this stream's end next; 0: none */
    struct hk_buf headers; /* of the last frame with headers */
    struct hk_buf reply;   /* compressed */
    z_stream inflate, deflate;
};

/* ---- the dictionary ---- */

static const char *const dictionary_words[] = {"options",
                                               "head",
                                               "post",
                                               "put",
                                               "delete",
                                               "trace",
                                               "accept",
                                               "accept-charset",
                                               "accept-encoding",
                                               "accept-language",
                                               "accept-ranges",
                                               "age",
                                               "allow",
                                               "authorization",
                                               "cache-control",
                                               "connection",
                                               "content-base",
                                               "content-encoding",
                                               "content-language",
                                               "content-length",
                                               "content-location",
                                               "content-md5",
                                               "content-range",
                                               "content-type",
                                               "date",
                                               "etag",
                                               "expect",
                                               "expires",
                                               "from",
                                               "host",
                                               "if-match",
                                               "if-modified-since",
                                               "if-none-match",
                                               "if-range",
                                               "if-unmodified-since",
                                               "last-modified",
                                               "location",
                                               "max-forwards",
                                               "pragma",
                                               "proxy-authenticate",
                                               "proxy-authorization",
                                               "range",
                                               "referer",
                                               "retry-after",
                                               "server",
                                               "te",
                                               "trailer",
                                               "transfer-encoding",
                                               "upgrade",
                                               "user-agent",
                                               "vary",
                                               "via",
                                               "warning",
                                               "www-authenticate",
                                               "method",
                                               "get",
                                               "status",
                                               "200 OK",
                                               "version",
                                               "HTTP/1.1",
                                               "url",
                                               "public",
                                               "set-cookie",
                                               "keep-alive",
                                               "origin"};
static const char dictionary_tail[] =
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 "
    "Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
    "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

static void add_u32(struct hk_buf *out, uint32_t n)
{
    const unsigned char bytes[] = {(unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                   (unsigned char)(n >> 8), (unsigned char)n};

    hk_buf_add(out, bytes, sizeof(bytes));
}

static uint32_t get_u32(const void *p)
{
    const unsigned char *b = p;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void write_dictionary(struct hk_buf *out)
{
    for (size_t i = 0; i < HK_LEN(dictionary_words); i++) {
        add_u32(out, (uint32_t)strlen(dictionary_words[i]));
        hk_buf_adds(out, dictionary_words[i]);
    }
    hk_buf_adds(out, dictionary_tail);
}

static bool use_dictionary(z_stream *z)
{
    HK_AUTO(hk_buf_fini) struct hk_buf all = {0};

    write_dictionary(&all);
    return inflateSetDictionary(z, (const unsigned char *)all.data, (uInt)all.len) == Z_OK;
}

/* ---- headers ---- */

/* Decompresses all of the text, which ends at a flush, into s->headers. */
static bool expand(struct spdy *s, struct hk_str text)
{
    z_stream *z = &s->inflate;
    unsigned char part[4096];
    int rc = Z_OK;

    hk_buf_clear(&s->headers);
    z->next_in = (unsigned char *)text.s;
    z->avail_in = (uInt)text.n;
    do {
        z->next_out = part;
        z->avail_out = sizeof(part);
        rc = inflate(z, Z_SYNC_FLUSH);
        if (rc == Z_NEED_DICT) {
            rc = use_dictionary(z) ? Z_OK : Z_DATA_ERROR;
            continue;
        }
        hk_buf_add(&s->headers, part, sizeof(part) - z->avail_out);
    } while (rc == Z_OK && (z->avail_in > 0 || z->avail_out == 0) && s->headers.len <= MAX_HEADERS);
    return (rc == Z_OK || rc == Z_BUF_ERROR) && z->avail_in == 0 && s->headers.len <= MAX_HEADERS;
}

static bool cut_text(struct hk_str *rest, struct hk_str *ret)
{
    uint32_t n;

    if (rest->n < 4 || (n = get_u32(rest->s)) > rest->n - 4) {
        return false;
    }
    *ret = (struct hk_str){rest->s + 4, n};
    *rest = (struct hk_str){rest->s + 4 + n, rest->n - 4 - n};
    return true;
}

/* The value of a header, "" if missing; false: the headers are malformed. */
static bool find_header(const struct spdy *s, const char *name, struct hk_str *ret)
{
    struct hk_str rest = hk_buf_str(&s->headers), key, value;
    uint32_t count;

    *ret = HK_STR("");
    if (rest.n < 4) {
        return false;
    }
    count = get_u32(rest.s);
    rest = (struct hk_str){rest.s + 4, rest.n - 4};
    for (; count > 0; count--) {
        if (!cut_text(&rest, &key) || !cut_text(&rest, &value)) {
            return false;
        }
        if (hk_str_is(key, name)) {
            *ret = value;
        }
    }
    return true;
}

struct hk_str spdy_header(const struct spdy *s, const char *name)
{
    struct hk_str value;

    return find_header(s, name, &value) ? value : HK_STR("");
}

/* Compresses an empty header block. */
static void compress_nothing(struct spdy *s)
{
    static const unsigned char none[4];
    z_stream *z = &s->deflate;

    hk_buf_clear(&s->reply);
    hk_buf_reserve(&s->reply, 64);
    z->next_in = (unsigned char *)none;
    z->avail_in = sizeof(none);
    z->next_out = (unsigned char *)s->reply.data;
    z->avail_out = 64;
    hk_assert(deflate(z, Z_SYNC_FLUSH) == Z_OK && z->avail_in == 0 && z->avail_out > 0);
    s->reply.len = 64 - z->avail_out;
}

/* ---- writing ---- */

static void write_control(enum frame_type type, uint32_t n, struct hk_buf *out)
{
    add_u32(out, (uint32_t)CONTROL << 24 | VERSION << 16 | type);
    add_u32(out, n);
}

static void write_reply(struct spdy *s, uint32_t stream, struct hk_buf *out)
{
    compress_nothing(s);
    write_control(SYN_REPLY, 4 + (uint32_t)s->reply.len, out);
    add_u32(out, stream);
    hk_buf_addstr(out, hk_buf_str(&s->reply));
}

void spdy_write(uint32_t stream, struct hk_str bytes, bool last, struct hk_buf *out)
{
    hk_assert(bytes.n < 1 << 24);
    add_u32(out, stream);
    add_u32(out, (last ? (uint32_t)FLAG_FIN << 24 : 0) | (uint32_t)bytes.n);
    hk_buf_addstr(out, bytes);
}

void spdy_write_reset(uint32_t stream, struct hk_buf *out)
{
    write_control(RST_STREAM, 8, out);
    add_u32(out, stream);
    add_u32(out, STATUS_CANCEL);
}

/* ---- reading ---- */

static bool is_control(const struct spdy *s)
{
    return s->head[0] & CONTROL;
}

static uint8_t spdy_frame_flags(const struct spdy *s)
{
    return s->head[4];
}

static int nonsense(const char *what, struct hk_err *err)
{
    return hk_fail(err, HK_EINVAL, "SPDY: %s", what);
}

/* 1: an event. 0: nothing to report. */
static int open_stream(struct spdy *s, struct spdy_event *ret, struct hk_buf *out,
                       struct hk_err *err)
{
    const struct hk_str f = hk_buf_str(&s->control);

    if (f.n < 10 || !expand(s, (struct hk_str){f.s + 10, f.n - 10})) {
        return nonsense("headers that cannot be read", err);
    }
    *ret = (struct spdy_event){.type = SPDY_OPENED, .stream = get_u32(f.s) & INT32_MAX};
    if (ret->stream == 0 || !find_header(s, "streamtype", &ret->bytes)) {
        return nonsense("a stream without a number or with bad headers", err);
    }
    write_reply(s, ret->stream, out);
    s->ended = spdy_frame_flags(s) & FLAG_FIN ? ret->stream : 0;
    return 1;
}

static int take_control(struct spdy *s, struct spdy_event *ret, struct hk_buf *out,
                        struct hk_err *err)
{
    const struct hk_str f = hk_buf_str(&s->control);

    if (((s->head[0] & 0x7f) << 8 | s->head[1]) != VERSION) {
        return nonsense("another version", err);
    }
    switch (s->head[2] << 8 | s->head[3]) {
    case SYN_STREAM:
        return open_stream(s, ret, out, err);
    case HEADERS: /* ignored, but decompression must continue */
        if (f.n < 4 || !expand(s, (struct hk_str){f.s + 4, f.n - 4})) {
            return nonsense("headers that cannot be read", err);
        }
        return 0;
    case RST_STREAM:
        if (f.n < 8) {
            return nonsense("a short reset", err);
        }
        *ret = (struct spdy_event){.type = SPDY_RESET, .stream = get_u32(f.s) & INT32_MAX};
        return 1;
    case PING:
        if (f.n != 4) {
            return nonsense("a ping of another length", err);
        }
        if (get_u32(f.s) & 1) { /* the client's ping, not an answer */
            write_control(PING, 4, out);
            hk_buf_addstr(out, f);
        }
        return 0;
    case GOAWAY:
        *ret = (struct spdy_event){.type = SPDY_AWAY};
        return 1;
    default:
        return 0;
    }
}

static int begin_frame(struct spdy *s, struct hk_err *err)
{
    s->left = get_u32(s->head + 4) & 0xffffff;
    hk_buf_clear(&s->control);
    return is_control(s) && s->left > MAX_CONTROL ? nonsense("a frame too long", err) : 0;
}

/* A piece of a data frame, or an empty one that ends its stream. */
static int spdy_accept_data(struct spdy *s, struct hk_str bytes, struct spdy_event *ret)
{
    *ret = (struct spdy_event){
        .type = SPDY_DATA, .stream = get_u32(s->head) & INT32_MAX, .bytes = bytes};
    if (s->left == 0 && spdy_frame_flags(s) & FLAG_FIN) {
        s->ended = ret->stream;
    }
    return bytes.n > 0;
}

/* Reads as much of the frame as is there, including its head. Like spdy_read, but also returns 0
 * for a frame without an event. */
static int spdy_read_frame(struct spdy *s, char **in, size_t *n, struct spdy_event *ret,
                           struct hk_buf *out, struct hk_err *err)
{
    size_t part;
    int rc;

    if (s->nhead < HEAD) {
        part = HK_MIN(*n, (size_t)(HEAD - s->nhead));
        memcpy(s->head + s->nhead, *in, part);
        s->nhead += (uint8_t)part;
        *in += part;
        *n -= part;
        rc = s->nhead < HEAD ? 0 : begin_frame(s, err);
        if (rc < 0 || s->nhead < HEAD) {
            return rc;
        }
    }
    part = HK_MIN(*n, (size_t)s->left);
    const struct hk_str bytes = {*in, part};
    *in += part;
    *n -= part;
    s->left -= (uint32_t)part;
    s->nhead = s->left == 0 ? 0 : HEAD;
    if (!is_control(s)) {
        return spdy_accept_data(s, bytes, ret);
    }
    hk_buf_addstr(&s->control, bytes);
    return s->left == 0 ? take_control(s, ret, out, err) : 0;
}

int spdy_read(struct spdy *s, char **in, size_t *n, struct spdy_event *ret, struct hk_buf *out,
              struct hk_err *err)
{
    int rc = 0;

    while (rc == 0 && (s->ended != 0 || *n > 0)) {
        if (s->ended != 0) {
            *ret = (struct spdy_event){.type = SPDY_ENDED, .stream = s->ended};
            s->ended = 0;
            return 1;
        }
        rc = spdy_read_frame(s, in, n, ret, out, err);
    }
    return rc;
}

/* ---- creation and freeing ---- */

struct spdy *spdy_new(void)
{
    struct spdy *s = hk_zalloc(sizeof(*s));

    hk_assert(inflateInit(&s->inflate) == Z_OK &&
              deflateInit(&s->deflate, Z_DEFAULT_COMPRESSION) == Z_OK);
    return s;
}

void spdy_free(struct spdy *s)
{
    if (!s) {
        return;
    }
    inflateEnd(&s->inflate);
    deflateEnd(&s->deflate);
    hk_buf_fini(&s->control);
    hk_buf_fini(&s->headers);
    hk_buf_fini(&s->reply);
    hk_free(s);
}
