// SPDX-License-Identifier: Apache-2.0
// The user and the privileges of a container, from its securityContext and the pod's, for the
// runtime. Without one it runs as the agent's user, minus the capabilities that let a container
// escape its view of the machine. Seccomp, AppArmor and SELinux profiles are ignored.
#include "agent/pod/security.h"

#include "agent/pod/image.h"

#include <unistd.h>

/* Indexed by the kernel's numbers. */
static const char *const capabilities[] = {
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
};
#define ALL_CAPABILITIES (((uint64_t)1 << HK_LEN(capabilities)) - 1)

/* With any of these, root can remove or bypass the covers over the server's data directory: through
 * mounts, raw devices, file handles, the memory of other processes, or the kernel itself.
 * Unprivileged containers do not have them in Kubernetes either. */
static const char *const way_out[] = {
    "BPF",       "CHECKPOINT_RESTORE", "DAC_READ_SEARCH", "MKNOD",      "PERFMON",
    "SYS_ADMIN", "SYS_BOOT",           "SYS_MODULE",      "SYS_PTRACE", "SYS_RAWIO",
};

/* The value of the container, else of the pod; NULL: none. */
static const struct json *pod_security_field(const struct container *c, const char *key)
{
    const struct json *own = json_get(json_get(c->spec, "securityContext"), key);

    return own ? own : json_get(pod_spec(c->pod, "securityContext"), key);
}

/* Only root can give groups to a container. */
static uint32_t count_image_groups(const struct container *c)
{
    return c->image && geteuid() == 0 ? c->image->user.ngroup : 0;
}

static void add_groups(const struct container *c, struct runtime_container *rc, struct hk_arena *a)
{
    const struct json *list = pod_spec(c->pod, "securityContext.supplementalGroups");
    const int64_t fs_group = json_int(pod_spec(c->pod, "securityContext.fsGroup"), -1);
    const uint32_t max = (json_is(list, JSON_ARRAY) ? list->len : 0) + 1 + count_image_groups(c);
    int64_t *groups = hk_arena_array(a, max, sizeof(*groups));

    for (uint32_t i = 0; json_item(list, i); i++) {
        groups[rc->ngroup++] = json_int(json_item(list, i), 0);
    }
    if (fs_group >= 0) {
        groups[rc->ngroup++] = fs_group;
    }
    for (uint32_t i = 0; i < count_image_groups(c); i++) {
        groups[rc->ngroup++] = c->image->user.groups[i];
    }
    rc->groups = groups;
}

/* Accepts the name with and without "CAP_". */
static int find_capability(struct hk_str name, uint64_t *ret, struct hk_err *err)
{
    const struct hk_str bare =
        hk_str_starts(name, "CAP_") ? (struct hk_str){name.s + 4, name.n - 4} : name;

    if (hk_str_is(bare, "ALL")) {
        *ret = ALL_CAPABILITIES;
        return 0;
    }
    for (size_t i = 0; i < HK_LEN(capabilities); i++) {
        if (hk_str_is(bare, capabilities[i])) {
            *ret = (uint64_t)1 << i;
            return 0;
        }
    }
    return hk_fail(err, HK_EINVAL, "unknown capability \"%.*s\"", HK_FMT(name));
}

static uint64_t way_out_set(void)
{
    uint64_t all = 0, set;

    for (size_t i = 0; i < HK_LEN(way_out); i++) {
        if (find_capability(hk_str(way_out[i]), &set, NULL) == 0) {
            all |= set;
        }
    }
    return all;
}

static int add_capabilities(const struct container *c, struct runtime_rights *rights,
                            struct hk_err *err)
{
    const struct json *own = json_at(c->spec, "securityContext.capabilities");
    const struct json *drop = json_get(own, "drop"), *add = json_get(own, "add");
    uint64_t set;
    int rc = 0;

    if (!json_bool(json_at(c->spec, "securityContext.privileged"), false)) {
        rights->dropped = way_out_set();
    }
    for (uint32_t i = 0; rc == 0 && json_item(drop, i); i++) {
        rc = find_capability(json_str(json_item(drop, i), HK_STR("")), &set, err);
        rights->dropped |= rc == 0 ? set : 0;
    }
    for (uint32_t i = 0; rc == 0 && json_item(add, i); i++) {
        rc = find_capability(json_str(json_item(add, i), HK_STR("")), &set, err);
        rights->dropped &= rc == 0 ? ~set : ~(uint64_t)0;
    }
    return rc;
}

/* A name of an image's user says nothing that the API could check. */
static int check_image_user(const struct container *c, struct hk_err *err)
{
    const struct pod *p = c->pod;
    const struct hk_str user = c->image->config.user;

    if (json_int(pod_security_field(c, "runAsUser"), -1) >= 0 || image_user_is_number(user) ||
        !json_bool(pod_security_field(c, "runAsNonRoot"), false)) {
        return 0;
    }
    return hk_fail(err, HK_EDENIED,
                   "container has runAsNonRoot and image has non-numeric user (%.*s), cannot "
                   "verify user is non-root (pod: \"%.*s_%.*s(%.*s)\", container: %.*s)",
                   HK_FMT(hk_str_head(user, 100)), HK_FMT(p->name), HK_FMT(p->ns), HK_FMT(p->uid),
                   HK_FMT(c->name));
}

static int check_user(const struct container *c, int64_t uid, struct hk_err *err)
{
    const struct pod *p = c->pod;
    const bool is_root = uid < 0 ? geteuid() == 0 : uid == 0;

    if (!is_root || !json_bool(pod_security_field(c, "runAsNonRoot"), false)) {
        return 0;
    }
    return hk_fail(err, HK_EDENIED, "%s (pod: \"%.*s_%.*s(%.*s)\", container: %.*s)",
                   json_int(pod_security_field(c, "runAsUser"), -1) < 0
                       ? "container has runAsNonRoot and image will run as root"
                       : "container's runAsUser breaks non-root policy",
                   HK_FMT(p->name), HK_FMT(p->ns), HK_FMT(p->uid), HK_FMT(c->name));
}

int pod_security(const struct container *c, struct runtime_container *rc, struct hk_err *err)
{
    const struct json *own = json_get(c->spec, "securityContext");
    int ret;

    rc->uid = json_int(pod_security_field(c, "runAsUser"), -1);
    rc->gid = json_int(pod_security_field(c, "runAsGroup"), -1);
    if (c->image) {
        rc->uid = c->image->user.uid;
        rc->gid = rc->gid < 0 ? c->image->user.gid : rc->gid;
    }
    rc->root_read_only = json_bool(json_get(own, "readOnlyRootFilesystem"), false);
    rc->rights.no_new = !json_bool(json_get(own, "allowPrivilegeEscalation"), true);
    add_groups(c, rc, &c->pod->host->mem);
    ret = check_user(c, rc->uid, err);
    if (ret == 0 && c->image) {
        ret = check_image_user(c, err);
    }
    if (ret < 0) {
        return ret;
    }
    return add_capabilities(c, &rc->rights, err);
}
