// SPDX-License-Identifier: Apache-2.0
// Changes that admins can make: open gates, enlarge queues, add nodes.
#include "explain/explain_change_priv.h"

#include "api/names.h"

static const struct api_object *queue_object(const struct explainer *x)
{
    const struct hk_str name = json_str_at(&x->view, "queue.name");

    return explain_find(x, API_QUEUE, HK_STR(""), name);
}

static struct hk_str queue_name(const struct explainer *x)
{
    return json_str_at(&x->view, "queue.name");
}

/* ---- gates ---- */

static void make_open(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    struct json queue = json_clone(&queue_object(x)->root, x->a);

    json_set_cstr(json_need(&queue, x->a, "status", JSON_OBJECT), x->a, "state", "Open");
    explain_edit_put(e, API_QUEUE, queue);
}

static void make_admitted(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    struct json group = json_clone(&x->group, x->a);

    json_set_cstr(json_need(&group, x->a, "status", JSON_OBJECT), x->a, "phase", "Inqueue");
    explain_edit_put(e, API_PODGROUP, group);
}

void change_gate(struct explainer *x)
{
    const struct hk_str state = json_str(json_at(&x->view, "queue.state"), HK_STR("Open"));
    const struct api_object *queue = queue_object(x);
    struct tested t = {0};

    if (queue && !hk_str_is(state, "Open") && change_test(x, make_open, NULL, 0, &t)) {
        explain_claim(x, "queueOpened",
                      explain_text(x, "queue %.*s is opened", HK_FMT(queue_name(x))),
                      json_make_object(), &t.e, &t.o);
    }
    if (!json_bool(json_get(&x->view, "admitted"), true) &&
        change_test(x, make_admitted, NULL, 0, &t)) {
        explain_claim(x, "admitted", explain_text(x, "its PodGroup is admitted (phase Inqueue)"),
                      json_make_object(), &t.e, &t.o);
    }
}

/* ---- queues ---- */

/* The amount the queue would hold with the job; if v, plus what is admitted but not allocated
 * yet. */
static int64_t needed(const struct explainer *x, struct hk_str resource, int64_t v)
{
    const struct model *m = &x->c.m;
    const uint32_t dim = dims_find(&m->dims, resource);
    const struct json *queue = json_get(&x->view, "queue");

    if (dim == HK_NONE) {
        return 0;
    }
    return change_units(m, dim, json_get_str(json_get(queue, "allocated"), resource)) +
           change_units(m, dim, json_get_str(json_get(&x->view, "wants"), resource)) +
           (v ? change_units(m, dim, json_get_str(json_get(queue, "inqueue"), resource)) : 0);
}

/* ctx: "capability" or "deserved"; raises its amounts that are below the needed ones. */
static void make_larger(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    const struct model *m = &x->c.m;
    const char *field = ctx;
    struct json queue = json_clone(&queue_object(x)->root, x->a);
    struct json *list =
        (struct json *)json_get(json_need(&queue, x->a, "spec", JSON_OBJECT), field);
    bool any = false;

    for (uint32_t k = 0; json_is(list, JSON_OBJECT) && k < list->len; k++) {
        const uint32_t dim = dims_find(&m->dims, list->members[k].key);
        const int64_t need = needed(x, list->members[k].key, v);
        if (dim != HK_NONE && need > change_units(m, dim, &list->members[k].value)) {
            list->members[k].value = explain_amount(m, dim, (double)need, x->a);
            any = true;
        }
    }
    if (any) {
        explain_edit_put(e, API_QUEUE, queue);
    }
}

/* "cpu 6 instead of 4, memory ...": the differences between two lists. */
static struct json differences(struct explainer *x, const struct json *was, const struct json *is)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    for (uint32_t k = 0; json_is(is, JSON_OBJECT) && k < is->len; k++) {
        const struct json *old = json_get_str(was, is->members[k].key);
        if (!json_equal(old, &is->members[k].value)) {
            hk_buf_addf(&text, "%s%.*s %.*s instead of ", text.len > 0 ? ", " : "",
                        HK_FMT(is->members[k].key),
                        HK_FMT(json_str(&is->members[k].value, HK_STR(""))));
            if (json_is(old, JSON_INT)) {
                hk_buf_addf(&text, "%lld", (long long)old->i);
            } else {
                hk_buf_addstr(&text, json_str(old, HK_STR("none")));
            }
        }
    }
    return json_make_str_copy(hk_buf_str(&text), x->a);
}

static void larger(struct explainer *x, const char *field)
{
    const struct json *was = json_get(json_get(&queue_object(x)->root, "spec"), field);
    struct json d = json_make_object();
    struct tested t = {0};

    if (!change_test(x, make_larger, field, 0, &t) && !change_test(x, make_larger, field, 1, &t)) {
        return;
    }
    const struct json *is = json_get(json_get(&t.e.at[0].doc, "spec"), field);
    const struct json text = differences(x, was, is);
    json_set(&d, x->a, field, *is);
    explain_claim(x, field,
                  explain_text(x, "queue %.*s has %s %.*s", HK_FMT(queue_name(x)), field,
                               HK_FMT(json_str(&text, HK_STR("")))),
                  d, &t.e, &t.o);
}

static void make_weight(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    struct json queue = json_clone(&queue_object(x)->root, x->a);

    json_set_int(json_need(&queue, x->a, "spec", JSON_OBJECT), x->a, "weight", v);
    explain_edit_put(e, API_QUEUE, queue);
}

static void heavier(struct explainer *x)
{
    enum { FACTOR = 64 };
    const int64_t weight = json_int(json_at(&x->view, "queue.weight"), 1);
    struct json d = json_make_object();
    struct tested t = {0};

    if (!change_smallest(x, make_weight, NULL,
                         (struct change_range){weight + 1, weight * FACTOR, 0}, &t)) {
        return;
    }
    json_set_int(&d, x->a, "weight", t.v);
    explain_claim(x, "weight",
                  explain_text(x, "queue %.*s has weight %lld instead of %lld",
                               HK_FMT(queue_name(x)), (long long)t.v, (long long)weight),
                  d, &t.e, &t.o);
}

static void make_moved(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    struct json group = json_clone(&x->group, x->a);
    const struct hk_str *queue = ctx;

    json_set_str(json_need(&group, x->a, "spec", JSON_OBJECT), x->a, "queue", *queue);
    explain_edit_put(e, API_PODGROUP, group);
}

static void change_world_try_other_queues(struct explainer *x)
{
    enum { TRIED = 4 };
    uint32_t tried = 0;

    for (uint32_t k = 0; k < x->o->n && tried < TRIED && !x->cut; k++) {
        const struct api_object *q = x->o->objects[k];
        struct json d = json_make_object();
        struct tested t = {0};
        if (q->kind->id != API_QUEUE || hk_str_is(q->name, API_QUEUE_NAME_ROOT) ||
            hk_str_eq(q->name, queue_name(x))) {
            continue;
        }
        tried++;
        if (change_test(x, make_moved, &q->name, 0, &t)) {
            json_set_str(&d, x->a, "queue", q->name);
            explain_claim(x, "queue", explain_text(x, "it is in queue %.*s", HK_FMT(q->name)), d,
                          &t.e, &t.o);
            return;
        }
    }
}

void change_queue(struct explainer *x)
{
    if (!change_is_limited(x) && queue_name(x).n > 0) {
        return;
    }
    if (queue_object(x)) {
        larger(x, "capability");
        larger(x, "deserved");
        heavier(x);
    }
    change_world_try_other_queues(x);
}

/* ---- nodes ---- */

static void make_node(struct explainer *x, const void *ctx, int64_t v, struct explain_edits *e)
{
    const struct api_object *like = ctx;

    for (int64_t k = 1; k <= v; k++) {
        struct json node = json_clone(&like->root, x->a);
        const struct json name =
            explain_text(x, "%.*s-more-%lld", HK_FMT(like->name), (long long)k);
        json_set(json_need(&node, x->a, "metadata", JSON_OBJECT), x->a, "name", name);
        json_set(json_need_at(&node, x->a, "metadata.labels", JSON_OBJECT), x->a,
                 "kubernetes.io/hostname", name);
        explain_edit_put(e, API_NODE, node);
    }
}

static void make_uncordoned(struct explainer *x, const void *ctx, int64_t v,
                            struct explain_edits *e)
{
    const struct api_object *o = ctx;
    struct json node = json_clone(&o->root, x->a);
    struct json *spec = json_need(&node, x->a, "spec", JSON_OBJECT);
    struct json *taints;

    json_del(spec, "unschedulable"); /* moves later members: find taints after this */
    taints = (struct json *)json_get(spec, "taints");
    if (json_is(taints, JSON_ARRAY)) {
        struct json kept = json_make_array();
        for (uint32_t k = 0; k < taints->len; k++) {
            if (!hk_str_is(json_str_field(&taints->items[k], "key"),
                           "node.kubernetes.io/unschedulable")) {
                json_push(&kept, x->a, taints->items[k]);
            }
        }
        *taints = kept;
    }
    explain_edit_put(e, API_NODE, node);
}

static void uncordoned(struct explainer *x)
{
    enum { TRIED = 3 };
    uint32_t tried = 0;

    for (uint32_t k = 0; k < x->o->n && tried < TRIED && !x->cut; k++) {
        const struct api_object *o = x->o->objects[k];
        struct json d = json_make_object();
        struct tested t = {0};
        if (o->kind->id != API_NODE || !json_bool(json_at(&o->root, "spec.unschedulable"), false)) {
            continue;
        }
        tried++;
        if (change_test(x, make_uncordoned, o, 0, &t)) {
            json_set_str(&d, x->a, "node", o->name);
            explain_claim(x, "uncordoned",
                          explain_text(x, "node %.*s is uncordoned", HK_FMT(o->name)), d, &t.e,
                          &t.o);
            return;
        }
    }
}

static void claim_nodes(struct explainer *x, const struct api_object *like, struct tested *t)
{
    struct json d = json_make_object();

    json_set_str(&d, x->a, "like", like->name);
    json_set_int(&d, x->a, "nodes", t->v);
    explain_claim(x, "nodes",
                  t->v == 1
                      ? explain_text(x, "there is one more node like %.*s", HK_FMT(like->name))
                      : explain_text(x, "there are %lld more nodes like %.*s", (long long)t->v,
                                     HK_FMT(like->name)),
                  d, &t->e, &t->o);
}

/* Nodes of different sizes that the job's pods may use, in input order. */
static uint32_t kinds_of_nodes(struct explainer *x, const struct api_object **ret, uint32_t max)
{
    struct model *m = &x->c.m;
    const job_id j = model_job_find(m, x->ns, x->group_name);
    const task_id t = id_none(j) ? NO_TASK : model_job(m, j)->pending;
    const cons_id cons = id_none(t) ? NO_CONS : task_shape(m, t)->cons;
    uint32_t n = 0;

    for (uint32_t k = 0; k < x->o->n && n < max; k++) {
        const struct api_object *o = x->o->objects[k];
        const node_id id = o->kind->id == API_NODE ? model_node_find(m, o->name) : NO_NODE;
        bool known = id_none(id) || model_static(m, cons, id) != 0;
        for (uint32_t i = 0; i < n && !known; i++) {
            known = json_equal(json_at(&ret[i]->root, "status.allocatable"),
                               json_at(&o->root, "status.allocatable"));
        }
        if (!known) {
            ret[n++] = o;
        }
    }
    return n;
}

void change_nodes(struct explainer *x)
{
    enum { KINDS = 4, MOST = 64 };
    const struct api_object *kinds[KINDS];
    struct tested t = {0};

    if (change_is_due_to(x, "cordoned")) {
        uncordoned(x);
    }
    const uint32_t n = kinds_of_nodes(x, kinds, KINDS);
    for (uint32_t k = 0; k < n && !x->cut; k++) {
        if (change_test(x, make_node, kinds[k], 1, &t)) {
            claim_nodes(x, kinds[k], &t);
            return;
        }
    }
    for (uint32_t k = 0; k < n && !x->cut; k++) {
        if (change_smallest(x, make_node, kinds[k], (struct change_range){2, MOST, 0}, &t)) {
            claim_nodes(x, kinds[k], &t);
            return;
        }
    }
}
