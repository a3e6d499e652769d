// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of Volcano's rules: one rule by its path over a manifest and a state in YAML;
// what comes out is the refusal or the patch, compared as text.
#pragma once

#include "admission/rig_test.h"
#include "admission/volcano.h"

struct review {
    const char *name;
    const char *path;
    const char *text; /* NULL: a deletion of `old` */
    const char *want; /* the refusal, or the patch as JSON */
    const char *state;
    const char *old;
    const struct volcano_options *opts;
};
#define REVIEW(words, rule, in, out, ...)                                                          \
    {                                                                                              \
        .name = words, .path = rule, .text = in, .want = out, __VA_ARGS__                          \
    }

static inline void review_begin(struct rig *r, const struct review *c)
{
    struct admission_request *q = &r->q;
    const struct json *shown;

    if (c->state) {
        if (yaml_parse(hk_str(c->state), 0, &r->mem, &r->state, &r->err) < 0) {
            fail_msg("%s in:\n%s", r->err.text, c->state);
        }
        r->lookup = (struct admission_lookup){.ctx = r, .get = rig_get, .each = rig_each};
        q->lookup = &r->lookup;
    }
    q->verb = !c->text ? ADMIT_DELETE : c->old ? ADMIT_UPDATE : ADMIT_CREATE;
    q->mem = &r->mem;
    q->obj = c->text ? rig_parse(r, c->text, 0) : NULL;
    q->old = c->old ? rig_parse(r, c->old, 0) : NULL;
    shown = q->obj ? q->obj : q->old;
    q->kind = rig_kind(shown);
    q->ns = rig_meta(shown, "namespace");
    q->name = rig_meta(shown, "name");
}

static inline void review_check(const struct review *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct review *c = &cases[i];
        HK_AUTO(hk_buf_fini) struct hk_buf got = {0};
        struct json patch = json_make_array();
        struct rig r = {0};

        review_begin(&r, c);
        if (volcano_review(volcano_rule_find(hk_str(c->path)), &r.q, c->opts, &patch) < 0) {
            hk_buf_adds(&got, r.q.denial);
        } else {
            json_write(&patch, &got);
        }
        if (strcmp(got.data, c->want) != 0) {
            fail_msg("%s:\nexpected: %s\n  actual: %s", c->name, c->want, got.data);
        }
        rig_fini(&r);
    }
}
