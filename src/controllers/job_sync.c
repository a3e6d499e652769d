// SPDX-License-Identifier: Apache-2.0
// Steps towards running: plugin objects, claims, the PodGroup and, once that is in the queue, the
// pods. The way back: a job at rest keeps only its ended pods. Each call compares and requests what
// is missing; nothing depends on earlier calls.
#include "controllers/job_priv.h"

#include "api/names.h"

static const struct hk_str none = {"", 0};

/* ---- objects of the plugins ---- */

struct ensured *job_memos(const struct job_pass *p, const struct job_plugin *plugin)
{
    uint32_t n, i = 0;
    const struct job_plugin *const *all = job_plugins(&n);

    while (i < n && all[i] != plugin) {
        i++;
    }
    if (!p->mem->objects) {
        p->mem->objects = hk_zalloc_array((size_t)n * JOB_OBJECTS_MAX, sizeof(struct ensured));
    }
    return &p->mem->objects[(size_t)i * JOB_OBJECTS_MAX];
}

struct making {
    const struct job_plugin_use *use;
    const struct job_object *obj;
    const struct json *owner;
};

static void job_sync_make_plugin_object(void *ctx, struct hk_arena *a, struct json *body)
{
    const struct making *m = ctx;

    kinds_own(body, a, m->owner);
    m->obj->make(m->use, body);
}

static bool correct_object(void *ctx, struct hk_arena *a, struct json *obj)
{
    const struct making *m = ctx;

    return m->obj->correct(m->use, obj);
}

static void report_foreign(struct job_pass *p, const struct job_object *obj)
{
    pass_event(p->t, p->root, true, "PluginError",
               "%s \"%.*s\" exists and has another owner: delete it, or give the job another "
               "name",
               api_kind(obj->kind)->singular, HK_FMT(obj->name));
}

static bool sync_objects(struct job_pass *p)
{
    bool done = true;

    for (uint32_t i = 0; i < p->uses.len; i++) {
        const struct job_plugin_use *use = &p->uses.at[i];
        struct job_object objs[JOB_OBJECTS_MAX];
        const uint32_t n = use->plugin->objects ? use->plugin->objects(use, objs) : 0;
        struct ensured *memos = n > 0 ? job_memos(p, use->plugin) : NULL;

        for (uint32_t k = 0; k < n; k++) {
            struct making m = {use, &objs[k], p->root};

            done &= pass_ensure(p->t, &memos[k],
                                &(struct ensure){.kind = api_kind(objs[k].kind),
                                                 .ns = p->job.meta.ns,
                                                 .name = objs[k].name,
                                                 .owner_uid = p->job.meta.uid,
                                                 .want = objs[k].want,
                                                 .make = job_sync_make_plugin_object,
                                                 .correct = objs[k].correct ? correct_object : NULL,
                                                 .ctx = &m});
            if (ensured_is_foreign(&memos[k])) {
                report_foreign(p, &objs[k]);
            }
        }
    }
    return done;
}

bool job_is_torn_down(const struct job_pass *p, uint32_t use)
{
    struct job_object objs[JOB_OBJECTS_MAX];
    const struct job_plugin_use *u = &p->uses.at[use];
    const uint32_t n = u->plugin->objects(u, objs);
    const struct ensured *memos = job_memos(p, u->plugin);

    for (uint32_t k = 0; k < n; k++) {
        if (!ensured_is_removed(&memos[k])) {
            return false;
        }
    }
    return true;
}

static bool job_sync_plugin_is_recorded(const struct job_pass *p, const struct job_plugin *plugin)
{
    const char *key = hk_arena_printf(p->t->mem, "plugin-%s", plugin->name);

    return api_map_get(&p->job.controlled, hk_str(key)) != NULL;
}

static void remove_objects(struct job_pass *p)
{
    for (uint32_t i = 0; i < p->uses.len; i++) {
        const struct job_plugin_use *use = &p->uses.at[i];
        struct job_object objs[JOB_OBJECTS_MAX];
        struct ensured *memos;
        uint32_t n;

        if (!use->plugin->objects || !job_sync_plugin_is_recorded(p, use->plugin)) {
            continue;
        }
        n = use->plugin->objects(use, objs);
        memos = job_memos(p, use->plugin);
        for (uint32_t k = 0; k < n; k++) {
            (void)pass_remove(p->t, &memos[k], api_kind(objs[k].kind), p->job.meta.ns, objs[k].name,
                              p->job.meta.uid);
        }
    }
}

/* ---- claims ---- */

static struct hk_str claim_name(struct job_pass *p)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    struct hk_rand *rand = ctl_rand(p->t->c);
    char tail[13];

    for (unsigned i = 0; i < 12; i++) {
        tail[i] = letters[hk_rand_below(rand, sizeof(letters) - 1)];
    }
    tail[12] = '\0';
    return hk_str(hk_arena_printf(p->t->mem, "%.*s-pvc-%s", HK_FMT(p->job.meta.name), tail));
}

/* Stores the names of claims before the claims are created, so that a retry creates no others. */
static bool name_claims(struct job_pass *p)
{
    struct hk_arena *a = p->t->mem;
    struct json obj = json_clone(p->root, a);
    const struct json *volumes = json_at(&obj, "spec.volumes");
    bool named = true;

    for (uint32_t i = 0; i < p->job.volumes.len; i++) {
        if (p->job.volumes.at[i].claim_name.n == 0) {
            json_set_str((struct json *)&volumes->items[i], a, "volumeClaimName", claim_name(p));
            named = false;
        }
    }
    if (!named) {
        pass_update(p->t, api_kind(API_JOB), &obj);
    }
    return named;
}

struct claiming {
    const struct json *spec, *owner;
};

static void make_claim(void *ctx, struct hk_arena *a, struct json *body)
{
    const struct claiming *c = ctx;

    kinds_own(body, a, c->owner);
    json_set(body, a, "spec", *c->spec);
}

/* A claim named by the user must exist. */
static bool await_claim(struct job_pass *p, uint32_t i)
{
    struct ensured *memo = &p->mem->claims[i];
    const struct hk_str name = p->job.volumes.at[i].claim_name;
    struct api_object *found = NULL;

    if (memo->want) {
        return true;
    }
    if (!pass_read(p->t, memo, api_kind(API_PVC), p->job.meta.ns, name, &found)) {
        return false;
    }
    if (!found) {
        pass_event(p->t, p->root, true, "PVCError",
                   "Failed to create PVC, err: pvc %.*s is not found, the job will be in the "
                   "Pending state until the PVC is created",
                   HK_FMT(name));
        pass_fail(p->t, HK_ENOTFOUND, "pvc '%.*s' is not found", HK_FMT(name));
        return false;
    }
    api_object_unref(found);
    memo->want = 1;
    return true;
}

static bool sync_claims(struct job_pass *p)
{
    bool done = true;

    if (p->job.volumes.len == 0) {
        return true;
    }
    if (!name_claims(p)) {
        return false;
    }
    if (!p->mem->claims) {
        p->mem->nclaim = p->job.volumes.len;
        p->mem->claims = hk_zalloc_array(p->mem->nclaim, sizeof(struct ensured));
    }
    for (uint32_t i = 0; i < HK_MIN(p->job.volumes.len, p->mem->nclaim); i++) {
        const struct api_job_volume *v = &p->job.volumes.at[i];
        struct claiming claiming = {v->claim, p->root};

        if (!v->claim) {
            done &= await_claim(p, i);
            continue;
        }
        done &= pass_ensure(p->t, &p->mem->claims[i],
                            &(struct ensure){.kind = api_kind(API_PVC),
                                             .ns = p->job.meta.ns,
                                             .name = v->claim_name,
                                             .want = 1,
                                             .make = make_claim,
                                             .ctx = &claiming});
    }
    return done;
}

/* ---- the PodGroup ---- */

static void delete_group(struct job_pass *p)
{
    const struct podgroup_digest *d = mirror_digest(p->groups, p->group);

    if (!d->terminating) {
        pass_delete(p->t, api_kind(API_PODGROUP), p->job.meta.ns, mirror_name(p->groups, p->group),
                    mirror_uid(p->groups, p->group), PORT_PROPAGATE_DEFAULT);
    }
}

/* The PodGroup is from before a restart of the whole job. One without a version was created by
 * another controller; it is current unless the job is just restarting. */
static bool group_is_old(const struct job_pass *p, const struct json *group)
{
    const struct json *note = kinds_annotation(group, API_ANN_JOB_VERSION);
    int64_t version;

    if (!hk_str_int(json_str(note, none), &version)) {
        return p->job.phase == API_JOB_RESTARTING && p->action == API_ACTION_RESTART_JOB &&
               p->job.terminating > 0;
    }
    return version < p->job.version;
}

static bool sync_group(struct job_pass *p)
{
    struct json group, patch;

    if (p->group == HK_NONE) {
        group = job_group_build(&p->job, job_priority, p, p->t->mem);
        pass_create(p->t, api_kind(API_PODGROUP), &group);
        return false;
    }
    group = mirror_read(p->groups, p->group, p->t->mem);
    if (group_is_old(p, &group)) {
        delete_group(p);
        return false;
    }
    if (job_group_correct(&p->job, &group, job_priority, p, p->t->mem, &patch)) {
        pass_patch(p->t, &(struct pass_patch){.kind = api_kind(API_PODGROUP),
                                              .ns = p->job.meta.ns,
                                              .name = mirror_name(p->groups, p->group),
                                              .type = PORT_PATCH_MERGE,
                                              .body = &patch});
    }
    job_note_pending_group(p, &group);
    return true;
}

static bool group_lets_in(const struct job_pass *p)
{
    const struct podgroup_digest *d = mirror_digest(p->groups, p->group);

    return !d->terminating && d->phase != API_PODGROUP_NO_PHASE && d->phase != API_PODGROUP_PENDING;
}

/* ---- pods ---- */

static bool is_ready_to_lean_on(const struct job_pass *p, struct hk_str name)
{
    const struct api_job_task *task = api_job_task_find(&p->job, name);
    int32_t ready = 0;

    if (!task || !task->has_min) {
        return true;
    }
    for (uint32_t r = job_first_pod(p); r != HK_NONE; r = job_next_pod(p, r)) {
        const struct pod_digest *d = job_pod(p, r);

        ready += hk_str_is(name, d->task) && (d->phase == POD_SUCCEEDED || d->ready);
    }
    return ready >= task->min_available;
}

/* With iteration "any", one of several dependencies is enough. */
bool job_task_may_start(const struct job_pass *p, const struct api_job_task *task)
{
    const bool any = task->depends_on.len > 1 && hk_str_is(task->iteration, "any");

    for (uint32_t i = 0; i < task->depends_on.len; i++) {
        const bool ready = is_ready_to_lean_on(p, task->depends_on.at[i]);

        if (ready == any) {
            return any;
        }
    }
    return task->depends_on.len == 0 || !any;
}

/* Which of the first n indices have a pod. Pods being deleted count: their names are in use. */
static uint8_t *taken_indices(const struct job_pass *p, const struct api_job_task *task, int32_t n)
{
    uint8_t *taken = hk_arena_zalloc(p->t->mem, (size_t)n + 1);

    for (uint32_t r = job_first_pod(p); r != HK_NONE; r = job_next_pod(p, r)) {
        const struct pod_digest *d = job_pod(p, r);

        if (d->index >= 0 && d->index < n && hk_str_is(task->name, d->task)) {
            taken[d->index] = 1;
        }
    }
    return taken;
}

/* Creates the pods that the window allows, lowest indices first. False when the pass is full or a
 * plugin failed. */
static bool create_pods(struct job_pass *p, uint32_t k, struct job_window *w)
{
    const struct api_job_task *task = &p->job.tasks.at[k];
    const int32_t room = job_window_room(p, w, k);
    /* The first have + room indices contain at least room free ones. */
    const int32_t n = (int32_t)HK_MIN(task->replicas, (int64_t)w->tasks[k].have + room);
    const uint8_t *taken = room > 0 ? taken_indices(p, task, n) : NULL;

    for (int32_t i = 0, made = 0; i < n && made < room; i++) {
        struct hk_err err = {0};
        struct json pod;

        if (taken[i]) {
            continue;
        }
        if (p->t->full || p->t->ncall >= TURN_CALLS_MAX) {
            p->t->full = true;
            return false;
        }
        if (job_pod_build(p, task, i, &pod, &err) < 0) {
            pass_event(p->t, p->root, true, "PluginError",
                       "Execute plugin when pod create failed, err: %s", err.text);
            pass_fail(p->t, HK_EINVAL, "%s", err.text);
            return false;
        }
        pass_create(p->t, api_kind(API_POD), &pod);
        job_window_made(w, k);
        made++;
    }
    return true;
}

static bool sync_pods(struct job_pass *p)
{
    const uint32_t before = p->t->ncall;
    struct job_window w;

    job_window_read(p, &w);
    for (uint32_t i = 0; i < p->job.tasks.len; i++) {
        if (job_task_may_start(p, &p->job.tasks.at[i]) && !create_pods(p, i, &w)) {
            break;
        }
    }
    return p->t->ncall == before;
}

/* ---- start and teardown ---- */

static void note_forwarding(struct job_pass *p)
{
    struct hk_arena *a = p->t->mem;
    struct json patch = json_make_object();
    struct json *meta, *notes;

    if (!p->forwarding || kinds_annotation(p->root, API_KEY_JOB_FORWARDING)) {
        return;
    }
    meta = json_set_object(&patch, a, "metadata");
    notes = json_set_object(meta, a, "annotations");
    json_set_cstr(notes, a, API_KEY_JOB_FORWARDING, "true");
    pass_patch(p->t, &(struct pass_patch){.kind = api_kind(API_JOB),
                                          .ns = p->job.meta.ns,
                                          .name = p->job.meta.name,
                                          .type = PORT_PATCH_MERGE,
                                          .body = &patch});
}

bool job_sync(struct job_pass *p)
{
    const bool starting = p->job.phase == API_JOB_NO_PHASE || p->job.phase == API_JOB_PENDING;
    bool ready = true;

    note_forwarding(p);
    ready &= sync_objects(p);
    ready &= !starting || sync_claims(p);
    ready &= sync_group(p);
    if (job_kill(p) || p->t->failed) {
        return false;
    }
    if (!ready || !group_lets_in(p)) {
        return p->t->ncall == 0;
    }
    return sync_pods(p);
}

void job_teardown(struct job_pass *p)
{
    const bool at_rest = api_job_is_finished(p->job.phase) || p->job.phase == API_JOB_ABORTED;

    if (p->group != HK_NONE) {
        delete_group(p);
    }
    if (at_rest) {
        remove_objects(p);
    }
}
