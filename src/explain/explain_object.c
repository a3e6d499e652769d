// SPDX-License-Identifier: Apache-2.0
// Reads the cluster's objects and writes parts of the answer, for all other explain files. Calls
// none of them.
#include "explain/explain_priv.h"

#include "api/names.h"
#include "sim/report.h"

static const struct hk_str none = {"", 0};

struct json explain_text(struct explainer *x, const char *fmt, ...)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    hk_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    return json_make_str_copy(hk_buf_str(&b), x->a);
}

struct json explain_amount(const struct model *m, uint32_t dim, double v, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf b = {0};

    report_amount(m, dim, v, &b);
    return json_make_str_copy(hk_buf_str(&b), a);
}

const struct api_object *explain_find(const struct explainer *x, enum api_kind_id kind,
                                      struct hk_str ns, struct hk_str name)
{
    for (uint32_t k = 0; k < x->o->n; k++) {
        const struct api_object *o = x->o->objects[k];
        if (o->kind->id == kind && hk_str_eq(o->name, name) && hk_str_eq(o->ns, ns)) {
            return o;
        }
    }
    return NULL;
}

const struct json *explain_controller(const struct json *obj)
{
    const struct json *owners = json_at(obj, "metadata.ownerReferences");

    for (uint32_t k = 0; k < json_len(owners); k++) {
        if (json_bool(json_get(&owners->items[k], "controller"), false)) {
            return &owners->items[k];
        }
    }
    return NULL;
}

struct hk_str explain_owner(const struct explainer *x, struct hk_str ns, struct hk_str group,
                            struct hk_arena *a)
{
    const struct api_object *o = explain_find(x, API_PODGROUP, ns, group);
    const struct hk_str owner = json_str_field(o ? explain_controller(&o->root) : NULL, "name");

    return hk_str(hk_arena_printf(a, "%.*s/%.*s", HK_FMT(ns), HK_FMT(owner.n > 0 ? owner : group)));
}

struct hk_str explain_pod_group(const struct json *pod)
{
    return json_str_field(json_at(pod, "metadata.annotations"), API_ANN_GROUP_NAME);
}

int32_t explain_priority(void *ctx, struct hk_str name)
{
    const struct explainer *x = ctx;
    const struct api_object *o =
        name.n > 0 ? explain_find(x, API_PRIORITY_CLASS, none, name) : NULL;

    return o ? (int32_t)json_int(json_get(&o->root, "value"), 0) : 0;
}
