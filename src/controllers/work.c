// SPDX-License-Identifier: Apache-2.0
// Pods and statuses of Kubernetes' workloads. work_revision.c keeps their old templates.
#include "controllers/work_priv.h"

#include "api/type.h"
#include "codec/timefmt.h"

#include <stdlib.h>

static const struct hk_str none = {"", 0};

/* ---- which keys a change concerns ---- */

void work_changed(struct ctl *c, const struct mirror_change *ch)
{
    ctl_add(c, mirror_ns(ch->mirror, ch->row), mirror_name(ch->mirror, ch->row));
}

void work_pod_changed(struct ctl *c, const struct mirror_change *ch, enum api_kind_id kind)
{
    const struct pod_digest *d = ch->now ? ch->now : ch->old;

    if (d->workload == kind) {
        ctl_add(c, mirror_ns(ch->mirror, ch->row), hk_str(d->workload_name));
    }
}

void work_part_changed(struct ctl *c, const struct mirror_change *ch, enum api_kind_id kind)
{
    const struct json *owner = kinds_controller(ch->root);
    const struct api_kind *of = api_kind_find(json_str(json_get(owner, "apiVersion"), none),
                                              json_str(json_get(owner, "kind"), none));

    if (of == api_kind(kind)) {
        ctl_add(c, mirror_ns(ch->mirror, ch->row), json_str(json_get(owner, "name"), none));
    }
}

/* ---- reading ---- */

bool work_find(struct pass *t, enum api_kind_id kind, struct json *ret)
{
    const struct mirror *m = ctl_mirror(t->c, kind);
    const uint32_t row = mirror_find(m, t->ns, t->name);

    if (row == HK_NONE) {
        return false;
    }
    *ret = mirror_read(m, row, t->mem);
    return true;
}

bool work_is_going(const struct json *root)
{
    return json_is(json_at(root, "metadata.deletionTimestamp"), JSON_STRING);
}

struct hk_str work_uid(const struct json *root)
{
    return json_str(json_at(root, "metadata.uid"), none);
}

int64_t work_time_of(const struct json *v)
{
    int64_t ns;

    return time_parse(json_str(v, none), &ns, NULL) == 0 ? ns : 0;
}

static int64_t clamp_count(int64_t n)
{
    return HK_MAX(HK_MIN(n, INT32_MAX), INT32_MIN);
}

/* The API limits numbers to 32 bits but does not limit percentages. */
int64_t work_share(const struct json *v, int64_t total, bool round_up, int64_t fallback)
{
    struct hk_str text = json_str(v, none);
    int64_t percent;

    if (!hk_str_ends(text, "%")) {
        return clamp_count(json_int(v, fallback));
    }
    text.n--;
    if (!hk_str_int(text, &percent)) {
        return fallback;
    }
    return clamp_count((clamp_count(total) * clamp_count(percent) + (round_up ? 99 : 0)) / 100);
}

const struct json *work_condition(const struct json *status, const char *type)
{
    const struct json *list = json_get(status, "conditions");

    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        if (hk_str_is(json_str(json_get(&list->items[i], "type"), none), type)) {
            return &list->items[i];
        }
    }
    return NULL;
}

bool work_condition_is(const struct json *status, const char *type, const char *status_word)
{
    return hk_str_is(json_str(json_get(work_condition(status, type), "status"), none), status_word);
}

/* ---- pods ---- */

struct hk_str work_pod_name(struct pass *t, const struct work_pod *p)
{
    return mirror_name(ctl_mirror(t->c, API_POD), p->row);
}

static int work_compare_pod_names(const void *a, const void *b, void *mirror)
{
    return hk_str_cmp(mirror_name(mirror, ((const struct work_pod *)a)->row),
                      mirror_name(mirror, ((const struct work_pod *)b)->row));
}

struct work_pods work_pods(struct pass *t, const struct json *root)
{
    struct mirror *m = ctl_mirror(t->c, API_POD);
    const struct hk_str uid = work_uid(root);
    struct work_pods pods = {0};
    uint32_t n = 0;

    for (uint32_t r = mirror_first(m, PODS_BY_CONTROLLER, uid); r != HK_NONE;
         r = mirror_next(m, PODS_BY_CONTROLLER, r)) {
        n++;
    }
    pods.at = hk_arena_array(t->mem, n, sizeof(*pods.at));
    for (uint32_t r = mirror_first(m, PODS_BY_CONTROLLER, uid); r != HK_NONE;
         r = mirror_next(m, PODS_BY_CONTROLLER, r)) {
        pods.at[pods.len++] = (struct work_pod){r, mirror_digest(m, r)};
    }
    qsort_r(pods.at, pods.len, sizeof(*pods.at), work_compare_pod_names, m);
    return pods;
}

bool work_pod_is_active(const struct pod_digest *d)
{
    return !d->terminating && d->phase != POD_SUCCEEDED && d->phase != POD_FAILED;
}

bool work_pod_is_available(struct pass *t, const struct pod_digest *d, int64_t min_ready_s)
{
    const int64_t at_ns = d->serving_ns + hk_seconds_ns(min_ready_s);

    if (!d->serving || min_ready_s == 0 || t->now_ns >= at_ns) {
        return d->serving;
    }
    pass_again_at(t, at_ns);
    return false;
}

static int work_compare_ints(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Order of deletion, as controller.ActivePods: no node, not running, not ready, low deletion cost,
 * ready for a short time, more restarts, younger. */
static int by_worth(const void *pa, const void *pb)
{
    const struct pod_digest *a = ((const struct work_pod *)pa)->d;
    const struct pod_digest *b = ((const struct work_pod *)pb)->d;
    static const uint8_t phase_rank[POD_NPHASES] = {
        [POD_PENDING] = 0, [POD_UNKNOWN] = 1, [POD_RUNNING] = 2};
    const int by[] = {
        work_compare_ints(a->node[0] != '\0', b->node[0] != '\0'),
        work_compare_ints(phase_rank[a->phase], phase_rank[b->phase]),
        work_compare_ints(a->serving, b->serving),
        work_compare_ints(a->deletion_cost, b->deletion_cost),
        work_compare_ints(b->serving_ns, a->serving_ns),
        work_compare_ints(b->restarts, a->restarts),
        work_compare_ints(b->created_ns, a->created_ns),
        work_compare_ints(b->index, a->index),
    };

    for (uint32_t i = 0; i < HK_LEN(by); i++) {
        if (by[i] != 0) {
            return by[i];
        }
    }
    return work_compare_ints(((const struct work_pod *)pb)->row,
                             ((const struct work_pod *)pa)->row);
}

void work_pods_rank(struct work_pods *pods)
{
    qsort(pods->at, pods->len, sizeof(*pods->at), by_worth);
}

/* ---- creating ---- */

static struct json copy_or_new(const struct json *from, struct hk_arena *a)
{
    return json_clone_as(from, JSON_OBJECT, a);
}

struct json work_pod(struct pass *t, const struct json *owner, const struct json *template,
                     struct hk_str name)
{
    struct hk_arena *a = t->mem;
    const struct json *from = json_get(template, "metadata");
    struct json pod = json_make_object(), meta = json_make_object();

    json_set_str(&meta, a, "name", name);
    json_set_str(&meta, a, "namespace", t->ns);
    json_set(&meta, a, "labels", copy_or_new(json_get(from, "labels"), a));
    json_set(&meta, a, "annotations", copy_or_new(json_get(from, "annotations"), a));
    if (json_get(from, "finalizers")) {
        json_set(&meta, a, "finalizers", json_clone(json_get(from, "finalizers"), a));
    }
    json_set_cstr(&pod, a, "apiVersion", "v1");
    json_set_cstr(&pod, a, "kind", "Pod");
    json_set(&pod, a, "metadata", meta);
    json_set(&pod, a, "spec", copy_or_new(json_get(template, "spec"), a));
    kinds_own(&pod, a, owner);
    return pod;
}

static void work_set_in_metadata(struct json *body, struct hk_arena *a, const char *map,
                                 const char *key, struct hk_str value)
{
    struct json *notes =
        json_need(json_need(body, a, "metadata", JSON_OBJECT), a, map, JSON_OBJECT);

    json_set_str(notes, a, key, value);
}

void work_label(struct json *body, struct hk_arena *a, const char *key, struct hk_str value)
{
    work_set_in_metadata(body, a, "labels", key, value);
}

void work_annotate(struct json *body, struct hk_arena *a, const char *key, struct hk_str value)
{
    work_set_in_metadata(body, a, "annotations", key, value);
}

static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
enum { NALPHABET = sizeof(alphabet) - 1, NAME_TAIL = 5, NAME_STEM_MAX = 57 };

struct hk_str work_encode(uint32_t hash, struct hk_arena *a)
{
    char *text = hk_arena_printf(a, "%u", hash);

    for (char *p = text; *p; p++) {
        *p = alphabet[(unsigned char)*p % NALPHABET];
    }
    return hk_str(text);
}

struct hk_str work_fresh_name(struct pass *t, const struct json *owner, struct hk_str base,
                              uint32_t *n)
{
    const struct mirror *m = ctl_mirror(t->c, API_POD);
    const struct hk_str uid = work_uid(owner);
    const struct hk_str stem = {base.s, HK_MIN(base.n, NAME_STEM_MAX)};

    for (;;) {
        uint64_t h = hk_hash(uid.s, uid.n, hk_mix(++*n));
        char tail[NAME_TAIL + 1] = {0};
        struct hk_str name;

        for (int i = 0; i < NAME_TAIL; i++, h /= NALPHABET) {
            tail[i] = alphabet[h % NALPHABET];
        }
        name = hk_str(hk_arena_printf(t->mem, "%.*s-%s", HK_FMT(stem), tail));
        if (mirror_find(m, t->ns, name) == HK_NONE) {
            return name;
        }
    }
}

bool work_create_pod(struct pass *t, const struct json *owner, const struct json *pod)
{
    const struct hk_str name = json_str(json_at(pod, "metadata.name"), none);

    if (!pass_create(t, api_kind(API_POD), pod)) {
        return false;
    }
    pass_event(t, owner, false, "SuccessfulCreate", "Created pod: %.*s", HK_FMT(name));
    return true;
}

bool work_delete_pod(struct pass *t, const struct json *owner, const struct work_pod *p)
{
    const struct mirror *m = ctl_mirror(t->c, API_POD);
    const struct hk_str name = mirror_name(m, p->row);

    if (!pass_delete(t, api_kind(API_POD), t->ns, name, mirror_uid(m, p->row),
                     PORT_PROPAGATE_BACKGROUND)) {
        return false;
    }
    pass_event(t, owner, false, "SuccessfulDelete", "Deleted pod: %.*s", HK_FMT(name));
    return true;
}

uint32_t work_create_limit(const struct pass *t)
{
    return t->failures > 0 ? 1 : TURN_CALLS_MAX;
}

const struct pass_error *work_report(struct pass *t, const struct json *owner)
{
    const struct pass_error *first = NULL;

    for (uint32_t i = 0; i < t->nerror; i++) {
        const struct pass_error *e = &t->errors[i];

        if (e->verb == PORT_CREATE && e->kind == api_kind(API_POD)) {
            first = first ? first : e;
            pass_event(t, owner, true, "FailedCreate", "Error creating: %s", e->text);
        }
    }
    return first;
}

/* ---- writing ---- */

/* The type of the field at the dotted path. */
static const struct api_type *type_at(enum api_kind_id kind, const char *path)
{
    const struct api_type *type = api_type_of(api_kind(kind));
    struct hk_str rest = hk_str(path), part;

    while (hk_str_cut(&rest, '.', &part)) {
        type = api_type_name(type, part)->type;
    }
    return type;
}

bool work_same(struct pass *t, enum api_kind_id kind, const char *path, const struct json *a,
               const struct json *b)
{
    const struct api_type *type = type_at(kind, path);
    struct json x = copy_or_new(a, t->mem);
    struct json y = copy_or_new(b, t->mem);

    return api_type_fill(type, t->mem, &x) && api_type_fill(type, t->mem, &y) && json_equal(&x, &y);
}

struct json work_status(struct pass *t, const struct json *root)
{
    return copy_or_new(json_get(root, "status"), t->mem);
}

bool work_write_status(struct pass *t, enum api_kind_id kind, struct json *root, struct json status)
{
    if (work_same(t, kind, "status", json_get(root, "status"), &status)) {
        return false;
    }
    json_set(root, t->mem, "status", status);
    return pass_update_status(t, api_kind(kind), root);
}

static struct json make_condition(struct pass *t, const struct json *old,
                                  const struct work_condition *c)
{
    struct hk_arena *a = t->mem;
    const bool same = hk_str_is(json_str(json_get(old, "status"), none), c->status);
    const struct json *since = same ? json_get(old, "lastTransitionTime") : NULL;
    struct json cond = json_make_object();

    json_set_cstr(&cond, a, "type", c->type);
    json_set_cstr(&cond, a, "status", c->status);
    json_set(&cond, a, "lastTransitionTime", since ? *since : json_make_time(t->now_ns, a));
    if (c->stamp) {
        json_set_time(&cond, a, c->stamp, t->now_ns);
    }
    json_set_str_or_del(&cond, a, "reason", hk_str(c->reason));
    json_set_str_or_del(&cond, a, "message", c->message);
    return cond;
}

void work_set_condition(struct pass *t, struct json *status, const struct work_condition *c)
{
    const struct json *old = work_condition(status, c->type);
    struct json *list = (struct json *)json_get(status, "conditions");

    if (old && hk_str_is(json_str(json_get(old, "status"), none), c->status) &&
        hk_str_is(json_str(json_get(old, "reason"), none), c->reason) &&
        hk_str_eq(json_str(json_get(old, "message"), none), c->message)) {
        return;
    }
    if (old) {
        *(struct json *)old = make_condition(t, old, c);
        return;
    }
    if (!json_is(list, JSON_ARRAY)) {
        list = json_set_array(status, t->mem, "conditions");
    }
    json_push(list, t->mem, make_condition(t, NULL, c));
}

void work_drop_condition(struct pass *t, struct json *status, const char *type)
{
    const struct json *old = work_condition(status, type), *list = json_get(status, "conditions");
    struct json left = json_make_array();

    if (!old) {
        return;
    }
    for (uint32_t i = 0; i < list->len; i++) {
        if (&list->items[i] != old) {
            json_push(&left, t->mem, list->items[i]);
        }
    }
    if (left.len > 0) {
        json_set(status, t->mem, "conditions", left);
    } else {
        json_del(status, "conditions");
    }
}

void work_set_observed_generation(struct pass *t, const struct json *root, struct json *status)
{
    json_set_int_or_del(status, t->mem, "observedGeneration",
                        json_int(json_at(root, "metadata.generation"), 0));
}
