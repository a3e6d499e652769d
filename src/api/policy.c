// SPDX-License-Identifier: Apache-2.0
// Decodes the small kinds that limit, rank or select pods.
#include "api/policy.h"

#include "api/selector_priv.h"

static const struct field priority_class_fields[] = {
    FIELD_META(struct api_priority_class),
    FIELD_I32("value", struct api_priority_class, value, INT32_MIN, INT32_MAX),
    FIELD("globalDefault", field_bool, struct api_priority_class, global_default),
    FIELD("preemptionPolicy", field_enum, struct api_priority_class, preemption,
          .sub = api_preemption_names),
    {0},
};

static const struct field_record priority_class_record = {sizeof(struct api_priority_class),
                                                          .fields = priority_class_fields};

static void terminating_read(struct field_reader *r, const struct field_path *p,
                             const struct json *v, const struct field *f, void *base)
{
    struct api_namespace *ns = base;
    ns->terminating =
        field_want(r, p, v, JSON_STRING) && hk_str_is((struct hk_str){v->s, v->len}, "Terminating");
}

static const struct field namespace_status_fields[] = {
    FIELD("phase", terminating_read, struct api_namespace, terminating),
    {0},
};

static const struct field_record namespace_status_record = {.fields = namespace_status_fields};

static const struct field namespace_fields[] = {
    FIELD_META(struct api_namespace),
    FIELD_IN("status", &namespace_status_record),
    {0},
};

static const struct field_record namespace_record = {sizeof(struct api_namespace),
                                                     .fields = namespace_fields};

static const struct field quota_spec_fields[] = {
    FIELD("hard", field_resources, struct api_resource_quota, spec_hard),
    FIELD("scopes", field_strs, struct api_resource_quota, scopes),
    {0},
};

static const struct field_record quota_spec_record = {.fields = quota_spec_fields};

static const struct field quota_status_fields[] = {
    FIELD("hard", field_resources, struct api_resource_quota, hard),
    FIELD("used", field_resources, struct api_resource_quota, used),
    {0},
};

static const struct field_record quota_status_record = {.fields = quota_status_fields};

static const struct field quota_fields[] = {
    FIELD_META(struct api_resource_quota),
    FIELD_IN("spec", &quota_spec_record),
    FIELD_IN("status", &quota_status_record),
    {0},
};

static const struct field_record quota_record = {sizeof(struct api_resource_quota),
                                                 .fields = quota_fields};

static const struct field pdb_spec_fields[] = {
    FIELD("selector", selector_field, struct api_pdb, selector),
    {0},
};

static const struct field_record pdb_spec_record = {.fields = pdb_spec_fields};

/* A map from names to times; only the names are used. */
static void disrupted_read(struct field_reader *r, const struct field_path *p, const struct json *v,
                           const struct field *f, void *base)
{
    struct api_pdb *pdb = base;

    if (!field_want(r, p, v, JSON_OBJECT)) {
        return;
    }
    struct hk_str *at = hk_arena_array(r->a, v->len, sizeof(*at));
    for (uint32_t i = 0; i < v->len; i++) {
        at[i] = v->members[i].key;
    }
    qsort(at, v->len, sizeof(*at), field_str_cmp);
    pdb->disrupted_pods = (struct api_strs){at, v->len};
}

static const struct field pdb_status_fields[] = {
    FIELD_I32("disruptionsAllowed", struct api_pdb, disruptions_allowed, INT32_MIN, INT32_MAX),
    FIELD("disruptedPods", disrupted_read, struct api_pdb, disrupted_pods),
    {0},
};

static const struct field_record pdb_status_record = {.fields = pdb_status_fields};

static const struct field pdb_fields[] = {
    FIELD_META(struct api_pdb),
    FIELD_IN("spec", &pdb_spec_record),
    FIELD_IN("status", &pdb_status_record),
    {0},
};

static const struct field_record pdb_record = {sizeof(struct api_pdb), .fields = pdb_fields};

static const struct field service_spec_fields[] = {
    FIELD("selector", selector_field_map, struct api_workload, selector),
    {0},
};

static const struct field_record service_spec_record = {.fields = service_spec_fields};

static const struct field service_fields[] = {
    FIELD_META(struct api_workload),
    FIELD_IN("spec", &service_spec_record),
    {0},
};

static const struct field_record service_record = {sizeof(struct api_workload),
                                                   .fields = service_fields};

static const struct field workload_spec_fields[] = {
    FIELD("selector", selector_field, struct api_workload, selector),
    {0},
};

static const struct field_record workload_spec_record = {.fields = workload_spec_fields};

static const struct field workload_fields[] = {
    FIELD_META(struct api_workload),
    FIELD_IN("spec", &workload_spec_record),
    {0},
};

static const struct field_record workload_record = {sizeof(struct api_workload),
                                                    .fields = workload_fields};

int api_priority_class_decode(const struct json *doc, struct hk_arena *a,
                              struct api_priority_class *ret, struct hk_err *err)
{
    struct api_priority_class pc = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &priority_class_record, a, &pc, ret, err);
}

int api_namespace_decode(const struct json *doc, struct hk_arena *a, struct api_namespace *ret,
                         struct hk_err *err)
{
    struct api_namespace ns = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &namespace_record, a, &ns, ret, err);
}

int api_resource_quota_decode(const struct json *doc, struct hk_arena *a,
                              struct api_resource_quota *ret, struct hk_err *err)
{
    struct api_resource_quota quota = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &quota_record, a, &quota, ret, err);
}

int api_pdb_decode(const struct json *doc, struct hk_arena *a, struct api_pdb *ret,
                   struct hk_err *err)
{
    struct api_pdb pdb = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &pdb_record, a, &pdb, ret, err);
}

int api_service_decode(const struct json *doc, struct hk_arena *a, struct api_workload *ret,
                       struct hk_err *err)
{
    struct api_workload w = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &service_record, a, &w, ret, err);
}

int api_workload_decode(const struct json *doc, struct hk_arena *a, struct api_workload *ret,
                        struct hk_err *err)
{
    struct api_workload w = {.raw = doc, .meta.line = doc->line};
    return field_decode(doc, &workload_record, a, &w, ret, err);
}
