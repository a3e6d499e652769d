// SPDX-License-Identifier: Apache-2.0
// resourcequota: does not admit a PodGroup whose minimum exceeds a Kubernetes ResourceQuota of its
// namespace. Names are compared literally ("requests.cpu" is not "cpu") and amounts exactly. What
// this session admits counts until the session ends.
#include "scheduler/session.h"

#include <stdlib.h>

struct resourcequota {
    uint32_t *order; /* quota rows by namespace, then row */
    uint32_t n;
    int64_t **pending; /* by quota row and item, admitted in this session */
};

static int by_namespace(const void *a, const void *b, void *ctx)
{
    const struct quota *quotas = ctx;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    if (quotas[x].ns != quotas[y].ns) {
        return quotas[x].ns < quotas[y].ns ? -1 : 1;
    }
    return x < y ? -1 : x > y;
}

static void resourcequota_open(struct session *ssn, void *self)
{
    struct resourcequota *r = self;
    const struct model *m = ssn->m;

    r->order = hk_arena_array(ssn->mem, m->quotas.len, sizeof(*r->order));
    r->pending = hk_arena_array(ssn->mem, m->quotas.len, sizeof(*r->pending));
    for (uint32_t k = 0; k < m->quotas.len; k++) {
        if (m->quotas.at[k].used) {
            r->order[r->n++] = k;
            r->pending[k] = hk_arena_zalloc(ssn->mem, m->quotas.at[k].items.len * sizeof(int64_t));
        }
    }
    qsort_r(r->order, r->n, sizeof(*r->order), by_namespace, m->quotas.at);
}

/* Index in order of the namespace's first quota. */
static uint32_t first_of(const struct resourcequota *r, const struct model *m, uint32_t ns)
{
    uint32_t lo = 0, hi = r->n;

    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (m->quotas.at[r->order[mid]].ns < ns) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

#define EACH_QUOTA(r, m, nspace, k)                                                                \
    for (uint32_t k = first_of(r, m, nspace);                                                      \
         k < (r)->n && (m)->quotas.at[(r)->order[k]].ns == (nspace); k++)

/* The job's minimum for a name; false when it is not listed. */
static bool resourcequota_requested_amount(const struct job *j, uint32_t name, int64_t *ret)
{
    for (uint32_t k = 0; k < j->min_items.len; k++) {
        if (j->min_items.at[k].name == name) {
            *ret = j->min_items.at[k].milli;
            return true;
        }
    }
    return false;
}

static int64_t add_capped(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? (b > 0 ? INT64_MAX : INT64_MIN) : sum;
}

static bool exceeds(const struct job *j, const struct quota_item *item, int64_t pending)
{
    const int64_t used = item->has_used ? item->used_milli : 0;
    int64_t more;

    return item->has_hard && resourcequota_requested_amount(j, item->name, &more) &&
           add_capped(add_capped(used, pending), more) > item->hard_milli;
}

static bool resourcequota_has_room(const struct job *j, const struct quota *q,
                                   const int64_t *pending)
{
    for (uint32_t k = 0; k < q->items.len; k++) {
        if (exceeds(j, &q->items.at[k], pending[k])) {
            return false;
        }
    }
    return true;
}

enum column { REQUESTED, USED, LIMITED };

static int64_t column_milli(const struct job *j, const struct quota_item *item, enum column col)
{
    int64_t milli = 0;

    switch (col) {
    case REQUESTED:
        (void)resourcequota_requested_amount(j, item->name, &milli);
        break;
    case USED:
        milli = item->has_used ? item->used_milli : 0;
        break;
    case LIMITED:
        milli = item->hard_milli;
        break;
    }
    return milli;
}

static int resourcequota_compare_names(const void *a, const void *b, void *ctx)
{
    const struct model *m = ctx;
    const struct quota_item *x = *(struct quota_item *const *)a,
                            *y = *(struct quota_item *const *)b;

    return hk_str_cmp(model_str(m, x->name), model_str(m, y->name));
}

/* "map[cpu:2 memory:1500m]", as Go prints a map. */
static const char *map_text(struct session *ssn, const struct job *j,
                            const struct quota_item *const *items, uint32_t n, enum column col)
{
    const char *text = "map[";

    for (uint32_t k = 0; k < n; k++) {
        const int64_t milli = column_milli(j, items[k], col);
        const bool whole = milli % 1000 == 0;

        text = hk_arena_printf(ssn->mem, "%s%s%.*s:%lld%s", text, k > 0 ? " " : "",
                               HK_FMT(model_str(ssn->m, items[k]->name)),
                               (long long)(whole ? milli / 1000 : milli), whole ? "" : "m");
    }
    return hk_arena_printf(ssn->mem, "%s]", text);
}

/* Lists only the exceeded names; "used" excludes what this session admitted. */
static const char *resourcequota_write_exceeded(struct session *ssn, const struct job *j,
                                                const struct quota *q, const int64_t *pending)
{
    const struct quota_item **over = hk_arena_array(ssn->mem, q->items.len, sizeof(*over));
    uint32_t n = 0;

    for (uint32_t k = 0; k < q->items.len; k++) {
        if (exceeds(j, &q->items.at[k], pending[k])) {
            over[n++] = &q->items.at[k];
        }
    }
    qsort_r(over, n, sizeof(*over), resourcequota_compare_names, ssn->m);
    return hk_arena_printf(ssn->mem,
                           "resource quota insufficient, requested: %s, used: %s, limited: %s",
                           map_text(ssn, j, over, n, REQUESTED), map_text(ssn, j, over, n, USED),
                           map_text(ssn, j, over, n, LIMITED));
}

static enum vote resourcequota_job_enqueueable(struct session *ssn, void *self, job_id job)
{
    struct resourcequota *r = self;
    const struct model *m = ssn->m;
    const struct job *j = model_job(m, job);

    if (!j->has_minres) {
        return PERMIT;
    }
    EACH_QUOTA(r, m, j->ns, k)
    {
        const uint32_t row = r->order[k];
        const struct quota *q = &m->quotas.at[row];

        if (!resourcequota_has_room(j, q, r->pending[row])) {
            ssn->job_msg[job.i] = resourcequota_write_exceeded(ssn, j, q, r->pending[row]);
            return REJECT;
        }
    }
    return PERMIT;
}

static void resourcequota_job_enqueued(struct session *ssn, void *self, job_id job)
{
    struct resourcequota *r = self;
    const struct model *m = ssn->m;
    const struct job *j = model_job(m, job);

    EACH_QUOTA(r, m, j->ns, k)
    {
        const uint32_t row = r->order[k];
        const struct quota *q = &m->quotas.at[row];

        for (uint32_t i = 0; i < q->items.len; i++) {
            int64_t more;
            if (resourcequota_requested_amount(j, q->items.at[i].name, &more)) {
                r->pending[row][i] = add_capped(r->pending[row][i], more);
            }
        }
    }
}

const struct plugin plugin_resourcequota = {
    .name = "resourcequota",
    .about = "admit only jobs the namespace's ResourceQuotas can hold",
    .state_size = sizeof(struct resourcequota),
    .open = resourcequota_open,
    .job_enqueueable = resourcequota_job_enqueueable,
    .job_enqueued = resourcequota_job_enqueued,
};
