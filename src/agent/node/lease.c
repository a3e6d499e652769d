// SPDX-License-Identifier: Apache-2.0
// The lease of a node. The node renews it four times per lease duration as its heartbeat, creates
// it when it is missing, and sets the Node object as its owner.
#include "agent/node/lease.h"

#include "agent/node/object.h"
#include "api/names.h"
#include "base/log.h"
#include "codec/timefmt.h"

#define LEASE_NAMESPACE API_NODE_LEASE_NAMESPACE
/* Attempts per renewal interval while renewals fail. */
#define LEASE_TRIES 5

static void lease_renew(struct node *n);

int64_t lease_beat_ns(const struct host *h)
{
    return h->o.lease_ns / 4; /* as in kubelets */
}

static void lease_answered(void *ctx, const struct port_msg *m)
{
    struct node *n = ctx;
    const bool missing = m->rc == -HK_ENOTFOUND && !n->lease_missing;
    int64_t wait_ns = lease_beat_ns(n->host);

    n->lease = 0;
    if (m->rc < 0 && !missing) {
        hk_log(HK_LOG_DEBUG, "cannot renew the lease", "node=%s err=\"%s\"", n->name, m->err->text);
        wait_ns /= LEASE_TRIES;
    }
    if (m->rc == 0) {
        n->contact_ns = host_mono_ns(n->host);
    }
    n->lease_missing = missing;
    n->lease_due_ns = host_mono_ns(n->host) + wait_ns;
    if (missing) {
        lease_renew(n);
    }
}

static void lease_renew(struct node *n)
{
    HK_AUTO(hk_buf_fini) struct hk_buf now = {0};
    struct hk_arena *a = &n->host->mem;
    struct json body = json_make_object(), *meta, *spec;

    json_set_cstr(&body, a, "apiVersion", "coordination.k8s.io/v1");
    json_set_cstr(&body, a, "kind", "Lease");
    meta = json_set_object(&body, a, "metadata");
    json_set_cstr(meta, a, "name", n->name);
    json_set_cstr(meta, a, "namespace", LEASE_NAMESPACE);
    if (n->uid) {
        node_object_own(n, meta);
    }
    spec = json_set_object(&body, a, "spec");
    json_set_cstr(spec, a, "holderIdentity", n->name);
    json_set_int(spec, a, "leaseDurationSeconds", n->host->o.lease_ns / SECOND_NS);
    time_write_micro(host_wall_ns(n->host), &now);
    json_set_cstr(spec, a, "renewTime", now.data);
    n->lease =
        port_submit(n->host->o.port,
                    &(struct port_request){.verb = n->lease_missing ? PORT_CREATE : PORT_PATCH,
                                           .patch = PORT_PATCH_MERGE,
                                           .kind = api_kind(API_LEASE),
                                           .ns = HK_STR(LEASE_NAMESPACE),
                                           .name = hk_str(n->name),
                                           .body = &body},
                    (struct port_sink){lease_answered, n});
    hk_arena_clear(a);
}

void lease_beat(struct node *n)
{
    if (n->registered && !n->lease) {
        lease_renew(n);
    }
}
