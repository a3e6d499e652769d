// SPDX-License-Identifier: Apache-2.0
// Why a job waits, and what would let it start. Loads the objects of a cluster into the scheduling
// engine, runs a cycle and queries it (scheduler/explain.h); then changes single objects, one at a
// time, each in a copy, and runs the engine again. Every claim was tried out. Nothing outside the
// process changes.
#pragma once

#include "sim/cluster.h"

struct explain_opts {
    struct api_object *const *objects; /* the cluster; unknown kinds are skipped */
    uint32_t n;
    const struct conf *conf;
    int64_t now_ns;
    uint32_t tries;         /* try at most this many changes, 0: none */
    int64_t budget_ns;      /* start no try after this time, 0: no limit */
    struct hk_clock *clock; /* may be NULL without budget */
};

/* The object to explain. */
struct explain_subject {
    enum api_kind_id kind; /* API_JOB, API_PODGROUP, API_POD, API_QUEUE or API_JOBFLOW */
    struct hk_str ns, name;
};

/* *ret is the document that `hekla explain -o json` prints (its help lists the keys), in a. Fails
 * with HK_ENOTFOUND when there is no such object. */
int explain(const struct explain_opts *o, const struct explain_subject *s, struct hk_arena *a,
            struct json *ret, struct hk_err *err) HK_CHECKED;

/* One changed object. */
struct explain_edit {
    const struct api_kind *kind;
    struct json doc;
    bool gone; /* the object is deleted; doc names it */
};

/* Claimed changes, so that tests can check them: at[k] has the edits of entry k of "changes" in the
 * answer. */
struct explain_claims {
    struct {
        struct explain_edit *at;
        uint32_t len;
    } * at;
    uint32_t len;
};
int explain_with_claims(const struct explain_opts *o, const struct explain_subject *s,
                        struct hk_arena *a, struct json *ret, struct explain_claims *claims,
                        struct hk_err *err) HK_CHECKED;
