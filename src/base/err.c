// SPDX-License-Identifier: Apache-2.0
// Fills in errors, and maps each code to its meaning for a Kubernetes client.

#include "base/err.h"

#include <stdarg.h>

/* Like vsnprintf, but returns the number of bytes stored. */
HK_PRINTF(3, 0) static size_t format(char *out, size_t cap, const char *fmt, va_list ap)
{
    const int n = vsnprintf(out, cap, fmt, ap);

    return n < 0 ? 0 : HK_MIN((size_t)n, cap - 1);
}

/* Formats into a separate buffer first: the arguments may point into the old text. */
void hk_err_set(struct hk_err *err, enum hk_code code, const char *fmt, ...)
{
    if (err) {
        char text[sizeof(err->text)];
        va_list ap;

        va_start(ap, fmt);
        const size_t len = format(text, sizeof(text), fmt, ap);
        va_end(ap);
        err->code = (int)code;
        memcpy(err->text, text, len);
        err->text[len] = '\0';
    }
}

static size_t append(char *out, size_t len, size_t cap, const char *s, size_t n)
{
    n = HK_MIN(n, cap - 1 - len);
    memcpy(out + len, s, n);
    return len + n;
}

int hk_wrap(struct hk_err *err, int rc, const char *fmt, ...)
{
    if (err) {
        char text[sizeof(err->text)];
        va_list ap;

        va_start(ap, fmt);
        size_t len = format(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (err->text[0] != '\0') {
            len = append(text, len, sizeof(text), ": ", 2);
            len = append(text, len, sizeof(text), err->text, strlen(err->text));
        }
        memcpy(err->text, text, len);
        err->text[len] = '\0';
        err->code = rc < 0 ? -rc : rc;
    }
    return rc;
}

static const struct {
    const char *reason;
    int http;
} meanings[] = {
    [HK_OK] = {"", 200},
    [HK_EINVAL] = {"Invalid", 422},
    [HK_ENOTFOUND] = {"NotFound", 404},
    [HK_EEXIST] = {"AlreadyExists", 409},
    [HK_ECONFLICT] = {"Conflict", 409},
    [HK_EGONE] = {"Expired", 410},
    [HK_ETIMEOUT] = {"Timeout", 504},
    [HK_EIO] = {"InternalError", 500},
    [HK_ELIMIT] = {"RequestEntityTooLarge", 413},
    [HK_EDENIED] = {"Forbidden", 403},
    [HK_EBUSY] = {"TooManyRequests", 429},
    [HK_EUNSUP] = {"MethodNotAllowed", 405},
    [HK_EFULL] = {"InsufficientStorage", 507},
};

/* One of our codes, negative or not; any other value counts as HK_EIO. */
static size_t meaning(int code)
{
    const unsigned c = code < 0 ? 0u - (unsigned)code : (unsigned)code;

    return c < HK_LEN(meanings) ? c : HK_EIO;
}

const char *hk_code_reason(int code)
{
    return meanings[meaning(code)].reason;
}

int hk_code_http(int code)
{
    return meanings[meaning(code)].http;
}
