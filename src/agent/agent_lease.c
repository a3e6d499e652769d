// SPDX-License-Identifier: Apache-2.0
// The lease of a node. The node renews it four times per lease duration as its heartbeat, creates
// it when it is missing, and sets the Node object as its owner.
#include "agent/agent_priv.h"

#include "api/names.h"
#include "base/log.h"
#include "codec/timefmt.h"

#define LEASE_NAMESPACE API_NODE_LEASE_NAMESPACE
/* Attempts per renewal interval while renewals fail. */
#define LEASE_TRIES 5

static void lease_renew(struct node *n);

static void lease_answered(void *ctx, const struct port_msg *m)
{
    struct node *n = ctx;
    const bool missing = m->rc == -HK_ENOTFOUND && !n->lease_missing;
    int64_t wait_ns = agent_beat_ns(n->a);

    n->lease = 0;
    if (m->rc < 0 && !missing) {
        hk_log(HK_LOG_DEBUG, "cannot renew the lease", "node=%s err=\"%s\"", n->name, m->err->text);
        wait_ns /= LEASE_TRIES;
    }
    if (m->rc == 0) {
        n->contact_ns = agent_mono(n->a);
    }
    n->lease_missing = missing;
    n->lease_due_ns = agent_mono(n->a) + wait_ns;
    if (missing) {
        lease_renew(n);
    }
}

static void lease_renew(struct node *n)
{
    HK_AUTO(hk_buf_fini) struct hk_buf now = {0};
    struct hk_arena *a = &n->a->mem;
    struct json body = json_make_object(), *meta, *spec;

    agent_put_str(&body, a, "apiVersion", hk_str("coordination.k8s.io/v1"));
    agent_put_str(&body, a, "kind", hk_str("Lease"));
    meta = agent_put_object(&body, a, "metadata");
    agent_put_str(meta, a, "name", hk_str(n->name));
    agent_put_str(meta, a, "namespace", hk_str(LEASE_NAMESPACE));
    if (n->uid) {
        node_own(n, meta);
    }
    spec = agent_put_object(&body, a, "spec");
    agent_put_str(spec, a, "holderIdentity", hk_str(n->name));
    json_put(spec, a, HK_STR("leaseDurationSeconds"), json_make_int(n->a->o.lease_ns / SECOND_NS));
    time_write_micro(agent_wall(n->a), &now);
    agent_put_str(spec, a, "renewTime", hk_str(now.data));
    n->lease =
        port_submit(n->a->o.port,
                    &(struct port_request){.verb = n->lease_missing ? PORT_CREATE : PORT_PATCH,
                                           .patch = PORT_PATCH_MERGE,
                                           .kind = api_kind(API_LEASE),
                                           .ns = HK_STR(LEASE_NAMESPACE),
                                           .name = hk_str(n->name),
                                           .body = &body},
                    (struct port_sink){lease_answered, n});
    hk_arena_clear(a);
}

void node_beat(struct node *n)
{
    if (n->registered && !n->lease) {
        lease_renew(n);
    }
}
