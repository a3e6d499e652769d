// SPDX-License-Identifier: Apache-2.0
// hekla-bench: measures the engine on generated clusters and prints a table, with the bars to reach
// beside what was measured. It fails only when a counter does not hold (a steady cycle called the
// allocator), never because a machine is slow.
//
//   hekla-bench [--only ID]... [--runs N] [--out FILE]   all sizes in full; writes build/bench.json
//   hekla-bench --quick                                  small sizes, one TAP point per counter
//   hekla-bench --list                                   what there is
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEFAULT_RUNS = 3, MAX_ONLY = 32 };

struct options {
    bool quick, list;
    int64_t runs;
    const char *out;
    const char *only[MAX_ONLY];
    uint32_t nonly;
};

/* ---- running ---- */

static bool is_wanted(const struct options *o, const char *id)
{
    for (uint32_t k = 0; k < o->nonly; k++) {
        if (strcmp(o->only[k], id) == 0) {
            return true;
        }
    }
    return o->nonly == 0;
}

/* False when the child did not come to a good end. */
static bool run_in_child(const struct options *o, const struct workload *w, struct results *out)
{
    struct result r;
    int fd[2], status = 0;

    hk_assert(pipe(fd) == 0);
    fflush(stdout);
    const pid_t pid = fork();
    hk_assert(pid >= 0);
    if (pid == 0) {
        close(fd[0]);
        struct sink sink = {.fd = fd[1]};
        bench_run(w, o->quick, (uint32_t)o->runs, &sink);
        _exit(0);
    }
    close(fd[1]);
    while (read(fd[0], &r, sizeof(r)) == (ssize_t)sizeof(r)) {
        hk_vec_push(out, r);
    }
    close(fd[0]);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static const struct result *find(const struct results *all, const char *id, const char *metric)
{
    for (uint32_t k = 0; k < all->len; k++) {
        if (strcmp(all->at[k].id, id) == 0 && strcmp(all->at[k].metric, metric) == 0) {
            return &all->at[k];
        }
    }
    return NULL;
}

/* How much slower the same work is when many pods already run (P10). */
static bool add_slowdown(struct results *all)
{
    const struct result *alone = find(all, "basic", "cycle");
    const struct result *beside = find(all, "basic-running", "cycle");

    if (!alone || !beside) {
        return false;
    }
    const struct result r = {.id = "basic-running",
                             .metric = "slowdown",
                             .unit = "%",
                             .bar = "P10 <= 5",
                             .value = (beside->value / alone->value - 1) * 100,
                             .min = (beside->min / alone->min - 1) * 100,
                             .max = (beside->max / alone->max - 1) * 100,
                             .runs = beside->runs};
    hk_vec_push(all, r);
    return true;
}

/* ---- showing ---- */

static void list_all(void)
{
    for (uint32_t k = 0; k < nworkload; k++) {
        const struct workload *w = &workloads[k];
        printf("%-18s %s (%u nodes, %u pods)\n", w->id, w->about, w->nodes, w->pods);
    }
}

/* ---- the whole ---- */

/* A TAP point per workload: it ran to its end and its counters hold. */
static bool judge(const struct results *all, uint32_t from, const char *id, bool ran,
                  uint32_t point)
{
    bool ok = ran, counted = false;

    for (uint32_t k = from; k < all->len; k++) {
        counted = counted || all->at[k].asserted;
        ok = ok && (!all->at[k].asserted || all->at[k].value == 0);
    }
    if (point > 0) {
        printf("%sok %u - %s: %s\n", ok ? "" : "not ", point, id,
               counted ? "steady cycles keep off the allocator"
                       : "runs to its end, books balanced");
    } else if (!ran) {
        printf("%-18s did not come to its end\n", id);
    }
    return ok;
}

static bool run_all(const struct options *o, struct results *all)
{
    uint32_t point = 0;
    bool ok = true;

    for (uint32_t k = 0; k < nworkload; k++) {
        const uint32_t from = all->len;
        if (!is_wanted(o, workloads[k].id)) {
            continue;
        }
        const bool ran = run_in_child(o, &workloads[k], all);
        for (uint32_t i = from; i < all->len; i++) {
            report_show(&all->at[i], o->quick ? "# " : "");
        }
        ok &= judge(all, from, workloads[k].id, ran, o->quick ? ++point : 0);
    }
    if (add_slowdown(all)) {
        report_show(&all->at[all->len - 1], o->quick ? "# " : "");
    }
    if (o->quick) {
        printf("1..%u\n", point);
    }
    return ok;
}

static bool parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--quick") == 0) {
            o->quick = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            o->list = true;
        } else if (more && strcmp(argv[i], "--only") == 0 && o->nonly < MAX_ONLY) {
            o->only[o->nonly++] = argv[++i];
        } else if (more && strcmp(argv[i], "--out") == 0) {
            o->out = argv[++i];
        } else if (!more || strcmp(argv[i], "--runs") != 0 ||
                   !hk_str_int(hk_str(argv[++i]), &o->runs) || o->runs < 1 || o->runs > 1000) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o = {.runs = DEFAULT_RUNS, .out = "build/bench.json"};
    struct results all = {0};

    if (!parse(argc, argv, &o)) {
        fprintf(stderr,
                "usage: hekla-bench [--quick] [--list] [--only ID]... [--runs N] [--out FILE]\n");
        return 2;
    }
    if (o.list) {
        list_all();
        return 0;
    }
    bool ok = run_all(&o, &all);
    if (!o.quick) {
        ok &= report_write_json(&all, o.out);
    }
    hk_vec_fini(&all);
    return !ok;
}
