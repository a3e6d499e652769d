// SPDX-License-Identifier: Apache-2.0
// Serves requests about pods of the node: finds pod and container, and calls log, exec or attach.
#include "agent/agent_priv.h"
#include "agent/channels.h"

#include "net/node_api.h"
#include "net/query.h"

/* ---- finding the pod ---- */

static int serve_choose_container(struct pod *p, struct hk_str name, struct container **ret,
                                  struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf names = {0};

    for (uint32_t i = 0; i < p->ncontainer; i++) {
        if (hk_str_eq(p->containers[i].name, name)) {
            *ret = &p->containers[i];
            return 0;
        }
        if (i >= p->ninit) {
            hk_buf_addf(&names, "%s%.*s", names.len > 0 ? " " : "", HK_FMT(p->containers[i].name));
        }
    }
    if (name.n > 0) {
        return hk_fail(err, HK_EINVAL, "container %.*s is not valid for pod %.*s", HK_FMT(name),
                       HK_FMT(p->name));
    }
    if (p->ncontainer - p->ninit == 1) {
        *ret = &p->containers[p->ninit];
        return 0;
    }
    return hk_fail(err, HK_EINVAL,
                   "a container name must be specified for pod %.*s, choose one of: [%s]",
                   HK_FMT(p->name), names.data);
}

int serve_find(struct agent *a, const struct node_call *call, const struct query *q,
               struct container **ret, struct hk_err *err)
{
    const struct hk_str name = call->container.n > 0 ? call->container : query_get(q, "container");
    struct pod *p = agent_pod_named(a, call->ns, call->pod);

    if (!p || p->gone) {
        return hk_fail(err, HK_ENOTFOUND, "pods \"%.*s\" not found on this node",
                       HK_FMT(call->pod));
    }
    return serve_choose_container(p, name, ret, err);
}

int serve_find_running(struct agent *a, const struct node_call *call, const struct query *q,
                       struct container **ret, struct hk_err *err)
{
    const int rc = serve_find(a, call, q, ret, err);

    if (rc == 0 && (*ret)->state != CONTAINER_RUNNING) {
        return hk_fail(err, HK_EINVAL, "container %.*s of pod %.*s is not running",
                       HK_FMT((*ret)->name), HK_FMT(call->pod));
    }
    return rc;
}

unsigned serve_wants(const struct node_call *call, const struct query *q)
{
    static const struct {
        enum channel channel;
        const char *api, *kubelet;
    } words[] = {
        {CHANNEL_STDIN, "stdin", "input"},
        {CHANNEL_STDOUT, "stdout", "output"},
        {CHANNEL_STDERR, "stderr", "error"},
        {CHANNEL_RESIZE, "tty", "tty"},
    };
    unsigned set = 0;

    for (size_t i = 0; i < HK_LEN(words); i++) {
        if (query_bool(q, call->kubelet ? words[i].kubelet : words[i].api)) {
            set |= 1u << words[i].channel;
        }
    }
    return set;
}

/* ---- answers ---- */

void serve_status(int code, const char *reason, const char *message, struct hk_buf *out)
{
    hk_buf_adds(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                     "\"status\":\"Failure\",\"message\":");
    json_write_str(hk_str(message), out);
    hk_buf_addf(out, ",\"reason\":\"%s\",\"code\":%d}\n", reason, code);
}

static void serve_reply_error(const struct node_call *call, int rc, const char *message)
{
    static const struct http_header json = {HK_STR("Content-Type"), HK_STR("application/json")},
                                    text = {HK_STR("Content-Type"), HK_STR("text/plain")};
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
    const int status = rc == -HK_ENOTFOUND ? 404 : rc == -HK_EUNSUP ? 501 : 400;

    if (call->kubelet && hk_str_is(call->sub, "log")) { /* the API server makes a Status of it */
        hk_buf_adds(&body, message);
        http_reply(call->http, status, &text, 1, &body);
        return;
    }
    serve_status(status,
                 status == 404   ? "NotFound"
                 : status == 501 ? "NotImplemented"
                                 : "BadRequest",
                 message, &body);
    http_reply(call->http, status, &json, 1, &body);
}

static int serve_dispatch(struct agent *a, const struct node_call *call, struct hk_err *err)
{
    if (a->o.runtime->ops->hollow) {
        return hk_fail(err, HK_EINVAL, "nothing is run on a simulated node");
    }
    if (hk_str_is(call->sub, "log")) {
        return pod_log_serve(a, call, err);
    }
    if (hk_str_is(call->sub, "exec") && a->o.loop) {
        return pod_exec_serve(a, call, err);
    }
    if (hk_str_is(call->sub, "attach") && a->o.loop) {
        return pod_attach_serve(a, call, err);
    }
    return hk_fail(err, HK_EUNSUP, "this node does not offer %.*s of pods", HK_FMT(call->sub));
}

void agent_serve(void *ctx, const struct node_call *call)
{
    struct agent *a = ctx;
    struct hk_err err = {0};
    const int rc = serve_dispatch(a, call, &err);

    if (rc < 0) {
        serve_reply_error(call, rc, err.text);
    }
    hk_arena_clear(&a->mem);
}
