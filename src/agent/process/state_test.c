// SPDX-License-Identifier: Apache-2.0
// Records of containers: reads return what was written, and corrupt records are refused.
#include "agent/process/state.h"

#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

static int make_file(void **state)
{
    char *path = hk_strdup("/tmp/hekla-state-XXXXXX");
    const int fd = mkstemp(path);

    *state = path;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    const int rc = unlink(*state);

    hk_free(*state);
    return rc;
}

static void put(const char *path, const char *text)
{
    struct hk_err err = {0};

    if (process_state_write(path, hk_str(text), &err) < 0) {
        fail_msg("%s", err.text);
    }
}

#define FIELDS_4_TO_21 " 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19"

static void test_start_times_are_found_behind_any_name(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t pid, ticks;
    } cases[] = {
        {"77 (sh) S" FIELDS_4_TO_21 " 4711 0 0\n", true, 77, 4711},
        {"77 (a b) S) R" FIELDS_4_TO_21 " 4711 0 0\n", true, 77, 4711},
        {"77 ()) (1 2) S" FIELDS_4_TO_21 " 4711 0 0\n", true, 77, 4711},
        {"77 (sh) S 1 2 3", false, 0, 0},
        {"77 sh S", false, 0, 0},
        {"x (sh) S" FIELDS_4_TO_21 " 4711 0 0\n", false, 0, 0},
        {"", false, 0, 0},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        int64_t pid = 0, ticks = 0;
        assert_int_equal(process_state_stat(hk_str(cases[k].text), &pid, &ticks), cases[k].ok);
        if (cases[k].ok) {
            assert_int_equal(pid, cases[k].pid);
            assert_int_equal(ticks, cases[k].ticks);
        }
    }
}

static void test_a_container_reads_back(void **state)
{
    static const char *const env[] = {"A=1", "EMPTY=", "LINES=one\ntwo", NULL};
    static const int64_t groups[] = {5, 6};
    const struct runtime_container c = {
        .cwd = "/some where",
        .uid = 1000,
        .gid = -1,
        .groups = groups,
        .ngroup = 2,
        .env = env,
    };
    HK_AUTO(process_spec_fini) struct process_spec spec = {0};
    struct hk_err err = {0};

    assert_int_equal(process_state_save_spec(*state, &c, &err), 0);
    assert_int_equal(process_state_load_spec(*state, &spec, &err), 0);
    assert_string_equal(spec.cwd, "/some where");
    assert_int_equal(spec.uid, 1000);
    assert_int_equal(spec.gid, -1);
    assert_int_equal(spec.groups.len, 2);
    assert_int_equal(spec.groups.at[0], 5);
    assert_int_equal(spec.groups.at[1], 6);
    assert_int_equal(spec.env.len, HK_LEN(env));
    for (size_t k = 0; env[k]; k++) {
        assert_string_equal(spec.env.at[k], env[k]);
    }
    assert_null(spec.env.at[spec.env.len - 1]);
}

static void test_an_end_reads_back(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct runtime_end end;
    struct hk_err err = {0};

    put(*state, "128 0 1 10 20\nexec: \"x\": two\nlines");
    assert_int_equal(process_state_end(*state, &text, &end, &err), 0);
    assert_int_equal(end.code, 128);
    assert_int_equal(end.signo, 0);
    assert_true(end.never_ran);
    assert_int_equal(end.start_ns, 10);
    assert_int_equal(end.end_ns, 20);
    assert_string_equal(end.message, "exec: \"x\": two\nlines");
}

static void test_broken_records_are_refused(void **state)
{
    static const char *const cases[] = {"", "\n", "1 2 3\n", "a b c d e\n"};
    struct hk_err err = {0};

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        HK_AUTO(process_spec_fini) struct process_spec spec = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
        struct runtime_end end;
        struct process_shim shim;
        put(*state, cases[k]);
        assert_int_equal(process_state_end(*state, &text, &end, &err), -HK_EINVAL);
        assert_int_equal(process_state_load_spec(*state, &spec, &err), -HK_EINVAL);
        if (k != 2) { /* three numbers are a valid shim record */
            assert_int_equal(process_state_shim(*state, &shim, &err), -HK_EINVAL);
        }
    }
}

static void test_a_process_is_known_by_its_start(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct process_shim self = {0};
    struct hk_err err = {0};
    int fd;

    assert_int_equal(hk_read_file("/proc/self/stat", 4096, &text, &err), 0);
    assert_true(process_state_stat(hk_buf_str(&text), &self.pid, &self.start_ticks));
    assert_int_equal(self.pid, getpid());
    fd = process_state_open(&self);
    assert_true(fd >= 0);
    close(fd);
    self.start_ticks++;
    assert_int_equal(process_state_open(&self), -1);
}

#define WITH_FILE(f) cmocka_unit_test_setup_teardown(f, make_file, remove_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_times_are_found_behind_any_name),
        WITH_FILE(test_a_container_reads_back),
        WITH_FILE(test_an_end_reads_back),
        WITH_FILE(test_broken_records_are_refused),
        cmocka_unit_test(test_a_process_is_known_by_its_start),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
