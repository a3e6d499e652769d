// SPDX-License-Identifier: Apache-2.0
// Translates the spec of a pod into the runtime's terms: users, roots, mounts, and the files
// of a container in the pod's directory. life.c decides when to start.
#include "agent/pod/start.h"

#include "agent/pod/dns.h"
#include "agent/pod/gpu.h"
#include "agent/pod/hosts.h"
#include "agent/pod/image.h"
#include "agent/pod/limits.h"
#include "agent/pod/message.h"
#include "agent/pod/security.h"
#include "agent/pod/volume.h"
#include "agent/pod/volume_dir.h"
#include "codec/timefmt.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int pod_settle_in(struct pod *p, struct hk_err *err)
{
    int rc = 0;

    if (p->settled) {
        return 0;
    }
    if (p->dir) {
        rc = volume_mkdir(p->dir, 0711, err);
    }
    if (rc < 0) {
        return rc;
    }
    rc = pod_hosts_address(p, err);
    p->settled = rc == 0;
    return rc;
}

int pod_start_pod(struct pod *p, struct hk_err *err)
{
    struct hk_arena *a = &p->host->mem;
    const char *hostname;
    int rc;

    if (p->started) {
        return 0;
    }
    rc = pod_hosts_own_name(p, a, &hostname, err);
    if (rc < 0) {
        return rc;
    }
    if (p->hosts_stale) {
        pod_hosts_write_own(p);
    }
    rc = p->host->o.runtime->ops->pod_start(
        p->host->o.runtime,
        &(struct runtime_pod){.uid = hk_arena_str(a, p->uid).s,
                              .ns = hk_arena_str(a, p->ns).s,
                              .name = hk_arena_str(a, p->name).s,
                              .hostname = hostname,
                              .dir = p->dir,
                              .hosts = pod_hosts_path(p, a),
                              .address = p->address[0] ? p->address : NULL,
                              .limits = pod_limits(p),
                              .host_ipc = json_bool(pod_spec(p, "hostIPC"), false)},
        err);
    p->started = rc == 0;
    return rc;
}

/* Creates the empty file that proves that the attempt exists. */
static int pod_start_create_file(const char *path, unsigned mode, struct hk_err *err)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);

    if (fd < 0) {
        return hk_fail(err, HK_EIO, "cannot make '%s': %s", path, strerror(errno));
    }
    fchmod(fd, mode);
    close(fd);
    return 0;
}

/* Keeps the log of the last attempt only. */
static int make_log(struct container *c, const char *path, struct hk_err *err)
{
    struct hk_arena *a = &c->pod->host->mem;

    if (c->attempt >= 2) {
        const char *old = pod_log_path(c, c->attempt - 2, a);

        unlink(old);
        unlink(hk_arena_printf(a, "%s.1", old));
        unlink(hk_arena_printf(a, "%s" POD_LOG_LOST, old));
    }
    return pod_start_create_file(path, 0640, err);
}

/* The container that an ephemeral one shares; NULL: none. */
static const char *pod_start_target(const struct container *c, struct hk_arena *a)
{
    const struct hk_str name = json_str(json_get(c->spec, "targetContainerName"), HK_STR(""));

    return name.n > 0 ? hk_arena_str(a, name).s : NULL;
}

int pod_start_describe(struct container *c, const struct env *e, struct runtime_container *ret,
                       struct hk_err *err)
{
    static const char *const shell[] = {"/bin/sh", NULL};
    struct hk_arena *a = &c->pod->host->mem;
    struct runtime_mount *mounts;
    const struct hk_str cwd = json_str(json_get(c->spec, "workingDir"), HK_STR(""));
    int rc;

    *ret = (struct runtime_container){
        .pod_uid = hk_arena_str(a, c->pod->uid).s,
        .name = hk_arena_str(a, c->name).s,
        .attempt = c->attempt,
        .argv = c->image ? pod_image_argv(c->image, c, e, a) : env_argv(e, c->spec, a),
        .env = env_block(e, a),
        .cwd = cwd.n > 0 ? hk_arena_str(a, cwd).s : NULL,
        .limits = pod_limits_of_container(c),
        .root = c->image ? c->image->root : pod_image_mapped_root(c, a),
        .log = pod_log_path(c, c->attempt, a),
        .target = pod_start_target(c, a),
        .tty = json_bool(json_get(c->spec, "tty"), false),
        .stdin_open = json_bool(json_get(c->spec, "stdin"), false),
    };
    if (c->image && cwd.n == 0 && c->image->config.cwd.n > 0) {
        ret->cwd = hk_arena_str(a, c->image->config.cwd).s;
    }
    if (!ret->argv && ret->root && !c->image) {
        ret->argv = shell; /* the default of most images */
    }
    rc = pod_security(c, ret, err);
    if (rc < 0) {
        return rc;
    }
    rc = volume_mounts(c->pod, c, e, a, &mounts, &ret->nmount, err);
    ret->mounts = mounts;
    return rc;
}

static struct runtime_container nominal(const struct container *c)
{
    struct hk_arena *a = &c->pod->host->mem;

    return (struct runtime_container){
        .pod_uid = hk_arena_str(a, c->pod->uid).s,
        .name = hk_arena_str(a, c->name).s,
        .attempt = c->attempt,
        .annotations = json_at(&c->pod->obj->root, "metadata.annotations"),
    };
}

int64_t pod_start_delay(const struct container *c)
{
    const struct runtime_container rc = nominal(c);
    struct runtime *r = c->pod->host->o.runtime;

    return r->ops->delay ? r->ops->delay(r, &rc) : 0;
}

int pod_start_nominal(struct container *c, int64_t started_ns, struct hk_err *err)
{
    struct runtime_container rc = nominal(c);
    struct runtime *r = c->pod->host->o.runtime;
    int ret;

    rc.started_ns = started_ns;
    ret = r->ops->start(r, &rc, &c->id, err);
    if (ret == 0) {
        pod_claim(c->pod, c->id);
    }
    return ret;
}

static int make_image_files(const struct container *c, struct runtime_container *rc,
                            struct hk_err *err)
{
    int ret = pod_image_prepare(c, c->image, c->attempt, &rc->changes, err);

    return ret < 0 ? ret : pod_image_mount_hostname(c->pod, rc, err);
}

static int pod_start_make_files(struct container *c, struct runtime_container *rc,
                                struct hk_err *err)
{
    int ret = make_log(c, rc->log, err);

    if (ret < 0) {
        return ret;
    }
    ret = pod_message_mount(c, rc, err);
    if (ret < 0) {
        return ret;
    }
    ret = pod_dns_mount(c->pod, rc, err);
    if (ret < 0) {
        return ret;
    }
    ret = c->image ? make_image_files(c, rc, err) : 0;
    if (ret < 0) {
        return ret;
    }
    pod_gpu_hide(c, rc);
    return 0;
}

int pod_start_launch(struct container *c, const struct runtime_container *rc, struct hk_err *err)
{
    struct runtime *r = c->pod->host->o.runtime;
    struct runtime_container with = *rc;
    int ret = c->pod->dir ? pod_start_make_files(c, &with, err) : 0;

    if (ret < 0) {
        return ret;
    }
    ret = r->ops->start(r, &with, &c->id, err);
    if (ret == 0) {
        pod_claim(c->pod, c->id);
    }
    return ret;
}

void pod_start_log_failure(const struct container *c, const char *why)
{
    HK_AUTO(hk_buf_fini) struct hk_buf line = {0};
    int fd;

    if (!c->ephemeral || !c->pod->dir || !why || !why[0]) {
        return;
    }
    time_write_micro(host_wall_ns(c->pod->host), &line);
    hk_buf_addf(&line, " stderr F %s\n", why);
    fd = open(pod_log_path(c, c->attempt, &c->pod->host->mem),
              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (fd >= 0) {
        (void)!write(fd, line.data, line.len); /* the status and an event say it, too */
        close(fd);
    }
}
