// SPDX-License-Identifier: Apache-2.0
// Reads container logs: turns the file that the runtime wrote, in CRI log format (pod/output.h),
// back into output. A rotated file is FILE.1. Readers pull; pod_log_tick serves those that follow
// until the container ends.
#include "agent/serve/log.h"

#include "agent/pod/output.h"
#include "agent/serve/target.h"
#include "base/file.h"
#include "codec/timefmt.h"
#include "net/node_api.h"
#include "net/query.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (32u << 10)
#define RECORD_MAX (64u << 10)
#define FOLLOW_NS (SECOND_NS / 10)
#define LOST_MAX 64

/* The options of a log request. */
struct log_query {
    int64_t tail;     /* lines, -1: all */
    int64_t since_ns; /* wall */
    int64_t limit;    /* bytes, -1: all */
    bool timestamps, previous, follow;
};

/* Lines, and bytes of output. */
struct log_span {
    int64_t lines, bytes;
};

struct pod_log {
    struct serve *serve; /* NULL: disconnected */
    struct log_query q;
    char *path;
    int fd;               /* -1: no file yet */
    bool mid;             /* in the middle of a line */
    bool asleep;          /* waits for more output */
    bool full;            /* the limit is reached */
    int64_t skip;         /* lines to skip */
    bool at_first;        /* the next record is the oldest one left */
    struct log_span seen; /* output that was read, or is known to be lost */
    struct log_span gap;  /* output lost before the next record; bytes <= 0: none */
    char *uid, *container;
    uint32_t attempt;
    struct hk_buf carry; /* the start of an incomplete record */
    struct hk_buf *err;  /* buffer for stderr; NULL: same as stdout */
    void (*wake)(void *ctx);
    void *wake_ctx;
};

/* ---- records ---- */

static bool is_older(const struct output_record *r, int64_t since_ns)
{
    int64_t ns;

    return since_ns != 0 && time_parse(r->time, &ns, NULL) == 0 && ns < since_ns;
}

/* The amount that rotation removed; zero if unknown. */
static struct log_span read_lost(const struct pod_log *l)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0}, text = {0};
    struct log_span lost = {0};
    struct hk_str rest, lines;

    hk_buf_addf(&path, "%s" POD_LOG_LOST, l->path);
    if (hk_read_file(path.data, LOST_MAX, &text, NULL) < 0) {
        return lost;
    }
    rest = hk_str_trim(hk_buf_str(&text));
    if (!hk_str_cut(&rest, ' ', &lines) || !hk_str_int(lines, &lost.lines) ||
        !hk_str_int(rest, &lost.bytes)) {
        return (struct log_span){0};
    }
    return lost;
}

/* The next record is the first of the oldest file: older output that was not read is lost. */
static void find_gap(struct pod_log *l)
{
    const struct log_span lost = read_lost(l);

    l->gap = (struct log_span){lost.lines - l->seen.lines, lost.bytes - l->seen.bytes};
    if (l->gap.bytes > 0) {
        l->seen = lost;
    }
    l->at_first = true;
}

/* Writes a line that says how much output is missing. */
static void tell_lost(struct pod_log *l, const struct output_record *r, struct hk_buf *out)
{
    if (l->gap.bytes <= 0) {
        return;
    }
    if (l->q.timestamps) {
        hk_buf_addf(out, "%.*s ", HK_FMT(r->time));
    }
    hk_buf_addf(out, NODE_LOG_REMOVED "\n", (long long)l->gap.lines, (long long)l->gap.bytes);
}

static void emit(struct pod_log *l, const struct output_record *r, struct hk_buf *to)
{
    struct hk_buf *out = l->err && r->is_err ? l->err : to;
    const size_t before = out->len;
    const bool begins = !l->mid, first = l->at_first;

    l->at_first = false;
    l->seen.lines += !r->partial;
    l->seen.bytes += (int64_t)r->text.n + !r->partial;
    l->mid = r->partial;
    if (l->skip > 0) {
        l->skip -= !r->partial;
        return;
    }
    if (l->full || is_older(r, l->q.since_ns)) {
        return;
    }
    if (first) {
        tell_lost(l, r, out);
    }
    if (l->q.timestamps && begins) {
        hk_buf_addf(out, "%.*s ", HK_FMT(r->time));
    }
    hk_buf_addstr(out, r->text);
    if (!r->partial) {
        hk_buf_addc(out, '\n');
    }
    if (l->q.limit >= 0 && (int64_t)(out->len - before) >= l->q.limit) {
        out->len = before + (size_t)l->q.limit;
        out->data[out->len] = '\0';
        l->full = true;
    }
    l->q.limit -= l->q.limit >= 0 ? (int64_t)(out->len - before) : 0;
}

static void emit_lines(struct pod_log *l, struct hk_buf *out)
{
    struct hk_str rest = hk_buf_str(&l->carry);
    const char *end;
    size_t left;

    while ((end = memchr(rest.s, '\n', rest.n))) {
        const struct hk_str line = {rest.s, (size_t)(end - rest.s)};
        struct output_record r;

        if (output_parse(line, &r)) {
            emit(l, &r, out);
        }
        rest.s += line.n + 1;
        rest.n -= line.n + 1;
    }
    left = rest.n > RECORD_MAX ? 0 : rest.n; /* the shim writes no record that long */
    memmove(l->carry.data, rest.s, left);
    l->carry.len = left;
}

/* ---- files ---- */

static bool read_more(struct pod_log *l)
{
    ssize_t n;

    if (l->fd < 0) {
        return false;
    }
    hk_buf_reserve(&l->carry, CHUNK + 1);
    n = read(l->fd, l->carry.data + l->carry.len, CHUNK);
    if (n > 0) {
        l->carry.len += (size_t)n;
        l->carry.data[l->carry.len] = '\0';
    }
    return n > 0;
}

static void pod_log_open_file(struct pod_log *l, const char *path)
{
    if (l->fd >= 0) {
        close(l->fd);
    }
    l->fd = open(path, O_RDONLY | O_CLOEXEC);
}

static bool was_rotated(const struct pod_log *l)
{
    struct stat at, has;

    return stat(l->path, &at) == 0 &&
           (l->fd < 0 || (fstat(l->fd, &has) == 0 && at.st_ino != has.st_ino));
}

static void open_first(struct pod_log *l)
{
    HK_AUTO(hk_buf_fini) struct hk_buf old = {0};

    hk_buf_addf(&old, "%s.1", l->path);
    pod_log_open_file(l, old.data);
    if (l->fd < 0) {
        pod_log_open_file(l, l->path);
    }
    find_gap(l);
}

static bool has_unread(const struct pod_log *l)
{
    struct stat st;

    return l->fd >= 0 && fstat(l->fd, &st) == 0 && st.st_size > lseek(l->fd, 0, SEEK_CUR);
}

/* Whether the open file has become FILE.1. */
static bool is_last_full(const struct pod_log *l)
{
    HK_AUTO(hk_buf_fini) struct hk_buf old = {0};
    struct stat at, has;

    hk_buf_addf(&old, "%s.1", l->path);
    return l->fd >= 0 && stat(old.data, &at) == 0 && fstat(l->fd, &has) == 0 &&
           at.st_ino == has.st_ino;
}

/* At the end of a rotated file, opens the next one; false if there is none. */
static bool next_file(struct pod_log *l)
{
    if (!was_rotated(l)) {
        return false;
    }
    if (has_unread(l)) {
        return true; /* written after the last read, before the rotation */
    }
    hk_buf_clear(&l->carry); /* every file starts with a record */
    if (is_last_full(l)) {
        pod_log_open_file(l, l->path);
    } else {
        open_first(l); /* slow reader: the output between is lost, and a line says so */
    }
    return l->fd >= 0;
}

static void count_lines(struct pod_log *l, int64_t *ret)
{
    struct hk_str rest, line;
    struct output_record r;

    rest = hk_buf_str(&l->carry);
    for (const char *end; (end = memchr(rest.s, '\n', rest.n));) {
        line = (struct hk_str){rest.s, (size_t)(end - rest.s)};
        *ret += output_parse(line, &r) && !r.partial;
        rest.s += line.n + 1;
        rest.n -= line.n + 1;
    }
    memmove(l->carry.data, rest.s, rest.n);
    l->carry.len = rest.n;
}

/* Reads the whole log once to find the start of the last lines. */
static void skip_to_tail(struct pod_log *l)
{
    int64_t lines = 0;

    if (l->q.tail < 0) {
        return;
    }
    do {
        while (read_more(l)) {
            count_lines(l, &lines);
        }
    } while (next_file(l));
    hk_buf_clear(&l->carry);
    l->seen = (struct log_span){0};
    open_first(l);
    l->skip = HK_MAX(lines - l->q.tail, 0);
}

/* ---- the stream ---- */

static const struct container *container_of(const struct serve *s, const char *uid,
                                            const char *name)
{
    const struct pod *p = pods_find(s->pods, hk_str(uid));

    for (uint32_t k = 0; p && k < pod_ncontainers(p); k++) {
        if (hk_str_is(pod_container_at(p, k)->name, name)) {
            return pod_container_at(p, k);
        }
    }
    return NULL;
}

static bool may_grow(const struct pod_log *l)
{
    const struct container *c = l->serve ? container_of(l->serve, l->uid, l->container) : NULL;

    return c && c->attempt == l->attempt && c->state == CONTAINER_RUNNING;
}

static bool pod_log_fill_stream(void *ctx, struct hk_buf *out, size_t room)
{
    struct pod_log *l = ctx;
    const size_t want = out->len + room;

    l->asleep = false;
    while (out->len + (l->err ? l->err->len : 0) < want && !l->full) {
        /* Check this first: output written before the end is then still read below. */
        const bool grows = l->q.follow && may_grow(l);

        if (read_more(l)) {
            emit_lines(l, out);
        } else if (!next_file(l)) {
            l->asleep = grows;
            return grows;
        }
    }
    return !l->full;
}

static void pod_log_on_stream_end(void *ctx)
{
    struct pod_log *l = ctx;

    for (uint32_t i = 0; l->serve && i < l->serve->logs.len; i++) {
        if (l->serve->logs.at[i] == l) {
            hk_vec_swap_remove(&l->serve->logs, i);
            break;
        }
    }
    if (l->fd >= 0) {
        close(l->fd);
    }
    hk_buf_fini(&l->carry);
    hk_free(l->path);
    hk_free(l->uid);
    hk_free(l->container);
    hk_free(l);
}

static bool has_more(const struct pod_log *l)
{
    return has_unread(l) || was_rotated(l);
}

int64_t pod_log_tick(struct serve *s, int64_t now_ns)
{
    for (uint32_t i = 0; i < s->logs.len; i++) {
        struct pod_log *l = s->logs.at[i];

        if (l->asleep && (has_more(l) || !may_grow(l))) {
            l->asleep = false;
            l->wake(l->wake_ctx);
        }
    }
    return s->logs.len > 0 ? now_ns + FOLLOW_NS : INT64_MAX;
}

void pod_log_fini(struct serve *s)
{
    for (uint32_t i = 0; i < s->logs.len; i++) {
        struct pod_log *l = s->logs.at[i];

        l->serve = NULL;
        if (l->asleep) {
            l->wake(l->wake_ctx);
        }
    }
    hk_vec_fini(&s->logs);
}

/* ---- the request ---- */

static int parse_count(const struct query *q, const char *key, int64_t *ret, struct hk_err *err)
{
    const struct hk_str text = query_get(q, key);

    if (text.n > 0 && (!hk_str_int(text, ret) || *ret < 0)) {
        return hk_fail(err, HK_EINVAL, "%s: '%.*s', want a whole number", key, HK_FMT(text));
    }
    return 0;
}

static int read_query(struct serve *s, const struct query *q, struct log_query *ret,
                      struct hk_err *err)
{
    int64_t since_s = -1;
    int rc;

    *ret = (struct log_query){.tail = -1,
                              .limit = -1,
                              .timestamps = query_bool(q, "timestamps"),
                              .previous = query_bool(q, "previous"),
                              .follow = query_bool(q, "follow")};
    rc = parse_count(q, "tailLines", &ret->tail, err);
    if (rc < 0) {
        return rc;
    }
    rc = parse_count(q, "limitBytes", &ret->limit, err);
    if (rc < 0) {
        return rc;
    }
    rc = parse_count(q, "sinceSeconds", &since_s, err);
    if (rc < 0) {
        return rc;
    }
    if (since_s >= 0) {
        ret->since_ns = host_wall_ns(s->host) - HK_MIN(since_s, INT64_C(1) << 32) * SECOND_NS;
    }
    if (query_has(q, "sinceTime")) {
        return time_parse(query_get(q, "sinceTime"), &ret->since_ns, err);
    }
    return 0;
}

static int find_attempt(const struct container *c, bool previous, uint32_t *ret, struct hk_err *err)
{
    if (!c->pod->dir) {
        return hk_fail(err, HK_EINVAL, "this node keeps no logs");
    }
    if (previous && c->attempt == 0) {
        return hk_fail(err, HK_EINVAL,
                       "previous terminated container \"%.*s\" in pod \"%.*s\" not found",
                       HK_FMT(c->name), HK_FMT(c->pod->name));
    }
    if (!previous && !c->begun && !c->pod->final) {
        return hk_fail(err, HK_EINVAL, "container \"%.*s\" in pod \"%.*s\" is waiting to start: %s",
                       HK_FMT(c->name), HK_FMT(c->pod->name),
                       c->why ? c->why : "ContainerCreating");
    }
    *ret = previous ? c->attempt - 1 : c->attempt;
    return 0;
}

/* ---- answers ---- */

static struct pod_log *log_new(struct serve *s, const struct container *c, uint32_t attempt)
{
    struct pod_log *l = hk_zalloc(sizeof(*l));

    *l = (struct pod_log){.serve = s,
                          .path = hk_strdup(pod_log_path(c, attempt, &s->host->mem)),
                          .fd = -1,
                          .uid = hk_strndup(c->pod->uid.s, c->pod->uid.n),
                          .container = hk_strndup(c->name.s, c->name.n),
                          .attempt = attempt};
    return l;
}

static void wake_stream(void *ctx)
{
    http_resume(ctx);
}

static int open_log(struct serve *s, const struct node_call *call, struct pod_log **ret,
                    struct hk_err *err)
{
    struct container *c;
    struct query asked;
    struct log_query q;
    struct pod_log *l;
    uint32_t attempt;
    int rc = query_parse(call->query, &s->host->mem, &asked, err);

    if (rc < 0) {
        return rc;
    }
    rc = read_query(s, &asked, &q, err);
    if (rc < 0) {
        return rc;
    }
    rc = serve_find(s, call, &asked, &c, err);
    if (rc < 0) {
        return rc;
    }
    rc = find_attempt(c, q.previous, &attempt, err);
    if (rc < 0) {
        return rc;
    }
    l = log_new(s, c, attempt);
    l->q = q;
    l->wake = wake_stream;
    l->wake_ctx = call->http;
    open_first(l);
    skip_to_tail(l);
    *ret = l;
    return 0;
}

int pod_log_serve(struct serve *s, const struct node_call *call, struct hk_err *err)
{
    static const struct http_header text = {HK_STR("Content-Type"), HK_STR("text/plain")};
    struct pod_log *l;
    const int rc = open_log(s, call, &l, err);

    if (rc < 0) {
        return rc;
    }
    hk_vec_push(&s->logs, l);
    http_reply_stream(call->http, 200, &text, 1,
                      &(struct http_stream){.pull = pod_log_fill_stream,
                                            .ended = pod_log_on_stream_end,
                                            .ctx = l,
                                            .finite = !l->q.follow});
    return 0;
}

/* ---- attach ---- */

struct pod_log *pod_log_attach(struct serve *s, struct container *c, void (*wake)(void *ctx),
                               void *ctx)
{
    struct pod_log *l = log_new(s, c, c->attempt);

    l->q = (struct log_query){.tail = -1, .limit = -1, .follow = true};
    l->wake = wake;
    l->wake_ctx = ctx;
    l->seen.bytes = INT64_MAX / 2; /* attached in the middle: the number of lost bytes is unknown */
    pod_log_open_file(l, l->path);
    if (l->fd >= 0) {
        lseek(l->fd, 0, SEEK_END);
    }
    hk_vec_push(&l->serve->logs, l);
    return l;
}

bool pod_log_read(struct pod_log *l, struct hk_buf *out, struct hk_buf *err, size_t room)
{
    l->err = err;
    return pod_log_fill_stream(l, out, room);
}

void pod_log_detach(struct pod_log *l)
{
    pod_log_on_stream_end(l);
}
