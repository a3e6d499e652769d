// SPDX-License-Identifier: Apache-2.0
// Loads manifests into an offline cluster: documents, lists, and the one thing that a controller
// would add before the scheduler can act, the PodGroup of a pod that names none.
#include "sim/cluster.h"

#include "api/names.h"
#include "api/pod.h"
#include "codec/yaml.h"

struct load {
    struct cluster *c;
    const char *file;
    struct hk_arena *mem;
};

/* ---- refused objects ---- */

static struct hk_str cluster_load_copy_str(struct cluster *c, struct hk_str s)
{
    return hk_arena_str(&c->kept, s);
}

/* "Kind ns/name", or the parts of it that the object has. */
static struct hk_str cluster_load_object_label(struct cluster *c, const struct json *obj)
{
    const struct hk_str kind = json_str_field(obj, "kind");
    const struct hk_str ns = json_str_at(obj, "metadata.namespace");
    const struct hk_str name = json_str_at(obj, "metadata.name");

    return hk_str(hk_arena_printf(&c->kept, "%.*s %.*s%s%.*s", HK_FMT(kind), HK_FMT(ns),
                                  ns.n > 0 ? "/" : "", HK_FMT(name)));
}

static void ignore(struct load *l, const struct api_kind *kind, const struct json *obj)
{
    const char *why = "unknown kind";

    if (kind) {
        why = kind->id == API_JOB ? "Volcano Jobs are not expanded into pods here"
                                  : "this kind has no part in scheduling";
    }
    hk_vec_push(&l->c->ignored, ((struct cluster_ignored){
                                    .object = cluster_load_object_label(l->c, obj),
                                    .file = cluster_load_copy_str(l->c, hk_str(l->file)),
                                    .line = obj->line,
                                    .why = why,
                                }));
}

/* Messages begin with "line N: " where the decoder knows the line. */
static void problem(struct load *l, const struct json *doc, const struct hk_err *err)
{
    unsigned line = doc->line;
    int skip = 0;

    if (sscanf(err->text, "line %u: %n", &line, &skip) != 1) {
        skip = 0;
    }
    hk_vec_push(&l->c->problems, ((struct cluster_problem){
                                     .object = HK_STR(""),
                                     .file = cluster_load_copy_str(l->c, hk_str(l->file)),
                                     .line = line,
                                     .text = cluster_load_copy_str(l->c, hk_str(err->text + skip)),
                                 }));
}

/* ---- the PodGroup of a pod without one ---- */

static void cluster_load_add_amount(struct api_resource *sum, uint32_t *n,
                                    const struct api_resource *r)
{
    for (uint32_t k = 0; k < *n; k++) {
        if (hk_str_eq(sum[k].name, r->name)) {
            sum[k].q = quantity_add(sum[k].q, r->q);
            return;
        }
    }
    sum[(*n)++] = *r;
}

static void raise_to(struct api_resource *sum, uint32_t *n, const struct api_resource *r)
{
    for (uint32_t k = 0; k < *n; k++) {
        if (hk_str_eq(sum[k].name, r->name)) {
            sum[k].q = quantity_cmp(sum[k].q, r->q) < 0 ? r->q : sum[k].q;
            return;
        }
    }
    sum[(*n)++] = *r;
}

/* What the pod needs to run: the sum of its containers, or its largest init container. */
static struct json min_resources(const struct api_pod *pod, struct hk_arena *a)
{
    struct json ret = json_make_object();
    struct api_resource *sum;
    uint32_t n = 0, max = pod->overhead.len;

    for (uint32_t k = 0; k < pod->containers.len; k++) {
        max += pod->containers.at[k].requests.len;
    }
    for (uint32_t k = 0; k < pod->init_containers.len; k++) {
        max += pod->init_containers.at[k].requests.len;
    }
    sum = hk_arena_array(a, max + 1, sizeof(*sum));
    for (uint32_t k = 0; k < pod->containers.len; k++) {
        const struct api_resources *r = &pod->containers.at[k].requests;
        for (uint32_t i = 0; i < r->len; i++) {
            cluster_load_add_amount(sum, &n, &r->at[i]);
        }
    }
    for (uint32_t k = 0; k < pod->init_containers.len; k++) {
        const struct api_container *init = &pod->init_containers.at[k];
        for (uint32_t i = 0; i < init->requests.len; i++) {
            (init->restart_always ? cluster_load_add_amount : raise_to)(sum, &n,
                                                                        &init->requests.at[i]);
        }
    }
    for (uint32_t i = 0; i < pod->overhead.len; i++) {
        cluster_load_add_amount(sum, &n, &pod->overhead.at[i]);
    }
    for (uint32_t k = 0; k < n; k++) {
        json_put(&ret, a, sum[k].name, json_make_quantity(sum[k].q, a));
    }
    return ret;
}

/* Pods of one controller share a group: "podgroup-" plus the uid, or the name where manifests have
 * no uid. */
static struct hk_str group_name(const struct api_pod *pod, struct hk_arena *a)
{
    const struct api_owner *owner = api_meta_controller(&pod->meta);
    struct hk_str id = pod->meta.uid.n > 0 ? pod->meta.uid : pod->meta.name;

    if (owner) {
        id = owner->uid.n > 0 ? owner->uid : owner->name;
    }
    return hk_str(hk_arena_printf(a, "podgroup-%.*s", HK_FMT(id)));
}

static struct json group_meta(const struct api_pod *pod, struct hk_str name, struct hk_arena *a)
{
    static const char *const inherited[] = {API_ANN_PREEMPTABLE, API_ANN_COOLDOWN_TIME,
                                            API_ANN_REVOCABLE_ZONE, API_ANN_JDB_MIN_AVAILABLE,
                                            API_ANN_JDB_MAX_UNAVAILABLE};
    const struct json *created = json_at(pod->raw, "metadata.creationTimestamp");
    struct json meta = json_make_object(), notes = json_make_object();

    for (size_t k = 0; k < HK_LEN(inherited); k++) {
        const struct hk_str *v = api_map_get(&pod->meta.annotations, hk_str(inherited[k]));
        if (v) {
            json_set_str(&notes, a, inherited[k], *v);
        }
    }
    json_set_str(&meta, a, "name", name);
    json_set_str(&meta, a, "namespace", pod->meta.ns);
    json_set(&meta, a, "annotations", notes);
    if (created) {
        json_set(&meta, a, "creationTimestamp", *created);
    }
    return meta;
}

static struct json make_group(const struct api_pod *pod, struct hk_str name, struct hk_arena *a)
{
    const struct hk_str *queue =
        api_map_get(&pod->meta.annotations, HK_STR("scheduling.volcano.sh/queue-name"));
    struct json group = json_make_object(), spec = json_make_object();

    json_set_int(&spec, a, "minMember", 1);
    json_set(&spec, a, "minResources", min_resources(pod, a));
    if (queue) {
        json_set_str(&spec, a, "queue", *queue);
    }
    if (pod->priority_class_name.n > 0) {
        json_set_str(&spec, a, "priorityClassName", pod->priority_class_name);
    }
    json_set(&group, a, "metadata", group_meta(pod, name, a));
    json_set(&group, a, "spec", spec);
    group.line = pod->raw->line;
    return group;
}

static bool wants_group(const struct api_pod *pod)
{
    const struct hk_str *group = api_map_get(&pod->meta.annotations, HK_STR(API_ANN_GROUP_NAME));

    return hk_str_is(pod->scheduler_name, API_SCHEDULER_NAME) && (!group || group->n == 0);
}

/* Gives the pod its group; ingest reports a pod that does not decode. */
static struct json grouped(struct load *l, const struct json *obj)
{
    struct json copy = *obj;
    struct api_pod pod;

    if (api_pod_decode(obj, l->mem, &pod, NULL) < 0 || !wants_group(&pod)) {
        return copy;
    }
    const struct hk_str ns = pod.meta.ns.n > 0 ? pod.meta.ns : HK_STR("default");
    const struct hk_str name = group_name(&pod, l->mem);
    copy = json_clone(obj, l->mem);
    struct json *meta = json_need(&copy, l->mem, "metadata", JSON_OBJECT);
    json_set_str(json_need(meta, l->mem, "annotations", JSON_OBJECT), l->mem, API_ANN_GROUP_NAME,
                 name);
    const job_id j = model_job_find(&l->c->m, ns, name);
    if (id_none(j) || !model_job(&l->c->m, j)->has_pg) {
        const struct json group = make_group(&pod, name, l->mem);
        ingest_put(l->c->in, api_kind(API_PODGROUP), &group, l->file, NULL);
    }
    return copy;
}

/* ---- documents ---- */

/* Ingest records problems; loading continues. */
static int load_object(void *ctx, const struct api_kind *kind, const struct json *obj,
                       struct hk_err *err)
{
    struct load *l = ctx;

    if (!kind || !ingest_reads(kind)) {
        ignore(l, kind, obj);
        return 0;
    }
    const struct json doc = kind->id == API_POD ? grouped(l, obj) : *obj;
    ingest_put(l->c->in, kind, &doc, l->file, NULL);
    return 0;
}

/* Items of a plain List are separate documents: a broken one does not affect the others. */
static void load_doc(struct load *l, const struct json *doc)
{
    const struct json *items = json_get(doc, "items");
    struct hk_err err = {0};

    if (hk_str_is(json_str_field(doc, "kind"), "List") && json_is(items, JSON_ARRAY)) {
        for (uint32_t i = 0; i < items->len; i++) {
            load_doc(l, &items->items[i]);
        }
    } else if (api_list_each(doc, load_object, l, &err) < 0) {
        problem(l, doc, &err);
    }
}

int cluster_load(struct cluster *c, struct hk_str text, const char *file, struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct load l = {c, file, &mem};
    struct yaml_docs docs = {0};
    int rc;

    rc = yaml_parse(text, 0, &mem, &docs, err);
    if (rc < 0) {
        return file ? hk_wrap(err, rc, "%s", file) : rc;
    }
    for (uint32_t k = 0; k < docs.len; k++) {
        load_doc(&l, &docs.at[k]);
    }
    return 0;
}
