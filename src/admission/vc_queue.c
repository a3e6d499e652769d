// SPDX-License-Identifier: Apache-2.0
// Queues: defaults, validation of each amount by itself, the place in the hierarchy, and which
// queues may be deleted. vc_queue_tree.c compares amounts with those of parents and children.
#include "admission/vc_priv.h"

#include <errno.h>

#define HIERARCHY "volcano.sh/hierarchy"
#define WEIGHTS "volcano.sh/hierarchy-weights"

enum { USUAL_DEPTH = 5 };

/* ---- mutation ---- */

static const struct json *vc_queue_annotations(const struct json *queue)
{
    return json_at(queue, "metadata.annotations");
}

void vc_queue_mutate(struct vc *v)
{
    const struct json *notes = vc_queue_annotations(v->q->obj);
    const struct hk_str path = edit_str(notes, HIERARCHY);
    const struct hk_str weights = edit_str(notes, WEIGHTS);
    const struct json *spec;

    if (path.n > 0 && weights.n > 0 && !hk_str_starts(path, "root")) {
        const char *rooted = hk_arena_printf(v->q->mem, "root/%.*s", HK_FMT(path));
        const char *weighed = hk_arena_printf(v->q->mem, "1/%.*s", HK_FMT(weights));
        vc_patch(v, "add", "/metadata/annotations/volcano.sh~1hierarchy",
                 json_make_str(hk_str(rooted)));
        vc_patch(v, "add", "/metadata/annotations/volcano.sh~1hierarchy-weights",
                 json_make_str(hk_str(weighed)));
    }
    spec = vc_patch_spec(v);
    if (!spec) {
        return;
    }
    if (!edit_has(spec, "reclaimable")) {
        vc_patch(v, "add", "/spec/reclaimable", json_make_bool(true));
    }
    if (!edit_has(spec, "weight") || json_int(json_get(spec, "weight"), 1) == 0) {
        vc_patch(v, "add", "/spec/weight", json_make_int(1));
    }
}

/* ---- amounts ---- */

/* Resources that need whole numbers: counted objects and extended resources. */
static bool is_whole(struct hk_str name)
{
    static const char *const counted[] = {"pods",
                                          "services",
                                          "replicationcontrollers",
                                          "resourcequotas",
                                          "secrets",
                                          "configmaps",
                                          "persistentvolumeclaims",
                                          "services.nodeports",
                                          "services.loadbalancers"};

    for (size_t i = 0; i < HK_LEN(counted); i++) {
        if (hk_str_is(name, counted[i])) {
            return true;
        }
    }
    return hk_str_contains(name, "/") && !hk_str_contains(name, "kubernetes.io/") &&
           !hk_str_starts(name, "requests.");
}

static void vc_queue_check_amounts(struct admission_request *scratch, const struct path *p,
                                   const struct json *list)
{
    for (uint32_t i = 0; i < edit_size(list); i++) {
        const struct hk_str name = list->members[i].key;
        const struct path at = {.up = p, .key = name, .form = PATH_FIELD};
        struct quantity v;
        if (!amount_get(list, name, &v)) {
            continue;
        }
        const struct hk_str text = hk_str(amount_text(v, scratch->mem));
        if (v.nano < 0) {
            cause_invalid_str(scratch, &at, text, "must be greater than or equal to 0");
        }
        if (is_whole(name) && v.nano % 1000000000 != 0) {
            cause_invalid_str(scratch, &at, text, "must be an integer");
        }
    }
}

/* Each guaranteed amount must also be deserved. */
static void check_guarantee(struct admission_request *scratch, const struct path *p,
                            const struct json *guarantee, const struct json *deserved)
{
    for (uint32_t i = 0; i < edit_size(guarantee); i++) {
        const struct hk_str name = guarantee->members[i].key;
        const struct path at = {.up = p, .key = name, .form = PATH_FIELD};
        struct quantity g;
        struct quantity d;
        if (!amount_get(guarantee, name, &g)) {
            continue;
        }
        if (!amount_get(deserved, name, &d)) {
            cause_invalid_str(scratch, &at, HK_STR("<nil>"),
                              "deserved[%.*s] must be >= guarantee[%.*s]=%s", HK_FMT(name),
                              HK_FMT(name), amount_text(g, scratch->mem));
        } else if (quantity_cmp(d, g) < 0) {
            cause_invalid_str(scratch, &at, hk_str(amount_text(d, scratch->mem)),
                              "deserved[%.*s]=%s must be >= guarantee[%.*s]=%s", HK_FMT(name),
                              amount_text(d, scratch->mem), HK_FMT(name),
                              amount_text(g, scratch->mem));
        }
    }
}

static void check_deserved(struct admission_request *scratch, const struct path *p,
                           const struct json *deserved, const struct json *capability)
{
    for (uint32_t i = 0; i < edit_size(deserved); i++) {
        const struct hk_str name = deserved->members[i].key;
        const struct path at = {.up = p, .key = name, .form = PATH_FIELD};
        struct quantity d;
        struct quantity c;
        if (amount_get(deserved, name, &d) && amount_get(capability, name, &c) &&
            quantity_cmp(d, c) > 0) {
            cause_invalid_str(scratch, &at, hk_str(amount_text(d, scratch->mem)),
                              "deserved[%.*s]=%s must be <= capability[%.*s]=%s", HK_FMT(name),
                              amount_text(d, scratch->mem), HK_FMT(name),
                              amount_text(c, scratch->mem));
        }
    }
}

static void check_resources(struct admission_request *scratch, const struct path *p,
                            const struct json *spec)
{
    const struct json *capability = json_get(spec, "capability");
    const struct json *deserved = json_get(spec, "deserved");
    const struct json *guarantee = json_at(spec, "guarantee.resource");
    const struct path capability_path = path_field(p, "capability");
    const struct path deserved_path = path_field(p, "deserved");
    const struct path guarantee_path = path_field(p, "guarantee");
    const struct path resource_path = path_field(&guarantee_path, "resource");

    vc_queue_check_amounts(scratch, &capability_path, capability);
    vc_queue_check_amounts(scratch, &deserved_path, deserved);
    vc_queue_check_amounts(scratch, &resource_path, guarantee);
    check_guarantee(scratch, &deserved_path, guarantee, deserved);
    check_deserved(scratch, &deserved_path, deserved, capability);
}

/* Checks the state only when the write changes it: a queue that is Closing or Unknown can still be
 * written, for example by the controller that reopens it. Volcano refuses that. */
static void check_state(const struct vc *v, struct admission_request *scratch,
                        const struct path *spec)
{
    const struct path p = path_field(spec, "state");
    const struct hk_str state = edit_str(json_get(v->q->obj, "status"), "state");

    if (v->q->old && hk_str_eq(state, edit_str(json_get(v->q->old, "status"), "state"))) {
        return;
    }

    if (state.n > 0 && !hk_str_is(state, "Open") && !hk_str_is(state, "Closed")) {
        cause_invalid_str(scratch, &p, state, "queue state must be in [Open Closed]");
    }
}

/* ---- the hierarchy of annotations ---- */

static uint32_t parts(struct hk_str path)
{
    uint32_t n = 1;

    for (size_t i = 0; i < path.n; i++) {
        n += path.s[i] == '/';
    }
    return n;
}

/* The error of Go's ParseFloat about the number, or NULL. */
static const char *read_weight(struct hk_str text, double *ret)
{
    HK_AUTO(hk_freep) char *copy = hk_strndup(text.s ? text.s : "", text.n);
    char *end;

    errno = 0;
    *ret = strtod(copy, &end);
    if (text.n == 0 || copy[0] == ' ' || (copy[0] >= '\t' && copy[0] <= '\r') ||
        end != copy + text.n) {
        return "invalid syntax";
    }
    return errno == ERANGE && *ret != 0 && (*ret > 1 || *ret < -1) ? "value out of range" : NULL;
}

static bool check_weights(struct admission_request *scratch, const struct path *p,
                          struct hk_str weights)
{
    struct hk_str part;

    for (struct hk_str rest = weights; hk_str_cut(&rest, '/', &part);) {
        double weight;
        const char *fault = read_weight(part, &weight);
        if (fault) {
            cause_invalid_str(scratch, p, weights,
                              "%.*s in the %.*s is invalid number: strconv.ParseFloat: parsing "
                              "\"%.*s\": %s",
                              HK_FMT(part), HK_FMT(weights), HK_FMT(part), fault);
            return false;
        }
        if (weight <= 0) {
            cause_invalid_str(scratch, p, weights, "%.*s in the %.*s must be larger than 0",
                              HK_FMT(part), HK_FMT(weights));
            return false;
        }
    }
    return true;
}

/* Search for queues below the path; only the first is reported. */
struct below {
    struct admission_request *scratch;
    const struct path *p;
    struct hk_str name, path;
};

static bool is_not_below(void *arg, const struct json *queue)
{
    const struct below *b = arg;
    const struct hk_str other = edit_str(vc_queue_annotations(queue), HIERARCHY);
    const struct hk_str name = edit_str(json_get(queue, "metadata"), "name");

    if (hk_str_eq(name, b->name) || other.n <= b->path.n || other.s[b->path.n] != '/' ||
        !hk_str_eq((struct hk_str){other.s, b->path.n}, b->path)) {
        return true;
    }
    cause_invalid_str(b->scratch, b->p, b->path,
                      "%.*s is not allowed to be in the sub path of %.*s of queue %.*s",
                      HK_FMT(b->path), HK_FMT(other), HK_FMT(name));
    return false;
}

static void check_hierarchy(const struct vc *v, struct admission_request *scratch)
{
    const struct path root = path_field(NULL, "requestBody");
    const struct path metadata = path_field(&root, "metadata");
    const struct path p = path_field(&metadata, "annotations");
    const struct hk_str path = edit_str(vc_queue_annotations(v->q->obj), HIERARCHY);
    const struct hk_str weights = edit_str(vc_queue_annotations(v->q->obj), WEIGHTS);
    struct below below = {.scratch = scratch, .p = &p, .name = v->q->name, .path = path};

    if (path.n == 0 && weights.n == 0) {
        return;
    }
    if (parts(path) != parts(weights)) {
        cause_invalid_str(scratch, &p, path, HIERARCHY " must have the same length with " WEIGHTS);
    } else if (check_weights(scratch, &p, weights)) {
        admit_each(v->q, api_kind(API_QUEUE), HK_STR(""), is_not_below, &below);
    }
}

/* ---- the parent ---- */

static struct hk_str vc_queue_parent_name(const struct json *queue)
{
    const struct hk_str parent = edit_str(json_get(queue, "spec"), "parent");

    return hk_str_is(parent, "root") ? HK_STR("") : parent;
}

static int64_t allocated_pods(const struct json *queue)
{
    struct quantity pods;

    return amount_get(json_at(queue, "status.allocated"), HK_STR("pods"), &pods)
               ? quantity_value(pods)
               : 0;
}

/* Walks up to the root, or the allowed number of steps. A path back to the queue itself is a cycle,
 * however long. */
static bool check_ancestry(struct vc *v)
{
    const uint32_t max =
        v->opts->max_queue_depth > 0 ? v->opts->max_queue_depth : (uint32_t)USUAL_DEPTH;
    const struct json *at = v->q->obj;
    struct hk_str name = v->q->name;
    uint32_t depth = 1;

    for (struct hk_str parent = vc_queue_parent_name(at); parent.n > 0;
         parent = vc_queue_parent_name(at)) {
        if (hk_str_eq(parent, v->q->name)) {
            hk_buf_addf(
                &v->why,
                "queue %.*s cannot have the parent %.*s, which is below it: queues must not "
                "form a circle",
                HK_FMT(v->q->name), HK_FMT(vc_queue_parent_name(v->q->obj)));
            return false;
        }
        if (++depth > max) {
            hk_buf_addf(&v->why, "queue %.*s exceeds the maximum allowed depth of %u",
                        HK_FMT(v->q->name), max);
            return false;
        }
        at = vc_queue(v, parent);
        if (!at) {
            hk_buf_addf(&v->why, "failed to get parent queue %.*s of queue %.*s: ", HK_FMT(parent),
                        HK_FMT(name));
            vc_write_no_queue(v, parent);
            return false;
        }
        name = parent;
    }
    return true;
}

/* Names of the children of a queue. */
struct children {
    struct hk_str except; /* "": none */
    struct hk_buf names;
    uint32_t n;
};

static bool add_child(void *arg, const struct json *queue)
{
    struct children *c = arg;

    if (c->except.n > 0 && hk_str_eq(c->except, edit_str(json_get(queue, "metadata"), "name"))) {
        return true;
    }
    hk_buf_addf(&c->names, "%s%.*s", c->n++ > 0 ? ", " : "",
                HK_FMT(edit_str(json_get(queue, "metadata"), "name")));
    return true;
}

static uint32_t find_children(const struct vc *v, struct hk_str parent, struct hk_str except,
                              struct hk_buf *ret_names)
{
    struct children c = {.except = except};

    vc_each_child(v, parent, add_child, &c);
    *ret_names = c.names;
    return c.n;
}

static bool check_parent(struct vc *v)
{
    const struct hk_str parent = vc_queue_parent_name(v->q->obj);
    HK_AUTO(hk_buf_fini) struct hk_buf names = {0};
    int64_t pods;

    if (parent.n > 0 && hk_str_is(v->q->name, "root")) {
        hk_buf_addf(&v->why, "queue root cannot have the parent %.*s: it is above all queues",
                    HK_FMT(parent));
        return false;
    }
    if (parent.n == 0 || !v->q->lookup ||
        (v->q->verb == ADMIT_UPDATE && hk_str_eq(parent, vc_queue_parent_name(v->q->old)))) {
        return true;
    }
    if (hk_str_eq(parent, v->q->name)) {
        hk_buf_addf(&v->why, "queue %.*s cannot use itself as parent", HK_FMT(parent));
        return false;
    }
    if (!check_ancestry(v)) {
        return false;
    }
    pods = allocated_pods(vc_queue(v, parent));
    if (pods > 0 && find_children(v, parent, HK_STR(""), &names) == 0) {
        hk_buf_addf(&v->why,
                    "queue %.*s cannot be the parent queue of queue %.*s because it has allocated "
                    "Pods: %lld",
                    HK_FMT(parent), HK_FMT(v->q->name), (long long)pods);
        return false;
    }
    return true;
}

/* ---- writing ---- */

static bool check_fields(struct vc *v)
{
    const struct path root = path_field(NULL, "requestBody");
    const struct path spec = path_field(&root, "spec");
    struct admission_request scratch = vc_scratch(v);
    bool ok;

    check_resources(&scratch, &spec, json_get(v->q->obj, "spec"));
    check_state(v, &scratch, &spec);
    check_hierarchy(v, &scratch);
    ok = scratch.errors.len == 0;
    vc_write_errors(v, &scratch);
    admission_request_fini(&scratch);
    return ok;
}

static bool resources_changed(const struct vc *v)
{
    const struct json *now = json_get(v->q->obj, "spec");
    const struct json *old = json_get(v->q->old, "spec");

    return !vc_same_amounts(json_get(now, "capability"), json_get(old, "capability")) ||
           !vc_same_amounts(json_get(now, "deserved"), json_get(old, "deserved")) ||
           !vc_same_amounts(json_at(now, "guarantee.resource"), json_at(old, "guarantee.resource"));
}

static void validate_write(struct vc *v)
{
    const bool root = hk_str_is(v->q->name, "root");
    const bool update = v->q->verb == ADMIT_UPDATE;

    if (!check_fields(v) || !check_parent(v)) {
        return;
    }
    if (root && update && !v->opts->change_root_queue && resources_changed(v)) {
        hk_buf_adds(&v->why, "root queue's resource attributes (capability, deserved, guarantee) "
                             "cannot be modified");
        return;
    }
    if (!root && v->q->lookup &&
        (!update || resources_changed(v) ||
         !hk_str_eq(vc_queue_parent_name(v->q->obj), vc_queue_parent_name(v->q->old)))) {
        vc_queue_check_tree(v);
    }
}

/* ---- deleting ---- */

enum { CIRCLE_MAX = 64 };

/* Queues stored before cycles were refused, or written without admission, may form a cycle. Returns
 * the child of the queue that is also its ancestor, "" without a cycle. */
static struct hk_str child_in_circle(const struct vc *v, struct hk_str name)
{
    struct hk_str at = name;

    for (int steps = 0; steps < CIRCLE_MAX; steps++) {
        const struct hk_str parent = vc_queue_parent_name(vc_queue(v, at));
        if (hk_str_eq(parent, name)) {
            return at;
        }
        if (parent.n == 0) {
            break;
        }
        at = parent;
    }
    return HK_STR("");
}

/* A delete request carries no object, only the name. Deleting any queue of a cycle is allowed, to
 * break the cycle. */
static void validate_delete(struct vc *v)
{
    const struct hk_str name = v->q->name;
    const struct json *queue = vc_queue(v, name);
    HK_AUTO(hk_buf_fini) struct hk_buf names = {0};
    uint32_t n;

    if (hk_str_is(name, "default") || hk_str_is(name, "root")) {
        hk_buf_addf(&v->why, "`%.*s` queue can not be deleted", HK_FMT(name));
        return;
    }
    if (!v->q->lookup) {
        return;
    }
    if (!queue) {
        vc_write_no_queue(v, name);
        return;
    }
    if (v->opts->refuse_busy_queues && allocated_pods(queue) > 0) {
        hk_buf_addf(&v->why, "queue %.*s cannot be deleted because it has allocated Pods: %lld",
                    HK_FMT(name), (long long)allocated_pods(queue));
        return;
    }
    n = find_children(v, name, child_in_circle(v, name), &names);
    if (n > 0) {
        hk_buf_addf(&v->why, "queue %.*s can not be deleted because it has %u child queues: %s",
                    HK_FMT(name), n, names.data);
    }
}

void vc_queue_validate(struct vc *v)
{
    if (v->q->verb == ADMIT_DELETE) {
        validate_delete(v);
    } else {
        validate_write(v);
    }
}
