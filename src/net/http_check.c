// SPDX-License-Identifier: Apache-2.0
// Refuses requests that a proxy in front of the server could read differently: the end of a line, a
// body or a path must be unambiguous. The library's own strict mode (MHD_OPTION_STRICT_FOR_CLIENT)
// covers part of that; before version 0.9.77 it accepts a bare LF as the end of a line, cuts text
// at a NUL, and uses the first of two lengths.
#include "net/http_priv.h"

#include <stdlib.h>
#include <strings.h>

enum {
    NEW_PARSER = 77,          /* of version 0.9.77 */
    TARGET_BYTES = 24 * 1024, /* of the 32 KiB that the library has for a connection */
    PARAMETER_BYTES = 64,     /* the library's memory for each */
};

bool http_target_fits(struct hk_str target)
{
    size_t bytes = target.n;

    for (size_t k = 0; k < target.n; k++) {
        bytes += target.s[k] == '&' ? PARAMETER_BYTES : 0;
    }
    return bytes <= TARGET_BYTES;
}

/* ---- the head as received ---- */

/* The library does not show lines, only the start and length of the head. In it, the library has
 * replaced the parts it parsed by NULs: "GET\0/path\0HTTP/1.1\0\0Name\0 value\0\0\0\0", two for CR
 * and LF, one for a bare LF. */
struct head {
    const char *p, *end;
};

static bool is_old_parser(void)
{
    const struct hk_str version = hk_str(MHD_get_version());

    return hk_str_starts(version, "0.9.") && strtol(version.s + 4, NULL, 10) < NEW_PARSER;
}

/* Skips text without control characters, and the NUL after it. */
static bool skip_text(struct head *h, size_t *ret_n)
{
    const char *from = h->p;

    while (h->p < h->end && *h->p != '\0') {
        if (*h->p == '\r' || *h->p == '\n') {
            return false;
        }
        h->p++;
    }
    *ret_n = (size_t)(h->p - from);
    return h->p++ < h->end;
}

/* Skips the second NUL after a text. */
static bool skip_line_end(struct head *h)
{
    return h->p < h->end && *h->p++ == '\0';
}

static bool http_check_is_field_name(const char *s, size_t n)
{
    return n > 0 && !memchr(s, ' ', n) && !memchr(s, '\t', n) && !memchr(s, ':', n);
}

static bool check_lines(struct head *h)
{
    size_t n;

    while (h->p < h->end && *h->p != '\0') {
        const char *name = h->p;
        if (!skip_text(h, &n) || !http_check_is_field_name(name, n) || !skip_text(h, &n) ||
            !skip_line_end(h)) {
            return false;
        }
    }
    return h->end - h->p == 2 && h->p[0] == '\0' && h->p[1] == '\0';
}

static bool check_bytes(const struct request *q, const char *method, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(q->conn->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct head h = {version, method + (info ? info->header_size : 0)};
    size_t n;

    if (!info || !is_old_parser()) {
        return true;
    }
    /* A NUL in the target makes it shorter than the distance to the version. */
    return version == method + strlen(method) + 1 + strlen(q->uri) + 1 && skip_text(&h, &n) &&
           skip_line_end(&h) && check_lines(&h);
}

/* ---- headers ---- */

struct tally {
    uint32_t lengths, encodings, hosts;
    bool bad;
};

static bool is_length(struct hk_str v)
{
    for (size_t k = 0; k < v.n; k++) {
        if (v.s[k] < '0' || v.s[k] > '9') {
            return false;
        }
    }
    return v.n > 0 && v.n < 20;
}

static void count_header(void *ctx, struct hk_str name, struct hk_str value)
{
    struct tally *t = ctx;

    value = hk_str_trim(value);
    if (strcasecmp(name.s, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        t->lengths++;
        t->bad |= !is_length(value);
    } else if (strcasecmp(name.s, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        t->encodings++;
        t->bad |= value.n != strlen("chunked") || strncasecmp(value.s, "chunked", value.n) != 0;
    } else if (strcasecmp(name.s, MHD_HTTP_HEADER_HOST) == 0) {
        t->hosts++;
    }
}

int http_check_head(const struct request *q, const char *method, const char *version)
{
    struct tally t = {0};

    if (!check_bytes(q, method, version)) {
        return MHD_HTTP_BAD_REQUEST;
    }
    http_request_headers(&q->pub, count_header, &t);
    return t.bad || t.lengths + t.encodings > 1 || t.hosts > 1 ? MHD_HTTP_BAD_REQUEST : 0;
}
