// SPDX-License-Identifier: Apache-2.0
// hekla history: shows the results of past jobs.
#include "cli/past.h"
#include "codec/yaml.h"
#include "user/user.h"

#include <stdlib.h>
#include <unistd.h>

struct history_args {
    struct user_opts user;
    const char *name, *queue;
    struct verb_output output;
    int64_t since_ns; /* 0: all */
};

static const struct option_row options[] = {
    ROW_DURATION(0, "since", struct history_args, since_ns, 1, NULL,
                 "Only jobs that have ended within this time, such as 90m or 24h."),
    ROW_TEXT('q', "queue", "QUEUE", struct history_args, queue, NULL, "Only jobs of this queue."),
    ROW_INCLUDE(struct history_args, output, verb_output_options),
    ROW_INCLUDE(struct history_args, user, user_namespace_options),
    ROW_INCLUDE(struct history_args, user, user_all_options),
    ROW_INCLUDE(struct history_args, user, user_server_options),
    ROW_ARGUMENT("JOB", struct history_args, name),
    ROW_END,
};

static void history_write_record(const struct json *v, enum output as, struct hk_buf *out)
{
    if (as == OUTPUT_JSON) {
        json_write_pretty(v, 4, out);
    } else {
        yaml_write(v, out);
    }
}

/* ---- list of jobs ---- */

static bool history_is_wanted(const struct history_args *a, const struct past *p, int64_t now_ns)
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

static void history_write_all(const struct history_args *a, const struct past *all, uint32_t n,
                              struct hk_arena *mem, struct hk_buf *out)
{
    HK_AUTO(grid_fini) struct grid g = {0};
    const struct term t = term_of(STDOUT_FILENO);
    struct json list = json_make_array();

    if (a->output.as != OUTPUT_TEXT) {
        for (uint32_t i = 0; i < n; i++) {
            json_push(&list, mem, past_json(&all[i], mem));
        }
        history_write_record(&list, a->output.as, out);
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
    HK_AUTO(port_answer_fini) struct port_answer jobs = {0};
    const int rc = user_list(u, API_JOB, u->ns, NULL, &jobs, err);
    uint32_t n = 0;

    if (rc < 0) {
        return rc;
    }
    struct past *all = hk_arena_array(&u->mem, jobs.objects.len + 1, sizeof(*all));
    for (uint32_t i = 0; i < jobs.objects.len; i++) {
        const struct past p = past_of(jobs.objects.at[i], now_ns);
        if (history_is_wanted(a, &p, now_ns)) {
            all[n++] = p;
        }
    }
    if (n > 1) {
        qsort(all, n, sizeof(*all), by_end);
    }
    history_write_all(a, all, n, &u->mem, out);
    return 0;
}

/* ---- one job ---- */

static int show_one(struct user *u, const struct history_args *a, int64_t now_ns,
                    struct hk_buf *out, struct hk_err *err)
{
    HK_AUTO(port_answer_fini) struct port_answer job = {0}, events = {0};
    struct hk_err none = {0};
    const int rc = user_get(u, API_JOB, a->name, &job, err);

    if (rc < 0) {
        return rc;
    }
    const struct past p = past_of(job.objects.at[0], now_ns);
    if (a->output.as != OUTPUT_TEXT) {
        const struct json v = past_json(&p, &u->mem);
        history_write_record(&v, a->output.as, out);
        return 0;
    }
    /* Without permission for events, show the rest. */
    if (user_list(u, API_EVENT, u->ns, NULL, &events, &none) < 0) {
        verb_complain("history: cannot read the events of the job: %s", none.text);
    }
    const struct term t = term_of(STDOUT_FILENO);
    const struct list_set set = {events.objects.at, events.objects.len};
    past_page(&p, &set, &t, out);
    return 0;
}

/* ---- the verb ---- */

static int history_run(const struct verb *v, int argc, char **argv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct hk_clock *clock = hk_clock_system();
    struct history_args a = {0};
    struct user u = {0};
    struct hk_err err = {0};
    int rc = verb_parse(v, argc, argv, &a);

    if (rc != 0) {
        return user_parsed(rc);
    }
    rc = user_open(&u, &a.user, &err);
    if (rc == 0) {
        const int64_t now_ns = clock->wall_ns(clock);
        a.name = a.name ? user_name(a.name) : NULL;
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
    .about = "show what happened to jobs: waiting, run time, retries, exit codes",
    .options = options,
    .text = "Without an argument, lists the jobs that have ended, in the order in which they "
            "ended: when they were queued, started and ended, how long they waited and ran, how "
            "often they were restarted, how many pods were evicted, and the exit code.\n"
            "With the name of a job, ended or not, also shows the phases of the job, each attempt "
            "of its pods with node, time, exit code and reason, and the events about it. The "
            "record is part of the job: it outlives the pods, and is deleted with the job. For "
            "jobs with very many pods, failures are kept first.",
    .rest = "EXAMPLES\n"
            "           hekla history --since 24h\n"
            "           hekla history train -o json\n\n" USER_EXIT_STATUS,
    .run = history_run,
};
