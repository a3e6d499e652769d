// SPDX-License-Identifier: Apache-2.0
// What a pod refers to: lists its ConfigMaps, Secrets, claims and service account tokens, fetches
// them, and reads their data. Tokens are issued for this pod, become invalid with it, and are
// renewed before they expire.
#include "agent/pod/ref.h"

#include "agent/pod/pods.h"
#include "codec/base64.h"

#define TOKEN_SECONDS 3600 /* default of a token source */

/* ---- which objects ---- */

const struct ref *ref_find(const struct pod *p, enum api_kind_id kind, struct hk_str name)
{
    for (uint32_t i = 0; i < p->refs.len; i++) {
        if (p->refs.at[i].kind == kind && hk_str_eq(p->refs.at[i].name, name)) {
            return &p->refs.at[i];
        }
    }
    return NULL;
}

static void ref_add(struct pod *p, enum api_kind_id kind, const struct json *from, const char *key,
                    bool in_volume)
{
    const struct hk_str name = json_str(json_get(from, key), HK_STR(""));
    const bool optional = json_bool(json_get(from, "optional"), false);
    struct ref *r = (struct ref *)ref_find(p, kind, name);

    if (name.n == 0) {
        return;
    }
    if (r) {
        r->optional = r->optional && optional;
        r->in_volume = r->in_volume || in_volume;
        return;
    }
    hk_vec_push(
        &p->refs,
        (struct ref){.kind = kind, .name = name, .optional = optional, .in_volume = in_volume});
}

void ref_collect_env(struct pod *p, const struct json *container)
{
    const struct json *from = json_get(container, "envFrom"), *env = json_get(container, "env");

    for (uint32_t i = 0; json_item(from, i); i++) {
        ref_add(p, API_CONFIGMAP, json_get(json_item(from, i), "configMapRef"), "name", false);
        ref_add(p, API_SECRET, json_get(json_item(from, i), "secretRef"), "name", false);
    }
    for (uint32_t i = 0; json_item(env, i); i++) {
        ref_add(p, API_CONFIGMAP, json_at(json_item(env, i), "valueFrom.configMapKeyRef"), "name",
                false);
        ref_add(p, API_SECRET, json_at(json_item(env, i), "valueFrom.secretKeyRef"), "name", false);
    }
}

static void ref_collect_token(struct pod *p, const struct json *source)
{
    if (source && p->host->o.dir) {
        hk_vec_push(&p->refs,
                    (struct ref){.kind = API_SERVICE_ACCOUNT,
                                 .name = json_str(pod_spec(p, "serviceAccountName"), HK_STR("")),
                                 .token = source});
    }
}

static void ref_collect_volume(struct pod *p, const struct json *v)
{
    const struct json *sources = json_at(v, "projected.sources");

    ref_add(p, API_CONFIGMAP, json_get(v, "configMap"), "name", true);
    ref_add(p, API_SECRET, json_get(v, "secret"), "secretName", true);
    ref_add(p, API_PVC, json_get(v, "persistentVolumeClaim"), "claimName", false);
    for (uint32_t i = 0; json_item(sources, i); i++) {
        ref_add(p, API_CONFIGMAP, json_get(json_item(sources, i), "configMap"), "name", true);
        ref_add(p, API_SECRET, json_get(json_item(sources, i), "secret"), "name", true);
        ref_collect_token(p, json_get(json_item(sources, i), "serviceAccountToken"));
    }
}

void ref_collect(struct pod *p)
{
    const struct json *volumes = json_at(&p->obj->root, "spec.volumes");
    const struct json *pulls = pod_spec(p, "imagePullSecrets");

    for (uint32_t i = 0; p->host->o.image_policy == AGENT_IMAGES_PULL && json_item(pulls, i); i++) {
        ref_add(p, API_SECRET, json_item(pulls, i), "name", false);
    }

    for (uint32_t i = 0; i < p->ncontainer; i++) {
        ref_collect_env(p, p->containers[i].spec);
    }
    for (uint32_t i = 0; json_item(volumes, i); i++) {
        ref_collect_volume(p, json_item(volumes, i));
    }
}

/* ---- what they contain ---- */

static bool ref_decode_base64(struct hk_str coded, struct hk_arena *a, struct hk_str *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf plain = {0};

    if (!base64_read(coded, &plain)) {
        return false;
    }
    *ret = hk_arena_str(a, hk_buf_str(&plain));
    return true;
}

bool ref_data(const struct ref *r, struct hk_str key, struct hk_arena *a, struct hk_str *ret)
{
    const struct json *root = r->obj ? &r->obj->root : NULL;
    const struct json *plain = json_get_str(json_get(root, "data"), key);

    if (plain && r->kind == API_CONFIGMAP) {
        *ret = json_str(plain, HK_STR(""));
        return true;
    }
    if (!plain) {
        plain = json_get_str(json_get(root, "binaryData"), key);
    }
    return plain && ref_decode_base64(json_str(plain, HK_STR("")), a, ret);
}

/* ---- fetching ---- */

static struct json ref_token_request(const struct pod *p, const struct json *source)
{
    struct hk_arena *a = &p->host->mem;
    struct json body = json_make_object(), audiences = json_make_array();
    const struct hk_str audience = json_str(json_get(source, "audience"), HK_STR(""));
    struct json *spec, *bound;

    json_set_cstr(&body, a, "apiVersion", "authentication.k8s.io/v1");
    json_set_cstr(&body, a, "kind", "TokenRequest");
    spec = json_set_object(&body, a, "spec");
    if (audience.n > 0) {
        json_push(&audiences, a, json_make_str(audience));
    }
    json_set(spec, a, "audiences", audiences);
    json_set_int(spec, a, "expirationSeconds",
                 json_int(json_get(source, "expirationSeconds"), TOKEN_SECONDS));
    bound = json_set_object(spec, a, "boundObjectRef");
    json_set_cstr(bound, a, "apiVersion", "v1");
    json_set_cstr(bound, a, "kind", "Pod");
    json_set_str(bound, a, "name", p->name);
    json_set_str(bound, a, "uid", p->uid);
    return body;
}

uint64_t ref_ask(const struct pod *p, const struct ref *r, struct port_sink sink)
{
    struct json body;

    if (!r->token) {
        return port_get(p->host->o.port, api_kind(r->kind), p->ns, r->name, sink);
    }
    body = ref_token_request(p, r->token);
    return port_submit(p->host->o.port,
                       &(struct port_request){.verb = PORT_CREATE,
                                              .kind = api_kind(r->kind),
                                              .ns = p->ns,
                                              .name = r->name,
                                              .subresource = "token",
                                              .body = &body},
                       sink);
}

void ref_changed(struct pod *p, struct ref *r, struct api_object *o)
{
    if (r->obj && hk_str_eq(r->obj->uid, o->uid) && r->obj->rv == o->rv) {
        return;
    }
    api_object_unref(r->obj);
    r->obj = api_object_ref(o);
    p->files_stale = true;
    pod_touch(p);
    if (p->prep == PREP_HELD) { /* it may be what was missing */
        p->held_until_ns = host_mono_ns(p->host);
    }
}

struct hk_str ref_token(const struct pod *p, const struct json *source)
{
    for (uint32_t i = 0; i < p->refs.len; i++) {
        const struct ref *r = &p->refs.at[i];

        if (r->token == source && r->obj) {
            return json_str(json_at(&r->obj->root, "status.token"), HK_STR(""));
        }
    }
    return HK_STR("");
}

int64_t ref_renew_ns(const struct pod *p)
{
    const int64_t now_ns = host_mono_ns(p->host);
    int64_t at_ns = INT64_MAX;

    for (uint32_t i = 0; i < p->refs.len; i++) {
        const struct ref *r = &p->refs.at[i];

        if (r->token && r->obj) {
            const int64_t life_s =
                json_int(json_at(&r->obj->root, "spec.expirationSeconds"), TOKEN_SECONDS);

            at_ns = HK_MIN(at_ns, now_ns + hk_seconds_ns(life_s) / 5 * 4); /* as in kubelets */
        }
    }
    return at_ns;
}
