// SPDX-License-Identifier: Apache-2.0
// Old templates of StatefulSets and DaemonSets, stored as ControllerRevisions, so that pods of an
// old revision can be created again, and `kubectl rollout` can show and undo.
#include "controllers/work_priv.h"

#include <stdlib.h>

static const struct hk_str none = {"", 0};

static const struct json *template_of(const struct json *revision)
{
    return json_at(revision, "data.spec.template");
}

static struct hk_str work_revision_name(const struct json *revision)
{
    return json_str(json_at(revision, "metadata.name"), none);
}

static int64_t work_revision_number(const struct json *revision)
{
    return json_int(json_get(revision, "revision"), 0);
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = work_revision_number(a), y = work_revision_number(b);

    return x != y ? (x > y) - (x < y) : hk_str_cmp(work_revision_name(a), work_revision_name(b));
}

static const struct json *work_revision_read_owned(struct pass *t, const struct json *root)
{
    struct mirror *m = ctl_mirror(t->c, API_CONTROLLER_REVISION);
    struct json *list = hk_arena_zalloc(t->mem, sizeof(*list));

    *list = json_make_array();
    for (uint32_t r = mirror_first(m, OBJECTS_BY_CONTROLLER, work_uid(root)); r != HK_NONE;
         r = mirror_next(m, OBJECTS_BY_CONTROLLER, r)) {
        json_push(list, t->mem, mirror_read(m, r, t->mem));
    }
    if (list->len > 0) {
        qsort(list->items, list->len, sizeof(*list->items), by_number);
    }
    return list;
}

/* The stored form: kubectl rollout undo sends it as a patch that must replace the template. */
static struct json kept_template(struct pass *t, const struct json *root)
{
    struct json template = json_clone_as(json_at(root, "spec.template"), JSON_OBJECT, t->mem);

    json_set_cstr(&template, t->mem, "$patch", "replace");
    return template;
}

static void work_revision_create(struct pass *t, const struct json *root, struct hk_str name,
                                 struct hk_str hash, const struct json *template, int64_t number)
{
    struct hk_arena *a = t->mem;
    const struct json *labels = json_at(root, "spec.selector.matchLabels");
    struct json body = json_make_object(), meta = json_make_object(), data = json_make_object(),
                spec = json_make_object();

    json_set(&spec, a, "template", *template);
    json_set(&data, a, "spec", spec);
    json_set_str(&meta, a, "name", name);
    json_set_str(&meta, a, "namespace", t->ns);
    json_set(&meta, a, "labels", json_clone_as(labels, JSON_OBJECT, a));
    json_set_cstr(&body, a, "apiVersion", "apps/v1");
    json_set_cstr(&body, a, "kind", "ControllerRevision");
    json_set(&body, a, "metadata", meta);
    json_set_int(&body, a, "revision", number);
    json_set(&body, a, "data", data);
    work_label(&body, a, "controller.kubernetes.io/hash", hash);
    kinds_own(&body, a, root);
    pass_create(t, api_kind(API_CONTROLLER_REVISION), &body);
}

/* An old template that is wanted again becomes the newest revision. */
static bool renew(struct pass *t, const struct json *revision, int64_t last)
{
    struct json patch = json_make_object();

    if (work_revision_number(revision) == last) {
        return true;
    }
    json_set_int(&patch, t->mem, "revision", last + 1);
    pass_patch(t, &(struct pass_patch){.kind = api_kind(API_CONTROLLER_REVISION),
                                       .ns = t->ns,
                                       .name = work_revision_name(revision),
                                       .type = PORT_PATCH_MERGE,
                                       .body = &patch});
    return false;
}

bool work_revise(struct pass *t, const struct json *root, struct work_revisions *ret)
{
    const struct json template = kept_template(t, root);
    const uint64_t digest = json_hash(&template);
    const struct json *list = work_revision_read_owned(t, root);
    const int64_t last = list->len > 0 ? work_revision_number(&list->items[list->len - 1]) : 0;
    const struct mirror *m = ctl_mirror(t->c, API_CONTROLLER_REVISION);

    *ret = (struct work_revisions){.list = list};
    for (uint32_t i = 0; i < list->len; i++) {
        if (work_same(t, API_STATEFUL_SET, "spec.template", template_of(&list->items[i]),
                      &template)) {
            ret->update = work_revision_name(&list->items[i]);
            ret->hash =
                json_str(kinds_label(&list->items[i], "controller.kubernetes.io/hash"), none);
            return renew(t, &list->items[i], last);
        }
    }
    for (uint64_t salt = 0;; salt++) { /* skip names in use */
        ret->hash = work_encode((uint32_t)hk_mix(digest + salt), t->mem);
        ret->update =
            hk_str(hk_arena_printf(t->mem, "%.*s-%.*s", HK_FMT(t->name), HK_FMT(ret->hash)));
        if (mirror_find(m, t->ns, ret->update) == HK_NONE) {
            break;
        }
    }
    work_revision_create(t, root, ret->update, ret->hash, &template, last + 1);
    return false;
}

const struct json *work_revision_template(const struct work_revisions *rs, struct hk_str name)
{
    for (uint32_t i = 0; i < rs->list->len; i++) {
        if (hk_str_eq(work_revision_name(&rs->list->items[i]), name)) {
            return template_of(&rs->list->items[i]);
        }
    }
    return NULL;
}

/* Pods of a StatefulSet carry the revision's name, those of a DaemonSet its hash. */
static bool is_live(const struct json *revision, const struct work_pods *pods)
{
    const struct hk_str hash =
        json_str(kinds_label(revision, "controller.kubernetes.io/hash"), none);

    for (uint32_t i = 0; i < pods->len; i++) {
        if (hk_str_is(work_revision_name(revision), pods->at[i].d->revision) ||
            hk_str_is(hash, pods->at[i].d->revision)) {
            return true;
        }
    }
    return false;
}

void work_revisions_trim(struct pass *t, const struct json *root, const struct work_revisions *rs,
                         const struct work_pods *pods, struct hk_str current)
{
    int64_t surplus = -json_int(json_at(root, "spec.revisionHistoryLimit"), 10);
    bool *kept = hk_arena_zalloc(t->mem, rs->list->len + 1);

    for (uint32_t i = 0; i < rs->list->len; i++) {
        const struct json *r = &rs->list->items[i];

        kept[i] = hk_str_eq(work_revision_name(r), rs->update) ||
                  hk_str_eq(work_revision_name(r), current) || is_live(r, pods);
        surplus += !kept[i];
    }
    for (uint32_t i = 0; i < rs->list->len && surplus > 0; i++) {
        if (!kept[i]) {
            pass_delete(t, api_kind(API_CONTROLLER_REVISION), t->ns,
                        work_revision_name(&rs->list->items[i]), work_uid(&rs->list->items[i]),
                        PORT_PROPAGATE_BACKGROUND);
            surplus--;
        }
    }
}
