// SPDX-License-Identifier: Apache-2.0
// Makes the clusters of settle.c. They are small and crowded, so that queues meet their limits,
// gangs compete and pods of all priorities wait.
#include "property/settle_world.h"

#include <stdio.h>

uint32_t settle_below(struct settle *s, uint32_t n)
{
    return hk_rand_below(&s->rand, n);
}

static bool chance(struct settle *s, uint32_t percent)
{
    return settle_below(s, 100) < percent;
}

static uint32_t between(struct settle *s, uint32_t low, uint32_t high)
{
    return low + settle_below(s, high - low + 1);
}

/* ---- the cluster ---- */

static void make_nodes(struct settle *s, int64_t *cores)
{
    const uint32_t n = between(s, 1, 8);
    struct name name;

    *cores = 0;
    for (uint32_t k = 0; k < n; k++) {
        const int64_t here = between(s, 2, 8);
        world_node(&s->w, &(struct world_node){
                              .name = name_fmt(&name, "n%u", k),
                              .size = {.cpu = here * 1000,
                                       .mem = (int64_t)between(s, 2, 8) * GI,
                                       .gpu = chance(s, 40) ? (int64_t)between(s, 1, 4) * 1000 : 0},
                              .pods = 100,
                          });
        *cores += here;
    }
}

static struct rvec some_of(struct settle *s, int64_t cores, uint32_t parts)
{
    struct rvec r = world_rvec((double)HK_MAX(cores * between(s, 1, 4) / parts, 1) * 1000,
                               (double)HK_MAX(cores * between(s, 1, 4) / parts, 1) * (double)GI);

    if (chance(s, 30)) {
        rvec_set(&r, s->w.gpu, between(s, 1, 4) * 1000);
    }
    return r;
}

/* As admission wants it: a guarantee within what is deserved, that within the capability. */
static void make_queue(struct settle *s, uint32_t k, struct hk_str parent, int64_t cores)
{
    struct queue_desc d = {.parent = parent,
                           .weight = (int32_t)between(s, 1, 8),
                           .priority = chance(s, 15) ? 1 : 0,
                           .creation_ns = world_tick(&s->w),
                           .state = QUEUE_OPEN,
                           .reclaimable = chance(s, 92),
                           .has_capability = chance(s, 40),
                           .capability = some_of(s, cores, 5),
                           .has_deserved = chance(s, 70),
                           .deserved = some_of(s, cores, 7),
                           .has_guarantee = !s->hierarchy && chance(s, 12)};
    struct name name;

    d.name = name_fmt(&name, "q%u", k);
    if (d.has_capability) {
        rvec_min_inf(&d.deserved, &d.capability);
    }
    d.guarantee = d.deserved;
    rvec_scale(&d.guarantee, 0.2);
    model_queue_put(&s->w.m, &d);
}

/* In a tree the first queues are inner ones and jobs go to the others. */
static void make_queues(struct settle *s, int64_t cores, uint32_t *first_leaf)
{
    const uint32_t inner = s->hierarchy ? between(s, 1, 2) : 0, leaves = between(s, 2, 4);
    struct name parent;

    model_queue_put(&s->w.m, &(struct queue_desc){.name = HK_STR("root"),
                                                  .weight = 1,
                                                  .creation_ns = world_tick(&s->w),
                                                  .state = QUEUE_OPEN,
                                                  .reclaimable = true});
    for (uint32_t k = 0; k < inner; k++) {
        make_queue(s, k, HK_STR(""), cores);
    }
    for (uint32_t k = 0; k < leaves; k++) {
        const bool top = inner == 0 || chance(s, 30);
        make_queue(s, inner + k,
                   top ? HK_STR("") : name_fmt(&parent, "q%u", settle_below(s, inner)), cores);
    }
    *first_leaf = inner;
    s->nqueue = inner + leaves;
}

/* ---- jobs and pods ---- */

static struct size some_size(struct settle *s)
{
    static const int64_t cpu[] = {250, 500, 1000, 1000, 1500, 2000, 3000};

    if (chance(s, 4)) {
        return (struct size){0}; /* best effort */
    }
    return (struct size){.cpu = cpu[settle_below(s, HK_LEN(cpu))],
                         .mem = chance(s, 85) ? (int64_t)between(s, 1, 4) * GI / 2 : 0,
                         .gpu = chance(s, 15) ? (int64_t)between(s, 1, 2) * 1000 : 0};
}

static void make_jobs(struct settle *s, uint32_t first_leaf)
{
    const uint32_t n = between(s, 3, MAX_JOBS);

    for (uint32_t k = 0; k < n; k++) {
        struct settle_job *j = &s->jobs[s->njob];
        const struct size size = some_size(s);
        const bool mixed = chance(s, 25), endless = chance(s, 25), precious = chance(s, 8);
        const uint32_t nseat = between(s, 1, 8);
        if (s->nseat + nseat > MAX_SEATS) {
            break;
        }
        *j = (struct settle_job){.queue = between(s, first_leaf, s->nqueue - 1),
                                 .first = s->nseat,
                                 .nseat = nseat,
                                 .min = (int32_t)(chance(s, 50) ? nseat : between(s, 1, nseat)),
                                 .priority = (int32_t)settle_below(s, 3) * 100,
                                 .arrives = settle_below(s, SUBMIT_CYCLES)};
        for (uint32_t i = 0; i < nseat; i++) {
            s->seats[s->nseat++] =
                (struct seat){.job = s->njob,
                              .number = i,
                              .size = mixed ? some_size(s) : size,
                              .flags = TASK_OURS | (precious ? 0 : TASK_PREEMPTABLE),
                              .state = SEAT_EMPTY,
                              .wait = UINT32_MAX,
                              .runs_forever = endless};
        }
        s->last_submission = HK_MAX(s->last_submission, j->arrives);
        s->njob++;
    }
}

static void make_pod(struct settle *s, struct seat *t)
{
    const struct settle_job *j = &s->jobs[t->job];
    struct name name, uid, group;
    struct hk_err err = {0};

    const struct task_desc d = {
        .ns = HK_STR("default"),
        .name = name_fmt(&name, "j%u-%u", t->job, t->number),
        .uid = name_fmt(&uid, "j%u-%u-%u", t->job, t->number, t->incarnation++),
        .group = name_fmt(&group, "j%u", t->job),
        .priority = 1,
        .pod_priority = j->priority,
        .flags = t->flags,
        .status = TASK_PENDING,
        .creation_ns = world_tick(&s->w),
        .shape = world_shape(&s->w, t->size, NO_CONS),
        .ident = s->w.plain,
    };
    hk_assert(model_task_put(&s->w.m, &d, &t->pod, &err) == 0);
    t->state = SEAT_POD;
    t->promised = t->placed = COST_NONE;
    t->wait = t->runs_forever ? UINT32_MAX : between(s, 1, 15);
}

static void submit(struct settle *s, uint32_t k)
{
    struct settle_job *j = &s->jobs[k];
    struct name name, queue;

    j->id = model_job_put(&s->w.m, &(struct job_desc){.ns = HK_STR("default"),
                                                      .name = name_fmt(&name, "j%u", k),
                                                      .uid = hk_str(name.text),
                                                      .queue = name_fmt(&queue, "q%u", j->queue),
                                                      .min = j->min,
                                                      .priority = j->priority,
                                                      .phase = PG_PENDING,
                                                      .preemptable = TRI_UNSET,
                                                      .creation_ns = world_tick(&s->w)});
    for (uint32_t i = 0; i < j->nseat; i++) {
        make_pod(s, &s->seats[j->first + i]);
    }
}

/* ---- configuration ---- */

static void shuffle_names(struct settle *s, const char **at, uint32_t n)
{
    for (uint32_t k = n; k > 1; k--) {
        const uint32_t i = settle_below(s, k);
        const char *x = at[i];
        at[i] = at[k - 1];
        at[k - 1] = x;
    }
}

/* allocate is always there, and at least one action that evicts. */
static void write_actions(struct settle *s)
{
    static const char *const evicting[] = {"preempt", "reclaim", "gangpreempt", "gangreclaim"};
    const char *at[8];
    uint32_t n = 0;

    at[n++] = "allocate";
    at[n++] = evicting[settle_below(s, HK_LEN(evicting))];
    for (size_t k = 0; k < HK_LEN(evicting); k++) {
        if (strcmp(evicting[k], at[1]) != 0 && chance(s, k < 2 ? 55 : 20)) {
            at[n++] = evicting[k];
        }
    }
    if (chance(s, 85)) {
        at[n++] = "enqueue";
    }
    if (chance(s, 60)) {
        at[n++] = "backfill";
    }
    shuffle_names(s, at, n);
    hk_buf_adds(&s->text, "actions: \"");
    for (uint32_t k = 0; k < n; k++) {
        hk_buf_addf(&s->text, "%s%s", k ? ", " : "", at[k]);
    }
    hk_buf_adds(&s->text, "\"\n");
}

static void write_plugin(struct settle *s, const char *name)
{
    hk_buf_addf(&s->text, "  - name: %s\n", name);
    if (strcmp(name, "capacity") == 0 && s->hierarchy) {
        hk_buf_adds(&s->text, "    enableHierarchy: true\n");
        if (chance(s, 40)) {
            hk_buf_addf(&s->text, "    arguments:\n      ancestorReclaimLevel: %u\n",
                        between(s, 1, 2));
        }
    }
    if ((strcmp(name, "gang") == 0 || strcmp(name, "drf") == 0) && chance(s, 40)) {
        hk_buf_adds(&s->text, "    enablePreemptable: false\n");
    }
    if ((strcmp(name, "gang") == 0 || strcmp(name, "conformance") == 0) && chance(s, 15)) {
        hk_buf_adds(&s->text, "    enableReclaimable: false\n");
    }
}

/* Three in four have the usual two tiers; the rest is dealt at random. */
static void write_tiers(struct settle *s, const char *share)
{
    static const struct {
        const char *name;
        uint32_t tier, percent;
    } plugins[] = {
        {"priority", 1, 90},   {"gang", 1, 95},      {"conformance", 1, 80}, {"drf", 2, 60},
        {"predicates", 2, 90}, {"nodeorder", 2, 70}, {"binpack", 2, 20},     {"overcommit", 2, 50},
    };
    const bool usual = chance(s, 75);
    const uint32_t share_tier = chance(s, 30) ? 1 : 2;
    uint32_t tier[HK_LEN(plugins)];

    for (size_t k = 0; k < HK_LEN(plugins); k++) {
        tier[k] = !chance(s, plugins[k].percent) ? 0 : usual ? plugins[k].tier : between(s, 1, 2);
        s->gang |= tier[k] > 0 && strcmp(plugins[k].name, "gang") == 0;
    }
    hk_buf_adds(&s->text, "tiers:\n");
    for (uint32_t t = 1; t <= 2; t++) {
        hk_buf_adds(&s->text, "- plugins:\n");
        for (size_t k = 0; k < HK_LEN(plugins); k++) {
            if (tier[k] == t) {
                write_plugin(s, plugins[k].name);
            }
        }
        if (share && share_tier == t) {
            write_plugin(s, share);
        }
    }
}

/* ---- printing ---- */

static void print_limit(const struct settle *s, const char *what, bool has, const struct rvec *v)
{
    RVEC_EACH(d, has ? rvec_names(v) : 0)
    {
        printf(" %s.%.*s=%.0f", what, HK_FMT(s->w.m.dims.text[d]), v->v[d]);
    }
}

static void print_world(const struct settle *s)
{
    const struct model *m = &s->w.m;

    printf("# %s\n# owners replace a pod %s\n", s->text.data, s->prompt ? "at once" : "late");
    for (uint32_t i = 0; i < m->nodes.len; i++) {
        printf("# node n%u cpu=%lld memory=%lld gpu=%lld\n", i,
               (long long)m->nodes.alloc.col[DIM_CPU][i], (long long)m->nodes.alloc.col[DIM_MEM][i],
               (long long)m->nodes.alloc.col[s->w.gpu][i]);
    }
    for (uint32_t i = 0; i < m->queues.len; i++) {
        const struct queue *q = &m->queues.at[i];
        printf("# queue %.*s parent=%.*s weight=%d reclaimable=%d", HK_FMT(model_str(m, q->name)),
               HK_FMT(model_str(m, q->parent_name)), q->weight, q->reclaimable);
        print_limit(s, "capability", q->has_capability, &q->capability);
        print_limit(s, "deserved", q->has_deserved, &q->deserved);
        print_limit(s, "guarantee", q->has_guarantee, &q->guarantee);
        printf("\n");
    }
    for (uint32_t k = 0; k < s->njob; k++) {
        const struct settle_job *j = &s->jobs[k];
        printf("# job j%u queue=q%u priority=%d min=%d arrives=%u:", k, j->queue, j->priority,
               j->min, j->arrives);
        for (uint32_t i = 0; i < j->nseat; i++) {
            const struct size *z = &s->seats[j->first + i].size;
            printf(" %lld/%lld/%lld", (long long)z->cpu, (long long)(z->mem / MI),
                   (long long)z->gpu);
        }
        printf("\n");
    }
}

/* ---- life ---- */

int settle_init(struct settle *s, uint64_t seed, bool verbose, struct hk_err *err)
{
    int64_t cores;
    uint32_t first_leaf;

    *s = (struct settle){.verbose = verbose};
    hk_rand_seed(&s->rand, seed);
    world_init(&s->w);
    const uint32_t which = settle_below(s, 100);
    const char *share = which < 45 ? "proportion" : which < 90 ? "capacity" : NULL;
    s->limits = share != NULL;
    s->proportion = share && strcmp(share, "proportion") == 0;
    s->hierarchy = share && strcmp(share, "capacity") == 0 && chance(s, 40);
    make_nodes(s, &cores);
    make_queues(s, cores, &first_leaf);
    make_jobs(s, first_leaf);
    s->prompt = chance(s, 50);
    write_actions(s);
    write_tiers(s, share);
    s->opts = SESSION_OPTS_DEFAULT;
    s->opts.seed = seed;
    s->opts.all_jobs = chance(s, 40);
    s->sm = scheduler_mem_new(seed);
    if (verbose) {
        print_world(s);
    }
    return conf_parse(hk_buf_str(&s->text), &s->conf, err);
}

void settle_fini(struct settle *s)
{
    conf_free(s->conf);
    scheduler_mem_free(s->sm);
    world_fini(&s->w);
    hk_buf_fini(&s->text);
}

/* ---- what the world does between two cycles ---- */

static void begin_period(struct settle *s)
{
    s->period++;
    s->evicting_cycles = s->evicted = 0;
}

bool settle_lacks_pods(const struct settle *s)
{
    for (uint32_t k = 0; k < s->nseat; k++) {
        if (s->seats[k].state == SEAT_EMPTY && s->seats[k].wait != UINT32_MAX) {
            return true;
        }
    }
    return false;
}

static void pod_turn(struct settle *s, struct seat *t)
{
    struct model *m = &s->w.m;
    const task_id id = t->pod;
    const struct task *task = model_task(m, id);

    switch ((enum task_status)task->status) {
    case TASK_BINDING:
        model_task_move(m, id, chance(s, 80) ? TASK_RUNNING : TASK_BOUND, task->node);
        break;
    case TASK_BOUND:
        model_task_move(m, id, TASK_RUNNING, task->node);
        break;
    case TASK_RUNNING:
        if (t->wait != UINT32_MAX && t->wait-- == 0) {
            model_task_move(m, id, TASK_SUCCEEDED, task->node);
            t->state = SEAT_DONE;
            s->last_end = s->cycle;
            begin_period(s);
        }
        break;
    case TASK_RELEASING:
        if (t->wait-- == 0) {
            model_task_del(m, id);
            t->state = SEAT_EMPTY;
            t->wait = settle_below(s, MAX_ABSENCE + 1);
            if (s->prompt) {
                make_pod(s, t);
            }
        }
        break;
    default:
        break;
    }
}

void settle_turn(struct settle *s)
{
    for (uint32_t k = 0; k < s->nseat; k++) {
        struct seat *t = &s->seats[k];
        if (t->state == SEAT_POD) {
            pod_turn(s, t);
        } else if (t->state == SEAT_EMPTY && t->wait != UINT32_MAX && t->wait-- == 0) {
            make_pod(s, t);
        }
    }
    for (uint32_t k = 0; k < s->njob; k++) {
        if (s->jobs[k].arrives == s->cycle) {
            submit(s, k);
            begin_period(s);
        }
    }
    s->opts.now_ns = world_tick(&s->w);
}
