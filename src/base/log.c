// SPDX-License-Identifier: Apache-2.0
// Log lines on stderr, in logfmt: the output of format conversions is escaped, so that no name or
// message can end a value or a line. Daemons set a clock: their lines start with the time, and
// equal lines in a row are counted. Without a clock nothing depends on time, and a simulated run
// prints the same text every time.

#include "base/log.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* Equal lines are shown again, with their number, at least this often. */
#define REPEAT_NS ((int64_t)10 * 1000 * 1000 * 1000)

static _Atomic int current_level = HK_LOG_INFO;

/* Shared by all log lines of the process. */
static struct {
    pthread_mutex_t lock;
    struct hk_clock *clock; /* NULL: no times, and equal lines are not counted */
    char *path;             /* of the log file, NULL: stderr as inherited */
    char *last;             /* the last written line, without its time; NULL: none */
    int64_t repeated;       /* lines equal to it that were not written */
    int64_t shown_ns;       /* monotonic: time of the last line */
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER};

void hk_log_set_level(enum hk_log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

enum hk_log_level hk_log_level(void)
{
    return (enum hk_log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

/* ---- values ---- */

/* Names from clients must neither end the value or the line nor move the terminal's cursor. */
static void add_escaped(struct hk_buf *line, struct hk_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.s[i];
        if (c == '\n') {
            hk_buf_adds(line, "\\n");
        } else if (c == '\t') {
            hk_buf_adds(line, "\\t");
        } else if (c < 0x20 || c == 0x7f) {
            hk_buf_addf(line, "\\u%04x", c);
        } else {
            if (c == '"' || c == '\\') {
                hk_buf_addc(line, '\\');
            }
            hk_buf_addc(line, s.s[i]);
        }
    }
}

static bool needs_quotes(struct hk_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.s[i];
        if (c <= ' ' || c == 0x7f || c == '"' || c == '\\' || c == '=') {
            return true;
        }
    }
    return s.n == 0;
}

/* ---- formats ---- */

struct conversion {
    int width, precision; /* -1: none */
    char length;          /* 0, 'l' for l, 'L' for ll and j, 'z' */
    char type;
};

static const char *parse_number(const char *at, va_list *ap, int *ret)
{
    if (*at == '*') {
        *ret = va_arg(*ap, int);
        return at + 1;
    }
    *ret = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        *ret = *ret * 10 + (*at - '0');
    }
    return at;
}

/* at is after the percent sign; returns the position after the conversion. */
static const char *parse_conversion(const char *at, va_list *ap, struct conversion *ret)
{
    *ret = (struct conversion){.width = 0, .precision = -1};
    at = parse_number(at, ap, &ret->width);
    if (*at == '.') {
        at = parse_number(at + 1, ap, &ret->precision);
    }
    for (; *at == 'l' || *at == 'z' || *at == 'j' || *at == 'h'; at++) {
        ret->length = *at == 'l' && ret->length == 'l' ? 'L' : *at == 'j' ? 'L' : *at;
    }
    ret->type = *at;
    return *at ? at + 1 : at;
}

static long long signed_arg(char length, va_list *ap)
{
    switch (length) {
    case 'l':
        return va_arg(*ap, long);
    case 'L':
        return va_arg(*ap, long long);
    case 'z':
        return va_arg(*ap, ssize_t);
    default:
        return va_arg(*ap, int);
    }
}

static unsigned long long unsigned_arg(char length, va_list *ap)
{
    switch (length) {
    case 'l':
        return va_arg(*ap, unsigned long);
    case 'L':
        return va_arg(*ap, unsigned long long);
    case 'z':
        return va_arg(*ap, size_t);
    default:
        return va_arg(*ap, unsigned);
    }
}

static void add_string(struct hk_buf *out, const struct conversion *c, const char *s)
{
    s = s ? s : "(null)";
    hk_buf_add(out, s, c->precision < 0 ? strlen(s) : strnlen(s, (size_t)c->precision));
}

/* The conversions that log lines use. */
static void add_converted(struct hk_buf *out, const struct conversion *c, int why, va_list *ap)
{
    switch (c->type) {
    case 'd':
    case 'i':
        hk_buf_addf(out, "%*lld", c->width, signed_arg(c->length, ap));
        break;
    case 'u':
        hk_buf_addf(out, "%*llu", c->width, unsigned_arg(c->length, ap));
        break;
    case 'x':
        hk_buf_addf(out, "%*llx", c->width, unsigned_arg(c->length, ap));
        break;
    case 'c':
        hk_buf_addc(out, (char)va_arg(*ap, int));
        break;
    case 'f':
    case 'g':
        hk_buf_addf(out, "%.*f", c->precision < 0 ? 6 : c->precision, va_arg(*ap, double));
        break;
    case 's':
        add_string(out, c, va_arg(*ap, const char *));
        break;
    case 'm':
        add_string(out, c, strerror(why));
        break;
    case '%':
        hk_buf_addc(out, '%');
        break;
    default:
        hk_assert(!"a conversion that log lines may use");
    }
}

/* Appends a value, quoted if the format quotes it or if necessary. */
static void end_value(struct hk_buf *line, struct hk_buf *value, bool quoted)
{
    const struct hk_str s = hk_buf_str(value);

    if (quoted || needs_quotes(s)) {
        hk_buf_addc(line, '"');
        add_escaped(line, s);
        hk_buf_addc(line, '"');
    } else {
        hk_buf_addstr(line, s);
    }
    hk_buf_clear(value);
}

/* Appends the pairs of the format. Its literal text must have the form KEY=VALUE or KEY="VALUE",
 * separated by blanks. */
static void add_pairs(struct hk_buf *line, const char *fmt, int why, va_list *ap)
{
    HK_AUTO(hk_buf_fini) struct hk_buf value = {0};
    enum { IN_KEY, IN_VALUE, IN_QUOTES } state = IN_KEY;
    struct conversion c;

    for (const char *at = fmt; *at;) {
        struct hk_buf *to = state == IN_KEY ? line : &value;
        if (*at == '%') {
            at = parse_conversion(at + 1, ap, &c);
            add_converted(to, &c, why, ap);
            continue;
        }
        if (state == IN_KEY && *at == '=') {
            hk_buf_addc(line, '=');
            at++;
            state = *at == '"' ? IN_QUOTES : IN_VALUE;
            at += *at == '"';
        } else if ((state == IN_VALUE && *at == ' ') || (state == IN_QUOTES && *at == '"')) {
            end_value(line, &value, state == IN_QUOTES);
            state = IN_KEY;
            at += *at == '"';
        } else {
            hk_buf_addc(to, *at++);
        }
    }
    if (state != IN_KEY) {
        end_value(line, &value, state == IN_QUOTES);
    }
}

/* ---- lines ---- */

/* One write per line, so that lines of several threads or processes do not mix. */
static void hk_log_write_stderr(const struct hk_buf *text)
{
    size_t done = 0;

    while (done < text->len) {
        const ssize_t n = write(STDERR_FILENO, text->data + done, text->len - done);
        if (n <= 0) {
            return; /* a failed write to the log cannot be reported */
        }
        done += (size_t)n;
    }
}

static void add_time(struct hk_buf *out)
{
    const int64_t ns = sink.clock->wall_ns(sink.clock);
    const time_t secs = (time_t)(ns / 1000000000);
    struct tm t;

    if (gmtime_r(&secs, &t)) {
        hk_buf_addf(out, "time=%04d-%02d-%02dT%02d:%02d:%02d.%03dZ ", t.tm_year + 1900,
                    t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec,
                    (int)(ns % 1000000000 / 1000000));
    }
}

static void log_show(const char *line, int64_t repeated)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (sink.clock) {
        add_time(&text);
    }
    hk_buf_adds(&text, line);
    if (repeated > 0) {
        hk_buf_addf(&text, " repeated=%lld", (long long)repeated);
    }
    hk_buf_addc(&text, '\n');
    hk_log_write_stderr(&text);
}

static void show_repeated(int64_t now_ns)
{
    if (sink.repeated > 0) {
        log_show(sink.last, sink.repeated);
        sink.repeated = 0;
        sink.shown_ns = now_ns;
    }
}

static void forget_last(void)
{
    hk_free(sink.last);
    sink.last = NULL;
}

static void add_line(const char *line)
{
    const int64_t now_ns = sink.clock ? sink.clock->mono_ns(sink.clock) : 0;

    if (sink.last && strcmp(sink.last, line) == 0) {
        sink.repeated++;
        if (now_ns - sink.shown_ns >= REPEAT_NS) {
            show_repeated(now_ns);
        }
        return;
    }
    show_repeated(now_ns);
    log_show(line, 0);
    forget_last();
    if (sink.clock) {
        sink.last = hk_strdup(line);
        sink.shown_ns = now_ns;
    }
}

void hk_log_write(enum hk_log_level level, const char *event, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};
    const int why = errno;

    hk_buf_addf(&line, "level=%s msg=\"", names[level]);
    add_escaped(&line, hk_str(event));
    hk_buf_addc(&line, '"');
    if (fmt) {
        va_list ap;

        hk_buf_addc(&line, ' ');
        va_start(ap, fmt);
        add_pairs(&line, fmt, why, &ap);
        va_end(ap);
    }
    pthread_mutex_lock(&sink.lock);
    add_line(line.data);
    pthread_mutex_unlock(&sink.lock);
    errno = why;
}

/* ---- destination ---- */

void hk_log_set_clock(struct hk_clock *clock)
{
    pthread_mutex_lock(&sink.lock);
    show_repeated(0);
    forget_last();
    sink.clock = clock;
    pthread_mutex_unlock(&sink.lock);
}

void hk_log_tick(void)
{
    pthread_mutex_lock(&sink.lock);
    if (sink.clock && sink.repeated > 0) {
        const int64_t now_ns = sink.clock->mono_ns(sink.clock);
        if (now_ns - sink.shown_ns >= REPEAT_NS) {
            show_repeated(now_ns);
        }
    }
    pthread_mutex_unlock(&sink.lock);
}

static int open_path(const char *path, struct hk_err *err)
{
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0) {
        return hk_fail(err, HK_EIO, "cannot write the log '%s': %m", path);
    }
    show_repeated(0); /* into the file in which they were counted */
    forget_last();
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    close(fd);
    return 0;
}

int hk_log_open(const char *path, struct hk_err *err)
{
    pthread_mutex_lock(&sink.lock);
    const int rc = open_path(path, err);
    if (rc == 0) {
        hk_free(sink.path);
        sink.path = hk_strdup(path);
    }
    pthread_mutex_unlock(&sink.lock);
    return rc;
}

bool hk_log_reopen(void)
{
    struct hk_err err = {0};

    pthread_mutex_lock(&sink.lock);
    const bool has_file = sink.path != NULL;
    const int rc = has_file ? open_path(sink.path, &err) : 0;
    pthread_mutex_unlock(&sink.lock);
    if (rc < 0) {
        hk_log(HK_LOG_ERROR, "cannot reopen the log, continuing with the old file", "err=\"%s\"",
               err.text);
    }
    return has_file;
}
