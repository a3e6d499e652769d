// SPDX-License-Identifier: Apache-2.0
// Tests of the set of pods: finding them, queueing them, and their alarms.
#include "agent/pod/pods.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct host host;

static struct pod make_pod(struct pods *ps, const char *uid, const char *name)
{
    return (struct pod){.host = ps->host,
                        .set = ps,
                        .uid = hk_str(uid),
                        .ns = HK_STR("d"),
                        .name = hk_str(name),
                        .due_ns = INT64_MAX,
                        .alarm_ns = INT64_MAX};
}

static void test_the_newest_pod_of_a_name_is_found(void **state)
{
    struct pods ps;

    pods_init(&ps, &host, NULL);
    struct pod old = make_pod(&ps, "u1", "a"), new = make_pod(&ps, "u2", "a");
    pods_add(&old);
    pods_add(&new);
    assert_ptr_equal(pods_find(&ps, HK_STR("u1")), &old);
    assert_ptr_equal(pods_find_named(&ps, HK_STR("d"), HK_STR("a")), &new);
    assert_null(pods_find_named(&ps, HK_STR("e"), HK_STR("a")));
    pods_remove(&old); /* leaves the name to the newer one */
    assert_null(pods_find(&ps, HK_STR("u1")));
    assert_ptr_equal(pods_find_named(&ps, HK_STR("d"), HK_STR("a")), &new);
    pods_fini(&ps);
}

static void test_a_container_leads_to_its_pod_until_it_has_ended(void **state)
{
    struct pods ps;

    pods_init(&ps, &host, NULL);
    struct pod a = make_pod(&ps, "u1", "a");
    pods_add(&a);
    pod_claim(&a, 7);
    assert_ptr_equal(pods_find_owner(&ps, 7), &a);
    pods_disown(&ps, 7);
    assert_null(pods_find_owner(&ps, 7));
    pods_fini(&ps);
}

static void test_a_touched_pod_is_queued_once_and_wakes_from_rest(void **state)
{
    struct pods ps;

    pods_init(&ps, &host, NULL);
    struct pod a = make_pod(&ps, "u1", "a");
    pods_add(&a);
    pod_touch(&a);
    assert_int_equal(ps.touched.len, 1);
    a.queued = false;
    ps.touched.len = 0;
    pods_deactivate(&a);
    a.resting = true;
    assert_int_equal(ps.active.len, 0);
    pod_touch(&a);
    assert_int_equal(ps.touched.len, 1);
    assert_int_equal(ps.active.len, 1);
    assert_false(a.resting);
    pods_fini(&ps);
}

static void test_an_alarm_touches_the_pod_that_is_due(void **state)
{
    struct pods ps;

    pods_init(&ps, &host, NULL);
    struct pod a = make_pod(&ps, "u1", "a"), b = make_pod(&ps, "u2", "b");
    pods_add(&a);
    pods_add(&b);
    a.queued = b.queued = false;
    ps.touched.len = 0;
    a.due_ns = 30;
    b.due_ns = 10;
    pods_set_alarm(&a);
    pods_set_alarm(&b);
    assert_int_equal(pods_run_alarms(&ps, 9), 10);
    assert_int_equal(ps.touched.len, 0);
    assert_int_equal(pods_run_alarms(&ps, 10), 30);
    assert_true(b.queued);
    assert_false(a.queued);
    pods_fini(&ps);
}

static void test_an_alarm_follows_a_pod_that_is_due_earlier_or_later(void **state)
{
    struct pods ps;

    pods_init(&ps, &host, NULL);
    struct pod a = make_pod(&ps, "u1", "a");
    pods_add(&a);
    a.queued = false;
    a.due_ns = 30;
    pods_set_alarm(&a);
    a.due_ns = 20;
    pods_set_alarm(&a);
    a.due_ns = 40; /* decided after the alarm was set */
    assert_int_equal(pods_run_alarms(&ps, 20), 30);
    assert_int_equal(pods_run_alarms(&ps, 30), 40);
    assert_false(a.queued);
    assert_int_equal(pods_run_alarms(&ps, 40), INT64_MAX);
    assert_true(a.queued);
    pods_fini(&ps);
}

static void test_an_alarm_of_a_pod_that_is_gone_does_nothing(void **state)
{
    struct pods ps;

    pods_init(&ps, &host, NULL);
    struct pod a = make_pod(&ps, "u1", "a");
    pods_add(&a);
    a.due_ns = 10;
    pods_set_alarm(&a);
    pods_remove(&a);
    assert_int_equal(pods_run_alarms(&ps, 10), INT64_MAX);
    pods_fini(&ps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_newest_pod_of_a_name_is_found),
        cmocka_unit_test(test_a_container_leads_to_its_pod_until_it_has_ended),
        cmocka_unit_test(test_a_touched_pod_is_queued_once_and_wakes_from_rest),
        cmocka_unit_test(test_an_alarm_touches_the_pod_that_is_due),
        cmocka_unit_test(test_an_alarm_follows_a_pod_that_is_due_earlier_or_later),
        cmocka_unit_test(test_an_alarm_of_a_pod_that_is_gone_does_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
