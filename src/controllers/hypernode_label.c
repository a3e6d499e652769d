// SPDX-License-Identifier: Apache-2.0
// Creates HyperNodes from node labels. The configuration lists, for each type of network, the
// labels from the widest domain down to the node:
//
//   networkTopologyDiscovery:
//   - source: label
//     enabled: true
//     config:
//       networkTopologyTypes:
//         ib: [{nodeLabel: zone}, {nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]
//
// The last label is the node's own name and forms no domain. Each value of another label forms a
// domain: tier 1 contains nodes, higher tiers contain domains. A node belongs to the tiers up to
// the first label that it lacks. Types that use the same label share its domains.
#include "controllers/hypernode_priv.h"

#include "api/names.h"
#include "base/map.h"
#include "base/vec.h"
#include "codec/yaml.h"

#include <stdlib.h>

#define CONFIG_KEY "volcano-controller.conf"
#define TYPE_MAX 20u
#define TAIL 5u /* letters at the end of a domain's name, from a hash */

static const struct hk_str none = {"", 0};

struct domain {
    struct hk_str key, value, stem, name; /* stem: prefix of the name */
    int32_t tier;
    uint32_t parent; /* index or HK_NONE */
    HK_VEC(struct hk_str) nodes;
    HK_VEC(uint32_t) domains; /* indices */
};

struct discovery {
    struct pass *t;
    struct json config;     /* the ConfigMap */
    struct hk_intern known; /* "key\nvalue" of domains, "domain\nmember" of their members */
    struct hk_map at;       /* id of "key\nvalue" to index */
    HK_VEC(struct domain) domains;
};

static void discovery_fini(struct discovery *d)
{
    for (uint32_t i = 0; i < d->domains.len; i++) {
        hk_vec_fini(&d->domains.at[i].nodes);
        hk_vec_fini(&d->domains.at[i].domains);
    }
    hk_vec_fini(&d->domains);
    hk_map_fini(&d->at);
    hk_intern_fini(&d->known);
}

/* ---- the configuration ---- */

static void hypernode_label_warn_config(const struct discovery *d, const char *text)
{
    pass_event(d->t, &d->config, true, "BadConfiguration", CONFIG_KEY ": %s", text);
}

/* The entry of the source "label", if enabled. */
static const struct json *find_source(const struct discovery *d, const struct json *conf)
{
    const struct json *list = json_get(conf, "networkTopologyDiscovery"), *found = NULL;

    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct hk_str source = json_str(json_get(&list->items[i], "source"), none);

        if (!json_bool(json_get(&list->items[i], "enabled"), false)) {
            continue;
        }
        if (hk_str_is(source, "label")) {
            found = &list->items[i];
        } else {
            hypernode_label_warn_config(
                d, hk_arena_printf(d->t->mem, "unsupported source '%.*s', want 'label'",
                                   HK_FMT(source)));
        }
    }
    return found;
}

/* The network types; NULL when discovery is off. */
static const struct json *read_types(struct discovery *d)
{
    struct pass *t = d->t;
    const struct mirror *m = ctl_mirror(t->c, API_CONFIGMAP);
    const struct ctl_conf *own = ctl_conf(t->c);
    const uint32_t row = mirror_find(m, ctl_config_ns(own), ctl_config_name(own));
    struct yaml_docs docs = {0};
    struct hk_err err = {0};
    struct hk_str text;

    if (row == HK_NONE) {
        return NULL;
    }
    d->config = mirror_read(m, row, t->mem);
    text = json_str(json_get(json_get(&d->config, "data"), CONFIG_KEY), none);
    if (yaml_parse(text, 0, t->mem, &docs, &err) < 0) {
        hypernode_label_warn_config(d, err.text);
        return NULL;
    }
    return docs.len > 0 ? json_at(find_source(d, &docs.at[0]), "config.networkTopologyTypes")
                        : NULL;
}

static struct hk_str label_at(const struct json *labels, uint32_t i)
{
    return json_str(json_get(&labels->items[i], "nodeLabel"), none);
}

/* True when the type has a name and its labels are not empty and not repeated. */
static bool is_usable(struct hk_str type, const struct json *labels)
{
    if (type.n == 0 || type.n > TYPE_MAX || !json_is(labels, JSON_ARRAY)) {
        return false;
    }
    for (uint32_t i = 0; i < labels->len; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (hk_str_eq(label_at(labels, i), label_at(labels, k))) {
                return false;
            }
        }
        if (label_at(labels, i).n == 0) {
            return false;
        }
    }
    return true;
}

/* ---- domains from labels ---- */

/* Replaces characters that names do not allow by dashes. */
static struct hk_str stem_of(struct pass *t, struct hk_str type, uint32_t tier)
{
    char *name = hk_arena_strndup(t->mem, type.s, type.n);

    for (char *p = name; *p; p++) {
        const bool is_upper = *p >= 'A' && *p <= 'Z';
        const bool is_fine = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '.';

        *p = is_upper ? (char)(*p - 'A' + 'a') : is_fine ? *p : '-';
    }
    return hk_str(hk_arena_printf(t->mem, "hypernode-%s-tier%u", name, tier));
}

static uint32_t domain_of(struct discovery *d, struct hk_str type, uint32_t tier, struct hk_str key,
                          struct hk_str value)
{
    HK_AUTO(hk_buf_fini) struct hk_buf word = {0};
    uint32_t id, at;

    hk_buf_addf(&word, "%.*s\n%.*s", HK_FMT(key), HK_FMT(value));
    id = hk_intern_hold(&d->known, hk_buf_str(&word));
    at = hk_map_get(&d->at, id);
    if (at == HK_NONE) {
        at = d->domains.len;
        hk_map_put(&d->at, id, at);
        hk_vec_push(&d->domains, ((struct domain){.key = hk_arena_str(d->t->mem, key),
                                                  .value = hk_arena_str(d->t->mem, value),
                                                  .stem = stem_of(d->t, type, tier),
                                                  .tier = (int32_t)tier,
                                                  .parent = HK_NONE}));
    }
    return at;
}

/* True when the member was not in the domain yet. */
static bool is_new(struct discovery *d, uint32_t domain, const char *kind, struct hk_str member)
{
    HK_AUTO(hk_buf_fini) struct hk_buf word = {0};
    uint32_t id;

    hk_buf_addf(&word, "%u\n%s\n%.*s", domain, kind, HK_FMT(member));
    id = hk_intern_hold(&d->known, hk_buf_str(&word));
    return hk_intern_refs(&d->known, id) == 1;
}

/* The scheduler needs a tree: a domain in two parent domains breaks it. */
static void complain_of_two(const struct discovery *d, const struct domain *of,
                            const struct domain *a, const struct domain *b)
{
    hypernode_label_warn_config(
        d, hk_arena_printf(d->t->mem, "%.*s=%.*s is in two domains, %.*s=%.*s and %.*s=%.*s",
                           HK_FMT(of->key), HK_FMT(of->value), HK_FMT(a->key), HK_FMT(a->value),
                           HK_FMT(b->key), HK_FMT(b->value)));
}

static void add_domain(struct discovery *d, uint32_t to, uint32_t child)
{
    struct domain *of = &d->domains.at[child];
    char number[16];

    snprintf(number, sizeof(number), "%u", child);
    if (to == child || !is_new(d, to, "domain", hk_str(number))) {
        return;
    }
    if (of->parent != HK_NONE) {
        complain_of_two(d, of, &d->domains.at[of->parent], &d->domains.at[to]);
    }
    of->parent = to;
    hk_vec_push(&d->domains.at[to].domains, child);
}

static void hypernode_label_add_node(struct discovery *d, uint32_t to, struct hk_str node)
{
    if (is_new(d, to, "node", node)) {
        hk_vec_push(&d->domains.at[to].nodes, hk_arena_str(d->t->mem, node));
    }
}

/* Adds the node to its domains, from the innermost up to the first label that the node lacks. */
static void climb(struct discovery *d, struct hk_str type, const struct json *labels,
                  struct hk_str node, const struct json *of_node)
{
    uint32_t below = HK_NONE;

    for (uint32_t i = labels->len - 1; i-- > 0;) {
        const struct json *value = json_get_str(of_node, label_at(labels, i));
        uint32_t at;

        if (!json_is(value, JSON_STRING)) {
            return;
        }
        at = domain_of(d, type, labels->len - 1 - i, label_at(labels, i), json_str(value, none));
        if (below == HK_NONE) {
            hypernode_label_add_node(d, at, node);
        } else {
            add_domain(d, at, below);
        }
        below = at;
    }
}

static void hypernode_label_collect_domains(struct discovery *d, const struct json *types)
{
    const struct mirror *m = ctl_mirror(d->t->c, API_NODE);
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};

    for (uint32_t r = mirror_scan(m, HK_NONE); r != HK_NONE; r = mirror_scan(m, r)) {
        const struct json root = mirror_read(m, r, &mem);
        const struct json *of_node = json_at(&root, "metadata.labels");

        for (uint32_t i = 0; json_is(of_node, JSON_OBJECT) && i < types->len; i++) {
            const struct json_member *type = &types->members[i];

            if (is_usable(type->key, &type->value) && type->value.len > 0) {
                climb(d, type->key, &type->value, mirror_name(m, r), of_node);
            }
        }
        hk_arena_clear(&mem);
    }
}

/* ---- names ---- */

static bool hypernode_label_is_own(const struct json *root)
{
    return hk_str_is(json_str(kinds_label(root, API_LABEL_TOPOLOGY_SOURCE), none), "label");
}

/* The domain of a HyperNode that this controller made; NULL when the domain no longer exists. */
static struct domain *domain_like(struct discovery *d, const struct json *root)
{
    const struct hk_str key = json_str(json_at(root, "spec.tierName"), none);
    const struct json *value = json_get_str(json_at(root, "metadata.labels"), key);
    HK_AUTO(hk_buf_fini) struct hk_buf word = {0};
    uint32_t id;

    if (!hypernode_label_is_own(root) || !json_is(value, JSON_STRING)) {
        return NULL;
    }
    hk_buf_addf(&word, "%.*s\n%.*s", HK_FMT(key), HK_FMT(json_str(value, none)));
    id = hk_intern_find(&d->known, hk_buf_str(&word));
    return id == HK_NONE ? NULL : &d->domains.at[hk_map_get(&d->at, id)];
}

/* An existing HyperNode keeps its domain; if there are several, the first by name. */
static void take_names(struct discovery *d)
{
    const struct mirror *m = ctl_mirror(d->t->c, API_HYPERNODE);

    for (uint32_t r = mirror_scan(m, HK_NONE); r != HK_NONE; r = mirror_scan(m, r)) {
        const struct json root = mirror_read(m, r, d->t->mem);
        const struct hk_str name = mirror_name(m, r);
        struct domain *at = domain_like(d, &root);

        if (at && hk_str_starts(name, at->stem.s) &&
            (at->name.n == 0 || hk_str_cmp(name, at->name) < 0)) {
            at->name = name;
        }
    }
}

/* A name that depends only on the domain, unless that name is in use. */
static struct hk_str fresh_name(struct discovery *d, const struct domain *of)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    const struct mirror *m = ctl_mirror(d->t->c, API_HYPERNODE);

    for (uint64_t n = 0;; n++) {
        uint64_t h = hk_hash(of->value.s, of->value.n, hk_hash(of->key.s, of->key.n, n));
        char tail[TAIL + 1] = {0};
        struct hk_str name;

        for (unsigned i = 0; i < TAIL; i++, h /= sizeof(letters) - 1) {
            tail[i] = letters[h % (sizeof(letters) - 1)];
        }
        name = hk_str(hk_arena_printf(d->t->mem, "%s-%s", of->stem.s, tail));
        if (mirror_find(m, none, name) == HK_NONE && is_new(d, HK_NONE, "name", name)) {
            return name;
        }
    }
}

static void give_names(struct discovery *d)
{
    take_names(d);
    for (uint32_t i = 0; i < d->domains.len; i++) {
        if (d->domains.at[i].name.n == 0) {
            d->domains.at[i].name = fresh_name(d, &d->domains.at[i]);
        }
    }
}

/* ---- writing ---- */

static int hypernode_label_compare_names(const void *a, const void *b)
{
    return hk_str_cmp(*(const struct hk_str *)a, *(const struct hk_str *)b);
}

static struct json hypernode_label_make_member(struct hk_arena *a, struct hk_str type,
                                               struct hk_str name)
{
    struct json exact = json_make_object(), selector = json_make_object(), ret = json_make_object();

    json_set_str(&exact, a, "name", name);
    json_set(&selector, a, "exactMatch", exact);
    json_set_str(&ret, a, "type", type);
    json_set(&ret, a, "selector", selector);
    return ret;
}

static void put_members(struct json *list, struct hk_arena *a, struct hk_str type,
                        struct hk_str *names, uint32_t n)
{
    if (n > 1) {
        qsort(names, n, sizeof(*names), hypernode_label_compare_names);
    }
    for (uint32_t i = 0; i < n; i++) {
        json_push(list, a, hypernode_label_make_member(a, type, names[i]));
    }
}

static struct json hypernode_label_make_spec(const struct discovery *d, const struct domain *of)
{
    struct hk_arena *a = d->t->mem;
    struct hk_str *names = hk_arena_array(a, of->domains.len, sizeof(*names));
    struct json spec = json_make_object(), list = json_make_array();

    for (uint32_t i = 0; i < of->domains.len; i++) {
        names[i] = d->domains.at[of->domains.at[i]].name;
    }
    put_members(&list, a, HK_STR("Node"), of->nodes.at, of->nodes.len);
    put_members(&list, a, HK_STR("HyperNode"), names, of->domains.len);
    json_set_int(&spec, a, "tier", of->tier);
    json_set_str(&spec, a, "tierName", of->key);
    json_set(&spec, a, "members", list);
    return spec;
}

static void put_labels(struct json *meta, struct hk_arena *a, const struct domain *of)
{
    const struct json *old = json_get(meta, "labels");
    struct json labels = json_is(old, JSON_OBJECT) ? *old : json_make_object();

    json_put(&labels, a, of->key, json_make_str(of->value));
    json_set_cstr(&labels, a, API_LABEL_TOPOLOGY_SOURCE, "label");
    json_set(meta, a, "labels", labels);
}

static void hypernode_label_create(const struct discovery *d, const struct domain *of)
{
    struct hk_arena *a = d->t->mem;
    struct json body = json_make_object(), meta = json_make_object();

    json_set_cstr(&body, a, "apiVersion", "topology.volcano.sh/v1alpha1");
    json_set_cstr(&body, a, "kind", "HyperNode");
    json_set_str(&meta, a, "name", of->name);
    put_labels(&meta, a, of);
    json_set(&body, a, "metadata", meta);
    json_set(&body, a, "spec", hypernode_label_make_spec(d, of));
    pass_create(d->t, api_kind(API_HYPERNODE), &body);
}

/* Labels and annotations of other writers stay. */
static void hypernode_label_update(const struct discovery *d, const struct domain *of, uint32_t row)
{
    struct hk_arena *a = d->t->mem;
    const struct json root = mirror_read(ctl_mirror(d->t->c, API_HYPERNODE), row, a);
    struct json now = json_clone(&root, a);

    put_labels((struct json *)json_get(&now, "metadata"), a, of);
    json_set(&now, a, "spec", hypernode_label_make_spec(d, of));
    if (!json_equal(&root, &now)) {
        pass_update(d->t, api_kind(API_HYPERNODE), &now);
    }
}

/* Deletes this controller's HyperNodes that no label supports any more. */
static void hypernode_label_delete_stale(struct discovery *d)
{
    const struct mirror *m = ctl_mirror(d->t->c, API_HYPERNODE);

    for (uint32_t r = mirror_scan(m, HK_NONE); r != HK_NONE; r = mirror_scan(m, r)) {
        const struct json root = mirror_read(m, r, d->t->mem);
        const struct domain *at = domain_like(d, &root);

        if (hypernode_label_is_own(&root) && !(at && hk_str_eq(at->name, mirror_name(m, r)))) {
            pass_delete(d->t, api_kind(API_HYPERNODE), none, mirror_name(m, r), mirror_uid(m, r),
                        PORT_PROPAGATE_BACKGROUND);
        }
    }
}

void hypernode_discover(struct pass *t)
{
    HK_AUTO(discovery_fini) struct discovery d = {.t = t};
    const struct json *types = read_types(&d);

    if (!json_is(types, JSON_OBJECT)) {
        return; /* existing HyperNodes stay, as when a source is disabled */
    }
    hypernode_label_collect_domains(&d, types);
    give_names(&d);
    for (uint32_t i = 0; i < d.domains.len; i++) {
        const struct domain *of = &d.domains.at[i];
        const uint32_t row = mirror_find(ctl_mirror(t->c, API_HYPERNODE), none, of->name);

        if (row == HK_NONE) {
            hypernode_label_create(&d, of);
        } else {
            hypernode_label_update(&d, of, row);
        }
    }
    hypernode_label_delete_stale(&d);
}
