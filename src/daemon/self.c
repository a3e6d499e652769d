// SPDX-License-Identifier: Apache-2.0
// Reads process metrics from /proc/self. Keeps no state between calls.
#include "daemon/self.h"

#include "base/file.h"
#include "base/prom.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAX_PROC_FILE = 1 << 20 };

static void write_cpu(struct hk_buf *out)
{
    struct rusage usage = {0};

    getrusage(RUSAGE_SELF, &usage);
    hk_prom_single(out, "process_cpu_seconds_total", "counter",
                   "Total user and system CPU time spent in seconds.",
                   (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
}

static void write_memory(struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf statm = {0};
    const double page = (double)sysconf(_SC_PAGESIZE);
    struct hk_str rest, word = {0};
    int64_t all, resident;

    if (hk_read_file("/proc/self/statm", MAX_PROC_FILE, &statm, NULL) < 0) {
        return;
    }
    rest = hk_buf_str(&statm);
    if (hk_str_cut(&rest, ' ', &word) && hk_str_int(word, &all) && hk_str_cut(&rest, ' ', &word) &&
        hk_str_int(word, &resident)) {
        hk_prom_single(out, "process_resident_memory_bytes", "gauge",
                       "Resident memory size in bytes.", (double)resident * page);
        hk_prom_single(out, "process_virtual_memory_bytes", "gauge",
                       "Virtual memory size in bytes.", (double)all * page);
    }
}

static void write_descriptors(struct hk_buf *out)
{
    struct rlimit limit;
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;
    int n = -1; /* not counting the descriptor of the directory itself */

    if (!dir) {
        return;
    }
    while ((entry = readdir(dir))) {
        n += entry->d_name[0] != '.';
    }
    closedir(dir);
    hk_prom_single(out, "process_open_fds", "gauge", "Number of open file descriptors.", n);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        hk_prom_single(out, "process_max_fds", "gauge", "Maximum number of open file descriptors.",
                       (double)limit.rlim_cur);
    }
}

/* Start time in ticks since boot: field 22 of stat, counted after the ')' of the command. */
static bool read_start(int64_t *ret_ticks)
{
    HK_AUTO(hk_buf_fini) struct hk_buf stat = {0};
    struct hk_str rest, word = {0};
    const char *bracket;

    if (hk_read_file("/proc/self/stat", MAX_PROC_FILE, &stat, NULL) < 0) {
        return false;
    }
    bracket = strrchr(stat.data, ')');
    rest = hk_str(bracket ? bracket + 2 : "");
    for (int field = 3; field <= 22; field++) {
        if (!hk_str_cut(&rest, ' ', &word)) {
            return false;
        }
    }
    return hk_str_int(word, ret_ticks);
}

static bool read_boot(int64_t *ret_s)
{
    HK_AUTO(hk_buf_fini) struct hk_buf stat = {0};
    struct hk_str rest, line;

    if (hk_read_file("/proc/stat", MAX_PROC_FILE, &stat, NULL) < 0) {
        return false;
    }
    rest = hk_buf_str(&stat);
    while (hk_str_cut(&rest, '\n', &line)) {
        if (hk_str_starts(line, "btime ")) {
            return hk_str_int((struct hk_str){line.s + 6, line.n - 6}, ret_s);
        }
    }
    return false;
}

static void write_start(struct hk_buf *out)
{
    int64_t ticks, boot_s;

    if (read_start(&ticks) && read_boot(&boot_s)) {
        hk_prom_single(out, "process_start_time_seconds", "gauge",
                       "Start time of the process since unix epoch in seconds.",
                       (double)boot_s + (double)ticks / (double)sysconf(_SC_CLK_TCK));
    }
}

void self_write_metrics(struct hk_buf *out)
{
    write_cpu(out);
    write_memory(out);
    write_descriptors(out);
    write_start(out);
}
