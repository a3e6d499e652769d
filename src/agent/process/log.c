// SPDX-License-Identifier: Apache-2.0
// Writes a container's output to a file in CRI log format, "TIME STREAM F|P TEXT": F a whole line,
// P part of one. Runs in the shim, so without the heap. A full file is renamed to NAME.1 and
// replaces the previous one; NAME.lost then counts the lines and bytes of output removed that way.
// When the disk is full, output is lost and the container keeps running; the first record written
// after that says how much is missing and why. Written bytes are never removed, because a reader
// may be at them.

#include "agent/process/process_priv.h"

#include "codec/timefmt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* Space for time, stream, tag and blanks before a text. */
#define HEAD 64

static void process_log_open_file(struct process_log *l)
{
    struct stat st;

    l->fd = openat(l->dir_fd, l->name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    l->why = l->fd < 0 ? errno : l->why;
    l->size = l->fd >= 0 && fstat(l->fd, &st) == 0 ? st.st_size : 0;
    l->torn = false;
}

/* Counts the lines before they are removed, so that readers of the rest know. */
static void record_removed(struct process_log *l)
{
    char name[NAME_MAX + 1], text[64];
    int fd, n;

    l->removed.lines += l->old.lines;
    l->removed.bytes += l->old.bytes;
    if (l->removed.bytes == 0) {
        return;
    }
    snprintf(name, sizeof(name), "%s" POD_LOG_LOST, l->name);
    n = snprintf(text, sizeof(text), "%lld %lld\n", (long long)l->removed.lines,
                 (long long)l->removed.bytes);
    fd = openat(l->dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
    if (fd >= 0) {
        (void)!pwrite(fd, text, (size_t)n, 0); /* never shorter: numbers only grow */
        close(fd);
    }
}

static void process_log_rotate(struct process_log *l)
{
    char old[NAME_MAX + 1];

    snprintf(old, sizeof(old), "%s.1", l->name);
    record_removed(l);
    if (renameat(l->dir_fd, l->name, l->dir_fd, old) < 0) {
        l->removed.lines -= l->old.lines;
        l->removed.bytes -= l->old.bytes;
        return;
    }
    l->old = l->part;
    l->part = (struct process_log_part){0};
    close(l->fd);
    process_log_open_file(l);
}

void process_log_init(struct process_log *l, struct hk_clock *clock, int dir_fd, const char *name,
                      int64_t max_bytes)
{
    l->clock = clock;
    l->dir_fd = dir_fd;
    l->name = name;
    l->max_bytes = max_bytes;
    l->out_len = 0;
    l->lost = 0;
    l->why = 0;
    l->part = l->old = l->removed = (struct process_log_part){0};
    l->streams[0].name = "stdout";
    l->streams[0].len = 0;
    l->streams[1].name = "stderr";
    l->streams[1].len = 0;
    process_log_open_file(l);
}

static size_t process_log_write_line_head(char *out, int64_t ns, const char *stream, char tag)
{
    const int64_t secs = ns / 1000000000;
    const int64_t day = secs / 86400;
    const int of_day = (int)(secs % 86400);
    const struct time_date d = time_date_of(day);

    return (size_t)snprintf(out, HEAD, "%04d-%02d-%02dT%02d:%02d:%02d.%09dZ %s %c ", d.year,
                            d.month, d.day, of_day / 3600, of_day / 60 % 60, of_day % 60,
                            (int)(ns % 1000000000), stream, tag);
}

/* Returns the number of bytes written. */
static size_t write_out(struct process_log *l, const char *p, size_t n)
{
    size_t done = 0;

    while (l->fd >= 0 && done < n) {
        const ssize_t got = write(l->fd, p + done, n - done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            l->why = errno;
            break;
        }
        done += (size_t)got;
    }
    l->torn = done > 0 ? p[done - 1] != '\n' : l->torn;
    l->size += (int64_t)done;
    return done;
}

static void count_lost(struct process_log *l, const char *p, size_t n)
{
    for (const char *at = p; (at = memchr(at, '\n', n - (size_t)(at - p))); at++) {
        l->lost++;
    }
}

/* Writes the record about lost output; returns true if none is outstanding. */
static bool tell_lost(struct process_log *l)
{
    char text[HEAD + 256] = "\n"; /* the newline ends a truncated record */
    size_t n = l->torn;

    if (l->lost == 0) {
        return true;
    }
    n += process_log_write_line_head(text + n, l->clock->wall_ns(l->clock), "stderr", 'F');
    n += (size_t)snprintf(text + n, sizeof(text) - n,
                          "hekla: %lld line%s missing here: " PROCESS_WHY "\n", (long long)l->lost,
                          l->lost == 1 ? " is" : "s are", PROCESS_WHY_OF(l->why));
    if (write_out(l, text, n) < n) {
        return false;
    }
    l->lost = 0;
    return true;
}

void process_log_flush(struct process_log *l)
{
    size_t done = 0;

    if (l->fd < 0) {
        process_log_open_file(l);
    }
    if (tell_lost(l)) {
        done = write_out(l, l->out, l->out_len);
    }
    count_lost(l, l->out + done, l->out_len - done);
    l->out_len = 0;
    if (l->fd >= 0 && l->size >= l->max_bytes) {
        process_log_rotate(l);
    }
}

static void process_log_write_line(struct process_log *l, int stream, char tag)
{
    const size_t len = l->streams[stream].len;

    if (sizeof(l->out) - l->out_len < HEAD + len + 1) {
        process_log_flush(l);
    }
    l->out_len += process_log_write_line_head(l->out + l->out_len, l->clock->wall_ns(l->clock),
                                              l->streams[stream].name, tag);
    memcpy(l->out + l->out_len, l->streams[stream].line, len);
    l->out_len += len;
    l->out[l->out_len++] = '\n';
    l->part.lines += tag == 'F';
    l->part.bytes += (int64_t)len + (tag == 'F');
    l->streams[stream].len = 0;
}

void process_log_add(struct process_log *l, int stream, const char *p, size_t n)
{
    while (n > 0) {
        const char *end = memchr(p, '\n', n);
        const size_t want = end ? (size_t)(end - p) : n;
        const size_t take = HK_MIN(want, sizeof(l->streams[stream].line) - l->streams[stream].len);

        memcpy(l->streams[stream].line + l->streams[stream].len, p, take);
        l->streams[stream].len += take;
        p += take;
        n -= take;
        if (take < want) {
            process_log_write_line(l, stream, 'P');
        } else if (end) {
            process_log_write_line(l, stream, 'F');
            p++;
            n--;
        }
    }
}

void process_log_show(struct process_log *l)
{
    for (int stream = 0; stream < 2; stream++) {
        if (l->streams[stream].len > 0) {
            process_log_write_line(l, stream, 'P');
        }
    }
}

void process_log_fini(struct process_log *l)
{
    process_log_show(l);
    process_log_flush(l);
    if (l->fd >= 0) {
        close(l->fd);
        l->fd = -1;
    }
}
