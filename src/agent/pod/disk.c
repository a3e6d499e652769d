// SPDX-License-Identifier: Apache-2.0
// Measures the disk usage of pods and evicts those above a limit: emptyDir volumes with a
// sizeLimit, and limits of ephemeral-storage over volumes, logs and what containers change in their
// images, counted as in a kubelet. Files that a container writes elsewhere are not counted: without
// an image, or with a copy of one, it has no writable layer of its own.
//
// The kernel limits volumes in memory where the agent may mount them (volume.c). The others are
// walked in slices so that the loop does not block, one pod after the other, for at most a tenth of
// the time. A pod is measured when the file system has grown by as much as the pod may still write,
// and at least every minute, because files of others may have been removed in the same time. On an
// idle disk this costs one statvfs per second.
#include "agent/pod/disk.h"

#include "agent/pod/life.h"
#include "agent/pod/limits.h"
#include "agent/pod/volume.h"
#include "agent/pod/volume_dir.h"
#include "api/names.h"
#include "base/file.h"
#include "codec/quantity.h"
#include "image/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define LOOK_NS SECOND_NS           /* between checks of the file system */
#define MEASURE_NS (60 * SECOND_NS) /* between measurements of a pod, at most */
#define SLICE_ENTRIES 512
#define REST 10 /* pause after a slice, as a multiple of its duration */
#define BLOCK 512
/* Above any limit. Used for directories that are too deep to name or too many to remember: they
 * exist only to hide something. */
#define TOO_MUCH (INT64_MAX / 4)
#define PATH_LONGEST (PATH_MAX - NAME_MAX - 2)
#define TODO_MAX (1u << 20)

struct disk_volume {
    const struct json *spec; /* in the pod's object; NULL: what a container changed in its image */
    uint32_t container;      /* the index of that container */
    const char *path;
    int64_t limit; /* INT64_MAX: no own limit */
    int64_t used;
};

/* A measurement in progress. */
struct disk_walk {
    char *uid; /* of the pod; NULL: none */
    HK_VEC(struct disk_volume) volumes;
    uint32_t at;         /* the volume being walked */
    int top;             /* its directory; -1: not opened yet */
    HK_VEC(char *) todo; /* paths below it */
    char *path;          /* the directory being read; NULL: none */
    DIR *dir;
    int64_t used_before; /* of the file system, at the start */
    struct hk_arena mem;
};

struct disk {
    struct pods *set;
    struct disk_walk walk;
    int64_t look_ns;  /* next check of the file system */
    int64_t slice_ns; /* next slice of a walk */
};

/* ---- limits ---- */

static int64_t limit_of(const struct json *list, const char *name)
{
    struct quantity q;

    return pod_amount(list, name, &q) ? quantity_value(q) : INT64_MAX;
}

static const struct json *limits_of(const struct container *c)
{
    return json_at(c->spec, "resources.limits");
}

/* The sum over containers with a limit, as PodLimits computes it; false: none. Init containers run
 * alone. */
static bool total_limit(const struct pod *p, struct quantity *ret)
{
    struct quantity sum = {0}, q;
    bool found = false;

    for (uint32_t i = 0; i < p->ncontainer; i++) {
        const struct container *c = &p->containers[i];
        if ((!c->init || c->sidecar) && pod_amount(limits_of(c), API_RES_EPHEMERAL_STORAGE, &q)) {
            sum = found ? quantity_add(sum, q) : q;
            found = true;
        }
    }
    for (uint32_t i = 0; i < p->ninit; i++) {
        if (pod_amount(limits_of(&p->containers[i]), API_RES_EPHEMERAL_STORAGE, &q) &&
            (!found || quantity_cmp(q, sum) > 0)) {
            sum = q;
            found = true;
        }
    }
    *ret = sum;
    return found;
}

bool pod_disk_is_limited(const struct pod *p)
{
    const struct json *volumes = pod_spec(p, "volumes");
    struct quantity q;

    for (uint32_t i = 0; json_item(volumes, i); i++) {
        if (pod_amount(json_get(json_item(volumes, i), "emptyDir"), "sizeLimit", &q)) {
            return true;
        }
    }
    return total_limit(p, &q);
}

/* ---- walking ---- */

static void close_dir(struct disk_walk *w)
{
    if (w->dir) {
        closedir(w->dir);
        w->dir = NULL;
    }
    hk_free(w->path);
    w->path = NULL;
}

static void leave_volume(struct disk_walk *w)
{
    close_dir(w);
    while (w->todo.len > 0) {
        hk_free(hk_vec_pop(&w->todo));
    }
    if (w->top >= 0) {
        close(w->top);
        w->top = -1;
    }
}

static void walk_end(struct disk_walk *w)
{
    leave_volume(w);
    hk_vec_clear(&w->volumes);
    hk_free(w->uid);
    w->uid = NULL;
    hk_arena_clear(&w->mem);
}

/* Containers may move files during the walk: follow no link out of the volume. */
static DIR *open_below(int top, const char *path)
{
    const int fd = hk_open_beneath(top, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !dir) {
        close(fd);
    }
    return dir;
}

static void add_dir(struct disk_walk *w, const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};

    if (strcmp(w->path, ".") != 0) {
        hk_buf_addf(&path, "%s/", w->path);
    }
    hk_buf_adds(&path, name);
    if (path.len > PATH_LONGEST || w->todo.len >= TODO_MAX) {
        w->volumes.at[w->at].used = TOO_MUCH;
    } else {
        hk_vec_push(&w->todo, hk_strdup(path.data));
    }
}

static void add_entry(struct disk_walk *w, const char *name)
{
    struct disk_volume *v = &w->volumes.at[w->at];
    struct stat st;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        fstatat(dirfd(w->dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return; /* removed since it was listed */
    }
    /* A file with several links counts once if all of them are in the volume. */
    v->used += (int64_t)st.st_blocks * BLOCK /
               (S_ISDIR(st.st_mode) || st.st_nlink == 0 ? 1 : (int64_t)st.st_nlink);
    if (S_ISDIR(st.st_mode)) {
        add_dir(w, name);
    }
}

/* Opens the next directory of the volume, or the next volume; false at the end. */
static bool next_dir(struct disk_walk *w)
{
    struct disk_volume *v = &w->volumes.at[w->at];

    close_dir(w);
    if (w->top < 0) {
        w->top = open(v->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        hk_vec_push(&w->todo, hk_strdup("."));
    }
    /* Above its limit: no need to read the rest. */
    if (w->todo.len == 0 || v->used > v->limit || w->top < 0) {
        leave_volume(w);
        w->at++;
        return w->at < w->volumes.len;
    }
    w->path = hk_vec_pop(&w->todo);
    w->dir = open_below(w->top, w->path);
    return true;
}

/* Reads one slice; returns false at the end. */
static bool walk_on(struct disk_walk *w)
{
    for (uint32_t n = 0; n < SLICE_ENTRIES; n++) {
        const struct dirent *e = w->dir ? readdir(w->dir) : NULL;
        if (e) {
            add_entry(w, e->d_name);
        } else if (w->at >= w->volumes.len || !next_dir(w)) {
            return false;
        }
    }
    return true;
}

/* ---- checking limits ---- */

static int64_t file_bytes(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 ? (int64_t)st.st_blocks * BLOCK : 0;
}

static int64_t log_bytes(const struct container *c, struct hk_arena *a)
{
    int64_t sum = 0;

    for (uint32_t back = 0; back < 2 && back <= c->attempt; back++) {
        const char *path = pod_log_path(c, c->attempt - back, a);
        sum += file_bytes(path) + file_bytes(hk_arena_printf(a, "%s.1", path));
    }
    return sum;
}

/* What the container changed in its image. */
static int64_t change_bytes(const struct disk_walk *w, uint32_t container)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < w->volumes.len; i++) {
        const struct disk_volume *v = &w->volumes.at[i];

        sum += !v->spec && v->container == container ? HK_MIN(v->used, TOO_MUCH) : 0;
    }
    return sum;
}

static struct hk_str pod_disk_amount_text(const struct json *list, const char *name,
                                          struct hk_arena *a)
{
    struct hk_buf text = {0};
    struct quantity q = {0};

    pod_amount(list, name, &q);
    quantity_write(q, &text);
    const struct hk_str kept = hk_arena_str(a, hk_buf_str(&text));
    hk_buf_fini(&text);
    return kept;
}

/* The eviction message, or NULL. *room becomes the smallest amount that the pod may still write.
 * The texts are those of the kubelet (pkg/kubelet/eviction/helpers.go). */
static const char *judge_volumes(const struct disk_walk *w, int64_t *room, struct hk_arena *a)
{
    for (uint32_t i = 0; i < w->volumes.len; i++) {
        const struct disk_volume *v = &w->volumes.at[i];
        const struct json *source = json_get(v->spec, "emptyDir");

        if (v->limit == INT64_MAX) {
            continue;
        }
        if (v->used > v->limit) {
            return hk_arena_printf(a,
                                   "Usage of EmptyDir volume \"%.*s\" exceeds the limit \"%.*s\".",
                                   HK_FMT(json_str(json_get(v->spec, "name"), HK_STR(""))),
                                   HK_FMT(pod_disk_amount_text(source, "sizeLimit", a)));
        }
        *room = HK_MIN(*room, v->limit - v->used);
    }
    return NULL;
}

static const char *judge_pod(const struct pod *p, const struct disk_walk *w, int64_t *room,
                             struct hk_arena *a)
{
    const char *why = judge_volumes(w, room, a);
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct quantity total;
    int64_t sum = 0;

    if (why) {
        return why;
    }
    for (uint32_t i = 0; i < w->volumes.len; i++) {
        sum += HK_MIN(w->volumes.at[i].used, TOO_MUCH / w->volumes.len);
    }
    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        const struct container *c = pod_container_at(p, i);
        const int64_t logs = log_bytes(c, a), used = logs + change_bytes(w, i),
                      limit = limit_of(limits_of(c), API_RES_EPHEMERAL_STORAGE);

        sum += logs; /* the changes are among the volumes */
        if (used > limit) {
            why = hk_arena_printf(
                a, "Container %.*s exceeded its local ephemeral storage limit \"%.*s\".",
                HK_FMT(c->name),
                HK_FMT(pod_disk_amount_text(limits_of(c), API_RES_EPHEMERAL_STORAGE, a)));
        }
        *room = HK_MIN(*room, limit - used);
    }
    if (total_limit(p, &total)) {
        if (sum > quantity_value(total)) {
            quantity_write(total, &text);
            return hk_arena_printf(
                a, "Pod ephemeral local storage usage exceeds the total limit of containers %s.",
                text.data);
        }
        *room = HK_MIN(*room, quantity_value(total) - sum);
    }
    return why;
}

/* ---- timing ---- */

static int64_t used_bytes(const struct host *h)
{
    struct statvfs st;

    return statvfs(h->o.dir, &st) == 0 ? (int64_t)(st.f_blocks - st.f_bfree) * (int64_t)st.f_frsize
                                       : 0;
}

static bool may_be_over(const struct pod *p, int64_t used, int64_t now_ns)
{
    return p->stage == POD_LIVE && !p->gone &&
           (p->disk.measured_ns == 0 || now_ns - p->disk.measured_ns >= MEASURE_NS ||
            used - p->disk.used_before >= p->disk.room);
}

static void walk_changes(struct disk_walk *w, const struct pod *p)
{
    for (uint32_t i = 0; i < pod_ncontainers(p); i++) {
        const struct container *c = pod_container_at(p, i);

        if (c->begun && c->image_id) {
            const char *path = hk_arena_printf(&w->mem, "%s/" IMAGE_USES "/%.*s.%u/upper", p->dir,
                                               HK_FMT(c->name), c->attempt);

            hk_vec_push(&w->volumes,
                        (struct disk_volume){.container = i, .path = path, .limit = INT64_MAX});
        }
    }
}

static void walk_begin(struct disk *d, struct pod *p, int64_t used)
{
    struct disk_walk *w = &d->walk;
    const struct json *volumes = pod_spec(p, "volumes");

    w->uid = hk_strndup(p->uid.s, p->uid.n);
    w->used_before = used;
    w->at = 0;
    for (uint32_t i = 0; json_item(volumes, i); i++) {
        const struct json *source = json_get(json_item(volumes, i), "emptyDir");
        const char *path = volume_path(p, json_item(volumes, i), &w->mem);

        if (source && !volume_is_mounted(path)) { /* the kernel limits mounted volumes */
            hk_vec_push(&w->volumes, (struct disk_volume){.spec = json_item(volumes, i),
                                                          .path = path,
                                                          .limit = limit_of(source, "sizeLimit")});
        }
    }
    walk_changes(w, p);
}

static void walk_done(struct disk *d, int64_t now_ns)
{
    struct disk_walk *w = &d->walk;
    struct pod *p = pods_find(d->set, hk_str(w->uid));
    int64_t room = INT64_MAX;

    if (p && p->stage == POD_LIVE) {
        const char *why = judge_pod(p, w, &room, &w->mem);

        p->disk.measured_ns = now_ns;
        p->disk.used_before = w->used_before;
        p->disk.room = room;
        if (why) {
            pod_evict(p, why, now_ns);
        }
    }
    walk_end(w);
}

/* Starts with the pod measured longest ago, among those that may be above a limit; false if there
 * is none. *ret_any: some pod has limits. */
static bool find_next(struct disk *d, int64_t now_ns, bool *ret_any)
{
    struct pods *ps = d->set;
    struct pod *next = NULL;
    int64_t used = -1;

    *ret_any = false;
    for (uint32_t i = 0; i < ps->active.len; i++) {
        struct pod *p = ps->active.at[i];

        if (!p->disk.limited || !p->started) {
            continue;
        }
        *ret_any = true;
        used = used < 0 ? used_bytes(ps->host) : used;
        if (may_be_over(p, used, now_ns) &&
            (!next || p->disk.measured_ns < next->disk.measured_ns)) {
            next = p;
        }
    }
    if (next) {
        walk_begin(d, next, used);
    }
    return next != NULL;
}

int64_t disk_tick(struct disk *d, int64_t now_ns)
{
    bool any;

    if (!d) {
        return INT64_MAX;
    }
    if (!d->walk.uid) {
        if (d->look_ns > now_ns) {
            return d->look_ns;
        }
        if (!find_next(d, now_ns, &any)) {
            d->look_ns = now_ns + LOOK_NS;
            return any ? d->look_ns : INT64_MAX; /* a new pod wakes this up */
        }
    }
    if (d->slice_ns > now_ns) {
        return d->slice_ns;
    }
    if (!walk_on(&d->walk)) {
        walk_done(d, now_ns);
    }
    const int64_t end_ns = host_mono_ns(d->set->host);
    d->slice_ns = end_ns + REST * (end_ns - now_ns);
    return d->slice_ns;
}

/* ---- setup and teardown ---- */

struct disk *disk_new(struct pods *ps)
{
    struct disk *d = hk_zalloc(sizeof(*d));

    d->set = ps;
    d->walk.top = -1;
    return d;
}

void disk_free(struct disk *d)
{
    if (d) {
        walk_end(&d->walk);
        hk_vec_fini(&d->walk.volumes);
        hk_vec_fini(&d->walk.todo);
        hk_arena_fini(&d->walk.mem);
        hk_free(d);
    }
}
