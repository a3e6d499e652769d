// SPDX-License-Identifier: Apache-2.0
// Amounts of resources in JSON: reads and writes ResourceLists, computes the sums of a pod.
#include "admission/admission_priv.h"

bool amount_get(const struct json *list, struct hk_str name, struct quantity *ret)
{
    const struct json *v = json_get_str(list, name);
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (!v || v->type == JSON_NULL) {
        return false;
    }
    if (v->type == JSON_STRING) {
        return quantity_parse(json_str(v, HK_STR("")), ret, NULL) == 0;
    }
    json_write(v, &text);
    return quantity_parse(hk_buf_str(&text), ret, NULL) == 0;
}

const char *amount_text(struct quantity v, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    quantity_write(v, &text);
    return hk_arena_strndup(a, text.data, text.len);
}

void amount_put(struct json *list, struct hk_arena *a, struct hk_str name, struct quantity v)
{
    json_put(list, a, hk_arena_str(a, name), json_make_quantity(v, a));
}

/* A running sum that remembers whether anything was added. */
struct sum {
    struct quantity total;
    bool any;
};

static void sum_add(struct sum *s, struct quantity v)
{
    s->total = s->any ? quantity_add(s->total, v) : v;
    s->any = true;
}

static void sum_max(struct sum *s, const struct sum *other)
{
    if (other->any && (!s->any || quantity_cmp(s->total, other->total) < 0)) {
        *s = *other;
    }
}

static bool of_container(const struct json *container, const char *field, struct hk_str name,
                         struct quantity *ret)
{
    return amount_get(json_get(json_get(container, "resources"), field), name, ret);
}

/* Init containers run one after another. Sidecars keep running, so each init container adds to the
 * sidecars started before it. */
static void add_inits(const struct json *spec, const char *field, struct hk_str name,
                      struct sum *running)
{
    const struct json *inits = json_get(spec, "initContainers");
    struct sum sidecars = {0};
    struct sum peak = {0};
    struct quantity v;

    for (uint32_t i = 0; i < edit_len(inits); i++) {
        const struct json *c = json_item(inits, i);
        struct sum now = sidecars;
        if (!of_container(c, field, name, &v)) {
            continue;
        }
        sum_add(&now, v);
        sum_max(&peak, &now);
        if (hk_str_is(edit_str(c, "restartPolicy"), "Always")) {
            sidecars = now;
            sum_add(running, v);
        }
    }
    sum_max(running, &peak);
}

bool amount_of_pod(const struct json *spec, const char *field, struct hk_str name,
                   struct quantity *ret)
{
    const struct json *containers = json_get(spec, "containers");
    struct sum s = {0};
    struct quantity v;

    for (uint32_t i = 0; i < edit_len(containers); i++) {
        if (of_container(json_item(containers, i), field, name, &v)) {
            sum_add(&s, v);
        }
    }
    add_inits(spec, field, name, &s);
    if (of_container(spec, field, name, &v)) {
        s = (struct sum){.total = v, .any = true};
    }
    if (amount_get(json_get(spec, "overhead"), name, &v) &&
        (s.any || strcmp(field, "requests") == 0)) {
        sum_add(&s, v);
    }
    *ret = s.total;
    return s.any;
}
