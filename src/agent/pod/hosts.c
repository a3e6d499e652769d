// SPDX-License-Identifier: Apache-2.0
// Addresses and hosts files of pods. Each pod has its own address in 127.64.0.0/10, so that pods of
// one machine can listen on the same ports. Its hosts file lists the pods of its subdomain or job, and
// the Services (service_names.h). Both are stored in files: they survive the agent, but not a reboot.
#include "agent/pod/hosts.h"

#include "agent/pod/service_names.h"
#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define NET_BASE 0x7f400000u /* 127.64.0.0 */
#define NET_SIZE 0x00400000u /* a /10 */

enum { FULL_NAME_MAX = 64 }; /* what the kernel holds */

static void pod_hosts_close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
}

/* Writes in place: a container with the file mounted would keep seeing a replaced file. Any user
 * can read it, independent of the umask. */
static int overwrite(const char *path, struct hk_str text)
{
    HK_AUTO(pod_hosts_close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0 || fchmod(fd, 0644) < 0 || pwrite(fd, text.s, text.n, 0) != (ssize_t)text.n ||
        ftruncate(fd, (off_t)text.n) < 0) {
        return -HK_EIO;
    }
    return 0;
}

/* The index of the address in the network, from 0; UINT64_MAX - 1: not in it. */
static uint64_t pod_hosts_address_index(const char *address)
{
    unsigned a, b, c, d;

    if (sscanf(address, "%u.%u.%u.%u", &a, &b, &c, &d) != 4) {
        return UINT64_MAX - 1;
    }
    return ((uint64_t)a << 24 | b << 16 | c << 8 | d) - NET_BASE;
}

struct hk_str pod_hosts_namespace(const struct pods *ps, uint32_t address)
{
    const uint32_t slot = hk_map_get(&ps->by_address, (uint64_t)address - NET_BASE);
    const struct pod *p = slot != HK_NONE ? ps->slots.at[slot] : NULL;

    return p && p->stage != POD_ENDED && !p->gone ? p->ns : (struct hk_str){0};
}

static bool pod_hosts_address_in_use(const struct pod *p, const char *address)
{
    const uint32_t slot = hk_map_get(&p->set->by_address, pod_hosts_address_index(address));

    return slot != HK_NONE && slot != p->slot;
}

static void pod_hosts_reserve_address(struct pod *p)
{
    hk_map_put(&p->set->by_address, pod_hosts_address_index(p->address), p->slot);
}

void pod_hosts_release(struct pod *p)
{
    if (p->address[0]) {
        hk_map_del(&p->set->by_address, pod_hosts_address_index(p->address));
    }
}

static void write_address(uint32_t n, char *out, size_t size)
{
    const uint32_t ip = NET_BASE + n;

    snprintf(out, size, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
}

/* The first free address from a start that the uid defines: agents on one machine rarely
 * collide. */
static void pod_hosts_choose_address(struct pod *p)
{
    uint32_t n = (uint32_t)hk_hash(p->uid.s, p->uid.n, 0) % NET_SIZE;

    do {
        n = (n + 1) % NET_SIZE;
        /* Skip .0 and .255, which look like network and broadcast addresses. */
        n += (n & 255) == 0;
        n += (n & 255) == 255 ? 2 : 0;
        n %= NET_SIZE;
        write_address(n, p->address, sizeof(p->address));
    } while (pod_hosts_address_in_use(p, p->address));
    pod_hosts_reserve_address(p);
}

const char *pod_hosts_file(const struct pod *p, const char *what, struct hk_arena *a)
{
    const char *memory = p->host->o.memory_dir;

    return memory ? hk_arena_printf(a, "%s/%.*s.%s", memory, HK_FMT(p->uid), what)
                  : hk_arena_printf(a, "%s/.%s", p->dir, what);
}

void pod_hosts_remove(const struct pod *p)
{
    if (p->host->o.memory_dir) {
        unlink(pod_hosts_file(p, "address", &p->host->mem));
        unlink(pod_hosts_file(p, "hosts", &p->host->mem));
        unlink(pod_hosts_file(p, "resolv.conf", &p->host->mem));
    }
}

int pod_hosts_address(struct pod *p, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf known = {0};
    const char *path;

    if (json_bool(json_at(&p->obj->root, "spec.hostNetwork"), false)) {
        return 0;
    }
    if (!p->dir) {
        pod_hosts_choose_address(p);
        return 0;
    }
    path = pod_hosts_file(p, "address", &p->host->mem);
    if (hk_read_file(path, sizeof(p->address) - 1, &known, NULL) == 0 && known.len > 0 &&
        !pod_hosts_address_in_use(p, known.data)) {
        memcpy(p->address, known.data, known.len + 1);
        pod_hosts_reserve_address(p);
        return 0;
    }
    pod_hosts_choose_address(p);
    /* No sync: the address is not needed after a reboot. */
    if (overwrite(path, hk_str(p->address)) < 0) {
        return hk_fail(err, HK_EIO, "cannot write '%s': %s", path, strerror(errno));
    }
    return 0;
}

const char *pod_hosts_path(const struct pod *p, struct hk_arena *a)
{
    return p->dir ? pod_hosts_file(p, "hosts", a) : NULL;
}

int pod_hosts_own_name(const struct pod *p, struct hk_arena *a, const char **ret,
                       struct hk_err *err)
{
    const char *full;

    *ret = hk_arena_str(a, p->hostname).s;
    if (p->subdomain.n == 0 || !json_bool(pod_spec(p, "setHostnameAsFQDN"), false)) {
        return 0;
    }
    full = hk_arena_printf(a, "%.*s.%.*s.%.*s.svc.%s", HK_FMT(p->hostname), HK_FMT(p->subdomain),
                           HK_FMT(p->ns), p->host->o.domain);
    if (strlen(full) > FULL_NAME_MAX) {
        return hk_fail(err, HK_EINVAL,
                       "failed to construct FQDN from pod hostname and cluster domain, FQDN %s is "
                       "too long (%d characters is the max, %zu characters requested)",
                       full, FULL_NAME_MAX, strlen(full));
    }
    *ret = full;
    return 0;
}

/* Pods with the same group name are in each other's hosts files. */
static struct hk_str pod_hosts_group_name(const struct pod *p)
{
    return p->subdomain.n > 0 ? p->subdomain : p->job;
}

static bool pod_hosts_are_together(const struct pod *p, const struct pod *other)
{
    const struct hk_str group = pod_hosts_group_name(p);

    return p == other || (group.n > 0 && hk_str_eq(p->ns, other->ns) &&
                          hk_str_eq(group, pod_hosts_group_name(other)));
}

static void pod_hosts_write_line(const struct pod *p, struct hk_buf *out)
{
    hk_buf_addf(out, "%s", p->address[0] ? p->address : p->host->o.address);
    if (p->subdomain.n > 0) {
        hk_buf_addf(out, " %.*s.%.*s.%.*s.svc.%s", HK_FMT(p->hostname), HK_FMT(p->subdomain),
                    HK_FMT(p->ns), p->host->o.domain);
        hk_buf_addf(out, " %.*s.%.*s.%.*s.svc", HK_FMT(p->hostname), HK_FMT(p->subdomain),
                    HK_FMT(p->ns));
        hk_buf_addf(out, " %.*s.%.*s", HK_FMT(p->hostname), HK_FMT(p->subdomain));
    }
    hk_buf_addf(out, " %.*s\n", HK_FMT(p->hostname));
}

static void write_aliases(const struct pod *p, struct hk_buf *out)
{
    const struct json *aliases = json_at(&p->obj->root, "spec.hostAliases");

    for (uint32_t i = 0; json_item(aliases, i); i++) {
        const struct json *names = json_get(json_item(aliases, i), "hostnames");

        hk_buf_addstr(out, json_str(json_get(json_item(aliases, i), "ip"), HK_STR("")));
        for (uint32_t k = 0; json_item(names, k); k++) {
            hk_buf_addf(out, " %.*s", HK_FMT(json_str(json_item(names, k), HK_STR(""))));
        }
        hk_buf_addc(out, '\n');
    }
}

static void pod_hosts_write_file(const struct pod *p, struct hk_str shared)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, now = {0};
    const char *path = pod_hosts_path(p, &p->host->mem);

    if (!path) {
        return;
    }
    hk_buf_addstr(&text, shared);
    write_aliases(p, &text);
    if (hk_read_file(path, 64 << 20, &now, NULL) == 0 &&
        hk_str_eq(hk_buf_str(&now), hk_buf_str(&text))) {
        return;
    }
    if (overwrite(path, hk_buf_str(&text)) < 0) {
        hk_log(HK_LOG_WARN, "cannot write hosts", "path=%s err=\"%s\"", path, strerror(errno));
    }
}

static void pod_hosts_write_shared(const struct pod *p, struct hk_buf *out)
{
    const struct pods *ps = p->set;

    hk_buf_adds(out, "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n");
    for (uint32_t i = 0; i < ps->active.len; i++) {
        if (pod_hosts_are_together(p, ps->active.at[i]) && !ps->active.at[i]->gone) {
            pod_hosts_write_line(ps->active.at[i], out);
        }
    }
    service_names_write(ps->service_names, p->ns, p->subdomain, out);
}

void pod_hosts_write_own(struct pod *p)
{
    HK_AUTO(hk_buf_fini) struct hk_buf shared = {0};

    pod_hosts_write_shared(p, &shared);
    pod_hosts_write_file(p, hk_buf_str(&shared));
}

/* Writes the hosts files of the pod and its group. */
static void pod_hosts_write(struct pod *p)
{
    HK_AUTO(hk_buf_fini) struct hk_buf shared = {0};
    struct pods *ps = p->set;

    pod_hosts_write_shared(p, &shared);
    for (uint32_t i = 0; i < ps->active.len; i++) {
        struct pod *other = ps->active.at[i];

        if (!pod_hosts_are_together(p, other)) {
            continue;
        }
        other->hosts_stale = false;
        if (other->stage != POD_ENDED && !other->gone) {
            pod_hosts_write_file(other, hk_buf_str(&shared));
        }
    }
}

void pod_hosts_changed(struct pod *p)
{
    if (!p->dir) {
        return; /* no container reads it */
    }
    for (uint32_t i = 0; i < p->set->active.len; i++) {
        if (pod_hosts_are_together(p, p->set->active.at[i])) {
            p->set->active.at[i]->hosts_stale = true;
        }
    }
}

/* Spends at most a tenth of the time here: while a large group starts pod by pod, its files would
 * be rewritten for each pod. */
int64_t pod_hosts_tick(struct pods *ps, int64_t now_ns)
{
    bool wrote = false;

    if (!ps->host->o.dir) {
        return INT64_MAX;
    }
    for (uint32_t i = 0; i < ps->active.len; i++) {
        if (!ps->active.at[i]->hosts_stale) {
            continue;
        }
        if (ps->hosts_due_ns > now_ns) {
            return ps->hosts_due_ns;
        }
        pod_hosts_write(ps->active.at[i]);
        hk_arena_clear(&ps->host->mem);
        wrote = true;
    }
    if (wrote) {
        const int64_t end_ns = host_mono_ns(ps->host);

        ps->hosts_due_ns = end_ns + 10 * (end_ns - now_ns);
    }
    return INT64_MAX;
}

void pod_hosts_services_changed(void *pods)
{
    struct pods *ps = pods;

    for (uint32_t i = 0; i < ps->active.len; i++) {
        ps->active.at[i]->hosts_stale |= ps->active.at[i]->dir != NULL;
    }
}
