// SPDX-License-Identifier: Apache-2.0
// Log lines on stderr. No time stamp: whoever collects the lines (journald, a container runtime)
// has one, and a simulated run must print the same text every time.

#include "base/log.h"

#include "base/str.h"

#include <stdatomic.h>
#include <unistd.h>

static _Atomic int current_level = HK_LOG_INFO;

void hk_log_set_level(enum hk_log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

enum hk_log_level hk_log_level(void)
{
    return (enum hk_log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

/* What strangers put into names must neither end the line nor move the terminal's cursor. */
static void add_printable(struct hk_buf *line, const char *s, bool quoted)
{
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c < 0x20 || c == 0x7f) {
            hk_buf_addf(line, "\\x%02x", c);
        } else {
            if (quoted && (c == '"' || c == '\\')) {
                hk_buf_addc(line, '\\');
            }
            hk_buf_addc(line, *s);
        }
    }
}

/* One write per line, so that lines of several threads or processes do not mix. */
static void write_line(const struct hk_buf *line)
{
    size_t done = 0;

    while (done < line->len) {
        const ssize_t n = write(STDERR_FILENO, line->data + done, line->len - done);
        if (n <= 0) {
            return; /* nobody left to tell */
        }
        done += (size_t)n;
    }
}

void hk_log_write(enum hk_log_level level, const char *event, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf pairs = {0};

    hk_buf_addf(&line, "level=%s msg=\"", names[level]);
    add_printable(&line, event, true);
    hk_buf_addc(&line, '"');
    if (fmt) {
        va_list ap;

        va_start(ap, fmt);
        hk_buf_vaddf(&pairs, fmt, ap);
        va_end(ap);
        hk_buf_addc(&line, ' ');
        add_printable(&line, pairs.data, false);
    }
    hk_buf_addc(&line, '\n');
    write_line(&line);
}
