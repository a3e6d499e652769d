// SPDX-License-Identifier: Apache-2.0
// The crash record: crashes by fatal signals are charged to the current object, other ends are not,
// and a change of the object gives it another chance.
#include "base/crumb.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NS HK_STR("d")
#define NAME HK_STR("j")

static char path[64];

static int fresh_file(void **state)
{
    snprintf(path, sizeof(path), "/tmp/hekla-crumb-%d", (int)getpid());
    unlink(path);
    return 0;
}

static int remove_file(void **state)
{
    hk_crumb_close();
    unlink(path);
    return 0;
}

/* One run of the process: works on the object, and ends during that, by a fatal signal or not. */
static void live(struct hk_str name, bool fatal)
{
    assert_int_equal(hk_crumb_open(path, NULL), 0);
    hk_crumb_enter("worker", NS, name);
    if (fatal) {
        hk_crumb_died();
    }
    hk_crumb_close();
}

static bool skips(struct hk_str name, uint64_t rv)
{
    bool news;

    return hk_crumb_skips("worker", NS, name, rv, &news);
}

static void the_second_death_is_one_too_many(void **state)
{
    live(NAME, true);
    assert_int_equal(hk_crumb_open(path, NULL), 0);
    assert_false(skips(NAME, 7));
    hk_crumb_close();
    live(NAME, true);
    assert_int_equal(hk_crumb_open(path, NULL), 0);
    assert_true(skips(NAME, 7));
    assert_false(skips(HK_STR("other"), 7));
    bool news;
    assert_false(hk_crumb_skips("another", NS, NAME, 7, &news));
}

static void other_ends_do_not_count(void **state)
{
    for (int i = 0; i < 5; i++) {
        live(NAME, false);
    }
    assert_int_equal(hk_crumb_open(path, NULL), 0);
    assert_false(skips(NAME, 7));
}

/* A signal between two objects is not charged. */
static void crashes_between_objects_are_charged_to_none(void **state)
{
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hk_crumb_open(path, NULL), 0);
        hk_crumb_enter("worker", NS, NAME);
        hk_crumb_leave();
        hk_crumb_died();
        hk_crumb_close();
    }
    assert_int_equal(hk_crumb_open(path, NULL), 0);
    assert_false(skips(NAME, 7));
}

/* Nested work is not charged by itself. */
static void the_outermost_work_is_charged(void **state)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hk_crumb_open(path, NULL), 0);
        hk_crumb_enter("worker", NS, NAME);
        hk_crumb_enter("helper", NS, HK_STR("inner"));
        hk_crumb_leave();
        hk_crumb_died();
        hk_crumb_close();
    }
    assert_int_equal(hk_crumb_open(path, NULL), 0);
    assert_true(skips(NAME, 7));
    assert_false(skips(HK_STR("inner"), 7));
}

struct watched {
    bool any;
    struct hk_str name;
};

static bool name_watched(void *ctx, struct hk_str *ret_ns, struct hk_str *ret_name)
{
    const struct watched *w = ctx;

    *ret_ns = NS;
    *ret_name = w->name;
    return w->any;
}

static void the_watched_is_asked_for_at_the_end(void **state)
{
    static char longest[2000];
    struct watched w = {true, NAME};
    bool news;

    memset(longest, 'x', sizeof(longest) - 1);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(hk_crumb_open(path, NULL), 0);
        hk_crumb_watch("worker", name_watched, &w);
        w.any = i < 2 || i > 3;
        w.name = i < 4 ? NAME : hk_str(longest);
        if (i > 5) {
            hk_crumb_watch(NULL, NULL, NULL);
        }
        hk_crumb_died();
        hk_crumb_close();
    }
    assert_int_equal(hk_crumb_open(path, NULL), 0);
    assert_true(skips(NAME, 7));
    assert_true(hk_crumb_skips("worker", NS, hk_str(longest), 7, &news));
    assert_false(skips(HK_STR("other"), 7));
}

static void a_change_is_another_chance(void **state)
{
    bool news;

    live(NAME, true);
    live(NAME, true);
    assert_int_equal(hk_crumb_open(path, NULL), 0);
    assert_true(hk_crumb_skips("worker", NS, NAME, 7, &news));
    assert_true(news);
    assert_true(hk_crumb_skips("worker", NS, NAME, 7, &news));
    assert_false(news);
    hk_crumb_close();
    assert_int_equal(hk_crumb_open(path, NULL), 0); /* a restart changes nothing */
    assert_true(hk_crumb_skips("worker", NS, NAME, 7, &news));
    assert_true(news);
    assert_false(skips(NAME, 8));
    assert_false(skips(NAME, 7)); /* forgotten */
}

static void count_row(void *ctx, const char *what)
{
    assert_string_equal(what, "worker d/j");
    ++*(int *)ctx;
}

static void skipped_objects_are_listed(void **state)
{
    int n = 0;

    hk_crumb_each(path, count_row, &n); /* no file */
    live(HK_STR("once"), true);
    live(NAME, true);
    live(NAME, true);
    assert_int_equal(hk_crumb_open(path, NULL), 0);
    hk_crumb_each(path, count_row, &n);
    assert_int_equal(n, 1);
}

static void many_objects_make_room_for_each_other(void **state)
{
    live(NAME, true);
    live(NAME, true);
    for (int i = 0; i < 40; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%d", i);
        live(hk_str(name), true);
    }
    assert_int_equal(hk_crumb_open(path, NULL), 0);
    assert_true(skips(NAME, 7));
}

static void an_unreadable_file_is_started_again(void **state)
{
    FILE *f = fopen(path, "w");

    for (int i = 0; i < 20000; i++) {
        fputc(0xff, f);
    }
    fclose(f);
    assert_int_equal(hk_crumb_open(path, NULL), 0);
    assert_false(skips(NAME, 7));
    hk_crumb_enter("worker", NS, NAME);
    hk_crumb_leave();
}

static void nothing_is_recorded_without_a_file(void **state)
{
    hk_crumb_enter("worker", NS, NAME);
    hk_crumb_leave();
    hk_crumb_died();
    assert_false(skips(NAME, 7));
}

#define test(name) cmocka_unit_test_setup_teardown(name, fresh_file, remove_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(the_second_death_is_one_too_many),
        test(other_ends_do_not_count),
        test(crashes_between_objects_are_charged_to_none),
        test(the_outermost_work_is_charged),
        test(the_watched_is_asked_for_at_the_end),
        test(a_change_is_another_chance),
        test(skipped_objects_are_listed),
        test(many_objects_make_room_for_each_other),
        test(an_unreadable_file_is_started_again),
        test(nothing_is_recorded_without_a_file),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("base/crumb", tests, NULL, NULL);
}
