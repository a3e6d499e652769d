// SPDX-License-Identifier: Apache-2.0
// What a list or a watch selects: resource, namespace, name, labels and the few fields a kind
// offers. Names are compared on the stored state itself; only other requirements need its tree.
#include "store/rest_priv.h"

/* Old and odd spellings of fields. */
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
    f->needs_tree = f->labels.len > 0;
    return check_fields(f, c);
}

void rest_filter_fini(struct rest_filter *f)
{
    hk_arena_fini(&f->mem);
}

/* A flag that is not there is off. */
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

static bool match_labels(const struct api_selector *s, const struct json *root)
{
    HK_AUTO(hk_arena_fini) struct hk_arena scratch = {0};
    struct api_meta meta;

    return api_meta_decode(root, &scratch, &meta, NULL) == 0 && api_selector_match(s, &meta.labels);
}

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

bool rest_filter_match(struct rest *r, const struct rest_filter *f, const struct store_obj *o)
{
    if ((f->ns.n > 0 && !hk_str_eq(f->ns, o->ns)) ||
        (f->name.n > 0 && !hk_str_eq(f->name, o->name))) {
        return false;
    }
    if (!f->needs_tree) {
        return match_fields(f, o, NULL);
    }
    struct api_object *obj = rest_object(r, f->k, o, true);
    const bool match = obj && match_fields(f, o, &obj->root) &&
                       (f->labels.len == 0 || match_labels(&f->labels, &obj->root));
    api_object_unref(obj);
    return match;
}
