// SPDX-License-Identifier: Apache-2.0
// Status word, ready count and restarts of a pod, as kubectl shows them.
#pragma once

#include "codec/json.h"

struct api_pod_summary {
    struct hk_buf status; /* "Running", "Init:0/1", "CrashLoopBackOff"... */
    uint32_t ready, total;
    int64_t restarts;
    int64_t restarted_ns; /* end of the latest earlier run, 0 when none */
};

/* The status comes from the first unfinished init container, else from the last container with a
 * noteworthy state. ret must be zeroed. */
void api_pod_summarize(const struct json *pod, struct api_pod_summary *ret);
/* "3", or "3 (20s ago)". */
void api_pod_write_restarts(const struct api_pod_summary *s, int64_t now_ns, struct hk_buf *out);
void api_pod_summary_fini(struct api_pod_summary *s);
/* "Succeeded" or "Failed" for a finished pod, else NULL. */
const char *api_pod_finished(const struct json *pod);
