// SPDX-License-Identifier: Apache-2.0
// vcctl output: tables of flows and templates, and whole objects as text.
#include "cli/show_priv.h"
#include "codec/yaml.h"

enum { ROOM = 4 };

void show_flows(struct api_object *const *flows, uint32_t n, int64_t now_ns, struct hk_buf *out)
{
    HK_AUTO(show_table_fini)
    struct show_table t = {.heads = {"Name", "Namespace", "Phase", "Age"},
                           .ncolumns = 4,
                           .head_room = ROOM,
                           .room = ROOM};
    HK_AUTO(hk_buf_fini) struct hk_buf age = {0};

    if (n == 0) {
        hk_buf_adds(out, SHOW_NOTHING);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct json *flow = &flows[i]->root;
        hk_buf_clear(&age);
        show_age(json_at(flow, "metadata.creationTimestamp"), now_ns, &age);
        show_table_add(&t, flows[i]->name);
        show_table_add(&t, flows[i]->ns);
        show_table_add(&t, json_str_at(flow, "status.state.phase"));
        show_table_add(&t, hk_buf_str(&age));
    }
    show_table_write(&t, out);
}

void show_templates(struct api_object *const *templates, uint32_t n, struct hk_buf *out)
{
    HK_AUTO(show_table_fini)
    struct show_table t = {
        .heads = {"Name", "Namespace"}, .ncolumns = 2, .head_room = ROOM, .room = ROOM};

    if (n == 0) {
        hk_buf_adds(out, SHOW_NOTHING);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        show_table_add(&t, templates[i]->name);
        show_table_add(&t, templates[i]->ns);
    }
    show_table_write(&t, out);
}

/* The object without managedFields, its members in the order of Go's types. */
static struct json show_flow_ordered_copy(const struct api_object *obj, struct hk_arena *a)
{
    static const char *const first[] = {"kind", "apiVersion", "metadata", "spec", "status"};
    const struct api_kind *kind = obj->kind;
    struct json all = json_shallow(&obj->root, a), ret = json_make_object();
    struct json meta = json_shallow(json_get(&obj->root, "metadata"), a);

    json_del(&meta, "managedFields");
    json_set(&all, a, "metadata", meta);
    json_set_cstr(&all, a, "kind", kind->kind);
    json_set_cstr(&all, a, "apiVersion", hk_arena_printf(a, "%s/%s", kind->group, kind->version));
    for (size_t k = 0; k < HK_LEN(first); k++) {
        const struct json *v = json_get(&all, first[k]);
        if (v) {
            json_set(&ret, a, first[k], *v);
        }
    }
    return ret;
}

void show_whole(const struct api_object *obj, const char *format, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    const struct json whole = show_flow_ordered_copy(obj, &mem);

    if (strcmp(format, "json") == 0) {
        json_write_pretty(&whole, 2, out);
    } else if (strcmp(format, "yaml") == 0) {
        yaml_write(&whole, out);
    } else {
        hk_buf_addf(out, "Unsupported format: %s", format);
    }
}
