// SPDX-License-Identifier: Apache-2.0
// What must hold when nothing happens any more: every job has reached its end or waits for a reason
// that is told, gangs are whole, nothing is left over, nothing is under way.
#include "world/check.h"

#include <inttypes.h>
#include <stdio.h>

static bool check_phase_is(const struct check_job *j, const char *const *phases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(j->phase, phases[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- jobs and their gangs ---- */

/* Events may be lost when calls fail. */
static bool check_has_event(const struct check *c, const struct check_group *g)
{
    char head[160];

    snprintf(head, sizeof(head), "%d %s/%s.", (int)API_EVENT, g->ns, g->name);
    for (uint32_t i = 0; i < c->keys.len; i++) {
        if (c->keys.at[i].present && c->keys.at[i].kind == API_EVENT &&
            hk_str_starts(hk_intern_str(&c->names, i), head)) {
            return true;
        }
    }
    return false;
}

/* Members of the role, "" of all, that have not failed; how many have. */
static int64_t check_alive(const struct check *c, const struct check_group *g, const char *role,
                           int64_t *ret_failed)
{
    int64_t alive = 0;

    *ret_failed = 0;
    for (uint32_t i = 0; i < c->pods.len; i++) {
        const struct check_pod *p = &c->pods.at[i];
        if (!p->gone && strcmp(p->ns, g->ns) == 0 && strcmp(p->group, g->name) == 0 &&
            (role[0] == '\0' || strcmp(p->role, role) == 0)) {
            alive += !p->failed;
            *ret_failed += p->failed;
        }
    }
    return alive;
}

/* So many members have failed that it will never be whole again, and no policy says what to do:
 * such a gang waits for its owner, as with Volcano. */
static bool check_is_stuck(const struct check *c, const struct check_group *g)
{
    int64_t failed;
    bool stuck = check_alive(c, g, "", &failed) < g->min && failed > 0;

    for (size_t i = 0; i < HK_LEN(g->roles) && g->roles[i].role[0] != '\0'; i++) {
        stuck |= check_alive(c, g, g->roles[i].role, &failed) < g->roles[i].min && failed > 0;
    }
    return stuck;
}

static void check_rest_job(struct world *w, const struct check_job *j)
{
    static const char *const ends[] = {"Completed", "Failed", "Aborted", "Terminated"};
    static const char *const waits[] = {"Pending", "Inqueue"};
    struct check *c = w->check;
    char group[160];

    if (j->gone) {
        return;
    }
    if (j->deleting) {
        world_fail(w, "what is deleted goes",
                   "expected job %s/%s to be gone, actual: it is being deleted, phase '%s'", j->ns,
                   j->name, j->phase);
    }
    if (check_phase_is(j, ends, HK_LEN(ends))) {
        return;
    }
    snprintf(group, sizeof(group), "%s-%s", j->name, j->uid);
    const struct check_group *g = check_group_find(c, j->ns, group);
    if (g && !g->gone && check_is_stuck(c, g)) {
        return;
    }
    if (!j->huge || (j->phase[0] != '\0' && !check_phase_is(j, waits, HK_LEN(waits)))) {
        world_fail(w, "every feasible gang runs",
                   "expected job %s/%s to have reached its end, actual: phase '%s'", j->ns, j->name,
                   j->phase);
    }
    if (!g || g->gone || (!g->explained && w->weather.peaceful && !check_has_event(c, g))) {
        world_fail(w, "who waits is told why",
                   "expected a PodGroup of job %s/%s with a message why it waits, actual: %s",
                   j->ns, j->name, !g || g->gone ? "there is none" : "there is no message");
    }
}

static void check_rest_promise(void *ctx, const char *ns, const char *name, const char *uid)
{
    struct world *w = ctx;

    for (uint32_t i = 0; i < w->check->jobs.len; i++) {
        const struct check_job *j = &w->check->jobs.at[i];
        if (strcmp(j->uid, uid) == 0 && !j->gone) {
            return;
        }
    }
    world_fail(w, "no lost job",
               "expected job %s/%s (%s), which was acknowledged and which nobody deleted, actual: "
               "it is not there",
               ns, name, uid);
}

static void check_rest_gang(struct world *w, const struct check_group *g)
{
    const struct check *c = w->check;
    int64_t bound = 0, over = 0;

    for (uint32_t i = 0; i < c->pods.len; i++) {
        const struct check_pod *p = &c->pods.at[i];
        if (!p->gone && strcmp(p->ns, g->ns) == 0 && strcmp(p->group, g->name) == 0) {
            over += p->phase == CHECK_POD_OVER;
            bound += p->phase != CHECK_POD_OVER && p->node[0] != '\0';
        }
    }
    if (!g->gone && bound > 0 && bound + over < g->min) {
        world_fail(w, "no gang below its minimum at rest",
                   "expected 0 or at least %" PRId64 " members of %s/%s bound, actual: %" PRId64
                   " and %" PRId64 " that are over",
                   g->min, g->ns, g->name, bound, over);
    }
}

/* ---- pods and processes ---- */

static void check_rest_pod(struct world *w, const struct check_pod *p)
{
    static const char *const phases[] = {"Pending", "Running", "over"};

    if (p->gone) {
        return;
    }
    if (p->deleting) {
        world_fail(w, "what is deleted goes",
                   "expected pod %s/%s to be gone, actual: it is being deleted on node '%s'", p->ns,
                   p->name, p->node);
    }
    if (p->node[0] != '\0' && p->phase != CHECK_POD_OVER && !p->forever) {
        world_fail(w, "every pod comes to its end",
                   "expected pod %s/%s on node %s to be over, actual: %s", p->ns, p->name, p->node,
                   phases[p->phase]);
    }
    const struct check_group *g = check_group_find(w->check, p->ns, p->group);
    if (p->node[0] == '\0' && p->phase != CHECK_POD_OVER && p->cpu_milli < 64000 &&
        !(g && check_is_stuck(w->check, g))) {
        world_fail(w, "every feasible pod runs",
                   "expected pod %s/%s to be bound, actual: %s without a node", p->ns, p->name,
                   phases[p->phase]);
    }
}

static void check_rest_process(void *ctx, const char *uid, uint32_t running)
{
    struct world *w = ctx;

    if (!check_has_pod(w->check, uid)) {
        world_fail(w, "no process for a pod that is gone",
                   "expected nothing of pod %s on its node, actual: %u processes", uid, running);
    }
}

static void check_rest_processes(struct world *w)
{
    processes_each(w->processes, check_rest_process, w);
    for (uint32_t i = 0; i < w->weather.remotes; i++) {
        if (remote_processes(w->remotes[i])) {
            processes_each(remote_processes(w->remotes[i]), check_rest_process, w);
        }
    }
}

static void check_rest_node(struct world *w, const struct check_node *n)
{
    if (!n->gone && !n->ready) {
        world_fail(w, "a node that lives is ready", "expected node %s to be ready, actual: %s",
                   n->name, n->doubted ? "Unknown" : "not ready");
    }
}

static void check_rest_queue(struct world *w, const struct check_queue *q, const char *state)
{
    if (!q->gone && strcmp(q->name, "root") != 0 && strcmp(q->state, state) != 0) {
        world_fail(w, "a queue is what it was told to be",
                   "expected queue %s to be %s, actual: '%s'", q->name, state, q->state);
    }
}

void check_given_up(struct world *w)
{
    const struct check *c = w->check;

    for (uint32_t i = 0; i < c->pods.len; i++) {
        const struct check_pod *p = &c->pods.at[i];
        const struct check_node *n = check_node_named(w->check, p->node);
        bool given_up = false;

        for (uint32_t k = 0; k < w->weather.remotes; k++) {
            given_up |= remote_is_given_up(w->remotes[k]) &&
                        strcmp(remote_name(w->remotes[k]), p->node) == 0;
        }
        if (given_up && !p->gone && (p->phase != CHECK_POD_OVER || !n || n->gone)) {
            world_fail(w, "pods leave a node that is given up",
                       "expected pod %s/%s to have left node %s, which an administrator has given "
                       "up, actual: it is there%s",
                       p->ns, p->name, p->node, p->deleting ? ", being deleted" : "");
        }
    }
}

/* ---- what is under way ---- */

static void check_rest_links(struct world *w, bool first)
{
    for (enum world_part k = 0; k < WORLD_PARTS; k++) {
        const struct link *l = &w->parts[k].link;
        if (!w->parts[k].runs) {
            continue;
        }
        const uint32_t watches = link_calls(l, PORT_WATCH);

        if (l->calls.len != watches) {
            world_fail(w, "nothing is under way at rest",
                       "expected watches only of part %d, actual: %u other calls", (int)k,
                       l->calls.len - watches);
        }
        if (first) {
            w->check->watches[k] = watches;
        } else if (w->check->watches[k] != watches) {
            world_fail(w, "watches do not pile up", "expected %u watches of part %d, actual: %u",
                       w->check->watches[k], (int)k, watches);
        }
    }
    if (loop_stats(w->scheduler).backlog > 0) {
        world_fail(w, "nothing is under way at rest",
                   "expected no decision of the scheduler to wait, actual: %u",
                   loop_stats(w->scheduler).backlog);
    }
}

/* ---- other workloads ---- */

static bool check_has_condition(const struct json *root, const char *type)
{
    const struct json *list = json_at(root, "status.conditions");

    for (uint32_t i = 0; json_item(list, i); i++) {
        if (hk_str_is(json_str(json_get(json_item(list, i), "type"), HK_STR("")), type) &&
            hk_str_is(json_str(json_get(json_item(list, i), "status"), HK_STR("")), "True")) {
            return true;
        }
    }
    return false;
}

static bool check_rest_batch_job(void *ctx, const struct store_obj *o)
{
    struct world *w = ctx;
    struct json root;

    if (json_parse(o->text, 0, &w->check->mem, &root, NULL) == 0 &&
        !check_has_condition(&root, "Complete") && !check_has_condition(&root, "Failed")) {
        world_fail(w, "every batch Job comes to its end",
                   "expected Job %.*s/%.*s to be Complete or Failed, actual: neither",
                   HK_FMT(o->ns), HK_FMT(o->name));
    }
    return true;
}

static bool check_rest_deployment(void *ctx, const struct store_obj *o)
{
    struct world *w = ctx;
    struct json root;
    int64_t want, ready;

    if (json_parse(o->text, 0, &w->check->mem, &root, NULL) < 0) {
        return true;
    }
    want = json_int(json_at(&root, "spec.replicas"), 1);
    ready = json_int(json_at(&root, "status.readyReplicas"), 0);
    if (want != ready) {
        world_fail(w, "every Deployment is ready",
                   "expected %" PRId64 " ready replicas of %.*s/%.*s, actual: %" PRId64, want,
                   HK_FMT(o->ns), HK_FMT(o->name), ready);
    }
    return true;
}

static void check_rest_workloads(struct world *w)
{
    store_scan(w->store, check_res(w, API_BATCH_JOB), HK_STR(""), HK_STR(""), HK_STR(""),
               check_rest_batch_job, w);
    store_scan(w->store, check_res(w, API_DEPLOYMENT), HK_STR(""), HK_STR(""), HK_STR(""),
               check_rest_deployment, w);
    hk_arena_clear(&w->check->mem);
}

/* ---- owners ---- */

struct check_owners {
    struct world *w;
    enum api_kind_id kind;
    struct hk_intern uids; /* of all there is */
};

static bool check_note_uid(void *ctx, const struct store_obj *o)
{
    struct check_owners *s = ctx;

    hk_intern(&s->uids, o->uid);
    return true;
}

static bool check_owner(void *ctx, const struct store_obj *o)
{
    struct check_owners *s = ctx;
    struct json root;
    const struct json *owners;

    if (json_parse(o->text, 0, &s->w->check->mem, &root, NULL) < 0) {
        return true;
    }
    owners = json_at(&root, "metadata.ownerReferences");
    for (uint32_t i = 0; json_item(owners, i); i++) {
        const struct hk_str uid = json_str(json_get(json_item(owners, i), "uid"), HK_STR(""));

        if (hk_intern_find(&s->uids, uid) == HK_NONE) {
            world_fail(s->w, "no orphans",
                       "expected %s %.*s/%.*s to be gone with its owner %.*s, actual: it is there",
                       api_kind(s->kind)->plural, HK_FMT(o->ns), HK_FMT(o->name), HK_FMT(uid));
        }
    }
    return true;
}

static void check_each(struct check_owners *s, store_scan_fn *fn)
{
    for (s->kind = 0; s->kind < API_NKINDS; s->kind++) {
        if (s->kind != API_EVENT) {
            store_scan(s->w->store, check_res(s->w, s->kind), HK_STR(""), HK_STR(""), HK_STR(""),
                       fn, s);
        }
    }
}

static void check_rest_owners(struct world *w)
{
    struct check_owners s = {.w = w};

    check_each(&s, check_note_uid);
    check_each(&s, check_owner);
    hk_intern_fini(&s.uids);
    hk_arena_clear(&w->check->mem);
}

/* ---- all of it ---- */

void check_rest(struct world *w)
{
    const struct check *c = w->check;

    for (uint32_t i = 0; i < c->jobs.len; i++) {
        check_rest_job(w, &c->jobs.at[i]);
    }
    for (uint32_t i = 0; i < c->groups.len; i++) {
        check_rest_gang(w, &c->groups.at[i]);
    }
    for (uint32_t i = 0; i < c->pods.len; i++) {
        check_rest_pod(w, &c->pods.at[i]);
    }
    for (uint32_t i = 0; i < c->nodes.len; i++) {
        check_rest_node(w, &c->nodes.at[i]);
    }
    for (uint32_t i = 0; i < c->queues.len; i++) {
        check_rest_queue(w, &c->queues.at[i], "Open");
    }
    clients_each_job(w, check_rest_promise, w);
    check_rest_processes(w);
    check_rest_workloads(w);
    check_rest_links(w, true);
    check_rest_owners(w);
}

void check_empty(struct world *w)
{
    static const enum api_kind_id kinds[] = {
        API_POD,         API_PODGROUP,   API_JOB,       API_JOBFLOW,
        API_CRONJOB,     API_SECRET,     API_SERVICE,   API_COMMAND,
        API_REPLICA_SET, API_DEPLOYMENT, API_BATCH_JOB, API_NETWORK_POLICY,
    };
    const struct model *m = loop_model(w->scheduler);

    for (size_t i = 0; i < HK_LEN(kinds); i++) {
        const uint32_t n = store_count(w->store, check_res(w, kinds[i]));
        if (n > 0) {
            world_fail(w, "nothing is left over", "expected no %s, actual: %u",
                       api_kind(kinds[i])->plural, n);
        }
    }
    if (m->tasks.len != m->tasks.free.len || m->jobs.len != m->jobs.free.len) {
        world_fail(w, "the scheduler forgets what is gone",
                   "expected no tasks and no jobs in the model, actual: %u and %u",
                   m->tasks.len - m->tasks.free.len, m->jobs.len - m->jobs.free.len);
    }
    for (uint32_t i = 0; i < w->check->queues.len; i++) {
        const struct check_queue *q = &w->check->queues.at[i];
        check_rest_queue(w, q, strcmp(q->name, CLIENT_CLOSED_QUEUE) == 0 ? "Closed" : "Open");
    }
    check_rest_processes(w);
    check_rest_links(w, false);
    check_rest_owners(w);
}
