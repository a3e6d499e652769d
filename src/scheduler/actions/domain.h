// SPDX-License-Identifier: Apache-2.0
// Allocation inside topology domains: jobs with sub-groups or a network topology are tried in the
// domains of one gradient after the other, and the best-scored domain of the first gradient that
// holds the job is taken (docs/reference/scheduler.md section 4.4).
#pragma once

#include "scheduler/actions/place.h"

/* Where a job was placed, for domain_confirm after the commit. */
struct domain_choice {
    hyper_id domain;
    hyper_id *marks; /* by row of the worksheet */
};

/* Whether any part of the job has a hard network topology in force. */
bool domain_is_hard(const struct model *m, job_id j);
/* Whether that topology restricts the job to a part of the cluster. */
bool domain_is_narrow(const struct session *ssn, job_id j);

/* True: the operations are kept and the worksheet has the remaining tasks. False: nothing
 * changed. */
bool domain_allocate(struct placer *p, struct worksheet *w, struct domain_choice *ret);
void domain_confirm(const struct model *m, const struct worksheet *w,
                    const struct domain_choice *c);
