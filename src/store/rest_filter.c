// SPDX-License-Identifier: Apache-2.0
// Selection of objects for lists and watches: by resource, namespace, name, labels and the few
// fields that a kind supports. Names are compared with the stored state, labels with its text, in
// one pass for all requirements; only fields need the parsed tree.
#include "codec/skim.h"
#include "store/rest_priv.h"

/* Maps old and unusual field names. */
static const char *real_path(const struct rest_kind *k, const char *path)
{
    static const struct {
        const char *plural, *word, *path;
    } aliases[] = {
        {"pods", "spec.host", "spec.nodeName"},
        {"events", "source", "source.component"},
        {"jobs", "status.successful", "status.succeeded"},
    };

    for (size_t i = 0; i < HK_LEN(aliases); i++) {
        if (!strcmp(aliases[i].plural, k->kind->plural) && !strcmp(aliases[i].word, path)) {
            return aliases[i].path;
        }
    }
    return path;
}

static bool is_meta(const char *path)
{
    return !strcmp(path, "metadata.name") || !strcmp(path, "metadata.namespace");
}

static bool offered(const struct rest_kind *k, const char *path)
{
    for (const char *const *p = rest_kind_fields(k); *p; p++) {
        if (!strcmp(*p, path)) {
            return true;
        }
    }
    return is_meta(path);
}

static int check_fields(struct rest_filter *f, struct rest_call *c)
{
    for (uint32_t i = 0; i < f->fields.len; i++) {
        struct api_field_requirement *q = &f->fields.at[i];
        q->path = real_path(f->k, q->path);
        if (!offered(f->k, q->path)) {
            return *rest_kind_fields(f->k)
                       ? rest_fail_bad(c, "field label not supported: %s", q->path)
                       : rest_fail_bad(c,
                                       "\"%s\" is not a known field selector: only "
                                       "\"metadata.name\", \"metadata.namespace\"",
                                       q->path);
        }
        if (!is_meta(q->path)) {
            f->needs_tree = true;
        } else if (!strcmp(q->path, "metadata.name") && !q->negate) {
            f->name = q->value;
        }
    }
    return 0;
}

int rest_filter_init(struct rest_filter *f, struct rest_call *c)
{
    const struct port_request *req = c->req;

    f->k = c->k;
    f->ns = hk_arena_str(&f->mem, c->ns);
    if (api_selector_parse(hk_arena_str(&f->mem, req->label_selector), &f->mem, &f->labels,
                           &c->err) < 0 ||
        api_field_selector_parse(hk_arena_str(&f->mem, req->field_selector), &f->mem, &f->fields,
                                 &c->err) < 0) {
        const struct hk_err why = c->err;
        return rest_fail_bad(c, "unable to parse requirement: %s", why.text);
    }
    if (f->labels.len > REST_MAX_TERMS || f->fields.len > REST_MAX_TERMS) {
        return rest_fail_bad(c, "a selector of %u requirements: at most %d are allowed",
                             HK_MAX(f->labels.len, f->fields.len), REST_MAX_TERMS);
    }
    for (uint32_t i = 0; i < f->labels.len; i++) {
        hk_intern(&f->label_keys, f->labels.at[i].key);
    }
    f->label_values = hk_arena_array(&f->mem, f->label_keys.len + 1, sizeof(*f->label_values));
    return check_fields(f, c);
}

void rest_filter_fini(struct rest_filter *f)
{
    hk_intern_fini(&f->label_keys);
    hk_arena_fini(&f->mem);
}

/* A missing flag is false. */
static bool is_flag(const char *path)
{
    return !strcmp(path, "spec.unschedulable") || !strcmp(path, "spec.hostNetwork");
}

static bool match_field(const struct api_field_requirement *q, const struct store_obj *o,
                        const struct json *root)
{
    if (is_meta(q->path)) {
        const struct hk_str have = !strcmp(q->path, "metadata.name") ? o->name : o->ns;
        return hk_str_eq(have, q->value) != q->negate;
    }
    if (is_flag(q->path)) {
        const bool have = json_bool(json_at(root, q->path), false);
        return hk_str_is(q->value, have ? "true" : "false") != q->negate;
    }
    const struct api_field_selector one = {(struct api_field_requirement *)q, 1};
    return api_field_selector_match(&one, root);
}

/* ---- labels ---- */

static bool is_plain(struct hk_str s)
{
    return !memchr(s.s, '\\', s.n);
}

/* Notes the values of the selected keys. False: the text differs from the store's own format. */
static bool note_labels(const struct rest_filter *f, struct hk_str labels)
{
    struct skim s = {labels.s, labels.s + labels.n};
    struct hk_str key, value;
    bool first = true;
    int more = labels.n == 0 || hk_str_is(labels, "null") ? 0 : skim_take(&s, '{') ? 1 : -1;

    while (more == 1 && (more = skim_key(&s, &first, &key)) == 1) {
        if (!skim_value(&s, &value) || value.n < 2 || !is_plain(key) || !is_plain(value)) {
            return false;
        }
        const uint32_t id = hk_intern_find(&f->label_keys, key);
        if (id != HK_NONE) {
            f->label_values[id] = (struct hk_str){value.s + 1, value.n - 2};
        }
    }
    return more == 0;
}

static bool labels_hold(const struct rest_filter *f)
{
    for (uint32_t i = 0; i < f->labels.len; i++) {
        const struct api_requirement *q = &f->labels.at[i];
        const struct hk_str *value = &f->label_values[hk_intern_find(&f->label_keys, q->key)];
        if (!api_requirement_holds(q, value->s ? value : NULL)) {
            return false;
        }
    }
    return true;
}

/* Parses the object, where its text is not enough. */
static bool match_labels_tree(struct rest *r, const struct rest_filter *f,
                              const struct store_obj *o)
{
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
    struct api_object *obj = rest_object(r, f->k, o, true);
    struct api_meta meta;

    r->work += REST_WORK_PARSED * o->text.n;
    const bool match = obj && api_meta_decode(&obj->root, &scratch, &meta, NULL) == 0 &&
                       api_selector_match(&f->labels, &meta.labels);
    api_object_unref(obj);
    return match;
}

static bool match_labels(struct rest *r, const struct rest_filter *f, const struct store_obj *o)
{
    static const char *const outer[] = {"metadata"}, *const inner[] = {"labels"};
    struct hk_str meta, labels;

    if (f->labels.len == 0) {
        return true;
    }
    for (uint32_t i = 0; i < f->label_keys.len; i++) {
        f->label_values[i] = (struct hk_str){0};
    }
    if (rest_convert_needed(f->k, o)) {
        return match_labels_tree(r, f, o);
    }
    if (skim_members(o->text, outer, &meta, 1) < 0 || skim_members(meta, inner, &labels, 1) < 0 ||
        !note_labels(f, labels)) {
        return match_labels_tree(r, f, o);
    }
    r->work += (size_t)(meta.s + meta.n - o->text.s) + labels.n;
    return labels_hold(f);
}

/* ---- fields ---- */

static bool match_fields(const struct rest_filter *f, const struct store_obj *o,
                         const struct json *root)
{
    for (uint32_t i = 0; i < f->fields.len; i++) {
        if (!match_field(&f->fields.at[i], o, root)) {
            return false;
        }
    }
    return true;
}

bool rest_filter_match_name(const struct rest_filter *f, const struct store_obj *o)
{
    return (f->ns.n == 0 || hk_str_eq(f->ns, o->ns)) &&
           (f->name.n == 0 || hk_str_eq(f->name, o->name));
}

bool rest_filter_selects(const struct rest_filter *f)
{
    return f->labels.len > 0 || f->needs_tree;
}

bool rest_filter_match(struct rest *r, const struct rest_filter *f, const struct store_obj *o)
{
    r->work += REST_WORK_OBJECT;
    if (!rest_filter_match_name(f, o)) {
        return false;
    }
    if (!match_labels(r, f, o)) {
        return false;
    }
    if (!f->needs_tree) {
        return match_fields(f, o, NULL);
    }
    r->work += REST_WORK_PARSED * o->text.n;
    struct api_object *obj = rest_object(r, f->k, o, true);
    const bool match = obj && match_fields(f, o, &obj->root);
    api_object_unref(obj);
    return match;
}
