// SPDX-License-Identifier: Apache-2.0
// Waiting for a port: one call at a time returns what the server answered, other messages arrive
// meanwhile, and a caller that cannot wait gets an error instead of a message later.
#include "api/port_call.h"

#include "api/port_mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cmocka.h>

#define NS HK_STR("d")

/* A port over memory, whose waiter plays the rest of the world. */
struct fixture {
    struct port_mem *mem;
    struct port_waiter waiter;
    struct port_answer answer;
    struct hk_err err;
    uint32_t waits, end_after; /* the waiter ends the watches after that many waits */
    int wait_rc;               /* what the waiter returns */
    uint32_t events;           /* messages that another caller of the port got */
};

static int wait_for_world(void *ctx, int timeout_ms, struct hk_err *err)
{
    struct fixture *f = ctx;

    f->waits++;
    if (f->wait_rc < 0) {
        return hk_fail(err, -f->wait_rc, "the loop is broken");
    }
    if (f->waits == f->end_after) {
        port_mem_end_watches(f->mem, HK_EGONE);
    }
    return 0;
}

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    f->mem = port_mem_new(0);
    f->waiter = (struct port_waiter){port_mem_port(f->mem), wait_for_world, f};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    port_answer_fini(&f->answer);
    port_free(f->waiter.port);
    hk_free(f);
    return 0;
}

static void put_pod(struct fixture *f, const char *name)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json doc = json_make_object();

    json_set_cstr(&doc, &a, "apiVersion", "v1");
    json_set_cstr(&doc, &a, "kind", "Pod");
    json_set_str(json_need(&doc, &a, "metadata", JSON_OBJECT), &a, "namespace", NS);
    json_set_cstr(json_need(&doc, &a, "metadata", JSON_OBJECT), &a, "name", name);
    assert_int_equal(port_mem_put(f->mem, &doc, NULL), 0);
}

static const char *names(const struct port_answer *a)
{
    static char text[128];
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < a->objects.len; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s", i > 0 ? " " : "",
                              HK_FMT(a->objects.at[i]->name));
    }
    return text;
}

static struct port_request get(const char *name)
{
    return (struct port_request){
        .verb = PORT_GET, .kind = api_kind(API_POD), .ns = NS, .name = hk_str(name)};
}

static const struct port_request list = {.verb = PORT_LIST, .ns = HK_STR("d")};
static const struct port_request watch = {.verb = PORT_WATCH, .ns = HK_STR("d")};

static struct port_request pods(struct port_request q)
{
    q.kind = api_kind(API_POD);
    return q;
}

static void count_event(void *ctx, const struct port_msg *m)
{
    uint32_t *n = ctx;

    *n += m->type != PORT_DONE;
}

/* ---- calls ---- */

static void a_call_appends_the_object(void **state)
{
    struct fixture *f = *state;
    const struct port_request a = get("a"), b = get("b");

    put_pod(f, "a");
    put_pod(f, "b");
    assert_int_equal(port_call(&f->waiter, &a, &f->answer, &f->err), 0);
    assert_int_equal(port_call(&f->waiter, &b, &f->answer, &f->err), 0);
    assert_string_equal(names(&f->answer), "a b");
    assert_int_equal(f->waits, 0); /* the answers were there */
}

static void a_list_appends_all_objects(void **state)
{
    struct fixture *f = *state;
    const struct port_request q = pods(list);

    put_pod(f, "a");
    put_pod(f, "b");
    assert_int_equal(port_call(&f->waiter, &q, &f->answer, &f->err), 0);
    assert_string_equal(names(&f->answer), "a b");
    assert_int_equal(port_call(&f->waiter, &q, NULL, &f->err), 0); /* nobody wants the objects */
}

static void a_refusal_has_the_servers_message(void **state)
{
    struct fixture *f = *state;
    const struct port_request q = get("z");

    assert_int_equal(port_call(&f->waiter, &q, &f->answer, &f->err), -HK_ENOTFOUND);
    assert_string_equal(f->err.text, "pods 'z' not found");
    assert_int_equal(f->answer.objects.len, 0);
    assert_int_equal(port_call(&f->waiter, &q, NULL, NULL), -HK_ENOTFOUND); /* message unwanted */
}

static void messages_of_other_calls_arrive_meanwhile(void **state)
{
    struct fixture *f = *state;
    const struct port_request q = get("a"), w = pods(watch);

    put_pod(f, "a");
    port_submit(f->waiter.port, &w, (struct port_sink){count_event, &f->events});
    put_pod(f, "b");
    assert_int_equal(port_call(&f->waiter, &q, &f->answer, &f->err), 0);
    assert_int_equal(f->events, 2);
}

/* ---- waiting ---- */

static void the_waiter_waits_until_the_outcome_is_there(void **state)
{
    struct fixture *f = *state;
    const struct port_request w = pods(watch);
    struct port_outcome o = {0};

    f->end_after = 3;
    const uint64_t call = port_submit(f->waiter.port, &w, port_outcome_sink(&o));
    assert_int_equal(port_await(&f->waiter, call, &o, &f->err), -HK_EGONE);
    assert_int_equal(f->waits, 3);
}

static void a_failed_wait_cancels_the_call(void **state)
{
    struct fixture *f = *state;
    const struct port_request w = pods(watch);
    struct port_outcome o = {0};

    f->wait_rc = -HK_EIO;
    const uint64_t call = port_submit(f->waiter.port, &w, port_outcome_sink(&o));
    assert_int_equal(port_await(&f->waiter, call, &o, &f->err), -HK_EIO);
    assert_string_equal(f->err.text, "the loop is broken");
    port_mem_end_watches(f->mem, HK_EGONE);
    port_poll(f->waiter.port, UINT32_MAX);
    assert_false(o.done); /* its storage may be gone by now */
}

static void a_turn_waits_at_most_once(void **state)
{
    struct fixture *f = *state;
    const struct port_request w = pods(watch);

    port_submit(f->waiter.port, &w, (struct port_sink){count_event, &f->events});
    assert_int_equal(port_turn(&f->waiter, -1, &f->err), 0);
    assert_int_equal(f->waits, 1);
    put_pod(f, "a");
    assert_int_equal(port_turn(&f->waiter, -1, &f->err), 0);
    assert_int_equal(f->waits, 1); /* a message was there */
    assert_int_equal(f->events, 1);
}

/* ---- waiting on the descriptor of the port ---- */

static void a_port_without_descriptor_is_refused(void **state)
{
    struct fixture *f = *state;

    f->waiter.wait = NULL;
    assert_int_equal(port_turn(&f->waiter, -1, &f->err), -HK_EIO); /* would wait forever */
    assert_string_equal(f->err.text, "cannot wait for the 'mem' port: it has no descriptor");
    assert_int_equal(port_turn(&f->waiter, 1, &f->err), 0);
}

/* A port whose only answer arrives when a timer fires. */
struct late_port {
    struct port port;
    struct port_sink sink;
    int timer;
};

static uint64_t late_submit(struct port *p, const struct port_request *req, struct port_sink sink)
{
    ((struct late_port *)p)->sink = sink;
    return 1;
}

static uint32_t late_poll(struct port *p, uint32_t max)
{
    struct late_port *l = (struct late_port *)p;
    uint64_t fired;

    if (read(l->timer, &fired, sizeof(fired)) != (ssize_t)sizeof(fired)) {
        return 0;
    }
    l->sink.on_msg(l->sink.ctx, &(struct port_msg){.type = PORT_DONE, .call = 1});
    return 1;
}

static int late_fd(struct port *p)
{
    return ((struct late_port *)p)->timer;
}

static void a_late_answer_wakes_the_caller(void **state)
{
    static const struct port_ops ops = {
        .name = "late", .submit = late_submit, .poll = late_poll, .fd = late_fd};
    const struct itimerspec soon = {.it_value.tv_nsec = 2000000};
    const struct port_request q = get("a");
    struct late_port l = {.port.ops = &ops,
                          .timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};

    assert_int_equal(timerfd_settime(l.timer, 0, &soon, NULL), 0);
    assert_int_equal(port_call(&(struct port_waiter){.port = &l.port}, &q, NULL, NULL), 0);
    close(l.timer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_call_appends_the_object),
        TEST(a_list_appends_all_objects),
        TEST(a_refusal_has_the_servers_message),
        TEST(messages_of_other_calls_arrive_meanwhile),
        TEST(the_waiter_waits_until_the_outcome_is_there),
        TEST(a_failed_wait_cancels_the_call),
        TEST(a_turn_waits_at_most_once),
        TEST(a_port_without_descriptor_is_refused),
        TEST(a_late_answer_wakes_the_caller),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("api/port_call", tests, NULL, NULL);
}
