// SPDX-License-Identifier: Apache-2.0
// Object metadata of every kind: names, labels, annotations, owners, finalizers. The store
// maintains uid, timestamps and generation.
#include "admission/admission_priv.h"

enum { ANNOTATION_BYTES = 256 * 1024 };

/* Kinds whose names need not be DNS subdomains. */
static const struct {
    const char *group, *kind;
    enum name_rule rule;
} name_rules[] = {
    {"", "Namespace", NAME_LABEL},
    {"", "Service", NAME_LABEL_1035},
    {"apiregistration.k8s.io", "APIService", NAME_SEGMENT},
    {"rbac.authorization.k8s.io", "Role", NAME_SEGMENT},
    {"rbac.authorization.k8s.io", "RoleBinding", NAME_SEGMENT},
    {"rbac.authorization.k8s.io", "ClusterRole", NAME_SEGMENT},
    {"rbac.authorization.k8s.io", "ClusterRoleBinding", NAME_SEGMENT},
};

static enum name_rule name_rule_of(const struct api_kind *k)
{
    for (size_t i = 0; i < HK_LEN(name_rules); i++) {
        if (strcmp(k->group, name_rules[i].group) == 0 &&
            strcmp(k->kind, name_rules[i].kind) == 0) {
            return name_rules[i].rule;
        }
    }
    return NAME_SUBDOMAIN;
}

/* A prefix may end in characters that a name may not end in, because the generated part follows. */
static void check_generate_name(struct admission_request *q, const struct path *meta,
                                struct hk_str prefix)
{
    const struct path p = path_field(meta, "generateName");
    struct hk_str text = prefix;

    if (prefix.n > 0 && prefix.s[prefix.n - 1] == '-') {
        text = hk_str(hk_arena_printf(q->mem, "%.*sa", (int)prefix.n - 1, prefix.s));
    }
    if (prefix.n > 0) {
        name_check(q, &p, text, name_rule_of(q->kind));
    }
}

static void admit_meta_check_name(struct admission_request *q, const struct path *meta,
                                  const struct json *m)
{
    const struct path p = path_field(meta, "name");
    const struct hk_str name = edit_str(m, "name");
    const struct hk_str prefix = edit_str(m, "generateName");

    if (name.n > 0) {
        name_check(q, &p, name, name_rule_of(q->kind));
    } else if (prefix.n > 0) {
        check_generate_name(q, meta, prefix);
    } else {
        cause_required(q, &p, "name or generateName is required");
    }
}

static void check_annotations(struct admission_request *q, const struct path *meta,
                              const struct json *annotations)
{
    const struct path p = path_field(meta, "annotations");
    size_t total = 0;

    if (!json_is(annotations, JSON_OBJECT)) {
        return;
    }
    for (uint32_t i = 0; i < annotations->len; i++) {
        const struct json_member *m = &annotations->members[i];
        char *lower = hk_arena_strndup(q->mem, m->key.s, m->key.n);
        for (char *c = lower; *c; c++) {
            *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
        }
        name_check(q, &p, hk_str(lower), NAME_QUALIFIED);
        total += m->key.n + json_str(&m->value, HK_STR("")).n;
    }
    if (total > ANNOTATION_BYTES) {
        cause_too_long(q, &p, ANNOTATION_BYTES);
    }
}

static void check_owner(struct admission_request *q, const struct path *list,
                        const struct json *owner)
{
    static const struct {
        const char *field, *words;
    } wanted[] = {
        {"apiVersion", "version must not be empty"},
        {"kind", "must not be empty"},
        {"name", "must not be empty"},
        {"uid", "must not be empty"},
    };

    for (size_t i = 0; i < HK_LEN(wanted); i++) {
        const struct path p = path_field(list, wanted[i].field);
        if (edit_str(owner, wanted[i].field).n == 0) {
            cause_invalid_str(q, &p, HK_STR(""), "%s", wanted[i].words);
        }
    }
    if (hk_str_is(edit_str(owner, "apiVersion"), "v1") &&
        hk_str_is(edit_str(owner, "kind"), "Event")) {
        cause_invalid(q, list, owner, "/v1, Kind=Event is disallowed from being an owner");
    }
}

static void check_owners(struct admission_request *q, const struct path *meta,
                         const struct json *owners)
{
    const struct path list = path_field(meta, "ownerReferences");
    const struct json *first = NULL;

    for (uint32_t i = 0; i < edit_len(owners); i++) {
        const struct json *owner = json_item(owners, i);
        check_owner(q, &list, owner);
        if (!json_bool(json_get(owner, "controller"), false)) {
            continue;
        }
        if (first) {
            cause_invalid(q, &list, owners,
                          "Only one reference can have Controller set to true. Found \"true\" in "
                          "references for %.*s/%.*s and %.*s/%.*s",
                          HK_FMT(edit_str(first, "kind")), HK_FMT(edit_str(first, "name")),
                          HK_FMT(edit_str(owner, "kind")), HK_FMT(edit_str(owner, "name")));
        } else {
            first = owner;
        }
    }
}

/* Kinds of the core group require finalizer names that are well known or have a domain prefix. */
static bool is_bare_finalizer(const struct api_kind *k, struct hk_str name)
{
    static const char *const standard[] = {"kubernetes", "foregroundDeletion", "orphan"};

    for (size_t i = 0; i < HK_LEN(standard); i++) {
        if (hk_str_is(name, standard[i])) {
            return false;
        }
    }
    return *k->group == '\0' && !hk_str_contains(name, "/");
}

static void check_new_finalizers(struct admission_request *q, const struct path *p,
                                 const struct json *now, const struct json *before)
{
    HK_AUTO(hk_buf_fini) struct hk_buf extra = {0};

    for (uint32_t i = 0; i < edit_len(now); i++) {
        const struct hk_str name = json_str(json_item(now, i), HK_STR(""));
        if (!edit_list_has(before, name)) {
            hk_buf_adds(&extra, extra.len > 0 ? ", " : "");
            json_write_str(name, &extra);
        }
    }
    if (extra.len > 0) {
        cause_forbidden(q, p,
                        "no new finalizers can be added if the object is being deleted, found new "
                        "finalizers []string{%s}",
                        extra.data);
    }
}

static void check_finalizers(struct admission_request *q, const struct path *meta,
                             const struct json *m)
{
    const struct path p = path_field(meta, "finalizers");
    const struct json *list = json_get(m, "finalizers");
    const struct json *old = json_get(q->old, "metadata");

    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct hk_str name = json_str(json_item(list, i), HK_STR(""));
        const struct path at = path_index(&p, i);
        if (name_check(q, &p, name, NAME_QUALIFIED) && is_bare_finalizer(q->kind, name)) {
            cause_invalid_str(
                q, &at, name,
                "name is neither a standard finalizer name nor is it fully qualified");
        }
    }
    if (edit_list_has(list, HK_STR("orphan")) &&
        edit_list_has(list, HK_STR("foregroundDeletion"))) {
        cause_invalid(q, &p, list, "finalizer orphan and foregroundDeletion cannot be both set");
    }
    if (q->verb == ADMIT_UPDATE && edit_has(old, "deletionTimestamp")) {
        check_new_finalizers(q, &p, list, json_get(old, "finalizers"));
    }
}

bool admission_check_labels(struct admission_request *q)
{
    const struct json *m = json_get(q->obj, "metadata");
    const struct path meta = path_field(NULL, "metadata");
    const struct path labels = path_field(&meta, "labels");

    name_check_labels(q, &labels, json_get(m, "labels"));
    check_annotations(q, &meta, json_get(m, "annotations"));
    return q->errors.len == 0;
}

void admit_meta_validate(struct admission_request *q)
{
    const struct json *m = json_get(q->obj, "metadata");
    const struct path meta = path_field(NULL, "metadata");
    const struct path labels = path_field(&meta, "labels");

    if (q->verb == ADMIT_CREATE) {
        admit_meta_check_name(q, &meta, m);
    }
    name_check_labels(q, &labels, json_get(m, "labels"));
    check_annotations(q, &meta, json_get(m, "annotations"));
    check_owners(q, &meta, json_get(m, "ownerReferences"));
    check_finalizers(q, &meta, m);
}
