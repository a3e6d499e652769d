// SPDX-License-Identifier: Apache-2.0
// How and when a feed continues after each possible end of a list or a watch.
#include "api/feed.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S_NS INT64_C(1000000000)
#define MS_NS INT64_C(1000000)

/* A port that only records the last request; the test answers it. */
struct stub {
    struct port port;
    struct port_sink sink;
    uint64_t last_call, rv;
    enum port_verb verb;
    bool pending;
    char cont[16];
};

static uint64_t stub_submit(struct port *p, const struct port_request *req, struct port_sink sink)
{
    struct stub *s = (struct stub *)p;

    s->sink = sink;
    s->verb = req->verb;
    s->rv = req->rv;
    s->pending = true;
    snprintf(s->cont, sizeof(s->cont), "%.*s", HK_FMT(req->cont));
    return ++s->last_call;
}

static void stub_cancel(struct port *p, uint64_t call)
{
    ((struct stub *)p)->pending = false;
}

static const struct port_ops stub_ops = {
    .name = "stub", .submit = stub_submit, .cancel = stub_cancel};

struct fixture {
    struct stub stub;
    struct hk_clock_manual clock;
    struct hk_intern str;
    struct feed feed;
    struct hk_buf told; /* "+name", "-name", "=" for a complete list */
};

static void on_put(void *ctx, struct api_object *o)
{
    hk_buf_addf(ctx, "+%.*s ", HK_FMT(o->name));
}

static void on_del(void *ctx, struct hk_str ns, struct hk_str name, const struct api_object *last)
{
    hk_buf_addf(ctx, "-%.*s ", HK_FMT(name));
}

static void on_listed(void *ctx)
{
    hk_buf_adds(ctx, "= ");
}

static int setup(void **state)
{
    static const struct feed_ops ops = {on_put, on_del, on_listed};
    struct fixture *x = hk_zalloc(sizeof(*x));

    x->stub.port.ops = &stub_ops;
    hk_clock_manual_init(&x->clock, 1000 * S_NS);
    feed_init(&x->feed, &(struct feed_opts){.port = &x->stub.port,
                                            .clock = &x->clock.clock,
                                            .str = &x->str,
                                            .kind = api_kind(API_CONFIGMAP),
                                            .required = true,
                                            .ops = &ops,
                                            .ctx = &x->told});
    *state = x;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *x = *state;

    feed_fini(&x->feed);
    hk_intern_fini(&x->str);
    hk_buf_fini(&x->told);
    hk_free(x);
    return 0;
}

/* ---- helpers ---- */

static void answer(struct fixture *x, struct port_msg m)
{
    struct hk_err err = {0};

    assert_true(x->stub.pending);
    if (m.type == PORT_DONE) {
        x->stub.pending = false;
        m.err = m.rc < 0 ? &err : NULL;
    }
    m.call = x->stub.last_call;
    x->stub.sink.on_msg(x->stub.sink.ctx, &m);
}

static struct api_object *object(const char *name, uint64_t rv)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct api_object *o;
    struct json doc;

    hk_buf_addf(&text,
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\","
                "\"namespace\":\"d\",\"uid\":\"u\",\"resourceVersion\":\"%llu\"}}",
                name, (unsigned long long)rv);
    assert_int_equal(json_parse(hk_buf_str(&text), 0, &mem, &doc, NULL), 0);
    assert_int_equal(api_object_new(api_kind(API_CONFIGMAP), &doc, &o, NULL), 0);
    return o;
}

static void answer_list(struct fixture *x, const char *names, uint64_t rv, const char *cont)
{
    struct hk_str rest = hk_str(names), name;
    struct api_object *items[8];
    uint32_t n = 0;

    assert_int_equal(x->stub.verb, PORT_LIST);
    while (hk_str_cut(&rest, ' ', &name)) {
        char text[16];
        snprintf(text, sizeof(text), "%.*s", HK_FMT(name));
        items[n++] = object(text, rv);
    }
    answer(x, (struct port_msg){.items = items, .nitems = n, .rv = rv, .cont = hk_str(cont)});
    while (n > 0) {
        api_object_unref(items[--n]);
    }
}

static void tell(struct fixture *x, enum port_msg_type type, const char *name, uint64_t rv)
{
    struct api_object *o = name ? object(name, rv) : NULL;

    answer(x, (struct port_msg){.type = type, .obj = o, .rv = rv});
    api_object_unref(o);
}

static void end(struct fixture *x, int code, int http, int32_t retry_after_s)
{
    const struct port_status status = {.code = http, .retry_after_s = retry_after_s};

    answer(x, (struct port_msg){.rc = -code, .status = http ? &status : NULL});
}

/* Lets time pass until the next request, and returns how long that took. */
static int64_t pause_of(struct fixture *x)
{
    const int64_t from = x->clock.now_ns, due = feed_tick(&x->feed, from);

    if (due != INT64_MAX) {
        x->clock.now_ns = due;
        feed_tick(&x->feed, due);
    }
    assert_true(x->stub.pending);
    return x->clock.now_ns - from;
}

static void pass(struct fixture *x, int64_t ns)
{
    x->clock.now_ns += ns;
}

static void expect_told(struct fixture *x, const char *want)
{
    assert_string_equal(hk_buf_str(&x->told).s, want);
    hk_buf_clear(&x->told);
}

/* ---- tests ---- */

static void test_pages_then_a_watch_from_their_revision(void **state)
{
    struct fixture *x = *state;

    answer_list(x, "a b", 7, "next");
    assert_string_equal(x->stub.cont, "next");
    assert_false(x->feed.synced);
    answer_list(x, "c", 7, "");
    expect_told(x, "+a +b +c = ");
    assert_true(x->feed.synced);
    assert_int_equal(x->stub.verb, PORT_WATCH);
    assert_int_equal(x->stub.rv, 7);
    tell(x, PORT_MODIFIED, "a", 8);
    tell(x, PORT_BOOKMARK, NULL, 12);
    tell(x, PORT_DELETED, "b", 13);
    expect_told(x, "+a -b ");
}

static void test_a_page_that_came_too_late_starts_over(void **state)
{
    struct fixture *x = *state;

    answer_list(x, "a b", 7, "next");
    end(x, HK_EGONE, 410, 0);
    assert_true(pause_of(x) <= 100 * MS_NS);
    assert_string_equal(x->stub.cont, "");
    answer_list(x, "b", 9, "");
    expect_told(x, "+a +b +b -a = "); /* a was on a page, and is deleted */
}

/* The next step for each end of a watch that lasted. */
static void test_how_a_watch_ends_decides_where_it_goes_on(void **state)
{
    static const struct {
        int code, http;
        enum port_verb next;
        bool at_once;
    } cases[] = {
        {0, 0, PORT_WATCH, true},
        {HK_EIO, 0, PORT_WATCH, false},
        {HK_ETIMEOUT, 0, PORT_WATCH, false},
        {HK_EBUSY, 429, PORT_WATCH, false},
        {HK_EBUSY, 503, PORT_WATCH, false},
        {HK_EDENIED, 401, PORT_WATCH, false},
        {HK_EGONE, 410, PORT_LIST, true},
        {HK_EGONE, 0, PORT_LIST, true},
        {HK_EIO, 500, PORT_LIST, false},
        {HK_ETIMEOUT, 504, PORT_LIST, false},
        {HK_EINVAL, 400, PORT_LIST, false},
        {HK_EDENIED, 403, PORT_LIST, false},
        {HK_ENOTFOUND, 404, PORT_LIST, false},
        {HK_ELIMIT, 0, PORT_LIST, false},
    };
    struct fixture *x = *state;
    uint64_t rv = 100;

    answer_list(x, "a", rv, "");
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        tell(x, PORT_BOOKMARK, NULL, ++rv);
        pass(x, 2 * S_NS);
        end(x, cases[i].code, cases[i].http, 0);
        const int64_t pause = pause_of(x);
        if (x->stub.verb != cases[i].next || cases[i].at_once != (pause == 0) ||
            pause > 100 * MS_NS) {
            fail_msg("case %zu: verb %d after %lld ms", i, x->stub.verb,
                     (long long)(pause / MS_NS));
        }
        if (x->stub.verb == PORT_LIST) {
            answer_list(x, "a", ++rv, "");
        }
        assert_int_equal(x->stub.verb, PORT_WATCH);
        assert_int_equal(x->stub.rv, rv);
    }
}

static void test_the_servers_pause_is_kept(void **state)
{
    struct fixture *x = *state;

    end(x, HK_EBUSY, 429, 7);
    const int64_t pause = pause_of(x);
    assert_true(pause >= 7 * S_NS && pause <= 7 * S_NS + 100 * MS_NS);
    answer_list(x, "a", 5, "");
    end(x, HK_EBUSY, 503, 3);
    assert_true(pause_of(x) >= 3 * S_NS);
    assert_int_equal(x->stub.verb, PORT_WATCH);
}

/* Watches that are accepted and dropped, with or without an error, are repeated less and less
 * often, and two feeds never keep the same pace. */
static void test_watches_dropped_at_once_do_not_spin(void **state)
{
    struct fixture *x = *state;
    int64_t total = 0, last = 0;

    answer_list(x, "a", 5, "");
    for (int i = 0; i < 14; i++) {
        end(x, i % 2 ? HK_EIO : 0, 0, 0);
        last = pause_of(x);
        total += last;
        assert_int_equal(x->stub.verb, PORT_WATCH);
    }
    assert_in_range(last, 15 * S_NS, 30 * S_NS);
    assert_true(total > 100 * S_NS);
    tell(x, PORT_BOOKMARK, NULL, 6);
    end(x, HK_EIO, 0, 0);
    assert_true(pause_of(x) <= 100 * MS_NS); /* an event arrived: the series of failures is over */
}

/* A server whose revisions expire at once. */
static void test_gone_again_and_again_does_not_spin(void **state)
{
    struct fixture *x = *state;
    int64_t last = 0;

    for (int i = 0; i < 12; i++) {
        answer_list(x, "a", 5, "");
        end(x, HK_EGONE, 410, 0);
        last = pause_of(x);
    }
    assert_in_range(last, 15 * S_NS, 30 * S_NS);
}

/* An optional kind: if it is missing, the feed is synced and checks less and less often. */
static void test_a_kind_that_is_not_served_may_come(void **state)
{
    struct fixture *x = *state;
    int64_t pause = 0;

    x->feed.o.required = false;
    for (int i = 0; i < 14; i++) {
        end(x, i % 2 ? HK_EDENIED : HK_ENOTFOUND, i % 2 ? 403 : 404, 0);
        assert_true(x->feed.synced);
        assert_int_equal(x->feed.failures, 0);
        pause = pause_of(x);
        assert_true(i > 0 || pause <= 100 * MS_NS); /* the server may have just started */
    }
    assert_in_range(pause, 150 * S_NS, 300 * S_NS);
    answer_list(x, "a", 5, "");
    expect_told(x, "+a = ");
    pass(x, 2 * S_NS);
    end(x, HK_EDENIED, 403, 0);
    pause_of(x);
    end(x, HK_EDENIED, 403, 0); /* after its restart the server does not know our rights yet */
    assert_true(pause_of(x) <= 100 * MS_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pages_then_a_watch_from_their_revision, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_page_that_came_too_late_starts_over, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_how_a_watch_ends_decides_where_it_goes_on, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_the_servers_pause_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watches_dropped_at_once_do_not_spin, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gone_again_and_again_does_not_spin, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_kind_that_is_not_served_may_come, setup, teardown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
