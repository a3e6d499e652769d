// SPDX-License-Identifier: Apache-2.0
// Entry point for API objects: calls the functions of the object's kind, and keeps the list of
// objects that were refused. The kinds themselves are in ingest_pod.c, ingest_node.c and so on.
// Runs between cycles, called by readers of manifests and watch events.
#include "scheduler/ingest_priv.h"

static const struct {
    ingest_put_fn *put;
    ingest_del_fn *del;
} kinds[API_NKINDS] = {
    [API_POD] = {ingest_pod_put, ingest_pod_del},
    [API_NODE] = {ingest_node_put, ingest_node_del},
    [API_NAMESPACE] = {ingest_namespace_put, ingest_namespace_del},
    [API_PODGROUP] = {ingest_podgroup_put, ingest_podgroup_del},
    [API_QUEUE] = {ingest_queue_put, ingest_queue_del},
    [API_PRIORITY_CLASS] = {ingest_class_put, ingest_class_del},
    [API_RESOURCE_QUOTA] = {ingest_quota_put, ingest_quota_del},
    [API_PDB] = {ingest_pdb_put, ingest_pdb_del},
    [API_SERVICE] = {ingest_service_put, ingest_service_del},
    [API_REPLICATION_CONTROLLER] = {ingest_rc_put, ingest_rc_del},
    [API_REPLICA_SET] = {ingest_rs_put, ingest_rs_del},
    [API_STATEFUL_SET] = {ingest_sts_put, ingest_sts_del},
    [API_HYPERNODE] = {ingest_hyper_put, ingest_hyper_del},
    [API_NODESHARD] = {ingest_shard_put, ingest_shard_del},
    [API_PVC] = {ingest_pvc_put, ingest_pvc_del},
    [API_PV] = {ingest_pv_put, ingest_pv_del},
    [API_STORAGE_CLASS] = {ingest_storage_class_put, ingest_storage_class_del},
    [API_CSI_NODE] = {ingest_csi_node_put, ingest_csi_node_del},
    [API_CSI_DRIVER] = {ingest_csi_driver_put, ingest_csi_driver_del},
    [API_CSI_CAPACITY] = {ingest_csi_capacity_put, ingest_csi_capacity_del},
    [API_VOLUME_ATTACHMENT] = {ingest_attachment_put, ingest_attachment_del},
};

void ingest_clear(struct ingest *in)
{
    while (in->held.len > 0) {
        hk_intern_drop(&in->m->str, hk_vec_pop(&in->held));
    }
    hk_arena_clear(&in->mem);
}

bool ingest_takes(const struct api_kind *kind)
{
    return kinds[kind->id].put != NULL;
}

struct hk_str ingest_ns(struct hk_str ns)
{
    return ns.n > 0 ? ns : HK_STR("default");
}

struct hk_str ingest_uid(struct ingest *in, const struct api_meta *meta)
{
    if (meta->uid.n > 0) {
        return meta->uid;
    }
    return hk_str(
        hk_arena_printf(&in->mem, "%.*s/%.*s", HK_FMT(ingest_ns(meta->ns)), HK_FMT(meta->name)));
}

/* ---- problems ---- */

static void problem_fini(struct ingest_problem *p)
{
    hk_free(p->object);
    hk_free(p->file);
    hk_free(p->text);
}

static uint64_t problem_key(const struct ingest *in, const struct api_kind *kind,
                            struct hk_str object)
{
    return PAIR_KEY(kind->id, hk_intern_find(&in->objects, object));
}

void ingest_problem_clear(struct ingest *in, const struct api_kind *kind, struct hk_str object)
{
    if (in->problems.len == 0) {
        return;
    }
    const uint64_t key = problem_key(in, kind, object);
    const uint32_t at = hk_map_get(&in->problem_at, key);

    if (at == HK_NONE) {
        return;
    }
    problem_fini(&in->problems.at[at]);
    hk_map_del(&in->problem_at, key);
    hk_intern_drop(&in->objects, (uint32_t)key);
    hk_vec_swap_remove(&in->problems, at);
    if (at < in->problems.len) {
        const struct ingest_problem *moved = &in->problems.at[at];
        hk_map_put(&in->problem_at, problem_key(in, api_kind(moved->kind), hk_str(moved->object)),
                   at);
    }
}

void ingest_problem_set(struct ingest *in, const struct api_kind *kind, struct hk_str object,
                        const char *file, uint32_t line, const char *text)
{
    ingest_problem_clear(in, kind, object);
    hk_map_put(&in->problem_at, PAIR_KEY(kind->id, hk_intern_hold(&in->objects, object)),
               in->problems.len);
    hk_vec_push(&in->problems, ((struct ingest_problem){
                                   .kind = kind->id,
                                   .object = hk_strndup(object.s, object.n),
                                   .file = file ? hk_strdup(file) : NULL,
                                   .line = line,
                                   .text = hk_strdup(text),
                               }));
}

const struct ingest_problem *ingest_problems(const struct ingest *in, uint32_t *ret_n)
{
    *ret_n = in->problems.len;
    return in->problems.at;
}

/* Decoders begin an error with "line 12: " if they know a better line than the object's first. */
static const char *ingest_strip_line_number(const char *text, uint32_t *line)
{
    unsigned at;
    int used = 0;

    if (sscanf(text, "line %u: %n", &at, &used) == 1 && used > 0) {
        *line = at;
        return text + used;
    }
    return text;
}

/* "ns/name"; the name alone for cluster-scoped kinds; "(line 3)" for objects without a name. */
static struct hk_str object_name(struct ingest *in, const struct api_kind *kind,
                                 const struct json *doc)
{
    const struct hk_str none = HK_STR("");
    const struct hk_str name = json_str(json_at(doc, "metadata.name"), none);
    const struct hk_str ns = json_str(json_at(doc, "metadata.namespace"), none);

    if (name.n == 0) {
        return hk_str(hk_arena_printf(&in->mem, "(line %u)", doc->line));
    }
    if (!kind->namespaced) {
        return name;
    }
    return hk_str(hk_arena_printf(&in->mem, "%.*s/%.*s", HK_FMT(ingest_ns(ns)), HK_FMT(name)));
}

static void ingest_record_problem(struct ingest *in, const struct api_kind *kind,
                                  const struct json *doc, const char *file,
                                  const struct hk_err *err)
{
    uint32_t line = doc->line;
    const char *text = ingest_strip_line_number(err->text, &line);

    ingest_problem_set(in, kind, object_name(in, kind, doc), file, line, text);
}

/* ---- put and delete ---- */

static int ingest_put_object(struct ingest *in, const struct api_kind *kind, const struct json *doc,
                             struct hk_err *err)
{
    if (json_str(json_at(doc, "metadata.name"), HK_STR("")).n == 0) {
        return hk_fail(err, HK_EINVAL, "metadata.name: missing");
    }
    return kinds[kind->id].put(in, doc, err);
}

int ingest_put(struct ingest *in, const struct api_kind *kind, const struct json *doc,
               const char *file, struct hk_err *err)
{
    struct hk_err why = {0};
    int rc;

    if (!kinds[kind->id].put) {
        return 0;
    }
    rc = ingest_put_object(in, kind, doc, &why);
    if (rc < 0) {
        ingest_record_problem(in, kind, doc, file, &why);
        hk_err_set(err, (enum hk_code)why.code, "%s", why.text);
    } else if (in->problems.len > 0) {
        ingest_problem_clear(in, kind, object_name(in, kind, doc));
    }
    ingest_clear(in);
    return rc;
}

void ingest_del(struct ingest *in, const struct api_kind *kind, struct hk_str ns,
                struct hk_str name)
{
    struct hk_str object = name;

    if (!kinds[kind->id].del) {
        return;
    }
    if (kind->namespaced) {
        ns = ingest_ns(ns);
        object = hk_str(hk_arena_printf(&in->mem, "%.*s/%.*s", HK_FMT(ns), HK_FMT(name)));
    }
    kinds[kind->id].del(in, ns, name);
    ingest_problem_clear(in, kind, object);
    ingest_clear(in);
}

void ingest_settle(struct ingest *in)
{
    ingest_group_settle(in);
    ingest_pod_settle(in);
    in->classes_changed = false;
    ingest_spread_settle(in);
    ingest_hyper_settle(in);
    ingest_shard_settle(in);
    ingest_clear(in);
}

struct ingest *ingest_new(struct model *m, const struct ingest_opts *o)
{
    static const struct hk_str volcano = {API_SCHEDULER_NAME, sizeof(API_SCHEDULER_NAME) - 1};
    const struct hk_str *names = o->nscheduler_name > 0 ? o->scheduler_names : &volcano;
    struct ingest *in = hk_zalloc(sizeof(*in));

    in->m = m;
    in->make_queues = o->make_queues;
    in->nscheduler = HK_MAX(o->nscheduler_name, 1);
    in->schedulers = hk_arena_array(&in->own, in->nscheduler, sizeof(*in->schedulers));
    for (uint32_t k = 0; k < in->nscheduler; k++) {
        in->schedulers[k] = hk_arena_str(&in->own, names[k]);
    }
    in->default_queue = o->default_queue.n > 0 ? hk_arena_str(&in->own, o->default_queue)
                                               : HK_STR(API_QUEUE_NAME_DEFAULT);
    return in;
}

void ingest_free(struct ingest *in)
{
    if (!in) {
        return;
    }
    for (uint32_t k = 0; k < in->problems.len; k++) {
        problem_fini(&in->problems.at[k]);
    }
    hk_vec_fini(&in->problems);
    hk_map_fini(&in->problem_at);
    hk_intern_fini(&in->objects);
    hk_vec_fini(&in->classes);
    hk_map_fini(&in->class_at);
    hk_vec_fini(&in->notes);
    ingest_spread_fini(in);
    ingest_hyper_fini(in);
    ingest_shard_fini(in);
    hk_buf_fini(&in->key);
    hk_vec_fini(&in->held);
    hk_arena_fini(&in->mem);
    hk_arena_fini(&in->own);
    hk_free(in);
}
