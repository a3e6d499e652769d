// SPDX-License-Identifier: Apache-2.0
// Logs, as they are asked for: the file a runtime wrote, in the form of CRI logs ("TIME STREAM F
// text", P for a piece of a line), turned back into output. A file that became too large is there
// as FILE.1. Readers pull; who follows is looked after from agent_run until the container ends.
#include "agent/agent_priv.h"

#include "base/file.h"
#include "codec/timefmt.h"
#include "net/node_api.h"
#include "net/query.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (32u << 10)
#define FOLLOW_NS (SECOND_NS / 10)
#define TAIL_BYTES 2048
#define TAIL_LINES 80
#define TAIL_READ (16 << 10)

/* What is wanted of a log. */
struct log_query {
    struct hk_str container;
    int64_t tail;     /* lines, -1: all */
    int64_t since_ns; /* wall */
    int64_t limit;    /* bytes, -1: all */
    bool timestamps, previous, follow;
};

struct pod_log {
    struct agent *a; /* NULL: cut off */
    struct http_request *http;
    struct log_query q;
    char *path;
    int fd;       /* -1: no file yet */
    bool old;     /* reading FILE.1 */
    bool mid;     /* in the middle of a line */
    bool asleep;  /* waits for more */
    bool full;    /* nothing more is wanted */
    int64_t skip; /* lines */
    char *uid, *container;
    uint32_t attempt;
    struct hk_buf carry; /* the beginning of a record */
};

/* ---- records ---- */

struct record {
    struct hk_str time, text;
    bool partial;
};

static bool parse_record(struct hk_str line, struct record *ret)
{
    struct hk_str stream, tag;

    if (!hk_str_cut(&line, ' ', &ret->time) || !hk_str_cut(&line, ' ', &stream) ||
        !hk_str_cut(&line, ' ', &tag) || tag.n == 0) {
        return false;
    }
    ret->text = line.s ? line : HK_STR("");
    ret->partial = tag.s[0] == 'P';
    return true;
}

static bool is_older(const struct record *r, int64_t since_ns)
{
    int64_t ns;

    return since_ns != 0 && time_parse(r->time, &ns, NULL) == 0 && ns < since_ns;
}

static void emit(struct pod_log *l, const struct record *r, struct hk_buf *out)
{
    const size_t before = out->len;
    const bool begins = !l->mid;

    l->mid = r->partial;
    if (l->skip > 0) {
        l->skip -= !r->partial;
        return;
    }
    if (l->full || is_older(r, l->q.since_ns)) {
        return;
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
        struct record r;

        if (parse_record(line, &r)) {
            emit(l, &r, out);
        }
        rest.s += line.n + 1;
        rest.n -= line.n + 1;
    }
    left = rest.n;
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

static void open_file(struct pod_log *l, const char *path)
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

/* At the end of a file: goes on with the one after it, if there is one. */
static bool next_file(struct pod_log *l)
{
    if (!l->old && !was_rotated(l)) {
        return false;
    }
    l->old = false;
    open_file(l, l->path);
    return l->fd >= 0;
}

static void open_first(struct pod_log *l)
{
    HK_AUTO(hk_buf_fini) struct hk_buf old = {0};

    hk_buf_addf(&old, "%s.1", l->path);
    open_file(l, old.data);
    l->old = l->fd >= 0;
    if (!l->old) {
        open_file(l, l->path);
    }
}

static void count_lines(struct pod_log *l, int64_t *ret)
{
    struct hk_str rest, line;
    struct record r;

    rest = hk_buf_str(&l->carry);
    for (const char *end; (end = memchr(rest.s, '\n', rest.n));) {
        line = (struct hk_str){rest.s, (size_t)(end - rest.s)};
        *ret += parse_record(line, &r) && !r.partial;
        rest.s += line.n + 1;
        rest.n -= line.n + 1;
    }
    memmove(l->carry.data, rest.s, rest.n);
    l->carry.len = rest.n;
}

/* Reads all of it once to know where the last lines begin. */
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
    open_first(l);
    l->skip = HK_MAX(lines - l->q.tail, 0);
}

/* ---- the stream ---- */

static const struct container *container_of(const struct agent *a, const char *uid,
                                            const char *name)
{
    const struct pod *p = agent_pod(a, hk_str(uid));

    for (uint32_t k = 0; p && k < p->ncontainer; k++) {
        if (hk_str_is(p->containers[k].name, name)) {
            return &p->containers[k];
        }
    }
    return NULL;
}

static bool may_grow(const struct pod_log *l)
{
    const struct container *c = l->a ? container_of(l->a, l->uid, l->container) : NULL;

    return c && c->attempt == l->attempt && c->state == CONTAINER_RUNNING;
}

static bool pull(void *ctx, struct hk_buf *out, size_t room)
{
    struct pod_log *l = ctx;
    const size_t want = out->len + room;

    l->asleep = false;
    while (out->len < want && !l->full) {
        /* Asked first: what is written before the end is told is read below. */
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

static void ended(void *ctx)
{
    struct pod_log *l = ctx;

    for (uint32_t i = 0; l->a && i < l->a->logs.len; i++) {
        if (l->a->logs.at[i] == l) {
            hk_vec_swap_remove(&l->a->logs, i);
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
    struct stat st;

    return (l->fd >= 0 && fstat(l->fd, &st) == 0 && st.st_size > lseek(l->fd, 0, SEEK_CUR)) ||
           was_rotated(l);
}

int64_t pod_log_tick(struct agent *a, int64_t now_ns)
{
    for (uint32_t i = 0; i < a->logs.len; i++) {
        struct pod_log *l = a->logs.at[i];

        if (l->asleep && (has_more(l) || !may_grow(l))) {
            l->asleep = false;
            http_resume(l->http);
        }
    }
    return a->logs.len > 0 ? now_ns + FOLLOW_NS : INT64_MAX;
}

void pod_log_fini(struct agent *a)
{
    for (uint32_t i = 0; i < a->logs.len; i++) {
        struct pod_log *l = a->logs.at[i];

        l->a = NULL;
        if (l->asleep) {
            http_resume(l->http);
        }
    }
    hk_vec_fini(&a->logs);
}

/* ---- the question ---- */

static int take_int(const struct query *q, const char *key, int64_t *ret, struct hk_err *err)
{
    const struct hk_str text = query_get(q, key);

    if (text.n > 0 && (!hk_str_int(text, ret) || *ret < 0)) {
        return hk_fail(err, HK_EINVAL, "%s: '%.*s', want a whole number", key, HK_FMT(text));
    }
    return 0;
}

static int parse_query(struct agent *a, struct hk_str text, struct log_query *ret,
                       struct hk_err *err)
{
    struct query q;
    int64_t since_s = -1;
    int rc = query_parse(text, &a->mem, &q, err);

    if (rc < 0) {
        return rc;
    }
    *ret = (struct log_query){.container = query_get(&q, "container"),
                              .tail = -1,
                              .limit = -1,
                              .timestamps = query_bool(&q, "timestamps"),
                              .previous = query_bool(&q, "previous"),
                              .follow = query_bool(&q, "follow")};
    rc = take_int(&q, "tailLines", &ret->tail, err);
    rc = rc < 0 ? rc : take_int(&q, "limitBytes", &ret->limit, err);
    rc = rc < 0 ? rc : take_int(&q, "sinceSeconds", &since_s, err);
    if (since_s >= 0) {
        ret->since_ns = agent_wall(a) - HK_MIN(since_s, INT64_C(1) << 32) * SECOND_NS;
    }
    if (rc == 0 && query_has(&q, "sinceTime")) {
        rc = time_parse(query_get(&q, "sinceTime"), &ret->since_ns, err);
    }
    return rc;
}

static const struct container *choose(const struct pod *p, struct hk_str name, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf names = {0};

    for (uint32_t i = 0; i < p->ncontainer; i++) {
        if (hk_str_eq(p->containers[i].name, name)) {
            return &p->containers[i];
        }
        if (i >= p->ninit) {
            hk_buf_addf(&names, "%s%.*s", names.len > 0 ? " " : "", HK_FMT(p->containers[i].name));
        }
    }
    if (name.n > 0) {
        hk_err_set(err, HK_EINVAL, "container %.*s is not valid for pod %.*s", HK_FMT(name),
                   HK_FMT(p->name));
        return NULL;
    }
    if (p->ncontainer - p->ninit == 1) {
        return &p->containers[p->ninit];
    }
    hk_err_set(err, HK_EINVAL,
               "a container name must be specified for pod %.*s, choose one of: [%s]",
               HK_FMT(p->name), names.data);
    return NULL;
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

static void refuse(struct http_request *http, int status, const char *reason, const char *message)
{
    static const struct http_header json = {HK_STR("Content-Type"), HK_STR("application/json")};
    HK_AUTO(hk_buf_fini) struct hk_buf body = {0};

    hk_buf_adds(&body, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                       "\"status\":\"Failure\",\"message\":");
    json_write_str(hk_str(message), &body);
    hk_buf_addf(&body, ",\"reason\":\"%s\",\"code\":%d}\n", reason, status);
    http_reply(http, status, &json, 1, &body);
}

static int open_log(struct agent *a, const struct node_call *call, struct pod_log **ret,
                    struct hk_err *err)
{
    const struct pod *p = agent_pod_named(a, call->ns, call->pod);
    const struct container *c;
    struct log_query q;
    struct pod_log *l;
    uint32_t attempt;
    int rc = parse_query(a, call->query, &q, err);

    if (rc < 0) {
        return rc;
    }
    if (!p || p->gone) {
        return hk_fail(err, HK_ENOTFOUND, "pods \"%.*s\" not found on this node",
                       HK_FMT(call->pod));
    }
    c = choose(p, q.container, err);
    if (!c) {
        return -HK_EINVAL;
    }
    rc = find_attempt(c, q.previous, &attempt, err);
    if (rc < 0) {
        return rc;
    }
    l = hk_zalloc(sizeof(*l));
    *l = (struct pod_log){.a = a,
                          .http = call->http,
                          .q = q,
                          .path = hk_strdup(pod_log_path(c, attempt, &a->mem)),
                          .fd = -1,
                          .uid = hk_strndup(p->uid.s, p->uid.n),
                          .container = hk_strndup(c->name.s, c->name.n),
                          .attempt = attempt};
    l->q.container = HK_STR("");
    open_first(l);
    skip_to_tail(l);
    *ret = l;
    return 0;
}

static void serve_log(struct agent *a, const struct node_call *call)
{
    static const struct http_header text = {HK_STR("Content-Type"), HK_STR("text/plain")};
    struct hk_err err = {0};
    struct pod_log *l;
    const int rc = open_log(a, call, &l, &err);

    if (rc < 0) {
        const int status = rc == -HK_ENOTFOUND ? 404 : 400;

        refuse(call->http, status, status == 404 ? "NotFound" : "BadRequest", err.text);
        return;
    }
    hk_vec_push(&a->logs, l);
    http_reply_stream(
        call->http, 200, &text, 1,
        &(struct http_stream){.pull = pull, .ended = ended, .ctx = l, .finite = !l->q.follow});
}

void agent_serve(void *ctx, const struct node_call *call)
{
    struct agent *a = ctx;

    if (!a->o.dir) {
        refuse(call->http, 400, "BadRequest", "nothing is run on a simulated node");
    } else if (hk_str_is(call->sub, "log")) {
        serve_log(a, call);
    } else {
        refuse(
            call->http, 501, "NotImplemented",
            hk_arena_printf(&a->mem, "this node does not offer %.*s of pods", HK_FMT(call->sub)));
    }
    hk_arena_clear(&a->mem);
}

/* ---- the end of a log ---- */

/* At most so many bytes and lines, whole lines where possible. */
static struct hk_str last_lines(struct hk_str text)
{
    size_t from = text.n > TAIL_BYTES ? text.n - TAIL_BYTES : 0;
    int lines = 0;

    for (size_t i = text.n; i > from + 1; i--) {
        if (text.s[i - 2] == '\n' && ++lines == TAIL_LINES) {
            from = i - 1;
        }
    }
    return (struct hk_str){text.s + from, text.n - from};
}

void pod_log_tail(const char *path, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct pod_log l = {.fd = open(path, O_RDONLY | O_CLOEXEC), .q = {.limit = -1}};
    struct stat st;

    if (l.fd < 0) {
        return;
    }
    if (fstat(l.fd, &st) == 0 && st.st_size > TAIL_READ) {
        lseek(l.fd, st.st_size - TAIL_READ, SEEK_SET);
    }
    while (read_more(&l)) {
        emit_lines(&l, &text);
    }
    close(l.fd);
    hk_buf_fini(&l.carry);
    hk_buf_addstr(out, last_lines(hk_buf_str(&text)));
}
