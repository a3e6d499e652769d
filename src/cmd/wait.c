// SPDX-License-Identifier: Apache-2.0
// hekla wait: waits until jobs reach the requested state, or can no longer reach it.
#include "cmd/wait.h"

#include "api/vcjob.h"
#include "cli/progress.h"
#include "codec/timefmt.h"

#include <strings.h>
#include <unistd.h>

#define CONDITION "condition="

enum { INTERRUPTED = 130, MAX_LINES = 10 };

/* ---- goals ---- */

enum state { WAITING, REACHED, MISSED };

/* The phase with that name, ignoring case; "": none. */
static const char *wait_phase_of(const char *word)
{
    for (int p = API_JOB_PENDING; p < API_JOB_NPHASES; p++) {
        if (strcasecmp(api_job_phase_name((enum api_job_phase)p), word) == 0) {
            return api_job_phase_name((enum api_job_phase)p);
        }
    }
    return "";
}

static bool is_condition(const char *goal)
{
    return strncmp(goal, CONDITION, strlen(CONDITION)) == 0;
}

int wait_check(const char *goal, struct hk_err *err)
{
    const char *word = is_condition(goal) ? goal + strlen(CONDITION) : goal;

    if (strcmp(goal, "ended") == 0 || strcmp(goal, "deleted") == 0 ||
        wait_phase_of(word)[0] != '\0') {
        return 0;
    }
    return hk_fail(
        err, HK_EINVAL,
        "option --for is '%s', want completed, running, ended, deleted, another phase of jobs "
        "or condition=PHASE",
        goal);
}

/* Whether the job has been in that phase. */
static bool has_been(const struct api_object *job, const char *phase)
{
    const struct json *list = json_at(&job->root, "status.conditions");

    for (uint32_t i = 0; json_item(list, i); i++) {
        if (hk_str_is(json_str(json_get(json_item(list, i), "status"), HK_STR("")), phase)) {
            return true;
        }
    }
    return hk_str_is(progress_phase(job), phase);
}

static bool is_at(const struct api_object *job, const char *goal)
{
    const struct hk_str phase = progress_phase(job);

    if (is_condition(goal)) {
        return has_been(job, wait_phase_of(goal + strlen(CONDITION)));
    }
    if (strcmp(goal, "ended") == 0) {
        return progress_is_over(job);
    }
    /* A finished job has been running, at least briefly. */
    return hk_str_is(phase, wait_phase_of(goal)) ||
           (strcasecmp(goal, "running") == 0 &&
            (hk_str_is(phase, "Completed") || hk_str_is(phase, "Completing")));
}

static enum state wait_evaluate(const struct api_object *job, const char *goal)
{
    const bool deleted = strcmp(goal, "deleted") == 0;

    if (!job) {
        return deleted ? REACHED : MISSED;
    }
    if (deleted) {
        return WAITING;
    }
    if (is_at(job, goal)) {
        return REACHED;
    }
    return progress_is_over(job) ? MISSED : WAITING;
}

/* ---- waiting ---- */

struct wait {
    struct user *u;
    const struct wait_opts *o;
    const char *const *names;
    uint32_t n;
    enum state *states;
    struct live jobs;
    struct term term;
    uint32_t shown;
};

static struct api_object *job_at(const struct wait *w, uint32_t i)
{
    return live_find(&w->jobs, hk_str(w->u->ns), hk_str(w->names[i]));
}

static void wait_print_line(const struct wait *w, uint32_t i)
{
    const struct api_object *job = job_at(w, i);
    const struct hk_str phase = job ? progress_phase(job) : HK_STR("Deleted");

    if (!w->o->quiet) {
        printf("%s %.*s\n", w->names[i], HK_FMT(phase));
        fflush(stdout);
    }
}

static void wait_draw(struct wait *w)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    term_rewind(&w->term, w->shown, &out);
    w->shown = 0;
    for (uint32_t i = 0; w->term.is && i < w->n && w->shown < MAX_LINES; i++) {
        const struct api_object *job = job_at(w, i);
        if (job && w->states[i] == WAITING) {
            progress_write(&w->term, job, &out);
            w->shown++;
        }
    }
    fwrite(hk_buf_str(&out).s, 1, out.len, stderr);
    fflush(stderr);
}

static void wait_erase(struct wait *w)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    term_rewind(&w->term, w->shown, &out);
    w->shown = 0;
    fwrite(hk_buf_str(&out).s, 1, out.len, stderr);
    fflush(stderr);
}

/* Checks the waiting jobs; returns true when the wait is over. */
static bool wait_read_job(struct wait *w)
{
    uint32_t reached = 0, settled = 0;

    for (uint32_t i = 0; i < w->n; i++) {
        if (w->states[i] == WAITING) {
            w->states[i] = wait_evaluate(job_at(w, i), w->o->goal);
            if (w->states[i] != WAITING) {
                wait_erase(w);
                wait_print_line(w, i);
            }
        }
        reached += w->states[i] == REACHED;
        settled += w->states[i] != WAITING;
    }
    return settled == w->n || (w->o->any && reached > 0);
}

static int result(const struct wait *w)
{
    uint32_t reached = 0;

    for (uint32_t i = 0; i < w->n; i++) {
        reached += w->states[i] == REACHED;
    }
    return reached == w->n || (w->o->any && reached > 0) ? USER_OK : USER_FAILED;
}

static int time_left(int64_t end_ns)
{
    struct hk_clock *clock = hk_clock_system();

    if (end_ns == 0) {
        return -1;
    }
    const int64_t left_ns = end_ns - clock->mono_ns(clock);
    return (int)HK_MIN(HK_MAX((left_ns + 999999) / 1000000, 0), 3600 * 1000);
}

static int wait_step(struct wait *w, int *ret, struct hk_err *err)
{
    struct hk_clock *clock = hk_clock_system();
    struct live *const all[] = {&w->jobs};
    const int64_t end_ns = w->o->timeout_ns > 0 ? clock->mono_ns(clock) + w->o->timeout_ns : 0;
    int rc = 0;

    while (rc == 0) {
        if (w->jobs.feed.synced && w->jobs.dirty) {
            w->jobs.dirty = false;
            if (wait_read_job(w)) {
                *ret = result(w);
                return 0;
            }
            wait_draw(w);
        }
        const int left_ms = time_left(end_ns);
        if (left_ms == 0 || w->u->interrupted) {
            wait_erase(w);
            *ret = left_ms == 0 ? USER_TIMEOUT : INTERRUPTED;
            return 0;
        }
        rc = live_turn(w->u, all, 1, left_ms, err);
    }
    return rc;
}

int wait_jobs(struct user *u, const char *const *names, uint32_t n, const struct wait_opts *o,
              int *ret, struct api_object **ret_job, struct hk_err *err)
{
    struct wait w = {.u = u, .o = o, .names = names, .n = n, .term = term_of(STDERR_FILENO)};
    const char *field = n == 1 ? hk_arena_printf(&u->mem, "metadata.name=%s", names[0]) : NULL;

    w.states = hk_arena_array(&u->mem, n, sizeof(*w.states));
    memset(w.states, 0, n * sizeof(*w.states));
    live_init(&w.jobs, u, &(struct live_opts){.kind = API_JOB, .ns = u->ns, .field = field});
    const int rc = wait_step(&w, ret, err);
    if (ret_job) {
        struct api_object *job = job_at(&w, 0);
        *ret_job = job ? api_object_ref(job) : NULL;
    }
    live_fini(&w.jobs);
    return rc;
}

/* ---- the verb ---- */

struct wait_args {
    struct user_opts user;
    struct wait_opts wait;
    struct option_list names;
};

static int wait_parse_goal(void *at, const struct option_row *row, const char *value,
                           struct hk_err *err)
{
    *(const char **)at = value;
    return wait_check(value, err);
}

static const struct option_row options[] = {
    ROW_CALL(0, "for", "GOAL", struct wait_args, wait.goal, wait_parse_goal, "completed",
             "What to wait for: completed, running, ended (in any way), deleted, any other phase "
             "of jobs, or condition=PHASE for a phase that the job has been in at any time."),
    ROW_DURATION(0, "timeout", struct wait_args, wait.timeout_ns, 1, NULL,
                 "Give up after this time, such as 90s or 1h30m. Without this option the command "
                 "never gives up."),
    ROW_FLAG_OFF(0, "all", struct wait_args, wait.any,
                 "Wait until every job has reached the goal. This is the default."),
    ROW_FLAG(0, "any", struct wait_args, wait.any,
             "Wait until one of the jobs has reached the goal."),
    ROW_FLAG('q', "quiet", struct wait_args, wait.quiet,
             "Print nothing; the exit status is the answer."),
    ROW_INCLUDE(struct wait_args, user, user_namespace_options),
    ROW_INCLUDE(struct wait_args, user, user_server_options),
    ROW_ARGUMENTS("JOB", struct wait_args, names),
    ROW_END,
};

/* A missing job is an error, unless the goal is its deletion. */
static int wait_check_names(struct user *u, const struct wait_args *a, struct hk_err *err)
{
    for (uint32_t i = 0; strcmp(a->wait.goal, "deleted") != 0 && i < a->names.len; i++) {
        HK_AUTO(answer_fini) struct answer job = {0};
        const int rc = user_get(u, API_JOB, a->names.at[i], &job, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int wait_as_asked(struct user *u, const struct wait_args *a, int *ret, struct hk_err *err)
{
    int rc = wait_check_names(u, a, err);

    rc = rc < 0 ? rc : wait_jobs(u, a->names.at, a->names.len, &a->wait, ret, NULL, err);
    if (rc == 0 && *ret == USER_TIMEOUT) {
        verb_complain(
            "wait: time is up and the goal is not reached ('hekla jobs' shows why a job waits)");
    }
    return rc;
}

static int wait_run(const struct verb *v, int argc, char **argv)
{
    struct wait_args a = {0};
    struct user u;
    struct hk_err err = {0};
    int status = USER_TROUBLE;
    int rc = verb_parse(v, argc, argv, &a);

    if (rc != 0) {
        status = user_parsed(rc);
    } else if (a.names.len == 0) {
        verb_complain("wait: the name of a job is missing (see 'hekla jobs')");
    } else {
        user_names(&a.names);
        rc = user_open(&u, &a.user, &err);
        rc = rc < 0 ? rc : wait_as_asked(&u, &a, &status, &err);
        status = rc < 0 ? user_fail(v, rc, &err) : status;
        user_close(&u);
    }
    hk_vec_fini(&a.names);
    return status;
}

const struct verb verb_wait = {
    .name = "wait",
    .args = "JOB...",
    .about = "wait until jobs have completed, run, or have reached another phase",
    .options = options,
    .text = "Returns when every job has reached the goal, or cannot reach it any more because it "
            "has ended otherwise; with --any, when the first job has reached it. Prints the name "
            "and the phase of each job that gets there. On a terminal it shows the progress of "
            "the jobs.\n"
            "The command watches the jobs; it does not poll.",
    .rest = "EXIT STATUS\n"
            "       0 when the goal was reached, 1 when a job ended otherwise (failed, aborted,\n"
            "       deleted), 2 for bad usage, no server or no such job, 124 when time was up.\n\n"
            "EXAMPLES\n"
            "           hekla wait train --timeout 2h && hekla logs train\n"
            "           hekla wait a b c --any --for running\n",
    .run = wait_run,
};
