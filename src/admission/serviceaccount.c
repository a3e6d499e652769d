// SPDX-License-Identifier: Apache-2.0
// The service account of a pod, and the volume with its token. Kubernetes adds that volume to every
// pod; here pods of the account named default get it only on request. That account has no rights,
// so a token would only cost time when a job has thousands of pods.
#include "admission/admission_priv.h"

#define ACCESS "kube-api-access-token"
#define ACCESS_PATH "/var/run/secrets/kubernetes.io/serviceaccount"

/* As kube-apiserver writes it, but without the random suffix: the name must be unique only in the
 * pod. */
static const char access_volume[] =
    "{\"name\":\"" ACCESS "\",\"projected\":{\"defaultMode\":420,\"sources\":["
    "{\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":\"token\"}},"
    "{\"configMap\":{\"name\":\"kube-root-ca.crt\",\"items\":[{\"key\":\"ca.crt\",\"path\":\"ca."
    "crt\"}]}},"
    "{\"downwardAPI\":{\"items\":[{\"path\":\"namespace\",\"fieldRef\":{\"apiVersion\":\"v1\","
    "\"fieldPath\":\"metadata.namespace\"}}]}}]}}";
static const char access_mount[] =
    "{\"name\":\"" ACCESS "\",\"readOnly\":true,\"mountPath\":\"" ACCESS_PATH "\"}";

static struct json literal(struct hk_arena *a, const char *text)
{
    struct json v;
    const int rc = json_parse(hk_str(text), 0, a, &v, NULL);

    hk_assert(rc == 0);
    return v;
}

/* ---- the token ---- */

/* The pod's setting takes precedence over that of its account. */
static bool wants_token(const struct json *spec, const struct json *account, struct hk_str name)
{
    const struct json *say = json_get(spec, "automountServiceAccountToken");

    if (!json_is(say, JSON_BOOL)) {
        say = json_get(account, "automountServiceAccountToken");
    }
    return json_bool(say, !hk_str_is(name, "default"));
}

static bool has_mount(const struct json *container)
{
    const struct json *mounts = json_get(container, "volumeMounts");

    for (uint32_t i = 0; json_item(mounts, i); i++) {
        if (hk_str_is(edit_str(json_item(mounts, i), "mountPath"), ACCESS_PATH)) {
            return true;
        }
    }
    return false;
}

/* True when any container of the list got the mount. */
static bool add_mounts(struct json *spec, const char *list, struct hk_arena *a)
{
    struct json *containers = edit_get(spec, list);
    bool added = false;

    for (uint32_t i = 0; i < edit_len(containers); i++) {
        struct json *c = &containers->items[i];

        if (json_is(c, JSON_OBJECT) && !has_mount(c)) {
            json_push(json_need(c, a, "volumeMounts", JSON_ARRAY), a, literal(a, access_mount));
            added = true;
        }
    }
    return added;
}

/* A manifest that was exported from a pod already has the volume. */
static bool has_volume(const struct json *spec)
{
    const struct json *volumes = json_get(spec, "volumes");

    for (uint32_t i = 0; json_item(volumes, i); i++) {
        if (hk_str_is(edit_str(json_item(volumes, i), "name"), ACCESS)) {
            return true;
        }
    }
    return false;
}

static void add_access(struct json *spec, struct hk_arena *a)
{
    const bool init = add_mounts(spec, "initContainers", a);
    const bool main = add_mounts(spec, "containers", a);

    if ((init || main) && !has_volume(spec)) {
        json_push(json_need(spec, a, "volumes", JSON_ARRAY), a, literal(a, access_volume));
    }
}

/* ---- the account ---- */

/* A namespace's default account may be created after the first pods. */
int admit_serviceaccount_pod(struct admission_request *q, struct hk_err *err)
{
    struct json *spec = json_need(q->obj, q->mem, "spec", JSON_OBJECT);
    const struct json *account;
    struct hk_str name;

    edit_default_str(spec, q->mem, "serviceAccountName", "default");
    name = edit_str(spec, "serviceAccountName");
    json_set_str(spec, q->mem, "serviceAccount", name);
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
    if (wants_token(spec, account, name)) {
        add_access(spec, q->mem);
    }
    if (edit_len(json_get(spec, "imagePullSecrets")) == 0 &&
        edit_len(json_get(account, "imagePullSecrets")) > 0) {
        json_set(spec, q->mem, "imagePullSecrets",
                 json_clone(json_get(account, "imagePullSecrets"), q->mem));
    }
    return 0;
}
