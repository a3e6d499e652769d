// SPDX-License-Identifier: Apache-2.0
// The controllers' prober, with net/probe. Probes in flight have numbers, so a late cancel is
// harmless.
#include "daemon/prober.h"

#include "base/vec.h"
#include "net/probe.h"

struct question {
    uint64_t id;
    struct net_probe *probe;
    struct prober_sink sink;
    struct loop_prober *prober;
};

struct loop_prober {
    struct prober prober;
    struct net_loop *loop;
    uint64_t last;
    HK_VEC(struct question *) open;
};

static void loop_prober_forget(struct loop_prober *p, struct question *q)
{
    for (uint32_t i = 0; i < p->open.len; i++) {
        if (p->open.at[i] == q) {
            hk_vec_swap_remove(&p->open, i);
            break;
        }
    }
    net_probe_free(q->probe);
    hk_free(q);
}

static void loop_prober_on_done(void *ctx, struct net_probe *probe, bool good)
{
    struct question *q = ctx;
    const struct prober_sink sink = q->sink;
    const uint64_t id = q->id;

    loop_prober_forget(q->prober, q);
    sink.on_done(sink.ctx, id, good);
}

static uint64_t loop_prober_start(struct prober *prober, const struct probe *probe,
                                  struct prober_sink sink)
{
    struct loop_prober *p = (struct loop_prober *)prober;
    struct question *q = hk_zalloc(sizeof(*q));
    const struct net_probe_header header = {probe->header, probe->value};

    *q = (struct question){.id = ++p->last, .sink = sink, .prober = p};
    q->probe = net_probe_new(
        p->loop, &(struct net_probe_opts){.host = probe->host,
                                          .port = probe->port,
                                          .kind = probe->http ? NET_PROBE_HTTP : NET_PROBE_TCP,
                                          .path = probe->path,
                                          .headers = &header,
                                          .nheader = header.name.n > 0,
                                          .timeout_ns = probe->timeout_ns,
                                          .done = loop_prober_on_done,
                                          .ctx = q});
    hk_vec_push(&p->open, q);
    return q->id;
}

static void loop_prober_cancel(struct prober *prober, uint64_t id)
{
    struct loop_prober *p = (struct loop_prober *)prober;

    for (uint32_t i = 0; i < p->open.len; i++) {
        if (p->open.at[i]->id == id) {
            loop_prober_forget(p, p->open.at[i]);
            return;
        }
    }
}

static const struct prober_ops ops = {loop_prober_start, loop_prober_cancel};

struct prober *loop_prober_new(struct net_loop *l)
{
    struct loop_prober *p = hk_zalloc(sizeof(*p));

    p->prober.ops = &ops;
    p->loop = l;
    return &p->prober;
}

void loop_prober_free(struct prober *prober)
{
    struct loop_prober *p = (struct loop_prober *)prober;

    if (!p) {
        return;
    }
    while (p->open.len > 0) {
        loop_prober_forget(p, p->open.at[0]);
    }
    hk_vec_fini(&p->open);
    hk_free(p);
}
