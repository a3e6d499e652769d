// SPDX-License-Identifier: Apache-2.0
// Stores the built-in definitions, roles and first objects through the port before the server
// listens. What is missing is made all at once, so that a few commits carry it to the disk. What is
// there already gets our content; where that changes nothing, nothing is written. Roles whose
// annotation says that they are not kept up to date are left as they are.
#include "apiserver/bootstrap.h"

#include "apiserver/crds.h"
#include "apiserver/roles.h"
#include "codec/yaml.h"

#include <errno.h>
#include <poll.h>

struct answer {
    bool done;
    int rc;
    struct hk_err err;
    struct api_object *obj;
};

static void on_msg(void *ctx, const struct port_msg *m)
{
    struct answer *a = ctx;

    if (m->type != PORT_DONE) {
        return;
    }
    a->done = true;
    a->rc = m->rc;
    if (m->err) {
        a->err = *m->err;
    }
    if (m->rc == 0 && m->obj) {
        a->obj = api_object_ref(m->obj);
    }
}

/* Submits and waits: nobody else uses the port yet. */
static int ask(struct port *p, const struct port_request *q, struct answer *a, struct hk_err *err)
{
    struct pollfd fd = {.fd = port_fd(p), .events = POLLIN};

    *a = (struct answer){0};
    port_submit(p, q, (struct port_sink){.on_msg = on_msg, .ctx = a});
    while (!a->done) {
        if (port_poll(p, UINT32_MAX) == 0 && !a->done && poll(&fd, 1, -1) < 0 && errno != EINTR) {
            return hk_fail(err, HK_EIO, "poll: %m");
        }
    }
    if (a->rc < 0 && err) {
        *err = a->err;
    }
    return a->rc;
}

#define RBAC_GROUP "rbac.authorization.k8s.io"
#define AUTOUPDATE "rbac.authorization.kubernetes.io/autoupdate"

/* Somebody has taken the object into his own hands. */
static bool is_left_alone(const struct json *doc)
{
    return hk_str_is(
        json_str(json_get(json_at(doc, "metadata.annotations"), AUTOUPDATE), HK_STR("")), "false");
}

/* Puts our value of the member in the place of the stored one. */
static int update(struct port *p, const struct port_request *create, const struct api_object *old,
                  const char *member, struct hk_arena *mem, struct hk_err *err)
{
    struct answer a;
    struct json doc = json_clone(&old->root, mem);

    json_put(&doc, mem, hk_str(member), *json_get(create->body, member));
    const int rc =
        ask(p,
            &(struct port_request){
                .verb = PORT_UPDATE, .kind = create->kind, .name = create->name, .body = &doc},
            &a, err);
    api_object_unref(a.obj);
    return rc;
}

/* ---- creations under way ---- */

struct batch {
    struct port *port;
    uint32_t pending;
    int rc; /* of the first that failed */
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

static int batch_wait(struct batch *b, struct hk_err *err)
{
    struct pollfd fd = {.fd = port_fd(b->port), .events = POLLIN};

    while (b->pending > 0) {
        if (port_poll(b->port, UINT32_MAX) == 0 && b->pending > 0 && poll(&fd, 1, -1) < 0 &&
            errno != EINTR) {
            return hk_fail(err, HK_EIO, "poll: %m");
        }
    }
    if (b->rc < 0 && err) {
        *err = b->err;
    }
    return b->rc;
}

/* Makes the object, or brings the member of one that is there up to date; NULL: leaves it. */
static int make(struct batch *b, const struct port_request *create, const char *member,
                struct hk_arena *mem, struct hk_err *err)
{
    struct answer a;
    int rc =
        ask(b->port,
            &(struct port_request){.verb = PORT_GET, .kind = create->kind, .name = create->name},
            &a, err);

    if (rc == -HK_ENOTFOUND) {
        b->pending++;
        port_submit(b->port, create, (struct port_sink){on_made, b});
        return 0;
    }
    if (rc == 0 && member && !is_left_alone(&a.obj->root) &&
        !json_equal(json_get(&a.obj->root, member), json_get(create->body, member))) {
        rc = update(b->port, create, a.obj, member, mem, err);
    }
    api_object_unref(a.obj);
    return rc;
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
        .name = json_str(json_at(doc, "metadata.name"), HK_STR("")),
        .body = doc,
    };
    return make(b, &q, "spec", mem, err);
}

int bootstrap_crds(struct rest *r, struct hk_err *err)
{
    struct batch b = {.port = rest_port(r)};
    struct hk_arena mem = {0};
    int rc = 0, made;

    for (const struct crd_file *f = crd_files; rc == 0 && f->name; f++) {
        rc = install(r, &b, f, &mem, err);
        if (rc < 0) {
            hk_wrap(err, rc, "definition '%s'", f->name);
        }
    }
    hk_arena_fini(&mem);
    made = batch_wait(&b, rc < 0 ? NULL : err);
    return rc < 0 ? rc : made;
}

/* ---- roles ---- */

static struct json words(const char *text, struct hk_arena *mem)
{
    struct hk_str rest = hk_str(text), word;
    struct json list = json_make_array();

    while (hk_str_cut(&rest, ' ', &word)) {
        json_push(&list, mem, json_make_str(word));
    }
    return list;
}

static void put_words(struct json *obj, const char *key, const char *text, struct hk_arena *mem)
{
    if (text) {
        json_put(obj, mem, hk_str(key), words(text, mem));
    }
}

static void put_text(struct json *obj, const char *key, const char *text, struct hk_arena *mem)
{
    json_put(obj, mem, hk_str(key), json_make_str(hk_str(text)));
}

static struct json make_metadata(const char *name, struct hk_arena *mem)
{
    struct json metadata = json_make_object();
    struct json labels = json_make_object();
    struct json annotations = json_make_object();

    put_text(&metadata, "name", name, mem);
    put_text(&labels, "kubernetes.io/bootstrapping", "rbac-defaults", mem);
    put_text(&annotations, AUTOUPDATE, "true", mem);
    json_put(&metadata, mem, HK_STR("labels"), labels);
    json_put(&metadata, mem, HK_STR("annotations"), annotations);
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

    json_put(doc, mem, HK_STR("metadata"), make_metadata(name, mem));
    const int rc = make(b, &q, member, mem, err);
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
        put_words(&rule, "verbs", row->verbs, mem);
        put_words(&rule, "apiGroups", row->groups, mem);
        put_words(&rule, "resources", row->resources, mem);
        put_words(&rule, "nonResourceURLs", row->paths, mem);
        json_push(&rules, mem, rule);
    }
    json_put(&doc, mem, HK_STR("rules"), rules);
    return make_rbac(r, b, "clusterroles", name, &doc, "rules", mem, err);
}

static int make_binding(struct rest *r, struct batch *b, const struct role_grant *row,
                        struct hk_arena *mem, struct hk_err *err)
{
    struct json doc = json_make_object();
    struct json ref = json_make_object();
    struct json subjects = json_make_array();
    struct hk_str rest = hk_str(row->groups), group;

    put_text(&ref, "apiGroup", RBAC_GROUP, mem);
    put_text(&ref, "kind", "ClusterRole", mem);
    put_text(&ref, "name", row->role, mem);
    while (hk_str_cut(&rest, ' ', &group)) {
        struct json subject = json_make_object();
        put_text(&subject, "kind", "Group", mem);
        put_text(&subject, "apiGroup", RBAC_GROUP, mem);
        json_put(&subject, mem, HK_STR("name"), json_make_str(group));
        json_push(&subjects, mem, subject);
    }
    json_put(&doc, mem, HK_STR("roleRef"), ref);
    json_put(&doc, mem, HK_STR("subjects"), subjects);
    return make_rbac(r, b, "clusterrolebindings", row->role, &doc, "subjects", mem, err);
}

int bootstrap_roles(struct rest *r, struct hk_err *err)
{
    struct batch b = {.port = rest_port(r)};
    struct hk_arena mem = {0};
    int rc = 0, made;

    for (const char *const *name = role_names; rc == 0 && *name; name++) {
        rc = make_role(r, &b, *name, &mem, err);
    }
    for (const struct role_grant *row = role_grants; rc == 0 && row->role; row++) {
        rc = make_binding(r, &b, row, &mem, err);
    }
    hk_arena_fini(&mem);
    made = batch_wait(&b, rc < 0 ? NULL : err);
    return rc < 0 ? rc : made;
}

/* ---- first objects ---- */

/* The queues that Volcano's scheduler makes at its start (jobs that name none go to the second),
 * the classes every cluster has, and a class of volumes for claims that name none. */
static const char *const objects[] = {
    "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: root}, "
    "spec: {reclaimable: false, weight: 1}}",
    "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}, "
    "spec: {reclaimable: true, weight: 1}}",
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

/* One that is there already is its administrator's. */
static int make_object(struct rest *r, struct batch *b, const char *text, struct hk_arena *mem,
                       struct hk_err *err)
{
    struct yaml_docs docs = {0};
    const struct json *doc;
    const struct rest_kind *kind;
    const int rc = yaml_parse(hk_str(text), 0, mem, &docs, err);

    if (rc < 0) {
        return rc;
    }
    doc = &docs.at[0];
    kind = rest_kind_by_name(r, json_str(json_get(doc, "apiVersion"), HK_STR("")),
                             json_str(json_get(doc, "kind"), HK_STR("")));
    return make(b,
                &(struct port_request){.verb = PORT_CREATE,
                                       .kind = kind->kind,
                                       .name = json_str(json_at(doc, "metadata.name"), HK_STR("")),
                                       .body = doc},
                NULL, mem, err);
}

int bootstrap_objects(struct rest *r, struct hk_err *err)
{
    struct batch b = {.port = rest_port(r)};
    struct hk_arena mem = {0};
    int rc = 0, made;

    for (size_t i = 0; rc == 0 && i < HK_LEN(objects); i++) {
        rc = make_object(r, &b, objects[i], &mem, err);
    }
    hk_arena_fini(&mem);
    made = batch_wait(&b, rc < 0 ? NULL : err);
    rc = rc < 0 ? rc : made;
    return rc < 0 ? hk_wrap(err, rc, "first objects") : 0;
}
