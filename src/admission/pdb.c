// SPDX-License-Identifier: Apache-2.0
// PodDisruptionBudgets: at most one of two bounds, each a number or a percentage.
#include "admission/admission_priv.h"

static void check_percent(struct admission_request *q, const struct path *p, struct hk_str text)
{
    int64_t percent = -1;
    const struct hk_str digits = {text.s, text.n > 0 ? text.n - 1 : 0};

    if (!hk_str_ends(text, "%") || digits.n == 0 || digits.s[0] < '0' || digits.s[0] > '9' ||
        !hk_str_int(digits, &percent)) {
        cause_invalid_str(q, p, text,
                          "a valid percent string must be a numeric string followed by an ending "
                          "'%%' (e.g. '1%%',  or '93%%', regex used for validation is '[0-9]+%%')");
    } else if (percent > 100) {
        cause_invalid_str(q, p, text, "must not be greater than 100%%");
    }
}

static void admit_pdb_check_int_or_percent(struct admission_request *q,
                                           const struct path *spec_path, const struct json *spec,
                                           const char *key)
{
    const struct json *v = json_get(spec, key);
    const struct path p = path_field(spec_path, key);

    if (json_is(v, JSON_STRING)) {
        check_percent(q, &p, json_str(v, HK_STR("")));
    } else {
        cause_check_min(q, spec_path, spec, key, 0);
    }
}

void admit_pdb_validate(struct admission_request *q)
{
    static const char *const policies[] = {"AlwaysAllow", "IfHealthyBudget", NULL};
    const struct json *spec = json_get(q->obj, "spec");
    const struct path p = path_field(NULL, "spec");
    const struct path selector = path_field(&p, "selector");

    if (edit_has(spec, "minAvailable") && edit_has(spec, "maxUnavailable")) {
        cause_invalid(q, &p, spec, "minAvailable and maxUnavailable cannot be both set");
    }
    admit_pdb_check_int_or_percent(q, &p, spec, "minAvailable");
    admit_pdb_check_int_or_percent(q, &p, spec, "maxUnavailable");
    name_check_selector(q, &selector, json_get(spec, "selector"));
    cause_check_enum(q, &p, spec, "unhealthyPodEvictionPolicy", policies);
}
