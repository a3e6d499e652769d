// SPDX-License-Identifier: Apache-2.0
// What ingest remembers of the API's view of our own output: events fill it, events older than a
// write of ours do not.
#include "scheduler/ingest_fixture_test.h"
#include "scheduler/known.h"

struct shown {
    struct world w;
    struct known known;
};

static void shown_fini(struct shown *s)
{
    known_fini(&s->known);
    world_fini(&s->w);
}

#define SHOWN(s)                                                                                   \
    HK_AUTO(shown_fini) struct shown s;                                                            \
    known_init(&s.known, &s.w.m);                                                                  \
    world_init(&s.w, &(struct ingest_opts){.make_queues = true, .known = &s.known})

static job_id group_id(struct shown *s)
{
    return model_job_find(&s->w.m, HK_STR("default"), HK_STR("g"));
}

static struct group_known *group(struct shown *s)
{
    return known_group(&s->known, group_id(s));
}

static struct pod_known *pod(struct shown *s, const char *name)
{
    return known_pod(&s->known, task_at(&s->w, name));
}

/* A PodGroup with a status. */
#define GROUP(uid, rv, status)                                                                     \
    "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n"                                  \
    "metadata: {name: g, uid: " uid ", resourceVersion: \"" rv "\"}\n"                             \
    "spec: {minMember: 1}\n"                                                                       \
    "status: {" status "}\n"

#define WAITS "{type: Unschedulable, status: 'True', reason: R, message: no room}"
#define CHECKED "{type: Checked, status: 'True'}"

static void a_group_is_shown_as_its_last_event_says(void **state)
{
    SHOWN(s);

    load_fine(&s.w,
              GROUP("u1", "7", "phase: Inqueue, running: 2, conditions: [" WAITS ", " CHECKED "]"));
    assert_int_equal(group(&s)->phase, PG_INQUEUE);
    assert_int_equal(group(&s)->running, 2);
    assert_int_equal(group(&s)->cond[COND_UNSCHEDULABLE].status, COND_TRUE);
    assert_int_equal(group(&s)->cond[COND_SCHEDULED].status, COND_ABSENT);
    assert_string_equal(group(&s)->message, "no room");
    assert_string_equal(group(&s)->others, "[{\"type\":\"Checked\",\"status\":\"True\"}]");
    assert_true(group(&s)->cond[COND_UNSCHEDULABLE].said ==
                known_reason_hash(HK_STR("R"), HK_STR("no room")));

    load_fine(&s.w, GROUP("u1", "8", "phase: Running, running: 3"));
    assert_int_equal(group(&s)->phase, PG_RUNNING);
    assert_int_equal(group(&s)->cond[COND_UNSCHEDULABLE].status, COND_ABSENT);
    assert_null(group(&s)->message);
    assert_null(group(&s)->others);
}

static void an_event_older_than_our_write_of_a_group_changes_nothing(void **state)
{
    SHOWN(s);

    load_fine(&s.w, GROUP("u1", "7", "phase: Pending"));
    group(&s)->phase = PG_INQUEUE;
    group(&s)->turn.busy = true; /* our write is in flight */
    load_fine(&s.w, GROUP("u1", "8", "phase: Pending"));
    assert_int_equal(group(&s)->phase, PG_INQUEUE);

    group(&s)->turn.busy = false; /* it is revision 9 */
    group(&s)->rv = 9;
    load_fine(&s.w, GROUP("u1", "8", "phase: Pending"));
    assert_int_equal(group(&s)->phase, PG_INQUEUE);
    assert_true(known_group_is_ahead(&s.known, group_id(&s), 8));
    assert_false(known_group_is_ahead(&s.known, group_id(&s), 9));

    load_fine(&s.w, GROUP("u1", "9", "phase: Running"));
    assert_int_equal(group(&s)->phase, PG_RUNNING);
}

static void a_new_group_of_the_same_name_starts_empty(void **state)
{
    SHOWN(s);

    load_fine(&s.w, GROUP("u1", "7", "phase: Running"));
    group(&s)->rv = 100;
    load_fine(&s.w, GROUP("u2", "8", "phase: Pending"));
    assert_int_equal(group(&s)->phase, PG_PENDING);
    assert_int_equal(group(&s)->rv, 0);
}

#define POD_SHOWN(status)                                                                          \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: p1}\nspec: {schedulerName: volcano}\n"    \
    "status: {" status "}\n"
#define UNPLACED "conditions: [{type: PodScheduled, status: 'False', reason: R, message: M}]"

static void a_pod_is_shown_as_its_last_event_says(void **state)
{
    const uint64_t said = known_condition_hash(HK_STR("False"), HK_STR("R"), HK_STR("M"));
    SHOWN(s);

    load_fine(&s.w, POD_SHOWN(UNPLACED ", nominatedNodeName: n1"));
    assert_true(pod(&s, "p")->said == said);
    assert_true(pod(&s, "p")->is_false);
    assert_string_equal(text(&s.w, pod(&s, "p")->nominated), "n1");

    pod(&s, "p")->waiting = 1; /* a write of ours is not yet through */
    load_fine(&s.w, POD_SHOWN(""));
    assert_true(pod(&s, "p")->said == said);

    pod(&s, "p")->waiting = 0;
    load_fine(&s.w, POD_SHOWN(""));
    assert_true(pod(&s, "p")->said == 0);
    assert_false(pod(&s, "p")->is_false);
    assert_int_equal(pod(&s, "p")->nominated, 0);
}

#define QUEUE(status)                                                                              \
    "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n"                \
    "status: {" status "}\n"

static void a_queue_is_shown_by_its_allocated_amounts(void **state)
{
    SHOWN(s);
    int64_t v[DIM_MAX] = {[DIM_CPU] = 2000, [DIM_MEM] = 1 << 30};

    load_fine(&s.w, QUEUE("allocated: {cpu: 2, memory: 1Gi}"));
    struct queue_known *q = known_queue(&s.known, model_queue_find(&s.w.m, HK_STR("q")));
    assert_true(q->said == known_amounts_hash(&s.w.m, v));

    q->turn.queued = true; /* our write waits */
    load_fine(&s.w, QUEUE("allocated: {cpu: 1}"));
    assert_true(q->said == known_amounts_hash(&s.w.m, v));

    q->turn.queued = false;
    load_fine(&s.w, QUEUE("allocated: {strange/thing: 1}"));
    assert_true(q->said == 0); /* unknown: written again */
}

#define SHARD(name, rv)                                                                            \
    "apiVersion: shard.volcano.sh/v1alpha1\nkind: NodeShard\n"                                     \
    "metadata: {name: " name ", resourceVersion: \"" rv "\"}\nstatus: {nodesInUse: [n1]}\n"

static void only_our_own_shard_is_shown(void **state)
{
    const uint64_t said =
        known_text_hash(HK_STR("{\"nodesInUse\":[\"n1\"],\"nodesToAdd\":[],\"nodesToRemove\":[]}"));
    SHOWN(s);

    ingest_own_shard(s.w.in, HK_STR("ours"));
    load(&s.w, SHARD("theirs", "1"));
    assert_true(s.known.shard.said == 0);
    s.known.shard.rv = 3;
    load(&s.w, SHARD("ours", "2")); /* older than our write */
    assert_true(s.known.shard.said == 0);
    load(&s.w, SHARD("ours", "3"));
    assert_true(s.known.shard.said == said);
}

/* A bind that waits for volumes looks again after these events, and after no others. */
static void events_that_volumes_wait_for_are_counted(void **state)
{
    SHOWN(s);

    load_fine(&s.w, POD_SHOWN("") "---\n" GROUP("u1", "1", "phase: Pending"));
    assert_int_equal(s.known.volume_events, 0);
    load_fine(&s.w, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\n");
    assert_int_equal(s.known.volume_events, 1);
    ingest_del(s.w.in, api_kind(API_PVC), HK_STR("default"), HK_STR("c"));
    assert_int_equal(s.known.volume_events, 2);
    ingest_del(s.w.in, api_kind(API_POD), HK_STR("default"), HK_STR("p"));
    assert_int_equal(s.known.volume_events, 3);
    ingest_del(s.w.in, api_kind(API_PODGROUP), HK_STR("default"), HK_STR("g"));
    assert_int_equal(s.known.volume_events, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_is_shown_as_its_last_event_says),
        cmocka_unit_test(an_event_older_than_our_write_of_a_group_changes_nothing),
        cmocka_unit_test(a_new_group_of_the_same_name_starts_empty),
        cmocka_unit_test(a_pod_is_shown_as_its_last_event_says),
        cmocka_unit_test(a_queue_is_shown_by_its_allocated_amounts),
        cmocka_unit_test(only_our_own_shard_is_shown),
        cmocka_unit_test(events_that_volumes_wait_for_are_counted),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
