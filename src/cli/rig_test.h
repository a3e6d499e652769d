// SPDX-License-Identifier: Apache-2.0
// Objects from YAML, for the tests of what is printed of them.
#pragma once

#include "api/object.h"
#include "codec/timefmt.h"
#include "codec/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { MAX_OBJECTS = 8 };

struct given {
    struct api_object *at[MAX_OBJECTS];
    uint32_t n;
};

/* Objects of a kind from YAML documents. */
static inline struct given given(enum api_kind_id kind, const char *text)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct yaml_docs docs = {0};
    struct given g = {0};
    struct hk_err err = {0};
    int rc = yaml_parse(hk_str(text), 0, &mem, &docs, &err);

    for (uint32_t i = 0; rc == 0 && i < docs.len; i++) {
        rc = api_object_new(api_kind(kind), &docs.at[i], &g.at[g.n++], &err);
    }
    if (rc < 0) {
        fail_msg("%s", err.text);
    }
    return g;
}

static inline void given_fini(struct given *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        api_object_unref(g->at[i]);
    }
}

static inline int64_t now(void)
{
    struct hk_err err = {0};
    int64_t ns = 0;

    if (time_parse(HK_STR("2026-08-20T12:05:10Z"), &ns, &err) < 0) {
        fail_msg("%s", err.text);
    }
    return ns;
}

/* For a group of tests that print times. */
static inline int use_utc(void **state)
{
    const int rc = setenv("TZ", "UTC", 1);

    tzset();
    return rc;
}
