// SPDX-License-Identifier: Apache-2.0
// Why a job waits, and what would let it start. The objects of a cluster are loaded into the engine
// that schedules it; a cycle is run and asked (scheduler/explain.h); then single changes are made
// to the objects, one at a time, each in a copy of that world, and the engine is run again. What is
// claimed has been tried. Nothing outside of the process is touched.
#pragma once

#include "sim/cluster.h"

struct explain_opts {
    struct api_object *const *objects; /* the cluster; kinds the engine does not know are skipped */
    uint32_t n;
    const struct conf *conf;
    int64_t now_ns;
    uint32_t tries;         /* at most so many changes are tried, 0: none */
    int64_t budget_ns;      /* and none is begun after this long by the clock, 0: no end */
    struct hk_clock *clock; /* may be NULL without budget */
};

/* What is explained. */
struct explain_subject {
    enum api_kind_id kind; /* API_JOB, API_PODGROUP, API_POD, API_QUEUE or API_JOBFLOW */
    struct hk_str ns, name;
};

/* The answer as the document that `hekla explain -o json` prints (its help lists the keys), in a.
 * Fails with HK_ENOTFOUND when there is no such object. */
int explain(const struct explain_opts *o, const struct explain_subject *s, struct hk_arena *a,
            struct json *ret, struct hk_err *err) HK_CHECKED;

/* One object otherwise than it is. */
struct explain_edit {
    const struct api_kind *kind;
    struct json doc;
    bool gone; /* doc names it */
};

/* A change that was claimed, for who wants to check the claim: the edits of entry k of "changes" of
 * the last answer. */
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
