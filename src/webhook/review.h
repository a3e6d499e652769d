// SPDX-License-Identifier: Apache-2.0
// One AdmissionReview: applies one of Volcano's rules to an API server's request and writes the
// answer. Every request is answered; one that cannot be decoded is refused with a message.
#pragma once

#include "admission/volcano.h"

struct webhook_review {
    const struct volcano_rule *rule;
    const struct volcano_options *options;
    const struct admission_lookup *lookup; /* NULL: treats everything as missing */
    int64_t now_ns;
    struct hk_arena *mem; /* for the trees; the caller clears it */
};

/* A question to the API server on which the answer to a review depends. */
struct webhook_question {
    struct json access_review;     /* a SubjectAccessReview to create, in mem */
    struct hk_buf allowed, denied; /* the answer to send if the user is allowed or denied */
};
void webhook_question_fini(struct webhook_question *q);

/* Appends the answer, a whole AdmissionReview. Returns whether the request was allowed. body must
 * not change meanwhile. */
bool webhook_review(const struct webhook_review *r, struct hk_str body, struct hk_buf *out);
/* The same for a rule with asks_rights. True when the answer depends on the user's rights: then
 * fills *ret instead of out. */
bool webhook_review_asks(const struct webhook_review *r, struct hk_str body, struct hk_buf *out,
                         struct webhook_question *ret);
