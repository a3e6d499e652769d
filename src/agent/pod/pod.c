// SPDX-License-Identifier: Apache-2.0
// Questions about a pod that need nothing but the pod.
#include "agent/pod/pod.h"

const struct json *pod_spec(const struct pod *p, const char *path)
{
    return json_at(json_get(&p->obj->root, "spec"), path);
}

const char *pod_log_path(const struct container *c, uint32_t attempt, struct hk_arena *a)
{
    const char *dir = c->pod->dir;

    return dir ? hk_arena_printf(a, "%s/%.*s.%u.log", dir, HK_FMT(c->name), attempt) : NULL;
}

int64_t pod_grace_ns(const struct pod *p)
{
    return hk_seconds_ns(json_int(pod_spec(p, "terminationGracePeriodSeconds"), POD_GRACE_S));
}

bool container_is_initialized(const struct container *c)
{
    if (c->sidecar) {
        return c->state == CONTAINER_RUNNING && c->started;
    }
    return c->state == CONTAINER_ENDED && c->end.code == 0;
}

uint32_t pod_ncontainers(const struct pod *p)
{
    return p->ncontainer + p->ephemeral.len;
}

struct container *pod_container_at(const struct pod *p, uint32_t i)
{
    return i < p->ncontainer ? &p->containers[i] : p->ephemeral.at[i - p->ncontainer];
}

void container_wait(struct container *c, const char *why, const char *text)
{
    char *copy = text ? hk_strdup(text) : NULL; /* it may be the old one */

    hk_free(c->why_text);
    c->why = why;
    c->why_text = copy;
}

bool pod_initialized(const struct pod *p)
{
    for (uint32_t i = 0; i < p->ninit; i++) {
        const struct container *c = &p->containers[i];

        /* A restarting sidecar does not make the pod uninitialized. */
        if (!container_is_initialized(c) && !(c->sidecar && c->begun)) {
            return false;
        }
    }
    return true;
}

void pod_note(const struct pod *p, bool warning, const char *reason, const char *message)
{
    recorder_note(p->host->recorder,
                  &(struct recorder_about){api_kind(API_POD), p->ns, p->name, p->uid}, warning,
                  reason, hk_str(message));
}

void pod_wake_at(struct pod *p, int64_t at_ns)
{
    p->due_ns = HK_MIN(p->due_ns, at_ns);
}
