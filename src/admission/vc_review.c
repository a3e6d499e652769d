// SPDX-License-Identifier: Apache-2.0
// Shared by the rules of several Volcano kinds: appending to the patch, reporting field errors as
// one text, and looking up queues. vc_rules.c calls the rules, the rules call this file.
#include "admission/vc_priv.h"

const char vc_both_tiers[] = "must not specify 'highestTierAllowed' and 'highestTierName' in "
                             "networkTopology simultaneously";

bool vc_has_both_tiers(const struct json *topology)
{
    return edit_has(topology, "highestTierAllowed") && edit_str(topology, "highestTierName").n > 0;
}

const char *const *vc_scheduler_names(const struct vc *v)
{
    static const char *const usual[] = {"volcano", NULL};
    const char *const *names = v->opts->scheduler_names;

    return names && names[0] ? names : usual;
}

void vc_patch(struct vc *v, const char *op, const char *path, struct json value)
{
    struct json step = json_make_object();

    json_set_cstr(&step, v->q->mem, "op", op);
    json_set_cstr(&step, v->q->mem, "path", path);
    json_set(&step, v->q->mem, "value", value);
    json_push(&v->patch, v->q->mem, step);
}

const struct json *vc_patch_spec(struct vc *v)
{
    static const struct json empty = {.type = JSON_OBJECT};
    const struct json *spec = json_get(v->q->obj, "spec");

    if (!edit_has(v->q->obj, "spec")) {
        vc_patch(v, "add", "/spec", json_make_object());
        return &empty;
    }
    return spec->type == JSON_OBJECT ? spec : NULL;
}

struct admission_request vc_scratch(const struct vc *v)
{
    return (struct admission_request){
        .verb = v->q->verb,
        .kind = v->q->kind,
        .ns = v->q->ns,
        .name = v->q->name,
        .mem = v->q->mem,
        .now_ns = v->q->now_ns,
    };
}

/* Equal messages are reported once, as Go's aggregates do. */
static bool is_reported(const struct admission_request *scratch, uint32_t i)
{
    const struct field_error *e = &scratch->errors.at[i];

    for (uint32_t k = 0; k < i; k++) {
        if (strcmp(e->field, scratch->errors.at[k].field) == 0 &&
            strcmp(e->message, scratch->errors.at[k].message) == 0) {
            return true;
        }
    }
    return false;
}

void vc_write_errors(struct vc *v, const struct admission_request *scratch)
{
    HK_AUTO(hk_buf_fini) struct hk_buf list = {0};
    uint32_t told = 0;

    for (uint32_t i = 0; i < scratch->errors.len; i++) {
        if (!is_reported(scratch, i)) {
            hk_buf_addf(&list, "%s%s: %s", told++ > 0 ? ", " : "", scratch->errors.at[i].field,
                        scratch->errors.at[i].message);
        }
    }
    hk_buf_addf(&v->why, told > 1 ? "[%s]" : "%s", hk_buf_str(&list).s);
}

const struct json *vc_queue(const struct vc *v, struct hk_str name)
{
    return admit_get(v->q, api_kind(API_QUEUE), HK_STR(""), name);
}

struct children {
    struct hk_str parent;
    bool (*fn)(void *arg, const struct json *queue);
    void *arg;
};

static bool pass_child(void *arg, const struct json *queue)
{
    const struct children *c = arg;

    return !hk_str_eq(edit_str(json_get(queue, "spec"), "parent"), c->parent) ||
           c->fn(c->arg, queue);
}

void vc_each_child(const struct vc *v, struct hk_str parent,
                   bool (*fn)(void *arg, const struct json *queue), void *arg)
{
    const struct admission_lookup *lookup = v->q->lookup;
    struct children c = {parent, fn, arg};

    if (lookup && lookup->each_child) {
        lookup->each_child(lookup->ctx, parent, fn, arg);
    } else {
        admit_each(v->q, api_kind(API_QUEUE), HK_STR(""), pass_child, &c);
    }
}

void vc_write_no_queue(struct vc *v, struct hk_str name)
{
    hk_buf_adds(&v->why, "queue.scheduling.volcano.sh ");
    json_write_str(name, &v->why);
    hk_buf_adds(&v->why, " not found");
}

struct hk_str vc_queue_state(const struct vc *v, const struct json *queue)
{
    const struct hk_str state = edit_str(json_get(queue, "status"), "state");

    return state.n == 0 && !v->opts->wait_for_queue_state ? HK_STR("Open") : state;
}
