// SPDX-License-Identifier: Apache-2.0
// Streams to pods: exec, attach, portforward and proxy are CONNECT operations for admission. The
// node serves the stream itself; here policies and webhooks are asked whether it may begin.
#include "store/rest_policy_priv.h"

bool rest_connect_asks(struct rest *r)
{
    return webhook_table(r) || policy_table(r);
}

int rest_connect(struct rest_call *c)
{
    struct json options = json_clone(c->req->body, &c->mem);
    const struct api_kind kind = {
        .id = API_NKINDS,
        .group = "",
        .version = "v1",
        .kind = rest_connect_kind(c->req->subresource),
        .plural = "pods",
        .singular = "pod",
        .namespaced = true,
    };
    struct webhook_subject s = {
        .verb = ADMIT_CONNECT,
        .row = c->k,
        .kind = &kind,
        .sub = c->req->subresource,
        .ns = c->ns,
        .name = c->name,
        .obj = &options,
    };

    if (rest_webhook_mutate(c, &s) < 0 || rest_webhook_validate(c, &s) < 0) {
        return c->rc;
    }
    if (!json_equal(&options, c->req->body)) {
        return rest_fail(c, 500, HK_EIO, "InternalError",
                         "Internal error occurred: a webhook or policy changed the options of "
                         "%s, which this server does not support",
                         c->req->subresource);
    }
    rest_succeed(c, 200);
    return 0;
}
