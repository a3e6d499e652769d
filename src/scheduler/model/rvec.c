// SPDX-License-Identifier: Apache-2.0
// Resource vectors of queues and policies: Volcano's arithmetic and its many comparisons. Absent
// dimensions hold 0, so reading one needs no check; presence matters only where the rules differ.
#include "scheduler/model/rvec.h"

#include <math.h>
#include <string.h>

#define RVEC_PODS (1ULL << DIM_PODS)

static uint64_t rvec_present_dims(const struct rvec *r)
{
    return r->has | RVEC_BASE;
}

static bool le(double a, double b)
{
    return a < b || fabs(a - b) < RVEC_EPS;
}

/* Dimensions that the restricted comparisons use. */
static uint64_t rvec_requested_dims(const struct rvec *req)
{
    uint64_t mask = 0;

    RVEC_EACH(d, rvec_present_dims(req) & ~RVEC_PODS)
    {
        if (req->v[d] > 0) {
            mask |= 1ULL << d;
        }
    }
    return mask;
}

void rvec_zero(struct rvec *r)
{
    memset(r, 0, sizeof(*r));
    r->has = RVEC_BASE;
}

void rvec_from(struct rvec *r, const int64_t *dense, uint32_t ndim)
{
    rvec_zero(r);
    for (uint32_t d = 0; d < ndim; d++) {
        if (dense[d] != 0) {
            rvec_set(r, d, (double)dense[d]);
        }
    }
}

void rvec_set(struct rvec *r, uint32_t d, double v)
{
    r->has |= 1ULL << d;
    r->v[d] = v;
}

void rvec_add(struct rvec *a, const struct rvec *b)
{
    RVEC_EACH(d, rvec_present_dims(b))
    {
        rvec_set(a, (uint32_t)d, rvec_get(a, (uint32_t)d) + b->v[d]);
    }
}

void rvec_sub(struct rvec *a, const struct rvec *b)
{
    const bool scalars = (a->has & ~RVEC_BASE) != 0;

    RVEC_EACH(d, scalars ? rvec_present_dims(b) : RVEC_BASE)
    {
        rvec_set(a, (uint32_t)d, rvec_get(a, (uint32_t)d) - b->v[d]);
    }
}

void rvec_scale(struct rvec *a, double k)
{
    RVEC_EACH(d, rvec_present_dims(a))
    {
        a->v[d] *= k;
    }
}

void rvec_exceed(struct rvec *ret, const struct rvec *a, const struct rvec *b)
{
    struct rvec more;

    rvec_zero(&more); /* ret may be a or b */
    RVEC_EACH(d, rvec_present_dims(a))
    {
        const double surplus = a->v[d] - rvec_get(b, (uint32_t)d);
        if (surplus > 0) {
            rvec_set(&more, (uint32_t)d, surplus);
        }
    }
    *ret = more;
}

void rvec_min_inf(struct rvec *a, const struct rvec *b)
{
    RVEC_EACH(d, rvec_present_dims(a) & rvec_present_dims(b))
    {
        a->v[d] = fmin(a->v[d], b->v[d]);
    }
}

void rvec_min_zero(struct rvec *a, const struct rvec *b)
{
    RVEC_EACH(d, rvec_present_dims(a))
    {
        a->v[d] = fmin(a->v[d], rvec_get(b, (uint32_t)d));
    }
}

void rvec_max(struct rvec *a, const struct rvec *b)
{
    RVEC_EACH(d, rvec_present_dims(a) | rvec_present_dims(b))
    {
        double v = rvec_get(b, (uint32_t)d);
        if (((rvec_present_dims(a) & rvec_present_dims(b)) >> d) & 1) {
            v = fmax(a->v[d], v);
        } else if ((rvec_present_dims(a) >> d) & 1) {
            v = a->v[d];
        }
        rvec_set(a, (uint32_t)d, v);
        if (v < 0 && d != DIM_CPU && d != DIM_MEM) {
            a->has &= ~(1ULL << d);
            a->v[d] = 0;
        }
    }
}

bool rvec_le_zero(const struct rvec *a, const struct rvec *b)
{
    RVEC_EACH(d, rvec_present_dims(a))
    {
        if (!le(a->v[d], rvec_get(b, (uint32_t)d))) {
            return false;
        }
    }
    return true;
}

bool rvec_le_inf(const struct rvec *a, const struct rvec *b)
{
    if (rvec_present_dims(b) & ~rvec_present_dims(a)) {
        return false;
    }
    RVEC_EACH(d, rvec_present_dims(a) & rvec_present_dims(b))
    {
        if (!le(a->v[d], b->v[d])) {
            return false;
        }
    }
    return true;
}

bool rvec_fits(const struct rvec *a, const struct rvec *b, const struct rvec *req, uint64_t *fail)
{
    uint64_t over = 0;

    RVEC_EACH(d, rvec_requested_dims(req))
    {
        if (rvec_get(a, (uint32_t)d) > rvec_get(b, (uint32_t)d)) {
            over |= 1ULL << d;
        }
    }
    if (fail) {
        *fail = over;
    }
    return over == 0;
}

bool rvec_any_le(const struct rvec *a, const struct rvec *b, const struct rvec *req)
{
    RVEC_EACH(d, rvec_requested_dims(req))
    {
        const double x = rvec_get(a, (uint32_t)d), y = rvec_get(b, (uint32_t)d);
        if (!(x < RVEC_EPS && y < RVEC_EPS) && le(x, y)) {
            return true;
        }
    }
    return false;
}

bool rvec_any_gt(const struct rvec *a, const struct rvec *b, const struct rvec *req)
{
    RVEC_EACH(d, rvec_requested_dims(req) & rvec_present_dims(b))
    {
        const bool base = d == DIM_CPU || d == DIM_MEM;
        if (base && b->v[d] < RVEC_EPS) {
            continue; /* cpu and memory are always present: nearly 0 means absent */
        }
        if (rvec_get(a, (uint32_t)d) > b->v[d]) {
            return true;
        }
    }
    return false;
}

bool rvec_same(const struct rvec *a, const struct rvec *b)
{
    if (rvec_present_dims(a) != rvec_present_dims(b)) {
        return false;
    }
    RVEC_EACH(d, rvec_present_dims(a))
    {
        if (a->v[d] != b->v[d]) {
            return false;
        }
    }
    return true;
}

bool rvec_empty(const struct rvec *a)
{
    return (rvec_names(a) & ~RVEC_PODS) == 0;
}

uint64_t rvec_names(const struct rvec *a)
{
    uint64_t mask = 0;

    RVEC_EACH(d, rvec_present_dims(a))
    {
        if (a->v[d] >= RVEC_EPS) {
            mask |= 1ULL << d;
        }
    }
    return mask;
}
