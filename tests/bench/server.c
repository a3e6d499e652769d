// SPDX-License-Identifier: Apache-2.0
// hekla-bench-server measures the API server, the built program as a process of its own, through
// TLS connections on loopback. It fails only when a counter does not hold (an event is missing, an
// idle server uses time), never because a machine is slow.
//
// hekla-bench-up is the same around `hekla up` as a whole: jobs, and what becomes of them.
//
//   hekla-bench-server [--only ID]... [--runs N] [--out FILE] [--dir DIR]
//                                in full; writes build/bench-server.json
//   hekla-bench-server --quick   small sizes, one TAP point per counter
//   hekla-bench-server --list    what there is
//
// The servers keep their data below DIR (default /var/tmp), which should be on a real disk: durable
// writes are measured.
#include "bench/server.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEFAULT_RUNS = 3, MAX_ONLY = 32 };

struct options {
    bool quick, list;
    int64_t runs;
    const char *out, *dir;
    const char *only[MAX_ONLY];
    uint32_t nonly;
};

/* ---- reporting ---- */

void server_report_all(struct server_bench *b, const char *id, const char *metric, const char *unit,
                       const char *bar, double *v, uint32_t n)
{
    const struct result r = report_median(id, metric, unit, bar, v, n);

    hk_vec_push(&b->all, r);
    report_show(&r, b->quick ? "# " : "");
}

void server_report(struct server_bench *b, const char *id, const char *metric, const char *unit,
                   const char *bar, double v)
{
    server_report_all(b, id, metric, unit, bar, &v, 1);
}

void server_check(struct server_bench *b, bool ok, const char *id, const char *promise, double saw)
{
    b->failed |= !ok;
    if (b->quick) {
        printf("%sok %u - %s: %s (%g)\n", ok ? "" : "not ", ++b->points, id, promise, saw);
    } else {
        printf("%-18s %s: %s (%g)\n", id, promise, ok ? "yes" : "NO", saw);
    }
    fflush(stdout);
}

void server_case_dir(const struct server_bench *b, const char *name, char dir[static 256])
{
    snprintf(dir, 256, "%s/%s", b->dir, name);
}

void server_start(struct server_bench *b, const char *id, struct server_proc *p)
{
    char dir[256];

    server_case_dir(b, id, dir);
    server_proc_hekla(p, b->hekla, dir);
}

/* ---- the whole ---- */

static bool is_wanted(const struct options *o, const char *id)
{
    for (uint32_t k = 0; k < o->nonly; k++) {
        if (strcmp(o->only[k], id) == 0) {
            return true;
        }
    }
    return o->nonly == 0;
}

/* Watchers need a descriptor each, here and in the server, which inherits the limit. */
static void raise_limits(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* The program built beside this one. */
static void find_hekla(char path[static PATH_MAX])
{
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    hk_assert(n > 0);
    self[n] = '\0';
    snprintf(path, PATH_MAX, "%.*s/hekla", PATH_MAX - 8, dirname(self));
}

static void run_all(struct server_bench *b, const struct options *o)
{
    for (uint32_t k = 0; k < nserver_case; k++) {
        const struct server_case *c = &server_cases[k];
        char dir[256];
        if (is_wanted(o, c->id)) {
            c->run(b, c->id);
            server_case_dir(b, c->id, dir);
            server_remove_tree(dir);
        }
    }
    if (b->quick) {
        printf("1..%u\n", b->points);
    }
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
        } else if (more && strcmp(argv[i], "--dir") == 0) {
            o->dir = argv[++i];
        } else if (!more || strcmp(argv[i], "--runs") != 0 ||
                   !hk_str_int(hk_str(argv[++i]), &o->runs) || o->runs < 1 || o->runs > 32) {
            return false;
        }
    }
    return true;
}

static void list_all(void)
{
    for (uint32_t k = 0; k < nserver_case; k++) {
        printf("%-18s %s\n", server_cases[k].id, server_cases[k].about);
    }
}

static bool measure(const struct options *o)
{
    char hekla[PATH_MAX];
    struct server_bench b = {.loop = net_loop_new(hk_clock_system()),
                             .hekla = hekla,
                             .quick = o->quick,
                             .runs = o->quick ? 1 : (uint32_t)o->runs};

    find_hekla(hekla);
    raise_limits();
    snprintf(b.dir, sizeof(b.dir), "%.100s/hekla-bench.XXXXXX", o->dir);
    if (!mkdtemp(b.dir)) {
        fprintf(stderr, "hekla-bench-server: cannot make a directory in '%s': %m\n", o->dir);
        return false;
    }
    run_all(&b, o);
    server_remove_tree(b.dir);
    bool ok = !b.failed;
    if (!o->quick) {
        ok &= report_write_json(&b.all, o->out);
    }
    hk_buf_fini(&b.pod_tail);
    hk_vec_fini(&b.all);
    net_loop_free(b.loop);
    return ok;
}

int main(int argc, char **argv)
{
    char out[64];
    struct options o = {.runs = DEFAULT_RUNS, .out = out, .dir = "/var/tmp"};

    snprintf(out, sizeof(out), "build/%.40s.json", program_invocation_short_name + sizeof("hekla"));
    if (!parse(argc, argv, &o)) {
        fprintf(stderr,
                "usage: %s [--quick] [--list] [--only ID]... [--runs N] [--out FILE] [--dir DIR]\n",
                program_invocation_short_name);
        return 2;
    }
    if (o.list) {
        list_all();
        return 0;
    }
    return !measure(&o);
}
