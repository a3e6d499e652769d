// SPDX-License-Identifier: Apache-2.0
// hekla history: what became of jobs.
#include "cli/past.h"
#include "cmd/user.h"
#include "codec/timefmt.h"
#include "codec/yaml.h"

#include <stdlib.h>
#include <unistd.h>

struct history_args {
    struct user_opts user;
    const char *name, *output, *queue;
    int64_t since_ns; /* 0: all */
};

static const struct option_row options[] = {
    {0, "since", "DURATION", NULL,
     "Only jobs that have ended within that time, such as 90m or 24h."},
    {'q', "queue", "QUEUE", NULL, "Only jobs of this queue."},
    {'o', "output", "FORMAT", "json yaml", "The record for programs, attempts included."},
    USER_OPTION_NAMESPACE,
    USER_OPTION_ALL,
    USER_OPTIONS_SERVER,
};

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct history_args *a = ctx;

    if (!row) {
        if (a->name) {
            return hk_fail(err, HK_EINVAL, "unexpected '%s', want at most one JOB", value);
        }
        a->name = user_name(value);
    } else if (strcmp(row->name, "since") == 0) {
        if (duration_parse(hk_str(value), &a->since_ns, NULL) < 0 || a->since_ns <= 0) {
            return hk_fail(err, HK_EINVAL, "--since is '%s', want a duration such as 90m or 24h",
                           value);
        }
    } else if (strcmp(row->name, "output") == 0) {
        a->output = value;
    } else if (strcmp(row->name, "queue") == 0) {
        a->queue = value;
    } else {
        user_take(&a->user, row, value);
    }
    return 0;
}

static void write_as(const struct json *v, const char *format, struct hk_buf *out)
{
    if (strcmp(format, "json") == 0) {
        json_write_pretty(v, 4, out);
    } else {
        yaml_write(v, out);
    }
}

/* ---- many ---- */

static bool is_wanted(const struct history_args *a, const struct past *p, int64_t now_ns)
{
    return p->over && (a->since_ns == 0 || now_ns - p->ended_ns <= a->since_ns) &&
           (!a->queue ||
            hk_str_is(json_str(json_at(&p->job->root, "spec.queue"), HK_STR("")), a->queue));
}

static int by_end(const void *a, const void *b)
{
    const struct past *x = a, *y = b;

    if (x->ended_ns != y->ended_ns) {
        return x->ended_ns < y->ended_ns ? -1 : 1;
    }
    return hk_str_cmp(x->job->name, y->job->name);
}

static void write_all(const struct history_args *a, const struct past *all, uint32_t n,
                      struct hk_arena *mem, struct hk_buf *out)
{
    HK_AUTO(grid_fini) struct grid g = {0};
    const struct term t = term_of(STDOUT_FILENO);
    struct json list = json_make_array();

    if (a->output) {
        for (uint32_t i = 0; i < n; i++) {
            json_push(&list, mem, past_json(&all[i], mem));
        }
        write_as(&list, a->output, out);
        return;
    }
    if (n == 0) {
        fprintf(stderr, "hekla: no job has ended%s\n", a->since_ns > 0 ? " within that time" : "");
        return;
    }
    past_heads(a->user.all_namespaces, &g);
    for (uint32_t i = 0; i < n; i++) {
        past_row(&all[i], a->user.all_namespaces, &g);
    }
    grid_write(&g, &t, out);
}

static int show_all(struct user *u, const struct history_args *a, int64_t now_ns,
                    struct hk_buf *out, struct hk_err *err)
{
    HK_AUTO(answer_fini) struct answer jobs = {0};
    const int rc = user_list(u, API_JOB, u->ns, NULL, &jobs, err);
    uint32_t n = 0;

    if (rc < 0) {
        return rc;
    }
    struct past *all = hk_arena_array(&u->mem, jobs.objects.len + 1, sizeof(*all));
    for (uint32_t i = 0; i < jobs.objects.len; i++) {
        const struct past p = past_of(jobs.objects.at[i], now_ns);
        if (is_wanted(a, &p, now_ns)) {
            all[n++] = p;
        }
    }
    if (n > 1) {
        qsort(all, n, sizeof(*all), by_end);
    }
    write_all(a, all, n, &u->mem, out);
    return 0;
}

/* ---- one ---- */

static int show_one(struct user *u, const struct history_args *a, int64_t now_ns,
                    struct hk_buf *out, struct hk_err *err)
{
    HK_AUTO(answer_fini) struct answer job = {0}, events = {0};
    struct hk_err none = {0};
    const int rc = user_get(u, API_JOB, a->name, &job, err);

    if (rc < 0) {
        return rc;
    }
    const struct past p = past_of(job.objects.at[0], now_ns);
    if (a->output) {
        const struct json v = past_json(&p, &u->mem);
        write_as(&v, a->output, out);
        return 0;
    }
    /* Events are an extra: who may not see them still sees the rest. */
    if (user_list(u, API_EVENT, u->ns, NULL, &events, &none) < 0) {
        verb_complain("history: no events: %s", none.text);
    }
    const struct term t = term_of(STDOUT_FILENO);
    const struct list_set set = {events.objects.at, events.objects.len};
    past_page(&p, &set, &t, out);
    return 0;
}

/* ---- the verb ---- */

static int run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_clock *clock = hk_clock_system();
    struct history_args a = {0};
    struct user u = {0};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, take, &a);

    if (rc != 0) {
        return user_parsed(rc);
    }
    rc = user_open(&u, &a.user, &err);
    if (rc == 0) {
        const int64_t now_ns = clock->wall_ns(clock);
        rc = a.name ? show_one(&u, &a, now_ns, &out, &err) : show_all(&u, &a, now_ns, &out, &err);
    }
    user_close(&u);
    if (rc < 0) {
        return user_fail(v, rc, &err);
    }
    return verb_print(&out) == EXIT_OK ? USER_OK : USER_TROUBLE;
}

const struct verb verb_history = {
    .name = "history",
    .args = "[JOB]",
    .names = "jobs",
    .about = "tell what became of jobs: waited, ran, retries, evictions, exit codes",
    .options = options,
    .noption = HK_LEN(options),
    .text = "Without an argument, the jobs that have ended, in the order in which they did: when "
            "they were queued, started and ended, how long they waited and ran, how often they "
            "were started again, how many pods were evicted, and the exit code.\n"
            "With the name of a job, ended or not, also the phases it went through, each attempt "
            "of its pods with node, time, exit code and reason, and what was said about it. The "
            "record is part of the job: it outlives its pods, and goes when the job is deleted. "
            "Of jobs with very many pods the failures are kept first.",
    .rest = "EXAMPLES\n"
            "           hekla history --since 24h\n"
            "           hekla history train -o json\n\n" USER_EXIT_STATUS,
    .run = run,
};
