// SPDX-License-Identifier: Apache-2.0
// Large lists and watches: made in slices of limited work, with other calls served between them,
// and still showing one revision. Also: selectors match text and tree alike.
#include "store/rest_priv.h"
#include "store/rest_rig_test.h"

enum { OBJECTS = 24, LABELS = 20000 };

static void create(struct rig *g, const char *name, uint32_t nlabels, const char *more)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text, "{'metadata':{'name':'%s','labels':{'made-by':'test'%s", name, more);
    for (uint32_t i = 0; i < nlabels; i++) {
        hk_buf_addf(&text, ",'label-%u':'v%u'", i, i % 10);
    }
    hk_buf_adds(&text, "}}}");
    const struct port_request req = {.verb = PORT_CREATE,
                                     .kind = rig_kind(g, "ConfigMap"),
                                     .ns = HK_STR("default"),
                                     .body = rig_json(g, text.data)};
    struct answer a = rig_ask(g, &req);
    assert_int_equal(a.code, 201);
    answer_fini(&a);
    hk_arena_clear(&g->mem);
}

static void create_large(struct rig *g)
{
    for (uint32_t i = 0; i < OBJECTS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "m-%02u", i);
        create(g, name, LABELS, "");
    }
}

static void write_one(struct rig *g, enum port_verb verb, const char *name, const char *value)
{
    const char *text = hk_arena_printf(
        &g->mem, "{'metadata':{'name':'%s','labels':{'made-by':'%s'}}}", name, value);
    const struct port_request req = {.verb = verb,
                                     .kind = rig_kind(g, "ConfigMap"),
                                     .ns = HK_STR("default"),
                                     .name = verb == PORT_CREATE ? HK_STR("") : hk_str(name),
                                     .body = verb == PORT_DELETE ? NULL : rig_json(g, text)};
    struct answer a = {0};

    port_submit(g->port, &req, (struct port_sink){rig_on_msg, &a});
    while (!a.done) { /* its answer does not wait for the list */
        store_flush(g->store);
        port_poll(g->port, 1000);
    }
    assert_true(a.code == 200 || a.code == 201);
    answer_fini(&a);
}

/* In any number of slices. */
static struct answer ask_whole(struct rig *g, const struct port_request *req)
{
    struct answer a = {0};

    port_submit(g->port, req, (struct port_sink){rig_on_msg, &a});
    while (!a.done) {
        port_poll(g->port, 1000);
    }
    return a;
}

/* The work of one poll. */
static uint64_t poll_work(struct rig *g)
{
    const uint64_t before = g->rest->work;

    port_poll(g->port, 1000);
    return g->rest->work - before;
}

static void test_a_large_list_yields(void **state)
{
    struct rig g = {0};
    struct answer list = {0}, get = {0};
    uint64_t slices = 0, most = 0;

    rig_open(&g, true);
    create_large(&g);
    const size_t one =
        2 * store_get(g.store, g.rest->config_maps->res, HK_STR("default"), HK_STR("m-00"))
                ->text.n +
        REST_WORK_OBJECT;
    const struct port_request req = {.verb = PORT_LIST,
                                     .kind = rig_kind(&g, "ConfigMap"),
                                     .ns = HK_STR("default"),
                                     .text_only = true,
                                     .label_selector = HK_STR("made-by=test,label-7=v7,!none")};
    const uint64_t before = g.rest->work;
    port_submit(g.port, &req, (struct port_sink){rig_on_msg, &list});
    assert_in_range(g.rest->work - before, 1, REST_SLICE + one);
    assert_false(list.done);

    const struct port_request read = {.verb = PORT_GET,
                                      .kind = req.kind,
                                      .ns = req.ns,
                                      .name = HK_STR("m-03"),
                                      .text_only = true};
    port_submit(g.port, &read, (struct port_sink){rig_on_msg, &get});
    rest_deliver(g.rest, 10);
    assert_true(get.done); /* and the list has not advanced */
    assert_false(list.done);

    while (!list.done) {
        const uint64_t work = poll_work(&g);
        most = HK_MAX(most, work);
        slices++;
    }
    assert_in_range(most, 1, REST_SLICE + one);
    assert_in_range(slices, OBJECTS * one / (REST_SLICE + one) - 1, OBJECTS);
    assert_int_equal(list.nitems, OBJECTS);
    answer_fini(&get);
    rig_close(&g);
}

/* Changes, creations and deletions between the slices, before and after the list's position. */
static void test_a_list_in_slices_shows_one_revision(void **state)
{
    struct rig g = {0};
    struct answer list = {0}, want, page, rest;

    rig_open(&g, true);
    create_large(&g);
    struct port_request req = {.verb = PORT_LIST,
                               .kind = rig_kind(&g, "ConfigMap"),
                               .ns = HK_STR("default"),
                               .text_only = true,
                               .label_selector = HK_STR("made-by=test")};
    want = ask_whole(&g, &req);
    port_submit(g.port, &req, (struct port_sink){rig_on_msg, &list});
    assert_false(list.done);
    write_one(&g, PORT_DELETE, "m-00", "");
    write_one(&g, PORT_DELETE, "m-23", "");
    write_one(&g, PORT_UPDATE, "m-01", "other");
    write_one(&g, PORT_UPDATE, "m-22", "other");
    write_one(&g, PORT_CREATE, "a-new", "test");
    assert_false(list.done);
    write_one(&g, PORT_CREATE, "z-new", "test");
    write_one(&g, PORT_UPDATE, "m-22", "test");
    write_one(&g, PORT_CREATE, "m-23", "test");
    while (!list.done) {
        port_poll(g.port, 1000);
    }
    assert_string_equal(list.names, want.names);
    assert_int_equal(list.rv, want.rv);

    /* The pages of a list: the token marks the end of the page. */
    req.limit = OBJECTS / 2;
    page = ask_whole(&g, &req);
    assert_int_equal(page.nitems, req.limit);
    req.cont = hk_str(page.cont);
    rest = ask_whole(&g, &req);
    assert_true(rest.nitems >= OBJECTS / 2 - 2);
    assert_null(strstr(rest.names, strrchr(page.names, ' ')));
    rig_close(&g);
}

static void test_a_list_ends_without_its_caller(void **state)
{
    struct rig g = {0};
    struct answer first = {0}, second = {0};

    rig_open(&g, true);
    create_large(&g);
    const struct port_request req = {.verb = PORT_LIST,
                                     .kind = rig_kind(&g, "ConfigMap"),
                                     .ns = HK_STR("default"),
                                     .text_only = true,
                                     .label_selector = HK_STR("none")};
    const uint64_t id = port_submit(g.port, &req, (struct port_sink){rig_on_msg, &first});
    port_submit(g.port, &req, (struct port_sink){rig_on_msg, &second});
    port_cancel(g.port, id);
    while (!second.done) {
        port_poll(g.port, 1000);
    }
    assert_false(first.done);
    assert_int_equal(g.rest->lists.len, 0);
    assert_int_equal(second.nitems, 0);
    port_submit(g.port, &req, (struct port_sink){rig_on_msg, &first}); /* freed with the port */
    assert_int_equal(g.rest->lists.len, 1);
    rig_close(&g);
}

/* ---- deletion of collections ---- */

static uint32_t count_maps(struct rig *g)
{
    return store_count_in(g->store, g->rest->config_maps->res, HK_STR("default"));
}

static void test_a_large_collection_is_deleted_in_slices(void **state)
{
    struct rig g = {0};
    struct answer gone = {0}, get = {0};
    uint64_t slices = 0, most = 0;

    rig_open(&g, true);
    const uint32_t others = count_maps(&g);
    create_large(&g);
    const size_t one = REST_WORK_DELETED * store_get(g.store, g.rest->config_maps->res,
                                                     HK_STR("default"), HK_STR("m-00"))
                                               ->text.n +
                       REST_WORK_OBJECT;
    const struct port_request req = {.verb = PORT_DELETE_COLLECTION,
                                     .kind = rig_kind(&g, "ConfigMap"),
                                     .ns = HK_STR("default"),
                                     .text_only = true,
                                     .label_selector = HK_STR("made-by=test")};
    port_submit(g.port, &req, (struct port_sink){rig_on_msg, &gone});
    write_one(&g, PORT_DELETE, "m-22", "");
    write_one(&g, PORT_CREATE, "m-99", "test"); /* too late for the list */
    const struct port_request read = {.verb = PORT_GET,
                                      .kind = req.kind,
                                      .ns = req.ns,
                                      .name = HK_STR("m-21"),
                                      .text_only = true};
    port_submit(g.port, &read, (struct port_sink){rig_on_msg, &get});
    rest_deliver(g.rest, 10);
    assert_true(get.done);
    assert_false(gone.done);
    while (!gone.done) {
        store_flush(g.store);
        const uint64_t work = poll_work(&g);
        most = HK_MAX(most, work);
        slices += work > 0;
    }
    assert_in_range(most, 1, REST_SLICE + one);
    assert_true(slices >= (OBJECTS - 2) * one / (REST_SLICE + one));
    assert_int_equal(gone.code, 200);
    assert_int_equal(gone.nitems, OBJECTS);
    assert_int_equal(count_maps(&g), others + 1);
    answer_fini(&get);
    rig_close(&g);
}

/* The deletion completes even if no caller waits for the answer. */
static void test_a_deletion_is_completed_without_its_caller(void **state)
{
    struct rig g = {0};
    struct answer gone = {0};

    rig_open(&g, true);
    const uint32_t others = count_maps(&g);
    create_large(&g);
    const struct port_request req = {.verb = PORT_DELETE_COLLECTION,
                                     .kind = rig_kind(&g, "ConfigMap"),
                                     .ns = HK_STR("default"),
                                     .label_selector = HK_STR("made-by=test")};
    const uint64_t id = port_submit(g.port, &req, (struct port_sink){rig_on_msg, &gone});
    port_cancel(g.port, id);
    for (int turns = 0; count_maps(&g) > others; turns++) {
        assert_in_range(turns, 0, 100 * OBJECTS);
        store_flush(g.store);
        port_poll(g.port, 1000);
    }
    assert_false(gone.done);
    port_submit(g.port, &req, (struct port_sink){rig_on_msg, &gone}); /* freed with the port */
    rig_close(&g);
}

/* ---- watches ---- */

static void on_event(void *ctx, const struct port_msg *m)
{
    uint32_t *n = ctx;

    *n += m->type == PORT_ADDED;
}

static void test_a_watch_yields(void **state)
{
    struct rig g = {0};
    uint32_t seen = 0, polls = 0;

    rig_open(&g, true);
    create_large(&g);
    create(&g, "wanted", 0, ",'wanted':'yes'");
    const size_t one =
        2 * store_get(g.store, g.rest->config_maps->res, HK_STR("default"), HK_STR("m-00"))
                ->text.n +
        REST_WORK_OBJECT;
    const struct port_request req = {.verb = PORT_WATCH,
                                     .kind = rig_kind(&g, "ConfigMap"),
                                     .ns = HK_STR("default"),
                                     .label_selector = HK_STR("wanted")};
    const uint64_t id = port_submit(g.port, &req, (struct port_sink){on_event, &seen});
    while (seen == 0) {
        const uint64_t work = poll_work(&g);
        assert_in_range(work, 1, REST_SLICE + 2 * one);
        polls++;
    }
    assert_in_range(polls, 2, OBJECTS);
    port_cancel(g.port, id);
    rig_close(&g);
}

/* ---- selectors ---- */

static void test_selectors(void **state)
{
    static const struct {
        const char *selector, *names;
    } cases[] = {
        {"set=1", "a b c d"},
        {"set=1,x", "a b"},
        {"set=1,!x", "c d"},
        {"set=1,x=1", "a"},
        {"set=1,x!=1", "b c d"},
        {"set=1,x in (1,2)", "a b"},
        {"set=1,x notin (1,2)", "c d"},
        {"set=1,x=1,x=2", ""},
        {"set=1,x!=1,x!=3", "b c d"},
        {"set=1,n>5", "d"},
        {"set=1,n<5", "c"},
        {"set=1,e=", "d"},
        {"set=1,example.com/k.x=v_1.a-b", "c"},
        {"set", "a b c d"},
    };
    struct rig g = {0};

    rig_open(&g, true);
    create(&g, "a", 0, ",'set':'1','x':'1'");
    create(&g, "b", 0, ",'x':'2','set':'1'");
    create(&g, "c", 0, ",'set':'1','n':'3','example.com/k.x':'v_1.a-b'");
    create(&g, "d", 0, ",'set':'1','n':'7','e':''");
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct port_request req = {.verb = PORT_LIST,
                                         .kind = rig_kind(&g, "ConfigMap"),
                                         .ns = HK_STR("default"),
                                         .label_selector = hk_str(cases[i].selector)};
        const struct answer a = rig_ask(&g, &req);
        if (strcmp(a.names, cases[i].names) != 0) {
            fail_msg("%s: want '%s', have '%s'", cases[i].selector, cases[i].names, a.names);
        }
    }
    rig_close(&g);
}

static void test_the_requirements_of_a_selector_are_limited(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, fields = {0};
    struct rig g = {0};

    rig_open(&g, true);
    for (uint32_t i = 0; i <= REST_MAX_TERMS; i++) {
        struct port_request req = {
            .verb = PORT_LIST, .kind = rig_kind(&g, "ConfigMap"), .ns = HK_STR("default")};
        hk_buf_addf(&text, "%s!k%u", i > 0 ? "," : "", i);
        hk_buf_addf(&fields, "%smetadata.name!=k%u", i > 0 ? "," : "", i);
        if (i < REST_MAX_TERMS - 1) {
            continue;
        }
        for (int k = 0; k < 2; k++) {
            req.label_selector = k == 0 ? hk_buf_str(&text) : HK_STR("");
            req.field_selector = k == 1 ? hk_buf_str(&fields) : HK_STR("");
            const struct answer a = rig_ask(&g, &req);
            assert_int_equal(a.code, i < REST_MAX_TERMS ? 200 : 400);
            if (a.code == 400) {
                assert_non_null(strstr(a.message, "257 requirements: at most 256 are allowed"));
            }
        }
    }
    rig_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_large_list_yields),
        cmocka_unit_test(test_a_list_in_slices_shows_one_revision),
        cmocka_unit_test(test_a_list_ends_without_its_caller),
        cmocka_unit_test(test_a_large_collection_is_deleted_in_slices),
        cmocka_unit_test(test_a_deletion_is_completed_without_its_caller),
        cmocka_unit_test(test_a_watch_yields),
        cmocka_unit_test(test_selectors),
        cmocka_unit_test(test_the_requirements_of_a_selector_are_limited),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
