// SPDX-License-Identifier: Apache-2.0
// Candidates for one lease over an API in memory, each with its own clock that the test moves.
#include "client/election.h"

#include "api/port_mem.h"
#include "codec/timefmt.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S_NS ((int64_t)1000 * 1000 * 1000)
#define START_NS ((int64_t)1767348000 * S_NS) /* 2026-01-02T10:00:00Z */
#define LEASE api_kind(API_LEASE), HK_STR("volcano-system"), HK_STR("office")

struct candidate {
    struct hk_clock_manual clock;
    struct hk_rand rand;
    struct election *e;
};

struct world {
    struct port_mem *mem;
    struct port *port;
    struct candidate a, b;
};

static void stand(struct world *w, struct candidate *c, const char *identity, int64_t clock_ns)
{
    struct hk_err err = {0};

    hk_clock_manual_init(&c->clock, clock_ns);
    hk_rand_seed(&c->rand, 3);
    const struct election_opts o = {.port = w->port,
                                    .clock = &c->clock.clock,
                                    .rand = &c->rand,
                                    .ns = "volcano-system",
                                    .name = "office",
                                    .identity = identity,
                                    .lease_ns = 15 * S_NS,
                                    .renew_ns = 10 * S_NS,
                                    .retry_ns = 2 * S_NS};
    if (election_new(&o, &c->e, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

/* b's clock is a day behind: nothing may depend on it. */
static int begin(void **state)
{
    struct world *w = hk_zalloc(sizeof(*w));

    *state = w;
    w->mem = port_mem_new(START_NS);
    w->port = port_mem_port(w->mem);
    stand(w, &w->a, "a", START_NS);
    stand(w, &w->b, "b", START_NS - 86400 * S_NS);
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;

    election_free(w->a.e);
    election_free(w->b.e);
    port_free(w->port);
    hk_free(w);
    return 0;
}

/* Lets the candidate do everything that is due now. */
static void settle(struct world *w, struct candidate *c)
{
    do {
        (void)election_tick(c->e);
    } while (port_poll(w->port, 100) > 0);
}

static void pass(struct world *w, struct candidate *c, int64_t ns)
{
    c->clock.now_ns += ns;
    settle(w, c);
}

/* Lets time pass for both, in small steps. */
static void pass_both(struct world *w, int64_t s)
{
    for (int64_t i = 0; i < s * 4; i++) {
        pass(w, &w->a, S_NS / 4);
        pass(w, &w->b, S_NS / 4);
        assert_false(election_leads(w->a.e) && election_leads(w->b.e));
    }
}

static struct hk_str field(struct world *w, const char *path)
{
    const struct api_object *o = port_mem_peek(w->mem, LEASE);

    return o ? json_str(json_at(&o->root, path), HK_STR("")) : HK_STR("(no lease)");
}

static void assert_holder(struct world *w, const char *want)
{
    const struct hk_str got = field(w, "spec.holderIdentity");

    if (!hk_str_is(got, want)) {
        fail_msg("expected the holder '%s', got '%.*s'", want, HK_FMT(got));
    }
}

static int64_t transitions(struct world *w)
{
    return json_int(json_at(&port_mem_peek(w->mem, LEASE)->root, "spec.leaseTransitions"), -1);
}

/* ---- tests ---- */

static void test_first_creates_the_lease_and_leads(void **state)
{
    struct world *w = *state;

    settle(w, &w->a);
    assert_true(election_leads(w->a.e));
    assert_holder(w, "a");
    assert_int_equal(transitions(w), 0);
    assert_true(hk_str_is(field(w, "spec.acquireTime"), "2026-01-02T10:00:00.000000Z"));
    settle(w, &w->b);
    assert_false(election_leads(w->b.e));
    assert_int_equal(election_state(w->b.e), ELECTION_WAITS);
}

static void test_leader_renews_every_retry_period(void **state)
{
    struct world *w = *state;

    settle(w, &w->a);
    port_mem_log_clear(w->mem);
    for (int i = 0; i < 8; i++) {
        pass(w, &w->a, S_NS);
    }
    assert_string_equal(port_mem_log(w->mem).s, "update leases volcano-system/office\n"
                                                "update leases volcano-system/office\n"
                                                "update leases volcano-system/office\n"
                                                "update leases volcano-system/office\n");
    assert_true(hk_str_is(field(w, "spec.renewTime"), "2026-01-02T10:00:08.000000Z"));
    assert_true(hk_str_is(field(w, "spec.acquireTime"), "2026-01-02T10:00:00.000000Z"));
}

static void test_nothing_is_asked_between_attempts(void **state)
{
    struct world *w = *state;
    int64_t next_ns;

    settle(w, &w->a);
    port_mem_log_clear(w->mem);
    next_ns = election_tick(w->a.e);
    assert_int_equal(next_ns - w->a.clock.now_ns, 2 * S_NS);
    pass(w, &w->a, 2 * S_NS - 1);
    assert_int_equal(port_mem_log(w->mem).n, 0);
}

static void test_a_candidate_takes_over_when_the_lease_does_not_change(void **state)
{
    struct world *w = *state;

    pass_both(w, 20);
    assert_holder(w, "a");
    /* a hangs, and its clock stops; it detects that when it wakes up. */
    for (int i = 0; i < 14 * 4; i++) {
        pass(w, &w->b, S_NS / 4);
        assert_false(election_leads(w->b.e));
    }
    for (int i = 0; i < 7 * 4 && !election_leads(w->b.e); i++) {
        pass(w, &w->b, S_NS / 4);
    }
    assert_true(election_leads(w->b.e));
    assert_holder(w, "b");
    assert_int_equal(transitions(w), 1);
    /* a wakes up: by the clock alone it no longer leads, whatever is called first. */
    w->a.clock.now_ns += 21 * S_NS;
    assert_false(election_leads(w->a.e));
    settle(w, &w->a);
    assert_int_equal(election_state(w->a.e), ELECTION_LOST);
    assert_holder(w, "b");
}

static void test_leader_stops_before_others_may_begin(void **state)
{
    struct world *w = *state;

    pass_both(w, 5);
    for (int i = 0; i < 10; i++) { /* all its requests fail from now on */
        port_mem_fail(w->mem, PORT_UPDATE, 1, HK_EIO);
        port_mem_fail(w->mem, PORT_GET, 1, HK_EIO);
        pass(w, &w->a, S_NS);
    }
    assert_int_equal(election_state(w->a.e), ELECTION_LOST);
    settle(w, &w->b);
    assert_int_equal(election_state(w->b.e), ELECTION_WAITS);
}

static void test_failed_renewals_are_repeated_in_time(void **state)
{
    struct world *w = *state;

    settle(w, &w->a);
    port_mem_fail(w->mem, PORT_UPDATE, 1, HK_EIO);
    port_mem_fail(w->mem, PORT_GET, 1, HK_EIO);
    pass(w, &w->a, 2 * S_NS);
    assert_true(election_leads(w->a.e));
    pass(w, &w->a, 2 * S_NS);
    pass(w, &w->a, 9 * S_NS);
    assert_true(election_leads(w->a.e));
}

static void test_stranger_on_the_lease_ends_it_at_once(void **state)
{
    struct world *w = *state;
    struct hk_arena mem = {0};
    struct json doc;

    settle(w, &w->a);
    doc = json_clone(&port_mem_peek(w->mem, LEASE)->root, &mem);
    json_set_cstr((struct json *)json_get(&doc, "spec"), &mem, "holderIdentity", "c");
    assert_int_equal(port_mem_put(w->mem, &doc, NULL), 0);
    pass(w, &w->a, 2 * S_NS);
    assert_int_equal(election_state(w->a.e), ELECTION_LOST);
    assert_holder(w, "c");
    hk_arena_fini(&mem);
}

static void test_a_deleted_lease_is_created_again(void **state)
{
    struct world *w = *state;

    settle(w, &w->a);
    assert_true(port_mem_remove(w->mem, LEASE));
    pass(w, &w->a, 2 * S_NS);
    assert_true(election_leads(w->a.e));
    assert_holder(w, "a");
}

static void test_released_lease_is_taken_at_the_next_look(void **state)
{
    struct world *w = *state;

    pass_both(w, 5);
    election_release(w->a.e);
    assert_false(election_leads(w->a.e));
    settle(w, &w->a);
    assert_int_equal(election_state(w->a.e), ELECTION_OVER);
    assert_holder(w, "");
    pass_both(w, 5);
    assert_true(election_leads(w->b.e));
    assert_holder(w, "b");
    assert_int_equal(transitions(w), 1);
}

static void test_release_waits_for_a_renewal_under_way(void **state)
{
    struct world *w = *state;

    settle(w, &w->a);
    w->a.clock.now_ns += 2 * S_NS;
    (void)election_tick(w->a.e); /* the renewal has no answer yet */
    election_release(w->a.e);
    assert_int_equal(election_state(w->a.e), ELECTION_ENDS);
    settle(w, &w->a);
    assert_int_equal(election_state(w->a.e), ELECTION_OVER);
    assert_holder(w, "");
}

static void test_release_of_nothing_is_over_at_once(void **state)
{
    struct world *w = *state;

    settle(w, &w->a);
    settle(w, &w->b);
    port_mem_log_clear(w->mem);
    election_release(w->b.e);
    assert_int_equal(election_state(w->b.e), ELECTION_OVER);
    settle(w, &w->b);
    assert_int_equal(port_mem_log(w->mem).n, 0);
    assert_holder(w, "a");
}

static void test_loser_writes_nothing_more(void **state)
{
    struct world *w = *state;

    settle(w, &w->a);
    w->a.clock.now_ns += 10 * S_NS;
    settle(w, &w->a);
    assert_int_equal(election_state(w->a.e), ELECTION_LOST);
    port_mem_log_clear(w->mem);
    pass(w, &w->a, 60 * S_NS);
    election_release(w->a.e);
    settle(w, &w->a);
    assert_int_equal(election_tick(w->a.e), INT64_MAX);
    assert_int_equal(port_mem_log(w->mem).n, 0);
}

static void test_two_that_find_the_lease_free_do_not_both_get_it(void **state)
{
    struct world *w = *state;

    (void)election_tick(w->a.e);
    (void)election_tick(w->b.e);
    while (port_poll(w->port, 1) > 0) { /* both read, both create */
    }
    assert_int_equal(election_leads(w->a.e) + election_leads(w->b.e), 1);
}

static void test_times_must_fit_together(void **state)
{
    struct world *w = *state;
    static const struct {
        int64_t lease_ns, renew_ns, retry_ns;
        const char *want;
    } cases[] = {
        {15 * S_NS, 15 * S_NS, 2 * S_NS, "leaseDuration must be greater than renewDeadline"},
        {15 * S_NS, 2 * S_NS, 2 * S_NS,
         "renewDeadline must be greater than retryPeriod*JitterFactor"},
        {15 * S_NS, 10 * S_NS, 0, "retryPeriod must be greater than zero"},
        {S_NS / 2, S_NS / 4, S_NS / 8, "leaseDuration must be at least one second"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct election *e = NULL;
        struct hk_err err = {0};
        const struct election_opts o = {.port = w->port,
                                        .clock = &w->a.clock.clock,
                                        .rand = &w->a.rand,
                                        .ns = "n",
                                        .name = "l",
                                        .identity = "x",
                                        .lease_ns = cases[i].lease_ns,
                                        .renew_ns = cases[i].renew_ns,
                                        .retry_ns = cases[i].retry_ns};

        assert_int_equal(election_new(&o, &e, &err), -HK_EINVAL);
        assert_string_equal(err.text, cases[i].want);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_first_creates_the_lease_and_leads),
        TEST(test_leader_renews_every_retry_period),
        TEST(test_nothing_is_asked_between_attempts),
        TEST(test_a_candidate_takes_over_when_the_lease_does_not_change),
        TEST(test_leader_stops_before_others_may_begin),
        TEST(test_failed_renewals_are_repeated_in_time),
        TEST(test_stranger_on_the_lease_ends_it_at_once),
        TEST(test_a_deleted_lease_is_created_again),
        TEST(test_released_lease_is_taken_at_the_next_look),
        TEST(test_release_waits_for_a_renewal_under_way),
        TEST(test_release_of_nothing_is_over_at_once),
        TEST(test_loser_writes_nothing_more),
        TEST(test_two_that_find_the_lease_free_do_not_both_get_it),
        TEST(test_times_must_fit_together),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
