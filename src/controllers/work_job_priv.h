// SPDX-License-Identifier: Apache-2.0
// One pass over a batch/v1 Job.
#pragma once

#include "controllers/work_priv.h"

enum bjob_pod_state {
    BJOB_POD_ACTIVE,
    BJOB_POD_ENDING, /* being deleted, and not counted (yet) */
    BJOB_POD_SUCCEEDED,
    BJOB_POD_FAILED,
    BJOB_POD_IGNORED, /* failed in a way the job's policy does not count */
};

/* How a job ends; NULL reason: it does not yet. */
struct bjob_verdict {
    bool failed;
    const char *reason;
    struct hk_str message;
};

struct bjob_pass {
    struct turn *t;
    struct json *root;
    const struct json *spec, *status;
    struct work_pods pods;
    uint8_t *states; /* enum bjob_pod_state, by pod */
    int64_t parallelism;
    int64_t completions; /* -1: as soon as one has succeeded and none is active */
    bool indexed, suspended;
    bool replaces_failed_only; /* a pod that ends is only replaced once it has */
    struct bjob_verdict verdict;

    /* Filled by bjob_count. */
    int64_t active, ready, ending, succeeded, failed;
    bool *done;                                /* indexed: by index */
    struct json left_succeeded, left_failed;   /* uids that are yet to be counted */
    int64_t counted_succeeded, counted_failed; /* as the status shall say */
};

struct bjob_failure {
    bool ignored;        /* the policy says not to count it */
    struct hk_str fatal; /* the policy ends the job: why; "" no */
};

/* What the job's podFailurePolicy says of a failed pod that is still tracked. */
struct bjob_failure bjob_judge_failure(const struct bjob_pass *p, const struct work_pod *pod);

/* Judges every pod and counts them. Pods that ended go through status.uncountedTerminatedPods, so
 * that each is counted once whatever dies in between:
 *
 *   it ended -> its uid is listed -> the finalizer is taken from it -> the uid leaves the list and
 *   the number grows
 *
 * Of indexed jobs successes are known by their indexes instead. */
void bjob_count(struct bjob_pass *p);
/* Asks for the finalizers of pods that have been listed; whether there were any. */
bool bjob_release(struct bjob_pass *p);
/* The status as counted. */
void bjob_put_counts(struct bjob_pass *p, struct json *status);
/* Takes the finalizer from a pod without counting it. */
bool bjob_release_pod(struct turn *t, struct hk_str pod_name);
