// SPDX-License-Identifier: Apache-2.0
// Stores the built-in definitions through the port, one after the other, before the server listens.
// A definition that is there already gets our spec; where that changes nothing, nothing is written.
#include "apiserver/bootstrap.h"

#include "apiserver/crds.h"
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

static int update(struct port *p, const struct port_request *create, struct hk_arena *mem,
                  struct hk_err *err)
{
    struct answer a;
    struct json doc;
    int rc =
        ask(p, &(struct port_request){.verb = PORT_GET, .kind = create->kind, .name = create->name},
            &a, err);

    if (rc < 0) {
        return rc;
    }
    doc = json_clone(&a.obj->root, mem);
    api_object_unref(a.obj);
    json_put(&doc, mem, HK_STR("spec"), *json_get(create->body, "spec"));
    rc = ask(p,
             &(struct port_request){
                 .verb = PORT_UPDATE, .kind = create->kind, .name = create->name, .body = &doc},
             &a, err);
    api_object_unref(a.obj);
    return rc;
}

static int install(struct rest *r, const struct crd_file *f, struct hk_arena *mem,
                   struct hk_err *err)
{
    struct port *p = rest_port(r);
    struct yaml_docs docs = {0};
    struct answer a;
    int rc = yaml_parse((struct hk_str){f->text, f->len}, 0, mem, &docs, err);

    if (rc < 0) {
        return rc;
    }
    const struct json *doc = &docs.at[0];
    const struct port_request q = {
        .verb = PORT_CREATE,
        .kind = rest_kind_find(
            r, HK_STR("apiextensions.k8s.io"),
                      HK_STR("v1"), HK_STR("customresourcedefinitions"))->kind,
                      .name = json_str(json_at(doc, "metadata.name"), HK_STR("")), .body = doc,
                      };
    rc = ask(p, &q, &a, err);
    api_object_unref(a.obj);
    return rc == -HK_EEXIST ? update(p, &q, mem, err) : rc;
}

int bootstrap_crds(struct rest *r, struct hk_err *err)
{
    struct hk_arena mem = {0};
    int rc = 0;

    for (const struct crd_file *f = crd_files; rc == 0 && f->name; f++) {
        rc = install(r, f, &mem, err);
        if (rc < 0) {
            hk_wrap(err, rc, "definition '%s'", f->name);
        }
    }
    hk_arena_fini(&mem);
    return rc;
}
