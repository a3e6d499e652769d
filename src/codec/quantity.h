// SPDX-License-Identifier: Apache-2.0
// Kubernetes quantities, exactly: "250m", "1.5", "1Gi", "1e3". No floating point.
#pragma once

#include "base/err.h"
#include "base/str.h"

enum quantity_format { QUANTITY_DECIMAL_SI, QUANTITY_BINARY_SI, QUANTITY_DECIMAL_EXP };

/* The value in nano-units, limited to +-10^38 (10^29 units) in parsing, addition and subtraction.
 * Kubernetes has no such limit, but no real value comes near it. */
struct quantity {
    __extension__ __int128 nano;
    enum quantity_format format;
};

/* Grammar of apimachinery's resource.Quantity; needs at least one digit. Values finer than nano
 * round up, away from zero. With a binary suffix the limit is +-(2^63-1), as in Kubernetes. */
int quantity_parse(struct hk_str s, struct quantity *ret, struct hk_err *err) HK_CHECKED;
/* Whole units / milli-units, rounded up (away from zero); saturates at int64. */
int64_t quantity_value(struct quantity q);
int64_t quantity_milli(struct quantity q);
int quantity_cmp(struct quantity a, struct quantity b);
/* The format is a's, or b's when a is zero. */
struct quantity quantity_add(struct quantity a, struct quantity b);
struct quantity quantity_sub(struct quantity a, struct quantity b);
struct quantity quantity_times(struct quantity q, int64_t n);
struct quantity quantity_of(int64_t units, enum quantity_format f);
struct quantity quantity_of_milli(int64_t milli, enum quantity_format f);
/* Canonical form as Kubernetes prints it ("1500m", "1536Mi", "2"). */
void quantity_write(struct quantity q, struct hk_buf *out);
