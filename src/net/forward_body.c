// SPDX-License-Identifier: Apache-2.0
// Finds the end of a body in an HTTP/1.1 answer (RFC 9112, section 6.3), and removes the chunks.
// Whatever is ambiguous makes the answer invalid.
#include "net/forward_body.h"

#include "net/http_head.h"

#include <strings.h>

enum { MAX_LINE = 1 << 10, MAX_TRAILERS = 8 << 10, MAX_SIZE_DIGITS = 15 };

static int set_length(struct forward_body *b, struct hk_str text)
{
    int64_t n;

    if (text.s[0] == '+' || !hk_str_int(text, &n) || n < 0) {
        return -HK_EINVAL;
    }
    b->framing = FORWARD_LENGTH;
    b->left = (uint64_t)n;
    b->over = n == 0;
    return 0;
}

int forward_body_init(struct forward_body *b, struct hk_str head, int status, bool is_head_request)
{
    const struct hk_str encoding = http_head_get(head, "Transfer-Encoding");
    const struct hk_str length = http_head_get(head, "Content-Length");

    *b = (struct forward_body){.framing = FORWARD_UNTIL_CLOSE};
    if (is_head_request || status == 204 || status == 304) {
        const int rc = length.n > 0 && is_head_request ? set_length(b, length) : 0;
        b->framing = FORWARD_NO_BODY;
        b->over = true;
        return rc;
    }
    if (encoding.n > 0) {
        b->framing = FORWARD_CHUNKED;
        return encoding.n == strlen("chunked") &&
                       strncasecmp(encoding.s, "chunked", encoding.n) == 0
                   ? 0
                   : -HK_EINVAL;
    }
    return length.n > 0 ? set_length(b, length) : 0;
}

static size_t move_data(struct forward_body *b, struct hk_str in, size_t room, struct hk_buf *out)
{
    const size_t most = HK_MIN(in.n, room);
    const size_t n = b->framing == FORWARD_UNTIL_CLOSE ? most : (size_t)HK_MIN(most, b->left);

    hk_buf_addstr(out, (struct hk_str){in.s, n});
    b->left -= b->framing == FORWARD_UNTIL_CLOSE ? 0 : n;
    return n;
}

/* "1a2b" and maybe extensions. */
static bool parse_size(struct hk_str line, uint64_t *ret)
{
    size_t n = 0;

    *ret = 0;
    for (; n < line.n && n <= MAX_SIZE_DIGITS; n++) {
        const char c = line.s[n];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) {
            break;
        }
        *ret = *ret * 16 + (uint64_t)digit;
    }
    return n > 0 && n <= MAX_SIZE_DIGITS &&
           (n == line.n || line.s[n] == ';' || line.s[n] == ' ' || line.s[n] == '\t');
}

static void read_line(struct forward_body *b, struct hk_str line)
{
    switch (b->part) {
    case PART_SIZE:
        b->broken = !parse_size(line, &b->left);
        b->part = b->left > 0 ? PART_DATA : PART_TRAILER;
        break;
    case PART_DATA_END:
        b->broken = line.n > 0;
        b->part = PART_SIZE;
        break;
    default:
        b->trailers += line.n;
        b->broken = b->trailers > MAX_TRAILERS;
        b->over = line.n == 0;
        break;
    }
}

/* Reads a line of the framing, if it is complete. */
static size_t take_line(struct forward_body *b, struct hk_str in)
{
    const char *end = memchr(in.s, '\n', HK_MIN(in.n, (size_t)MAX_LINE));
    const size_t n = end ? (size_t)(end - in.s) : 0;

    if (!end) {
        b->broken = in.n >= MAX_LINE;
        return 0;
    }
    if (n == 0 || end[-1] != '\r') {
        b->broken = true;
        return 0;
    }
    read_line(b, (struct hk_str){in.s, n - 1});
    return n + 1;
}

size_t forward_body_read(struct forward_body *b, struct hk_str in, size_t room, struct hk_buf *out)
{
    const size_t from = out->len;
    size_t used = 0;

    while (!b->over && !b->broken && used < in.n) {
        const struct hk_str rest = {in.s + used, in.n - used};
        const bool data = b->framing != FORWARD_CHUNKED || b->part == PART_DATA;
        const size_t n =
            data ? move_data(b, rest, room - (out->len - from), out) : take_line(b, rest);

        if (n == 0) {
            break;
        }
        used += n;
        if (data && b->left == 0 && b->framing != FORWARD_UNTIL_CLOSE) {
            b->over = b->framing == FORWARD_LENGTH;
            b->part = PART_DATA_END;
        }
    }
    return used;
}

void forward_body_close(struct forward_body *b)
{
    if (!b->over && b->framing == FORWARD_UNTIL_CLOSE) {
        b->over = true;
    }
    b->broken |= !b->over;
}
