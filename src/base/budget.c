// SPDX-License-Identifier: Apache-2.0
// Reads limits once, and usage repeatedly: /proc/self/statm costs two microseconds. Free heap
// memory counts as used, because most of it is in holes that fit only small allocations. Two
// exceptions: the heap is trimmed before resident memory is reported as short, and large holes do
// not count as used address space.
#include "base/budget.h"

#include "base/cgroup.h"
#include "base/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define RESERVE_MAX (512 * MIB)
#define STEP_MIN ((uint64_t)64 << 10)
#define STEP_MAX (64 * MIB)
#define HOLE_MIN ((uint64_t)64 << 10) /* holes of the heap that count as free address space */
#define MMAP_THRESHOLD (128 << 10)    /* larger pieces go back to the kernel as soon as freed */
#define FILE_MAX ((size_t)1 << 20)

enum { LIMITS = 8 };

/* The resource that a limit applies to. */
enum budget_kind { BUDGET_RESIDENT, BUDGET_ADDRESS, BUDGET_DATA };

struct budget_limit {
    enum budget_kind kind;
    const char *name; /* its name for operators */
    uint64_t bytes;
};

/* In bytes. */
struct budget_use {
    uint64_t by_kind[3];
    uint64_t holes; /* large holes in the heap */
};

struct hk_budget {
    struct budget_limit at[LIMITS];
    uint32_t len;
    int statm;           /* -1: usage cannot be measured */
    uint64_t step, left; /* bytes to spend until the next measurement */
    enum hk_room room;
    uint32_t tightest; /* index of the tightest limit */
    uint64_t used;     /* usage of that limit */
    struct hk_err err;
};

/* ---- limits ---- */

static void budget_add(struct hk_budget *b, enum budget_kind kind, const char *name, uint64_t bytes)
{
    if (bytes > 0 && bytes < (uint64_t)1 << 60 && b->len < LIMITS) {
        b->at[b->len++] = (struct budget_limit){kind, name, bytes};
    }
}

static void budget_add_rlimit(struct hk_budget *b, enum budget_kind kind, int resource,
                              const char *name)
{
    struct rlimit r;

    if (getrlimit((__rlimit_resource_t)resource, &r) == 0 && r.rlim_cur != RLIM_INFINITY) {
        budget_add(b, kind, name, r.rlim_cur);
    }
}

/* The number in the file; UINT64_MAX if it has none ("max"). */
static uint64_t read_bytes(const char *dir, const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0}, text = {0};
    int64_t n;

    hk_buf_addf(&path, "%s/%s", dir, name);
    if (hk_read_file(path.data, FILE_MAX, &text, NULL) < 0 ||
        !hk_str_int(hk_str_trim(hk_buf_str(&text)), &n) || n <= 0) {
        return UINT64_MAX;
    }
    return (uint64_t)n;
}

/* The limits of parent groups apply, too. */
static void budget_add_cgroup(void *ctx, const struct hk_cgroup *g)
{
    HK_AUTO(hk_freep) char *at = hk_strdup(g->own);
    const size_t top = strlen(g->mount);
    uint64_t least = UINT64_MAX;

    if (!g->v2 && !hk_cgroup_lists(g->options, HK_STR("memory"))) {
        return;
    }
    while (true) {
        if (g->v2) {
            least = HK_MIN(least, read_bytes(at, "memory.max"));
            least = HK_MIN(least, read_bytes(at, "memory.high"));
        } else {
            least = HK_MIN(least, read_bytes(at, "memory.limit_in_bytes"));
        }
        char *slash = strrchr(at, '/');
        if (!slash || strlen(at) <= top) {
            break;
        }
        *slash = '\0';
    }
    budget_add(ctx, BUDGET_RESIDENT, "memory limit of the control group", least);
}

/* "MemTotal:  123 kB" */
static void budget_add_machine(struct hk_budget *b, const char *root)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0}, text = {0};
    struct hk_str rest, line, word;
    int64_t kib;

    hk_buf_addf(&path, "%s/proc/meminfo", root);
    if (hk_read_file(path.data, FILE_MAX, &text, NULL) < 0) {
        return;
    }
    rest = hk_buf_str(&text);
    while (hk_str_cut(&rest, '\n', &line)) {
        if (hk_str_cut(&line, ':', &word) && hk_str_is(word, "MemTotal")) {
            line = hk_str_trim(line);
            if (hk_str_cut(&line, ' ', &word) && hk_str_int(word, &kib) && kib > 0) {
                budget_add(b, BUDGET_RESIDENT, "memory of the machine", (uint64_t)kib * 1024);
            }
        }
    }
}

/* ---- usage ---- */

/* The number after name=" in a line of malloc_info. */
static uint64_t info_number(struct hk_str line, const char *name)
{
    const char *at = memmem(line.s, line.n, name, strlen(name));

    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* Sums up the large holes of one heap in malloc_info: free pieces by size, and the total, which
 * includes the piece at the end of the heap. Totals of all heaps follow the last heap. */
static uint64_t info_holes(struct hk_str text)
{
    struct hk_str line;
    uint64_t large = 0, pieces = 0, all = 0;

    while (hk_str_cut(&text, '\n', &line) && !hk_str_is(line, "</heap>")) {
        if (hk_str_starts(line, "  <size ") || hk_str_starts(line, "  <unsorted ")) {
            const uint64_t total = info_number(line, " total=\"");
            pieces += total;
            large += info_number(line, " from=\"") >= HOLE_MIN ? total : 0;
        } else if (hk_str_starts(line, "<total type=\"fast\"") ||
                   hk_str_starts(line, "<total type=\"rest\"")) {
            all += info_number(line, " size=\"");
        }
    }
    return large + (all > pieces ? all - pieces : 0);
}

/* Of the first heap: where it matters there is only one. */
static uint64_t large_holes(void)
{
    uint64_t holes = 0;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    if (f && malloc_info(0, f) == 0 && fflush(f) == 0) {
        holes = info_holes((struct hk_str){text, n});
    }
    if (f) {
        fclose(f);
    }
    free(text);
    return holes;
}

/* SIZE RESIDENT SHARED TEXT LIB DATA DT, in pages */
static bool read_use(const struct hk_budget *b, struct budget_use *ret)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char text[256];
    uint64_t n[6];
    const ssize_t len = b->statm < 0 ? -1 : pread(b->statm, text, sizeof(text) - 1, 0);

    if (len <= 0) {
        return false;
    }
    text[len] = '\0';
    char *at = text;
    for (size_t k = 0; k < HK_LEN(n); k++) {
        n[k] = strtoull(at, &at, 10);
    }
    *ret = (struct budget_use){
        .by_kind = {[BUDGET_RESIDENT] = n[1] > n[2] ? (n[1] - n[2]) * page : 0,
                    [BUDGET_ADDRESS] = n[0] * page,
                    [BUDGET_DATA] = n[5] * page},
    };
    return true;
}

static uint64_t use_of(const struct budget_use *u, enum budget_kind kind)
{
    const uint64_t used = u->by_kind[kind];

    return kind == BUDGET_RESIDENT ? used : used - HK_MIN(used, u->holes);
}

/* ---- remaining memory ---- */

/* Memory kept free for requests in flight, answers, and everything else that is not checked. */
static uint64_t reserve_of(uint64_t limit)
{
    return HK_MIN(limit / 4, RESERVE_MAX);
}

static uint64_t high_of(uint64_t limit)
{
    return limit - reserve_of(limit);
}

static enum hk_room room_of(const struct hk_budget *b, uint64_t limit, uint64_t used)
{
    const uint64_t reserve = reserve_of(limit), high = high_of(limit);

    if (used >= limit - reserve / 2) {
        return HK_ROOM_NONE;
    }
    if (used >= high || (b->room != HK_ROOM_ENOUGH && used >= high - reserve / 4)) {
        return HK_ROOM_SHORT;
    }
    return HK_ROOM_ENOUGH;
}

/* Whether memory would be short if everything measured counted as used. */
static bool seems_short(const struct hk_budget *b, const struct budget_use *u, bool resident)
{
    for (uint32_t i = 0; i < b->len; i++) {
        const struct budget_limit *l = &b->at[i];
        if ((l->kind == BUDGET_RESIDENT) == resident &&
            room_of(b, l->bytes, u->by_kind[l->kind]) != HK_ROOM_ENOUGH) {
            return true;
        }
    }
    return false;
}

/* Measures more precisely if usage seems high. */
static bool measure_use(struct hk_budget *b, struct budget_use *ret)
{
    if (!read_use(b, ret)) {
        return false;
    }
    if (seems_short(b, ret, true) && malloc_trim(0) && !read_use(b, ret)) {
        return false;
    }
    if (seems_short(b, ret, false)) {
        ret->holes = large_holes();
    }
    return true;
}

static void settle(struct hk_budget *b, const struct budget_use *u)
{
    enum hk_room room = HK_ROOM_ENOUGH;
    uint64_t left = UINT64_MAX;

    for (uint32_t i = 0; i < b->len; i++) {
        const uint64_t used = use_of(u, b->at[i].kind), high = high_of(b->at[i].bytes);
        const enum hk_room one = room_of(b, b->at[i].bytes, used);
        const uint64_t to_high = high > used ? high - used : 0;
        if (one > room || (one == room && to_high < left)) {
            left = to_high;
            b->tightest = i;
            b->used = used;
        }
        room = HK_MAX(room, one);
    }
    b->room = room;
    b->step = HK_MIN(HK_MAX(left / 4, STEP_MIN), STEP_MAX);
    b->left = b->step;
}

static void word_failure(struct hk_budget *b)
{
    const struct budget_limit *l = &b->at[b->tightest];

    hk_err_set(&b->err, HK_EFULL,
               "the server is short of memory: %" PRIu64 " MiB of %" PRIu64
               " MiB are used (%s); nothing can be created or enlarged until objects are deleted "
               "or the limit is raised",
               b->used / MIB, l->bytes / MIB, l->name);
}

enum hk_room hk_budget_measure(struct hk_budget *b)
{
    struct budget_use u;

    if (!b || !measure_use(b, &u)) {
        return hk_budget_room(b);
    }
    settle(b, &u);
    if (b->room != HK_ROOM_ENOUGH) {
        word_failure(b);
    }
    return b->room;
}

void hk_budget_spend(struct hk_budget *b, size_t bytes)
{
    if (!b || b->len == 0 || b->room != HK_ROOM_ENOUGH) {
        return;
    }
    b->left -= HK_MIN(b->left, bytes);
    if (b->left == 0) {
        hk_budget_measure(b);
    }
}

bool hk_budget_fits(struct hk_budget *b, size_t bytes)
{
    struct budget_use u;

    if (!b || !read_use(b, &u)) {
        return true;
    }
    for (uint32_t i = 0; i < b->len; i++) {
        const uint64_t limit = b->at[i].bytes, margin = reserve_of(limit) / 8;
        if (u.by_kind[b->at[i].kind] + bytes + margin > limit) {
            return false;
        }
    }
    return true;
}

enum hk_room hk_budget_room(const struct hk_budget *b)
{
    return b ? b->room : HK_ROOM_ENOUGH;
}

const struct hk_err *hk_budget_failure(const struct hk_budget *b)
{
    return hk_budget_room(b) == HK_ROOM_ENOUGH ? NULL : &b->err;
}

uint64_t hk_budget_limit(const struct hk_budget *b)
{
    return b && b->len > 0 ? b->at[b->tightest].bytes : 0;
}

uint64_t hk_budget_used(const struct hk_budget *b)
{
    return b ? b->used : 0;
}

/* ---- creation and freeing ---- */

/* Each thread's heap takes 64 MiB of address space, most of which it never uses. */
static void share_heap(const struct hk_budget *b)
{
    for (uint32_t i = 0; i < b->len; i++) {
        if (b->at[i].kind != BUDGET_RESIDENT) {
            mallopt(M_ARENA_MAX, 1);
            mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD);
            return;
        }
    }
}

struct hk_budget *hk_budget_new(const struct hk_budget_opts *o)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct hk_budget *b = hk_zalloc(sizeof(*b));
    const char *root = o->root ? o->root : "";

    hk_buf_addf(&path, "%s/proc/self/statm", root);
    b->statm = open(path.data, O_RDONLY | O_CLOEXEC);
    budget_add(b, BUDGET_RESIDENT, "--memory-limit", o->limit_bytes);
    budget_add_rlimit(b, BUDGET_ADDRESS, RLIMIT_AS, "ulimit -v");
    budget_add_rlimit(b, BUDGET_DATA, RLIMIT_DATA, "ulimit -d");
    hk_cgroup_each(root, budget_add_cgroup, b);
    budget_add_machine(b, root);
    share_heap(b);
    hk_budget_measure(b);
    return b;
}

void hk_budget_free(struct hk_budget *b)
{
    if (!b) {
        return;
    }
    if (b->statm >= 0) {
        close(b->statm);
    }
    hk_free(b);
}
