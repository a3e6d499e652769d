// SPDX-License-Identifier: Apache-2.0
// Translates the spec of a pod into the runtime's terms: limits, users, roots, mounts, and the
// files of a container in the pod's directory. pod.c decides when to start.
#include "agent/agent_priv.h"

#include "api/names.h"
#include "base/file.h"
#include "codec/quantity.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

const struct json *pod_spec(const struct pod *p, const char *path)
{
    return json_at(json_get(&p->obj->root, "spec"), path);
}

const char *pod_log_path(const struct container *c, uint32_t attempt, struct hk_arena *a)
{
    const char *dir = c->pod->dir;

    return dir ? hk_arena_printf(a, "%s/%.*s.%u.log", dir, HK_FMT(c->name), attempt) : NULL;
}

/* The root directory that the options map the image to, or NULL. */
static const char *image_root(const struct container *c, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct hk_str image = json_str(json_get(c->spec, "image"), HK_STR(""));
    const char *path = c->pod->a->o.image_roots;
    struct hk_str rest, line, word;

    if (!path || hk_read_file(path, 1 << 20, &text, NULL) < 0) {
        return NULL;
    }
    rest = hk_buf_str(&text);
    while (hk_str_cut(&rest, '\n', &line)) {
        line = hk_str_trim(line);
        if (hk_str_cut(&line, ' ', &word) && line.s && hk_str_eq(word, image)) {
            return hk_arena_str(a, hk_str_trim(line)).s;
        }
    }
    return NULL;
}

bool pod_amount(const struct json *limits, const char *name, struct quantity *ret)
{
    const struct json *v = json_get(limits, name);

    if (json_is(v, JSON_INT)) {
        *ret = quantity_of(v->i, QUANTITY_DECIMAL_SI);
        return true;
    }
    return json_is(v, JSON_STRING) && quantity_parse(json_str(v, HK_STR("")), ret, NULL) == 0;
}

static struct runtime_limits limits_of(const struct json *limits)
{
    struct runtime_limits ret = {0};
    struct quantity q;

    if (pod_amount(limits, API_RES_CPU, &q)) {
        ret.cpu_milli = quantity_milli(q);
    }
    if (pod_amount(limits, API_RES_MEMORY, &q)) {
        ret.mem_bytes = quantity_value(q);
    }
    return ret;
}

/* The limit of the pod itself, else the sum over the containers if each has one. */
static struct runtime_limits pod_limits(const struct pod *p)
{
    const struct runtime_limits own = limits_of(pod_spec(p, "resources.limits"));
    struct runtime_limits sum = {0};
    bool cpu = true, mem = true;

    for (uint32_t i = p->ninit; i < p->ncontainer; i++) {
        const struct runtime_limits l =
            limits_of(json_at(p->containers[i].spec, "resources.limits"));

        cpu = cpu && l.cpu_milli > 0;
        mem = mem && l.mem_bytes > 0;
        sum.cpu_milli += l.cpu_milli;
        sum.mem_bytes += l.mem_bytes;
    }
    return (struct runtime_limits){
        .cpu_milli = own.cpu_milli > 0 || !cpu ? own.cpu_milli : sum.cpu_milli,
        .mem_bytes = own.mem_bytes > 0 || !mem ? own.mem_bytes : sum.mem_bytes,
    };
}

int64_t pod_start_memory(const struct pod *p)
{
    const int64_t bytes = pod_limits(p).mem_bytes;

    return bytes > 0 ? bytes : INT64_MAX;
}

int pod_start_pod(struct pod *p, struct hk_err *err)
{
    struct hk_arena *a = &p->a->mem;
    int rc;

    if (p->started) {
        return 0;
    }
    if (p->hosts_stale) {
        pod_hosts_write_own(p);
    }
    rc = p->a->o.runtime->ops->pod_start(
        p->a->o.runtime,
        &(struct runtime_pod){.uid = hk_arena_str(a, p->uid).s,
                              .ns = hk_arena_str(a, p->ns).s,
                              .name = hk_arena_str(a, p->name).s,
                              .hostname = hk_arena_str(a, p->hostname).s,
                              .dir = p->dir,
                              .hosts = pod_hosts_path(p, a),
                              .address = p->address[0] ? p->address : NULL,
                              .limits = pod_limits(p),
                              .host_ipc = json_bool(pod_spec(p, "hostIPC"), false)},
        err);
    p->started = rc == 0;
    p->disk.limited = p->started && p->dir && pod_disk_is_limited(p);
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
    struct hk_arena *a = &c->pod->a->mem;

    if (c->attempt >= 2) {
        const char *old = pod_log_path(c, c->attempt - 2, a);

        unlink(old);
        unlink(hk_arena_printf(a, "%s.1", old));
        unlink(hk_arena_printf(a, "%s" POD_LOG_LOST, old));
    }
    return pod_start_create_file(path, 0640, err);
}

int pod_start_describe(struct container *c, const struct env *e, struct runtime_container *ret,
                       struct hk_err *err)
{
    static const char *const shell[] = {"/bin/sh", NULL};
    struct hk_arena *a = &c->pod->a->mem;
    struct runtime_mount *mounts;
    const struct hk_str cwd = json_str(json_get(c->spec, "workingDir"), HK_STR(""));
    int rc;

    *ret = (struct runtime_container){
        .pod_uid = hk_arena_str(a, c->pod->uid).s,
        .name = hk_arena_str(a, c->name).s,
        .attempt = c->attempt,
        .argv = env_argv(e, c->spec, a),
        .env = env_block(e, a),
        .cwd = cwd.n > 0 ? hk_arena_str(a, cwd).s : NULL,
        .limits = limits_of(json_at(c->spec, "resources.limits")),
        .root = image_root(c, a),
        .log = pod_log_path(c, c->attempt, a),
        .tty = json_bool(json_get(c->spec, "tty"), false),
        .stdin_open = json_bool(json_get(c->spec, "stdin"), false),
    };
    if (!ret->argv && ret->root) {
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

void pod_start_mount(struct runtime_container *rc, struct runtime_mount m, struct hk_arena *a)
{
    struct runtime_mount *mounts = hk_arena_array(a, rc->nmount + 1, sizeof(*mounts));

    if (rc->nmount > 0) {
        memcpy(mounts, rc->mounts, rc->nmount * sizeof(*mounts));
    }
    mounts[rc->nmount++] = m;
    rc->mounts = mounts;
}

static struct runtime_container nominal(const struct container *c)
{
    struct hk_arena *a = &c->pod->a->mem;

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
    struct runtime *r = c->pod->a->o.runtime;

    return r->ops->delay ? r->ops->delay(r, &rc) : 0;
}

int pod_start_nominal(struct container *c, int64_t started_ns, struct hk_err *err)
{
    struct runtime_container rc = nominal(c);
    struct runtime *r = c->pod->a->o.runtime;
    int ret;

    rc.started_ns = started_ns;
    ret = r->ops->start(r, &rc, &c->id, err);
    if (ret == 0) {
        agent_claim(c->pod, c->id);
    }
    return ret;
}

int pod_start_launch(struct container *c, const struct runtime_container *rc, struct hk_err *err)
{
    struct runtime *r = c->pod->a->o.runtime;
    struct runtime_container with = *rc;
    int ret = 0;

    if (c->pod->dir) {
        ret = make_log(c, rc->log, err);
        ret = ret < 0 ? ret : pod_message_mount(c, &with, err);
        ret = ret < 0 ? ret : pod_dns_mount(c->pod, &with, err);
        pod_gpu_hide(c, &with);
    }
    ret = ret < 0 ? ret : r->ops->start(r, &with, &c->id, err);
    if (ret == 0) {
        agent_claim(c->pod, c->id);
    }
    return ret;
}
