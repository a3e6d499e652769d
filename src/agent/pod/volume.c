// SPDX-License-Identifier: Apache-2.0
// Volumes of a pod, as directories and files below the pod's directory: DIR/.volumes/NAME.
// Container names cannot begin with a dot. The runtime gets their places in containers as mounts.
// volume_files.c writes and updates the files.
#include "agent/pod/volume.h"

#include "agent/pod/limits.h"
#include "agent/pod/volume_dir.h"
#include "agent/pod/volume_files.h"
#include "agent/pod/volume_local.h"
#include "base/file.h"
#include "codec/quantity.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define VOLUMES ".volumes"
#define MODE_DEFAULT 0644

struct volume {
    const struct pod *p;
    struct hk_str name;
    const char *dir;
    unsigned mode;    /* default mode of files */
    int64_t fs_group; /* -1: none */
    struct volume_files *files;
};

static void volume_close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
}

/* ---- sources of files ---- */

static unsigned mode_of(const struct json *from, const char *key, unsigned fallback)
{
    return (unsigned)json_int(json_get(from, key), fallback) & 0777;
}

static int add_items(const struct volume *v, const struct ref *r, const struct json *items,
                     bool optional, struct hk_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && json_item(items, i); i++) {
        const struct json *item = json_item(items, i);
        const struct hk_str key = json_str(json_get(item, "key"), HK_STR(""));
        struct hk_str data;

        if (ref_data(r, key, &v->p->host->mem, &data)) {
            rc = volume_files_add(v->files, json_str(json_get(item, "path"), HK_STR("")), data,
                                  mode_of(item, "mode", v->mode), err);
        } else if (!optional) {
            rc =
                hk_fail(err, HK_ENOTFOUND, "references non-existent config key: %.*s", HK_FMT(key));
        }
    }
    return rc;
}

static int add_all(const struct volume *v, const struct ref *r, struct hk_err *err)
{
    static const char *const parts[] = {"data", "binaryData"};
    int rc = 0;

    for (size_t part = 0; part < HK_LEN(parts); part++) {
        const struct json *data = json_get(&r->obj->root, parts[part]);

        for (uint32_t i = 0; rc == 0 && json_is(data, JSON_OBJECT) && i < data->len; i++) {
            const struct hk_str key = data->members[i].key;
            struct hk_str text;

            if (!ref_data(r, key, &v->p->host->mem, &text)) {
                return hk_fail(err, HK_EINVAL, "key '%.*s' is not base64", HK_FMT(key));
            }
            rc = volume_files_add(v->files, key, text, v->mode, err);
        }
    }
    return rc;
}

static int add_ref(const struct volume *v, const struct json *source, enum api_kind_id kind,
                   const char *name_key, struct hk_err *err)
{
    const struct hk_str name = json_str(json_get(source, name_key), HK_STR(""));
    const bool optional = json_bool(json_get(source, "optional"), false);
    const struct json *items = json_get(source, "items");
    const struct ref *r = ref_find(v->p, kind, name);

    if (!r || !r->obj) {
        return optional ? 0
                        : hk_fail(err, HK_ENOTFOUND, "%s \"%.*s\" not found",
                                  api_kind(kind)->singular, HK_FMT(name));
    }
    if (json_item(items, 0)) {
        return add_items(v, r, items, optional, err);
    }
    return add_all(v, r, err);
}

static int add_downward(const struct volume *v, const struct json *items, struct hk_err *err)
{
    struct hk_arena *a = &v->p->host->mem;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && json_item(items, i); i++) {
        const struct json *item = json_item(items, i);
        const struct json *resource = json_get(item, "resourceFieldRef");
        const struct hk_str path = json_str(json_at(item, "fieldRef.fieldPath"), HK_STR(""));
        struct hk_str text = HK_STR("");

        if (resource) {
            rc = env_resource(v->p, NULL, resource, a, &text, err);
        } else if (!env_field(v->p, path, a, &text)) {
            rc = hk_fail(err, HK_EINVAL, "unsupported fieldPath: %.*s", HK_FMT(path));
        }
        if (rc < 0) {
            return rc;
        }
        rc = volume_files_add(v->files, json_str(json_get(item, "path"), HK_STR("")), text,
                              mode_of(item, "mode", v->mode), err);
    }
    return rc;
}

static int add_token(const struct volume *v, const struct json *source, struct hk_err *err)
{
    const struct hk_str token = ref_token(v->p, source);

    if (token.n == 0) {
        return hk_fail(err, HK_ENOTFOUND, "no token for serviceaccount \"%.*s\"",
                       HK_FMT(json_str(pod_spec(v->p, "serviceAccountName"), HK_STR(""))));
    }
    return volume_files_add(v->files, json_str(json_get(source, "path"), HK_STR("")), token,
                            v->mode, err);
}

static int add_projected(const struct volume *v, const struct json *sources, struct hk_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && json_item(sources, i); i++) {
        const struct json *s = json_item(sources, i), *one;

        if ((one = json_get(s, "configMap"))) {
            rc = add_ref(v, one, API_CONFIGMAP, "name", err);
        } else if ((one = json_get(s, "secret"))) {
            rc = add_ref(v, one, API_SECRET, "name", err);
        } else if ((one = json_get(s, "downwardAPI"))) {
            rc = add_downward(v, json_get(one, "items"), err);
        } else if ((one = json_get(s, "serviceAccountToken"))) {
            rc = add_token(v, one, err);
        }
    }
    return rc;
}

/* ---- kinds of volumes ---- */

/* INT64_MAX: not set. A tmpfs has at least one page. */
static int64_t bytes_of(const struct json *obj, const char *name)
{
    struct quantity q;

    return pod_amount(obj, name, &q) ? HK_MAX(quantity_value(q), 1) : INT64_MAX;
}

void volume_unmount(const char *pod_dir)
{
    char path[PATH_MAX];
    DIR *dir;

    snprintf(path, sizeof(path), "%s/" VOLUMES, pod_dir);
    dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        snprintf(path, sizeof(path), "%s/" VOLUMES "/%s", pod_dir, e->d_name);
        if (e->d_name[0] != '.' && volume_is_mounted(path)) {
            umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* Mounts a tmpfs with the size limit of the volume, or of the pod's memory: the kernel charges it
 * to the container. Without permission to mount, the volume is a directory, and disk.c measures
 * it. */
static void mount_memory(const struct volume *v, const struct json *source)
{
    const int64_t bytes = HK_MIN(bytes_of(source, "sizeLimit"), pod_limits_memory(v->p));
    const char *size = hk_arena_printf(&v->p->host->mem, "mode=0777,size=%lld", (long long)bytes);

    if (!volume_is_mounted(v->dir)) {
        mount("hekla", v->dir, "tmpfs", MS_NOSUID | MS_NODEV,
              bytes < INT64_MAX ? size : "mode=0777");
    }
}

static int prepare_empty(const struct volume *v, const struct json *source, struct hk_err *err)
{
    const bool grouped = v->fs_group >= 0;

    if (hk_str_is(json_str(json_get(source, "medium"), HK_STR("")), "Memory")) {
        mount_memory(v, source);
    }

    if (grouped && chown(v->dir, (uid_t)-1, (gid_t)v->fs_group) < 0) {
        return volume_fail_errno(err, "set the group of", v->dir);
    }
    return chmod(v->dir, grouped ? 02777 : 0777) < 0
               ? volume_fail_errno(err, "set the mode of", v->dir)
               : 0;
}

static int prepare_config(const struct volume *v, const struct json *source, struct hk_err *err)
{
    return add_ref(v, source, API_CONFIGMAP, "name", err);
}

static int prepare_secret(const struct volume *v, const struct json *source, struct hk_err *err)
{
    return add_ref(v, source, API_SECRET, "secretName", err);
}

static int prepare_downward(const struct volume *v, const struct json *source, struct hk_err *err)
{
    return add_downward(v, json_get(source, "items"), err);
}

static int prepare_projected(const struct volume *v, const struct json *source, struct hk_err *err)
{
    return add_projected(v, json_get(source, "sources"), err);
}

/* The file type that a hostPath type requires. */
static const struct host_type {
    const char *name;
    mode_t format; /* 0: anything */
    bool create;
} host_types[] = {
    {"", 0, false},
    {"DirectoryOrCreate", S_IFDIR, true},
    {"Directory", S_IFDIR, false},
    {"FileOrCreate", S_IFREG, true},
    {"File", S_IFREG, false},
    {"Socket", S_IFSOCK, false},
    {"CharDevice", S_IFCHR, false},
    {"BlockDevice", S_IFBLK, false},
};

static int create_host(const char *path, const struct host_type *t, struct hk_arena *a,
                       struct hk_err *err)
{
    int rc = volume_make_parents("", hk_str(path + strspn(path, "/")), 0755, a, err);

    if (rc < 0) {
        return rc;
    }
    if (t->format == S_IFDIR) {
        return volume_mkdir(path, 0755, err);
    }
    HK_AUTO(volume_close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    return fd < 0 ? volume_fail_errno(err, "make", path) : 0;
}

static int prepare_host(const struct volume *v, const struct json *source, struct hk_err *err)
{
    struct hk_arena *a = &v->p->host->mem;
    const char *path = hk_arena_str(a, json_str(json_get(source, "path"), HK_STR(""))).s;
    const struct hk_str type = json_str(json_get(source, "type"), HK_STR(""));
    const struct host_type *t = NULL;
    struct stat st;
    int rc;

    for (size_t i = 0; i < HK_LEN(host_types) && !t; i++) {
        t = hk_str_is(type, host_types[i].name) ? &host_types[i] : NULL;
    }
    if (!t || path[0] != '/') {
        return hk_fail(err, HK_EINVAL, "hostPath '%s' of type '%.*s' is not understood", path,
                       HK_FMT(type));
    }
    if (volume_is_covered(v->p->host, path)) {
        return hk_fail(err, HK_EDENIED, "hostPath " VOLUME_COVERED, path);
    }
    if (t->create && stat(path, &st) < 0) {
        rc = create_host(path, t, a, err);
        if (rc < 0) {
            return rc;
        }
    }
    if (stat(path, &st) < 0) {
        return volume_fail_errno(err, "find", path);
    }
    if (t->format && (st.st_mode & S_IFMT) != t->format) {
        return hk_fail(err, HK_EINVAL, "hostPath type check failed: %s is not a %s", path, t->name);
    }
    return 0;
}

/* Finds the volume that a claim is bound to. */
static int find_claim(const struct pod *p, const struct json *source, const struct api_object **ret,
                      struct hk_err *err)
{
    const struct hk_str name = json_str(json_get(source, "claimName"), HK_STR(""));
    const struct ref *r = ref_find(p, API_PVC, name);

    if (!r || !r->obj) {
        return hk_fail(err, HK_ENOTFOUND, "persistentvolumeclaim \"%.*s\" not found", HK_FMT(name));
    }
    if (!r->volume) {
        return hk_fail(err, HK_ENOTFOUND, "persistentvolumeclaim \"%.*s\" is not bound",
                       HK_FMT(name));
    }
    *ret = r->volume;
    return 0;
}

static int prepare_claim(const struct volume *v, const struct json *source, struct hk_err *err)
{
    const struct api_object *pv;
    int rc = find_claim(v->p, source, &pv, err);

    if (rc < 0) {
        return rc;
    }
    if (json_at(&pv->root, "spec.hostPath")) {
        return prepare_host(v, json_at(&pv->root, "spec.hostPath"), err);
    }
    if (json_at(&pv->root, "spec.local")) {
        return volume_local_make(v->p, pv, v->fs_group, err);
    }
    return hk_fail(err, HK_EUNSUP,
                   "persistentvolume \"%.*s\" is of a kind that is not offered by this node",
                   HK_FMT(pv->name));
}

static const struct volume_type {
    const char *field;
    bool dir;   /* is in the pod's directory */
    bool files; /* contains files from prepare, which may change */
    int (*prepare)(const struct volume *v, const struct json *source, struct hk_err *err);
} types[] = {
    {"emptyDir", true, false, prepare_empty},
    {"hostPath", false, false, prepare_host},
    {"configMap", true, true, prepare_config},
    {"secret", true, true, prepare_secret},
    {"downwardAPI", true, true, prepare_downward},
    {"projected", true, true, prepare_projected},
    {"persistentVolumeClaim", false, false, prepare_claim},
};

static const struct volume_type *volume_find_type(const struct json *volume)
{
    for (size_t i = 0; i < HK_LEN(types); i++) {
        if (json_get(volume, types[i].field)) {
            return &types[i];
        }
    }
    return NULL;
}

static int volume_fill(const struct volume *v, const struct volume_type *t,
                       const struct json *source, struct hk_err *err)
{
    int rc;

    if (!t) {
        return hk_fail(err, HK_EUNSUP, "this kind of volume is not offered by this node");
    }
    rc = t->dir ? volume_mkdir(v->dir, 0755, err) : 0;
    if (rc < 0) {
        return rc;
    }
    rc = t->prepare(v, source, err);
    if (rc < 0 || !t->files) {
        return rc;
    }
    return volume_files_write(v->files, v->dir, &v->p->host->mem, err);
}

static int volume_prepare_one(struct pod *p, const struct json *spec, struct hk_err *err)
{
    HK_AUTO(volume_files_fini) struct volume_files files = {.group = -1};
    const struct volume_type *t = volume_find_type(spec);
    const struct json *source = t ? json_get(spec, t->field) : NULL;
    struct volume v = {
        .p = p,
        .name = json_str(json_get(spec, "name"), HK_STR("")),
        .mode = mode_of(source, "defaultMode", MODE_DEFAULT),
        .fs_group = -1,
        .files = &files,
    };
    int rc;

    v.dir = volume_path(p, spec, &p->host->mem);
    if (geteuid() == 0) { /* other users cannot chown */
        v.fs_group = json_int(json_at(&p->obj->root, "spec.securityContext.fsGroup"), -1);
    }
    files.group = v.fs_group;
    rc = volume_fill(&v, t, source, err);
    return rc < 0 ? hk_wrap(err, rc, "volume \"%.*s\"", HK_FMT(v.name)) : 0;
}

int volume_prepare(struct pod *p, struct hk_err *err)
{
    const struct json *volumes = json_at(&p->obj->root, "spec.volumes");
    int rc;

    if (!p->dir || !json_item(volumes, 0)) {
        return 0;
    }
    rc = volume_mkdir(hk_arena_printf(&p->host->mem, "%s/" VOLUMES, p->dir), 0755, err);
    for (uint32_t i = 0; rc == 0 && json_item(volumes, i); i++) {
        rc = volume_prepare_one(p, json_item(volumes, i), err);
    }
    return rc;
}

int volume_refresh(struct pod *p, struct hk_err *err)
{
    const struct json *volumes = json_at(&p->obj->root, "spec.volumes");
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && p->dir && json_item(volumes, i); i++) {
        const struct json *spec = json_item(volumes, i);
        const struct volume_type *t = volume_find_type(spec);

        if (t && t->files) {
            rc = volume_prepare_one(p, spec, err);
        }
    }
    return rc;
}

/* ---- mounts ---- */

const char *volume_path(const struct pod *p, const struct json *volume, struct hk_arena *a)
{
    return hk_arena_printf(a, "%s/" VOLUMES "/%.*s", p->dir,
                           HK_FMT(json_str(json_get(volume, "name"), HK_STR(""))));
}

static const struct json *find_volume(const struct pod *p, struct hk_str name)
{
    const struct json *volumes = json_at(&p->obj->root, "spec.volumes");

    for (uint32_t i = 0; json_item(volumes, i); i++) {
        if (hk_str_eq(json_str(json_get(json_item(volumes, i), "name"), HK_STR("")), name)) {
            return json_item(volumes, i);
        }
    }
    return NULL;
}

/* The host path of the volume. *ret_own: the agent created it, for this pod or for its claim. */
static int host_dir(const struct pod *p, const struct json *volume, struct hk_arena *a,
                    const char **ret, bool *ret_own, struct hk_err *err)
{
    const struct json *claim = json_get(volume, "persistentVolumeClaim");
    const struct json *path = json_at(volume, "hostPath.path");
    const struct api_object *pv;
    int rc = claim ? find_claim(p, claim, &pv, err) : 0;

    if (rc < 0) {
        return rc;
    }
    *ret_own = !path && !claim;
    if (claim) {
        path = json_at(&pv->root, "spec.hostPath.path");
        *ret_own = !path && volume_local_is_own(p->host, pv);
        path = path ? path : json_at(&pv->root, "spec.local.path");
    }
    *ret = path ? hk_arena_str(a, json_str(path, HK_STR(""))).s : volume_path(p, volume, a);
    return 0;
}

/* Containers create links in a volume, and those may lead anywhere. */
static bool lies_below(const char *dir, const char *path)
{
    char top[PATH_MAX], real[PATH_MAX];

    return realpath(dir, top) && realpath(path, real) && volume_path_is_below(real, top);
}

/* Creates the missing directories of the path, none outside dir: a container may add links at any
 * time. */
static int make_beneath(int dir, const char *path)
{
    char part[PATH_MAX];

    for (const char *end = path; *end; end += *end == '/') {
        const char *name = end;
        end += strcspn(end, "/");
        snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
        HK_AUTO(volume_close_fd) int fd = hk_open_beneath(dir, part, O_PATH);
        if (fd >= 0 || errno != ENOENT) {
            if (fd < 0) {
                return -1;
            }
            continue;
        }
        snprintf(part, sizeof(part), "%.*s.", (int)(name - path), path);
        HK_AUTO(volume_close_fd) int parent = hk_open_beneath(dir, part, O_PATH);
        snprintf(part, sizeof(part), "%.*s", (int)(end - name), name);
        if (parent < 0 || mkdirat(parent, part, 0755) < 0 ||
            fchmodat(parent, part, 0755, 0) < 0) { /* regardless of the umask */
            return -1;
        }
    }
    return 0;
}

/* The same in a volume that the agent owns and containers share: the runtime resolves the part
 * again with the same care. */
static int own_sub_path(const char *dir, struct hk_str sub, struct hk_arena *a, const char **ret,
                        struct hk_err *err)
{
    const char *path = hk_arena_str(a, sub).s;
    HK_AUTO(volume_close_fd) int top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (top < 0) {
        return volume_fail_errno(err, "open", dir);
    }
    if (!volume_path_stays(sub) || (make_beneath(top, path) < 0 && errno == EXDEV)) {
        return hk_fail(err, HK_EINVAL, "subPath '%.*s' leaves the volume", HK_FMT(sub));
    }
    HK_AUTO(volume_close_fd) int fd = hk_open_beneath(top, path, O_PATH);
    if (fd < 0) {
        return volume_fail_errno(err, "find subPath", path);
    }
    *ret = path;
    return 0;
}

/* A part of a volume; a missing one becomes a directory. */
static int sub_path(const char *dir, struct hk_str sub, struct hk_arena *a, const char **ret,
                    struct hk_err *err)
{
    const char *path = hk_arena_printf(a, "%s/%.*s", dir, HK_FMT(sub));
    struct stat st;
    int rc;

    if (volume_path_stays(sub) && lstat(path, &st) < 0) {
        rc = volume_make_parents(dir, sub, 0755, a, err);
        if (rc < 0) {
            return rc;
        }
        rc = volume_mkdir(path, 0755, err);
        if (rc < 0) {
            return rc;
        }
    }
    if (!volume_path_stays(sub) || !lies_below(dir, path)) {
        return hk_fail(err, HK_EINVAL, "subPath '%.*s' leaves the volume", HK_FMT(sub));
    }
    *ret = path;
    return 0;
}

/* Containers must not change files that come from objects. */
static bool is_read_only(const struct json *volume)
{
    const struct volume_type *t = volume_find_type(volume);

    return (t && t->files) || json_bool(json_at(volume, "persistentVolumeClaim.readOnly"), false);
}

static int mount_one(const struct pod *p, const struct json *m, const struct env *e,
                     struct hk_arena *a, struct runtime_mount *ret, struct hk_err *err)
{
    const struct hk_str name = json_str(json_get(m, "name"), HK_STR(""));
    const struct json *volume = find_volume(p, name);
    struct hk_str sub = json_str(json_get(m, "subPath"), HK_STR(""));
    int rc;

    if (!volume) {
        return hk_fail(err, HK_EINVAL, "volumeMount of \"%.*s\": no such volume", HK_FMT(name));
    }
    if (json_get(m, "subPathExpr")) {
        sub = env_expand(e, json_str(json_get(m, "subPathExpr"), HK_STR("")), a);
    }
    *ret = (struct runtime_mount){0};
    ret->at = hk_arena_str(a, json_str(json_get(m, "mountPath"), HK_STR(""))).s;
    ret->read_only = json_bool(json_get(m, "readOnly"), false) || is_read_only(volume);
    rc = host_dir(p, volume, a, &ret->from, &ret->own, err);
    if (rc < 0 || sub.n == 0) {
        return rc;
    }
    return ret->own ? own_sub_path(ret->from, sub, a, &ret->sub, err)
                    : sub_path(ret->from, sub, a, &ret->from, err);
}

int volume_mounts(const struct pod *p, const struct container *c, const struct env *e,
                  struct hk_arena *a, struct runtime_mount **ret, uint32_t *ret_n,
                  struct hk_err *err)
{
    const struct json *mounts = p->dir ? json_get(c->spec, "volumeMounts") : NULL;
    const uint32_t max = json_is(mounts, JSON_ARRAY) ? mounts->len : 0;
    struct runtime_mount *at = hk_arena_array(a, max, sizeof(*at));
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < max; i++) {
        rc = mount_one(p, json_item(mounts, i), e, a, &at[i], err);
    }
    *ret = at;
    *ret_n = max;
    return rc;
}
