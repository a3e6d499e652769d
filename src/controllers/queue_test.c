// SPDX-License-Identifier: Apache-2.0
// Queues that open and close.
#include "base/log.h"
#include "controllers/fault_rig_test.h"
#include "controllers/table.h"

static const struct ctl_type *const types[] = {&ctl_queue};

static struct rig rig;

#define QUEUE(name, more)                                                                          \
    "---\n"                                                                                        \
    "apiVersion: scheduling.volcano.sh/v1beta1\n"                                                  \
    "kind: Queue\n"                                                                                \
    "metadata: {name: " name "}\n" more

#define GROUP(name, queue)                                                                         \
    "---\n"                                                                                        \
    "apiVersion: scheduling.volcano.sh/v1beta1\n"                                                  \
    "kind: PodGroup\n"                                                                             \
    "metadata: {name: " name ", namespace: d}\n"                                                   \
    "spec: {queue: " queue "}\n"

#define MARK "metadata.annotations"
#define MARKED(value) "{\"volcano.sh/closed-by-parent\":\"" value "\"}"

/* root -> q1 -> q11, and a separate q. */
static void put_queues(void)
{
    rig_put(&rig, QUEUE("root", "") QUEUE("q", "spec: {weight: 1}\n")
                      QUEUE("q1", "spec: {parent: root}\n") QUEUE("q11", "spec: {parent: q1}\n"));
}

static int setup(void **state)
{
    rig_init(&rig, types, HK_LEN(types));
    put_queues();
    rig_manager(&rig);
    rig_settle(&rig);
    return 0;
}

static int teardown(void **state)
{
    rig_fini(&rig);
    return 0;
}

static void put_command(const char *queue, const char *action)
{
    static int serial;
    char yaml[400];

    snprintf(yaml, sizeof(yaml),
             "apiVersion: bus.volcano.sh/v1alpha1\n"
             "kind: Command\n"
             "metadata: {name: c%d, namespace: d}\n"
             "action: %s\n"
             "target: {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, name: %s}\n",
             ++serial, action, queue);
    rig_put(&rig, yaml);
}

static void command(const char *queue, const char *action)
{
    put_command(queue, action);
    rig_settle(&rig);
}

#define expect(queue, path, want) rig_expect(&rig, API_QUEUE, queue, path, want)
#define state_is(queue, want) rig_expect(&rig, API_QUEUE, queue, "status.state", "\"" want "\"")

/* Patches since the last call. */
static uint64_t patches(void)
{
    static uint64_t before;
    static const struct manager *of;
    const uint64_t now = manager_metrics(rig.m)->writes[PORT_PATCH];
    const uint64_t n = of == rig.m && now >= before ? now - before : now;

    of = rig.m;
    before = now;
    return n;
}

struct event_find {
    const char *reason, *message;
    bool found;
};

static void event_one(void *ctx, const struct api_object *o)
{
    struct event_find *f = ctx;
    const struct hk_str none = {"", 0};

    f->found =
        f->found || (hk_str_is(json_str(json_get(&o->root, "reason"), none), f->reason) &&
                     hk_str_starts(json_str(json_get(&o->root, "message"), none), f->message));
}

static bool was_told(const char *reason, const char *message)
{
    struct event_find f = {reason, message, false};

    port_mem_each(rig.mem, api_kind(API_EVENT), event_one, &f);
    return f.found;
}

/* ---- one queue ---- */

static void a_new_queue_is_open_and_below_root(void **state)
{
    state_is("root", "Open");
    expect("root", "spec", "");
    state_is("q", "Open");
    expect("q", "spec", "{\"weight\":1,\"parent\":\"root\"}");
    expect("q", MARK, "");
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_PATCH], 5);
    rig_restart(&rig);
    rig_pass(&rig, 60);
    assert_int_equal(manager_metrics(rig.m)->writes[PORT_PATCH], 0);
}

static void an_empty_queue_closes_and_opens_35(void **state)
{
    (void)patches();
    command("q", "CloseQueue");
    state_is("q", "Closed");
    expect("q", MARK, "");
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
    assert_int_equal(patches(), 1);
    assert_true(was_told("CloseQueue", "Close queue succeed"));
    command("q", "OpenQueue");
    state_is("q", "Open");
    expect("q", MARK, MARKED("false"));
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
    assert_int_equal(patches(), 2);
}

static void a_queue_with_groups_is_closing_until_the_last_leaves_35(void **state)
{
    rig_put(&rig, GROUP("a", "q") GROUP("b", "q"));
    command("q", "CloseQueue");
    state_is("q", "Closing");
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
    rig_remove(&rig, API_PODGROUP, "a");
    rig_settle(&rig);
    state_is("q", "Closing");
    rig_patch(&rig, API_PODGROUP, "b", "status: {phase: Completed}");
    rig_settle(&rig);
    state_is("q", "Closing");
    rig_remove(&rig, API_PODGROUP, "b");
    rig_settle(&rig);
    state_is("q", "Closed");
}

static void a_group_that_moves_away_counts_as_gone(void **state)
{
    rig_put(&rig, GROUP("a", "q"));
    command("q", "CloseQueue");
    state_is("q", "Closing");
    rig_patch(&rig, API_PODGROUP, "a", "spec: {queue: q1}");
    rig_settle(&rig);
    state_is("q", "Closed");
}

static void a_recreated_queue_knows_its_groups(void **state)
{
    rig_put(&rig, GROUP("a", "q"));
    rig_settle(&rig);
    rig_remove(&rig, API_QUEUE, "q");
    rig_settle(&rig);
    rig_put(&rig, QUEUE("q", "spec: {parent: root}\n"));
    rig_settle(&rig);
    command("q", "CloseQueue");
    state_is("q", "Closing");
}

static void closing_twice_writes_once(void **state)
{
    command("q", "CloseQueue");
    (void)patches();
    command("q", "CloseQueue");
    assert_int_equal(patches(), 0);
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
}

static void opening_what_is_open_writes_nothing(void **state)
{
    (void)patches();
    command("q", "OpenQueue");
    assert_int_equal(patches(), 0);
    expect("q", MARK, "");
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
}

static void root_is_never_closed(void **state)
{
    command("root", "CloseQueue");
    state_is("root", "Open");
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
}

static void commands_are_obeyed_in_the_order_they_came(void **state)
{
    put_command("q", "CloseQueue");
    put_command("q", "OpenQueue");
    put_command("q", "CloseQueue");
    rig_settle(&rig);
    state_is("q", "Closed");
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
}

static void only_commands_for_queues_are_taken(void **state)
{
    rig_put(&rig, "apiVersion: bus.volcano.sh/v1alpha1\n"
                  "kind: Command\n"
                  "metadata: {name: c, namespace: d}\n"
                  "action: CloseQueue\n"
                  "target: {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: q}\n");
    rig_settle(&rig);
    state_is("q", "Open");
    assert_int_equal(rig_count(&rig, API_COMMAND), 1);
}

static void a_command_for_a_missing_queue_is_dropped_after_some_retries(void **state)
{
    command("nowhere", "CloseQueue");
    assert_int_equal(rig_count(&rig, API_COMMAND), 1);
    rig_pass(&rig, 600);
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
}

static void a_command_may_come_before_its_queue(void **state)
{
    command("late", "CloseQueue");
    rig_put(&rig, QUEUE("late", "spec: {parent: root}\n"));
    rig_settle(&rig);
    state_is("late", "Closed");
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
}

static void the_gate_leaves_commands_alone(void **state)
{
    rig.conf.no_queue_command_sync = true;
    rig_restart(&rig);
    command("q", "CloseQueue");
    state_is("q", "Open");
    assert_int_equal(rig_count(&rig, API_COMMAND), 1);
}

static void an_unknown_state_is_kept_until_a_command(void **state)
{
    rig_patch(&rig, API_QUEUE, "q", "status: {state: Unknown}");
    rig_settle(&rig);
    state_is("q", "Unknown");
    command("q", "CloseQueue");
    state_is("q", "Closed");
}

/* Each state with each command, with and without a PodGroup: the table of the queue controller. */
static void every_state_answers_every_command(void **state)
{
    static const struct {
        const char *from, *action;
        bool groups;
        const char *to;
    } rows[] = {
        {"Open", "OpenQueue", false, "\"Open\""},
        {"Open", "OpenQueue", true, "\"Open\""},
        {"Open", "CloseQueue", false, "\"Closed\""},
        {"Open", "CloseQueue", true, "\"Closing\""},
        {"Open", "SyncQueue", true, "\"Open\""},
        {"Closing", "OpenQueue", true, "\"Open\""},
        {"Closing", "OpenQueue", false, "\"Open\""},
        {"Closing", "CloseQueue", true, "\"Closing\""},
        {"Closing", "CloseQueue", false, "\"Closed\""},
        {"Closing", "SyncQueue", true, "\"Closing\""},
        {"Closed", "OpenQueue", false, "\"Open\""},
        {"Closed", "OpenQueue", true, "\"Open\""},
        {"Closed", "CloseQueue", false, "\"Closed\""},
        {"Closed", "CloseQueue", true, "\"Closed\""},
        {"Closed", "SyncQueue", false, "\"Closed\""},
        {"Unknown", "OpenQueue", false, "\"Open\""},
        {"Unknown", "OpenQueue", true, "\"Open\""},
        {"Unknown", "CloseQueue", false, "\"Closed\""},
        {"Unknown", "CloseQueue", true, "\"Closing\""},
        {"Unknown", "SyncQueue", false, "\"Unknown\""},
    };

    for (size_t i = 0; i < HK_LEN(rows); i++) {
        char yaml[64];
        if (rows[i].groups) {
            rig_put(&rig, GROUP("a", "q"));
        }
        snprintf(yaml, sizeof(yaml), "status: {state: %s}", rows[i].from);
        put_command("q", rows[i].action);
        rig_patch(&rig, API_QUEUE, "q", yaml);
        rig_settle(&rig);
        expect("q", "status.state", rows[i].to);
        assert_int_equal(rig_count(&rig, API_COMMAND), 0);
        if (rows[i].groups) {
            rig_remove(&rig, API_PODGROUP, "a");
        }
        rig_settle(&rig);
        command("q", "OpenQueue");
        state_is("q", "Open");
    }
}

/* ---- parents ---- */

static void a_parent_closes_and_opens_its_children_36(void **state)
{
    command("q1", "CloseQueue");
    state_is("q1", "Closed");
    expect("q1", MARK, "");
    state_is("q11", "Closed");
    expect("q11", MARK, MARKED("true"));

    command("q11", "OpenQueue");
    state_is("q11", "Closed");
    rig_pass(&rig, 600);
    state_is("q11", "Closed");
    expect("q11", MARK, MARKED("true"));
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
    assert_true(was_told("OpenQueue", "OpenQueue queue failed for "));

    command("q1", "OpenQueue");
    state_is("q1", "Open");
    state_is("q11", "Open");
    expect("q11", MARK, MARKED("false"));
}

static void it_goes_down_level_by_level(void **state)
{
    rig_put(&rig, QUEUE("q111", "spec: {parent: q11}\n") GROUP("a", "q11"));
    rig_settle(&rig);
    command("q1", "CloseQueue");
    state_is("q11", "Closing");
    state_is("q111", "Closed");
    command("q1", "OpenQueue");
    state_is("q11", "Open");
    state_is("q111", "Open");
}

static void a_state_written_by_hand_goes_down_too(void **state)
{
    rig_patch(&rig, API_QUEUE, "q1", "status: {state: Closed}");
    rig_settle(&rig);
    state_is("q11", "Closed");
    expect("q11", MARK, MARKED("true"));
}

static void a_child_that_a_user_closed_stays_closed(void **state)
{
    command("q11", "CloseQueue");
    command("q1", "CloseQueue");
    expect("q11", MARK, "");
    command("q1", "OpenQueue");
    state_is("q1", "Open");
    state_is("q11", "Closed");
}

static void a_child_closed_by_its_parent_and_then_by_a_user_stays_closed(void **state)
{
    command("q1", "CloseQueue");
    expect("q11", MARK, MARKED("true"));
    command("q11", "CloseQueue");
    expect("q11", MARK, MARKED("false"));
    command("q1", "OpenQueue");
    state_is("q11", "Closed");
    command("q11", "OpenQueue");
    state_is("q11", "Open");
}

static void a_queue_born_below_a_closed_one_is_closed(void **state)
{
    command("q1", "CloseQueue");
    rig_put(&rig, QUEUE("q12", "spec: {parent: q1}\n"));
    rig_settle(&rig);
    state_is("q12", "Closed");
    expect("q12", MARK, MARKED("true"));
}

static void a_refused_open_does_not_block_others(void **state)
{
    command("q1", "CloseQueue");
    command("q11", "OpenQueue");
    assert_int_equal(rig_count(&rig, API_COMMAND), 1);
    command("q11", "CloseQueue");
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
    expect("q11", MARK, MARKED("false"));
}

static void a_refused_open_is_done_when_the_parent_opens(void **state)
{
    command("q1", "CloseQueue");
    command("q11", "CloseQueue");
    command("q11", "OpenQueue");
    state_is("q11", "Closed");
    command("q1", "OpenQueue");
    state_is("q11", "Open");
    assert_int_equal(rig_count(&rig, API_COMMAND), 0);
}

static void without_its_parent_a_queue_still_opens(void **state)
{
    rig_remove(&rig, API_QUEUE, "root");
    rig_put(&rig, QUEUE("lone", ""));
    rig_settle(&rig);
    state_is("lone", "Open");
}

/* ---- faults ---- */

/* q1 is closed and q11 with it, then q11 also by a user; q1 opens, is closed again, and its last
 * group leaves. */
static void play(struct fault_rig *f)
{
    put_queues();
    rig_put(&rig, GROUP("a", "q1"));
    fault_rig_pass(f);
    put_command("q1", "CloseQueue");
    fault_rig_pass(f);
    put_command("q11", "CloseQueue");
    fault_rig_pass(f);
    put_command("q1", "OpenQueue");
    fault_rig_pass(f);
    put_command("q1", "CloseQueue");
    fault_rig_pass(f);
    rig_remove(&rig, API_PODGROUP, "a");
    fault_rig_pass(f);
}

/* q1 is closed and opened again, and q11 with it. */
static void play_open(struct fault_rig *f)
{
    put_queues();
    put_command("q1", "CloseQueue");
    fault_rig_pass(f);
    put_command("q1", "OpenQueue");
    fault_rig_pass(f);
}

static void describe_queue(struct hk_buf *out, const char *name)
{
    hk_buf_addf(out, "%s %s", name, rig_at(&rig, API_QUEUE, name, "status.state"));
    hk_buf_addf(out, " %s, ", rig_at(&rig, API_QUEUE, name, MARK));
}

static void describe(struct hk_buf *out)
{
    describe_queue(out, "q1");
    describe_queue(out, "q11");
    hk_buf_addf(out, "%u commands", rig_count(&rig, API_COMMAND));
}

static void with_any_fault_queues_reach_the_commanded_state(void **state)
{
    fault_rig_run_all_faults(
        &(struct fault_story){&rig, types, HK_LEN(types), play, describe},
        "q1 \"Closed\" " MARKED("false") ", q11 \"Closed\" " MARKED("false") ", 0 commands");
    fault_rig_run_all_faults(
        &(struct fault_story){&rig, types, HK_LEN(types), play_open, describe},
        "q1 \"Open\" " MARKED("false") ", q11 \"Open\" " MARKED("false") ", 0 commands");
}

static void a_failed_close_is_reported(void **state)
{
    port_mem_fail(rig.mem, PORT_PATCH, 1, HK_EBUSY);
    command("q", "CloseQueue");
    rig_pass(&rig, 1);
    assert_true(was_told("CloseQueue", "Close queue failed for injected failure"));
    state_is("q", "Closed");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_new_queue_is_open_and_below_root),
        TEST(an_empty_queue_closes_and_opens_35),
        TEST(a_queue_with_groups_is_closing_until_the_last_leaves_35),
        TEST(a_group_that_moves_away_counts_as_gone),
        TEST(a_recreated_queue_knows_its_groups),
        TEST(closing_twice_writes_once),
        TEST(opening_what_is_open_writes_nothing),
        TEST(root_is_never_closed),
        TEST(commands_are_obeyed_in_the_order_they_came),
        TEST(only_commands_for_queues_are_taken),
        TEST(a_command_for_a_missing_queue_is_dropped_after_some_retries),
        TEST(a_command_may_come_before_its_queue),
        TEST(the_gate_leaves_commands_alone),
        TEST(an_unknown_state_is_kept_until_a_command),
        TEST(every_state_answers_every_command),
        TEST(a_parent_closes_and_opens_its_children_36),
        TEST(it_goes_down_level_by_level),
        TEST(a_state_written_by_hand_goes_down_too),
        TEST(a_child_that_a_user_closed_stays_closed),
        TEST(a_child_closed_by_its_parent_and_then_by_a_user_stays_closed),
        TEST(a_queue_born_below_a_closed_one_is_closed),
        TEST(a_refused_open_does_not_block_others),
        TEST(a_refused_open_is_done_when_the_parent_opens),
        TEST(without_its_parent_a_queue_still_opens),
        TEST(a_failed_close_is_reported),
        cmocka_unit_test(with_any_fault_queues_reach_the_commanded_state),
    };

    hk_log_set_level(HK_LOG_ERROR);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("controllers/queue", tests, NULL, NULL);
}
