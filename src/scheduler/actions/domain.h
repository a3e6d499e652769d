// SPDX-License-Identifier: Apache-2.0
// Allocation inside topology domains (4.2.4): jobs with sub-groups or a network topology are tried
// in the domains of one gradient after the other, and the best-scored domain of the first gradient
// that holds the job is taken.
#pragma once

#include "scheduler/actions/place.h"

/* Where a job was put, to be written down when it is committed. */
struct domain_choice {
    hyper_id domain;
    hyper_id *marks; /* by row of the worksheet */
};

/* Whether any part of the job has a network topology in force. */
bool domain_is_hard(const struct model *m, job_id j);
/* Whether that topology keeps the job from going just anywhere. */
bool domain_is_narrow(const struct session *ssn, job_id j);

/* True: the operations stand, the worksheet has what is left of it. False: nothing changed. */
bool domain_allocate(struct placer *p, struct worksheet *w, struct domain_choice *ret);
void domain_confirm(const struct model *m, const struct worksheet *w,
                    const struct domain_choice *c);
