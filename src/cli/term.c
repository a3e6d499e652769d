// SPDX-License-Identifier: Apache-2.0
// ANSI escape sequences for terminals.
#include "cli/term.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_DEFAULT = 80, ROWS_DEFAULT = 24, BAR_MIN = 5 };

static const char *const hues[TERM_NHUES] = {
    [TERM_PLAIN] = "",  [TERM_BOLD] = "1", [TERM_DIM] = "2",   [TERM_GOOD] = "32",
    [TERM_WAIT] = "33", [TERM_BAD] = "31", [TERM_INFO] = "36",
};

struct term term_of(int fd)
{
    struct term t = {.columns = COLUMNS_DEFAULT, .rows = ROWS_DEFAULT};
    const char *kind = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    struct winsize size;

    t.is = isatty(fd) && kind && *kind && strcmp(kind, "dumb") != 0;
    t.colour = t.is && !(no_colour && *no_colour);
    if (t.is && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        t.columns = size.ws_col;
        t.rows = size.ws_row;
    }
    return t;
}

void term_paint(const struct term *t, enum term_hue hue, struct hk_str text, struct hk_buf *out)
{
    const bool painted = t->colour && hue != TERM_PLAIN && text.n > 0;

    if (painted) {
        hk_buf_addf(out, "\033[%sm", hues[hue]);
    }
    hk_buf_add(out, text.s, text.n);
    hk_buf_adds(out, painted ? "\033[0m" : "");
}

void term_paint_rank(const struct term *t, uint32_t rank, struct hk_str text, struct hk_buf *out)
{
    static const uint8_t colours[] = {36, 33, 32, 35, 34, 96, 93, 92, 95, 94};

    if (t->colour) {
        hk_buf_addf(out, "\033[%um", colours[rank % HK_LEN(colours)]);
    }
    hk_buf_addstr(out, text);
    hk_buf_adds(out, t->colour ? "\033[0m" : "");
}

enum term_hue term_phase_hue(struct hk_str phase)
{
    static const struct {
        const char *phase;
        enum term_hue hue;
    } rows[] = {
        {"Running", TERM_GOOD},    {"Completed", TERM_GOOD},
        {"Succeeded", TERM_GOOD},  {"Succeed", TERM_GOOD},
        {"Open", TERM_GOOD},       {"Ready", TERM_GOOD},
        {"Pending", TERM_WAIT},    {"Inqueue", TERM_WAIT},
        {"Restarting", TERM_WAIT}, {"Aborting", TERM_WAIT},
        {"Completing", TERM_WAIT}, {"Terminating", TERM_WAIT},
        {"Closing", TERM_WAIT},    {"Unknown", TERM_WAIT},
        {"Aborted", TERM_BAD},     {"Terminated", TERM_BAD},
        {"Failed", TERM_BAD},      {"Closed", TERM_BAD},
        {"NotReady", TERM_BAD},    {"NotReady,unreachable", TERM_BAD},
    };

    for (size_t i = 0; i < HK_LEN(rows); i++) {
        if (hk_str_is(phase, rows[i].phase)) {
            return rows[i].hue;
        }
    }
    return TERM_PLAIN;
}

void term_gauge(const struct term *t, enum term_hue hue, int64_t done, int64_t of, uint32_t columns,
                struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf bar = {0};
    const int64_t full = HK_MAX(of, 1), at = HK_MIN(HK_MAX(done, 0), full);
    const int64_t width = columns > 2 ? columns - 2 : 1;
    const int64_t filled = (int64_t)((double)width * (double)at / (double)full);

    for (int64_t i = 0; i < width; i++) {
        hk_buf_addc(&bar, i < filled ? '#' : '-');
    }
    hk_buf_addc(out, '[');
    term_paint(t, hue, (struct hk_str){bar.data, (size_t)filled}, out);
    term_paint(t, TERM_DIM, (struct hk_str){bar.data + filled, (size_t)(width - filled)}, out);
    hk_buf_addc(out, ']');
}

void term_bar(const struct term *t, int64_t done, int64_t of, uint32_t columns, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf count = {0};

    hk_buf_addf(&count, "%lld/%lld", (long long)done, (long long)of);
    if (columns >= count.len + 3 + BAR_MIN) {
        term_gauge(t, TERM_GOOD, done, of, columns - (uint32_t)count.len - 1, out);
        hk_buf_addc(out, ' ');
    }
    hk_buf_add(out, count.data, count.len);
}

void term_rewind(const struct term *t, uint32_t n, struct hk_buf *out)
{
    if (t->is && n > 0) {
        hk_buf_addf(out, "\033[%uF\033[J", n);
    }
}
