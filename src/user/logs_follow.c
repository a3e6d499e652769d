// SPDX-License-Identifier: Apache-2.0
// Follows logs. Every started container has a stream; lines wait a moment for older ones of other
// containers and are then printed in order of time. A broken stream is reopened after the last
// printed line. Following ends when the job has ended, the pods have been listed once more, and the
// last stream has ended.
#include "cli/progress.h"
#include "client/get_stream.h"
#include "user/logs.h"

#include <unistd.h>

#define MS_NS ((int64_t)1000 * 1000)

enum {
    SETTLE_MS = 50,    /* how long lines wait for older ones */
    AGAIN_MS = 500,    /* before a broken stream is reopened */
    AT_MOST = 1 << 20, /* limit of waiting bytes */
    MAX_LINE = 1 << 20,
};

struct source {
    struct follow *f;
    char *ns, *pod, *uid, *container;
    uint32_t rank;
    int64_t starts;   /* restart number of the container */
    uint64_t call;    /* 0: no stream */
    int64_t last_ns;  /* of its last line */
    uint32_t same;    /* lines with exactly that time */
    int64_t known_ns; /* a reopened stream repeats lines older than this, */
    uint32_t known;   /* and this many lines of exactly that time */
    int64_t again_ns; /* when to reopen it; 0: never */
    struct hk_buf carry;
};

struct line {
    int64_t ns;
    uint64_t seq;
    const struct source *from;
    char *text; /* including the time */
};

struct follow {
    struct user *u;
    const struct logs_opts *o;
    const struct logs_target *t;
    struct live pods, jobs;
    HK_VEC(struct source *) sources;
    uint32_t nranks, open; /* open: sources that may send more */
    HK_VEC(struct line) waiting;
    size_t waiting_bytes;
    uint64_t seq;
    int64_t flush_ns;
    bool looked; /* listed again after the job ended */
    struct term err_term;
    uint32_t shown; /* lines of progress on the terminal */
    struct api_object *job;
};

static int64_t logs_follow_now(const struct follow *f)
{
    return net_loop_now_ns(f->u->ask.loop);
}

/* ---- streams ---- */

static bool logs_follow_is_repeated(struct source *s, const struct logline *l)
{
    if (l->ns == s->known_ns && s->known > 0) {
        s->known--;
        return true;
    }
    return l->ns < s->known_ns;
}

static void keep_line(struct source *s, struct hk_str text)
{
    struct follow *f = s->f;
    struct logline l;

    logline_parse(text, s->last_ns, &l);
    if (logs_follow_is_repeated(s, &l)) {
        return;
    }
    s->same = l.ns == s->last_ns ? s->same + 1 : 1;
    s->last_ns = l.ns;
    if (logs_tell_loss(hk_str(s->pod), l.text)) {
        return;
    }
    if (f->waiting.len == 0) {
        f->flush_ns = logs_follow_now(f) + SETTLE_MS * MS_NS;
    }
    hk_vec_push(&f->waiting, (struct line){l.ns, f->seq++, s, hk_strndup(text.s, text.n)});
    f->waiting_bytes += text.n;
}

static void logs_follow_on_bytes(void *ctx, struct hk_str bytes)
{
    struct source *s = ctx;
    struct hk_str rest, part;

    hk_buf_addstr(&s->carry, bytes);
    rest = hk_buf_str(&s->carry);
    while (rest.n > 0 && memchr(rest.s, '\n', rest.n)) {
        hk_str_cut(&rest, '\n', &part);
        keep_line(s, part);
    }
    if (rest.n > MAX_LINE) {
        keep_line(s, rest);
        rest.n = 0;
    }
    memmove(s->carry.data, rest.s, rest.n);
    s->carry.len = rest.n;
}

/* The end of a container ends its stream; after a broken connection there may be more. */
static void logs_follow_on_done(void *ctx, const struct port_msg *m)
{
    struct source *s = ctx;

    s->call = 0;
    if (m->rc == -HK_EIO || m->rc == -HK_ETIMEOUT) {
        s->again_ns = logs_follow_now(s->f) + AGAIN_MS * MS_NS;
        hk_buf_clear(&s->carry);
        return;
    }
    s->f->open--;
    if (s->carry.len > 0) {
        keep_line(s, hk_buf_str(&s->carry));
        hk_buf_clear(&s->carry);
    }
}

static void logs_follow_open_source(struct source *s)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct follow *f = s->f;

    logs_path(f->o, hk_str(s->ns), hk_str(s->pod), hk_str(s->container), true, s->last_ns, &path);
    s->again_ns = 0;
    s->known_ns = s->last_ns;
    s->known = s->same;
    s->call =
        get_stream_open(f->u->ask.client, &(struct get_stream){.kind = api_kind(API_POD),
                                                               .path = path.data,
                                                               .on_bytes = logs_follow_on_bytes,
                                                               .done = {logs_follow_on_done, s}});
}

static uint32_t logs_follow_rank_of(const struct follow *f, struct hk_str pod)
{
    for (uint32_t i = 0; i < f->sources.len; i++) {
        if (hk_str_is(pod, f->sources.at[i]->pod)) {
            return f->sources.at[i]->rank;
        }
    }
    return f->nranks;
}

static bool logs_follow_is_known(const struct follow *f, struct hk_str uid, int64_t starts)
{
    for (uint32_t i = 0; i < f->sources.len; i++) {
        if (hk_str_is(uid, f->sources.at[i]->uid) && f->sources.at[i]->starts >= starts) {
            return true;
        }
    }
    return false;
}

static void see_pod(struct follow *f, struct api_object *pod)
{
    const struct hk_str container = logs_container(f->o, pod);
    const int64_t starts = logs_starts(pod, container);

    if (!logs_wants(f->o, pod) || starts < 0 || logs_follow_is_known(f, pod->uid, starts)) {
        return;
    }
    struct source *s = hk_zalloc(sizeof(*s));
    *s = (struct source){.f = f,
                         .ns = hk_strndup(pod->ns.s, pod->ns.n),
                         .pod = hk_strndup(pod->name.s, pod->name.n),
                         .uid = hk_strndup(pod->uid.s, pod->uid.n),
                         .container = hk_strndup(container.s, container.n),
                         .rank = logs_follow_rank_of(f, pod->name),
                         .starts = starts};
    f->nranks += s->rank == f->nranks;
    hk_vec_push(&f->sources, s);
    f->open++;
    logs_follow_open_source(s);
}

static void logs_follow_on_pod(void *ctx, struct hk_str ns, struct hk_str name,
                               struct api_object *pod)
{
    if (pod) {
        see_pod(ctx, pod);
    }
}

static void logs_follow_source_free(struct source *s)
{
    if (s->call) {
        port_cancel(s->f->u->ask.port, s->call);
    }
    hk_buf_fini(&s->carry);
    hk_free(s->ns);
    hk_free(s->pod);
    hk_free(s->uid);
    hk_free(s->container);
    hk_free(s);
}

/* ---- printing ---- */

static void logs_follow_draw(struct follow *f, struct hk_buf *out)
{
    if (f->err_term.is && f->job && !f->looked) {
        progress_write(&f->err_term, f->job, out);
        f->shown = 1;
    }
}

/* Erases the progress below the output; it is drawn again below new output. */
static void logs_follow_erase(struct follow *f, struct hk_buf *out)
{
    term_rewind(&f->err_term, f->shown, out);
    f->shown = 0;
}

static void logs_follow_report(const struct hk_buf *out)
{
    fwrite(hk_buf_str(out).s, 1, out->len, stderr);
    fflush(stderr);
}

static int logs_follow_by_time(const void *a, const void *b)
{
    const struct line *x = a, *y = b;

    if (x->ns != y->ns) {
        return x->ns < y->ns ? -1 : 1;
    }
    return x->seq < y->seq ? -1 : 1;
}

static void logs_follow_print_line(const struct follow *f, const struct line *w, struct hk_buf *out)
{
    struct logline l;

    logline_parse(hk_str(w->text), w->ns, &l);
    logline_write(&l, logline_prefix(f->t->job, hk_str(w->from->pod)), w->from->rank, &f->o->how,
                  out);
}

static int logs_follow_flush(struct follow *f, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf around = {0};

    logs_follow_erase(f, &around);
    logs_follow_report(&around);
    if (f->waiting.len > 0) {
        qsort(f->waiting.at, f->waiting.len, sizeof(f->waiting.at[0]), logs_follow_by_time);
    }
    for (uint32_t i = 0; i < f->waiting.len; i++) {
        logs_follow_print_line(f, &f->waiting.at[i], &out);
        hk_free(f->waiting.at[i].text);
    }
    f->waiting.len = 0;
    f->waiting_bytes = 0;
    if (verb_print(&out) != EXIT_OK) {
        return hk_fail(err, HK_EIO, "cannot write the output");
    }
    hk_buf_clear(&around);
    logs_follow_draw(f, &around);
    logs_follow_report(&around);
    return 0;
}

/* ---- the end ---- */

static bool pod_over(const struct follow *f)
{
    const struct api_object *pod = f->pods.at.len > 0 ? f->pods.at.at[0] : NULL;
    const struct hk_str phase =
        pod ? json_str(json_at(&pod->root, "status.phase"), HK_STR("")) : HK_STR("");

    return !pod || hk_str_is(phase, "Succeeded") || hk_str_is(phase, "Failed");
}

static bool logs_follow_is_over(const struct follow *f)
{
    if (f->t->job.n == 0) {
        return f->pods.feed.synced && pod_over(f);
    }
    return f->jobs.feed.synced && (f->jobs.at.len == 0 || progress_is_over(f->jobs.at.at[0]));
}

/* The job's end may arrive before the events of its last pods. */
static int look_again(struct follow *f, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer pods = {0};
    const struct port_request req = {.verb = PORT_LIST,
                                     .kind = api_kind(API_POD),
                                     .ns = f->t->ns,
                                     .label_selector = hk_str(f->t->label),
                                     .field_selector = hk_str(f->t->field)};
    const int rc = ask(&f->u->ask, &req, &pods, err);

    for (uint32_t i = 0; rc == 0 && i < pods.objects.len; i++) {
        see_pod(f, pods.objects.at[i]);
    }
    f->looked = rc == 0;
    return rc;
}

/* ---- main loop ---- */

/* Reopens the streams that are due; returns the time until the next one is. */
static int logs_follow_due(struct follow *f)
{
    const int64_t now = logs_follow_now(f);
    int64_t next = f->waiting.len > 0 ? f->flush_ns : INT64_MAX;

    for (uint32_t i = 0; i < f->sources.len; i++) {
        struct source *s = f->sources.at[i];
        if (s->again_ns > 0 && s->again_ns <= now) {
            logs_follow_open_source(s);
        } else if (s->again_ns > 0) {
            next = HK_MIN(next, s->again_ns);
        }
    }
    return next == INT64_MAX ? -1 : (int)HK_MAX((next - now + MS_NS - 1) / MS_NS, 0);
}

static void logs_follow_note_job(struct follow *f)
{
    if (f->jobs.at.len > 0 && f->jobs.at.at[0] != f->job) {
        api_object_unref(f->job);
        f->job = api_object_ref(f->jobs.at.at[0]);
    }
}

static bool is_time(const struct follow *f)
{
    return f->jobs.dirty || f->waiting_bytes > AT_MOST ||
           (f->waiting.len > 0 && logs_follow_now(f) >= f->flush_ns);
}

static int logs_follow_step(struct follow *f, struct hk_err *err)
{
    struct live *const all[] = {&f->pods, &f->jobs};
    const uint32_t n = f->t->job.n > 0 ? 2 : 1;
    int rc = 0;

    while (rc == 0 && !f->u->interrupted) {
        if (f->looked && f->open == 0) {
            break;
        }
        rc = live_turn(f->u, all, n, logs_follow_due(f), err);
        logs_follow_note_job(f);
        if (rc == 0 && is_time(f)) {
            f->jobs.dirty = false;
            rc = logs_follow_flush(f, err);
        }
        if (rc == 0 && !f->looked && logs_follow_is_over(f)) {
            rc = look_again(f, err);
        }
    }
    const int last = rc == 0 ? logs_follow_flush(f, err) : 0;
    return rc < 0 ? rc : last;
}

int logs_follow(struct user *u, const struct logs_opts *o, const struct logs_target *t,
                struct api_object **ret_job, struct hk_err *err)
{
    struct follow f = {.u = u, .o = o, .t = t, .err_term = term_of(STDERR_FILENO)};
    int rc;

    live_init(&f.pods, u,
              &(struct live_opts){.kind = API_POD,
                                  .ns = t->ns.s,
                                  .label = t->label,
                                  .field = t->field,
                                  .changed = logs_follow_on_pod,
                                  .ctx = &f});
    if (t->job.n > 0) {
        const char *field = hk_arena_printf(&u->mem, "metadata.name=%.*s", HK_FMT(t->job));
        live_init(&f.jobs, u, &(struct live_opts){.kind = API_JOB, .ns = t->ns.s, .field = field});
    }
    rc = logs_follow_step(&f, err);
    for (uint32_t i = 0; i < f.waiting.len; i++) {
        hk_free(f.waiting.at[i].text);
    }
    for (uint32_t i = 0; i < f.sources.len; i++) {
        logs_follow_source_free(f.sources.at[i]);
    }
    if (ret_job) {
        *ret_job = hk_take(f.job);
    }
    api_object_unref(f.job);
    hk_vec_fini(&f.waiting);
    hk_vec_fini(&f.sources);
    live_fini(&f.pods);
    live_fini(&f.jobs);
    return rc;
}
