// SPDX-License-Identifier: Apache-2.0
// Kubernetes quantities: reading, arithmetic and canonical printing, all in whole nano-units. The
// rules are those of apimachinery's resource.Quantity (ParseQuantity, CanonicalizeBytes).

#include "codec/quantity.h"

__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

#define NANO 1000000000
#define MILLI 1000000

/* 10^38 nano-units, the largest power of ten that fits in 128 bits. */
#define NANO_MAX ((u128)10000000000000000000u * (u128)10000000000000000000u)

struct suffix {
    char text[3];
    int exponent; /* of ten or two */
};

static const struct suffix decimal_suffixes[] = {
    {"n", -9}, {"u", -6}, {"m", -3}, {"", 0},   {"k", 3},
    {"M", 6},  {"G", 9},  {"T", 12}, {"P", 15}, {"E", 18},
};
static const struct suffix binary_suffixes[] = {
    {"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}, {"Ei", 60},
};

/* ---- reading ---- */

/* The parts of a quantity's text. */
struct parts {
    bool negative;
    struct hk_str whole;    /* digits before the point */
    struct hk_str fraction; /* digits after it */
    enum quantity_format format;
    int64_t exponent; /* of two for QUANTITY_BINARY_SI, else of ten */
};

static bool find_suffix(const struct suffix *table, size_t n, struct hk_str s, int64_t *exponent)
{
    for (size_t i = 0; i < n; i++) {
        if (hk_str_is(s, table[i].text)) {
            *exponent = table[i].exponent;
            return true;
        }
    }
    return false;
}

static struct hk_str cut_digits(struct hk_str *rest)
{
    struct hk_str digits = {rest->s, 0};

    while (digits.n < rest->n && rest->s[digits.n] >= '0' && rest->s[digits.n] <= '9') {
        digits.n++;
    }
    rest->s += digits.n;
    rest->n -= digits.n;
    return digits;
}

static bool cut_sign(struct hk_str *rest)
{
    const char c = rest->n > 0 ? rest->s[0] : '\0';

    if (c == '+' || c == '-') {
        rest->s++;
        rest->n--;
    }
    return c == '-';
}

/* Letters, sign and digits in that order: such a suffix is unknown, any other is malformed. */
static bool suffix_shaped(struct hk_str s)
{
    static const char letters[] = "eEinumkKMGTP";

    while (s.n > 0 && memchr(letters, s.s[0], sizeof(letters) - 1) != NULL) {
        s.s++;
        s.n--;
    }
    cut_sign(&s);
    cut_digits(&s);
    return s.n == 0;
}

/* "e3", "E-6". An exponent beyond int64 is refused, as upstream. */
static bool read_exponent(struct hk_str s, int64_t *exponent)
{
    const int64_t limit = 1ll << 40; /* no text has enough digits to compensate for more */
    int64_t e;

    if (s.n < 2 || (s.s[0] != 'e' && s.s[0] != 'E') ||
        !hk_str_int((struct hk_str){s.s + 1, s.n - 1}, &e)) {
        return false;
    }
    *exponent = HK_MAX(HK_MIN(e, limit), -limit);
    return true;
}

static bool read_suffix(struct hk_str s, struct parts *p)
{
    if (find_suffix(decimal_suffixes, HK_LEN(decimal_suffixes), s, &p->exponent)) {
        p->format = QUANTITY_DECIMAL_SI;
        return true;
    }
    if (find_suffix(binary_suffixes, HK_LEN(binary_suffixes), s, &p->exponent)) {
        p->format = QUANTITY_BINARY_SI;
        return true;
    }
    p->format = QUANTITY_DECIMAL_EXP;
    return read_exponent(s, &p->exponent);
}

static int quantity_split_parts(struct hk_str s, struct parts *p, struct hk_err *err)
{
    p->negative = cut_sign(&s);
    p->whole = cut_digits(&s);
    p->fraction = (struct hk_str){s.s, 0};
    if (s.n > 0 && s.s[0] == '.') {
        s.s++;
        s.n--;
        p->fraction = cut_digits(&s);
    }
    if (p->whole.n + p->fraction.n == 0 || !suffix_shaped(s)) {
        return hk_fail(err, HK_EINVAL,
                       "quantities must match the regular expression "
                       "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    }
    if (!read_suffix(s, p)) {
        return hk_fail(err, HK_EINVAL, "unable to parse quantity's suffix");
    }
    return 0;
}

/* v * 10 + digit, at most limit. */
static u128 add_digit(u128 v, int digit, u128 limit)
{
    return v > (limit - (unsigned)digit) / 10 ? limit : v * 10 + (unsigned)digit;
}

/* Moves the decimal point: digits left of it count nano-units, a remainder rounds up. */
static u128 decimal_nano(const struct parts *p)
{
    const int64_t point = (int64_t)p->whole.n + p->exponent + 9;
    const int64_t ndigits = (int64_t)(p->whole.n + p->fraction.n);
    u128 nano = 0;
    bool more = false;

    for (int64_t i = 0; i < ndigits; i++) {
        const int64_t in_fraction = i - (int64_t)p->whole.n;
        const char c = in_fraction < 0 ? p->whole.s[i] : p->fraction.s[in_fraction];
        if (i < point) {
            nano = add_digit(nano, c - '0', NANO_MAX);
        } else {
            more |= c != '0';
        }
    }
    for (int64_t i = ndigits; i < point && nano > 0 && nano < NANO_MAX; i++) {
        nano = add_digit(nano, 0, NANO_MAX);
    }
    return HK_MIN(nano + more, NANO_MAX);
}

/* fraction * scale, rounded up. Every step from the last digit to the first divides by ten, so
 * intermediate values stay below scale for any number of digits. */
static u128 scale_fraction(struct hk_str fraction, u128 scale)
{
    u128 v = 0;
    bool more = false;

    for (size_t i = fraction.n; i-- > 0;) {
        v += (unsigned)(fraction.s[i] - '0') * scale;
        more |= v % 10 != 0;
        v /= 10;
    }
    return v + more;
}

static u128 binary_nano(const struct parts *p)
{
    const u128 unit = (u128)NANO << p->exponent;
    const u128 limit = (u128)INT64_MAX * NANO;
    u128 whole = 0;

    for (size_t i = 0; i < p->whole.n; i++) {
        whole = add_digit(whole, p->whole.s[i] - '0', INT64_MAX);
    }
    if (whole > limit / unit) {
        return limit;
    }
    return HK_MIN(whole * unit + scale_fraction(p->fraction, unit), limit);
}

int quantity_parse(struct hk_str s, struct quantity *ret, struct hk_err *err)
{
    struct parts p = {0};
    u128 nano;

    const int rc = quantity_split_parts(s, &p, err);
    if (rc < 0) {
        return rc;
    }
    if (p.format == QUANTITY_BINARY_SI) {
        nano = binary_nano(&p);
        if (nano > 0 && nano < NANO) {
            p.format = QUANTITY_DECIMAL_SI; /* binary suffixes cannot express less than one */
        }
    } else {
        nano = decimal_nano(&p);
    }
    *ret = (struct quantity){.nano = p.negative ? -(i128)nano : (i128)nano, .format = p.format};
    return 0;
}

/* ---- arithmetic ---- */

static u128 magnitude(i128 v)
{
    return v < 0 ? -(u128)v : (u128)v;
}

static int64_t quantity_scale_up(i128 nano, unsigned unit)
{
    const u128 up = (magnitude(nano) + unit - 1) / unit;

    if (nano < 0) {
        return up > INT64_MAX ? INT64_MIN : -(int64_t)up;
    }
    return up > INT64_MAX ? INT64_MAX : (int64_t)up;
}

int64_t quantity_value(struct quantity q)
{
    return quantity_scale_up(q.nano, NANO);
}

int64_t quantity_milli(struct quantity q)
{
    return quantity_scale_up(q.nano, MILLI);
}

int quantity_cmp(struct quantity a, struct quantity b)
{
    return (a.nano > b.nano) - (a.nano < b.nano);
}

struct quantity quantity_add(struct quantity a, struct quantity b)
{
    const i128 limit = (i128)NANO_MAX;
    i128 sum;

    if (__builtin_add_overflow(a.nano, b.nano, &sum)) {
        sum = a.nano < 0 ? -limit : limit;
    }
    return (struct quantity){
        .nano = HK_MAX(HK_MIN(sum, limit), -limit),
        .format = a.nano == 0 ? b.format : a.format,
    };
}

struct quantity quantity_sub(struct quantity a, struct quantity b)
{
    b.nano = -b.nano;
    return quantity_add(a, b);
}

struct quantity quantity_times(struct quantity q, int64_t n)
{
    const i128 limit = (i128)NANO_MAX;
    i128 product;

    if (__builtin_mul_overflow(q.nano, (i128)n, &product)) {
        product = (q.nano < 0) == (n < 0) ? limit : -limit;
    }
    return (struct quantity){.nano = HK_MAX(HK_MIN(product, limit), -limit), .format = q.format};
}

struct quantity quantity_of(int64_t units, enum quantity_format f)
{
    return (struct quantity){.nano = (i128)units * NANO, .format = f};
}

struct quantity quantity_of_milli(int64_t milli, enum quantity_format f)
{
    return (struct quantity){.nano = (i128)milli * MILLI, .format = f};
}

/* ---- printing ---- */

static void write_digits(u128 v, struct hk_buf *out)
{
    char digits[40];
    char *p = digits + sizeof(digits);

    do {
        *--p = (char)('0' + (int)(v % 10));
        v /= 10;
    } while (v > 0);
    hk_buf_add(out, p, (size_t)(digits + sizeof(digits) - p));
}

/* Divides by factor as often as possible, at most limit times. */
static int strip_factor(u128 *v, unsigned factor, int limit)
{
    int times = 0;

    while (times < limit && *v % factor == 0) {
        *v /= factor;
        times++;
    }
    return times;
}

static void write_decimal(u128 nano, enum quantity_format format, struct hk_buf *out)
{
    const int exponent = -9 + 3 * strip_factor(&nano, 1000, 13);

    write_digits(nano, out);
    if (format == QUANTITY_DECIMAL_SI && exponent <= 18) {
        hk_buf_adds(out, decimal_suffixes[(exponent + 9) / 3].text);
    } else if (exponent != 0) {
        hk_buf_addf(out, "e%d", exponent);
    }
}

static void write_binary(u128 units, struct hk_buf *out)
{
    const int power = strip_factor(&units, 1024, (int)HK_LEN(binary_suffixes));

    write_digits(units, out);
    if (power > 0) {
        hk_buf_adds(out, binary_suffixes[power - 1].text);
    }
}

void quantity_write(struct quantity q, struct hk_buf *out)
{
    const u128 nano = magnitude(q.nano);

    if (nano == 0) {
        hk_buf_addc(out, '0');
        return;
    }
    if (q.nano < 0) {
        hk_buf_addc(out, '-');
    }
    if (q.format != QUANTITY_BINARY_SI) {
        write_decimal(nano, q.format, out);
    } else if (nano < (u128)1024 * NANO || nano % NANO != 0) {
        write_decimal(nano, QUANTITY_DECIMAL_SI, out); /* a binary suffix would round */
    } else {
        write_binary(nano / NANO, out);
    }
}
