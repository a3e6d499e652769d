// SPDX-License-Identifier: Apache-2.0
// Memory limits as the kernel shows them, in a copy of its files, and the remaining room below
// them.
#include "base/budget.h"

#include "base/file.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

#define MOUNTS_V1                                                                                  \
    "30 20 0:25 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"                         \
    "31 20 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define MOUNTS_V2                                                                                  \
    "32 20 0:27 / /sys/fs/cgroup rw,relatime shared:1 - cgroup2 cgroup2 rw,nsdelegate\n"
/* A container's view of its own group. */
#define MOUNTS_INSIDE "31 20 0:26 /docker/c1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"

static char root[64];

static void write_under_root(const char *path, const char *text)
{
    HK_AUTO(hk_buf_fini) struct hk_buf full = {0};

    hk_buf_addf(&full, "%s%s", root, path);
    for (char *at = full.data + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(full.data, 0700);
    }
    FILE *f = fopen(full.data, "we"); /* in place: the file is open */
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void put_resident(uint64_t mib)
{
    char text[128];
    const uint64_t pages = mib * MIB / (uint64_t)sysconf(_SC_PAGESIZE);

    snprintf(text, sizeof(text), "%llu %llu 10 1 0 %llu 0\n", (unsigned long long)pages + 10,
             (unsigned long long)pages + 10, (unsigned long long)pages);
    write_under_root("/proc/self/statm", text);
}

static int fresh_root(void **state)
{
    snprintf(root, sizeof(root), "/tmp/hekla-budget-XXXXXX");
    assert_non_null(mkdtemp(root));
    put_resident(10);
    write_under_root("/proc/self/cgroup", "");
    write_under_root("/proc/self/mountinfo", "");
    write_under_root("/proc/meminfo", "MemTotal:     4194304 kB\nMemFree:   1 kB\n");
    return 0;
}

static int remove_root(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf command = {0};

    hk_buf_addf(&command, "rm -rf '%s'", root);
    assert_int_equal(system(command.data), 0);
    return 0;
}

static struct hk_budget *open_budget(uint64_t limit_bytes)
{
    return hk_budget_new(&(struct hk_budget_opts){.limit_bytes = limit_bytes, .root = root});
}

static void the_least_limit_holds(void **state)
{
    static const struct {
        const char *mounts, *groups, *file, *value;
        uint64_t want_mib;
    } cases[] = {
        {"", "", "/none", "", 4096},
        {MOUNTS_V2, "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max", "419430400\n", 400},
        {MOUNTS_V2, "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max", "max\n", 4096},
        {MOUNTS_V2, "0::/a/b\n", "/sys/fs/cgroup/a/memory.max", "419430400\n", 400},
        {MOUNTS_V2, "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.high", "314572800\n", 300},
        {MOUNTS_V2, "0::/\n", "/sys/fs/cgroup/memory.max", "314572800\n", 300},
        {MOUNTS_V2, "0::/a/b\n", "/sys/fs/cgroup/c/memory.max", "1048576\n", 4096},
        {MOUNTS_V1, "4:memory:/a\n3:cpu:/\n", "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
         "419430400\n", 400},
        {MOUNTS_V1, "4:memory:/a\n3:cpu:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
         "9223372036854771712\n", 4096},
        {MOUNTS_V1, "4:memory:/a\n3:cpu:/\n", "/sys/fs/cgroup/cpu/memory.limit_in_bytes",
         "1048576\n", 4096},
        {MOUNTS_INSIDE, "4:memory:/docker/c1\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes",
         "419430400\n", 400},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        remove_root(NULL);
        fresh_root(NULL);
        write_under_root("/proc/self/mountinfo", cases[i].mounts);
        write_under_root("/proc/self/cgroup", cases[i].groups);
        write_under_root(cases[i].file, cases[i].value);
        struct hk_budget *b = open_budget(0);
        if (hk_budget_limit(b) / MIB != cases[i].want_mib) {
            fail_msg("%s of '%s' in %s: limit %llu MiB, want %llu", cases[i].value, cases[i].groups,
                     cases[i].file, (unsigned long long)(hk_budget_limit(b) / MIB),
                     (unsigned long long)cases[i].want_mib);
        }
        hk_budget_free(b);
    }
    struct hk_budget *b = open_budget(200 * MIB);
    assert_int_equal(hk_budget_limit(b), 200 * MIB);
    hk_budget_free(b);
}

/* 400 MiB: short from 300 on, none from 350 on, enough again below 275. */
static void room_has_two_marks_and_a_way_back(void **state)
{
    static const struct {
        uint64_t mib;
        enum hk_room want;
    } cases[] = {
        {10, HK_ROOM_ENOUGH},  {299, HK_ROOM_ENOUGH}, {300, HK_ROOM_SHORT},  {299, HK_ROOM_SHORT},
        {349, HK_ROOM_SHORT},  {350, HK_ROOM_NONE},   {500, HK_ROOM_NONE},   {340, HK_ROOM_SHORT},
        {275, HK_ROOM_SHORT},  {274, HK_ROOM_ENOUGH}, {299, HK_ROOM_ENOUGH}, {400, HK_ROOM_NONE},
        {100, HK_ROOM_ENOUGH},
    };
    struct hk_budget *b = open_budget(400 * MIB);

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        put_resident(cases[i].mib);
        if (hk_budget_measure(b) != cases[i].want || hk_budget_room(b) != cases[i].want) {
            fail_msg("step %zu, %llu MiB: room %d, want %d", i, (unsigned long long)cases[i].mib,
                     (int)hk_budget_room(b), (int)cases[i].want);
        }
        assert_int_equal(hk_budget_used(b), cases[i].mib * MIB);
        assert_int_equal(hk_budget_failure(b) != NULL, cases[i].want != HK_ROOM_ENOUGH);
    }
    put_resident(310);
    hk_budget_measure(b);
    assert_int_equal(hk_budget_failure(b)->code, HK_EFULL);
    assert_non_null(strstr(hk_budget_failure(b)->text, "310 MiB of 400 MiB are used"));
    assert_non_null(strstr(hk_budget_failure(b)->text, "(--memory-limit)"));
    hk_budget_free(b);
}

/* A server with much memory does not keep a quarter of it unused. */
static void the_reserve_is_bounded(void **state)
{
    struct hk_budget *b = open_budget(0);

    put_resident(4096 - 513);
    assert_int_equal(hk_budget_measure(b), HK_ROOM_ENOUGH);
    put_resident(4096 - 512);
    assert_int_equal(hk_budget_measure(b), HK_ROOM_SHORT);
    hk_budget_free(b);
}

static void spending_measures_in_time(void **state)
{
    struct hk_budget *b = open_budget(400 * MIB);

    put_resident(290);
    hk_budget_measure(b);
    put_resident(301);
    hk_budget_spend(b, 1 * MIB);
    assert_int_equal(hk_budget_room(b), HK_ROOM_ENOUGH); /* a quarter of what is left is more */
    hk_budget_spend(b, 2 * MIB);
    assert_int_equal(hk_budget_room(b), HK_ROOM_SHORT);
    put_resident(10);
    hk_budget_spend(b, 1000 * MIB);
    assert_int_equal(hk_budget_room(b), HK_ROOM_SHORT); /* until the next measurement */
    assert_int_equal(hk_budget_measure(b), HK_ROOM_ENOUGH);
    hk_budget_free(b);
}

static void a_need_fits_below_the_limit(void **state)
{
    struct hk_budget *b = open_budget(400 * MIB);

    put_resident(100);
    assert_true(hk_budget_fits(b, 280 * MIB));
    assert_false(hk_budget_fits(b, 300 * MIB));
    put_resident(300);
    assert_false(hk_budget_fits(b, 280 * MIB));
    hk_budget_free(b);
}

/* Without a budget nothing is refused. */
static void none_is_enough(void **state)
{
    assert_int_equal(hk_budget_room(NULL), HK_ROOM_ENOUGH);
    assert_int_equal(hk_budget_measure(NULL), HK_ROOM_ENOUGH);
    hk_budget_spend(NULL, SIZE_MAX);
    assert_true(hk_budget_fits(NULL, SIZE_MAX));
    assert_null(hk_budget_failure(NULL));
    assert_int_equal(hk_budget_limit(NULL), 0);
    assert_int_equal(hk_budget_used(NULL), 0);
    hk_budget_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_least_limit_holds, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(room_has_two_marks_and_a_way_back, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(the_reserve_is_bounded, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(spending_measures_in_time, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(a_need_fits_below_the_limit, fresh_root, remove_root),
        cmocka_unit_test(none_is_enough),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
