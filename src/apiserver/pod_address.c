// SPDX-License-Identifier: Apache-2.0
// A loopback address of a pod is reachable if its node is part of this process, or says itself that
// it is on this machine.
#include "apiserver/pod_address.h"

static bool is_loopback(struct hk_str host)
{
    return hk_str_starts(host, "127.") || hk_str_is(host, "::1");
}

struct hk_str pod_address_of_node(const struct json *node)
{
    const struct json *list = json_list_at(node, "status.addresses"), *one;

    for (uint32_t k = 0; (one = json_item(list, k)); k++) {
        if (hk_str_is(json_str_field(one, "type"), "InternalIP")) {
            return json_str_field(one, "address");
        }
    }
    return HK_STR("");
}

static bool is_node_here(const struct pod_address *a, struct hk_str node)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const struct rest_kind *k = rest_kind_find(a->rest, HK_STR(""), HK_STR("v1"), HK_STR("nodes"));
    const struct store_obj *o = k ? store_get(a->store, k->res, HK_STR(""), node) : NULL;
    struct json doc;

    return o && json_parse(hk_arena_str(&mem, o->text), 0, &mem, &doc, NULL) == 0 &&
           is_loopback(pod_address_of_node(&doc));
}

bool pod_address_reachable(const struct pod_address *a, struct hk_str host, struct hk_str node)
{
    if (!is_loopback(host) || node.n == 0) {
        return true;
    }
    return (a->nodes && a->nodes->has_node && a->nodes->has_node(a->nodes->ctx, node)) ||
           is_node_here(a, node);
}
