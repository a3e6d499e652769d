// SPDX-License-Identifier: Apache-2.0
// Streams to pods: exec, attach, portforward and proxy are CONNECT operations for admission. The
// node serves the stream itself; here policies and webhooks are asked whether it may begin.
#include "store/rest_policy_priv.h"

bool rest_connect_asks(struct rest *r)
{
    return webhook_table(r) || policy_table(r);
}

/* The options of a command are in the query of the URL, which the server writes anew; a port or a
 * path cannot be changed any more. */
static int answer_changed(struct rest_call *c, const struct api_kind *kind,
                          const struct json *options)
{
    const char *sub = c->req->subresource;

    if (strcmp(sub, "exec") == 0 || strcmp(sub, "attach") == 0) {
        return rest_answer_tree(c, kind, options);
    }
    return rest_fail(
        c, 500, HK_EIO, "InternalError",
        "Internal error occurred: a webhook or policy changed the options of %s, which "
        "this server does not support",
        sub);
}

int rest_connect(struct rest_call *c)
{
    struct json options = json_clone(c->req->body, &c->mem);
    const struct api_kind *kind = rest_connect_kind(c->req->subresource);
    struct webhook_subject s = {
        .verb = ADMIT_CONNECT,
        .row = c->k,
        .kind = kind,
        .sub = c->req->subresource,
        .ns = c->ns,
        .name = c->name,
        .obj = &options,
    };

    if (rest_webhook_mutate(c, &s) < 0 || rest_webhook_validate(c, &s) < 0) {
        return c->rc;
    }
    if (!json_equal(&options, c->req->body)) {
        return answer_changed(c, kind, &options);
    }
    rest_succeed(c, 200);
    return 0;
}
