// SPDX-License-Identifier: Apache-2.0
// The window of a Kubernetes workload (pod_window.h). Its gang is the minimum of its pods'
// PodGroup: the one that the template names, else the one that the PodGroup controller creates.
// When a PodGroup is created or its minimum grows, the workload is queued, so that it creates the
// pods that its gang lacks.
#include "controllers/pod_window.h"
#include "controllers/work_priv.h"

static const struct hk_str none = {"", 0};

void work_group_changed(struct ctl *c, const struct mirror_change *ch, enum api_kind_id kind)
{
    const struct podgroup_digest *old = ch->old, *now = ch->now;
    const struct mirror *owners = ctl_mirror(c, kind);
    const struct hk_str name = mirror_name(ch->mirror, ch->row);

    if (!now || (old && now->min_member <= old->min_member)) {
        return;
    }
    work_part_changed(c, ch, kind);
    for (uint32_t r = mirror_first(owners, OBJECTS_BY_GROUP, name); r != HK_NONE;
         r = mirror_next(owners, OBJECTS_BY_GROUP, r)) {
        if (hk_str_eq(mirror_ns(owners, r), mirror_ns(ch->mirror, ch->row))) {
            ctl_add(c, mirror_ns(owners, r), mirror_name(owners, r));
        }
    }
}

/* 1 while that PodGroup does not exist: a single pod can start. */
static int64_t work_gang(struct pass *t, const struct json *root)
{
    const struct mirror *groups = ctl_mirror(t->c, API_PODGROUP);
    const struct json *named = kinds_annotation(json_at(root, "spec.template"), API_ANN_GROUP_NAME);
    struct hk_str name = json_str(named, none);
    uint32_t row;

    if (name.n == 0) {
        name = hk_str(hk_arena_printf(t->mem, API_PODGROUP_PREFIX "%.*s", HK_FMT(work_uid(root))));
    }
    row = mirror_find(groups, t->ns, name);
    if (row == HK_NONE) {
        return 1;
    }
    return ((const struct podgroup_digest *)mirror_digest(groups, row))->min_member;
}

int64_t work_window_room(struct pass *t, const struct json *root, const struct work_pods *pods,
                         int64_t want, int64_t have)
{
    const int64_t gang = work_gang(t, root);
    struct pod_window w = {.missing = want - have, .lacking = gang - have, .size = POD_WINDOW};

    if (!pod_window_is_needed(want, gang)) {
        return HK_MAX(w.missing, 0);
    }
    for (uint32_t i = 0; i < pods->len; i++) {
        w.waiting += pod_window_counts(pods->at[i].d);
    }
    return pod_window_room(&w);
}
