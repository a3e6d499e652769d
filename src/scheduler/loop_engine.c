// SPDX-License-Identifier: Apache-2.0
// The engine turns input into decisions, without a port and without a clock. It can record each
// input as one JSON line; replaying the lines in order gives the same decisions byte for byte,
// since nothing else reaches the model. The line of a session holds what depends on the machine:
// its time, and where it ran out of time.
#include "base/crumb.h"
#include "base/file.h"
#include "base/log.h"
#include "scheduler/close.h"
#include "scheduler/loop_priv.h"

#include <errno.h>

/* ---- writing the record ---- */

static void engine_begin_record(struct engine *g, const char *what)
{
    hk_buf_clear(&g->text);
    hk_buf_addf(&g->text, "{\"%s\":", what);
}

static void add_key(struct engine *g, const char *key)
{
    hk_buf_addf(&g->text, ",\"%s\":", key);
}

static void add_pair(struct engine *g, uint32_t ns, uint32_t name)
{
    const struct model *m = &g->m;

    json_write_str(model_str(m, ns), &g->text);
    add_key(g, "name");
    json_write_str(model_str(m, name), &g->text);
}

/* Stops recording after a write error. */
static void engine_end_record(struct engine *g)
{
    hk_buf_adds(&g->text, "}\n");
    if (fwrite(g->text.data, 1, g->text.len, g->record) != g->text.len) {
        hk_log(HK_LOG_ERROR, "record ends here", "err=\"%s\"", strerror(errno));
        fclose(g->record);
        g->record = NULL;
    }
}

static void record_task(struct engine *g, const char *what, task_id t)
{
    const struct task *task = model_task(&g->m, t);

    if (g->record) {
        engine_begin_record(g, what);
        add_pair(g, task->ns, task->name);
        engine_end_record(g);
    }
}

static void record_conf(struct engine *g)
{
    if (g->record) {
        engine_begin_record(g, "conf");
        json_write_str(g->conf.now->text, &g->text);
        engine_end_record(g);
    }
}

int engine_record(struct engine *g, const struct engine_opts *o, const char *path,
                  struct hk_err *err)
{
    g->record = fopen(path, "ae");
    if (!g->record) {
        return hk_fail(err, HK_EIO, "%s: %s", path, strerror(errno));
    }
    engine_begin_record(g, "hekla");
    hk_buf_addf(&g->text,
                "1,\"seed\":%lld,\"min_feasible\":%u,\"min_percentage\":%u,\"percentage\":%u",
                (long long)o->session.seed, o->session.min_feasible, o->session.min_percentage,
                o->session.percentage);
    add_key(g, "default_queue");
    json_write_str(o->default_queue, &g->text);
    add_key(g, "shard");
    json_write_str(o->shard_name, &g->text);
    hk_buf_addf(&g->text, ",\"shard_mode\":%d,\"open_gates\":%s", (int)o->session.shard_mode,
                o->session.open_gates ? "true" : "false");
    add_key(g, "schedulers");
    hk_buf_addc(&g->text, '[');
    for (uint32_t k = 0; k < o->nscheduler_name; k++) {
        hk_buf_adds(&g->text, k ? "," : "");
        json_write_str(o->scheduler_names[k], &g->text);
    }
    hk_buf_addc(&g->text, ']');
    engine_end_record(g);
    record_conf(g);
    return 0;
}

/* ---- inputs ---- */

/* Whether the process crashed on this object before. Such an object is left out until it
 * changes. */
static bool engine_has_crashed_before(const struct api_kind *kind, const struct json *doc)
{
    const struct json *meta = json_get(doc, "metadata");
    const struct hk_str ns = json_str_field(meta, "namespace");
    const struct hk_str name = json_str_field(meta, "name");
    int64_t rv = 0;
    bool news;

    if (!hk_crumb_any()) {
        return false;
    }
    (void)hk_str_int(json_str_field(meta, "resourceVersion"), &rv);
    if (!hk_crumb_skips(kind->plural, ns, name, (uint64_t)rv, &news)) {
        return false;
    }
    if (news) {
        hk_log(
            HK_LOG_ERROR, "skipping an object",
            "controller=scheduler kind=%s object=%.*s%s%.*s why=\"not scheduled: the server died "
            "of it twice. Change or delete it, and report the backtrace in the log\"",
            kind->singular, HK_FMT(ns), ns.n > 0 ? "/" : "", HK_FMT(name));
    }
    return true;
}

/* The crash record names the scheduler's objects by kind. */
static int engine_ingest(struct engine *g, const struct api_kind *kind, const struct json *doc,
                         struct hk_err *err)
{
    const struct json *meta = json_get(doc, "metadata");
    int rc;

    hk_crumb_enter(kind->plural, json_str_field(meta, "namespace"), json_str_field(meta, "name"));
    rc = ingest_put(g->in, kind, doc, NULL, err);
    hk_crumb_leave();
    return rc;
}

void engine_put(struct engine *g, const struct api_kind *kind, const struct json *doc)
{
    struct hk_err err = {0};

    if (engine_has_crashed_before(kind, doc)) {
        return;
    }

    if (g->record) {
        engine_begin_record(g, "put");
        json_write_str(hk_str(kind->plural), &g->text);
        add_key(g, "group");
        json_write_str(hk_str(kind->group), &g->text);
        add_key(g, "obj");
        json_write(doc, &g->text);
        engine_end_record(g);
    }
    if (engine_ingest(g, kind, doc, &err) < 0) {
        hk_log(HK_LOG_WARN, "object not taken", "kind=%s name=%.*s err=\"%s\"", kind->singular,
               HK_FMT(json_str_at(doc, "metadata.name")), err.text);
    }
}

void engine_del(struct engine *g, const struct api_kind *kind, struct hk_str ns, struct hk_str name)
{
    if (g->record) {
        engine_begin_record(g, "del");
        json_write_str(hk_str(kind->plural), &g->text);
        add_key(g, "group");
        json_write_str(hk_str(kind->group), &g->text);
        add_key(g, "ns");
        json_write_str(ns, &g->text);
        add_key(g, "name");
        json_write_str(name, &g->text);
        engine_end_record(g);
    }
    ingest_del(g->in, kind, ns, name);
}

void engine_unbind(struct engine *g, task_id t)
{
    record_task(g, "unbind", t);
    model_task_unbind(&g->m, t);
}

void engine_hold(struct engine *g, task_id t, bool held)
{
    record_task(g, held ? "hold" : "free", t);
    model_task_hold(&g->m, t, held);
}

void engine_stay(struct engine *g, task_id t)
{
    record_task(g, "stay", t);
    model_task_stay(&g->m, t);
}

void engine_settle(struct engine *g)
{
    if (g->record) {
        engine_begin_record(g, "settle");
        hk_buf_adds(&g->text, "true");
        engine_end_record(g);
    }
    ingest_settle(g->in);
}

int engine_reload(struct engine *g, struct hk_err *err)
{
    const int rc = conf_file_reload(&g->conf, err);

    if (rc > 0) {
        record_conf(g);
    }
    return rc;
}

/* ---- sessions ---- */

static void list_decisions(struct engine *g, enum op_kind kind, struct hk_buf *out)
{
    const struct model *m = &g->m;
    bool any = false;

    hk_buf_addf(out, ",\"%s\":[", kind == OP_EVICT ? "evict" : "bind");
    for (uint32_t k = 0; k < g->ssn.decisions.len; k++) {
        const struct decision *d = &g->ssn.decisions.at[k];
        const struct task *t = model_task(m, d->task);
        if (d->kind != kind) {
            continue;
        }
        hk_buf_addf(out, "%s\"%.*s/%.*s ", any ? "," : "", HK_FMT(model_str(m, t->ns)),
                    HK_FMT(model_str(m, t->name)));
        if (kind == OP_EVICT) {
            hk_buf_addf(out, "%s\"", d->reason);
        } else {
            hk_buf_addf(out, "%.*s\"", HK_FMT(model_str(m, m->nodes.name[d->node.i])));
        }
        any = true;
    }
    hk_buf_addc(out, ']');
}

static void list_gates(struct engine *g, struct hk_buf *out)
{
    const struct model *m = &g->m;

    if (g->ssn.gates.len == 0) {
        return;
    }
    for (uint32_t k = 0; k < g->ssn.gates.len; k++) {
        const struct task *t = model_task(m, g->ssn.gates.at[k]);
        hk_buf_addf(out, "%s\"%.*s/%.*s\"", k ? "," : ",\"gate\":[", HK_FMT(model_str(m, t->ns)),
                    HK_FMT(model_str(m, t->name)));
    }
    hk_buf_addc(out, ']');
}

static uint64_t hash_text(uint64_t h, const char *s)
{
    return s ? hk_hash(s, strlen(s), h) : hk_mix(h);
}

/* Statuses and messages are decisions, too; a hash is enough to compare them. */
static uint64_t hash_notes(const struct engine *g)
{
    const struct session *ssn = &g->ssn;
    uint64_t h = 1;

    for (uint32_t k = 0; k < ssn->notes.n; k++) {
        const struct job_note *n = &ssn->notes.at[k];
        h = hk_mix(h + ((uint64_t)n->job.i << 16 | (uint64_t)n->phase << 8 | n->condition));
        h = hk_mix(h + ((uint64_t)n->running << 32 | n->failed) + n->succeeded);
        h = hash_text(hash_text(h, n->message), n->event);
    }
    for (uint32_t k = 0; k < ssn->pod_notes.n; k++) {
        const struct pod_note *n = &ssn->pod_notes.at[k];
        h = hk_mix(h + ((uint64_t)n->task.i << 32 | n->nominated.i));
        h = hash_text(hash_text(h, n->reason), n->message);
    }
    return h;
}

static void engine_write_line(struct engine *g, bool all_jobs)
{
    const uint64_t stop = g->ssn.over_budget ? g->ssn.budget.read_call : 0;
    struct hk_buf *out = &g->line;

    hk_buf_clear(out);
    hk_buf_addf(out, "{\"cycle\":%llu,\"now\":%lld,\"all\":%s,\"stop\":%llu",
                (unsigned long long)g->cycles, (long long)g->ssn.now_ns,
                all_jobs ? "true" : "false", (unsigned long long)stop);
    list_decisions(g, OP_ALLOCATE, out);
    list_decisions(g, OP_EVICT, out);
    list_gates(g, out);
    hk_buf_addf(out, ",\"notes\":\"%016llx\"}\n", (unsigned long long)hash_notes(g));
}

/* A session that crashes while it works on a job is charged to that job's PodGroup, which is then
 * left out like an object that crashed ingest. */
static bool engine_name_job(void *ctx, struct hk_str *ret_ns, struct hk_str *ret_name)
{
    const struct session *ssn = ctx;
    const struct job *j;

    if (ssn->at_job.i >= ssn->m->jobs.len) {
        return false; /* NO_JOB, or a broken session */
    }
    j = model_job(ssn->m, ssn->at_job);
    *ret_ns = hk_intern_str(&ssn->m->str, j->ns);
    *ret_name = hk_intern_str(&ssn->m->str, j->name);
    return j->has_pg;
}

void engine_cycle(struct engine *g, int64_t now_ns, bool all_jobs, uint64_t stop_after)
{
    struct session_opts o = g->opts;

    o.now_ns = now_ns;
    o.all_jobs = all_jobs;
    o.stop_after = stop_after;
    o.texts = true;
    g->cycles++;
    ingest_settle(g->in);
    const int64_t since_ns = meter_start(o.meter);
    session_open(&g->ssn, &g->m, g->conf.now, &o, g->sm);
    meter_open(o.meter, since_ns);
    hk_crumb_watch(api_kind(API_PODGROUP)->plural, engine_name_job, &g->ssn);
    session_run(&g->ssn);
    hk_crumb_watch(NULL, NULL, NULL);
    g->seen = model_wake(&g->m);
    session_close(&g->ssn);
    meter_session(o.meter, since_ns);
    model_settle(&g->m);
    engine_write_line(g, all_jobs);
    if (g->record) {
        hk_buf_clear(&g->text);
        hk_buf_add(&g->text, g->line.data, g->line.len - 2); /* engine_end_record() closes it */
        engine_end_record(g);
        if (g->record) {
            fflush(g->record);
        }
    }
}

/* ---- life cycle ---- */

void engine_init(struct engine *g, const struct engine_opts *o)
{
    const struct ingest_opts in = {.scheduler_names = o->scheduler_names,
                                   .nscheduler_name = o->nscheduler_name,
                                   .default_queue = o->default_queue,
                                   .known = o->known};
    struct hk_err err = {0};

    *g = (struct engine){.opts = o->session};
    model_init(&g->m);
    g->in = ingest_new(&g->m, &in);
    ingest_own_shard(g->in, o->shard_name);
    g->sm = scheduler_mem_new(o->session.seed);
    if (conf_file_open(&g->conf, o->conf_path, &err) < 0) {
        hk_log(HK_LOG_ERROR, "built-in configuration in force", "err=\"%s\"", err.text);
    }
}

void engine_fini(struct engine *g)
{
    if (g->record) {
        fclose(g->record);
    }
    scheduler_mem_free(g->sm);
    conf_file_fini(&g->conf);
    ingest_free(g->in);
    model_fini(&g->m);
    hk_buf_fini(&g->line);
    hk_buf_fini(&g->text);
}
