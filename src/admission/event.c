// SPDX-License-Identifier: Apache-2.0
// Events of both API groups, and leases: written most often, and only a few fields are checked.
#include "admission/admission_priv.h"

/* ---- events ---- */

static void check_namespace(struct admission_request *q, const char *subject)
{
    const struct json *about = json_get(q->obj, subject);
    const struct hk_str of = edit_str(about, "namespace");
    const struct path up = path_field(NULL, subject);
    const struct path p = path_field(&up, "namespace");

    if (of.n == 0) {
        if (!hk_str_is(q->ns, "default") && !hk_str_is(q->ns, "kube-system")) {
            cause_invalid_str(q, &p, of, "does not match event.namespace");
        }
    } else if (!hk_str_eq(of, q->ns)) {
        cause_invalid_str(q, &p, of, "does not match event.namespace");
    }
}

void admit_event_validate(struct admission_request *q)
{
    check_namespace(q, "involvedObject");
}

void admit_event_validate_new(struct admission_request *q)
{
    static const char *const wanted[] = {"eventTime", "reportingController", "reportingInstance",
                                         "action", "reason"};
    static const char *const refused[] = {"deprecatedFirstTimestamp", "deprecatedLastTimestamp",
                                          "deprecatedCount", "deprecatedSource"};
    static const char *const types[] = {"Normal", "Warning", NULL};

    check_namespace(q, "regarding");
    for (size_t i = 0; i < HK_LEN(wanted); i++) {
        cause_check_present(q, NULL, q->obj, wanted[i]);
    }
    if (cause_check_present(q, NULL, q->obj, "type")) {
        cause_check_enum(q, NULL, q->obj, "type", types);
    }
    for (size_t i = 0; i < HK_LEN(refused); i++) {
        const struct json *v = json_get(q->obj, refused[i]);
        const struct path p = path_field(NULL, refused[i]);
        if (v && v->type != JSON_NULL && !(v->type == JSON_OBJECT && v->len == 0) &&
            json_int(v, 1) != 0) {
            cause_invalid(q, &p, v, "needs to be unset");
        }
    }
}

/* ---- leases ---- */

void admit_lease_validate(struct admission_request *q)
{
    const struct json *spec = json_get(q->obj, "spec");
    const struct path p = path_field(NULL, "spec");

    cause_check_min(q, &p, spec, "leaseDurationSeconds", 1);
    cause_check_min(q, &p, spec, "leaseTransitions", 0);
}
