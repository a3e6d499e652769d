// SPDX-License-Identifier: Apache-2.0
// EndpointSlices of one Service: at most 100 endpoints each, all with the same ports. An endpoint
// stays in the slice that it is in, so that a change of one pod writes one slice; slices that became
// empty are deleted, but for the last one.
#include "controllers/endpoints_priv.h"

#include "api/names.h"
#include "controllers/kinds.h"

enum { SLICE_MAX = 100 };
#define SLICE_MANAGER "endpointslice-controller.k8s.io"

static const struct hk_str none = {"", 0};

/* A slice: how it is, and how it should be. */
struct endpoints_slice {
    struct json was; /* null: to be created */
    uint32_t group;  /* HK_NONE: of ports that no pod has any more */
    HK_VEC(uint32_t) endpoints;
};

struct endpoints_slices {
    const struct endpoints_view *v;
    struct ctl *c;
    HK_VEC(struct endpoints_slice) at;
    bool *placed; /* by endpoint */
};

/* ---- what there is ---- */

static bool endpoints_slice_is_ours(const struct mirror *m, uint32_t row, struct hk_str ns,
                                    const struct json *root)
{
    return hk_str_eq(mirror_ns(m, row), ns) &&
           hk_str_is(json_str(kinds_label(root, API_LABEL_SLICE_MANAGER), none), SLICE_MANAGER);
}

/* The group that listens on the slice's ports. */
static uint32_t endpoints_slice_group(const struct endpoints_view *v, const struct json *slice)
{
    for (uint32_t i = 0; i < v->groups.len; i++) {
        if (json_equal(&v->groups.at[i].ports, json_get(slice, "ports"))) {
            return i;
        }
    }
    return HK_NONE;
}

static void endpoints_slices_read(struct endpoints_slices *s)
{
    const struct mirror *m = ctl_mirror(s->c, API_ENDPOINT_SLICE);
    const struct pass *t = s->v->t;

    for (uint32_t r = mirror_first(m, SLICES_BY_SERVICE, t->name); r != HK_NONE;
         r = mirror_next(m, SLICES_BY_SERVICE, r)) {
        const struct json root = mirror_read(m, r, t->mem);

        if (endpoints_slice_is_ours(m, r, t->ns, &root) &&
            !json_at(&root, "metadata.deletionTimestamp")) {
            hk_vec_push(&s->at, ((struct endpoints_slice){
                                    .was = root, .group = endpoints_slice_group(s->v, &root)}));
        }
    }
}

/* ---- which endpoint goes where ---- */

static bool endpoints_slice_has(const struct endpoints_slice *slice, struct hk_str address)
{
    const struct json *list = json_get(&slice->was, "endpoints");

    for (uint32_t i = 0; i < json_len(list); i++) {
        if (hk_str_eq(json_str(json_item(json_get(json_item(list, i), "addresses"), 0), none),
                      address)) {
            return true;
        }
    }
    return false;
}

static void endpoints_slices_keep(struct endpoints_slices *s)
{
    for (uint32_t i = 0; i < s->v->at.len; i++) {
        const struct endpoint *e = &s->v->at.at[i];

        for (uint32_t k = 0; k < s->at.len && !s->placed[i]; k++) {
            if (s->at.at[k].group == e->group && endpoints_slice_has(&s->at.at[k], e->address)) {
                hk_vec_push(&s->at.at[k].endpoints, i);
                s->placed[i] = true;
            }
        }
    }
}

/* A slice of the group with room; a new one when there is none. */
static struct endpoints_slice *endpoints_slices_find_room(struct endpoints_slices *s,
                                                          uint32_t group)
{
    for (uint32_t k = 0; k < s->at.len; k++) {
        if (s->at.at[k].group == group && s->at.at[k].endpoints.len < SLICE_MAX) {
            return &s->at.at[k];
        }
    }
    hk_vec_push(&s->at, (struct endpoints_slice){.group = group});
    return &s->at.at[s->at.len - 1];
}

static void endpoints_slices_place(struct endpoints_slices *s)
{
    s->placed = hk_arena_zalloc(s->v->t->mem, s->v->at.len + 1);
    endpoints_slices_keep(s);
    for (uint32_t i = 0; i < s->v->at.len; i++) {
        if (!s->placed[i]) {
            struct endpoints_slice *slice = endpoints_slices_find_room(s, s->v->at.at[i].group);

            hk_vec_push(&slice->endpoints, i);
        }
    }
    if (s->at.len == 0) { /* an empty slice says that the Service has no endpoints */
        hk_vec_push(&s->at, (struct endpoints_slice){.group = HK_NONE});
    }
}

/* ---- writing ---- */

static struct json endpoints_make_endpoint(const struct endpoints_view *v, const struct endpoint *e)
{
    struct hk_arena *a = v->t->mem;
    struct json endpoint = json_clone(json_get(&e->facts, "endpoint"), a);
    const struct hk_str hostname = endpoints_hostname(v, e);
    struct json *conditions = json_set_object(&endpoint, a, "conditions");

    json_set_bool(conditions, a, "ready", e->ready);
    json_set_bool(conditions, a, "serving", e->serving);
    json_set_bool(conditions, a, "terminating", e->terminating);
    if (hostname.n > 0) {
        json_set_str(&endpoint, a, "hostname", hostname);
    }
    return endpoint;
}

static struct json endpoints_make_list(const struct endpoints_view *v,
                                       const struct endpoints_slice *slice)
{
    struct json list = json_make_array();

    for (uint32_t i = 0; i < slice->endpoints.len; i++) {
        json_push(&list, v->t->mem, endpoints_make_endpoint(v, &v->at.at[slice->endpoints.at[i]]));
    }
    return list;
}

static struct json endpoints_slice_labels(const struct endpoints_view *v)
{
    struct json labels = endpoints_make_labels(v);

    json_set_str(&labels, v->t->mem, API_LABEL_SERVICE_NAME, v->name);
    json_set_cstr(&labels, v->t->mem, API_LABEL_SLICE_MANAGER, SLICE_MANAGER);
    return labels;
}

static void endpoints_slice_create(struct endpoints_slices *s, struct json *body)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    struct pass *t = s->v->t;
    struct json *meta = json_need(body, t->mem, "metadata", JSON_OBJECT);
    char suffix[6] = "";

    for (uint32_t i = 0; i < 5; i++) {
        suffix[i] = letters[hk_rand_below(ctl_rand(s->c), sizeof(letters) - 1)];
    }
    json_set_str(meta, t->mem, "namespace", t->ns);
    json_set_str(meta, t->mem, "name",
                 hk_str(hk_arena_printf(t->mem, "%.*s-%s", HK_FMT(t->name), suffix)));
    kinds_own(body, t->mem, s->v->service);
    json_set_cstr(body, t->mem, "addressType", "IPv4");
    pass_create(t, api_kind(API_ENDPOINT_SLICE), body);
}

static void endpoints_slice_write(struct endpoints_slices *s, const struct endpoints_slice *slice)
{
    const struct endpoints_view *v = s->v;
    struct hk_arena *a = v->t->mem;
    const bool exists = json_is(&slice->was, JSON_OBJECT);
    struct json body = exists ? json_clone(&slice->was, a) : json_make_object();

    json_set_cstr(&body, a, "apiVersion", "discovery.k8s.io/v1");
    json_set_cstr(&body, a, "kind", "EndpointSlice");
    json_set(json_need(&body, a, "metadata", JSON_OBJECT), a, "labels", endpoints_slice_labels(v));
    json_set(&body, a, "endpoints", endpoints_make_list(v, slice));
    if (slice->group != HK_NONE) {
        json_set(&body, a, "ports", v->groups.at[slice->group].ports);
    } else if (!exists) {
        json_set_array(&body, a, "ports");
    }
    if (!exists) {
        endpoints_slice_create(s, &body);
    } else if (!json_equal(&body, &slice->was)) {
        pass_update(v->t, api_kind(API_ENDPOINT_SLICE), &body);
    }
}

static void endpoints_slice_delete(struct pass *t, const struct json *slice)
{
    pass_delete(t, api_kind(API_ENDPOINT_SLICE), t->ns, json_str_at(slice, "metadata.name"),
                json_str_at(slice, "metadata.uid"), PORT_PROPAGATE_DEFAULT);
}

/* An empty slice stays when no slice has an endpoint: the first one. */
static void endpoints_slices_write(struct endpoints_slices *s)
{
    bool any = s->v->at.len > 0;

    for (uint32_t i = 0; i < s->at.len; i++) {
        const struct endpoints_slice *slice = &s->at.at[i];

        if (slice->endpoints.len == 0 && any) {
            endpoints_slice_delete(s->v->t, &slice->was);
        } else {
            endpoints_slice_write(s, slice);
            any = true;
        }
    }
}

void endpoints_write_slices(struct ctl *c, const struct endpoints_view *v)
{
    struct endpoints_slices s = {.v = v, .c = c};

    endpoints_slices_read(&s);
    endpoints_slices_place(&s);
    endpoints_slices_write(&s);
    for (uint32_t i = 0; i < s.at.len; i++) {
        hk_vec_fini(&s.at.at[i].endpoints);
    }
    hk_vec_fini(&s.at);
}

void endpoints_remove_slices(struct ctl *c, struct pass *t)
{
    const struct mirror *m = ctl_mirror(c, API_ENDPOINT_SLICE);

    for (uint32_t r = mirror_first(m, SLICES_BY_SERVICE, t->name); r != HK_NONE;
         r = mirror_next(m, SLICES_BY_SERVICE, r)) {
        const struct json root = mirror_read(m, r, t->mem);

        if (endpoints_slice_is_ours(m, r, t->ns, &root)) {
            endpoints_slice_delete(t, &root);
        }
    }
}
