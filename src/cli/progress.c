// SPDX-License-Identifier: Apache-2.0
// Shows the counts of a job's status as a line; derives an exit status from its attempts.
#include "cli/progress.h"

#include "api/vcjob.h"
#include "cli/show_priv.h"

enum { BAR_MIN_COLUMNS = 30, BAR_COLUMNS = 30, EXIT_MAX = 255 };

struct hk_str progress_phase(const struct api_object *job)
{
    const struct hk_str phase = json_str_at(&job->root, "status.state.phase");

    return phase.n > 0 ? phase : HK_STR("Pending");
}

bool progress_is_over(const struct api_object *job)
{
    static const enum api_job_phase last[] = {API_JOB_COMPLETED, API_JOB_FAILED, API_JOB_TERMINATED,
                                              API_JOB_ABORTED};
    const struct hk_str phase = progress_phase(job);

    for (size_t i = 0; i < HK_LEN(last); i++) {
        if (hk_str_is(phase, api_job_phase_name(last[i]))) {
            return true;
        }
    }
    return false;
}

int64_t progress_total(const struct api_object *job)
{
    const struct json *tasks = json_list_at(&job->root, "spec.tasks");
    int64_t n = 0;

    for (uint32_t i = 0; i < tasks->len; i++) {
        n += json_int_at(&tasks->items[i], "replicas");
    }
    return n;
}

/* The count in the status includes the retry that was refused; the attempts do not. */
int64_t progress_retries(const struct api_object *job)
{
    const struct json *attempts = json_list_at(&job->root, "status.attempts");
    int64_t most = 0;

    for (uint32_t i = 0; i < attempts->len; i++) {
        most = HK_MAX(most, json_int_at(&attempts->items[i], "retry"));
    }
    return progress_is_over(job) && attempts->len > 0
               ? most
               : json_int_at(&job->root, "status.retryCount");
}

static void progress_write_counts(const struct json *job, struct hk_buf *out)
{
    static const char *const counts[] = {"pending", "running", "failed", "terminating"};

    for (size_t i = 0; i < HK_LEN(counts); i++) {
        const int64_t n = json_int(json_get(json_get(job, "status"), counts[i]), 0);
        if (n > 0) {
            hk_buf_addf(out, "  %lld %s", (long long)n, counts[i]);
        }
    }
    const int64_t retries = json_int_at(job, "status.retryCount");
    if (retries > 0) {
        hk_buf_addf(out, "  retry %lld", (long long)retries);
    }
}

void progress_write(const struct term *t, const struct api_object *job, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf counts = {0};
    const struct hk_str phase = progress_phase(job);
    size_t used = job->name.n + phase.n + 4;

    progress_write_counts(&job->root, &counts);
    hk_buf_addf(out, "%.*s  ", HK_FMT(job->name));
    term_paint(t, term_phase_hue(phase), phase, out);
    hk_buf_adds(out, "  ");
    term_bar(t, json_int_at(&job->root, "status.succeeded"), progress_total(job),
             t->is && used + BAR_MIN_COLUMNS + counts.len < t->columns ? BAR_COLUMNS : 0, out);
    used += BAR_COLUMNS;
    if (!t->is || used + counts.len < t->columns) {
        hk_buf_addstr(out, hk_buf_str(&counts));
    }
    hk_buf_addc(out, '\n');
}

/* ---- failures ---- */

void progress_write_failure(const struct api_object *job, struct hk_buf *out)
{
    const struct json *a = api_job_first_failure(&job->root);

    if (!a) {
        hk_buf_addstr(out, json_str_at(&job->root, "status.state.message"));
        return;
    }
    const struct hk_str message = json_str_field(a, "message");
    hk_buf_addf(out, "%.*s-%lld: ", HK_FMT(json_str_field(a, "task")),
                (long long)json_int_at(a, "index"));
    if (message.n > 0) {
        hk_buf_addstr(out, message);
    } else {
        api_job_write_end(a, out);
    }
}

/* ---- the exit status ---- */

static bool is_same_task(const struct json *a, const struct json *b)
{
    return json_int_at(a, "index") == json_int_at(b, "index") &&
           hk_str_eq(json_str_field(a, "task"), json_str_field(b, "task"));
}

/* Only the latest attempt of a task counts. */
static bool is_outdone(const struct json *attempts, uint32_t at)
{
    for (uint32_t i = 0; i < attempts->len; i++) {
        const struct json *a = &attempts->items[at], *b = &attempts->items[i];
        const int64_t x = json_int_at(a, "retry"), y = json_int_at(b, "retry");
        if (i != at && is_same_task(a, b) && (y > x || (y == x && i > at))) {
            return true;
        }
    }
    return false;
}

int progress_exit_code(const struct api_object *job)
{
    const struct json *attempts = json_list_at(&job->root, "status.attempts");
    int64_t agreed = 0;

    if (hk_str_is(progress_phase(job), api_job_phase_name(API_JOB_COMPLETED))) {
        return 0;
    }
    for (uint32_t i = 0; i < attempts->len; i++) {
        const int64_t code = json_int_at(&attempts->items[i], "exitCode");
        if (code == 0 || is_outdone(attempts, i)) {
            continue;
        }
        if (agreed != 0 && agreed != code) {
            return 1;
        }
        agreed = code;
    }
    return agreed > 0 && agreed <= EXIT_MAX ? (int)agreed : 1;
}
