// SPDX-License-Identifier: Apache-2.0
// Writes the ConfigMap, one write at a time, and retries after a pause while it fails.
#include "daemon/conf_map.h"

enum { PAUSE_S = 5 };

static void conf_map_on_msg(void *ctx, const struct port_msg *msg)
{
    struct conf_map *m = ctx;

    if (msg->type == PORT_DONE && msg->call == m->call) {
        m->call = 0;
        m->said = msg->rc == 0 || msg->rc == -HK_ENOTFOUND ? m->saying : m->said;
    }
}

/* Ignored: if this fails, so does the ConfigMap that follows it. */
static void conf_map_on_namespace(void *ctx, const struct port_msg *msg)
{
}

static uint64_t conf_map_apply(struct port *port, enum api_kind_id kind, const struct json *body,
                               struct port_sink sink)
{
    const struct port_request req = {
        .verb = PORT_PATCH,
        .kind = api_kind(kind),
        .ns = json_str(json_at(body, "metadata.namespace"), HK_STR("")),
        .name = json_str(json_at(body, "metadata.name"), HK_STR("")),
        .body = body,
        .patch = PORT_PATCH_APPLY,
        .field_manager = HK_STR("hekla"),
        .force = true,
    };

    return port_submit(port, &req, sink);
}

static struct json object(enum api_kind_id kind, const char *ns, const char *name,
                          struct hk_arena *a)
{
    struct json doc = json_make_object(), meta = json_make_object();

    json_set_cstr(&meta, a, "name", name);
    if (ns) {
        json_set_cstr(&meta, a, "namespace", ns);
    }
    json_set_cstr(&doc, a, "apiVersion", "v1");
    json_set_cstr(&doc, a, "kind", api_kind(kind)->kind);
    json_set(&doc, a, "metadata", meta);
    return doc;
}

static uint64_t conf_map_write_map(struct conf_map *m, struct port *port, struct hk_str text)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct json ns = object(API_NAMESPACE, NULL, CONF_MAP_NS, &a);
    struct json map = object(API_CONFIGMAP, CONF_MAP_NS, CONF_MAP_NAME, &a);

    json_set_str(json_set_object(&map, &a, "data"), &a, CONF_MAP_KEY, text);
    conf_map_apply(port, API_NAMESPACE, &ns, (struct port_sink){conf_map_on_namespace, NULL});
    return conf_map_apply(port, API_CONFIGMAP, &map, (struct port_sink){conf_map_on_msg, m});
}

int64_t conf_map_keep(struct conf_map *m, struct port *port, struct hk_clock *clock,
                      struct hk_str text)
{
    const uint64_t want = hk_hash(text.s, text.n, 1) | 1;
    const int64_t now_ns = clock->mono_ns(clock);

    if (m->call || m->said == want) {
        return INT64_MAX;
    }
    if (m->again_ns > now_ns) {
        return m->again_ns;
    }
    m->again_ns = now_ns + PAUSE_S * 1000000000LL;
    m->saying = want;
    m->call = text.n > 0
                  ? conf_map_write_map(m, port, text)
                  : port_delete(port, api_kind(API_CONFIGMAP), HK_STR(CONF_MAP_NS),
                                HK_STR(CONF_MAP_NAME), (struct port_sink){conf_map_on_msg, m});
    return INT64_MAX;
}
