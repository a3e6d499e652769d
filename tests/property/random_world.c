// SPDX-License-Identifier: Apache-2.0
// Makes random clusters. Sizes are kept small and values few, so that constraints meet, gangs
// compete and search windows end inside the cluster; each kind of object is common enough to matter
// and rare enough not to drown the others.
#include "property/random_world.h"

#include <stdio.h>

static uint32_t below(struct random_world *r, uint32_t n)
{
    return hk_rand_below(&r->rand, n);
}

static bool chance(struct random_world *r, uint32_t percent)
{
    return below(r, 100) < percent;
}

static int32_t between(struct random_world *r, int32_t low, int32_t high)
{
    return low + (int32_t)below(r, (uint32_t)(high - low + 1));
}

/* ---- nodes ---- */

static uint32_t zone_value(struct random_world *r)
{
    return world_str(&r->w, "z%u", below(r, 4));
}

static uint32_t app_value(struct random_world *r)
{
    return world_str(&r->w, "app%u", below(r, 3));
}

static struct taint random_taint(struct random_world *r)
{
    return (struct taint){.key = world_str(&r->w, "taint%u", below(r, 2)),
                          .val = world_str(&r->w, "v%u", below(r, 2)),
                          .effect = (uint8_t)below(r, 3)};
}

static void put_node(struct random_world *r, uint32_t number)
{
    const int32_t cores = between(r, 1, 8);
    struct taint taint = random_taint(r);
    struct label labels[3];
    struct name name;
    uint32_t n = 0;

    labels[n++] = (struct label){r->host, world_str(&r->w, "n%u", number)};
    if (chance(r, 85)) {
        labels[n++] = (struct label){r->zone, zone_value(r)};
    }
    world_node(&r->w, &(struct world_node){
                          .name = name_fmt(&name, "n%u", number),
                          .size = {.cpu = cores * 1000,
                                   .mem = between(r, 2, 16) * GI,
                                   .gpu = chance(r, 25) ? between(r, 1, 4) * 1000 : 0},
                          .pods = between(r, 2, 20),
                          .labels = labels,
                          .nlabel = n,
                          .taints = &taint,
                          .ntaint = chance(r, 20),
                          .flags = chance(r, 5) ? NODE_UNSCHEDULABLE : 0,
                      });
}

static void make_nodes(struct random_world *r)
{
    const uint32_t n = (uint32_t)(chance(r, 10) ? between(r, 70, 140) : between(r, 5, 40));

    for (uint32_t k = 0; k < n; k++) {
        put_node(r, r->nnode++);
    }
}

/* Two tiers: leaves of a few nodes each, then pairs of leaves. */
static void make_hypers(struct random_world *r)
{
    enum { LEAVES = 4 };
    struct hyper_desc d[LEAVES + LEAVES / 2];
    struct hyper_member node[LEAVES][64], leaf[LEAVES];
    struct name names[HK_LEN(d)];
    struct hk_err err = {0};

    for (uint32_t k = 0; k < LEAVES; k++) {
        d[k] = (struct hyper_desc){
            .name = name_fmt(&names[k], "leaf%u", k), .tier = 1, .members = node[k]};
        leaf[k] = (struct hyper_member){.is_hyper = true, .name = world_str(&r->w, "leaf%u", k)};
    }
    for (uint32_t n = 0; n < r->nnode; n++) {
        struct hyper_desc *to = &d[n % LEAVES];
        if (to->nmember < HK_LEN(node[0])) {
            node[n % LEAVES][to->nmember++] =
                (struct hyper_member){.name = world_str(&r->w, "n%u", n)};
        }
    }
    for (uint32_t k = 0; k < LEAVES / 2; k++) {
        d[LEAVES + k] = (struct hyper_desc){.name = name_fmt(&names[LEAVES + k], "top%u", k),
                                            .tier = 2,
                                            .members = &leaf[2 * k],
                                            .nmember = 2};
    }
    hk_assert(model_hyper_rebuild(&r->w.m, d, HK_LEN(d), &err));
}

/* ---- queues ---- */

static void put_queue(struct random_world *r, const char *name, const char *parent)
{
    const double cpu = between(r, 2, 60) * 1000.0, mem = between(r, 4, 120) * (double)GI;
    const bool capped = chance(r, 25), deserving = chance(r, 40), sure = chance(r, 10);

    model_queue_put(&r->w.m, &(struct queue_desc){
                                 .name = hk_str(name),
                                 .parent = hk_str(parent),
                                 .weight = between(r, 1, 4),
                                 .priority = chance(r, 20) ? between(r, 0, 3) : 0,
                                 .creation_ns = world_tick(&r->w),
                                 .state = chance(r, 95) ? QUEUE_OPEN : QUEUE_CLOSED,
                                 .reclaimable = chance(r, 85),
                                 .has_capability = capped,
                                 .capability = world_rvec(cpu, mem),
                                 .has_deserved = deserving,
                                 .deserved = world_rvec(cpu / 2, mem / 2),
                                 .has_guarantee = sure,
                                 .guarantee = world_rvec(cpu / 8, mem / 8),
                             });
    r->nqueue++;
}

static void make_queues(struct random_world *r)
{
    const uint32_t n = 1 + below(r, 4);
    const bool tree = chance(r, 30);
    struct name name, parent;

    model_queue_put(&r->w.m, &(struct queue_desc){.name = HK_STR("root"),
                                                  .weight = 1,
                                                  .creation_ns = world_tick(&r->w),
                                                  .state = QUEUE_OPEN,
                                                  .reclaimable = true});
    for (uint32_t k = 0; k < n; k++) {
        name_fmt(&name, "q%u", k);
        put_queue(r, name.text, tree && k == 0 ? "root" : "");
    }
    for (uint32_t k = 0; tree && k < n; k++) {
        name_fmt(&name, "q%u", r->nqueue);
        name_fmt(&parent, "q%u", below(r, n));
        put_queue(r, name.text, parent.text);
    }
}

/* ---- constraints ---- */

static struct wish_term random_term(struct random_world *r)
{
    return (struct wish_term){.topo_key = chance(r, 50) ? r->host : r->zone,
                              .key = r->app,
                              .val = app_value(r),
                              .weight = between(r, 1, 100)};
}

static struct wish_req random_req(struct random_world *r)
{
    const uint32_t op = below(r, 4);

    return (struct wish_req){.key = r->zone,
                             .op = op,
                             .val = op == OP_IN || op == OP_NOT_IN ? zone_value(r) : 0,
                             .weight = between(r, 1, 100)};
}

static struct wish_tol random_tol(struct random_world *r)
{
    const struct taint t = random_taint(r);
    const bool exists = chance(r, 50);

    return (struct wish_tol){.key = t.key,
                             .val = exists ? 0 : t.val,
                             .exists = exists,
                             .any_effect = chance(r, 50),
                             .effect = t.effect};
}

static struct wish_spread random_spread(struct random_world *r)
{
    return (struct wish_spread){.topo_key = chance(r, 30) ? r->host : r->zone,
                                .key = r->app,
                                .val = app_value(r),
                                .max_skew = between(r, 1, 3),
                                .min_domains = chance(r, 20) ? between(r, 1, 4) : 1,
                                .hard = chance(r, 60),
                                .honor_affinity = chance(r, 80),
                                .honor_taints = chance(r, 30)};
}

static void fill_wish(struct random_world *r, uint32_t ns, struct wish *w)
{
    memset(w, 0, sizeof(*w));
    w->ns = ns;
    if (chance(r, 15)) {
        w->sel[w->nsel++] = (struct label){r->zone, zone_value(r)};
    }
    while (chance(r, 15) && w->nterm < WISH_EACH) {
        w->term[w->nterm++] = random_req(r);
    }
    while (chance(r, 20) && w->npref < WISH_EACH) {
        w->pref[w->npref++] = random_req(r);
    }
    while (chance(r, 30) && w->ntol < WISH_EACH) {
        w->tol[w->ntol++] = random_tol(r);
    }
    if (chance(r, 8)) {
        w->port[w->nport++] = 8000 + below(r, 3);
    }
    if (chance(r, 8)) {
        w->aff[w->naff++] = random_term(r);
    }
    while (chance(r, 15) && w->nanti < WISH_EACH) {
        w->anti[w->nanti++] = random_term(r);
    }
    if (chance(r, 8)) {
        w->pref_aff[w->npref_aff++] = random_term(r);
    }
    if (chance(r, 8)) {
        w->pref_anti[w->npref_anti++] = random_term(r);
    }
    while (chance(r, 12) && w->nspread < WISH_EACH) {
        w->spread[w->nspread++] = random_spread(r);
    }
}

/* ---- jobs and tasks ---- */

static struct size random_size(struct random_world *r)
{
    static const int64_t cpu[] = {100, 250, 500, 1000, 1500, 2000, 4000};

    if (chance(r, 8)) {
        return (struct size){0}; /* best effort */
    }
    return (struct size){.cpu = cpu[below(r, HK_LEN(cpu))],
                         .mem = chance(r, 80) ? between(r, 1, 8) * GI / 2 : 0,
                         .gpu = chance(r, 10) ? between(r, 1, 2) * 1000 : 0};
}

/* What the tasks of one role have in common. */
struct template
{
    struct size size;
    bool wishes;
    struct wish wish;
    ident_id ident;
    uint32_t role;
    int32_t priority;
    unsigned flags;
};

static struct template random_template(struct random_world *r, uint32_t ns, uint32_t role)
{
    const struct label app = {r->app, app_value(r)};
    struct template t = {.size = random_size(r),
                         .wishes = chance(r, 45),
                         .ident = model_ident_intern(&r->w.m, ns, &app, chance(r, 85)),
                         .role = role,
                         .priority = between(r, 1, 3) * 10,
                         .flags = TASK_OURS};

    if (t.wishes) {
        fill_wish(r, ns, &t.wish);
    }
    t.flags |= chance(r, 70) ? TASK_PREEMPTABLE : 0;
    t.flags |= chance(r, 5) ? TASK_NEVER_PREEMPTS : 0;
    t.flags |= chance(r, 3) ? TASK_GATED : 0;
    return t;
}

/* A node where the task may already run, without overfilling it. */
static node_id home_of(struct random_world *r, shape_id s)
{
    const struct model *m = &r->w.m;

    for (uint32_t tries = 0; tries < 4; tries++) {
        const node_id n = {below(r, m->nodes.len)};
        if ((m->nodes.flags[n.i] & NODE_KNOWN) && model_fits_idle(m, model_shape(m, s), n)) {
            return n;
        }
    }
    return NO_NODE;
}

static void put_task(struct random_world *r, uint32_t ns, struct hk_str group,
                     const struct template *t, bool running)
{
    const cons_id cons = t->wishes ? world_cons(&r->w, &t->wish) : NO_CONS;
    const shape_id shape = world_shape(&r->w, t->size, cons);
    const node_id home = running && !(t->flags & TASK_GATED) ? home_of(r, shape) : NO_NODE;
    struct hk_err err = {0};
    struct name name;
    task_id id;

    name_fmt(&name, "%.*s-%u", HK_FMT(group), r->npod++);
    const struct task_desc d = {
        .ns = model_str(&r->w.m, ns),
        .name = hk_str(name.text),
        .uid = hk_str(name.text),
        .group = group,
        .node = id_none(home) ? HK_STR("") : model_str(&r->w.m, r->w.m.nodes.name[home.i]),
        .role = t->role,
        .priority = t->priority,
        .pod_priority = t->priority,
        .flags = t->flags,
        .status = id_none(home) ? TASK_PENDING : TASK_RUNNING,
        .creation_ns = world_tick(&r->w),
        .start_ns = r->w.clock_ns,
        .shape = shape,
        .ident = t->ident,
        .labels = ident_labels(&r->w.m, t->ident)};
    hk_assert(model_task_put(&r->w.m, &d, &id, &err) == 0);
}

static enum pg_phase random_phase(struct random_world *r, bool running)
{
    if (running) {
        return PG_RUNNING;
    }
    return chance(r, 60) ? PG_INQUEUE : PG_PENDING;
}

static void put_job(struct random_world *r)
{
    const uint32_t ns = r->ns[below(r, 2)];
    const uint32_t nrole = chance(r, 15) ? (uint32_t)between(r, 3, 12) : 1 + below(r, 2);
    const bool running = chance(r, 40), role_mins = nrole > 1 && chance(r, 40);
    struct role_min roles[12];
    uint32_t count[12], total = 0;
    struct name name, queue;

    for (uint32_t k = 0; k < nrole; k++) {
        count[k] = (uint32_t)(nrole > 2 ? between(r, 1, 2) : between(r, 1, 6));
        total += count[k];
        roles[k] = (struct role_min){.name = world_str(&r->w, "role%u", k),
                                     .min = (int32_t)below(r, count[k] + 1)};
    }
    struct job_desc d = {
        .ns = model_str(&r->w.m, ns),
        .name = name_fmt(&name, "j-%u", r->njob++),
        .uid = hk_str(name.text),
        .queue = name_fmt(&queue, "q%u", below(r, r->nqueue)),
        .min = chance(r, 50) ? (int32_t)total : between(r, 1, (int32_t)total),
        .priority = between(r, 0, 3) * 100,
        .phase = random_phase(r, running),
        .preemptable = (uint8_t)below(r, 3),
        .creation_ns = world_tick(&r->w),
        .waiting_ns = chance(r, 5) ? between(r, 1, 60) * SECOND : 0,
        .has_minres = chance(r, 30),
        .minres = (struct amount[]){{DIM_CPU, between(r, 1, 8) * 500}},
        .nminres = 1,
        .roles = roles,
        .nrole = role_mins ? nrole : 0,
    };
    if (r->topology && chance(r, 50)) {
        d.topo = (struct topo_spec){.mode = chance(r, 70) ? TOPO_HARD : TOPO_SOFT,
                                    .has_tier = true,
                                    .tier = between(r, 1, 2)};
    }
    model_job_put(&r->w.m, &d);
    for (uint32_t k = 0; k < nrole; k++) {
        const struct template t = random_template(r, ns, roles[k].name);
        for (uint32_t i = 0; i < count[k]; i++) {
            put_task(r, ns, d.name, &t, running && chance(r, 80));
        }
    }
}

static void put_loose_pod(struct random_world *r)
{
    const uint32_t ns = r->ns[below(r, 2)];
    const struct template t = random_template(r, ns, 0);

    put_task(r, ns, HK_STR(""), &t, true);
}

/* ---- configuration ---- */

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (strcmp(name, list[k]) == 0) {
            return true;
        }
    }
    return false;
}

static void write_actions(struct random_world *r)
{
    static const struct {
        const char *name;
        uint32_t percent;
    } actions[] = {
        {"enqueue", 60}, {"allocate", 95},    {"backfill", 60},    {"preempt", 40},
        {"reclaim", 30}, {"gangpreempt", 20}, {"gangreclaim", 20}, {"shuffle", 5},
    };
    bool first = true;

    hk_buf_adds(&r->conf, "actions: \"");
    for (size_t k = 0; k < HK_LEN(actions); k++) {
        if (chance(r, actions[k].percent) || (first && k + 1 == HK_LEN(actions))) {
            hk_buf_addf(&r->conf, "%s%s", first ? "" : ", ", actions[k].name);
            first = false;
        }
    }
    hk_buf_adds(&r->conf, "\"\n");
}

static void write_plugin(struct random_world *r, const char *name)
{
    static const char *const switches[] = {
        "enableJobOrder",  "enablePreemptable", "enableReclaimable", "enableQueueOrder",
        "enableNodeOrder", "enableTaskOrder",   "enableJobStarving", "enableAllocatable"};

    hk_buf_addf(&r->conf, "  - name: %s\n", name);
    if (chance(r, 15)) {
        hk_buf_addf(&r->conf, "    %s: false\n", switches[below(r, HK_LEN(switches))]);
    }
    if (strcmp(name, "capacity") == 0 && chance(r, 40)) {
        hk_buf_adds(&r->conf, "    enableHierarchy: true\n");
    }
    if (strcmp(name, "nodeorder") == 0 && chance(r, 40)) {
        hk_buf_addf(&r->conf,
                    "    arguments:\n      leastrequested.weight: %d\n"
                    "      mostrequested.weight: %d\n      balancedresource.weight: %d\n",
                    between(r, 0, 2), between(r, 0, 2), between(r, 0, 2));
    }
}

/* The usual plugins are there more often than not. Queue limits come from one plugin at a time. */
static void write_tiers(struct random_world *r)
{
    static const char *const usual[] = {"gang", "predicates", "priority", "nodeorder",
                                        "conformance"};
    const char *const limits[] = {"proportion", "capacity", "none"};
    const char *limit = limits[below(r, 3)];
    const uint32_t ntier = 1 + below(r, 3);
    uint32_t *tier = hk_zalloc_array(plugin_table_len, sizeof(*tier));

    for (uint32_t k = 0; k < plugin_table_len; k++) {
        const char *name = plugin_table[k]->name;
        const bool is_limit = is_one_of(name, limits, HK_LEN(limits));
        const uint32_t percent = is_one_of(name, usual, HK_LEN(usual)) ? 85 : 40;
        const bool wanted = is_limit ? strcmp(name, limit) == 0 : chance(r, percent);
        tier[k] = wanted ? 1 + below(r, ntier) : 0;
    }
    hk_buf_adds(&r->conf, "tiers:\n");
    for (uint32_t t = 1; t <= ntier; t++) {
        hk_buf_adds(&r->conf, "- plugins:\n");
        const uint32_t turn = below(r, plugin_table_len);
        for (uint32_t k = 0; k < plugin_table_len; k++) {
            const uint32_t p = (k + turn) % plugin_table_len;
            if (tier[p] == t) {
                write_plugin(r, plugin_table[p]->name);
            }
        }
    }
    hk_free(tier);
}

static void choose_opts(struct random_world *r, uint64_t seed)
{
    r->opts = SESSION_OPTS_DEFAULT;
    r->opts.seed = seed;
    r->opts.min_feasible = (uint32_t)between(r, 1, 20);
    r->opts.min_percentage = (uint32_t)between(r, 5, 50);
    r->opts.percentage = chance(r, 30) ? 0 : (uint32_t)between(r, 10, 100);
    r->opts.texts = chance(r, 30);
    r->opts.all_jobs = chance(r, 50);
}

/* Nodes that come later are in no shard of ours. */
static void choose_shard(struct random_world *r)
{
    struct model *m = &r->w.m;

    if (!chance(r, 15)) {
        return;
    }
    r->opts.shard_mode = chance(r, 50) ? SHARD_HARD : SHARD_SOFT;
    for (uint32_t i = 0; i < m->nodes.len; i++) {
        if (m->nodes.flags[i] & NODE_KNOWN) {
            model_node_shard(m, (node_id){i}, chance(r, 60));
        }
    }
}

void random_world_init(struct random_world *r, uint64_t seed)
{
    *r = (struct random_world){0};
    hk_rand_seed(&r->rand, seed);
    world_init(&r->w);
    r->ns[0] = world_str(&r->w, "default");
    r->ns[1] = world_str(&r->w, "other");
    r->app = world_str(&r->w, "app");
    r->zone = world_str(&r->w, "topology.kubernetes.io/zone");
    r->host = world_str(&r->w, "kubernetes.io/hostname");
    make_nodes(r);
    r->topology = chance(r, 20);
    if (r->topology) {
        make_hypers(r);
    }
    make_queues(r);
    const uint32_t njob = (uint32_t)between(r, 1, 20), nloose = below(r, 10);
    for (uint32_t k = 0; k < njob; k++) {
        put_job(r);
    }
    for (uint32_t k = 0; k < nloose; k++) {
        put_loose_pod(r);
    }
    write_actions(r);
    write_tiers(r);
    choose_opts(r, seed);
    choose_shard(r);
    r->opts.now_ns = r->w.clock_ns;
}

void random_world_fini(struct random_world *r)
{
    world_fini(&r->w);
    hk_buf_fini(&r->conf);
}

/* ---- the world's turn ---- */

/* A controller makes a new pod in place of one that is gone. */
static void replace_task(struct random_world *r, task_id id)
{
    struct model *m = &r->w.m;
    const struct task old = *model_task(m, id);
    const struct shape s = *model_shape(m, old.shape);
    struct hk_err err = {0};
    struct name name, group = {""};
    task_id fresh;

    if (!id_none(old.job)) {
        name_fmt(&group, "%.*s", HK_FMT(model_str(m, model_job(m, old.job)->name)));
    }
    name_fmt(&name, "%s-%u", group.text, r->npod++);
    const shape_id shape = model_shape_intern(
        m,
        &(struct shape_desc){
            .req = s.req, .nreq = s.nreq, .nz_cpu = s.nz_cpu, .nz_mem = s.nz_mem, .cons = s.cons});
    const struct task_desc d = {.ns = model_str(m, old.ns),
                                .name = hk_str(name.text),
                                .uid = hk_str(name.text),
                                .group = hk_str(group.text),
                                .role = old.role,
                                .priority = old.priority,
                                .pod_priority = old.pod_priority,
                                .flags = old.flags &
                                         (TASK_OURS | TASK_PREEMPTABLE | TASK_NEVER_PREEMPTS),
                                .creation_ns = world_tick(&r->w),
                                .shape = shape,
                                .ident = old.ident,
                                .labels = ident_labels(m, old.ident)};
    hk_assert(model_task_put(m, &d, &fresh, &err) == 0);
    model_task_del(m, id);
}

static void task_turn(struct random_world *r, task_id id)
{
    struct model *m = &r->w.m;
    const struct task *t = model_task(m, id);

    switch ((enum task_status)t->status) {
    case TASK_BINDING:
    case TASK_BOUND:
        model_task_move(m, id, chance(r, 80) ? TASK_RUNNING : TASK_BOUND, t->node);
        break;
    case TASK_RUNNING:
        if (chance(r, 10)) {
            model_task_move(m, id, chance(r, 70) ? TASK_SUCCEEDED : TASK_FAILED, t->node);
        } else if (chance(r, 5)) {
            model_task_move(m, id, TASK_RELEASING, t->node);
        }
        break;
    case TASK_RELEASING:
        if (chance(r, 40)) {
            replace_task(r, id);
        } else if (chance(r, 40)) {
            model_task_del(m, id);
        }
        break;
    case TASK_SUCCEEDED:
    case TASK_FAILED:
        if (chance(r, 30)) {
            model_task_del(m, id);
        }
        break;
    default:
        break;
    }
}

static void node_turn(struct random_world *r)
{
    const uint32_t what = below(r, 10);

    if (what == 0) {
        put_node(r, r->nnode++);
    } else if (what == 1) {
        put_node(r, below(r, r->nnode));
    } else if (what == 2) {
        const node_id n = {below(r, r->w.m.nodes.len)};
        if (r->w.m.nodes.flags[n.i] & NODE_KNOWN) {
            model_node_del(&r->w.m, n);
        }
    }
}

void random_world_step(struct random_world *r)
{
    const uint32_t rows = r->w.m.tasks.len;

    for (uint32_t i = 0; i < rows; i++) {
        if (r->w.m.tasks.at[i].used) {
            task_turn(r, (task_id){i});
        }
    }
    node_turn(r);
    while (chance(r, 40)) {
        put_job(r);
    }
    r->opts.now_ns = world_tick(&r->w);
}

/* ---- printing ---- */

static void print_nodes(const struct model *m)
{
    for (uint32_t i = 0; i < m->nodes.len; i++) {
        const struct node_table *t = &m->nodes;
        printf("# node %u %.*s flags=%x class=%u taints=%u", i, HK_FMT(model_str(m, t->name[i])),
               t->flags[i], t->class_[i].i, t->ntaint[i]);
        for (uint32_t d = 0; d < m->dims.n; d++) {
            printf(" %.*s=%lld/%lld", HK_FMT(m->dims.text[d]), (long long)t->idle.col[d][i],
                   (long long)t->alloc.col[d][i]);
        }
        for (uint32_t k = 0; k < t->labels[i].n; k++) {
            printf(" %.*s", HK_FMT(model_str(m, t->labels[i].at[k].val)));
        }
        printf("\n");
    }
}

static void print_jobs(const struct model *m)
{
    for (uint32_t i = 0; i < m->queues.len; i++) {
        const struct queue *q = &m->queues.at[i];
        printf("# queue %u %.*s parent=%.*s weight=%d capability=%d deserved=%d\n", i,
               HK_FMT(model_str(m, q->name)), HK_FMT(model_str(m, q->parent_name)), q->weight,
               q->has_capability, q->has_deserved);
    }
    for (uint32_t i = 0; i < m->jobs.len; i++) {
        const struct job *j = &m->jobs.at[i];
        if (j->used) {
            printf("# job %u %.*s queue=%.*s min=%d priority=%d phase=%s topo=%d\n", i,
                   HK_FMT(model_str(m, j->name)), HK_FMT(model_str(m, j->queue_name)), j->min,
                   j->priority, pg_phase_name(j->phase), j->topo.mode);
        }
    }
}

static void print_cons(const struct cons *c)
{
    if (c) {
        printf(" sel=%u term=%u pref=%u tol=%u port=%u aff=%u anti=%u paff=%u panti=%u spread=%u",
               c->nsel, c->nterm, c->npref, c->ntol, c->nport, c->naff, c->nanti, c->npref_aff,
               c->npref_anti, c->nspread);
    }
}

static void print_tasks(const struct model *m)
{
    for (uint32_t i = 0; i < m->tasks.len; i++) {
        const struct task *t = &m->tasks.at[i];
        if (!t->used) {
            continue;
        }
        const struct shape *s = model_shape(m, t->shape);
        printf("# task %u %.*s %s job=%d node=%d shape=%u priority=%d flags=%x nominated=%d", i,
               HK_FMT(model_str(m, t->name)), task_status_name(t->status), (int)t->job.i,
               (int)t->node.i, t->shape.i, t->priority, t->flags, (int)t->nominated.row);
        for (uint32_t k = 0; k < s->nreq; k++) {
            printf(" %.*s=%lld", HK_FMT(m->dims.text[s->req[k].dim]), (long long)s->req[k].v);
        }
        print_cons(task_cons(m, (task_id){i}));
        printf("\n");
    }
}

void random_world_print(const struct random_world *r)
{
    printf("# options: min_feasible=%u min_percentage=%u percentage=%u all_jobs=%d\n",
           r->opts.min_feasible, r->opts.min_percentage, r->opts.percentage, r->opts.all_jobs);
    print_nodes(&r->w.m);
    print_jobs(&r->w.m);
    print_tasks(&r->w.m);
}
