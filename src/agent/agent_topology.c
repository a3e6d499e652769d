// SPDX-License-Identifier: Apache-2.0
// Publishes the CPU topology of the node once per agent, as Volcano's resource exporter does: a
// Numatopology with the node's name, owned by the node. Does nothing if the server does not have
// that kind.
#include "agent/agent_priv.h"

#include "base/log.h"

#define RETRY_NS (30 * SECOND_NS)

static void on_answer(void *ctx, const struct port_msg *m)
{
    struct topology *t = ctx;

    t->call = 0;
    t->exists = m->rc == -HK_EEXIST;
    t->due_ns = agent_mono(t->a);
    if (m->rc == 0 || (m->rc == -HK_ENOTFOUND && !t->patching) || m->rc == -HK_EUNSUP) {
        t->due_ns = INT64_MAX;
    } else if (!t->exists) {
        hk_log(HK_LOG_DEBUG, "cannot tell the topology", "node=%s err=\"%s\"", t->a->o.node,
               m->err->text);
        t->due_ns += RETRY_NS;
    }
}

static void agent_topology_submit(struct topology *t, struct port_request *q)
{
    q->kind = api_kind(API_NUMATOPOLOGY);
    t->patching = q->verb == PORT_PATCH;
    t->call = port_submit(t->a->o.port, q, (struct port_sink){on_answer, t});
}

static void agent_topology_create(struct topology *t, const struct json *spec)
{
    struct hk_arena *mem = &t->a->mem;
    struct json body = json_make_object(), *meta;

    agent_put_str(&body, mem, "apiVersion", HK_STR("nodeinfo.volcano.sh/v1alpha1"));
    agent_put_str(&body, mem, "kind", HK_STR("Numatopology"));
    meta = agent_put_object(&body, mem, "metadata");
    agent_put_str(meta, mem, "name", hk_str(t->a->o.node));
    node_own(&t->a->node, meta);
    json_put(&body, mem, HK_STR("spec"), *spec);
    agent_topology_submit(t, &(struct port_request){.verb = PORT_CREATE, .body = &body});
}

/* Replaces the whole spec: a merge would keep CPUs that no longer exist. */
static void agent_topology_replace_spec(struct topology *t, const struct json *spec)
{
    struct hk_arena *mem = &t->a->mem;
    struct json body = json_make_array(), *op = json_push(&body, mem, json_make_object());

    agent_put_str(op, mem, "op", HK_STR("add"));
    agent_put_str(op, mem, "path", HK_STR("/spec"));
    json_put(op, mem, HK_STR("value"), *spec);
    agent_topology_submit(t, &(struct port_request){.verb = PORT_PATCH,
                                                    .patch = PORT_PATCH_JSON,
                                                    .name = hk_str(t->a->o.node),
                                                    .body = &body});
}

void topology_init(struct topology *t, struct agent *a)
{
    *t = (struct topology){.a = a, .due_ns = a->o.machine ? agent_mono(a) : INT64_MAX};
}

void topology_fini(struct topology *t)
{
    if (t->call) {
        port_cancel(t->a->o.port, t->call);
    }
}

int64_t topology_tick(struct topology *t, int64_t now_ns)
{
    struct json spec;

    if (t->call || !t->a->node.registered) {
        return INT64_MAX;
    }
    if (t->due_ns <= now_ns) {
        spec = machine_topology(t->a->o.machine, &t->a->mem);
        t->due_ns = INT64_MAX;
        if (json_is(&spec, JSON_OBJECT)) {
            (t->exists ? agent_topology_replace_spec : agent_topology_create)(t, &spec);
        }
        hk_arena_clear(&t->a->mem);
    }
    return t->call ? INT64_MAX : t->due_ns;
}
