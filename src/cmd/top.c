// SPDX-License-Identifier: Apache-2.0
// hekla top: shows the board, once or updated live.
#include "cli/board.h"
#include "user/live.h"

#include <signal.h>
#include <sys/epoll.h>
#include <termios.h>
#include <unistd.h>

#define MS_NS ((int64_t)1000 * 1000)

enum { CALM_MS = 100, CLOCK_MS = 1000, NKINDS = 5 };

static const enum api_kind_id kinds[NKINDS] = {API_JOB, API_PODGROUP, API_POD, API_NODE, API_QUEUE};

struct top_args {
    struct user_opts user;
    enum board_sort sort;
    bool once;
};

struct top {
    struct user *u;
    const struct top_args *a;
    struct live lives[NKINDS];
    struct live *all[NKINDS];
    struct board board;
    struct hk_buf frame; /* what the screen shows */
    struct net_watch *keys;
    struct termios before;
    bool raw, quit, stale; /* stale: a key press needs a new frame */
};

/* ---- frames ---- */

static struct list_set set_of(const struct live *l)
{
    return (struct list_set){l->at.at, l->at.len};
}

static void make_frame(struct top *p, const struct term *t, struct hk_buf *out)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct hk_clock *clock = hk_clock_system();
    const struct list_set queues = set_of(&p->lives[4]);
    struct api_object **sorted = hk_arena_array(&mem, queues.n + 1, sizeof(struct api_object *));

    for (uint32_t i = 0; i < queues.n; i++) {
        sorted[i] = queues.at[i];
    }
    list_sort(API_QUEUE, sorted, queues.n);
    p->board.jobs = set_of(&p->lives[0]);
    p->board.groups = set_of(&p->lives[1]);
    p->board.pods = set_of(&p->lives[2]);
    p->board.nodes = set_of(&p->lives[3]);
    p->board.queues = (struct list_set){sorted, queues.n};
    p->board.now_ns = clock->wall_ns(clock);
    board_write(&p->board, t, out);
}

static int top_draw(struct top *p, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_buf next = {0};
    const struct term t = term_of(STDOUT_FILENO);

    make_frame(p, &t, &next);
    board_change(hk_buf_str(&p->frame), hk_buf_str(&next), &out);
    hk_buf_fini(&p->frame);
    p->frame = next;
    return verb_print(&out) == EXIT_OK ? 0 : hk_fail(err, HK_EIO, "cannot write the output");
}

/* ---- the terminal ---- */

static void on_key(void *ctx, uint32_t events)
{
    struct top *p = ctx;
    char keys[16];
    const ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

    if (n <= 0) {
        p->quit = true;
        return;
    }
    for (ssize_t i = 0; i < n; i++) {
        if (keys[i] == 'q') {
            p->quit = true;
        } else if (keys[i] == 's') {
            p->board.sort = (p->board.sort + 1) % BOARD_NSORTS;
        } else if (keys[i] == '?') {
            p->board.help = !p->board.help;
        }
    }
    p->stale = true;
}

static void top_on_signal(void *ctx, int signo)
{
    struct top *p = ctx;

    if (signo == SIGWINCH) {
        hk_buf_clear(&p->frame); /* redraw everything */
        p->stale = true;
    } else {
        p->quit = true;
    }
}

/* Switches to raw mode without echo, on the alternate screen. */
static int top_open_terminal(struct top *p, struct hk_err *err)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
    struct termios raw;
    const int rc = net_signals(p->u->ask.loop, signals, HK_LEN(signals), top_on_signal, p, err);

    if (rc < 0 || !isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &p->before) < 0) {
        return rc;
    }
    raw = p->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    p->raw = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    p->keys = net_watch_add(p->u->ask.loop, STDIN_FILENO, EPOLLIN, on_key, p);
    return 0;
}

static void set_screen(bool own)
{
    fputs(own ? "\033[?1049h\033[?25l" : "\033[?25h\033[?1049l", stdout);
    fflush(stdout);
}

static void give_terminal(struct top *p)
{
    net_watch_del(p->keys);
    if (p->raw) {
        tcsetattr(STDIN_FILENO, TCSANOW, &p->before);
    }
}

/* ---- running ---- */

static bool is_dirty(struct top *p)
{
    bool dirty = p->stale;

    for (int i = 0; i < NKINDS; i++) {
        dirty = dirty || p->lives[i].dirty;
    }
    return dirty;
}

static void clean(struct top *p)
{
    p->stale = false;
    for (int i = 0; i < NKINDS; i++) {
        p->lives[i].dirty = false;
    }
}

static int top_continue(struct top *p, struct hk_err *err)
{
    int64_t drawn_ns = 0;
    int rc = 0;

    while (rc == 0 && !p->quit) {
        const int64_t now = net_loop_now_ns(p->u->ask.loop);
        const int64_t due = drawn_ns + (is_dirty(p) ? CALM_MS : CLOCK_MS) * MS_NS;

        if (drawn_ns == 0 || now >= due) {
            clean(p);
            drawn_ns = now;
            rc = top_draw(p, err);
        } else {
            rc = live_turn(p->u, p->all, NKINDS, (int)((due - now) / MS_NS + 1), err);
        }
    }
    return rc;
}

static int top_show_live(struct top *p, struct hk_err *err)
{
    int rc;

    p->board.keys = true;
    rc = top_open_terminal(p, err);
    if (rc == 0) {
        set_screen(true);
        rc = top_continue(p, err);
        set_screen(false);
    }
    give_terminal(p);
    return rc;
}

static int show_once(struct top *p, const struct term *t, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    make_frame(p, t, &out);
    return verb_print(&out) == EXIT_OK ? 0 : hk_fail(err, HK_EIO, "cannot write the output");
}

/* Reports an unreachable server at once. */
static int top_probe(struct user *u, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer queues = {0};

    return user_list(u, API_QUEUE, "", NULL, &queues, err);
}

static int top_show(struct top *p, struct hk_err *err)
{
    const struct term t = term_of(STDOUT_FILENO);
    int rc = top_probe(p->u, err);

    if (rc < 0) {
        return rc;
    }
    for (int i = 0; i < NKINDS; i++) {
        const bool ours = kinds[i] == API_JOB || kinds[i] == API_PODGROUP;
        live_init(&p->lives[i], p->u,
                  &(struct live_opts){.kind = kinds[i], .ns = ours ? p->u->ns : ""});
        p->all[i] = &p->lives[i];
    }
    rc = live_sync(p->u, p->all, NKINDS, err);
    if (rc == 0) {
        rc = t.is && !p->a->once ? top_show_live(p, err) : show_once(p, &t, err);
    }
    for (int i = 0; i < NKINDS; i++) {
        live_fini(&p->lives[i]);
    }
    return rc;
}

/* ---- the verb ---- */

static const struct option_row options[] = {
    ROW_FLAG(0, "once", struct top_args, once, "Print the view once and return, as in a pipe."),
    ROW_CHOICE(0, "sort", "ORDER", struct top_args, sort, "state age size name", "state",
               "The order of the jobs."),
    ROW_TEXT_OR('n', "namespace", "NAMESPACE", struct top_args, user.ns, "all namespaces",
                "Only the jobs of this namespace."),
    ROW_INCLUDE(struct top_args, user, user_server_options),
    ROW_END,
};

static int top_run(const struct verb *v, int argc, char **argv)
{
    struct top_args a = {0};
    struct user u = {0};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &a);

    if (rc != 0) {
        return user_parsed(rc);
    }
    a.user.all_namespaces = a.user.ns == NULL;
    struct top p = {.u = &u, .a = &a};
    p.board = (struct board){.sort = a.sort, .namespaces = a.user.all_namespaces};
    rc = user_open(&u, &a.user, &err);
    if (rc == 0) {
        rc = top_show(&p, &err);
    }
    hk_buf_fini(&p.frame);
    user_close(&u);
    return rc < 0 ? user_fail(v, rc, &err) : USER_OK;
}

const struct verb verb_top = {
    .name = "top",
    .args = "",
    .about = "watch queues, jobs and nodes on a terminal",
    .options = options,
    .text = "A live view of the cluster: what is requested of what there is, queues, nodes and "
            "jobs. In a pipe, or with --once, it is printed once.\n"
            "Bars show what pods request, as schedulers count. Actual usage is not shown: this "
            "API does not provide it.",
    .rest =
        "KEYS\n"
        "       q quits, s changes the order of the jobs, ? shows the keys.\n\n" USER_EXIT_STATUS,
    .run = top_run,
};
