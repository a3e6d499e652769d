// SPDX-License-Identifier: Apache-2.0
// One AdmissionReview: the request as an API server sends it, judged by one rule of Volcano's, and
// the answer as that server expects it. Whatever comes is answered; what is not understood is
// refused with words.
#pragma once

#include "admission/volcano.h"

struct webhook_review {
    const struct volcano_rule *rule;
    const struct volcano_options *options;
    const struct admission_lookup *lookup; /* NULL: nothing exists, and nothing is looked for */
    int64_t now_ns;
    struct hk_arena *mem; /* for the trees; the caller's to clear */
};

/* Appends the answer, a whole AdmissionReview. Says whether the request was allowed. body may be
 * changed by nobody meanwhile. */
bool webhook_review(const struct webhook_review *r, struct hk_str body, struct hk_buf *out);
