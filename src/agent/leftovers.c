// SPDX-License-Identifier: Apache-2.0
// Ends what runs for no pod, and removes its files. If the API has gone back in time (past.h), it
// may know fewer pods than really exist: then everything is kept, and a warning says so.
#include "agent/leftovers.h"

#include "agent/node/nodes.h"
#include "agent/pod/image.h"
#include "agent/pod/volume.h"
#include "agent/pod/volume_dir.h"
#include "base/log.h"

#include <dirent.h>
#include <unistd.h>

static struct host *leftovers_host(const struct leftovers *l)
{
    return l->pods->host;
}

static bool leftovers_has_pod(const struct leftovers *l, const char *uid)
{
    return pods_find(l->pods, hk_str(uid)) != NULL;
}

/* ---- pods that the API has lost ---- */

bool leftovers_may_be_lost(const struct leftovers *l, uint64_t rv)
{
    return !leftovers_host(l)->o.end_unknown && past_is_ahead(&l->past, rv);
}

void leftovers_keep(struct leftovers *l, struct hk_str uid)
{
    struct hk_arena *own = &leftovers_host(l)->own;

    hk_log(HK_LOG_WARN, "keeping what runs for no pod: the API has gone back in time", "uid=%.*s",
           HK_FMT(uid));
    json_push(&l->kept, own, json_make_str_copy(uid, own));
}

static void leftovers_warn(struct leftovers *l)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const bool one = l->kept.len == 1;

    past_tell_kept(&l->past, &l->kept);
    if (l->kept.len == 0) {
        return;
    }
    hk_buf_addf(&text,
                "%u pod%s here that the API does not know any more since it has gone back in time; "
                "start with --end-unknown-pods to end %s",
                l->kept.len, one ? " runs" : "s run", one ? "it" : "them");
    hk_log(HK_LOG_WARN, "pods are kept", "what=\"%s\"", text.data);
    nodes_warn(l->pods->nodes, "PodsKept", hk_buf_str(&text));
}

void leftovers_tell(struct leftovers *l)
{
    if (l->swept && l->kept.len > l->ntold) {
        leftovers_warn(l);
        l->ntold = l->kept.len;
    }
}

/* The index of the kept pod, or HK_NONE. */
static uint32_t leftovers_find_kept(const struct leftovers *l, struct hk_str uid)
{
    for (uint32_t i = 0; i < l->kept.len; i++) {
        if (hk_str_eq(json_str(&l->kept.items[i], HK_STR("")), uid)) {
            return i;
        }
    }
    return HK_NONE;
}

void leftovers_forget(struct leftovers *l, struct hk_str uid)
{
    const uint32_t i = leftovers_find_kept(l, uid);

    if (i != HK_NONE) {
        l->kept.items[i] = l->kept.items[--l->kept.len];
        l->ntold = l->kept.len;
        past_tell_kept(&l->past, &l->kept);
    }
}

/* ---- sweeping ---- */

static void leftovers_collect(void *ctx, const char *uid)
{
    struct leftovers *l = ctx;
    struct hk_arena *mem = &leftovers_host(l)->mem;

    if (!leftovers_has_pod(l, uid)) {
        json_push(&l->found, mem, json_make_str_copy(hk_str(uid), mem));
    }
}

/* Keeps all unknown pods that have processes here, and notes whether unknown files exist. */
static void leftovers_keep_all(struct leftovers *l)
{
    struct host *h = leftovers_host(l);
    const char *pods = hk_arena_printf(&h->mem, "%s/pods", h->o.dir);
    DIR *dir = h->o.dir ? opendir(pods) : NULL;

    for (uint32_t i = 0; i < l->found.len; i++) {
        leftovers_keep(l, json_str(&l->found.items[i], HK_STR("")));
    }
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        l->keeps_files |= e->d_name[0] != '.' && !leftovers_has_pod(l, e->d_name);
    }
    if (dir) {
        closedir(dir);
    }
}

static void leftovers_sweep_dirs(struct leftovers *l)
{
    struct host *h = leftovers_host(l);
    const char *pods = hk_arena_printf(&h->mem, "%s/pods", h->o.dir);
    DIR *dir = opendir(pods);

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] != '.' && !leftovers_has_pod(l, e->d_name)) {
            const char *path = hk_arena_printf(&h->mem, "%s/%s", pods, e->d_name);

            hk_log(HK_LOG_INFO, "removing files of no pod", "name=%s", e->d_name);
            volume_unmount(path);
            pod_image_remove(path);
            volume_remove(path);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* File names are the uid, optionally followed by "." and a suffix. */
static void leftovers_sweep_memory(struct leftovers *l)
{
    struct host *h = leftovers_host(l);
    DIR *dir = opendir(h->o.memory_dir);

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        const char *dot = strchr(e->d_name, '.');

        if (dot && dot > e->d_name &&
            !leftovers_has_pod(l,
                               hk_arena_strndup(&h->mem, e->d_name, (size_t)(dot - e->d_name)))) {
            unlink(hk_arena_printf(&h->mem, "%s/%s", h->o.memory_dir, e->d_name));
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static void leftovers_end_all(struct leftovers *l)
{
    struct host *h = leftovers_host(l);
    struct runtime *r = h->o.runtime;

    for (uint32_t i = 0; i < l->found.len; i++) {
        const struct hk_str uid = json_str(&l->found.items[i], HK_STR(""));

        hk_log(HK_LOG_INFO, "removing what runs for no pod", "uid=%.*s", HK_FMT(uid));
        r->ops->pod_stop(r, uid.s);
    }
    if (h->o.dir) {
        leftovers_sweep_dirs(l);
    }
    if (h->o.memory_dir) {
        leftovers_sweep_memory(l);
    }
}

void leftovers_sweep(struct leftovers *l, uint64_t rv)
{
    struct host *h = leftovers_host(l);
    struct runtime *r = h->o.runtime;

    l->swept = true;
    l->found = json_make_array();
    r->ops->each_pod(r, leftovers_collect, l);
    if (leftovers_may_be_lost(l, rv)) {
        leftovers_keep_all(l);
    }
    if (l->kept.len > 0 || l->keeps_files) {
        leftovers_warn(l);
        l->ntold = l->kept.len;
    } else {
        past_tell_kept(&l->past, &l->kept);
        leftovers_end_all(l);
    }
    l->found = (struct json){0};
    hk_arena_clear(&h->mem);
}

void leftovers_note(struct leftovers *l, uint64_t rv)
{
    if (l->swept && l->kept.len == 0 && !l->keeps_files) {
        past_note(&l->past, rv);
    }
}

/* ---- strays ---- */

struct leftovers_strays {
    const struct leftovers *l;
    bool any;
};

static void leftovers_check_stray(void *ctx, const char *uid)
{
    struct leftovers_strays *s = ctx;
    const struct pod *p = pods_find(s->l->pods, hk_str(uid));

    s->any |= p ? p->gone : leftovers_find_kept(s->l, hk_str(uid)) == HK_NONE;
}

bool leftovers_has_strays(const struct leftovers *l)
{
    struct leftovers_strays s = {.l = l};
    struct runtime *r = leftovers_host(l)->o.runtime;

    r->ops->each_pod(r, leftovers_check_stray, &s);
    return s.any;
}

/* ---- setup and teardown ---- */

void leftovers_init(struct leftovers *l, struct pods *ps)
{
    *l = (struct leftovers){.pods = ps, .kept = json_make_array()};
    past_init(&l->past, ps->host->o.record_dir);
}

void leftovers_fini(struct leftovers *l)
{
    past_fini(&l->past);
}
