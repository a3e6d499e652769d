// SPDX-License-Identifier: Apache-2.0
// Splits messages into fields. Checks every length against the remaining bytes, so that callers can
// trust the fields.
#include "codec/protobuf.h"

#include "codec/json_priv.h"

enum {
    VARINT_MAX = 10, /* bytes for 64 bits, seven bits each */
    NUMBER_MAX = (1 << 29) - 1,
};

static int cut_short(struct hk_err *err)
{
    return hk_fail(err, HK_EINVAL, "protobuf: message is cut short");
}

static int cut_varint(struct hk_str *rest, uint64_t *ret, struct hk_err *err)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < VARINT_MAX; i++) {
        if (i == rest->n) {
            return cut_short(err);
        }
        const uint64_t byte = (unsigned char)rest->s[i];
        v |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *rest = (struct hk_str){rest->s + i + 1, rest->n - i - 1};
            *ret = v;
            return 0;
        }
    }
    return hk_fail(err, HK_EINVAL, "protobuf: integer of more than %d bytes", VARINT_MAX);
}

static int cut_bytes(struct hk_str *rest, uint64_t n, struct hk_str *ret, struct hk_err *err)
{
    if (n > rest->n) {
        return cut_short(err);
    }
    *ret = (struct hk_str){rest->s, n};
    *rest = (struct hk_str){rest->s + n, rest->n - n};
    return 0;
}

/* Little-endian. */
static int cut_fixed(struct hk_str *rest, unsigned n, uint64_t *ret, struct hk_err *err)
{
    struct hk_str bytes = {0};
    const int rc = cut_bytes(rest, n, &bytes, err);

    if (rc < 0) {
        return rc;
    }
    *ret = 0;
    for (unsigned i = n; i > 0; i--) {
        *ret = *ret << 8 | (unsigned char)bytes.s[i - 1];
    }
    return 0;
}

static int cut_value(struct hk_str *rest, struct protobuf_field *f, struct hk_err *err)
{
    uint64_t n;
    int rc;

    switch (f->wire) {
    case PROTOBUF_VARINT:
        return cut_varint(rest, &f->value, err);
    case PROTOBUF_FIXED64:
        return cut_fixed(rest, 8, &f->value, err);
    case PROTOBUF_FIXED32:
        return cut_fixed(rest, 4, &f->value, err);
    case PROTOBUF_BYTES:
        rc = cut_varint(rest, &n, err);
        if (rc < 0) {
            return rc;
        }
        return cut_bytes(rest, n, &f->bytes, err);
    default:
        return hk_fail(err, HK_EINVAL, "protobuf: field %u has wire type %u", f->number, f->wire);
    }
}

int protobuf_next(struct hk_str *rest, struct protobuf_field *ret, struct hk_err *err)
{
    uint64_t tag;
    int rc;

    if (rest->n == 0) {
        return 0;
    }
    rc = cut_varint(rest, &tag, err);
    if (rc < 0) {
        return rc;
    }
    if (tag >> 3 == 0 || tag >> 3 > NUMBER_MAX) {
        return hk_fail(err, HK_EINVAL, "protobuf: field number is out of range");
    }
    *ret = (struct protobuf_field){.number = (uint32_t)(tag >> 3),
                                   .wire = (enum protobuf_wire)(tag & 7)};
    rc = cut_value(rest, ret, err);
    return rc < 0 ? rc : 1;
}

int protobuf_next_varint(struct hk_str *rest, uint64_t *ret, struct hk_err *err)
{
    if (rest->n == 0) {
        return 0;
    }
    const int rc = cut_varint(rest, ret, err);
    return rc < 0 ? rc : 1;
}

bool protobuf_is_text(struct hk_str bytes)
{
    for (size_t at = 0; at < bytes.n;) {
        const size_t n = json_utf8_len(bytes.s + at, bytes.s + bytes.n);
        if (n == 0 || bytes.s[at] == '\0') {
            return false;
        }
        at += n;
    }
    return true;
}
