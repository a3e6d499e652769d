// SPDX-License-Identifier: Apache-2.0
// The metrics of the process itself: each standard name with a plausible value.
#include "daemon/self.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* The value of a metric. */
static double value_of(const char *name)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, line = {0};

    self_write_metrics(&text);
    hk_buf_addf(&line, "\n%s ", name);
    const char *at = strstr(text.data, line.data);
    if (!at) {
        fail_msg("'%s' is missing in\n%s", name, text.data);
    }
    return strtod(at + line.len, NULL);
}

static void the_standard_metrics_are_there(void **state)
{
    assert_true(value_of("process_cpu_seconds_total") >= 0);
    assert_true(value_of("process_resident_memory_bytes") > 4096);
    assert_true(value_of("process_virtual_memory_bytes") >=
                value_of("process_resident_memory_bytes"));
    assert_true(value_of("process_open_fds") >= 3);
    assert_true(value_of("process_max_fds") >= value_of("process_open_fds"));
}

static void an_open_descriptor_is_counted(void **state)
{
    const double before = value_of("process_open_fds");
    const int fd = dup(STDERR_FILENO);

    assert_float_equal(value_of("process_open_fds"), before + 1, 0);
    close(fd);
    assert_float_equal(value_of("process_open_fds"), before, 0);
}

static void the_start_was_a_moment_ago(void **state)
{
    const double age_s = (double)time(NULL) - value_of("process_start_time_seconds");

    assert_true(age_s > -5 && age_s < 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_standard_metrics_are_there),
        cmocka_unit_test(an_open_descriptor_is_counted),
        cmocka_unit_test(the_start_was_a_moment_ago),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("daemon/self", tests, NULL, NULL);
}
