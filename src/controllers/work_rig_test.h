// SPDX-License-Identifier: Apache-2.0
// Workloads of Kubernetes under test: all their controllers over one API in memory.
#pragma once

#include "controllers/rig_test.h"
#include "controllers/table.h"

static inline void work_rig(struct rig *r)
{
    uint32_t n;
    const struct ctl_type *const *types = manager_workload_types(&n);

    rig_init(r, types, n);
    rig_manager(r);
}

/* The nth name of a kind in the order of creation. */
static inline const char *work_nth(struct rig *r, enum api_kind_id kind, uint32_t n)
{
    static char name[4][300];
    static unsigned turn;
    struct hk_str rest = hk_str(rig_names(r, kind)), part = {"", 0};
    char *ret = name[turn++ % HK_LEN(name)];

    for (uint32_t i = 0; i <= n; i++) {
        if (!hk_str_cut(&rest, ' ', &part)) {
            fail_msg("no %u. of %s", n + 1, api_kind(kind)->plural);
        }
    }
    snprintf(ret, sizeof(name[0]), "%.*s", HK_FMT(part));
    return ret;
}

/* Lets go of pods that are being deleted, and starts those that wait, until nothing changes. */
static inline void work_go_on(struct rig *r)
{
    for (int i = 0; i < 50; i++) {
        rig_reap(r);
        rig_run(r);
    }
}

/* Status, reason of a condition as "True MinimumReplicasAvailable"; "" when there is none. */
static inline const char *work_condition_text(struct rig *r, enum api_kind_id kind,
                                              const char *name, const char *type)
{
    static char text[200];
    const struct json *list = json_at(rig_get(r, kind, name), "status.conditions");

    text[0] = '\0';
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->len; i++) {
        const struct json *c = &list->items[i];

        if (hk_str_is(json_str(json_get(c, "type"), HK_STR("")), type)) {
            snprintf(text, sizeof(text), "%.*s %.*s",
                     HK_FMT(json_str(json_get(c, "status"), HK_STR(""))),
                     HK_FMT(json_str(json_get(c, "reason"), HK_STR(""))));
        }
    }
    return text;
}

#define work_expect_condition(r, kind, name, type, want)                                           \
    assert_string_equal(work_condition_text((r), (kind), (name), (type)), (want))

/* The node a daemon's pod is for. */
static inline struct hk_str work_target(const struct json *pod)
{
    const struct json *terms = json_at(pod, "spec.affinity.nodeAffinity."
                                            "requiredDuringSchedulingIgnoredDuringExecution."
                                            "nodeSelectorTerms");
    const struct json *field = json_item(json_get(json_item(terms, 0), "matchFields"), 0);

    return json_str(json_item(json_get(field, "values"), 0), HK_STR(""));
}
