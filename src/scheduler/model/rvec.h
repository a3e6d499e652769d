// SPDX-License-Identifier: Apache-2.0
// Resource vectors of queues and policies: doubles, since shares divide, with the set of scalar
// names that are present (Volcano distinguishes "absent" from "zero"). CPU and memory are always
// present. The comparison rules are those of Volcano's resource_info.go; EPS is its epsilon.
#pragma once

#include "scheduler/model/dims.h"

#define RVEC_EPS 0.1
/* Stands for "no limit" in cpu and memory. */
#define RVEC_HUGE 1.7976931348623157e308

struct rvec {
    uint64_t has; /* bit per present dimension; bits DIM_CPU and DIM_MEM always count as set */
    double v[DIM_MAX];
};

/* Runs body for each dimension d in mask. */
#define RVEC_EACH(d, mask)                                                                         \
    for (uint64_t m_##d = (mask), d = 0; m_##d && ((d = (uint64_t)__builtin_ctzll(m_##d)), 1);     \
         m_##d &= m_##d - 1)
#define RVEC_BASE ((1ULL << DIM_CPU) | (1ULL << DIM_MEM))

void rvec_zero(struct rvec *r);
/* From dense integers; dimensions with a non-zero amount are present. */
void rvec_from(struct rvec *r, const int64_t *dense, uint32_t ndim);
static inline double rvec_get(const struct rvec *r, uint32_t d)
{
    return ((r->has | RVEC_BASE) >> d) & 1 ? r->v[d] : 0;
}
void rvec_set(struct rvec *r, uint32_t d, double v);
void rvec_add(struct rvec *a, const struct rvec *b);
/* a -= b; results may be negative. When a has no scalars at all, those of b are skipped. */
void rvec_sub(struct rvec *a, const struct rvec *b);
void rvec_scale(struct rvec *a, double k);
/* Positive part of a - b; scalars without surplus disappear ("exceed"). */
void rvec_exceed(struct rvec *ret, const struct rvec *a, const struct rvec *b);
/* Per-dimension minimum. For a scalar that b lacks, _inf keeps a's value and _zero stores 0. A
 * scalar that only b has is not added. */
void rvec_min_inf(struct rvec *a, const struct rvec *b);
void rvec_min_zero(struct rvec *a, const struct rvec *b);
/* Per-dimension maximum, adding b's scalars; negative scalars dropped. */
void rvec_max(struct rvec *a, const struct rvec *b);

/* a <= b, fuzzy, over the dimensions of a; a scalar missing in b counts 0 ("LessEqual Zero"). */
bool rvec_le_zero(const struct rvec *a, const struct rvec *b);
/* The same, but a scalar missing in b passes; false if b has a scalar that a lacks ("LessEqual
 * Infinity"). */
bool rvec_le_inf(const struct rvec *a, const struct rvec *b);
/* Only dimensions with req > 0, pods ignored, no epsilon; *fail gets the mask of those where a > b
 * ("LessEqualWithDimensionAndResourcesName"). */
bool rvec_fits(const struct rvec *a, const struct rvec *b, const struct rvec *req, uint64_t *fail);
/* Some dimension with req > 0 (not pods, not tiny in both) has a <= b, fuzzy. */
bool rvec_any_le(const struct rvec *a, const struct rvec *b, const struct rvec *req);
/* Some dimension with req > 0 (not pods) present in b (cpu/memory: b >= eps) has a > b strictly. */
bool rvec_any_gt(const struct rvec *a, const struct rvec *b, const struct rvec *req);
/* Exactly equal, key sets included. */
bool rvec_same(const struct rvec *a, const struct rvec *b);
/* All dimensions but pods below eps. */
bool rvec_empty(const struct rvec *a);
/* Dimensions with a value >= eps. */
uint64_t rvec_names(const struct rvec *a);
/* share(x, y): y == 0 gives 0 or 1, else x / y. */
static inline double rvec_share(double x, double y)
{
    return y == 0 ? (x == 0 ? 0 : 1) : x / y;
}
