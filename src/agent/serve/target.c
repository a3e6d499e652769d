// SPDX-License-Identifier: Apache-2.0
// Finds what a request asks for, and words the answer when there is no such thing.
#include "agent/serve/target.h"

#include "agent/serve/channels.h"
#include "net/node_api.h"
#include "net/query.h"

static int serve_choose_container(struct pod *p, struct hk_str name, struct container **ret,
                                  struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf names = {0};

    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        if (hk_str_eq(pod_container_at(p, i)->name, name)) {
            *ret = pod_container_at(p, i);
            return 0;
        }
        if (i >= p->ninit && i < p->ncontainer) {
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

int serve_find(struct serve *s, const struct node_call *call, const struct query *q,
               struct container **ret, struct hk_err *err)
{
    const struct hk_str name = call->container.n > 0 ? call->container : query_get(q, "container");
    struct pod *p = pods_find_named(s->pods, call->ns, call->pod);

    if (!p || p->gone) {
        return hk_fail(err, HK_ENOTFOUND, "pods \"%.*s\" not found on this node",
                       HK_FMT(call->pod));
    }
    return serve_choose_container(p, name, ret, err);
}

int serve_find_running(struct serve *s, const struct node_call *call, const struct query *q,
                       struct container **ret, struct hk_err *err)
{
    const int rc = serve_find(s, call, q, ret, err);

    if (rc < 0) {
        return rc;
    }
    if ((*ret)->state != CONTAINER_RUNNING) {
        return hk_fail(err, HK_EINVAL, "container %.*s of pod %.*s is not running",
                       HK_FMT((*ret)->name), HK_FMT(call->pod));
    }
    return 0;
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

void serve_status(int code, const char *reason, const char *message, struct hk_buf *out)
{
    hk_buf_adds(out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                     "\"status\":\"Failure\",\"message\":");
    json_write_str(hk_str(message), out);
    hk_buf_addf(out, ",\"reason\":\"%s\",\"code\":%d}\n", reason, code);
}
