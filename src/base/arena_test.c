// SPDX-License-Identifier: Apache-2.0
// Arenas return aligned memory, free it all at once, and after a first cycle do not call the
// allocator.

#include "base/arena.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_memory_is_aligned_and_apart(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    char *last = NULL;

    for (size_t size = 1; size < 300; size++) {
        char *p = hk_arena_alloc(&a, size);
        assert_int_equal((uintptr_t)p % 16, 0);
        memset(p, (int)size, size);
        if (last) {
            assert_int_equal(last[size - 2], (char)(size - 1));
        }
        last = p;
    }
}

static void test_nothing_from_an_empty_arena(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    HK_AUTO(hk_arena_fini) struct hk_arena b = {0};

    assert_non_null(hk_arena_alloc(&a, 0));
    assert_non_null(hk_arena_zalloc(&b, 0));
    assert_non_null(hk_arena_array(&b, 0, 8));
}

static void test_large_requests_get_their_own_chunk(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    char *small = hk_arena_zalloc(&a, 16);
    char *large = hk_arena_zalloc(&a, 20u << 20);
    char *next = hk_arena_zalloc(&a, 16);

    large[(20u << 20) - 1] = 1;
    assert_int_equal(small[0] + next[0], 0);
    assert_true(a.total >= 20u << 20);
}

static void test_rewind_gives_the_same_memory_again(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    char *kept = hk_arena_strndup(&a, "kept", 4);
    const struct hk_arena_mark mark = hk_arena_mark(&a);
    char *first = hk_arena_alloc(&a, 100);

    for (int i = 0; i < 1000; i++) {
        memset(hk_arena_alloc(&a, 1000), 0xff, 1000);
    }
    hk_arena_rewind(&a, mark);
    assert_ptr_equal(hk_arena_alloc(&a, 100), first);
    assert_string_equal(kept, "kept");
}

static void test_mark_of_an_empty_arena(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct hk_arena_mark mark = hk_arena_mark(&a);

    hk_arena_rewind(&a, mark);
    char *first = hk_arena_alloc(&a, 16);
    hk_arena_alloc(&a, 100000);
    hk_arena_rewind(&a, mark);
    assert_ptr_equal(hk_arena_alloc(&a, 16), first);
}

static void test_nested_marks(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    char *outer = hk_arena_strndup(&a, "outer", 5);
    const struct hk_arena_mark m1 = hk_arena_mark(&a);
    hk_arena_alloc(&a, 50000);
    char *inner = hk_arena_strndup(&a, "inner", 5);
    const struct hk_arena_mark m2 = hk_arena_mark(&a);
    memset(hk_arena_alloc(&a, 90000), 'x', 90000);

    hk_arena_rewind(&a, m2);
    memset(hk_arena_alloc(&a, 200000), 'y', 200000);
    assert_string_equal(inner, "inner");
    hk_arena_rewind(&a, m1);
    memset(hk_arena_alloc(&a, 400000), 'z', 400000);
    assert_string_equal(outer, "outer");
}

/* The mix of sizes in a scheduling cycle: many small ones, a few larger than any normal chunk. */
static void spend(struct hk_arena *a, uint64_t seed)
{
    struct hk_rand r;

    hk_rand_seed(&r, seed);
    for (int i = 0; i < 2000; i++) {
        const size_t size = hk_rand_below(&r, 50) == 0 ? 60000 : hk_rand_below(&r, 200);
        memset(hk_arena_alloc(a, size), i, size);
    }
}

static void test_warm_arena_leaves_the_allocator_alone(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};

    spend(&a, 1);
    const uint64_t calls = hk_alloc_calls();
    const size_t total = a.total;
    for (int i = 0; i < 20; i++) {
        hk_arena_clear(&a);
        spend(&a, 1);
    }
    assert_int_equal(hk_alloc_calls() - calls, 0);
    assert_int_equal(a.total, total);
}

/* A request too large for the next free chunk uses a later one that fits, and the skipped chunks
 * stay in use. */
static void test_free_chunks_are_found_in_any_order(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};

    hk_arena_alloc(&a, 3000);
    hk_arena_alloc(&a, 3900);
    hk_arena_alloc(&a, 100000);
    const uint64_t calls = hk_alloc_calls();
    hk_arena_clear(&a);
    hk_arena_alloc(&a, 100000);
    hk_arena_alloc(&a, 3900);
    hk_arena_clear(&a);
    hk_arena_alloc(&a, 3000);
    hk_arena_alloc(&a, 3900);
    hk_arena_alloc(&a, 3900);
    assert_int_equal(hk_alloc_calls() - calls, 0);
}

static void test_reserved_arena_takes_one_chunk(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const size_t room = HK_ARENA_ROOM(100) + HK_ARENA_ROOM(7) + HK_ARENA_ROOM(300);
    const uint64_t calls = hk_alloc_calls();

    hk_arena_reserve(&a, room);
    hk_arena_alloc(&a, 100);
    hk_arena_alloc(&a, 7);
    hk_arena_alloc(&a, 300);
    assert_int_equal(hk_alloc_calls() - calls, 1);
    assert_true(a.total < room + 64);
    hk_arena_alloc(&a, 300);
    assert_int_equal(hk_alloc_calls() - calls, 2);
}

#if HK_ARENA_GAP
static void test_free_room_is_poisoned(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    char *kept = hk_arena_alloc(&a, 32);
    const struct hk_arena_mark mark = hk_arena_mark(&a);
    char *near = hk_arena_alloc(&a, 32);
    char *far = hk_arena_alloc(&a, 50000);

    assert_null(__asan_region_is_poisoned(kept, 32));
    assert_ptr_equal(__asan_region_is_poisoned(kept, 33), kept + 32);
    assert_null(__asan_region_is_poisoned(far, 50000));
    hk_arena_rewind(&a, mark);
    assert_null(__asan_region_is_poisoned(kept, 32));
    assert_true(__asan_address_is_poisoned(near));
    assert_true(__asan_address_is_poisoned(far));
}
#endif

static void test_fini_leaves_a_ready_arena(void **state)
{
    struct hk_arena a = {0};

    hk_arena_fini(&a);
    hk_arena_clear(&a);
    hk_arena_alloc(&a, 10);
    hk_arena_fini(&a);
    assert_int_equal(a.total, 0);
    hk_arena_alloc(&a, 10);
    hk_arena_fini(&a);
}

static void test_pool_keeps_what_is_small(void **state)
{
    struct hk_arena_pool p = {0};
    struct hk_arena a = hk_arena_pool_take(&p);

    hk_arena_pool_give(&p, &a);
    assert_int_equal(p.len, 0); /* nothing to keep */
    void *first = hk_arena_alloc(&a, 100);
    hk_arena_pool_give(&p, &a);
    assert_int_equal(p.len, 1);
    assert_int_equal(a.total, 0);

    const uint64_t calls = hk_alloc_calls();
    a = hk_arena_pool_take(&p);
    assert_ptr_equal(hk_arena_alloc(&a, 100), first);
    assert_int_equal(hk_alloc_calls(), calls);

    hk_arena_alloc(&a, HK_ARENA_POOL_EACH);
    hk_arena_pool_give(&p, &a);
    assert_int_equal(p.len, 0);
    hk_arena_pool_fini(&p);
}

static void test_text(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct hk_str copy = hk_arena_str(&a, (struct hk_str){"a\0b", 3});

    assert_int_equal(copy.n, 3);
    assert_memory_equal(copy.s, "a\0b", 4); /* with the NUL at the end */
    assert_string_equal(hk_arena_strndup(&a, "queue", 2), "qu");
    assert_string_equal(hk_arena_strndup(&a, NULL, 0), "");
    assert_string_equal(hk_arena_printf(&a, "%s-%d", "task", 7), "task-7");
    assert_int_equal(strlen(hk_arena_printf(&a, "%9000d", 1)), 9000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_aligned_and_apart),
        cmocka_unit_test(test_nothing_from_an_empty_arena),
        cmocka_unit_test(test_large_requests_get_their_own_chunk),
        cmocka_unit_test(test_rewind_gives_the_same_memory_again),
        cmocka_unit_test(test_mark_of_an_empty_arena),
        cmocka_unit_test(test_nested_marks),
        cmocka_unit_test(test_warm_arena_leaves_the_allocator_alone),
        cmocka_unit_test(test_free_chunks_are_found_in_any_order),
        cmocka_unit_test(test_reserved_arena_takes_one_chunk),
#if HK_ARENA_GAP
        cmocka_unit_test(test_free_room_is_poisoned),
#endif
        cmocka_unit_test(test_fini_leaves_a_ready_arena),
        cmocka_unit_test(test_pool_keeps_what_is_small),
        cmocka_unit_test(test_text),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
