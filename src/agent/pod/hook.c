// SPDX-License-Identifier: Apache-2.0
// Lifecycle hooks of a container, after it starts (postStart) and before it is stopped (preStop): a
// command, an HTTP GET, or a sleep. One hook runs at a time.
#include "agent/pod/hook.h"

#include "agent/pod/pods.h"
#include "net/probe.h"

/* Of a GET; a slower preStop is limited by the grace period. */
#define GET_TIMEOUT_S 60

static void pod_hook_finish(struct container *c, bool good)
{
    c->hook = (struct hook){.due_ns = INT64_MAX};
    c->ops->hook_ended(c, good, host_mono_ns(c->pod->host));
}

static void hook_on_net(void *ctx, struct net_probe *np, bool good)
{
    struct container *c = ctx;

    net_probe_free(np);
    pod_hook_finish(c, good);
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
                                                   .done = hook_on_net,
                                                   .ctx = c});
    } else if ((action = json_get(hook, "sleep"))) {
        c->hook.due_ns = now_ns + hk_seconds_ns(json_int(json_get(action, "seconds"), 0));
    }
    if (action && !hook_runs(c)) {
        pod_hook_finish(c, false);
    }
}

bool hook_runs(const struct container *c)
{
    return c->hook.exec || c->hook.net || c->hook.due_ns != INT64_MAX;
}

int64_t hook_tick(struct container *c, int64_t now_ns)
{
    if (c->hook.due_ns <= now_ns) {
        pod_hook_finish(c, true);
    }
    return c->hook.due_ns;
}

bool hook_on_end(struct container *c, uint64_t id, bool good)
{
    if (c->hook.exec == 0 || c->hook.exec != id) {
        return false;
    }
    pod_hook_finish(c, good);
    return true;
}

void hook_end(struct container *c)
{
    net_probe_free(c->hook.net);
    c->hook = (struct hook){.due_ns = INT64_MAX};
}
