// SPDX-License-Identifier: Apache-2.0
// Lookup of other objects of the cluster, for every admission rule. admission.c calls the rules and
// the rules call this file, so nothing here may call either.
#include "admission/admission_priv.h"

void admission_request_fini(struct admission_request *q)
{
    hk_vec_fini(&q->errors);
    hk_vec_fini(&q->warnings);
    hk_vec_fini(&q->unknown);
}

const struct json *admit_get(const struct admission_request *q, const struct api_kind *kind,
                             struct hk_str ns, struct hk_str name)
{
    return q->lookup ? q->lookup->get(q->lookup->ctx, kind, ns, name) : NULL;
}

void admit_each(const struct admission_request *q, const struct api_kind *kind, struct hk_str ns,
                bool (*fn)(void *arg, const struct json *obj), void *arg)
{
    if (q->lookup) {
        q->lookup->each(q->lookup->ctx, kind, ns, fn, arg);
    }
}
