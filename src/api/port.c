// SPDX-License-Identifier: Apache-2.0
// Shared by all implementations of the port: names of verbs and patch types, and common requests.
#include "api/port.h"

const char *port_verb_name(enum port_verb verb)
{
    static const char *const names[] = {
        [PORT_GET] = "get",       [PORT_LIST] = "list",
        [PORT_WATCH] = "watch",   [PORT_CREATE] = "create",
        [PORT_UPDATE] = "update", [PORT_PATCH] = "patch",
        [PORT_DELETE] = "delete", [PORT_DELETE_COLLECTION] = "deletecollection",
    };
    return names[verb];
}

const char *port_patch_media(enum port_patch type)
{
    static const char *const media[] = {
        [PORT_PATCH_JSON] = "application/json-patch+json",
        [PORT_PATCH_MERGE] = "application/merge-patch+json",
        [PORT_PATCH_STRATEGIC] = "application/strategic-merge-patch+json",
        [PORT_PATCH_APPLY] = "application/apply-patch+yaml",
    };
    return media[type];
}

void port_free(struct port *p)
{
    if (p) {
        p->ops->free(p);
    }
}

uint64_t port_get(struct port *p, const struct api_kind *kind, struct hk_str ns, struct hk_str name,
                  struct port_sink sink)
{
    const struct port_request req = {.verb = PORT_GET, .kind = kind, .ns = ns, .name = name};
    return port_submit(p, &req, sink);
}

uint64_t port_list(struct port *p, const struct api_kind *kind, struct hk_str ns,
                   struct port_sink sink)
{
    const struct port_request req = {.verb = PORT_LIST, .kind = kind, .ns = ns};
    return port_submit(p, &req, sink);
}

uint64_t port_watch(struct port *p, const struct api_kind *kind, struct hk_str ns, uint64_t rv,
                    struct port_sink sink)
{
    const struct port_request req = {
        .verb = PORT_WATCH, .kind = kind, .ns = ns, .rv = rv, .bookmarks = true};
    return port_submit(p, &req, sink);
}

uint64_t port_create(struct port *p, const struct api_kind *kind, struct hk_str ns,
                     const struct json *body, struct port_sink sink)
{
    const struct port_request req = {.verb = PORT_CREATE, .kind = kind, .ns = ns, .body = body};
    return port_submit(p, &req, sink);
}

uint64_t port_update(struct port *p, const struct api_kind *kind, const char *subresource,
                     const struct json *body, struct port_sink sink)
{
    const struct json *meta = json_get(body, "metadata");
    const struct port_request req = {
        .verb = PORT_UPDATE,
        .kind = kind,
        .ns = json_str_field(meta, "namespace"),
        .name = json_str_field(meta, "name"),
        .subresource = subresource,
        .body = body,
    };
    return port_submit(p, &req, sink);
}

uint64_t port_delete(struct port *p, const struct api_kind *kind, struct hk_str ns,
                     struct hk_str name, struct port_sink sink)
{
    const struct port_request req = {.verb = PORT_DELETE, .kind = kind, .ns = ns, .name = name};
    return port_submit(p, &req, sink);
}
