// SPDX-License-Identifier: Apache-2.0
// Changes of single objects, on copies.
#include "sim/explain_priv.h"

void explain_edit_put(struct explain_edits *e, enum api_kind_id kind, struct json doc)
{
    hk_vec_push(e, ((struct explain_edit){.kind = api_kind(kind), .doc = doc}));
}

void explain_edit_gone(struct explain_edits *e, enum api_kind_id kind, struct hk_str ns,
                       struct hk_str name, struct hk_arena *a)
{
    struct json doc = json_make_object();
    struct json *meta = json_put(&doc, a, HK_STR("metadata"), json_make_object());

    json_put(meta, a, HK_STR("namespace"), json_make_str(hk_arena_str(a, ns)));
    json_put(meta, a, HK_STR("name"), json_make_str(hk_arena_str(a, name)));
    hk_vec_push(e, ((struct explain_edit){.kind = api_kind(kind), .doc = doc, .gone = true}));
}

struct json *explain_edit_need(struct json *doc, const char *path, struct hk_arena *a)
{
    struct hk_str rest = hk_str(path), key;

    while (hk_str_cut(&rest, '.', &key)) {
        struct json *v = (struct json *)json_get_str(doc, key);
        doc = json_is(v, JSON_OBJECT) ? v : json_put(doc, a, key, json_make_object());
    }
    return doc;
}

bool explain_edit_request(struct json *pod, struct hk_str resource, struct hk_str amount,
                          struct hk_arena *a)
{
    const struct json *containers = json_at(pod, "spec.containers");
    bool done = false;

    for (uint32_t i = 0; json_is(containers, JSON_ARRAY) && i < containers->len; i++) {
        struct json *c = &containers->items[i];
        const struct json *req = json_get_str(json_at(c, "resources.requests"), resource);
        const struct json *lim = json_get_str(json_at(c, "resources.limits"), resource);
        if (!req && !lim) {
            continue;
        }
        if (done) {
            return false; /* spread over several containers: no single number to change */
        }
        json_put(explain_edit_need(c, "resources.requests", a), a, resource, json_make_str(amount));
        done = true;
    }
    return done;
}
