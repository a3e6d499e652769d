// SPDX-License-Identifier: Apache-2.0
// The allocator never returns NULL, checks its multiplications, and counts its calls.

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The signal that ends fn in a child process, or 0. */
static int signal_of(void (*fn)(void))
{
    int status = 0;
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        const struct rlimit no_core = {0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL); /* cmocka would catch it */
        close(STDERR_FILENO);
        fn();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_zero_sizes_give_a_pointer(void **state)
{
    HK_AUTO(hk_freep) void *a = hk_alloc(0);
    HK_AUTO(hk_freep) void *b = hk_zalloc(0);
    HK_AUTO(hk_freep) void *c = hk_zalloc_array(0, 8);
    HK_AUTO(hk_freep) void *d = hk_realloc_array(NULL, 0, 8);

    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_non_null(d);
}

static void test_zalloc_is_zero(void **state)
{
    HK_AUTO(hk_freep) unsigned char *p = hk_zalloc_array(100, 3);

    for (size_t i = 0; i < 300; i++) {
        assert_int_equal(p[i], 0);
    }
}

static void test_realloc_keeps_content(void **state)
{
    uint32_t *p = hk_realloc_array(NULL, 2, sizeof(*p));

    p[0] = 7;
    p[1] = 8;
    p = hk_realloc_array(p, 5000, sizeof(*p));
    assert_int_equal(p[0], 7);
    assert_int_equal(p[1], 8);
    hk_free(p);
}

static void test_strdup(void **state)
{
    HK_AUTO(hk_freep) char *a = hk_strdup("queue");
    HK_AUTO(hk_freep) char *b = hk_strndup("queue", 3);
    HK_AUTO(hk_freep) char *c = hk_strndup("queue", 99);
    HK_AUTO(hk_freep) char *d = hk_strdup("");

    assert_string_equal(a, "queue");
    assert_string_equal(b, "que");
    assert_string_equal(c, "queue");
    assert_string_equal(d, "");
}

static void test_take_leaves_null(void **state)
{
    char *mine = hk_strdup("x");
    char *yours = hk_take(mine);

    assert_null(mine);
    assert_string_equal(yours, "x");
    hk_free(yours);
    hk_free(NULL);
}

static void test_calls_are_counted(void **state)
{
    const uint64_t before = hk_alloc_calls();

    void *p = hk_alloc(10);
    p = hk_realloc_array(p, 20, 1);
    hk_free(p);
    hk_free(hk_strdup("x"));
    hk_free(hk_zalloc(1));
    assert_int_equal(hk_alloc_calls() - before, 4);
}

/* Opaque to the compiler, which would otherwise refuse sizes it can see. */
static volatile size_t huge = SIZE_MAX / 2;

static void overflow_realloc(void)
{
    hk_free(hk_realloc_array(NULL, huge, 3));
}

static void overflow_zalloc(void)
{
    hk_free(hk_zalloc_array(3, huge));
}

static void past_ptrdiff(void)
{
    hk_free(hk_alloc(huge + 2));
}

static void break_promise(void)
{
    hk_assert(huge == 0);
}

static void keep_promise(void)
{
    hk_assert(huge != 0);
}

static void test_impossible_sizes_abort(void **state)
{
    assert_int_equal(signal_of(overflow_realloc), SIGABRT);
    assert_int_equal(signal_of(overflow_zalloc), SIGABRT);
    assert_int_equal(signal_of(past_ptrdiff), SIGABRT);
}

static void test_assert_aborts_only_when_broken(void **state)
{
    assert_int_equal(signal_of(break_promise), SIGABRT);
    assert_int_equal(signal_of(keep_promise), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zero_sizes_give_a_pointer),
        cmocka_unit_test(test_zalloc_is_zero),
        cmocka_unit_test(test_realloc_keeps_content),
        cmocka_unit_test(test_strdup),
        cmocka_unit_test(test_take_leaves_null),
        cmocka_unit_test(test_calls_are_counted),
        cmocka_unit_test(test_impossible_sizes_abort),
        cmocka_unit_test(test_assert_aborts_only_when_broken),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
