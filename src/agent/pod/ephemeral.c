// SPDX-License-Identifier: Apache-2.0
// Ephemeral containers come and stay until the pod goes. The others are in one array whose pointers
// must not move, so each of these is allocated by itself, and keeps the object that has its spec.
#include "agent/pod/ephemeral.h"

#include "agent/pod/container.h"

static bool pod_ephemeral_is_known(const struct pod *p, struct hk_str name)
{
    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        if (hk_str_eq(pod_container_at(p, i)->name, name)) {
            return true;
        }
    }
    return false;
}

static void pod_ephemeral_add(struct pod *p, struct api_object *o, const struct json *spec)
{
    struct container *c = hk_zalloc(sizeof(*c));
    const uint32_t nrefs = p->refs.len;

    *c = (struct container){
        .pod = p,
        .ops = &container_ops,
        .object = api_object_ref(o),
        .spec = spec,
        .name = json_str(json_get(spec, "name"), HK_STR("")),
        .ephemeral = true,
    };
    hook_end(c);
    hk_vec_push(&p->ephemeral, c);
    if (!p->host->o.runtime->ops->hollow) {
        ref_collect_env(p, spec);
    }
    p->refs_added |= p->refs.len > nrefs;
    pod_touch(p);
}

void pod_ephemeral_update(struct pod *p, struct api_object *o)
{
    const struct json *list = json_at(&o->root, "spec.ephemeralContainers"), *one;

    if (!json_is(list, JSON_ARRAY) || list->len <= p->ephemeral.len) {
        return; /* the API only adds */
    }
    for (uint32_t i = 0; (one = json_item(list, i)); i++) {
        if (!pod_ephemeral_is_known(p, json_str(json_get(one, "name"), HK_STR("")))) {
            pod_ephemeral_add(p, o, one);
        }
    }
}

/* It may have lacked an object that exists now: read all again before the next attempt. */
static void pod_ephemeral_renew(struct container *c)
{
    c->stale = false;
    c->pod->refs_added = true;
    pod_touch(c->pod);
}

void pod_ephemeral_try(struct pod *p, int64_t now_ns)
{
    for (uint32_t i = 0; i < p->ephemeral.len; i++) {
        struct container *c = p->ephemeral.at[i];

        if (c->stale && c->due_ns <= now_ns) {
            pod_ephemeral_renew(c);
        } else {
            container_try(c, now_ns);
        }
    }
}

void pod_ephemeral_free(struct pod *p)
{
    for (uint32_t i = 0; i < p->ephemeral.len; i++) {
        api_object_unref(p->ephemeral.at[i]->object);
        hk_free(p->ephemeral.at[i]);
    }
    hk_vec_fini(&p->ephemeral);
}
