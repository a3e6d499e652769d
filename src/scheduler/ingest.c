// SPDX-License-Identifier: Apache-2.0
// Entry point for API objects: calls the functions of the object's kind, and records objects that
// were refused. The kinds themselves are in ingest_pod.c, ingest_node.c and so on. Runs between
// cycles, called by readers of manifests and watch events.
#include "scheduler/ingest_priv.h"

static const struct {
    ingest_put_fn *put;
    ingest_del_fn *del;
} handlers[API_NKINDS] = {
#define INGEST_HANDLERS(kind, name, need) [kind] = {ingest_##name##_put, ingest_##name##_del},
    INGEST_KINDS(INGEST_HANDLERS)
#undef INGEST_HANDLERS
};

enum { OPTIONAL, REQUIRED };

const struct ingest_kind ingest_kinds[INGEST_NKINDS] = {
#define INGEST_ROW(kind, name, need) {kind, need},
    INGEST_KINDS(INGEST_ROW)
#undef INGEST_ROW
};

bool ingest_reads(const struct api_kind *kind)
{
    return handlers[kind->id].put != NULL;
}

/* ---- problems ---- */

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
    return handlers[kind->id].put(in, doc, err);
}

int ingest_put(struct ingest *in, const struct api_kind *kind, const struct json *doc,
               const char *file, struct hk_err *err)
{
    struct hk_err why = {0};
    int rc;

    if (!handlers[kind->id].put) {
        return 0;
    }
    rc = ingest_put_object(in, kind, doc, &why);
    if (rc < 0) {
        ingest_record_problem(in, kind, doc, file, &why);
        hk_err_set(err, (enum hk_code)why.code, "%s", why.text);
    } else if (in->problems.len > 0) {
        ingest_problem_clear(in, kind, object_name(in, kind, doc));
    }
    ingest_known_put(in, kind, doc);
    ingest_clear(in);
    return rc;
}

void ingest_del(struct ingest *in, const struct api_kind *kind, struct hk_str ns,
                struct hk_str name)
{
    struct hk_str object = name;

    if (!handlers[kind->id].del) {
        return;
    }
    if (kind->namespaced) {
        ns = ingest_ns(ns);
        object = hk_str(hk_arena_printf(&in->mem, "%.*s/%.*s", HK_FMT(ns), HK_FMT(name)));
    }
    handlers[kind->id].del(in, ns, name);
    ingest_problem_clear(in, kind, object);
    ingest_known_del(in, kind);
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
    in->known = o->known;
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
    ingest_problem_fini(in);
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
