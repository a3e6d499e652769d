// SPDX-License-Identifier: Apache-2.0
// Hooks of a container's life: a command beside it, a GET, or just some time, when it has started
// (postStart) and before it is told to end (preStop). One is under way at a time.
#include "agent/agent_priv.h"

#include "net/probe.h"

/* Of a GET; whoever takes longer has the grace period to end it. */
#define GET_TIMEOUT_S 60

static void ended(struct container *c, bool good)
{
    c->hook = (struct hook){.due_ns = INT64_MAX};
    pod_hook_ended(c, good, agent_mono(c->pod->a));
}

static void on_net(void *ctx, struct net_probe *np, bool good)
{
    struct container *c = ctx;

    net_probe_free(np);
    ended(c, good);
}

void hook_begin(struct container *c, const char *name, int64_t now_ns)
{
    const struct json *hook = json_get(json_get(c->spec, "lifecycle"), name), *action;

    c->hook = (struct hook){.due_ns = INT64_MAX};
    if ((action = json_get(hook, "exec"))) {
        c->hook.exec = probe_exec(c, json_get(action, "command"));
    } else if ((action = json_get(hook, "httpGet"))) {
        c->hook.net =
            probe_connect(c, action,
                          &(struct net_probe_opts){.kind = probe_http_kind(action),
                                                   .any_status = true,
                                                   .timeout_ns = GET_TIMEOUT_S * SECOND_NS,
                                                   .done = on_net,
                                                   .ctx = c});
    } else if ((action = json_get(hook, "sleep"))) {
        c->hook.due_ns = now_ns + json_int(json_get(action, "seconds"), 0) * SECOND_NS;
    }
    if (action && !hook_runs(c)) {
        ended(c, false);
    }
}

bool hook_runs(const struct container *c)
{
    return c->hook.exec || c->hook.net || c->hook.due_ns != INT64_MAX;
}

int64_t hook_tick(struct container *c, int64_t now_ns)
{
    if (c->hook.due_ns <= now_ns) {
        ended(c, true);
    }
    return c->hook.due_ns;
}

bool hook_on_end(struct container *c, uint64_t id, bool good)
{
    if (c->hook.exec == 0 || c->hook.exec != id) {
        return false;
    }
    ended(c, good);
    return true;
}

void hook_end(struct container *c)
{
    net_probe_free(c->hook.net);
    c->hook = (struct hook){.due_ns = INT64_MAX};
}
