// SPDX-License-Identifier: Apache-2.0
// A pod in a word and three numbers, as kubectl's users know them.
#pragma once

#include "codec/json.h"

struct api_pod_summary {
    struct hk_buf status; /* "Running", "Init:0/1", "CrashLoopBackOff"... */
    uint32_t ready, total;
    int64_t restarts;
    int64_t restarted_ns; /* newest end of an earlier run, 0 when there was none */
};

/* Which word it is, is a story over the containers: the first init container that is not done, else
 * the last container with something to say. ret is zeroed. */
void api_pod_summarize(const struct json *pod, struct api_pod_summary *ret);
/* "3", or "3 (20s ago)". */
void api_pod_write_restarts(const struct api_pod_summary *s, int64_t now_ns, struct hk_buf *out);
void api_pod_summary_fini(struct api_pod_summary *s);
/* "Succeeded" or "Failed" of a pod that is finished, else NULL. */
const char *api_pod_finished(const struct json *pod);
