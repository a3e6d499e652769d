// SPDX-License-Identifier: Apache-2.0
// Errors: a negative return code, and a message in a buffer that the caller owns. Fail where you
// know most, wrap where you know more, log once at the top.
#pragma once

#include "base/mem.h"

enum hk_code {
    HK_OK = 0,
    HK_EINVAL,    /* invalid input */
    HK_ENOTFOUND, /* does not exist */
    HK_EEXIST,    /* exists already */
    HK_ECONFLICT, /* changed meanwhile */
    HK_EGONE,     /* revision no longer available */
    HK_ETIMEOUT,
    HK_EIO,
    HK_ELIMIT,  /* larger or deeper than we accept */
    HK_EDENIED, /* not allowed */
    HK_EBUSY,   /* try again later */
    HK_EUNSUP,  /* understood, but not offered */
    HK_EFULL,   /* the disk or the memory has no room for it */
    HK_NCODES,
};

struct hk_err {
    int code;
    char text[504];
};

/* Sets code and text. err may be NULL. */
void hk_err_set(struct hk_err *err, enum hk_code code, const char *fmt, ...) HK_PRINTF(3, 4);

/* The same, and returns -code. A macro, so that compiler and analyzer see the constant and can tell
 * failing paths from those that wrote their results. */
#define hk_fail(err, code, ...)                                                                    \
    ({                                                                                             \
        hk_err_set((err), (code), __VA_ARGS__);                                                    \
        -(int)(code);                                                                              \
    })

/* Puts "context: " in front of the text and returns rc. */
int hk_wrap(struct hk_err *err, int rc, const char *fmt, ...) HK_PRINTF(3, 4);

/* Kubernetes reason ("Invalid", "NotFound", ...) and HTTP status of a code or of a negative return
 * value; one table for both. Unknown values count as an internal error. */
const char *hk_code_reason(int code);
int hk_code_http(int code);
