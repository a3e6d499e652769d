// SPDX-License-Identifier: Apache-2.0
// Lifecycle policies of jobs and tasks. The first invalid policy ends the check of the list; that
// "*" is the only event is checked at the end in any case.
#include "admission/vc_priv.h"

static const char *const valid_events[] = {"*",       "PodPending",    "PodFailed",  "PodEvicted",
                                           "Unknown", "TaskCompleted", "TaskFailed", "JobUpdated"};
static const char *const valid_actions[] = {"AbortJob",    "RestartJob",       "RestartTask",
                                            "RestartPod",  "RestartPartition", "TerminateJob",
                                            "CompleteJob", "ResumeJob"};

/* Events and exit codes used by earlier policies, and the errors found. */
struct policies {
    const char *path;
    struct hk_intern events;
    HK_VEC(int64_t) codes;
    struct hk_buf faults; /* one line each */
    uint32_t nfaults;
};

HK_PRINTF(2, 3) static bool blame(struct policies *p, const char *fmt, ...)
{
    va_list ap;

    hk_buf_adds(&p->faults, "\n\t* ");
    va_start(ap, fmt);
    hk_buf_vaddf(&p->faults, fmt, ap);
    va_end(ap);
    p->nfaults++;
    return false;
}

static bool vc_job_policy_is_in_list(struct hk_str word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (hk_str_is(word, list[i])) {
            return true;
        }
    }
    return false;
}

static bool blame_value(struct policies *p, struct hk_str value, const char *what)
{
    HK_AUTO(hk_buf_fini) struct hk_buf quoted = {0};

    json_write_str(value, &quoted);
    return blame(p, "%s: Invalid value: %s: invalid policy %s", p->path, quoted.data, what);
}

static bool check_event(struct policies *p, struct hk_str event, struct hk_str action)
{
    if (!vc_job_policy_is_in_list(event, valid_events, HK_LEN(valid_events))) {
        return blame_value(p, event, "event");
    }
    if (!vc_job_policy_is_in_list(action, valid_actions, HK_LEN(valid_actions))) {
        return blame_value(p, action, "action");
    }
    if (hk_intern_find(&p->events, event) != HK_NONE) {
        return blame(p, "duplicate event %.*s  across different policy", HK_FMT(event));
    }
    hk_intern(&p->events, event);
    return true;
}

/* The list comes before the single event; a duplicate within one policy is allowed. */
static bool check_events(struct policies *p, const struct json *policy)
{
    const struct json *events = json_get(policy, "events");
    const struct hk_str single = edit_str(policy, "event");
    const struct hk_str action = edit_str(policy, "action");
    struct hk_intern own = {0};
    bool ok = true;

    for (uint32_t i = 0; ok && i < edit_len(events); i++) {
        const struct hk_str event = json_str(json_item(events, i), HK_STR(""));
        if (event.n == 0 || hk_intern_find(&own, event) == HK_NONE) {
            hk_intern(&own, event);
            ok = check_event(p, event, action);
        }
    }
    if (ok && single.n > 0 && hk_intern_find(&own, single) == HK_NONE) {
        ok = check_event(p, single, action);
    }
    hk_intern_fini(&own);
    return ok;
}

static bool check_code(struct policies *p, int64_t code)
{
    if (code == 0) {
        return blame(p, "0 is not a valid error code");
    }
    for (uint32_t i = 0; i < p->codes.len; i++) {
        if (p->codes.at[i] == code) {
            return blame(p, "duplicate exitCode %lld", (long long)code);
        }
    }
    hk_vec_push(&p->codes, code);
    return true;
}

static bool check_policy(struct policies *p, const struct json *policy)
{
    const bool events = edit_str(policy, "event").n > 0 || edit_len(json_get(policy, "events")) > 0;
    const bool code = edit_has(policy, "exitCode");

    if (events && code) {
        return blame(p, "must not specify event and exitCode simultaneously");
    }
    if (!events && !code) {
        return blame(p, "either event and exitCode should be specified");
    }
    return events ? check_events(p, policy)
                  : check_code(p, json_int(json_get(policy, "exitCode"), 0));
}

static void vc_job_policy_write_list(struct hk_buf *out, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hk_buf_addf(out, "%s%s", i > 0 ? " " : "", list[i]);
    }
}

static void vc_job_policy_write_faults(struct vc *v, const struct policies *p)
{
    hk_buf_addf(&v->why, p->nfaults > 1 ? "%u errors occurred:" : "%u error occurred:", p->nfaults);
    hk_buf_addstr(&v->why, hk_buf_str(&p->faults));
    hk_buf_adds(&v->why, "\n\n valid events are [");
    vc_job_policy_write_list(&v->why, valid_events, HK_LEN(valid_events));
    hk_buf_adds(&v->why, "], valid actions are [");
    vc_job_policy_write_list(&v->why, valid_actions, HK_LEN(valid_actions));
    hk_buf_adds(&v->why, "];");
}

void vc_job_check_policies(struct vc *v, const struct json *policies, const char *path)
{
    struct policies p = {.path = path};
    bool ok = true;

    for (uint32_t i = 0; ok && i < edit_len(policies); i++) {
        ok = check_policy(&p, json_item(policies, i));
    }
    if (hk_intern_find(&p.events, HK_STR("*")) != HK_NONE && p.events.live > 1) {
        blame(&p, "if there's * here, no other policy should be here");
    }
    if (p.nfaults > 0) {
        vc_job_policy_write_faults(v, &p);
    }
    hk_intern_fini(&p.events);
    hk_vec_fini(&p.codes);
    hk_buf_fini(&p.faults);
}
