// SPDX-License-Identifier: Apache-2.0
// Prints existing logs in order of time. All logs first go to one temporary file, a few at a time,
// and are merged from there: memory use does not depend on their number and length.
#include "base/heap.h"
#include "client/get_stream.h"
#include "user/logs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    AT_ONCE = 16,
    READ_BYTES = 16 << 10,
    WRITE_BYTES = 64 << 10,
    MAX_LINE = 1 << 20, /* longer lines are truncated */
};

struct extent {
    uint64_t at, len;
};

struct source {
    struct merge *m;
    struct api_object *pod;
    struct hk_str container;
    HK_VEC(struct extent) extents;
    bool done;
    int rc;
    struct hk_err err;

    /* For reading: */
    uint32_t extent;
    uint64_t used; /* bytes of that extent */
    struct hk_buf buf;
    size_t line; /* length of the line at the start of buf, with its newline */
    struct logline head;
};

struct merge {
    struct user *u;
    const struct logs_opts *o;
    int spool;
    uint64_t end; /* of the temporary file */
    bool full;    /* a write failed */
    struct source *sources;
    uint32_t n, open;
};

/* ---- fetching ---- */

static void logs_merge_on_bytes(void *ctx, struct hk_str bytes)
{
    struct source *s = ctx;
    struct merge *m = s->m;
    const uint32_t n = s->extents.len;

    if (m->full || pwrite(m->spool, bytes.s, bytes.n, (off_t)m->end) != (ssize_t)bytes.n) {
        m->full = true;
        return;
    }
    if (n > 0 && s->extents.at[n - 1].at + s->extents.at[n - 1].len == m->end) {
        s->extents.at[n - 1].len += bytes.n;
    } else {
        hk_vec_push(&s->extents, (struct extent){m->end, bytes.n});
    }
    m->end += bytes.n;
}

static void logs_merge_on_done(void *ctx, const struct port_msg *msg)
{
    struct source *s = ctx;

    s->done = true;
    s->rc = msg->rc;
    if (msg->rc < 0) {
        s->err = *msg->err;
    }
    s->m->open--;
}

static void logs_merge_open_source(struct source *s)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    logs_path(s->m->o, s->pod->ns, s->pod->name, s->container, false, 0, &path);
    s->m->open++;
    get_stream_open(s->m->u->ask.client, &(struct get_stream){.kind = api_kind(API_POD),
                                                              .path = path.data,
                                                              .on_bytes = logs_merge_on_bytes,
                                                              .done = {logs_merge_on_done, s}});
}

static int logs_merge_fetch(struct merge *m, struct hk_err *err)
{
    uint32_t next = 0;
    int rc = 0;

    while (rc == 0 && (next < m->n || m->open > 0)) {
        while (next < m->n && m->open < AT_ONCE) {
            logs_merge_open_source(&m->sources[next++]);
        }
        rc = live_turn(m->u, NULL, 0, -1, err);
    }
    if (rc == 0 && m->full) {
        return hk_fail(err, HK_EIO, "cannot merge %u logs: the temporary file is full", m->n);
    }
    return rc;
}

/* ---- merging ---- */

/* Appends more of the log to the buffer; false at its end. */
static bool logs_merge_fill(struct source *s)
{
    char bytes[READ_BYTES];

    if (s->extent == s->extents.len) {
        return false;
    }
    const struct extent *e = &s->extents.at[s->extent];
    const size_t want = HK_MIN(sizeof(bytes), e->len - s->used);
    const ssize_t n = pread(s->m->spool, bytes, want, (off_t)(e->at + s->used));
    if (n <= 0) {
        return false;
    }
    hk_buf_add(&s->buf, bytes, (size_t)n);
    s->used += (uint64_t)n;
    if (s->used == e->len) {
        s->extent++;
        s->used = 0;
    }
    return true;
}

static void drop_line(struct source *s)
{
    s->buf.len -= s->line;
    memmove(s->buf.data, s->buf.data + s->line, s->buf.len);
    s->line = 0;
}

/* Moves the next line to the start of the buffer; false if there is none. */
static bool logs_merge_next_line(struct source *s)
{
    size_t looked = 0;
    const char *end = NULL;

    if (s->line > 0) {
        drop_line(s);
    }
    while (!end && s->buf.len < MAX_LINE) {
        end = s->buf.len > looked ? memchr(s->buf.data + looked, '\n', s->buf.len - looked) : NULL;
        looked = s->buf.len;
        if (!end && !logs_merge_fill(s)) {
            break;
        }
    }
    if (s->buf.len == 0) {
        return false;
    }
    s->line = end ? (size_t)(end - s->buf.data) + 1 : s->buf.len;
    logline_parse((struct hk_str){s->buf.data, s->line - (end ? 1 : 0)}, s->head.ns, &s->head);
    return true;
}

static bool logs_merge_is_older(void *ctx, uint32_t a, uint32_t b)
{
    const struct merge *m = ctx;
    const int64_t x = m->sources[a].head.ns, y = m->sources[b].head.ns;

    return x != y ? x < y : a < b;
}

static int print_some(struct hk_buf *out, size_t above)
{
    int status = EXIT_OK;

    if (out->len > above) {
        status = verb_print(out);
        hk_buf_clear(out);
    }
    return status;
}

static int print_merged(struct merge *m, struct hk_str job, struct hk_err *err)
{
    HK_AUTO(hk_heap_fini) struct hk_heap heap = {.less = logs_merge_is_older, .ctx = m};
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    int status = EXIT_OK;

    for (uint32_t i = 0; i < m->n; i++) {
        struct source *s = &m->sources[i];
        if (logs_merge_next_line(s) &&
            (!logs_tell_loss(s->pod->name, s->head.text) || logs_merge_next_line(s))) {
            hk_heap_push(&heap, i);
        }
    }
    while (heap.len > 0 && status == EXIT_OK) {
        const uint32_t i = hk_heap_pop(&heap);
        struct source *s = &m->sources[i];

        logline_write(&s->head, logline_prefix(job, s->pod->name), i, &m->o->how, &out);
        status = print_some(&out, WRITE_BYTES);
        if (logs_merge_next_line(s)) {
            hk_heap_push(&heap, i);
        }
    }
    status = status == EXIT_OK ? print_some(&out, 0) : status;
    return status == EXIT_OK ? 0 : hk_fail(err, HK_EIO, "cannot write the output");
}

/* ---- entry point ---- */

/* Uses memory if no directory works. */
static int open_spool(struct hk_err *err)
{
    const char *dir = getenv("TMPDIR");
    int fd = open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0) {
        fd = memfd_create("logs", MFD_CLOEXEC);
    }
    return fd >= 0 ? fd : hk_fail(err, HK_EIO, "cannot create a temporary file: %m");
}

static void add_source(struct merge *m, struct api_object *pod)
{
    const struct hk_str container = logs_container(m->o, pod);

    if (logs_wants(m->o, pod) && logs_starts(pod, container) >= 0) {
        m->sources[m->n++] = (struct source){.m = m, .pod = pod, .container = container};
    }
}

/* Reports the logs that could not be read; fails if all failed. */
static int logs_merge_report(const struct merge *m, const struct verb *v, struct hk_err *err)
{
    const struct source *last = NULL;
    uint32_t failed = 0;

    for (uint32_t i = 0; i < m->n; i++) {
        const struct source *s = &m->sources[i];
        if (s->rc < 0) {
            if (last) {
                verb_complain("%s: cannot read the log of pod '%.*s': %s", v->name,
                              HK_FMT(last->pod->name), last->err.text);
            }
            last = s;
            failed++;
        }
    }
    if (!last) {
        return 0;
    }
    hk_err_set(err, HK_EIO, "cannot read the log of pod '%.*s': %s", HK_FMT(last->pod->name),
               last->err.text);
    if (failed == m->n) {
        return last->rc;
    }
    verb_complain("%s: %s", v->name, err->text);
    return 0;
}

static void merge_fini(struct merge *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        hk_vec_fini(&m->sources[i].extents);
        hk_buf_fini(&m->sources[i].buf);
    }
    hk_free(m->sources);
    if (m->spool >= 0) {
        close(m->spool);
    }
}

int logs_merge(struct user *u, const struct verb *v, const struct logs_opts *o,
               const struct logs_target *t, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer pods = {0};
    HK_AUTO(merge_fini) struct merge m = {.u = u, .o = o, .spool = -1};
    const struct port_request req = {.verb = PORT_LIST,
                                     .kind = api_kind(API_POD),
                                     .ns = t->ns,
                                     .label_selector = hk_str(t->label),
                                     .field_selector = hk_str(t->field)};
    int rc = ask(&u->ask, &req, &pods, err);

    if (rc < 0) {
        return rc;
    }
    logs_sort(pods.objects.at, pods.objects.len);
    m.sources = hk_zalloc_array(pods.objects.len + 1, sizeof(*m.sources));
    for (uint32_t i = 0; i < pods.objects.len; i++) {
        add_source(&m, pods.objects.at[i]);
    }
    if (m.n == 0) {
        verb_complain(t->over && pods.objects.len == 0
                          ? "%s: the job has ended, and its pods are deleted with their output "
                            "(see 'hekla history %s')"
                          : "%s: no pod of the job has started yet (wait for one with -f)",
                      v->name, t->job.s);
        return 0;
    }
    rc = open_spool(err);
    if (rc < 0) {
        return rc;
    }
    m.spool = rc;
    rc = logs_merge_fetch(&m, err);
    if (rc < 0) {
        return rc;
    }
    rc = print_merged(&m, t->job, err);
    return rc < 0 ? rc : logs_merge_report(&m, v, err);
}
