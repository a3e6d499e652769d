// SPDX-License-Identifier: Apache-2.0
// Publishes the CPU topology of the node once per agent, as Volcano's resource exporter does: a
// Numatopology with the node's name, owned by the node. Does nothing if the server does not have
// that kind.
#include "agent/node/topology.h"

#include "agent/node/object.h"
#include "base/log.h"

#define RETRY_NS (30 * SECOND_NS)

static void topology_on_answer(void *ctx, const struct port_msg *m)
{
    struct topology *t = ctx;

    t->call = 0;
    t->exists = m->rc == -HK_EEXIST;
    t->due_ns = host_mono_ns(t->node->host);
    if (m->rc == 0 || (m->rc == -HK_ENOTFOUND && !t->patching) || m->rc == -HK_EUNSUP) {
        t->due_ns = INT64_MAX;
    } else if (!t->exists) {
        hk_log(HK_LOG_DEBUG, "cannot tell the topology", "node=%s err=\"%s\"", t->node->name,
               m->err->text);
        t->due_ns += RETRY_NS;
    }
}

static void topology_submit(struct topology *t, struct port_request *q)
{
    q->kind = api_kind(API_NUMATOPOLOGY);
    t->patching = q->verb == PORT_PATCH;
    t->call = port_submit(t->node->host->o.port, q, (struct port_sink){topology_on_answer, t});
}

static void topology_create(struct topology *t, const struct json *spec)
{
    struct hk_arena *mem = &t->node->host->mem;
    struct json body = json_make_object(), *meta;

    json_set_cstr(&body, mem, "apiVersion", "nodeinfo.volcano.sh/v1alpha1");
    json_set_cstr(&body, mem, "kind", "Numatopology");
    meta = json_set_object(&body, mem, "metadata");
    json_set_cstr(meta, mem, "name", t->node->name);
    node_object_own(t->node, meta);
    json_set(&body, mem, "spec", *spec);
    topology_submit(t, &(struct port_request){.verb = PORT_CREATE, .body = &body});
}

/* Replaces the whole spec: a merge would keep CPUs that no longer exist. */
static void topology_replace_spec(struct topology *t, const struct json *spec)
{
    struct hk_arena *mem = &t->node->host->mem;
    struct json body = json_make_array(), *op = json_push(&body, mem, json_make_object());

    json_set_cstr(op, mem, "op", "add");
    json_set_cstr(op, mem, "path", "/spec");
    json_set(op, mem, "value", *spec);
    topology_submit(t, &(struct port_request){.verb = PORT_PATCH,
                                              .patch = PORT_PATCH_JSON,
                                              .name = hk_str(t->node->name),
                                              .body = &body});
}

void topology_init(struct topology *t, struct node *n)
{
    *t = (struct topology){.node = n,
                           .due_ns = n->host->o.machine ? host_mono_ns(n->host) : INT64_MAX};
}

void topology_fini(struct topology *t)
{
    if (t->call) {
        port_cancel(t->node->host->o.port, t->call);
    }
}

int64_t topology_tick(struct topology *t, int64_t now_ns)
{
    struct json spec;

    if (t->call || !t->node->registered) {
        return INT64_MAX;
    }
    if (t->due_ns <= now_ns) {
        spec = machine_topology(t->node->host->o.machine, &t->node->host->mem);
        t->due_ns = INT64_MAX;
        if (json_is(&spec, JSON_OBJECT)) {
            (t->exists ? topology_replace_spec : topology_create)(t, &spec);
        }
        hk_arena_clear(&t->node->host->mem);
    }
    return t->call ? INT64_MAX : t->due_ns;
}
