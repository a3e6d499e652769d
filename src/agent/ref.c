// SPDX-License-Identifier: Apache-2.0
// Fetches what a pod refers to: ConfigMaps, Secrets, and service account tokens. Tokens are issued
// for this pod, become invalid with it, and are renewed before they expire.
#include "agent/agent_priv.h"

#define TOKEN_SECONDS 3600 /* default of a token source */

static struct json token_request(const struct pod *p, const struct json *source)
{
    struct hk_arena *a = &p->a->mem;
    struct json body = json_make_object(), audiences = json_make_array();
    const struct hk_str audience = json_str(json_get(source, "audience"), HK_STR(""));
    struct json *spec, *bound;

    agent_put_str(&body, a, "apiVersion", HK_STR("authentication.k8s.io/v1"));
    agent_put_str(&body, a, "kind", HK_STR("TokenRequest"));
    spec = agent_put_object(&body, a, "spec");
    if (audience.n > 0) {
        json_push(&audiences, a, json_make_str(audience));
    }
    json_put(spec, a, HK_STR("audiences"), audiences);
    json_put(spec, a, HK_STR("expirationSeconds"),
             json_make_int(json_int(json_get(source, "expirationSeconds"), TOKEN_SECONDS)));
    bound = agent_put_object(spec, a, "boundObjectRef");
    agent_put_str(bound, a, "apiVersion", HK_STR("v1"));
    agent_put_str(bound, a, "kind", HK_STR("Pod"));
    agent_put_str(bound, a, "name", p->name);
    agent_put_str(bound, a, "uid", p->uid);
    return body;
}

uint64_t ref_ask(const struct pod *p, const struct ref *r, struct port_sink sink)
{
    struct json body;

    if (!r->token) {
        return port_get(p->a->o.port, api_kind(r->kind), p->ns, r->name, sink);
    }
    body = token_request(p, r->token);
    return port_submit(p->a->o.port,
                       &(struct port_request){.verb = PORT_CREATE,
                                              .kind = api_kind(r->kind),
                                              .ns = p->ns,
                                              .name = r->name,
                                              .subresource = "token",
                                              .body = &body},
                       sink);
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
    const int64_t now_ns = agent_mono(p->a);
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
