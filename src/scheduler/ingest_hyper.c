// SPDX-License-Identifier: Apache-2.0
// HyperNode manifests, kept until settle: their members depend on all nodes, and whether they form
// a tree depends on all manifests. A node's name never changes, so each pattern is matched against
// each name once.
#include "scheduler/ingest_priv.h"

#include "api/node.h"
#include "codec/re2.h"

struct member {
    bool is_hyper;
    uint32_t exact;        /* name, 0 none */
    struct re2 *regex;     /* NULL: none */
    uint32_t tried;        /* of ingest.node_names */
    HK_VEC(uint32_t) hits; /* names the pattern matches */
    struct label_sel sel;  /* at NULL: none */
};

struct hyper_source {
    uint32_t name, tier_name;
    int32_t tier;
    uint32_t nmember;
    struct member *members;
};

static void ingest_hyper_source_free(struct hyper_source *s)
{
    for (uint32_t k = 0; k < s->nmember; k++) {
        struct member *mb = &s->members[k];
        re2_free(mb->regex);
        hk_vec_fini(&mb->hits);
        hk_free((void *)mb->sel.at);
    }
    hk_free(s->members);
    hk_free(s);
}

static void source_strings(const struct hyper_source *s, struct hk_intern *t, string_fn *f)
{
    f(t, s->name);
    f(t, s->tier_name);
    for (uint32_t k = 0; k < s->nmember; k++) {
        f(t, s->members[k].exact);
        label_sel_strings(&s->members[k].sel, t, f);
    }
}

static void source_drop(struct ingest *in, uint32_t at)
{
    source_strings(in->hypers.at[at], &in->m->str, hk_intern_drop);
    ingest_hyper_source_free(in->hypers.at[at]);
}

static void source_freep(struct hyper_source **s)
{
    if (*s) {
        ingest_hyper_source_free(*s);
    }
}

static int member_read(struct ingest *in, const struct api_hypernode_member *from,
                       struct member *to, struct hk_err *err)
{
    int rc;

    to->is_hyper = from->type == API_MEMBER_HYPERNODE;
    to->exact = ingest_str(in, from->exact);
    if (to->is_hyper) {
        return 0; /* hyperNodes are selected by name only */
    }
    if (from->regex.n > 0) {
        rc = re2_compile(from->regex, &to->regex, err);
        if (rc < 0) {
            return rc;
        }
    }
    if (from->labels.len > 0) { /* an empty selector selects no node here */
        const struct label_sel sel = ingest_sel(in, &from->labels);
        to->sel = ingest_sel_copy(&sel);
    }
    return 0;
}

int ingest_hyper_put(struct ingest *in, const struct json *doc, struct hk_err *err)
{
    struct api_hypernode hn;
    HK_AUTO(source_freep) struct hyper_source *s = NULL;
    uint32_t at;
    int rc = api_hypernode_decode(doc, &in->mem, &hn, err);

    if (rc < 0) {
        return rc;
    }
    s = hk_zalloc(sizeof(*s));
    s->name = ingest_str(in, hn.meta.name);
    s->tier_name = ingest_str(in, hn.tier_name);
    s->tier = hn.tier;
    s->nmember = hn.members.len;
    s->members = hk_zalloc_array(hn.members.len, sizeof(*s->members));
    for (uint32_t k = 0; k < hn.members.len; k++) {
        rc = member_read(in, &hn.members.at[k], &s->members[k], err);
        if (rc < 0) {
            return hk_wrap(err, rc, "spec.members[%u].selector.regexMatch.pattern", k);
        }
    }
    source_strings(s, &in->m->str, hk_intern_keep);
    at = hk_map_get(&in->hyper_at, s->name);
    if (at == HK_NONE) {
        hk_map_put(&in->hyper_at, s->name, in->hypers.len);
        hk_vec_push(&in->hypers, hk_take(s));
    } else {
        source_drop(in, at);
        in->hypers.at[at] = hk_take(s);
    }
    in->hypers_changed = true;
    return 0;
}

void ingest_hyper_del(struct ingest *in, struct hk_str ns, struct hk_str name)
{
    const uint32_t id = ingest_str(in, name), at = hk_map_get(&in->hyper_at, id);

    if (at == HK_NONE) {
        return;
    }
    source_drop(in, at);
    hk_map_del(&in->hyper_at, id);
    hk_vec_swap_remove(&in->hypers, at);
    if (at < in->hypers.len) {
        hk_map_put(&in->hyper_at, in->hypers.at[at]->name, at);
    }
    in->hypers_changed = true;
}

void ingest_hyper_node(struct ingest *in, uint32_t name)
{
    if (hk_map_get(&in->node_seen, name) == HK_NONE) {
        hk_map_put(&in->node_seen, name, 1);
        hk_intern_keep(&in->m->str, name);
        hk_vec_push(&in->node_names, name);
    }
    in->hypers_changed |= in->hypers.len > 0;
}

/* Removes the name and keeps the order of the others. Returns its former position. */
static uint32_t name_remove(uint32_t *at, uint32_t *len, uint32_t name)
{
    uint32_t i = 0;

    while (i < *len && at[i] != name) {
        i++;
    }
    if (i < *len) {
        memmove(&at[i], &at[i + 1], (--*len - i) * sizeof(*at));
    }
    return i;
}

void ingest_hyper_node_gone(struct ingest *in, uint32_t name)
{
    if (!hk_map_del(&in->node_seen, name)) {
        return;
    }
    const uint32_t was = name_remove(in->node_names.at, &in->node_names.len, name);
    for (uint32_t i = 0; i < in->hypers.len; i++) {
        for (uint32_t k = 0; k < in->hypers.at[i]->nmember; k++) {
            struct member *mb = &in->hypers.at[i]->members[k];
            mb->tried -= was < mb->tried;
            name_remove(mb->hits.at, &mb->hits.len, name);
        }
    }
    hk_intern_drop(&in->m->str, name);
    in->hypers_changed |= in->hypers.len > 0;
}

/* ---- settling ---- */

typedef HK_VEC(struct hyper_member) member_vec;

static void add_name(member_vec *v, bool is_hyper, uint32_t name)
{
    hk_vec_push(v, ((struct hyper_member){.is_hyper = is_hyper, .name = name}));
}

static void resolve_regex(const struct ingest *in, struct member *mb, member_vec *v)
{
    for (; mb->tried < in->node_names.len; mb->tried++) {
        const uint32_t name = in->node_names.at[mb->tried];
        if (re2_matches(mb->regex, model_str(in->m, name))) {
            hk_vec_push(&mb->hits, name);
        }
    }
    for (uint32_t k = 0; k < mb->hits.len; k++) {
        add_name(v, false, mb->hits.at[k]);
    }
}

static void resolve_labels(const struct model *m, const struct label_sel *sel, member_vec *v)
{
    for (uint32_t i = 0; i < m->nodes.len; i++) {
        if ((m->nodes.flags[i] & NODE_KNOWN) && label_sel_match(sel, m->nodes.labels[i], &m->str)) {
            add_name(v, false, m->nodes.name[i]);
        }
    }
}

static struct hyper_desc ingest_hyper_resolve_members(struct ingest *in, struct hyper_source *s)
{
    member_vec v = {0};
    struct hyper_member *at;

    for (uint32_t k = 0; k < s->nmember; k++) {
        struct member *mb = &s->members[k];
        if (mb->exact) {
            add_name(&v, mb->is_hyper, mb->exact);
        } else if (mb->regex) {
            resolve_regex(in, mb, &v);
        } else if (mb->sel.at) {
            resolve_labels(in->m, &mb->sel, &v);
        }
    }
    at = hk_arena_array(&in->mem, v.len, sizeof(*at));
    for (uint32_t k = 0; k < v.len; k++) {
        at[k] = v.at[k];
    }
    const struct hyper_desc d = {.name = model_str(in->m, s->name),
                                 .tier_name = model_str(in->m, s->tier_name),
                                 .tier = s->tier,
                                 .members = at,
                                 .nmember = v.len};
    hk_vec_fini(&v);
    return d;
}

static int desc_cmp(const void *a, const void *b)
{
    return hk_str_cmp(((const struct hyper_desc *)a)->name, ((const struct hyper_desc *)b)->name);
}

void ingest_hyper_settle(struct ingest *in)
{
    const struct hk_str tree = HK_STR("(tree)");
    struct hk_err err = {0};
    struct hyper_desc *d;

    if (!in->hypers_changed) {
        return;
    }
    d = hk_arena_array(&in->mem, in->hypers.len, sizeof(*d));
    for (uint32_t k = 0; k < in->hypers.len; k++) {
        d[k] = ingest_hyper_resolve_members(in, in->hypers.at[k]);
    }
    /* The order of arrival must not matter. */
    qsort(d, in->hypers.len, sizeof(*d), desc_cmp);
    if (model_hyper_rebuild(in->m, d, in->hypers.len, &err)) {
        ingest_problem_clear(in, api_kind(API_HYPERNODE), tree);
    } else {
        ingest_problem_set(in, api_kind(API_HYPERNODE), tree, NULL, 0, err.text);
    }
    in->hypers_changed = false;
}

void ingest_hyper_fini(struct ingest *in)
{
    for (uint32_t k = 0; k < in->hypers.len; k++) {
        ingest_hyper_source_free(in->hypers.at[k]);
    }
    hk_vec_fini(&in->hypers);
    hk_map_fini(&in->hyper_at);
    hk_vec_fini(&in->node_names);
    hk_map_fini(&in->node_seen);
}
