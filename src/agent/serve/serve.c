// SPDX-License-Identifier: Apache-2.0
// Serves requests about pods of the node: calls log, exec, attach or
// port_forward, and answers when they fail.
#include "agent/serve/serve.h"

#include "agent/serve/attach.h"
#include "agent/serve/exec.h"
#include "agent/serve/log.h"
#include "agent/serve/port_forward.h"
#include "agent/serve/stream_session.h"
#include "agent/serve/target.h"
#include "net/node_api.h"

static void serve_reply_error(const struct node_call *call, int rc, const char *message)
{
    static const struct http_header json = {HK_STR("Content-Type"), HK_STR("application/json")},
                                    text = {HK_STR("Content-Type"), HK_STR("text/plain")};
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};
    const int status = rc == -HK_ENOTFOUND ? 404
                       : rc == -HK_EUNSUP  ? 501
                       : rc == -HK_EBUSY   ? 503
                                           : 400;

    if (call->kubelet && hk_str_is(call->sub, "log")) { /* the API server makes a Status of it */
        hk_buf_adds(&body, message);
        http_reply(call->http, status, &text, 1, &body);
        return;
    }
    serve_status(status,
                 status == 404   ? "NotFound"
                 : status == 501 ? "NotImplemented"
                 : status == 503 ? "ServiceUnavailable"
                                 : "BadRequest",
                 message, &body);
    http_reply(call->http, status, &json, 1, &body);
}

static int serve_dispatch(struct serve *s, const struct node_call *call, struct hk_err *err)
{
    if (s->host->o.runtime->ops->hollow) {
        return hk_fail(err, HK_EINVAL, "nothing is run on a simulated node");
    }
    if (hk_str_is(call->sub, "log")) {
        return pod_log_serve(s, call, err);
    }
    if (hk_str_is(call->sub, "exec") && s->host->o.loop) {
        return pod_exec_serve(s, call, err);
    }
    if (hk_str_is(call->sub, "attach") && s->host->o.loop) {
        return pod_attach_serve(s, call, err);
    }
    if (hk_str_is(call->sub, "portforward") && s->host->o.loop) {
        return port_forward_serve(s, call, err);
    }
    return hk_fail(err, HK_EUNSUP, "this node does not offer %.*s of pods", HK_FMT(call->sub));
}

void serve_answer(struct serve *s, const struct node_call *call)
{
    struct hk_err err = {0};
    const int rc = serve_dispatch(s, call, &err);

    if (rc < 0) {
        serve_reply_error(call, rc, err.text);
    }
    hk_arena_clear(&s->host->mem);
}

void serve_on_end(struct serve *s, uint64_t id, const struct runtime_end *end)
{
    pod_exec_on_end(s, id, end);
}

int64_t serve_tick(struct serve *s, int64_t now_ns)
{
    port_forward_tick(s);
    return pod_log_tick(s, now_ns);
}

void serve_init(struct serve *s, struct pods *ps)
{
    *s = (struct serve){.host = ps->host, .pods = ps};
}

void serve_fini(struct serve *s)
{
    stream_session_end_all(s);
    port_forward_end_all(s);
    pod_log_fini(s);
}
