// SPDX-License-Identifier: Apache-2.0
// Writes the frame of `hekla top`: sums, bars and tables.
#include "cli/board.h"

#include "api/names.h"
#include "cli/progress.h"
#include "cli/show_priv.h"

#include <stdlib.h>
#include <time.h>

#define S_NS ((int64_t)1000 * 1000 * 1000)

enum {
    BAR = 22,
    QUEUES_MOST = 8, /* on a terminal, together with nodes */
    NODES_MOST = 8,
    LINES_AROUND = 12, /* headers, titles and blank lines of a frame */
};

static const char *const sort_names[BOARD_NSORTS] = {
    [BOARD_BY_STATE] = "state",
    [BOARD_BY_AGE] = "age",
    [BOARD_BY_SIZE] = "size",
    [BOARD_BY_NAME] = "name",
};

const char *board_sort_name(enum board_sort sort)
{
    return sort_names[sort];
}

/* ---- cells ---- */

static enum term_hue load_hue(int64_t used, int64_t of)
{
    return of <= 0 || used < of / 5 * 4 ? TERM_GOOD : used < of ? TERM_WAIT : TERM_BAD;
}

/* "[###---]  1.5/2"; without a limit only the amount. */
static void add_gauge(const char *resource, int64_t used, int64_t of, struct grid *g)
{
    static const struct term plain = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf bar = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (of > 0) {
        term_gauge(&plain, TERM_PLAIN, used, of, BAR, &bar);
    }
    grid_add(g, hk_buf_str(&bar));
    grid_hue(g, load_hue(used, of));
    list_write_amount(resource, used, &text);
    if (of > 0) {
        hk_buf_addc(&text, '/');
        list_write_amount(resource, of, &text);
    }
    grid_add(g, hk_buf_str(&text));
}

static void add_state(struct hk_str state, struct grid *g)
{
    grid_add(g, state);
    grid_hue(g, term_phase_hue(state));
}

/* Writes as many rows as fit, and the number of the others. */
static void write_table(struct grid *g, uint32_t most, const struct term *t, struct hk_buf *out)
{
    const uint32_t rows = grid_rows(g), shown = HK_MIN(rows, most);

    grid_measure(g);
    hk_buf_addc(out, '\n');
    grid_write_head(g, t, out);
    for (uint32_t i = 0; i < shown; i++) {
        grid_write_row(g, i, t, out);
    }
    if (shown < rows) {
        hk_buf_addf(out, "... and %u more\n", rows - shown);
    }
}

/* ---- the cluster ---- */

static int64_t sum_nodes(const struct list_set *nodes, const char *resource)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < nodes->n; i++) {
        sum += list_milli(json_at(&nodes->at[i]->root, "status.allocatable"), resource, 0);
    }
    return sum;
}

static uint32_t count_phase(const struct list_set *jobs, const char *phase)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < jobs->n; i++) {
        n += hk_str_is(progress_phase(jobs->at[i]), phase);
    }
    return n;
}

static struct list_use sum_uses(const struct list_more *pods)
{
    struct list_use sum = {0};

    for (uint32_t i = 0; i < pods->nuses; i++) {
        sum.cpu_milli += pods->uses[i].cpu_milli;
        sum.memory_milli += pods->uses[i].memory_milli;
        sum.gpu_milli += pods->uses[i].gpu_milli;
        sum.pods += pods->uses[i].pods;
    }
    return sum;
}

static void write_clock(const struct board *b, struct hk_buf *out)
{
    const time_t s = (time_t)(b->now_ns / S_NS);
    char text[16];
    struct tm tm;

    if (localtime_r(&s, &tm)) {
        hk_buf_add(out, text, strftime(text, sizeof(text), "%H:%M:%S", &tm));
    }
}

static void write_top(const struct board *b, const struct list_more *pods, const struct term *t,
                      struct hk_buf *out)
{
    HK_AUTO(grid_fini) struct grid g = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};
    const struct list_use use = sum_uses(pods);
    const int64_t gpus = sum_nodes(&b->nodes, LIST_GPU);

    hk_buf_adds(&line, "hekla top  ");
    write_clock(b, &line);
    hk_buf_addf(&line, "  %u node%s  %u pod%s placed  %u job%s: %u running, %u pending, %u failed",
                b->nodes.n, b->nodes.n == 1 ? "" : "s", use.pods, use.pods == 1 ? "" : "s",
                b->jobs.n, b->jobs.n == 1 ? "" : "s", count_phase(&b->jobs, "Running"),
                count_phase(&b->jobs, "Pending"), count_phase(&b->jobs, "Failed"));
    hk_buf_addstr(out, hk_str_head(hk_buf_str(&line), t->is ? t->columns : line.len));
    hk_buf_addc(out, '\n');
    grid_head(&g, "ASKED FOR", false);
    grid_head(&g, "", false);
    grid_head(&g, "", true);
    grid_add(&g, HK_STR("cpu"));
    add_gauge(API_RES_CPU, use.cpu_milli, sum_nodes(&b->nodes, API_RES_CPU), &g);
    grid_add(&g, HK_STR("memory"));
    add_gauge(API_RES_MEMORY, use.memory_milli, sum_nodes(&b->nodes, API_RES_MEMORY), &g);
    if (gpus > 0) {
        grid_add(&g, HK_STR("gpu"));
        add_gauge(LIST_GPU, use.gpu_milli, gpus, &g);
    }
    write_table(&g, UINT32_MAX, t, out);
}

/* ---- queues ---- */

static int64_t board_count_groups(const struct list_set *groups, struct hk_str queue,
                                  const char *phase)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < groups->n; i++) {
        const struct json *g = &groups->at[i]->root;
        n += hk_str_eq(json_str_at(g, "spec.queue"), queue) &&
             hk_str_is(json_str_at(g, "status.phase"), phase);
    }
    return n;
}

/* Compares with the capability of the queue, or the whole cluster. */
static void add_queue(const struct board *b, const struct api_object *q, struct grid *g)
{
    const struct json *root = &q->root, *has = json_at(root, "status.allocated");
    const int64_t all = sum_nodes(&b->nodes, API_RES_CPU);

    grid_add(g, q->name);
    add_state(json_str_at(root, "status.state"), g);
    add_gauge(API_RES_CPU, list_milli(has, API_RES_CPU, 0),
              list_milli(json_at(root, "spec.capability"), API_RES_CPU, all), g);
    const int64_t waiting = board_count_groups(&b->groups, q->name, "Pending") +
                            board_count_groups(&b->groups, q->name, "Inqueue");
    grid_addf(g, "%lld", (long long)waiting);
    grid_addf(g, "%lld", (long long)board_count_groups(&b->groups, q->name, "Running"));
}

static void board_write_queues(const struct board *b, uint32_t most, const struct term *t,
                               struct hk_buf *out)
{
    HK_AUTO(grid_fini) struct grid g = {0};

    grid_head(&g, "QUEUE", false);
    grid_head(&g, "STATE", false);
    grid_head(&g, "CPU", false);
    grid_head(&g, "", true);
    grid_head(&g, "WAITING", true);
    grid_head(&g, "RUNNING", true);
    for (uint32_t i = 0; i < b->queues.n; i++) {
        add_queue(b, b->queues.at[i], &g);
    }
    write_table(&g, most, t, out);
}

/* ---- nodes ---- */

static void board_add_node_row(const struct api_object *node, const struct list_more *pods,
                               struct grid *g)
{
    const struct json *has = json_at(&node->root, "status.allocatable");
    const struct list_use use = list_use_of(node->name, pods);

    grid_add(g, node->name);
    add_state(list_node_state(&node->root), g);
    add_gauge(API_RES_CPU, use.cpu_milli, list_milli(has, API_RES_CPU, 0), g);
    add_gauge(API_RES_MEMORY, use.memory_milli, list_milli(has, API_RES_MEMORY, 0), g);
    grid_addf(g, "%u", use.pods);
}

static void write_nodes(const struct board *b, const struct list_more *pods, uint32_t most,
                        const struct term *t, struct hk_buf *out)
{
    HK_AUTO(grid_fini) struct grid g = {0};

    grid_head(&g, "NODE", false);
    grid_head(&g, "STATE", false);
    grid_head(&g, "CPU", false);
    grid_head(&g, "", true);
    grid_head(&g, "MEMORY", false);
    grid_head(&g, "", true);
    grid_head(&g, "PODS", true);
    for (uint32_t i = 0; i < b->nodes.n; i++) {
        board_add_node_row(b->nodes.at[i], pods, &g);
    }
    write_table(&g, most, t, out);
}

/* ---- jobs ---- */

/* Running jobs come first, then waiting ones, then finished ones. */
static int state_rank(const struct api_object *job)
{
    const struct hk_str phase = progress_phase(job);

    if (hk_str_is(phase, "Running")) {
        return 0;
    }
    return hk_str_is(phase, "Pending") ? 1 : progress_is_over(job) ? 3 : 2;
}

static int by_age(const void *a, const void *b)
{
    const struct api_object *x = *(struct api_object *const *)a;
    const struct api_object *y = *(struct api_object *const *)b;
    const int c = hk_str_cmp(json_str_at(&y->root, "metadata.creationTimestamp"),
                             json_str_at(&x->root, "metadata.creationTimestamp"));

    return c != 0 ? c : hk_str_cmp(x->name, y->name);
}

static int by_state(const void *a, const void *b)
{
    const int x = state_rank(*(struct api_object *const *)a);
    const int y = state_rank(*(struct api_object *const *)b);

    return x != y ? x - y : by_age(a, b);
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = progress_total(*(struct api_object *const *)a);
    const int64_t y = progress_total(*(struct api_object *const *)b);

    return x != y ? (x > y ? -1 : 1) : by_state(a, b);
}

static int board_compare_names(const void *a, const void *b)
{
    return hk_str_cmp((*(struct api_object *const *)a)->name,
                      (*(struct api_object *const *)b)->name);
}

static struct list_set sorted_jobs(const struct board *b, struct hk_arena *mem)
{
    static int (*const orders[BOARD_NSORTS])(const void *, const void *) = {
        [BOARD_BY_STATE] = by_state,
        [BOARD_BY_AGE] = by_age,
        [BOARD_BY_SIZE] = by_size,
        [BOARD_BY_NAME] = board_compare_names,
    };
    struct api_object **at = hk_arena_array(mem, b->jobs.n + 1, sizeof(struct api_object *));

    if (b->jobs.n > 0) {
        memcpy(at, b->jobs.at, b->jobs.n * sizeof(struct api_object *));
        qsort(at, b->jobs.n, sizeof(struct api_object *), orders[b->sort]);
    }
    return (struct list_set){at, b->jobs.n};
}

static void add_job(const struct board *b, const struct api_object *job,
                    const struct list_more *groups, struct grid *g)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct json *root = &job->root;

    if (b->namespaces) {
        grid_add(g, job->ns);
    }
    grid_add(g, job->name);
    grid_add(g, json_str_at(root, "spec.queue"));
    add_state(progress_phase(job), g);
    term_bar(&(struct term){0}, json_int_at(root, "status.succeeded"), progress_total(job), BAR,
             &text);
    grid_add(g, hk_buf_str(&text));
    grid_hue(g, term_phase_hue(progress_phase(job)));
    grid_addf(g, "%lld", (long long)json_int_at(root, "status.running"));
    hk_buf_clear(&text);
    show_age(json_at(root, "metadata.creationTimestamp"), b->now_ns, &text);
    grid_add(g, hk_buf_str(&text));
    hk_buf_clear(&text);
    list_job_why(job, groups, &text);
    grid_add(g, hk_buf_str(&text));
    grid_hue(g, TERM_DIM);
}

static void board_write_jobs(const struct board *b, uint32_t most, const struct term *t,
                             struct hk_buf *out)
{
    HK_AUTO(grid_fini) struct grid g = {0};
    HK_AUTO(list_more_fini) struct list_more groups = {0};
    const struct list_set jobs = sorted_jobs(b, &g.mem);

    list_more_init(&groups, API_PODGROUP, b->groups);
    if (b->namespaces) {
        grid_head(&g, "NAMESPACE", false);
    }
    grid_head(&g, "JOB", false);
    grid_head(&g, "QUEUE", false);
    grid_head(&g, "PHASE", false);
    grid_head(&g, "DONE", false);
    grid_head(&g, "RUN", true);
    grid_head(&g, "AGE", false);
    grid_head(&g, "WHY", false);
    for (uint32_t i = 0; i < jobs.n && i < most; i++) {
        add_job(b, jobs.at[i], &groups, &g);
    }
    write_table(&g, UINT32_MAX, t, out);
    if (jobs.n > most) {
        hk_buf_addf(out, "... and %u more\n", jobs.n - most);
    }
}

/* ---- the frame ---- */

static void write_help(struct hk_buf *out)
{
    hk_buf_adds(out,
                "hekla top\n\n"
                "  q   quit\n"
                "  s   sort the jobs by state, age, size, name\n"
                "  ?   this page, and back\n\n"
                "Bars show what pods asked for of what there is, as schedulers count. How much\n"
                "of it they use at the moment is not known to this API.\n");
}

void board_write(const struct board *b, const struct term *t, struct hk_buf *out)
{
    HK_AUTO(list_more_fini) struct list_more pods = {0};
    const uint32_t queues = t->is ? HK_MIN(b->queues.n, QUEUES_MOST) : b->queues.n;
    const uint32_t nodes = t->is ? HK_MIN(b->nodes.n, NODES_MOST) : b->nodes.n;
    const uint32_t around = LINES_AROUND + queues + nodes + 2;
    const uint32_t left = t->rows > around ? t->rows - around : 1;

    if (b->help) {
        write_help(out);
        return;
    }
    list_more_init(&pods, API_POD, b->pods);
    write_top(b, &pods, t, out);
    board_write_queues(b, queues, t, out);
    write_nodes(b, &pods, nodes, t, out);
    board_write_jobs(b, t->is ? left : UINT32_MAX, t, out);
    if (b->keys) {
        hk_buf_addc(out, '\n');
        HK_AUTO(hk_buf_fini) struct hk_buf line = {0};
        hk_buf_addf(&line,
                    "q quit  s sort (%s)  ? help   bars: what was asked for, not what is used",
                    sort_names[b->sort]);
        term_paint(t, TERM_DIM, hk_str_head(hk_buf_str(&line), t->columns), out);
        hk_buf_addc(out, '\n');
    }
}

void board_change(struct hk_str before, struct hk_str after, struct hk_buf *out)
{
    struct hk_str old, now;
    unsigned row = 1;

    if (before.n == 0) {
        hk_buf_adds(out, "\033[2J");
    }
    for (; after.n > 0; row++) {
        const bool had = before.n > 0 && hk_str_cut(&before, '\n', &old);

        hk_str_cut(&after, '\n', &now);
        if (!had || !hk_str_eq(old, now)) {
            hk_buf_addf(out, "\033[%u;1H%.*s\033[K", row, HK_FMT(now));
        }
    }
    hk_buf_addf(out, "\033[%u;1H\033[J", row);
}
