// SPDX-License-Identifier: Apache-2.0
// Stores the built-in definitions, roles and initial objects through the port before the server
// listens. Missing objects are created in parallel, so that a few commits write them. Existing
// objects are updated with our content, and not written if nothing changes. Roles whose annotation
// turns automatic updates off are not changed.
#include "apiserver/bootstrap.h"

#include "api/port_call.h"
#include "api/queue.h"
#include "apiserver/crds.h"
#include "apiserver/roles.h"
#include "codec/yaml.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"
#define AUTOUPDATE "rbac.authorization.kubernetes.io/autoupdate"

/* Whether the object's annotation turns automatic updates off. */
static bool is_left_alone(const struct json *doc)
{
    return hk_str_is(json_str_field(json_at(doc, "metadata.annotations"), AUTOUPDATE), "false");
}

/* Replaces the stored value of the member with ours. */
static int bootstrap_update_member(const struct port_waiter *w, const struct port_request *create,
                                   const struct api_object *old, const char *member,
                                   struct hk_arena *mem, struct hk_err *err)
{
    struct json doc = json_clone(&old->root, mem);

    json_set(&doc, mem, member, *json_get(create->body, member));
    return port_call(
        w,
        &(struct port_request){
            .verb = PORT_UPDATE, .kind = create->kind, .name = create->name, .body = &doc},
        NULL, err);
}

/* ---- pending creations ---- */

struct batch {
    struct port_waiter waiter;
    uint32_t pending;
    int rc; /* of the first failed creation */
    struct hk_err err;
};

static void on_made(void *ctx, const struct port_msg *m)
{
    struct batch *b = ctx;

    if (m->type != PORT_DONE) {
        return;
    }
    b->pending--;
    if (m->rc < 0 && b->rc == 0) {
        b->rc = m->rc;
        b->err = *m->err;
    }
}

/* Waits for every creation, whatever the caller's result: their sink is on the caller's stack.
 * Returns that result, or the first failed creation. */
static int batch_settle(struct batch *b, int rc, struct hk_err *err)
{
    while (b->pending > 0) {
        const int turned = port_turn(&b->waiter, -1, rc < 0 ? NULL : err);
        if (turned < 0) {
            return rc < 0 ? rc : turned;
        }
    }
    if (rc < 0) {
        return rc;
    }
    if (b->rc < 0 && err) {
        *err = b->err;
    }
    return b->rc;
}

/* Creates the object, or updates the member of an existing one; NULL: leaves it unchanged. */
static int bootstrap_create_or_update(struct batch *b, const struct port_request *create,
                                      const char *member, struct hk_arena *mem, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer a = {0};
    const struct port_request get = {.verb = PORT_GET, .kind = create->kind, .name = create->name};
    const int rc = port_call(&b->waiter, &get, &a, err);

    if (rc == -HK_ENOTFOUND) {
        b->pending++;
        port_submit(b->waiter.port, create, (struct port_sink){on_made, b});
        return 0;
    }
    if (rc < 0 || !member) {
        return rc;
    }
    const struct api_object *old = a.objects.at[0];
    if (is_left_alone(&old->root) ||
        json_equal(json_get(&old->root, member), json_get(create->body, member))) {
        return 0;
    }
    return bootstrap_update_member(&b->waiter, create, old, member, mem, err);
}

/* ---- definitions ---- */

static int install(struct rest *r, struct batch *b, const struct crd_file *f, struct hk_arena *mem,
                   struct hk_err *err)
{
    struct yaml_docs docs = {0};
    const int rc = yaml_parse((struct hk_str){f->text, f->len}, 0, mem, &docs, err);

    if (rc < 0) {
        return rc;
    }
    const struct json *doc = &docs.at[0];
    const struct port_request q = {
        .verb = PORT_CREATE,
        .kind = rest_kind_find(r, HK_STR("apiextensions.k8s.io"), HK_STR("v1"),
                               HK_STR("customresourcedefinitions"))
                    ->kind,
        .name = json_str_at(doc, "metadata.name"),
        .body = doc,
    };
    return bootstrap_create_or_update(b, &q, "spec", mem, err);
}

int bootstrap_crds(struct rest *r, struct hk_err *err)
{
    struct batch b = {.waiter.port = rest_port(r)};
    struct hk_arena mem = {0};
    int rc = 0;

    for (const struct crd_file *f = crd_files; rc == 0 && f->name; f++) {
        rc = install(r, &b, f, &mem, err);
        if (rc < 0) {
            hk_wrap(err, rc, "definition '%s'", f->name);
        }
    }
    hk_arena_fini(&mem);
    return batch_settle(&b, rc, err);
}

/* ---- roles ---- */

static struct json bootstrap_split_words(const char *text, struct hk_arena *mem)
{
    struct hk_str rest = hk_str(text), word;
    struct json list = json_make_array();

    while (hk_str_cut(&rest, ' ', &word)) {
        json_push(&list, mem, json_make_str(word));
    }
    return list;
}

static void bootstrap_set_words(struct json *obj, const char *key, const char *text,
                                struct hk_arena *mem)
{
    if (text) {
        json_set(obj, mem, key, bootstrap_split_words(text, mem));
    }
}

static struct json make_metadata(const char *name, struct hk_arena *mem)
{
    struct json metadata = json_make_object();
    struct json labels = json_make_object();
    struct json annotations = json_make_object();

    json_set_cstr(&metadata, mem, "name", name);
    json_set_cstr(&labels, mem, "kubernetes.io/bootstrapping", "rbac-defaults");
    json_set_cstr(&annotations, mem, AUTOUPDATE, "true");
    json_set(&metadata, mem, "labels", labels);
    json_set(&metadata, mem, "annotations", annotations);
    return metadata;
}

static int make_rbac(struct rest *r, struct batch *b, const char *plural, const char *name,
                     struct json *doc, const char *member, struct hk_arena *mem, struct hk_err *err)
{
    const struct port_request q = {
        .verb = PORT_CREATE,
        .kind = rest_kind_find(r, HK_STR(RBAC_GROUP), HK_STR("v1"), hk_str(plural))->kind,
        .name = hk_str(name),
        .body = doc,
    };

    json_set(doc, mem, "metadata", make_metadata(name, mem));
    const int rc = bootstrap_create_or_update(b, &q, member, mem, err);
    return rc < 0 ? hk_wrap(err, rc, "%s '%s'", plural, name) : 0;
}

static bool has_word(const char *text, const char *want)
{
    struct hk_str rest = hk_str(text), word;

    while (hk_str_cut(&rest, ' ', &word)) {
        if (hk_str_is(word, want)) {
            return true;
        }
    }
    return false;
}

static void add_name_rules(struct json *rules, const char *role, struct hk_arena *mem)
{
    for (const struct role_name_rule *row = role_name_rules; row->role; row++) {
        struct json rule = json_make_object();
        if (strcmp(row->role, role) != 0) {
            continue;
        }
        bootstrap_set_words(&rule, "verbs", row->verbs, mem);
        bootstrap_set_words(&rule, "apiGroups", row->groups, mem);
        bootstrap_set_words(&rule, "resources", row->resources, mem);
        bootstrap_set_words(&rule, "resourceNames", row->names, mem);
        json_push(rules, mem, rule);
    }
}

static int make_role(struct rest *r, struct batch *b, const char *name, struct hk_arena *mem,
                     struct hk_err *err)
{
    struct json doc = json_make_object();
    struct json rules = json_make_array();

    for (const struct role_rule *row = role_rules; row->roles; row++) {
        struct json rule = json_make_object();
        if (!has_word(row->roles, name)) {
            continue;
        }
        bootstrap_set_words(&rule, "verbs", row->verbs, mem);
        bootstrap_set_words(&rule, "apiGroups", row->groups, mem);
        bootstrap_set_words(&rule, "resources", row->resources, mem);
        bootstrap_set_words(&rule, "nonResourceURLs", row->paths, mem);
        json_push(&rules, mem, rule);
    }
    add_name_rules(&rules, name, mem);
    json_set(&doc, mem, "rules", rules);
    return make_rbac(r, b, "clusterroles", name, &doc, "rules", mem, err);
}

static int make_binding(struct rest *r, struct batch *b, const struct role_grant *row,
                        struct hk_arena *mem, struct hk_err *err)
{
    struct json doc = json_make_object();
    struct json ref = json_make_object();
    struct json subjects = json_make_array();
    struct hk_str rest = hk_str(row->groups), group;

    json_set_cstr(&ref, mem, "apiGroup", RBAC_GROUP);
    json_set_cstr(&ref, mem, "kind", "ClusterRole");
    json_set_cstr(&ref, mem, "name", row->role);
    while (hk_str_cut(&rest, ' ', &group)) {
        struct json subject = json_make_object();
        json_set_cstr(&subject, mem, "kind", "Group");
        json_set_cstr(&subject, mem, "apiGroup", RBAC_GROUP);
        json_set_str(&subject, mem, "name", group);
        json_push(&subjects, mem, subject);
    }
    json_set(&doc, mem, "roleRef", ref);
    json_set(&doc, mem, "subjects", subjects);
    return make_rbac(r, b, "clusterrolebindings", row->role, &doc, "subjects", mem, err);
}

int bootstrap_roles(struct rest *r, struct hk_err *err)
{
    struct batch b = {.waiter.port = rest_port(r)};
    struct hk_arena mem = {0};
    int rc = 0;

    for (const char *const *name = role_names; rc == 0 && *name; name++) {
        rc = make_role(r, &b, *name, &mem, err);
    }
    for (const struct role_grant *row = role_grants; rc == 0 && row->role; row++) {
        rc = make_binding(r, &b, row, &mem, err);
    }
    hk_arena_fini(&mem);
    return batch_settle(&b, rc, err);
}

/* ---- initial objects ---- */

/* The priority classes of every cluster, and a default storage class. */
static const char *const objects[] = {
    "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, "
    "metadata: {name: system-cluster-critical}, value: 2000000000, "
    "description: Pods the cluster cannot work without; they may be moved to another node.}",
    "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, "
    "metadata: {name: system-node-critical}, value: 2000001000, "
    "description: Pods their node cannot work without.}",
    "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: standard, "
    "annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}, "
    "provisioner: hekla.io/local, reclaimPolicy: Delete, volumeBindingMode: WaitForFirstConsumer, "
    "allowedTopologies: [{matchLabelExpressions: [{key: hekla.io/volumes, values: [local]}]}]}",
};

/* An existing object is left to its administrator. */
static int bootstrap_make_object(struct rest *r, struct batch *b, const struct json *doc,
                                 struct hk_arena *mem, struct hk_err *err)
{
    const struct rest_kind *kind =
        rest_kind_by_name(r, json_str_field(doc, "apiVersion"), json_str_field(doc, "kind"));

    return bootstrap_create_or_update(
        b,
        &(struct port_request){.verb = PORT_CREATE,
                               .kind = kind->kind,
                               .name = json_str_at(doc, "metadata.name"),
                               .body = doc},
        NULL, mem, err);
}

/* The queues that Volcano's scheduler creates at its start. */
static int bootstrap_make_queues(struct rest *r, struct batch *b, struct hk_arena *mem,
                                 struct hk_err *err)
{
    for (size_t i = 0; i < API_NBUILTIN_QUEUES; i++) {
        const struct api_builtin_queue *q = &api_builtin_queues[i];
        const struct json doc = api_builtin_queue_manifest(q, hk_str(q->name), mem);
        const int rc = bootstrap_make_object(r, b, &doc, mem, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int bootstrap_make_objects(struct rest *r, struct batch *b, struct hk_arena *mem,
                                  struct hk_err *err)
{
    int rc = bootstrap_make_queues(r, b, mem, err);

    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < HK_LEN(objects); i++) {
        struct yaml_docs docs = {0};
        rc = yaml_parse(hk_str(objects[i]), 0, mem, &docs, err);
        if (rc < 0) {
            return rc;
        }
        rc = bootstrap_make_object(r, b, &docs.at[0], mem, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int bootstrap_objects(struct rest *r, struct hk_err *err)
{
    struct batch b = {.waiter.port = rest_port(r)};
    struct hk_arena mem = {0};
    int rc = bootstrap_make_objects(r, &b, &mem, err);

    hk_arena_fini(&mem);
    rc = batch_settle(&b, rc, err);
    return rc < 0 ? hk_wrap(err, rc, "first objects") : 0;
}
