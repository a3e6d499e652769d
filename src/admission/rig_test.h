// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of this room: a manifest goes in as YAML, runs through decode, mutate and
// validate over a state that is YAML too, and the result is compared as text.
#pragma once

#include "admission/admission.h"
#include "codec/yaml.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Kinds the tests need whether or not the registry knows them. */
static const struct api_kind rig_more_kinds[] = {
    {API_NKINDS, "", "v1", "LimitRange", "limitranges", "limitrange", true, false, {NULL}},
    {API_NKINDS, "batch", "v1", "Job", "jobs", "job", true, true, {NULL}},
    {API_NKINDS, "batch", "v1", "CronJob", "cronjobs", "cronjob", true, true, {NULL}},
    {API_NKINDS, "events.k8s.io", "v1", "Event", "events", "event", true, false, {NULL}},
    {API_NKINDS, "rbac.authorization.k8s.io", "v1", "Role", "roles", "role", true, false, {NULL}},
    {API_NKINDS,
     "rbac.authorization.k8s.io",
     "v1",
     "RoleBinding",
     "rolebindings",
     "rolebinding",
     true,
     false,
     {NULL}},
    {API_NKINDS,
     "rbac.authorization.k8s.io",
     "v1",
     "ClusterRoleBinding",
     "clusterrolebindings",
     "clusterrolebinding",
     false,
     false,
     {NULL}},
    {API_NKINDS,
     "apiextensions.k8s.io",
     "v1",
     "CustomResourceDefinition",
     "customresourcedefinitions",
     "customresourcedefinition",
     false,
     true,
     {NULL}},
};

struct rig {
    struct hk_arena mem;
    struct yaml_docs state;
    struct admission_lookup lookup;
    struct admission_request q;
    struct hk_err err;
    int rc;
};

static inline struct hk_str rig_meta(const struct json *doc, const char *field)
{
    return json_str(json_get(json_get(doc, "metadata"), field), HK_STR(""));
}

static inline const struct api_kind *rig_kind(const struct json *doc)
{
    const struct hk_str version = json_str(json_get(doc, "apiVersion"), HK_STR(""));
    const struct hk_str kind = json_str(json_get(doc, "kind"), HK_STR(""));
    const struct api_kind *k = api_kind_find(version, kind);

    for (size_t i = 0; i < HK_LEN(rig_more_kinds) && !k; i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        api_kind_write_version(&rig_more_kinds[i], &text);
        if (hk_str_is(kind, rig_more_kinds[i].kind) && hk_str_eq(version, hk_buf_str(&text))) {
            k = &rig_more_kinds[i];
        }
    }
    return k;
}

static inline bool rig_is(const struct json *doc, const struct api_kind *kind)
{
    const struct api_kind *k = rig_kind(doc);

    return strcmp(k->group, kind->group) == 0 && strcmp(k->plural, kind->plural) == 0;
}

static inline const struct json *rig_get(void *ctx, const struct api_kind *kind, struct hk_str ns,
                                         struct hk_str name)
{
    const struct rig *r = ctx;

    for (uint32_t i = 0; i < r->state.len; i++) {
        const struct json *doc = &r->state.at[i];
        if (rig_is(doc, kind) && hk_str_eq(rig_meta(doc, "name"), name) &&
            hk_str_eq(rig_meta(doc, "namespace"), ns)) {
            return doc;
        }
    }
    return NULL;
}

static inline void rig_each(void *ctx, const struct api_kind *kind, struct hk_str ns,
                            bool (*fn)(void *arg, const struct json *obj), void *arg)
{
    const struct rig *r = ctx;

    for (uint32_t i = 0; i < r->state.len; i++) {
        const struct json *doc = &r->state.at[i];
        if (rig_is(doc, kind) && (ns.n == 0 || hk_str_eq(rig_meta(doc, "namespace"), ns)) &&
            !fn(arg, doc)) {
            return;
        }
    }
}

static inline struct json *rig_parse(struct rig *r, const char *text, uint32_t i)
{
    struct yaml_docs docs = {0};
    struct hk_err err = {0};

    if (yaml_parse(hk_str(text), 0, &r->mem, &docs, &err) < 0) {
        fail_msg("%s in:\n%s", err.text, text);
    }
    return docs.len > i ? &docs.at[i] : NULL;
}

/* Runs the manifest through all passes; old NULL: a creation. state NULL: nothing is looked up. */
static inline void rig_run(struct rig *r, const char *state, const char *old, const char *text,
                           const char *subresource)
{
    struct admission_request *q = &r->q;

    if (state) {
        if (yaml_parse(hk_str(state), 0, &r->mem, &r->state, &r->err) < 0) {
            fail_msg("%s in:\n%s", r->err.text, state);
        }
        r->lookup = (struct admission_lookup){.ctx = r, .get = rig_get, .each = rig_each};
        q->lookup = &r->lookup;
    }
    q->verb = old ? ADMIT_UPDATE : ADMIT_CREATE;
    q->subresource = subresource;
    q->mem = &r->mem;
    q->now_ns = 1767323045LL * 1000000000;
    q->obj = rig_parse(r, text, 0);
    q->old = old ? rig_parse(r, old, 0) : NULL;
    q->kind = rig_kind(q->obj);
    q->ns = rig_meta(q->obj, "namespace");
    q->name = rig_meta(q->obj, "name");
    r->rc = admission_decode(q, &r->err);
    if (r->rc == 0) {
        r->rc = admission_mutate(q, &r->err);
    }
    if (r->rc == 0) {
        r->rc = admission_validate(q, &r->err);
    }
}

static inline void rig_fini(struct rig *r)
{
    admission_request_fini(&r->q);
    hk_arena_fini(&r->mem);
}

/* "field: message" lines, or the refusal. */
static inline const char *rig_outcome(struct rig *r)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};

    if (r->rc < 0) {
        hk_buf_addf(&out, "%s: %s", hk_code_reason(r->rc), r->err.text);
    }
    for (uint32_t i = 0; i < r->q.errors.len && r->rc == 0; i++) {
        hk_buf_addf(&out, "%s%s: %s", i > 0 ? "\n" : "", r->q.errors.at[i].field,
                    r->q.errors.at[i].message);
    }
    return hk_arena_strndup(&r->mem, out.data ? out.data : "", out.len);
}

/* A case of a table: what goes in and the words that come out, "" for none. */
struct rig_case {
    const char *name;
    const char *text;
    const char *want;
    const char *state;
    const char *old;
    const char *subresource;
};
#define CASE(words, in, out, ...)                                                                  \
    {                                                                                              \
        .name = words, .text = in, .want = out, __VA_ARGS__                                        \
    }

static inline void rig_check(const struct rig_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rig r = {0};
        rig_run(&r, cases[i].state, cases[i].old, cases[i].text, cases[i].subresource);
        const char *got = rig_outcome(&r);
        if (strcmp(got, cases[i].want) != 0) {
            fail_msg("%s:\nexpected: %s\n  actual: %s", cases[i].name, cases[i].want, got);
        }
        rig_fini(&r);
    }
}

/* The object after the passes must equal the YAML of `want`. */
static inline void rig_check_objects(const struct rig_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rig r = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf got = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf want = {0};
        rig_run(&r, cases[i].state, cases[i].old, cases[i].text, cases[i].subresource);
        if (*rig_outcome(&r)) {
            fail_msg("%s: %s", cases[i].name, rig_outcome(&r));
        }
        yaml_write(r.q.obj, &got);
        yaml_write(rig_parse(&r, cases[i].want, 0), &want);
        if (strcmp(got.data, want.data) != 0) {
            fail_msg("%s:\nexpected:\n%s\nactual:\n%s", cases[i].name, want.data, got.data);
        }
        rig_fini(&r);
    }
}
