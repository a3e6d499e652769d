// SPDX-License-Identifier: Apache-2.0
// Edits of single objects, made on copies. The change files collect them; explain_try.c applies
// them.
#include "explain/explain_priv.h"

void explain_edit_put(struct explain_edits *e, enum api_kind_id kind, struct json doc)
{
    hk_vec_push(e, ((struct explain_edit){.kind = api_kind(kind), .doc = doc}));
}

void explain_edit_gone(struct explain_edits *e, enum api_kind_id kind, struct hk_str ns,
                       struct hk_str name, struct hk_arena *a)
{
    struct json doc = json_make_object();
    struct json *meta = json_set_object(&doc, a, "metadata");

    json_set_str_copy(meta, a, "namespace", ns);
    json_set_str_copy(meta, a, "name", name);
    hk_vec_push(e, ((struct explain_edit){.kind = api_kind(kind), .doc = doc, .gone = true}));
}

bool explain_edit_request(struct json *pod, struct hk_str resource, struct hk_str amount,
                          struct hk_arena *a)
{
    const struct json *containers = json_at(pod, "spec.containers");
    bool done = false;

    for (uint32_t i = 0; i < json_len(containers); i++) {
        struct json *c = &containers->items[i];
        const struct json *req = json_get_str(json_at(c, "resources.requests"), resource);
        const struct json *lim = json_get_str(json_at(c, "resources.limits"), resource);
        if (!req && !lim) {
            continue;
        }
        if (done) {
            return false; /* in several containers: no single number to change */
        }
        json_put(json_need_at(c, a, "resources.requests", JSON_OBJECT), a, resource,
                 json_make_str(amount));
        done = true;
    }
    return done;
}
