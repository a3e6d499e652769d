// SPDX-License-Identifier: Apache-2.0
// One pass over a batch/v1 Job.
#pragma once

#include "controllers/work_priv.h"

enum bjob_pod_state {
    BJOB_POD_ACTIVE,
    BJOB_POD_ENDING, /* being deleted, not counted (yet) */
    BJOB_POD_SUCCEEDED,
    BJOB_POD_FAILED,
    BJOB_POD_IGNORED, /* failed in a way the job's policy does not count */
};

/* In status.uncountedTerminatedPods. */
enum bjob_listed { BJOB_LISTED_SUCCEEDED = 1, BJOB_LISTED_FAILED = 2 };

/* How a job ends; NULL reason: it does not yet. */
struct bjob_verdict {
    bool failed;
    const char *reason;
    struct hk_str message;
};

struct bjob_pass {
    struct pass *t;
    struct json *root;
    const struct json *spec, *status;
    struct work_pods pods;
    uint8_t *states; /* enum bjob_pod_state, by pod */
    uint8_t *listed; /* by pod: how the stored status lists its uid, bits of enum bjob_listed */
    int64_t parallelism;
    int64_t completions; /* -1: complete when one succeeded and none is active */
    bool indexed, suspended;
    bool replaces_failed_only; /* replace a terminating pod only after it has ended */
    struct bjob_verdict verdict;

    /* Filled by bjob_count. */
    int64_t active, ready, ending, succeeded, failed;
    bool *done;                                /* indexed: by index */
    struct json left_succeeded, left_failed;   /* uids not yet counted */
    int64_t counted_succeeded, counted_failed; /* for the status to write */
};

struct bjob_failure {
    bool ignored;        /* the policy does not count it */
    struct hk_str fatal; /* why the policy fails the job; "": it does not */
};

/* Applies the job's podFailurePolicy to a failed pod that still has the tracking finalizer. */
struct bjob_failure bjob_apply_failure_policy(const struct bjob_pass *p,
                                              const struct work_pod *pod);

/* Classifies and counts all pods. Ended pods go through status.uncountedTerminatedPods, so that
 * each is counted exactly once, even after a crash:
 *
 *   the pod ends -> its uid is listed -> its finalizer is removed -> the uid leaves the list and
 *   the count grows
 *
 * For indexed jobs, successes are known by their completed indexes instead. */
void bjob_count(struct bjob_pass *p);
/* Requests removal of the finalizers of listed pods; returns whether there were any. */
bool bjob_release(struct bjob_pass *p);
/* Writes the counts into status. */
void bjob_put_counts(struct bjob_pass *p, struct json *status);
/* Removes the finalizer of a pod without counting the pod. */
bool bjob_release_pod(struct pass *t, struct hk_str pod_name);
