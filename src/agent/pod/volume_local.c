// SPDX-License-Identifier: Apache-2.0
// Local volumes: directories of this node, created when a pod first needs one, and removed when the
// PersistentVolume is deleted and no pod of the node uses it. The volume controller binds claims to
// volumes. A deleted volume stays in the API until the agent removes its finalizer.
#include "agent/pod/volume_local.h"

#include "agent/pod/volume_dir.h"
#include "api/feed.h"
#include "api/names.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define RETRY_NS (5 * SECOND_NS)

struct doomed {
    struct api_object *obj;
    uint64_t call; /* the patch in flight, or 0 */
    int64_t due_ns;
};

struct volume_local {
    struct pods *set;
    struct host *host; /* of the set */
    struct feed feed;
    HK_VEC(struct doomed) doomed;
};

static struct hk_str volume_local_annotation(const struct json *root, const char *key)
{
    return json_str(json_get(json_at(root, "metadata.annotations"), key), HK_STR(""));
}

static bool volume_local_is_on_this_node(const struct host *h, const struct json *root)
{
    return hk_str_is(volume_local_annotation(root, API_ANN_PROVISIONED_BY),
                     API_PROVISIONER_LOCAL) &&
           hk_str_is(volume_local_annotation(root, API_ANN_VOLUME_NODE), h->o.node);
}

static const char *dir_of(const struct host *h, struct hk_str volume, struct hk_arena *mem)
{
    return hk_arena_printf(mem, "%s/%.*s", h->volumes_dir, HK_FMT(volume));
}

/* ---- users of a volume ---- */

/* A file in the pod's directory: claim and agent may be gone before the pod is. */
static const char *mark_of(const struct pod *p, struct hk_str volume, struct hk_arena *mem)
{
    return hk_arena_printf(mem, "%s/.pv.%.*s", p->dir, HK_FMT(volume));
}

static int volume_local_create_mark_file(const struct pod *p, struct hk_str volume,
                                         struct hk_err *err)
{
    const char *path = mark_of(p, volume, &p->host->mem);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0) {
        return hk_fail(err, HK_EIO, "cannot make '%s': %s", path, strerror(errno));
    }
    close(fd);
    return 0;
}

static bool volume_local_is_used(const struct pods *ps, struct hk_str volume)
{
    for (uint32_t i = 0; i < ps->slots.len; i++) {
        const struct pod *p = ps->slots.at[i];

        if (p && p->stage != POD_ENDED && access(mark_of(p, volume, &p->host->mem), F_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- creation ---- */

bool volume_local_is_own(const struct host *h, const struct api_object *pv)
{
    const struct hk_str path = json_str(json_at(&pv->root, "spec.local.path"), HK_STR(""));
    const size_t n = strlen(h->volumes_dir);

    return volume_local_is_on_this_node(h, &pv->root) && path.n == n + 1 + pv->name.n &&
           memcmp(path.s, h->volumes_dir, n) == 0 && path.s[n] == '/' &&
           memcmp(path.s + n + 1, pv->name.s, pv->name.n) == 0;
}

int volume_local_make(const struct pod *p, const struct api_object *pv, int64_t fs_group,
                      struct hk_err *err)
{
    struct hk_arena *mem = &p->host->mem;
    const char *path =
        hk_arena_str(mem, json_str(json_at(&pv->root, "spec.local.path"), HK_STR(""))).s;
    struct stat st;
    int rc = volume_local_create_mark_file(p, pv->name, err);

    if (rc < 0) {
        return rc;
    }
    if (!volume_local_is_own(p->host, pv) && volume_is_covered(p->host, path)) {
        return hk_fail(err, HK_EDENIED, VOLUME_COVERED, path);
    }
    if (stat(path, &st) == 0) {
        return 0;
    }
    if (!volume_local_is_own(p->host, pv)) {
        return hk_fail(err, HK_ENOTFOUND, "path \"%s\" does not exist", path);
    }
    rc = volume_mkdir(path, 0777, err);
    if (rc < 0 || fs_group < 0) {
        return rc;
    }
    /* Set the mode again: chown clears the special bits. */
    if (chown(path, (uid_t)-1, (gid_t)fs_group) < 0 || chmod(path, 02777) < 0) {
        return hk_fail(err, HK_EIO, "cannot set the group of '%s': %s", path, strerror(errno));
    }
    return 0;
}

/* ---- removal ---- */

static void on_patch(void *ctx, const struct port_msg *m)
{
    struct volume_local *l = ctx;

    for (uint32_t i = 0; i < l->doomed.len; i++) {
        if (l->doomed.at[i].call == m->call) {
            l->doomed.at[i].call = 0;
            l->doomed.at[i].due_ns = host_mono_ns(l->host) + RETRY_NS;
        }
    }
    if (m->rc < 0 && m->rc != -HK_ENOTFOUND && m->rc != -HK_ECONFLICT) {
        hk_log(HK_LOG_WARN, "cannot let go of volume", "err=\"%s\"", m->err->text);
    }
}

/* Removes the agent's finalizer, unless the volume changed: then a watch event follows. */
static void volume_local_remove_finalizer(struct volume_local *l, struct doomed *d)
{
    struct hk_arena *mem = &l->host->mem;
    const struct json *old = json_at(&d->obj->root, "metadata.finalizers");
    struct json body = json_make_object(), *meta = json_set_object(&body, mem, "metadata"), *list;

    json_set(meta, mem, "resourceVersion",
             json_shallow(json_at(&d->obj->root, "metadata.resourceVersion"), mem));
    list = json_set_array(meta, mem, "finalizers");
    for (uint32_t i = 0; json_item(old, i); i++) {
        if (!hk_str_is(json_str(json_item(old, i), HK_STR("")), API_FINALIZER_VOLUME)) {
            json_push(list, mem, *json_item(old, i));
        }
    }
    d->call = port_submit(l->host->o.port,
                          &(struct port_request){.verb = PORT_PATCH,
                                                 .patch = PORT_PATCH_MERGE,
                                                 .kind = api_kind(API_PV),
                                                 .name = d->obj->name,
                                                 .body = &body},
                          (struct port_sink){on_patch, l});
}

static struct doomed *volume_local_find_doomed(struct volume_local *l, struct hk_str name)
{
    for (uint32_t i = 0; i < l->doomed.len; i++) {
        if (hk_str_eq(l->doomed.at[i].obj->name, name)) {
            return &l->doomed.at[i];
        }
    }
    return NULL;
}

static bool is_doomed(const struct host *h, const struct json *root)
{
    const struct json *list = json_at(root, "metadata.finalizers");

    for (uint32_t i = 0; json_item(list, i); i++) {
        if (hk_str_is(json_str(json_item(list, i), HK_STR("")), API_FINALIZER_VOLUME)) {
            return json_at(root, "metadata.deletionTimestamp") &&
                   volume_local_is_on_this_node(h, root);
        }
    }
    return false;
}

static void volume_local_remove_doomed(struct volume_local *l, struct doomed *d)
{
    if (d->call) {
        port_cancel(l->host->o.port, d->call);
    }
    api_object_unref(d->obj);
    hk_vec_swap_remove(&l->doomed, (uint32_t)(d - l->doomed.at));
}

static void volume_local_on_put(void *ctx, struct api_object *o)
{
    struct volume_local *l = ctx;
    struct doomed *d = volume_local_find_doomed(l, o->name);

    if (d) {
        volume_local_remove_doomed(l, d);
    }
    if (is_doomed(l->host, &o->root)) {
        hk_vec_push(&l->doomed, (struct doomed){.obj = api_object_ref(o)});
    }
}

static void volume_local_on_del(void *ctx, struct hk_str ns, struct hk_str name,
                                const struct api_object *last)
{
    struct volume_local *l = ctx;
    struct doomed *d = volume_local_find_doomed(l, name);

    if (d) {
        volume_local_remove_doomed(l, d);
    }
}

static const struct feed_ops ops = {.put = volume_local_on_put, .del = volume_local_on_del};

int64_t volume_local_tick(struct volume_local *l, bool may_remove, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;

    if (!l) {
        return INT64_MAX;
    }
    for (uint32_t i = 0; i < l->doomed.len; i++) {
        struct doomed *d = &l->doomed.at[i];

        if (d->call || !may_remove || volume_local_is_used(l->set, d->obj->name)) {
            continue; /* an answer or the end of a pod wakes this up */
        }
        if (d->due_ns > now_ns) {
            next_ns = HK_MIN(next_ns, d->due_ns);
            continue;
        }
        volume_remove(dir_of(l->host, d->obj->name, &l->host->mem));
        volume_local_remove_finalizer(l, d);
        hk_arena_clear(&l->host->mem);
    }
    const int64_t feed_ns = feed_tick(&l->feed, now_ns);
    return HK_MIN(next_ns, feed_ns);
}

/* ---- setup and teardown ---- */

struct volume_local *volume_local_new(struct pods *ps)
{
    struct volume_local *l = hk_zalloc(sizeof(*l));

    l->set = ps;
    l->host = ps->host;
    feed_init(&l->feed, &(struct feed_opts){.port = l->host->o.port,
                                            .clock = l->host->o.clock,
                                            .str = &l->host->str,
                                            .kind = api_kind(API_PV),
                                            .ops = &ops,
                                            .ctx = l});
    return l;
}

void volume_local_free(struct volume_local *l)
{
    if (!l) {
        return;
    }
    while (l->doomed.len > 0) {
        volume_local_remove_doomed(l, &l->doomed.at[0]);
    }
    hk_vec_fini(&l->doomed);
    feed_fini(&l->feed);
    hk_free(l);
}
