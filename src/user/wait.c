// SPDX-License-Identifier: Apache-2.0
// Waits until jobs reach the requested state, or can no longer reach it.
#include "user/wait.h"

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
