// SPDX-License-Identifier: Apache-2.0
// Decides when to run a session. Waits a moment for input to settle, then checks it: a session is
// due when a job changed, when an event could help a waiting job, or when a parked job's time has
// come. Events of our own writes change nothing and cause no session.
#include "api/names.h"
#include "api/queue.h"
#include "base/log.h"
#include "base/prom.h"
#include "scheduler/loop_priv.h"

#define QUIET_DEFAULT_NS ((int64_t)1000 * 1000)
#define PATIENCE_DEFAULT_NS ((int64_t)10 * 1000 * 1000)
#define QUEUE_RETRY_NS ((int64_t)1000 * 1000 * 1000)
#define BATCH 1024u

static int64_t mono(const struct loop *l)
{
    return l->o.clock->mono_ns(l->o.clock);
}

/* ---- input ---- */

/* Whether the event's phase is older than our latest write of it. */
static bool is_old_phase(const struct loop *l, const struct api_object *o, uint8_t *ret_phase)
{
    const struct model *m = &l->engine.m;
    const job_id j = model_job_find(m, o->ns, o->name);

    if (id_none(j) || !hk_str_eq(model_str(m, model_job(m, j)->uid), o->uid) ||
        !known_group_is_ahead(&l->known, j, o->rv)) {
        return false;
    }
    *ret_phase = model_job(m, j)->phase;
    return *ret_phase != PG_NONE;
}

/* Applies the rest of the event, with the phase of our pending write. */
static void put_with_phase(struct loop *l, const struct api_object *o, enum pg_phase phase)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct json *old = json_get(&o->root, "status");
    struct json doc = json_clone(&o->root, &a);
    struct json status = json_clone_as(old, JSON_OBJECT, &a);

    json_set_cstr(&status, &a, "phase", pg_phase_name(phase));
    json_set(&doc, &a, "status", status);
    engine_put(&l->engine, o->kind, &doc);
}

/* With label selectors configured, a node must match one of them. */
static bool scheduler_loop_node_is_selected(const struct loop *l, const struct api_object *node)
{
    const struct json *labels = json_at(&node->root, "metadata.labels");

    for (uint32_t k = 0; k < l->o.nnode_label; k++) {
        const struct loop_label *want = &l->o.node_labels[k];
        const struct json *has = json_get_str(labels, want->key);
        if (has && hk_str_eq(json_str(has, HK_STR("")), want->value)) {
            return true;
        }
    }
    return l->o.nnode_label == 0;
}

/* Drops a node that no longer matches; events of other nodes are ignored. */
static void drop_if_known(struct loop *l, const struct api_object *node)
{
    const struct model *m = &l->engine.m;
    const node_id n = model_node_find(m, node->name);

    if (!id_none(n) && (m->nodes.flags[n.i] & NODE_KNOWN)) {
        loop_drop(l, node->kind, node->ns, node->name);
    }
}

static uint32_t live_tasks(const struct loop *l)
{
    return l->engine.m.tasks.len - l->engine.m.tasks.free.len;
}

/* Pods from before our start say nothing about the watch latency. */
static void meter_watched(struct loop *l, const struct api_object *o, uint32_t before)
{
    const struct model *m = &l->engine.m;

    if (o->kind->id != API_POD || !l->stats.synced || live_tasks(l) <= before) {
        return;
    }
    const task_id t = model_task_find(m, o->ns, o->name);
    if (!id_none(t) && (model_task(m, t)->flags & TASK_OURS) &&
        model_task(m, t)->status == TASK_PENDING) {
        meter_task(l->meter, METER_WATCHED, model_task(m, t));
    }
}

void loop_accept(struct loop *l, const struct api_object *o)
{
    const uint32_t before = live_tasks(l);
    uint8_t phase;

    if (o->kind->id == API_NODE && !scheduler_loop_node_is_selected(l, o)) {
        drop_if_known(l, o);
        return;
    }
    l->inputs++;
    if (o->kind->id == API_PODGROUP && is_old_phase(l, o, &phase)) {
        put_with_phase(l, o, phase);
    } else {
        engine_put(&l->engine, o->kind, &o->root);
    }
    meter_watched(l, o, before);
}

void loop_drop(struct loop *l, const struct api_kind *kind, struct hk_str ns, struct hk_str name)
{
    l->inputs++;
    engine_del(&l->engine, kind, ns, name);
}

/* ---- the two queues that must exist ---- */

static struct hk_str builtin_queue_name(const struct loop *l, unsigned which)
{
    return which == API_QUEUE_DEFAULT ? l->default_queue : hk_str(api_builtin_queues[which].name);
}

static void on_queue(void *ctx, const struct port_msg *m, unsigned which)
{
    struct loop *l = ctx;

    l->queues[which].call = 0;
    if (m->rc < 0 && m->rc != -HK_EEXIST) {
        hk_log(HK_LOG_WARN, "queue not created", "queue=%.*s err=\"%s\"",
               HK_FMT(builtin_queue_name(l, which)), m->err->text);
        l->queues[which].due_ns = mono(l) + QUEUE_RETRY_NS;
    }
}

static void on_root(void *ctx, const struct port_msg *m)
{
    on_queue(ctx, m, API_QUEUE_ROOT);
}

static void on_default(void *ctx, const struct port_msg *m)
{
    on_queue(ctx, m, API_QUEUE_DEFAULT);
}

static void make_queue(struct loop *l, unsigned which)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct hk_str name = builtin_queue_name(l, which);

    l->queues[which].due_ns = INT64_MAX;
    if (l->queues[which].call || !id_none(model_queue_find(&l->engine.m, name))) {
        return;
    }
    const struct json body = api_builtin_queue_manifest(&api_builtin_queues[which], name, &a);
    l->queues[which].call =
        port_create(l->o.port, api_kind(API_QUEUE), HK_STR(""), &body,
                    (struct port_sink){which == API_QUEUE_ROOT ? on_root : on_default, l});
}

/* ---- feeds ---- */

static void scheduler_loop_on_put(void *ctx, struct api_object *o)
{
    const struct loop_feed *f = ctx;

    loop_accept(f->l, o);
}

static void scheduler_loop_on_del(void *ctx, struct hk_str ns, struct hk_str name,
                                  const struct api_object *last)
{
    const struct loop_feed *f = ctx;

    loop_drop(f->l, f->kind, ns, name);
}

static void scheduler_loop_on_listed(void *ctx)
{
    const struct loop_feed *f = ctx;

    if (f->kind->id == API_QUEUE) {
        make_queue(f->l, API_QUEUE_ROOT);
        make_queue(f->l, API_QUEUE_DEFAULT);
    }
}

static const struct feed_ops fed = {scheduler_loop_on_put, scheduler_loop_on_del,
                                    scheduler_loop_on_listed};

static void start_feed(struct loop *l, unsigned k)
{
    l->fed[k] = (struct loop_feed){l, api_kind(ingest_kinds[k].id)};
    feed_init(&l->feeds[k], &(struct feed_opts){.port = l->o.port,
                                                .clock = l->o.clock,
                                                .str = &l->engine.m.str,
                                                .kind = l->fed[k].kind,
                                                .required = ingest_kinds[k].required,
                                                .page = l->o.page,
                                                .ops = &fed,
                                                .ctx = &l->fed[k]});
}

static int64_t queues_tick(struct loop *l, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    for (unsigned k = 0; k < HK_LEN(l->queues); k++) {
        if (l->queues[k].due_ns <= now_ns) {
            make_queue(l, k);
        }
        next_ns = HK_MIN(next_ns, l->queues[k].due_ns);
    }
    return next_ns;
}

/* ---- sessions ---- */

static bool someone_is_awake(const struct model *m)
{
    for (uint32_t k = 0; k < m->active.len; k++) {
        if (model_job_awake(m, m->active.at[k])) {
            return true;
        }
    }
    return false;
}

/* Whether input since the last session could lead to a decision or a status. */
static bool matters(struct loop *l)
{
    struct engine *g = &l->engine;
    const uint64_t wake = model_wake(&g->m);

    if (g->m.dirty_jobs.len > 0) {
        return true;
    }
    if (wake <= g->seen) {
        return false;
    }
    if (someone_is_awake(&g->m)) {
        return true;
    }
    g->seen = wake;
    return false;
}

/* Finds the next due time. The last session has handled those up to its own time. */
static void look_for_time(struct loop *l)
{
    const struct model *m = &l->engine.m;

    l->due_ns = INT64_MAX;
    for (uint32_t k = 0; k < m->active.len; k++) {
        const struct park *p = &model_job(m, m->active.at[k])->park;
        if (p->at > 0 && p->due_ns > l->engine.ssn.now_ns) {
            l->due_ns = HK_MIN(l->due_ns, p->due_ns);
        }
    }
}

static void scheduler_loop_count_decisions(struct loop *l, const struct session *ssn)
{
    l->stats.sessions++;
    l->stats.over_budget += ssn->over_budget;
    for (uint32_t k = 0; k < ssn->decisions.len; k++) {
        const bool evict = ssn->decisions.at[k].kind == OP_EVICT;
        l->stats.evictions += evict;
        l->stats.binds += !evict;
    }
    meter_attempts(l->meter, METER_UNSCHEDULABLE, ssn->pod_notes.n);
}

static void cycle(struct loop *l)
{
    struct engine *g = &l->engine;

    engine_cycle(g, l->o.clock->wall_ns(l->o.clock), l->all_jobs, 0);
    l->news_ns = 0;
    l->all_jobs = false;
    l->again = g->ssn.again || g->ssn.over_budget;
    scheduler_loop_count_decisions(l, &g->ssn);
    look_for_time(l);
    emit_session(l->emit, &g->ssn);
    l->again = l->again || matters(l); /* the binds may help other jobs */
}

static bool is_synced(struct loop *l)
{
    for (unsigned k = 0; k < INGEST_NKINDS && !l->stats.synced; k++) {
        if (!l->feeds[k].synced) {
            return false;
        }
    }
    l->stats.synced = true;
    return true;
}

/* Records when input arrived. Returns when to check it, INT64_MAX when there is none. */
static int64_t settled_ns(struct loop *l, int64_t now_ns)
{
    if (l->inputs != l->inputs_seen) {
        l->inputs_seen = l->inputs;
        l->last_ns = now_ns;
        l->news_ns = l->news_ns ? l->news_ns : now_ns;
    }
    if (!l->news_ns) {
        return INT64_MAX;
    }
    return HK_MIN(l->last_ns + l->o.quiet_ns, l->news_ns + l->o.patience_ns);
}

static void report_shard(struct loop *l)
{
    struct ingest_shard s;

    if (l->o.session.shard_mode != SHARD_NONE && ingest_shard(l->engine.in, &s) &&
        s.version != l->shard_seen) {
        l->shard_seen = s.version;
        emit_shard(l->emit, s.in_use, s.nin_use, s.to_add, s.nto_add);
    }
}

/* The estimated monotonic time of l->due_ns. */
static int64_t due_mono_ns(const struct loop *l, int64_t now_ns)
{
    return l->due_ns == INT64_MAX ? INT64_MAX
                                  : now_ns + HK_MAX(l->due_ns - l->o.clock->wall_ns(l->o.clock), 0);
}

/* Runs a session if one is due. Returns when the next may be. */
static int64_t session_tick(struct loop *l, int64_t now_ns)
{
    const int64_t look_ns = settled_ns(l, now_ns);
    bool due = l->again || due_mono_ns(l, now_ns) <= now_ns;

    if (!is_synced(l) || l->draining) {
        return INT64_MAX;
    }
    if (!due && now_ns >= look_ns) {
        l->news_ns = 0;
        engine_settle(&l->engine);
        due = matters(l);
    }
    if (due) {
        cycle(l);
    }
    report_shard(l);
    if (l->again) {
        return now_ns;
    }
    return HK_MIN(due_mono_ns(l, now_ns), l->news_ns ? look_ns : INT64_MAX);
}

static void sooner(int64_t *next_ns, int64_t at_ns)
{
    *next_ns = HK_MIN(*next_ns, at_ns);
}

void loop_step(struct loop *l, int64_t *ret_wait_ns)
{
    const uint32_t n = port_poll(l->o.port, BATCH);
    const int64_t now_ns = mono(l);
    int64_t next_ns = n == BATCH ? now_ns : INT64_MAX;

    retry_read_results(l);
    sooner(&next_ns, retry_tick(l, now_ns));
    for (unsigned k = 0; k < INGEST_NKINDS; k++) {
        sooner(&next_ns, feed_tick(&l->feeds[k], now_ns));
    }
    sooner(&next_ns, queues_tick(l, now_ns));
    sooner(&next_ns, session_tick(l, now_ns));
    sooner(&next_ns, emit_pump(l->emit));
    sooner(&next_ns, emit_has_result(l->emit) ? now_ns : INT64_MAX);
    *ret_wait_ns = next_ns == INT64_MAX ? INT64_MAX : HK_MAX(next_ns - now_ns, 0);
}

/* ---- configuration ---- */

static void tell_warnings(const struct conf *c)
{
    for (uint32_t k = 0; k < c->warnings.len; k++) {
        hk_log(HK_LOG_WARN, "scheduler configuration", "line=%u warning=\"%s\"",
               c->warnings.at[k].line, c->warnings.at[k].text);
    }
}

void loop_drain(struct loop *l)
{
    l->draining = true;
    emit_hurry(l->emit);
}

void loop_reload_conf(struct loop *l)
{
    struct hk_err err = {0};
    const int rc = engine_reload(&l->engine, &err);

    if (rc < 0) {
        hk_log(HK_LOG_ERROR, "configuration not changed", "err=\"%s\"", err.text);
    } else if (rc > 0) {
        hk_log(HK_LOG_INFO, "configuration changed", "path=%s", l->engine.conf.path);
        tell_warnings(l->engine.conf.now);
        l->again = true;
        l->all_jobs = true;
    }
}

struct hk_str loop_conf_text(const struct loop *l)
{
    const struct hk_str text = l->engine.conf.now->text;

    return hk_str_is(text, conf_default_text) ? HK_STR("") : text;
}

/* ---- life cycle ---- */

struct loop_stats loop_stats(const struct loop *l)
{
    struct loop_stats s = l->stats;

    s.backlog = emit_backlog(l->emit);
    return s;
}

void loop_write_metrics(struct loop *l, struct hk_buf *out)
{
    const struct loop_stats s = loop_stats(l);

    meter_write(l->meter, &l->engine.m, &l->engine.ssn, out);
    hk_prom_single(out, "hekla_scheduler_sessions_total", "counter", "Scheduling sessions.",
                   (double)s.sessions);
    hk_prom_single(out, "hekla_scheduler_sessions_cut_total", "counter",
                   "Sessions that ended at their time limit before all jobs were tried.",
                   (double)s.over_budget);
    hk_prom_single(out, "hekla_scheduler_binds_total", "counter", "Binds decided.",
                   (double)s.binds);
    hk_prom_single(out, "hekla_scheduler_evictions_total", "counter", "Evictions decided.",
                   (double)s.evictions);
    hk_prom_single(out, "hekla_scheduler_backlog", "gauge", "Requests waiting or in flight.",
                   (double)s.backlog);
}

const struct model *loop_model(const struct loop *l)
{
    return &l->engine.m;
}

static void loop_set_opts(struct loop *l, const struct loop_opts *o)
{
    l->o = *o;
    l->default_queue = hk_arena_str(
        &l->mem, o->default_queue.n > 0 ? o->default_queue : HK_STR(API_QUEUE_NAME_DEFAULT));
    l->o.quiet_ns = o->quiet_ns > 0 ? o->quiet_ns : QUIET_DEFAULT_NS;
    l->o.patience_ns = o->patience_ns > 0 ? o->patience_ns : PATIENCE_DEFAULT_NS;
    l->o.session.clock = o->clock;
    l->o.session.meter = l->meter = meter_new(o->clock);
    l->o.shard_name = hk_arena_str(&l->mem, o->shard_name);
    l->due_ns = INT64_MAX;
}

/* A single scheduler name is the events' component; several share the default name. */
static struct hk_str component(const struct loop_opts *o)
{
    return o->nscheduler_name == 1 ? o->scheduler_names[0] : HK_STR(API_SCHEDULER_NAME);
}

int loop_new(const struct loop_opts *o, struct loop **ret, struct hk_err *err)
{
    struct loop *l = hk_zalloc(sizeof(*l));
    int rc = 0;

    loop_set_opts(l, o);
    known_init(&l->known, &l->engine.m);
    const struct engine_opts eo = {.scheduler_names = o->scheduler_names,
                                   .nscheduler_name = o->nscheduler_name,
                                   .default_queue = l->default_queue,
                                   .shard_name = l->o.shard_name,
                                   .known = &l->known,
                                   .session = l->o.session,
                                   .conf_path = o->conf_path};
    engine_init(&l->engine, &eo);
    tell_warnings(l->engine.conf.now);
    if (o->record_path) {
        rc = engine_record(&l->engine, &eo, o->record_path, err);
    }
    l->emit = emit_new(&(struct emit_opts){.port = o->port,
                                           .m = &l->engine.m,
                                           .known = &l->known,
                                           .clock = o->clock,
                                           .meter = l->meter,
                                           .component = component(o),
                                           .shard = l->o.shard_name,
                                           .in_flight = o->in_flight,
                                           .reason_wait_ns = o->reason_wait_ns,
                                           .run = (uint64_t)o->clock->wall_ns(o->clock)});
    l->queues[API_QUEUE_ROOT].due_ns = l->queues[API_QUEUE_DEFAULT].due_ns = INT64_MAX;
    if (rc < 0) {
        loop_free(l);
        return rc;
    }
    for (unsigned k = 0; k < INGEST_NKINDS; k++) {
        start_feed(l, k);
    }
    *ret = l;
    return 0;
}

void loop_free(struct loop *l)
{
    if (!l) {
        return;
    }
    for (unsigned k = 0; k < INGEST_NKINDS; k++) {
        feed_fini(&l->feeds[k]);
    }
    for (unsigned k = 0; k < HK_LEN(l->queues); k++) {
        if (l->queues[k].call) {
            port_cancel(l->o.port, l->queues[k].call);
        }
    }
    retry_fini(l);
    emit_free(l->emit);
    known_fini(&l->known);
    engine_fini(&l->engine);
    meter_free(l->meter);
    hk_arena_fini(&l->mem);
    hk_free(l);
}
