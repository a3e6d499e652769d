// SPDX-License-Identifier: Apache-2.0
// Runs the startup, liveness and readiness probes of containers: a command, a TCP connection, an
// HTTP GET or a gRPC health check. The other probes wait until the startup probe has passed.
#include "agent/pod/probe.h"

#include "agent/pod/pods.h"
#include "net/probe.h"

#include <signal.h>

static const char *const fields[] = {
    [PROBE_STARTUP] = "startupProbe",
    [PROBE_LIVENESS] = "livenessProbe",
    [PROBE_READINESS] = "readinessProbe",
};
static const char *const names[] = {
    [PROBE_STARTUP] = "Startup",
    [PROBE_LIVENESS] = "Liveness",
    [PROBE_READINESS] = "Readiness",
};

static int64_t pod_probe_positive_field(const struct probe *p, const char *key, int64_t fallback)
{
    const int64_t n = json_int(json_get(p->spec, key), fallback);

    return n > 0 ? n : fallback;
}

static enum probe_kind pod_probe_kind(const struct probe *p)
{
    return (enum probe_kind)(p - p->c->probes);
}

/* ---- results ---- */

static void passed(struct container *c, enum probe_kind kind)
{
    if (kind == PROBE_STARTUP) {
        c->started = true;
        c->ready = !c->probes[PROBE_READINESS].spec;
        c->probes[kind].due_ns = INT64_MAX; /* no further startup probes */
    } else if (kind == PROBE_READINESS) {
        c->ready = true;
    }
}

static void failed(struct container *c, enum probe_kind kind)
{
    struct hk_arena *a = &c->pod->host->mem;

    if (kind == PROBE_READINESS) {
        c->ready = false;
        return;
    }
    pod_note(c->pod, false, "Killing",
             hk_arena_printf(a, "Container %.*s failed %s probe, will be restarted",
                             HK_FMT(c->name), names[kind]));
    c->ops->unhealthy(
        c, host_mono_ns(c->pod->host),
        json_int(json_get(c->probes[kind].spec, "terminationGracePeriodSeconds"), -1));
}

static void pod_probe_note_failure(const struct probe *p)
{
    pod_note(p->c->pod, true, "Unhealthy",
             hk_arena_printf(&p->c->pod->host->mem, "%s probe of container %.*s failed",
                             names[pod_probe_kind(p)], HK_FMT(p->c->name)));
}

static void answered(struct probe *p, bool good)
{
    const enum probe_kind kind = pod_probe_kind(p);

    p->exec = 0;
    p->due_ns = host_mono_ns(p->c->pod->host) +
                hk_seconds_ns(pod_probe_positive_field(p, "periodSeconds", 10));
    p->good = good ? p->good + 1 : 0;
    p->bad = good ? 0 : p->bad + 1;
    pod_touch(p->c->pod);
    if (good && p->good >= pod_probe_positive_field(p, "successThreshold", 1)) {
        passed(p->c, kind);
    }
    if (!good) {
        pod_probe_note_failure(p);
    }
    if (!good && p->bad >= pod_probe_positive_field(p, "failureThreshold", 3)) {
        p->bad = 0;
        failed(p->c, kind);
    }
}

static void probe_on_net(void *ctx, struct net_probe *np, bool good)
{
    struct probe *p = ctx;

    net_probe_free(np);
    p->net = NULL;
    answered(p, good);
}

/* ---- probes ---- */

static const char *const *pod_probe_copy_argv(const struct json *list, struct hk_arena *a)
{
    const uint32_t n = json_is(list, JSON_ARRAY) ? list->len : 0;
    const char **argv = hk_arena_array(a, n + 1, sizeof(*argv));

    for (uint32_t i = 0; i < n; i++) {
        argv[i] = hk_arena_str(a, json_str(json_item(list, i), HK_STR(""))).s;
    }
    argv[n] = NULL;
    return argv;
}

uint64_t probe_exec(struct container *c, const struct json *command)
{
    struct runtime *r = c->pod->host->o.runtime;
    uint64_t id = 0;

    if (!json_item(command, 0) ||
        r->ops->exec(r, c->id, pod_probe_copy_argv(command, &c->pod->host->mem), -1, -1, -1, &id,
                     NULL) < 0) {
        return 0;
    }
    pod_claim(c->pod, id);
    return id;
}

/* A number, or the name of a container port. */
static uint16_t port_of(const struct container *c, const struct json *port)
{
    const struct json *ports = json_get(c->spec, "ports");
    int64_t n = json_int(port, 0);

    for (uint32_t i = 0; json_is(port, JSON_STRING) && json_item(ports, i); i++) {
        if (json_equal(json_get(json_item(ports, i), "name"), port)) {
            n = json_int(json_get(json_item(ports, i), "containerPort"), 0);
        }
    }
    return n > 0 && n < 65536 ? (uint16_t)n : 0;
}

static const struct net_probe_header *headers_of(const struct json *action, struct hk_arena *a,
                                                 uint32_t *ret_n)
{
    const struct json *list = json_get(action, "httpHeaders");
    const uint32_t n = json_is(list, JSON_ARRAY) ? list->len : 0;
    struct net_probe_header *at = hk_arena_array(a, n, sizeof(*at));

    for (uint32_t i = 0; i < n; i++) {
        at[i].name = json_str(json_get(json_item(list, i), "name"), HK_STR(""));
        at[i].value = json_str(json_get(json_item(list, i), "value"), HK_STR(""));
    }
    *ret_n = n;
    return at;
}

enum net_probe_kind probe_http_kind(const struct json *action)
{
    return hk_str_is(json_str(json_get(action, "scheme"), HK_STR("")), "HTTPS") ? NET_PROBE_HTTPS
                                                                                : NET_PROBE_HTTP;
}

struct net_probe *probe_connect(const struct container *c, const struct json *action,
                                const struct net_probe_opts *o)
{
    const struct pod *pod = c->pod;
    const struct hk_str own = hk_str(pod->address[0] ? pod->address : pod->host->o.address);
    const struct hk_str host = json_str(json_get(action, "host"), HK_STR(""));
    struct net_probe_opts with = *o;

    with.host = host.n > 0 ? host : own;
    with.port = port_of(c, json_get(action, "port"));
    with.path = o->kind == NET_PROBE_GRPC ? json_str(json_get(action, "service"), HK_STR(""))
                                          : json_str(json_get(action, "path"), HK_STR("/"));
    with.headers = headers_of(action, &pod->host->mem, &with.nheader);
    return pod->host->o.loop && with.port > 0 ? net_probe_new(pod->host->o.loop, &with) : NULL;
}

static bool pod_probe_start_connect(struct probe *p, const struct json *action,
                                    enum net_probe_kind kind)
{
    p->net = probe_connect(
        p->c, action,
        &(struct net_probe_opts){
            .kind = kind,
            .timeout_ns = hk_seconds_ns(pod_probe_positive_field(p, "timeoutSeconds", 1)),
            .done = probe_on_net,
            .ctx = p});
    return p->net != NULL;
}

static void pod_probe_start(struct probe *p, int64_t now_ns)
{
    const struct json *action;
    bool asked = false;

    if ((action = json_get(p->spec, "exec"))) {
        p->exec = probe_exec(p->c, json_get(action, "command"));
        asked = p->exec != 0;
        p->due_ns = now_ns + hk_seconds_ns(pod_probe_positive_field(p, "timeoutSeconds", 1));
    } else if ((action = json_get(p->spec, "httpGet"))) {
        asked = pod_probe_start_connect(p, action, probe_http_kind(action));
    } else if ((action = json_get(p->spec, "tcpSocket"))) {
        asked = pod_probe_start_connect(p, action, NET_PROBE_TCP);
    } else if ((action = json_get(p->spec, "grpc"))) {
        asked = pod_probe_start_connect(p, action, NET_PROBE_GRPC);
    }
    if (!asked) {
        answered(p, false);
    }
}

static void pod_probe_kill_exec(struct probe *p)
{
    struct runtime *r = p->c->pod->host->o.runtime;

    r->ops->kill(r, p->exec, SIGKILL);
    answered(p, false);
}

static int64_t pod_probe_tick(struct probe *p, int64_t now_ns)
{
    const bool silent = pod_probe_kind(p) != PROBE_STARTUP && !p->c->started;

    if (!p->spec || p->net || silent || p->c->stop != STOP_NOT) {
        return INT64_MAX;
    }
    if (p->due_ns <= now_ns && p->exec) {
        pod_probe_kill_exec(p);
    } else if (p->due_ns <= now_ns) {
        pod_probe_start(p, now_ns);
    }
    return p->net ? INT64_MAX : p->due_ns;
}

int64_t probe_tick(struct container *c, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    for (size_t i = 0; i < PROBE_NKINDS; i++) {
        const int64_t at_ns = pod_probe_tick(&c->probes[i], now_ns);

        next_ns = HK_MIN(next_ns, at_ns);
    }
    return next_ns;
}

bool probe_on_end(struct container *c, uint64_t id, bool good)
{
    for (size_t i = 0; i < PROBE_NKINDS; i++) {
        if (id != 0 && c->probes[i].exec == id) {
            answered(&c->probes[i], good);
            return true;
        }
    }
    return false;
}

/* ---- setup and teardown ---- */

void probe_begin(struct container *c, int64_t now_ns)
{
    for (size_t i = 0; i < PROBE_NKINDS; i++) {
        struct probe *p = &c->probes[i];

        *p = (struct probe){.spec = json_get(c->spec, fields[i]), .c = c};
        p->due_ns = now_ns + hk_seconds_ns(json_int(json_get(p->spec, "initialDelaySeconds"), 0));
    }
    c->started = !c->probes[PROBE_STARTUP].spec;
    c->ready = c->started && !c->probes[PROBE_READINESS].spec;
}

void probe_end(struct container *c)
{
    for (size_t i = 0; i < PROBE_NKINDS; i++) {
        net_probe_free(c->probes[i].net);
        c->probes[i].net = NULL;
        c->probes[i].exec = 0;
        c->probes[i].spec = NULL;
    }
}
