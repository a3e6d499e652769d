// SPDX-License-Identifier: Apache-2.0
// Watches files for changes, with inotify on their directories: a name survives a rename, an inode
// does not.
#include "net/files.h"

#include "base/str.h"

#include <libgen.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

/* A certificate and its key are two writes: waits for both. */
#define SETTLE_NS ((int64_t)100 * 1000 * 1000)
/* Some file systems report no changes. */
#define RECHECK_NS ((int64_t)60 * 1000 * 1000 * 1000)

struct net_files {
    struct net_files_opts o;
    int fd;
    struct net_watch *watch;
    struct net_timer *timer;
    bool settling; /* the timer waits after a change */
};

static void net_files_set_timer(struct net_files *f, int64_t wait_ns)
{
    net_timer_at(f->timer, net_loop_now_ns(f->o.loop) + wait_ns);
}

static void on_due(void *ctx)
{
    struct net_files *f = ctx;

    f->settling = false;
    net_files_set_timer(f, RECHECK_NS);
    f->o.changed(f->o.ctx);
}

static void on_event(void *ctx, uint32_t events)
{
    struct net_files *f = ctx;
    char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

    while (read(f->fd, buf, sizeof(buf)) > 0) {
    }
    if (!f->settling) { /* a directory that changes all the time must not delay the call forever */
        f->settling = true;
        net_files_set_timer(f, SETTLE_NS);
    }
}

static int watch_directory(struct net_files *f, const char *path, struct hk_err *err)
{
    HK_AUTO(hk_freep) char *copy = hk_strdup(path);
    const char *dir = dirname(copy);

    if (inotify_add_watch(f->fd, dir, IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE) < 0) {
        return hk_fail(err, HK_EIO, "cannot watch the directory '%s': %m", dir);
    }
    return 0;
}

int net_files_new(const struct net_files_opts *o, struct net_files **ret, struct hk_err *err)
{
    struct net_files *f = hk_zalloc(sizeof(*f));
    int rc = 0;

    f->o = *o;
    f->o.paths = NULL;
    f->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (f->fd < 0) {
        rc = hk_fail(err, HK_EIO, "cannot watch files: %m");
    }
    for (uint32_t i = 0; rc == 0 && i < o->npaths; i++) {
        rc = o->paths[i] ? watch_directory(f, o->paths[i], err) : 0;
    }
    if (rc < 0) {
        net_files_free(f);
        return rc;
    }
    f->watch = net_watch_add(o->loop, f->fd, EPOLLIN, on_event, f);
    f->timer = net_timer_new(o->loop, on_due, f);
    net_files_set_timer(f, RECHECK_NS);
    *ret = f;
    return 0;
}

void net_files_free(struct net_files *f)
{
    if (!f) {
        return;
    }
    net_watch_del(f->watch);
    net_timer_free(f->timer);
    if (f->fd >= 0) {
        close(f->fd);
    }
    hk_free(f);
}
