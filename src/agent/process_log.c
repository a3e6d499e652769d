// SPDX-License-Identifier: Apache-2.0
// A container's output as a file in the form of CRI logs, "TIME STREAM F|P TEXT": F a whole line, P
// part of one. Written by the shim, so without the heap. A full file is kept as NAME.1 in place of
// the one before. When the disk takes no more, output is lost and the container goes on; the first
// record that can be written again says how much is missing and why. Nothing that was written is
// taken back, for somebody may be reading it.

#include "agent/process_priv.h"

#include "codec/timefmt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* Time, stream, tag and blanks before a text. */
#define HEAD 64

static void open_file(struct process_log *l)
{
    struct stat st;

    l->fd = openat(l->dir_fd, l->name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    l->why = l->fd < 0 ? errno : l->why;
    l->size = l->fd >= 0 && fstat(l->fd, &st) == 0 ? st.st_size : 0;
    l->torn = false;
}

static void rotate(struct process_log *l)
{
    char old[NAME_MAX + 1];

    snprintf(old, sizeof(old), "%s.1", l->name);
    if (renameat(l->dir_fd, l->name, l->dir_fd, old) < 0) {
        return;
    }
    close(l->fd);
    open_file(l);
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
    l->streams[0].name = "stdout";
    l->streams[0].len = 0;
    l->streams[1].name = "stderr";
    l->streams[1].len = 0;
    open_file(l);
}

static size_t write_head(char *out, int64_t ns, const char *stream, char tag)
{
    const int64_t secs = ns / 1000000000;
    const int64_t day = secs / 86400;
    const int of_day = (int)(secs % 86400);
    const struct time_date d = time_date_of(day);

    return (size_t)snprintf(out, HEAD, "%04d-%02d-%02dT%02d:%02d:%02d.%09dZ %s %c ", d.year,
                            d.month, d.day, of_day / 3600, of_day / 60 % 60, of_day % 60,
                            (int)(ns % 1000000000), stream, tag);
}

/* Returns how much of it was written. */
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

/* The mark of what is missing; true when nothing is. */
static bool tell_lost(struct process_log *l)
{
    char text[HEAD + 256] = "\n"; /* ends a record that was cut off */
    size_t n = l->torn;

    if (l->lost == 0) {
        return true;
    }
    n += write_head(text + n, l->clock->wall_ns(l->clock), "stderr", 'F');
    n += (size_t)snprintf(text + n, sizeof(text) - n,
                          "hekla: %lld lines are missing here: " PROCESS_WHY "\n",
                          (long long)l->lost, PROCESS_WHY_OF(l->why));
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
        open_file(l);
    }
    if (tell_lost(l)) {
        done = write_out(l, l->out, l->out_len);
    }
    count_lost(l, l->out + done, l->out_len - done);
    l->out_len = 0;
    if (l->fd >= 0 && l->size >= l->max_bytes) {
        rotate(l);
    }
}

static void write_line(struct process_log *l, int stream, char tag)
{
    const size_t len = l->streams[stream].len;

    if (sizeof(l->out) - l->out_len < HEAD + len + 1) {
        process_log_flush(l);
    }
    l->out_len +=
        write_head(l->out + l->out_len, l->clock->wall_ns(l->clock), l->streams[stream].name, tag);
    memcpy(l->out + l->out_len, l->streams[stream].line, len);
    l->out_len += len;
    l->out[l->out_len++] = '\n';
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
            write_line(l, stream, 'P');
        } else if (end) {
            write_line(l, stream, 'F');
            p++;
            n--;
        }
    }
}

void process_log_show(struct process_log *l)
{
    for (int stream = 0; stream < 2; stream++) {
        if (l->streams[stream].len > 0) {
            write_line(l, stream, 'P');
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
