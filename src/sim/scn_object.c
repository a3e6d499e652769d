// SPDX-License-Identifier: Apache-2.0
// Turns scenario lines into API objects. A line about an existing object changes the named fields
// and keeps the rest; scn_field.c interprets the words. Objects go through ingest, as from a watch.
#include "sim/scn_priv.h"

#include "api/patch.h"
#include "codec/yaml.h"

/* ---- objects by reference ---- */

static struct scn_object *scn_object_find(const struct scn_run *r, const char *word,
                                          struct hk_str ref)
{
    char key[256];
    const int n = snprintf(key, sizeof(key), "%s %.*s", word, HK_FMT(ref));

    if (n < 0 || (size_t)n >= sizeof(key)) {
        return NULL;
    }
    const uint32_t id = hk_intern_find(&r->refs, (struct hk_str){key, (size_t)n});
    return id == HK_NONE || id >= r->objects.len ? NULL : &r->objects.at[id];
}

const struct scn_object *scn_task_find(const struct scn_run *r, struct hk_str ref)
{
    const struct scn_object *o = scn_object_find(r, "task", ref);

    return o ? o : scn_object_find(r, "pod", ref);
}

const struct scn_object *scn_job_find(const struct scn_run *r, struct hk_str ref)
{
    return scn_object_find(r, "job", ref);
}

static struct scn_object *scn_object_add(struct scn_run *r, const struct scn_kind *kind,
                                         struct hk_str ref)
{
    const struct hk_str key = hk_str(hk_arena_printf(&r->mem, "%s %.*s", kind->word, HK_FMT(ref)));
    const uint32_t id = hk_intern(&r->refs, key);

    while (r->objects.len <= id) {
        hk_vec_push(&r->objects, (struct scn_object){0});
    }
    r->objects.at[id].kind = kind->id;
    return &r->objects.at[id];
}

/* "j1/0" is the pod j1-0. */
static struct hk_str object_name(struct scn_run *r, struct hk_str ref)
{
    char *name = hk_arena_strndup(&r->mem, ref.s, ref.n);

    for (size_t k = 0; k < ref.n; k++) {
        name[k] = name[k] == '/' ? '-' : name[k];
    }
    return (struct hk_str){name, ref.n};
}

static void fresh(struct scn_run *r, const struct scn_kind *kind, struct hk_str ref,
                  struct json *doc)
{
    *doc = json_make_object();
    json_set_at(doc, &r->mem, "metadata.name", json_make_str(object_name(r, ref)));
    if (api_kind(kind->id)->namespaced) {
        json_set_at(doc, &r->mem, "metadata.namespace", json_make_str(HK_STR("ns")));
    }
    json_set_at(doc, &r->mem, "metadata.creationTimestamp", scn_time(r, scn_creation_ns(r)));
    if (kind->init) {
        kind->init(r, doc, ref);
    }
}

/* Copies changes since the object was last described (node, phase) into it. False when the object
 * no longer exists. */
static bool catch_up(struct scn_run *r, struct scn_object *o)
{
    const struct model *m = &r->c.m;

    if (o->kind == API_POD) {
        const task_id t = model_task_find(m, o->ns, o->name);
        if (id_none(t)) {
            return false;
        }
        const struct task *task = model_task(m, t);
        if (!id_none(task->node)) {
            json_set_at(&o->doc, &r->mem, "spec.nodeName",
                        json_make_str_copy(model_str(m, m->nodes.name[task->node.i]), &r->mem));
        }
        if (task->status == TASK_RUNNING) {
            json_set_at(&o->doc, &r->mem, "status.phase", json_make_str(HK_STR("Running")));
        }
    } else if (o->kind == API_PODGROUP) {
        const job_id j = model_job_find(m, o->ns, o->name);
        if (id_none(j) || !model_job(m, j)->has_pg) {
            return false;
        }
        json_set_at(&o->doc, &r->mem, "status.phase",
                    json_make_str(hk_str(pg_phase_name(model_job(m, j)->phase))));
    }
    return true;
}

/* A refused object becomes a problem, which the scenario may expect. */
static void scn_object_ingest(struct scn_run *r, struct scn_object *o)
{
    o->ns = json_str_at(&o->doc, "metadata.namespace");
    o->name = json_str_at(&o->doc, "metadata.name");
    ingest_put(r->c.in, api_kind(o->kind), &o->doc, r->file->path, NULL);
}

/* ---- lines ---- */

/* Merges the manifest below a line into the object. */
static int apply_body(struct scn_run *r, struct json *doc, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf scratch = {0};
    struct yaml_docs docs = {0};
    int rc;

    if (!r->line->body.s) {
        return 0;
    }
    const struct hk_str text = hk_arena_str(&r->mem, scn_body(r, &scratch));
    rc = yaml_parse(text, 0, &r->mem, &docs, err);
    if (rc < 0) {
        return hk_wrap(err, rc, "%s", r->file->path);
    }
    for (uint32_t k = 0; k < docs.len; k++) {
        if (docs.at[k].type != JSON_OBJECT) {
            return scn_fail(r, err, "want a manifest to merge in");
        }
        const struct json patch = json_clone(&docs.at[k], &r->mem);
        api_patch_merge(doc, &patch, &r->mem);
    }
    return 0;
}

static int one_object(struct scn_run *r, const struct scn_kind *kind, struct hk_str ref,
                      struct hk_err *err)
{
    struct scn_object *o = scn_object_find(r, kind->word, ref);
    int rc;

    if (r->made >= r->opts->max_objects) {
        return scn_fail(r, err, "more than %u objects", r->opts->max_objects);
    }
    r->made++;
    if (strcmp(kind->word, "task") == 0 && !memchr(ref.s, '/', ref.n)) {
        return scn_fail(r, err, "task '%.*s': want JOB/NAME", HK_FMT(ref));
    }
    if (!o || o->doc.type != JSON_OBJECT || !catch_up(r, o)) {
        o = scn_object_add(r, kind, ref);
        fresh(r, kind, ref, &o->doc);
    }
    for (uint32_t k = 2; k < r->line->n; k++) {
        rc = scn_kind_set(r, kind, &o->doc, &r->line->words[k], err);
        if (rc < 0) {
            return rc;
        }
    }
    rc = apply_body(r, &o->doc, err);
    if (rc < 0) {
        return rc;
    }
    scn_object_ingest(r, o);
    return 0;
}

int scn_object_line(struct scn_run *r, const struct scn_kind *kind, struct hk_err *err)
{
    struct scn_names names;
    int rc;

    if (r->line->n < 2 || r->line->words[1].value.s) {
        return scn_fail(r, err, "want %s NAME", kind->word);
    }
    rc = scn_expand(r, r->line->words[1].key, &names, err);
    for (uint32_t k = 0; rc == 0 && k < names.n; k++) {
        rc = one_object(r, kind, names.at[k], err);
    }
    return rc;
}

int scn_raw_line(struct scn_run *r, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf scratch = {0};

    if (r->line->n != 1 || !r->line->body.s) {
        return scn_fail(r, err, "want object <<EOF and manifests");
    }
    return cluster_load(&r->c, scn_body(r, &scratch), r->file->path, err);
}

int scn_delete_line(struct scn_run *r, struct hk_err *err)
{
    const struct scn_line *l = r->line;
    const struct scn_kind *kind = l->n == 3 ? scn_kind_find(l->words[1].key) : NULL;
    struct scn_names names;
    int rc;

    if (!kind) {
        return scn_fail(r, err, "want delete KIND NAME");
    }
    rc = scn_expand(r, l->words[2].key, &names, err);
    for (uint32_t k = 0; rc == 0 && k < names.n; k++) {
        struct scn_object *o = scn_object_find(r, kind->word, names.at[k]);
        if (!o || o->doc.type != JSON_OBJECT) {
            return scn_fail(r, err, "no %s '%.*s'", kind->word, HK_FMT(names.at[k]));
        }
        ingest_del(r->c.in, api_kind(o->kind), o->ns, o->name);
        o->doc = (struct json){0};
    }
    return rc;
}

int scn_finish_line(struct scn_run *r, const char *phase, struct hk_err *err)
{
    int rc = 0;

    for (uint32_t w = 1; w < r->line->n && rc == 0; w++) {
        struct scn_names names;
        rc = scn_expand(r, r->line->words[w].key, &names, err);
        for (uint32_t k = 0; rc == 0 && k < names.n; k++) {
            struct scn_object *o = (struct scn_object *)scn_task_find(r, names.at[k]);
            if (!o || o->doc.type != JSON_OBJECT || !catch_up(r, o)) {
                return scn_fail(r, err, "no task '%.*s'", HK_FMT(names.at[k]));
            }
            json_set_at(&o->doc, &r->mem, "status.phase", json_make_str(hk_str(phase)));
            scn_object_ingest(r, o);
        }
    }
    return rc;
}
