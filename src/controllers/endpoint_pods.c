// SPDX-License-Identifier: Apache-2.0
// The facts of a pod, of which endpoints are made:
//
//   {"endpoint": {addresses, nodeName, targetRef}, "serving", "terminating", "hostname", "subdomain",
//    "ports": {"NAME/PROTOCOL": NUMBER}}
//
// They are kept as text and parsed only for the pods of the Service at hand.
#include "controllers/endpoint_pods.h"

#include "controllers/kinds.h"

static const struct hk_str none = {"", 0};

/* ---- labels ---- */

static uint64_t endpoint_label_hash(const struct json_member *m)
{
    const struct hk_str value = json_str(&m->value, none);

    return hk_hash(value.s, value.n, hk_hash(m->key.s, m->key.n, 5));
}

static void endpoint_labels_set(endpoint_labels *l, const struct json *map)
{
    hk_vec_clear(l);
    for (uint32_t i = 0; json_is(map, JSON_OBJECT) && i < map->len; i++) {
        hk_vec_push(l, endpoint_label_hash(&map->members[i]));
    }
}

static bool endpoint_labels_have(const endpoint_labels *l, uint64_t hash)
{
    for (uint32_t i = 0; i < l->len; i++) {
        if (l->at[i] == hash) {
            return true;
        }
    }
    return false;
}

/* Every requirement of the selector holds. */
static bool endpoint_labels_match(const endpoint_labels *selector, const endpoint_labels *labels)
{
    for (uint32_t i = 0; i < selector->len; i++) {
        if (!endpoint_labels_have(labels, selector->at[i])) {
            return false;
        }
    }
    return selector->len > 0;
}

static bool endpoint_labels_equal(const endpoint_labels *a, const endpoint_labels *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->at, b->at, a->len * sizeof(*a->at)) == 0);
}

/* ---- the facts of a pod ---- */

static void endpoint_pods_copy(struct json *to, struct hk_arena *a, const char *key,
                               const struct json *v)
{
    if (v) {
        json_set(to, a, key, *v);
    }
}

static struct json endpoint_pods_make_endpoint(const struct json *root, struct hk_arena *a)
{
    const struct json *meta = json_get(root, "metadata");
    struct json endpoint = json_make_object(), ref = json_make_object();

    json_push(json_set_array(&endpoint, a, "addresses"), a, *json_at(root, "status.podIP"));
    endpoint_pods_copy(&endpoint, a, "nodeName", json_at(root, "spec.nodeName"));
    json_set_cstr(&ref, a, "kind", "Pod");
    endpoint_pods_copy(&ref, a, "namespace", json_get(meta, "namespace"));
    endpoint_pods_copy(&ref, a, "name", json_get(meta, "name"));
    endpoint_pods_copy(&ref, a, "uid", json_get(meta, "uid"));
    json_set(&endpoint, a, "targetRef", ref);
    return endpoint;
}

static void endpoint_pods_add_ports(struct json *to, struct hk_arena *a,
                                    const struct json *containers, bool sidecars_only)
{
    for (uint32_t i = 0; i < json_len(containers); i++) {
        const struct json *c = json_item(containers, i), *ports = json_get(c, "ports");

        if (sidecars_only && !hk_str_is(json_str_field(c, "restartPolicy"), "Always")) {
            continue;
        }
        for (uint32_t k = 0; k < json_len(ports); k++) {
            const struct json *port = json_item(ports, k);
            const struct hk_str name = json_str_field(port, "name");
            const struct hk_str protocol = json_str(json_get(port, "protocol"), HK_STR("TCP"));

            if (name.n > 0) {
                json_set_int(to, a, hk_arena_printf(a, "%.*s/%.*s", HK_FMT(name), HK_FMT(protocol)),
                             json_int(json_get(port, "containerPort"), 0));
            }
        }
    }
}

static bool endpoint_pods_has_ended(const struct json *root)
{
    const struct hk_str phase = json_str_at(root, "status.phase");

    return hk_str_is(phase, "Succeeded") || hk_str_is(phase, "Failed");
}

/* Writes nothing when the pod is no endpoint. */
static void endpoint_pods_write_facts(const struct json *root, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json facts = json_make_object(), ports = json_make_object();

    if (!root || json_str_at(root, "status.podIP").n == 0 || endpoint_pods_has_ended(root)) {
        return;
    }
    endpoint_pods_add_ports(&ports, &a, json_at(root, "spec.initContainers"), true);
    endpoint_pods_add_ports(&ports, &a, json_at(root, "spec.containers"), false);
    json_set(&facts, &a, "endpoint", endpoint_pods_make_endpoint(root, &a));
    json_set_bool(&facts, &a, "serving", kinds_is_true(root, "Ready"));
    json_set_bool(&facts, &a, "terminating", json_at(root, "metadata.deletionTimestamp") != NULL);
    endpoint_pods_copy(&facts, &a, "hostname", json_at(root, "spec.hostname"));
    endpoint_pods_copy(&facts, &a, "subdomain", json_at(root, "spec.subdomain"));
    json_set(&facts, &a, "ports", ports);
    json_write(&facts, out);
}

/* ---- the table ---- */

static uint32_t endpoint_space_of(struct endpoint_pods *p, struct hk_str ns)
{
    const uint64_t key = hk_hash(ns.s, ns.n, 4) >> 1; /* the map reserves the largest key */
    uint32_t at = hk_map_get(&p->space_of, key);

    if (at == HK_NONE) {
        at = p->spaces.len;
        hk_vec_push(&p->spaces, (struct endpoint_space){0});
        hk_map_put(&p->space_of, key, at);
    }
    return at;
}

static struct endpoint_pod *endpoint_pods_row(struct endpoint_pods *p, uint32_t row)
{
    while (p->pods.len <= row) {
        hk_vec_push(&p->pods, (struct endpoint_pod){.space = HK_NONE});
    }
    return &p->pods.at[row];
}

static struct endpoint_selector *endpoint_selectors_row(struct endpoint_pods *p, uint32_t row)
{
    while (p->selectors.len <= row) {
        hk_vec_push(&p->selectors, (struct endpoint_selector){.space = HK_NONE});
    }
    return &p->selectors.at[row];
}

static void endpoint_pods_remove(struct endpoint_pods *p, struct endpoint_pod *pod)
{
    struct endpoint_space *space;

    if (pod->space == HK_NONE) {
        return;
    }
    space = &p->spaces.at[pod->space];
    hk_vec_swap_remove(&space->pods, pod->at);
    if (pod->at < space->pods.len) {
        p->pods.at[space->pods.at[pod->at]].at = pod->at;
    }
    pod->space = HK_NONE;
}

static void endpoint_selectors_remove(struct endpoint_pods *p, struct endpoint_selector *s)
{
    struct endpoint_space *space;

    if (s->space == HK_NONE) {
        return;
    }
    space = &p->spaces.at[s->space];
    hk_vec_swap_remove(&space->selectors, s->at);
    if (s->at < space->selectors.len) {
        p->selectors.at[space->selectors.at[s->at]].at = s->at;
    }
    s->space = HK_NONE;
}

/* Calls fn for every Service that selects these labels now, or selected the old ones. */
static void endpoint_pods_tell(const struct endpoint_pods *p, uint32_t space,
                               const endpoint_labels *old, const endpoint_labels *now,
                               void (*fn)(void *ctx, uint32_t service), void *ctx)
{
    const struct endpoint_space *s = &p->spaces.at[space];

    for (uint32_t i = 0; i < s->selectors.len; i++) {
        const endpoint_labels *selector = &p->selectors.at[s->selectors.at[i]].labels;

        if (endpoint_labels_match(selector, old) || endpoint_labels_match(selector, now)) {
            fn(ctx, s->selectors.at[i]);
        }
    }
}

void endpoint_pods_put(struct endpoint_pods *p, uint32_t row, struct hk_str ns,
                       const struct json *root, void (*fn)(void *ctx, uint32_t service), void *ctx)
{
    struct endpoint_pod *pod = endpoint_pods_row(p, row);
    const uint32_t space = endpoint_space_of(p, ns);
    struct hk_buf facts = {0};
    endpoint_labels labels = {0};

    endpoint_pods_write_facts(root, &facts);
    if (facts.len > 0) {
        endpoint_labels_set(&labels, json_at(root, "metadata.labels"));
    }
    if (!hk_str_eq(hk_buf_str(&facts), hk_buf_str(&pod->facts)) ||
        !endpoint_labels_equal(&labels, &pod->labels)) {
        endpoint_pods_tell(p, space, &pod->labels, &labels, fn, ctx);
    }
    hk_buf_fini(&pod->facts);
    hk_vec_fini(&pod->labels);
    pod->facts = facts;
    memcpy(&pod->labels, &labels, sizeof(labels));
    if (facts.len == 0) {
        endpoint_pods_remove(p, pod);
    } else if (pod->space == HK_NONE) {
        pod->space = space;
        pod->at = p->spaces.at[space].pods.len;
        hk_vec_push(&p->spaces.at[space].pods, row);
    }
}

void endpoint_pods_select(struct endpoint_pods *p, uint32_t row, struct hk_str ns,
                          const struct json *root)
{
    struct endpoint_selector *s = endpoint_selectors_row(p, row);

    endpoint_labels_set(&s->labels, json_at(root, "spec.selector"));
    if (!root || s->labels.len == 0) {
        endpoint_selectors_remove(p, s);
    } else if (s->space == HK_NONE) {
        s->space = endpoint_space_of(p, ns);
        s->at = p->spaces.at[s->space].selectors.len;
        hk_vec_push(&p->spaces.at[s->space].selectors, row);
    }
}

void endpoint_pods_each(const struct endpoint_pods *p, uint32_t service, struct hk_arena *a,
                        void (*fn)(void *ctx, const struct json *facts), void *ctx)
{
    const struct endpoint_selector *s = &p->selectors.at[service];
    const struct endpoint_space *space;

    if (s->space == HK_NONE) {
        return;
    }
    space = &p->spaces.at[s->space];
    for (uint32_t i = 0; i < space->pods.len; i++) {
        const struct endpoint_pod *pod = &p->pods.at[space->pods.at[i]];

        if (endpoint_labels_match(&s->labels, &pod->labels)) {
            struct json *facts = hk_arena_alloc(a, sizeof(*facts));

            hk_assert(json_parse(hk_buf_str(&pod->facts), 0, a, facts, NULL) == 0);
            fn(ctx, facts);
        }
    }
}

void endpoint_pods_fini(struct endpoint_pods *p)
{
    for (uint32_t i = 0; i < p->spaces.len; i++) {
        hk_vec_fini(&p->spaces.at[i].pods);
        hk_vec_fini(&p->spaces.at[i].selectors);
    }
    for (uint32_t i = 0; i < p->pods.len; i++) {
        hk_vec_fini(&p->pods.at[i].labels);
        hk_buf_fini(&p->pods.at[i].facts);
    }
    for (uint32_t i = 0; i < p->selectors.len; i++) {
        hk_vec_fini(&p->selectors.at[i].labels);
    }
    hk_vec_fini(&p->spaces);
    hk_vec_fini(&p->pods);
    hk_vec_fini(&p->selectors);
    hk_map_fini(&p->space_of);
}
