// SPDX-License-Identifier: Apache-2.0
// Reads the hardware of the machine from /proc, /sys and /dev, and its topology from hwloc.
#include "agent/host/machine.h"

#include "api/names.h"
#include "base/file.h"

#include <dirent.h>
#include <hwloc.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define PODS_MAX 500
#define FILE_MAX ((size_t)1 << 20)
#define MEMORY_LOW_BYTES ((int64_t)100 << 20)
#define DISK_LOW_PERCENT 10
#define INODES_LOW_PERCENT 5
#define PIDS_LOW_PERCENT 5

/* ---- files ---- */

static bool machine_read_file(const struct machine *m, const char *path, struct hk_buf *text)
{
    char full[PATH_MAX];

    snprintf(full, sizeof(full), "%s%s", m->root, path);
    return hk_read_file(full, FILE_MAX, text, NULL) == 0;
}

/* The number at the start of a file, or fallback. */
static int64_t machine_read_int_file(const struct machine *m, const char *path, int64_t fallback)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_str rest, word;
    int64_t n;

    if (!machine_read_file(m, path, &text)) {
        return fallback;
    }
    rest = hk_str_trim(hk_buf_str(&text));
    return hk_str_cut(&rest, '\n', &word) && hk_str_int(word, &n) ? n : fallback;
}

const char *machine_line(const struct machine *m, const char *path, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (!machine_read_file(m, path, &text)) {
        return "";
    }
    return hk_arena_str(a, hk_str_trim(hk_buf_str(&text))).s;
}

/* The text after "NAME:" on a line, trimmed. */
static bool find_line(struct hk_str text, const char *name, struct hk_str *ret)
{
    struct hk_str line, key;

    while (hk_str_cut(&text, '\n', &line)) {
        if (hk_str_cut(&line, ':', &key) && hk_str_is(hk_str_trim(key), name)) {
            *ret = hk_str_trim(line);
            return true;
        }
    }
    return false;
}

/* "NAME:  123 kB" */
static int64_t meminfo_bytes(struct hk_str text, const char *name)
{
    struct hk_str rest, word;
    int64_t n;

    return find_line(text, name, &rest) && hk_str_cut(&rest, ' ', &word) && hk_str_int(word, &n)
               ? n * 1024
               : 0;
}

/* ---- resources ---- */

static void machine_set_number(struct json *obj, struct hk_arena *a, const char *key, int64_t n,
                               const char *unit)
{
    json_set_cstr(obj, a, key, hk_arena_printf(a, "%lld%s", (long long)n, unit));
}

static int64_t cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* A limit of the agent's cgroup; without one, a value above any real amount. */
static int64_t limit_in(const struct machine *m, const char *path)
{
    const int64_t n = machine_read_int_file(m, path, INT64_MAX);

    return n > 0 ? n : INT64_MAX;
}

static int64_t memory_bytes(const struct machine *m)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const bool is = machine_read_file(m, "/proc/meminfo", &text);
    const int64_t total = is ? meminfo_bytes(hk_buf_str(&text), "MemTotal") : 0;

    return HK_MIN(total, HK_MIN(limit_in(m, "/sys/fs/cgroup/memory.max"),
                                limit_in(m, "/sys/fs/cgroup/memory/memory.limit_in_bytes")));
}

static void put_disk(const struct machine *m, struct json *list, struct hk_arena *a)
{
    struct statvfs st;

    if (m->dir && statvfs(m->dir, &st) == 0) {
        machine_set_number(list, a, "ephemeral-storage",
                           (int64_t)(st.f_blocks * (uint64_t)st.f_frsize / 1024), "Ki");
    }
}

/* Directories such as "hugepages-2048kB" hold the number of pages of each size. */
static void put_huge_pages(const struct machine *m, struct json *list, struct hk_arena *a)
{
    static const char top[] = "/sys/kernel/mm/hugepages";
    DIR *dir = opendir(hk_arena_printf(a, "%s%s", m->root, top));

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        long long kib;

        if (sscanf(e->d_name, "hugepages-%lldkB", &kib) == 1 && kib >= 1024) {
            const bool giga = kib % (1 << 20) == 0;
            const int64_t size = giga ? kib >> 20 : kib >> 10;
            const char *path = hk_arena_printf(a, "%s/%s/nr_hugepages", top, e->d_name);
            const char *unit = giga ? "Gi" : "Mi";
            const int64_t n = machine_read_int_file(m, path, 0) * size;

            machine_set_number(list, a,
                               hk_arena_printf(a, "hugepages-%lld%s", (long long)size, unit), n,
                               n > 0 ? unit : "");
        }
    }
    if (dir) {
        closedir(dir);
    }
}

struct json machine_capacity(const struct machine *m, struct hk_arena *a)
{
    struct json list = json_make_object();
    struct machine_gpu gpus[MACHINE_GPUS_MAX];
    const uint32_t ngpu = machine_gpus(m, gpus);

    machine_set_number(&list, a, API_RES_CPU, cpus(), "");
    machine_set_number(&list, a, API_RES_MEMORY, memory_bytes(m) / 1024, "Ki");
    machine_set_number(&list, a, API_RES_PODS, PODS_MAX, "");
    put_disk(m, &list, a);
    put_huge_pages(m, &list, a);
    if (ngpu > 0) {
        machine_set_number(&list, a, API_RES_NVIDIA_GPU, ngpu, "");
    }
    return list;
}

/* ---- GPUs ---- */

static int by_minor(const void *x, const void *y)
{
    const struct machine_gpu *a = x, *b = y;

    return (a->minor > b->minor) - (a->minor < b->minor);
}

static void copy_word(char to[64], struct hk_str word)
{
    snprintf(to, 64, "%.*s", HK_FMT(word));
}

/* Reads one GPU directory of the driver: a file of lines "NAME:  value". */
static bool read_gpu(const struct machine *m, const char *bus, struct machine_gpu *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    char path[PATH_MAX];
    struct hk_str word;
    int64_t minor;

    snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", bus);
    if (!machine_read_file(m, path, &text) ||
        !find_line(hk_buf_str(&text), "Device Minor", &word) || !hk_str_int(word, &minor) ||
        minor < 0 || minor > 255) {
        return false;
    }
    *ret = (struct machine_gpu){.minor = (uint32_t)minor};
    if (find_line(hk_buf_str(&text), "GPU UUID", &word) && hk_str_starts(word, "GPU-") &&
        !memchr(word.s, '?', word.n)) { /* '?': unknown before first use */
        copy_word(ret->uuid, word);
    }
    if (find_line(hk_buf_str(&text), "Model", &word)) {
        copy_word(ret->model, word);
    }
    return true;
}

static bool has_device(const struct machine *m, uint32_t minor)
{
    char path[PATH_MAX];
    struct stat st;

    snprintf(path, sizeof(path), "%s/dev/nvidia%u", m->root, minor);
    return stat(path, &st) == 0;
}

uint32_t machine_gpus(const struct machine *m, struct machine_gpu ret[MACHINE_GPUS_MAX])
{
    char path[PATH_MAX];
    uint32_t n = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/proc/driver/nvidia/gpus", m->root);
    dir = opendir(path);
    for (const struct dirent *e; dir && n < MACHINE_GPUS_MAX && (e = readdir(dir));) {
        if (e->d_name[0] != '.' && read_gpu(m, e->d_name, &ret[n]) && has_device(m, ret[n].minor)) {
            n++;
        }
    }
    if (dir) {
        closedir(dir);
    }
    qsort(ret, n, sizeof(ret[0]), by_minor);
    return n;
}

/* ---- topology ---- */

/* Returns false if hwloc fails. */
static bool load_topology(const struct machine *m, hwloc_topology_t *ret)
{
    if (hwloc_topology_init(ret) < 0) {
        return false;
    }
    if ((m->synthetic && hwloc_topology_set_synthetic(*ret, m->synthetic) < 0) ||
        hwloc_topology_load(*ret) < 0) {
        hwloc_topology_destroy(*ret);
        return false;
    }
    return true;
}

/* Replaces characters that are not valid in label values and trims the ends. */
static const char *label_value(const char *text, struct hk_arena *a)
{
    char *value = hk_arena_printf(a, "%.63s", text);
    size_t n = strlen(value);

    for (char *c = value; *c; c++) {
        const bool fine = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                          (*c >= '0' && *c <= '9') || *c == '.';
        *c = fine ? *c : '-';
    }
    while (n > 0 && (value[n - 1] == '-' || value[n - 1] == '.')) {
        value[--n] = '\0';
    }
    return value;
}

static void machine_set_count(struct json *labels, struct hk_arena *a, const char *key,
                              hwloc_topology_t topology, hwloc_obj_type_t type)
{
    const int n = hwloc_get_nbobjs_by_type(topology, type);

    if (n > 0) {
        machine_set_number(labels, a, key, n, "");
    }
}

struct json machine_labels(const struct machine *m, struct hk_arena *a)
{
    struct json labels = json_make_object();
    struct machine_gpu gpus[MACHINE_GPUS_MAX];
    const uint32_t ngpu = machine_gpus(m, gpus);
    hwloc_topology_t topology;

    if (load_topology(m, &topology)) {
        machine_set_count(&labels, a, "hekla.io/cpu-sockets", topology, HWLOC_OBJ_PACKAGE);
        machine_set_count(&labels, a, "hekla.io/cpu-cores", topology, HWLOC_OBJ_CORE);
        machine_set_count(&labels, a, "hekla.io/numa-nodes", topology, HWLOC_OBJ_NUMANODE);
        hwloc_topology_destroy(topology);
    }
    if (ngpu > 0) {
        json_set_cstr(&labels, a, "nvidia.com/gpu.product", label_value(gpus[0].model, a));
        machine_set_number(&labels, a, "nvidia.com/gpu.count", ngpu, "");
    }
    return labels;
}

/* The format of cpusets: "0-3,8". */
static const char *set_text(hwloc_const_bitmap_t set, struct hk_arena *a)
{
    char *text = NULL;
    const char *ret;

    if (hwloc_bitmap_list_asprintf(&text, set) < 0) {
        return "";
    }
    ret = hk_arena_printf(a, "%s", text);
    free(text);
    return ret;
}

static void machine_add_processor(struct json *map, struct hk_arena *a, hwloc_topology_t topology,
                                  hwloc_obj_t pu)
{
    struct json *detail = json_set_object(map, a, hk_arena_printf(a, "%u", pu->os_index));
    const struct hwloc_obj *core = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
    const struct hwloc_obj *socket =
        hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, pu);
    hwloc_obj_t numa = NULL;

    while ((numa = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, numa))) {
        if (hwloc_bitmap_isset(numa->cpuset, pu->os_index)) {
            json_set_int(detail, a, "numa", numa->os_index);
            break;
        }
    }
    json_set_int(detail, a, "socket", socket ? socket->logical_index : 0);
    json_set_int(detail, a, "core", core ? core->logical_index : pu->logical_index);
}

struct json machine_topology(const struct machine *m, struct hk_arena *a)
{
    struct json spec = json_make_object(), *map, *cpu;
    hwloc_topology_t topology;
    hwloc_obj_t pu = NULL;

    if (!load_topology(m, &topology)) {
        return (struct json){0};
    }
    map = json_set_object(&spec, a, "policies");
    json_set_cstr(map, a, "CPUManagerPolicy", "none"); /* pods get no exclusive CPUs */
    json_set_cstr(map, a, "TopologyManagerPolicy", "none");
    map = json_set_object(&spec, a, "numares");
    cpu = json_set_object(map, a, "cpu");
    json_set_cstr(cpu, a, "allocatable", set_text(hwloc_topology_get_allowed_cpuset(topology), a));
    json_set_int(cpu, a, "capacity", hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
    map = json_set_object(&spec, a, "cpuDetail");
    while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu))) {
        machine_add_processor(map, a, topology, pu);
    }
    hwloc_topology_destroy(topology);
    return spec;
}

/* ---- pressure ---- */

static bool memory_is_low(const struct machine *m)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    return machine_read_file(m, "/proc/meminfo", &text) &&
           meminfo_bytes(hk_buf_str(&text), "MemAvailable") < MEMORY_LOW_BYTES;
}

static bool is_below(uint64_t left, uint64_t all, uint64_t percent)
{
    return all > 0 && left < all / 100 * percent;
}

static bool disk_is_low(const struct machine *m)
{
    struct statvfs st;

    return m->dir && statvfs(m->dir, &st) == 0 &&
           (is_below(st.f_bavail, st.f_blocks, DISK_LOW_PERCENT) ||
            is_below(st.f_favail, st.f_files, INODES_LOW_PERCENT));
}

/* "0.20 0.18 0.12 1/80 11206": the fourth word ends with the number of threads. */
static bool pids_are_low(const struct machine *m)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const int64_t max = HK_MIN(machine_read_int_file(m, "/proc/sys/kernel/pid_max", INT64_MAX),
                               machine_read_int_file(m, "/proc/sys/kernel/threads-max", INT64_MAX));
    long long threads;

    return machine_read_file(m, "/proc/loadavg", &text) && max < INT64_MAX &&
           sscanf(text.data, "%*s %*s %*s %*d/%lld", &threads) == 1 &&
           is_below((uint64_t)HK_MAX(max - threads, 0), (uint64_t)max, PIDS_LOW_PERCENT);
}

struct machine_pressure machine_pressure(const struct machine *m)
{
    return (struct machine_pressure){
        .memory = memory_is_low(m), .disk = disk_is_low(m), .pids = pids_are_low(m)};
}
