// SPDX-License-Identifier: Apache-2.0
// Rules broken on purpose, past every rule of the API and straight into the store, so that the
// checks have something to see.
#include "world/world.h"

#include "api/names.h"

#include <inttypes.h>
#include <stdio.h>

enum { BREACH_STEPS = 150 }; /* by then something runs, in most worlds */

struct breach_find {
    struct world *w;
    enum api_kind_id kind;
    bool (*fits)(struct world *w, const struct json *root);
    const struct store_obj *found;
};

static bool breach_on_object(void *ctx, const struct store_obj *o)
{
    struct breach_find *f = ctx;
    struct json root;

    if (!f->found && json_parse(o->text, 0, &f->w->mem, &root, NULL) == 0 && f->fits(f->w, &root)) {
        f->found = o;
    }
    return !f->found;
}

static uint32_t breach_res(const struct world *w, enum api_kind_id kind)
{
    return store_res(w->store, hk_str(api_kind(kind)->group), hk_str(api_kind(kind)->plural));
}

static const struct store_obj *breach_find(struct world *w, enum api_kind_id kind,
                                           bool (*fits)(struct world *, const struct json *))
{
    struct breach_find f = {.w = w, .kind = kind, .fits = fits};

    store_scan(w->store, breach_res(w, kind), HK_STR(""), HK_STR(""), HK_STR(""), breach_on_object,
               &f);
    return f.found;
}

/* The newest state of the object, to be changed and written. */
static struct json *breach_root(struct world *w, const struct store_obj *o)
{
    struct json *root = hk_arena_alloc(&w->mem, sizeof(*root));
    struct json doc;

    hk_assert(json_parse(o->text, 0, &w->mem, &doc, NULL) == 0);
    *root = json_clone(&doc, &w->mem);
    return root;
}

static void breach_write(struct world *w, const struct store_obj *o, struct json *root)
{
    const struct store_write write = {.verb = root ? STORE_UPDATE : STORE_DELETE,
                                      .res = o->res,
                                      .ns = hk_arena_str(&w->mem, o->ns),
                                      .name = hk_arena_str(&w->mem, o->name),
                                      .root = root,
                                      .mem = &w->mem};

    if (store_submit(w->store, &write, NULL, NULL, NULL) == 0) {
        trace_add(&w->trace, "breach", "%s %.*s", world_breach_name(w->breach), HK_FMT(o->name));
        w->breaches++;
    }
}

static struct json *breach_member(struct json *root, struct hk_arena *a, const char *key)
{
    struct json *v = (struct json *)json_get(root, key);

    return json_is(v, JSON_OBJECT) ? v : json_put(root, a, hk_str(key), json_make_object());
}

/* ---- which object ---- */

static struct hk_str breach_str(const struct json *root, const char *path)
{
    return json_str(json_at(root, path), HK_STR(""));
}

static bool breach_is_running(struct world *w, const struct json *root)
{
    return hk_str_is(breach_str(root, "status.phase"), "Running") &&
           !json_at(root, "metadata.deletionTimestamp");
}

static bool breach_is_unbound(struct world *w, const struct json *root)
{
    const struct json *c = json_item(json_at(root, "spec.containers"), 0);

    return breach_str(root, "spec.nodeName").n == 0 && json_at(c, "resources.requests.cpu");
}

static bool breach_is_promised(struct world *w, const struct json *root)
{
    return hk_str_is(breach_str(root, "metadata.namespace"), "default") &&
           !json_at(root, "spec.ttlSecondsAfterFinished") &&
           hk_str_starts(breach_str(root, "metadata.name"), "j");
}

static bool breach_has_process(struct world *w, const struct json *root)
{
    const char *uid = hk_arena_str(&w->mem, breach_str(root, "metadata.uid")).s;

    return breach_is_running(w, root) && world_running(w, uid) > 0 &&
           json_int(json_at(root, "spec.terminationGracePeriodSeconds"), 30) > 0;
}

static bool breach_is_ours(struct world *w, const struct json *root)
{
    return hk_str_starts(breach_str(root, "metadata.name"), "q");
}

static bool breach_is_any(struct world *w, const struct json *root)
{
    return true;
}

/* ---- the deeds ---- */

static void breach_bind(struct world *w)
{
    const struct store_obj *o = breach_find(w, API_POD, breach_is_running);

    if (o) {
        struct json *root = breach_root(w, o);
        json_put(breach_member(root, &w->mem, "spec"), &w->mem, HK_STR("nodeName"),
                 json_make_str(HK_STR("sim-00009")));
        breach_write(w, o, root);
    }
}

static void breach_overfill(struct world *w)
{
    const struct store_obj *o = breach_find(w, API_POD, breach_is_unbound);

    if (o) {
        struct json *root = breach_root(w, o);
        struct json *spec = breach_member(root, &w->mem, "spec");
        json_put(spec, &w->mem, HK_STR("nodeName"), json_make_str(HK_STR("sim-00001")));
        json_put(spec, &w->mem, HK_STR("containers"),
                 *world_json(w, "[{'name': 'c', 'image': 'i', 'resources': {'requests': {'cpu': "
                                "'99'}}}]"));
        breach_write(w, o, root);
    }
}

static void breach_job(struct world *w)
{
    const struct store_obj *o = breach_find(w, API_JOB, breach_is_promised);

    if (o) {
        breach_write(w, o, NULL);
    }
}

static void breach_orphan(struct world *w)
{
    const struct store_obj *o = breach_find(w, API_PODGROUP, breach_is_any);

    if (o) {
        struct json *root = breach_root(w, o);
        struct json *meta = breach_member(root, &w->mem, "metadata");
        json_put(meta, &w->mem, HK_STR("name"), json_make_str(HK_STR("orphan")));
        json_del(meta, "ownerReferences");
        const struct store_write write = {.verb = STORE_CREATE,
                                          .res = o->res,
                                          .ns = hk_arena_str(&w->mem, o->ns),
                                          .name = HK_STR("orphan"),
                                          .root = root,
                                          .mem = &w->mem};
        w->breaches += store_submit(w->store, &write, NULL, NULL, NULL) == 0;
    }
}

static void breach_retry(struct world *w)
{
    const struct store_obj *o = breach_find(w, API_JOB, breach_is_any);

    if (o) {
        struct json *root = breach_root(w, o);
        json_put(breach_member(root, &w->mem, "status"), &w->mem, HK_STR("retryCount"),
                 json_make_int(99));
        breach_write(w, o, root);
    }
}

static void breach_early(struct world *w)
{
    const struct store_obj *o = breach_find(w, API_POD, breach_has_process);

    if (o) {
        breach_write(w, o, NULL);
    }
}

static void breach_blame(struct world *w)
{
    const struct store_obj *o = breach_find(w, API_NODE, breach_is_any);

    if (o) {
        struct json *root = breach_root(w, o);
        json_put(breach_member(root, &w->mem, "status"), &w->mem, HK_STR("conditions"),
                 *world_json(w, "[{'type': 'Ready', 'status': 'Unknown'}]"));
        breach_write(w, o, root);
    }
}

static void breach_closed(struct world *w)
{
    const bool quiet = world_now(w) >= check_last_write_ns(w->check) + 60 * WORLD_SECOND;
    const struct store_obj *o = w->calm && quiet ? breach_find(w, API_QUEUE, breach_is_ours) : NULL;

    if (o) {
        struct json *root = breach_root(w, o);
        json_put(breach_member(root, &w->mem, "status"), &w->mem, HK_STR("state"),
                 json_make_str(HK_STR("Closed")));
        breach_write(w, o, root);
    }
}

static void breach_noise(struct world *w)
{
    const bool quiet = world_now(w) >= check_last_write_ns(w->check) + 60 * WORLD_SECOND;
    const struct store_obj *o = w->calm && quiet ? breach_find(w, API_QUEUE, breach_is_any) : NULL;

    if (o) {
        struct json *root = breach_root(w, o);
        json_put(breach_member(breach_member(root, &w->mem, "metadata"), &w->mem, "annotations"),
                 &w->mem, HK_STR("world/noise"), json_make_int((int64_t)w->steps));
        breach_write(w, o, root);
    }
}

void breach_act(struct world *w)
{
    static void (*const acts[BREACH_NKINDS])(struct world * w) = {
        [BREACH_BIND] = breach_bind,     [BREACH_OVERFILL] = breach_overfill,
        [BREACH_JOB] = breach_job,       [BREACH_ORPHAN] = breach_orphan,
        [BREACH_RETRY] = breach_retry,   [BREACH_NOISE] = breach_noise,
        [BREACH_EARLY] = breach_early,   [BREACH_BLAME] = breach_blame,
        [BREACH_CLOSED] = breach_closed,
    };
    const bool once = w->breach != BREACH_NOISE;

    if (w->store && acts[w->breach] && w->steps >= BREACH_STEPS && (!once || w->breaches == 0)) {
        acts[w->breach](w);
    }
}
