// SPDX-License-Identifier: Apache-2.0
// Which account a pod runs as. Tokens are not mounted: pods here are processes, and reach the API,
// if at all, by the files of their user.
#include "admission/admission_priv.h"

/* The account named default belongs to the namespace; pods may come before it. */
int admit_serviceaccount_pod(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = edit_object(q->obj, q->mem, "spec");
    const struct json *account;
    struct hk_str name;

    edit_default_str(spec, q->mem, "serviceAccountName", "default");
    name = edit_str(spec, "serviceAccountName");
    edit_put(spec, q->mem, "serviceAccount", json_make_str(name));
    account = admit_get(q, api_kind(API_SERVICE_ACCOUNT), q->ns, name);
    if (!account) {
        if (!q->lookup || hk_str_is(name, "default")) {
            return 0;
        }
        return hk_fail(err, HK_EDENIED,
                       "error looking up service account %.*s/%.*s: serviceaccount \"%.*s\" not "
                       "found",
                       HK_FMT(q->ns), HK_FMT(name), HK_FMT(name));
    }
    if (edit_len(json_get(spec, "imagePullSecrets")) == 0 &&
        edit_len(json_get(account, "imagePullSecrets")) > 0) {
        edit_put(spec, q->mem, "imagePullSecrets",
                 json_clone(json_get(account, "imagePullSecrets"), q->mem));
    }
    return 0;
}
