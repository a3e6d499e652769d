// SPDX-License-Identifier: Apache-2.0
// Roles and bindings: validation, immutable roleRef, and protection against privilege escalation: a
// user cannot grant rights that the user does not have. All checks use the object as it will be
// stored, whatever the write operation.
#include "admission/admission_priv.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"

/* ---- roles ---- */

static void check_rule(struct admission_request *q, const struct path *p, const struct json *rule)
{
    const struct path verbs = path_field(p, "verbs");
    const struct path groups = path_field(p, "apiGroups");
    const struct path resources = path_field(p, "resources");
    const struct path urls = path_field(p, "nonResourceURLs");
    const struct json *paths = json_get(rule, "nonResourceURLs");
    const uint32_t ngroups = edit_len(json_get(rule, "apiGroups"));
    const uint32_t nresources = edit_len(json_get(rule, "resources"));

    if (edit_len(json_get(rule, "verbs")) == 0) {
        cause_required(q, &verbs, "verbs must contain at least one value");
    }
    if (edit_len(paths) > 0) {
        if (q->kind->namespaced) {
            cause_invalid(q, &urls, paths, "namespaced rules cannot apply to non-resource URLs");
        }
        if (ngroups + nresources + edit_len(json_get(rule, "resourceNames")) > 0) {
            cause_invalid(q, &urls, paths,
                          "rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    if (ngroups == 0) {
        cause_required(q, &groups, "resource rules must supply at least one api group");
    }
    if (nresources == 0) {
        cause_required(q, &resources, "resource rules must supply at least one resource");
    }
}

void admit_role_validate(struct admission_request *q)
{
    const struct path p = path_field(NULL, "rules");
    const struct json *rules = json_get(q->obj, "rules");

    for (uint32_t i = 0; i < edit_len(rules); i++) {
        const struct path at = path_index(&p, i);
        check_rule(q, &at, json_item(rules, i));
    }
}

/* ---- bindings ---- */

int admit_binding_default(struct admission_request *q, struct hk_err *err)
{
    struct json *ref = edit_get(q->obj, "roleRef");
    struct json *subjects = edit_get(q->obj, "subjects");

    if (json_is(ref, JSON_OBJECT)) {
        edit_default_str(ref, q->mem, "apiGroup", RBAC_GROUP);
    }
    for (uint32_t i = 0; i < edit_len(subjects); i++) {
        struct json *subject = &subjects->items[i];
        const struct hk_str kind = edit_str(subject, "kind");
        if (hk_str_is(kind, "User") || hk_str_is(kind, "Group")) {
            edit_default_str(subject, q->mem, "apiGroup", RBAC_GROUP);
        }
    }
    return 0;
}

static void check_subject(struct admission_request *q, const struct path *p,
                          const struct json *subject)
{
    static const char *const kinds[] = {"ServiceAccount", "User", "Group", NULL};
    static const char *const no_group[] = {"", NULL};
    static const char *const group[] = {RBAC_GROUP, NULL};
    const bool account = hk_str_is(edit_str(subject, "kind"), "ServiceAccount");
    const bool person = hk_str_is(edit_str(subject, "kind"), "User") ||
                        hk_str_is(edit_str(subject, "kind"), "Group");
    const struct path name = path_field(p, "name");
    const struct path ns = path_field(p, "namespace");
    const struct path kind = path_field(p, "kind");

    if (cause_check_present(q, p, subject, "name") && account) {
        name_check(q, &name, edit_str(subject, "name"), NAME_SUBDOMAIN);
    }
    if (!account && !person) {
        cause_unsupported(q, &kind, edit_str(subject, "kind"), kinds);
        return;
    }
    cause_check_enum(q, p, subject, "apiGroup", account ? no_group : group);
    if (account && !q->kind->namespaced && edit_str(subject, "namespace").n == 0) {
        cause_required(q, &ns, NULL);
    }
}

static void check_role_ref(struct admission_request *q, const struct path *p,
                           const struct json *ref)
{
    static const char *const groups[] = {RBAC_GROUP, NULL};
    static const char *const local[] = {"Role", "ClusterRole", NULL};
    static const char *const cluster[] = {"ClusterRole", NULL};
    const char *const *kinds = q->kind->namespaced ? local : cluster;
    const struct path group = path_field(p, "apiGroup");
    const struct path kind = path_field(p, "kind");
    const struct path name = path_field(p, "name");

    if (edit_has(ref, "apiGroup")) {
        cause_check_enum(q, p, ref, "apiGroup", groups);
    } else {
        cause_unsupported(q, &group, HK_STR(""), groups);
    }
    if (edit_has(ref, "kind")) {
        cause_check_enum(q, p, ref, "kind", kinds);
    } else {
        cause_unsupported(q, &kind, HK_STR(""), kinds);
    }
    if (cause_check_present(q, p, ref, "name")) {
        name_check(q, &name, edit_str(ref, "name"), NAME_SEGMENT);
    }
}

/* A binding stored without a group has the default one. */
static struct hk_str admission_rbac_role_ref_group(const struct json *ref)
{
    const struct hk_str group = edit_str(ref, "apiGroup");

    return group.n > 0 ? group : HK_STR(RBAC_GROUP);
}

static bool is_same_ref(const struct json *a, const struct json *b)
{
    return hk_str_eq(admission_rbac_role_ref_group(a), admission_rbac_role_ref_group(b)) &&
           hk_str_eq(edit_str(a, "kind"), edit_str(b, "kind")) &&
           hk_str_eq(edit_str(a, "name"), edit_str(b, "name"));
}

void admit_binding_validate(struct admission_request *q)
{
    const struct path ref_path = path_field(NULL, "roleRef");
    const struct path p = path_field(NULL, "subjects");
    const struct json *ref = json_get(q->obj, "roleRef");
    const struct json *subjects = json_get(q->obj, "subjects");

    check_role_ref(q, &ref_path, ref);
    for (uint32_t i = 0; i < edit_len(subjects); i++) {
        const struct path at = path_index(&p, i);
        check_subject(q, &at, json_item(subjects, i));
    }
    if (q->verb == ADMIT_UPDATE && !is_same_ref(ref, json_get(q->old, "roleRef"))) {
        cause_invalid(q, &ref_path, ref, "cannot change roleRef");
    }
}

/* ---- granting rights ---- */

/* Changes that the garbage collector needs require no further rights. */
static struct json without_links(const struct json *obj, struct hk_arena *a)
{
    static const char *const links[] = {"ownerReferences", "finalizers", "managedFields",
                                        "resourceVersion"};
    struct json copy = json_clone(obj, a);
    struct json *meta = edit_get(&copy, "metadata");

    for (size_t i = 0; meta && i < HK_LEN(links); i++) {
        json_del(meta, links[i]);
    }
    return copy;
}

static bool grants_nothing_new(const struct admission_request *q)
{
    if (!q->rights) {
        return true;
    }
    if (q->verb != ADMIT_UPDATE) {
        return false;
    }
    const struct json now = without_links(q->obj, q->mem);
    const struct json old = without_links(q->old, q->mem);
    return json_equal(&now, &old);
}

static int refuse_grant(struct admission_request *q, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf groups = {0};

    for (uint32_t i = 0; i < q->rights->ngroups; i++) {
        hk_buf_addf(&groups, "%s\"%s\"", i > 0 ? " " : "", q->rights->groups[i]);
    }
    q->refusal = hk_arena_printf(
        q->mem,
        "user \"%s\" (groups=[%s]) is attempting to grant RBAC permissions not currently held",
        q->rights->user, hk_buf_str(&groups).s);
    return hk_fail(err, HK_EDENIED, "%s", q->refusal);
}

int admit_role_enforce(struct admission_request *q, struct hk_err *err)
{
    const struct rights_ask escalate = {.verb = HK_STR("escalate"),
                                        .group = HK_STR(RBAC_GROUP),
                                        .resource = hk_str(q->kind->plural),
                                        .ns = q->ns,
                                        .name = q->name};

    if (grants_nothing_new(q) || rights_allow(q->rights, &escalate) ||
        q->rights->covers(q->rights->ctx, q->ns, json_get(q->obj, "rules"))) {
        return 0;
    }
    return refuse_grant(q, err);
}

int admit_binding_enforce(struct admission_request *q, struct hk_err *err)
{
    const struct json *ref = json_get(q->obj, "roleRef");
    const bool local = hk_str_is(edit_str(ref, "kind"), "Role");
    const struct rights_ask bind = {.verb = HK_STR("bind"),
                                    .group = HK_STR(RBAC_GROUP),
                                    .resource = local ? HK_STR("roles") : HK_STR("clusterroles"),
                                    .ns = q->ns,
                                    .name = edit_str(ref, "name")};

    if (grants_nothing_new(q) || rights_allow(q->rights, &bind) ||
        q->rights->covers_role(q->rights->ctx, q->ns, ref)) {
        return 0;
    }
    return refuse_grant(q, err);
}
