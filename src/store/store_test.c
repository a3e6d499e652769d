// SPDX-License-Identifier: Apache-2.0
// The store's guarantees to its owner: checks against staged state, order, visibility, watches
// without gaps, limited history, and files that reopen unchanged. Most tests run twice, in memory
// and on disk.
#include "base/clock.h"
#include "store/store_priv.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_ROOM = 96 };

struct fixture {
    char dir[32];
    char path[48];
    bool on_disk;
    struct store_opts opts;
    struct store *s;
    uint32_t pods, nodes;
    struct hk_arena arena;
    struct hk_buf seen; /* one word per answer, event or object */
};

#define D HK_STR("default")
#define NOWHERE HK_STR("")

/* ---- fixture ---- */

static void reopen(struct fixture *f)
{
    struct hk_err err = {0};

    store_close(f->s);
    f->s = NULL;
    if (store_open(&f->opts, &f->s, &err) < 0) {
        fail_msg("cannot open: %s", err.text);
    }
    f->pods = store_res(f->s, HK_STR(""), HK_STR("pods"));
    f->nodes = store_res(f->s, HK_STR(""), HK_STR("nodes"));
}

static int setup(void **state, bool on_disk)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    memcpy(f->dir, "/tmp/hekla-store-XXXXXX", sizeof("/tmp/hekla-store-XXXXXX"));
    if (!mkdtemp(f->dir)) {
        return -1;
    }
    snprintf(f->path, sizeof(f->path), "%s/db", f->dir);
    f->on_disk = on_disk;
    f->opts.path = on_disk ? f->path : NULL;
    reopen(f);
    *state = f;
    return 0;
}

static int setup_memory(void **state)
{
    return setup(state, false);
}

static int setup_disk(void **state)
{
    return setup(state, true);
}

static void unlink_store(const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf witness = {0};

    store_witness_path(path, &witness);
    unlink(path);
    unlink(witness.data);
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    store_close(f->s);
    unlink_store(f->path);
    rmdir(f->dir);
    hk_arena_fini(&f->arena);
    hk_buf_fini(&f->seen);
    hk_free(f);
    return 0;
}

static void expect_seen(struct fixture *f, const char *want)
{
    assert_string_equal(hk_buf_str(&f->seen).s, want);
    hk_buf_clear(&f->seen);
}

/* ---- writes in one line ---- */

static const char *code_word(int rc)
{
    return rc == 0 ? "ok" : hk_code_reason(-rc);
}

/* "ok:name@revision " or "Reason ". */
static void on_done(void *ctx, int rc, const struct store_obj *obj, const struct hk_err *err)
{
    struct fixture *f = ctx;

    if (rc == 0) {
        hk_buf_addf(&f->seen, "ok:%s@%llu ", obj->name.s, (unsigned long long)obj->rv);
    } else {
        hk_buf_addf(&f->seen, "%s ", code_word(rc));
    }
}

static struct json *manifest(struct fixture *f, struct hk_str name, int value)
{
    struct json *root = hk_arena_alloc(&f->arena, sizeof(*root));
    char *text =
        hk_arena_printf(&f->arena,
                        "{\"kind\":\"K\",\"metadata\":{\"name\":\"%.*s\",\"uid\":\"u-%.*s\","
                        "\"resourceVersion\":\"7\"},\"v\":%d}",
                        HK_FMT(name), HK_FMT(name), value);

    assert_int_equal(json_parse(hk_str(text), 0, &f->arena, root, NULL), 0);
    return root;
}

static int write_to(struct fixture *f, enum store_verb verb, uint32_t res, struct hk_str ns,
                    const char *name, int value, uint64_t expect_rv)
{
    struct hk_err err = {0};
    const struct store_write w = {
        .verb = verb,
        .res = res,
        .ns = ns,
        .name = hk_str(name),
        .root = verb == STORE_DELETE ? NULL : manifest(f, hk_str(name), value),
        .mem = &f->arena,
        .expect_rv = expect_rv,
    };

    return store_submit(f->s, &w, on_done, f, &err);
}

static int create(struct fixture *f, const char *name)
{
    return write_to(f, STORE_CREATE, f->pods, D, name, 0, 0);
}

static int update(struct fixture *f, const char *name, int value, uint64_t expect_rv)
{
    return write_to(f, STORE_UPDATE, f->pods, D, name, value, expect_rv);
}

static int delete_pod(struct fixture *f, const char *name, uint64_t expect_rv)
{
    return write_to(f, STORE_DELETE, f->pods, D, name, 0, expect_rv);
}

static void flush_quietly(struct fixture *f)
{
    store_flush(f->s);
    hk_buf_clear(&f->seen);
}

static const char *get_text(struct fixture *f, const char *name)
{
    const struct store_obj *o = store_get(f->s, f->pods, D, hk_str(name));

    return o ? o->text.s : NULL;
}

static uint64_t head_rv(struct fixture *f, const char *name, bool *ret_staged)
{
    const struct store_obj *o = store_head(f->s, f->pods, D, hk_str(name), ret_staged);

    return o ? o->rv : 0;
}

/* ---- events in one line ---- */

static void add_event(struct fixture *f, const struct store_event *e)
{
    static const char sign[] = "+*-";

    hk_buf_addf(&f->seen, "%c%s@%llu", sign[e->type], e->obj->name.s, (unsigned long long)e->rv);
    if (e->prev) {
        hk_buf_addf(&f->seen, "<%llu", (unsigned long long)e->prev->rv);
    }
    hk_buf_addc(&f->seen, ' ');
}

/* All events after *rv, then "." or "gone". */
static void drain(struct fixture *f, uint32_t res, struct hk_str ns, uint64_t *rv)
{
    struct store_event e;
    enum store_next next;

    while ((next = store_next(f->s, res, ns, rv, &e)) == STORE_NEXT_EVENT) {
        assert_int_equal(*rv, e.rv);
        add_event(f, &e);
    }
    hk_buf_adds(&f->seen, next == STORE_NEXT_GONE ? "gone" : ".");
}

static bool add_name(void *ctx, const struct store_obj *o)
{
    struct fixture *f = ctx;

    hk_buf_addf(&f->seen, "%s/%s ", o->ns.s, o->name.s);
    return true;
}

/* ---- tests in memory and on disk ---- */

static void nothing_shows_before_poll(void **state)
{
    struct fixture *f = *state;
    bool staged;
    uint64_t rv = store_rv(f->s);

    assert_int_equal(create(f, "a"), 0);
    expect_seen(f, "");
    assert_null(get_text(f, "a"));
    assert_int_equal(store_rv(f->s), 1);
    drain(f, f->pods, NOWHERE, &rv);
    expect_seen(f, ".");
    assert_int_equal(head_rv(f, "a", &staged), 2);
    assert_true(staged);

    store_flush(f->s);
    expect_seen(f, "ok:a@2 ");
    assert_int_equal(head_rv(f, "a", &staged), 2);
    assert_false(staged);
    assert_int_equal(store_rv(f->s), 2);
    assert_int_equal(store_count(f->s, f->pods), 1);
}

static void objects_carry_their_revision(void **state)
{
    struct fixture *f = *state;
    const struct store_obj *o;

    assert_int_equal(create(f, "a"), 0);
    assert_int_equal(update(f, "a", 5, 2), 0);
    store_flush(f->s);
    o = store_get(f->s, f->pods, D, HK_STR("a"));
    assert_string_equal(o->text.s, "{\"kind\":\"K\",\"metadata\":{\"name\":\"a\",\"uid\":\"u-a\","
                                   "\"resourceVersion\":\"3\"},\"v\":5}");
    assert_int_equal(o->text.n, strlen(o->text.s));
    assert_string_equal(o->uid.s, "u-a");
    assert_string_equal(o->ns.s, "default");
    assert_int_equal(o->rv, 3);
    assert_int_equal(o->created_rv, 2);
}

static void writes_are_checked_against_the_staged_head(void **state)
{
    struct fixture *f = *state;
    static const struct {
        enum store_verb verb;
        uint64_t expect_rv;
        int rc;
    } steps[] = {
        {STORE_UPDATE, 0, -HK_ENOTFOUND},
        {STORE_DELETE, 0, -HK_ENOTFOUND},
        {STORE_CREATE, 0, 0}, /* 2 */
        {STORE_CREATE, 0, -HK_EEXIST},
        {STORE_UPDATE, 1, -HK_ECONFLICT},
        {STORE_UPDATE, 2, 0}, /* 3 */
        {STORE_UPDATE, 2, -HK_ECONFLICT},
        {STORE_DELETE, 2, -HK_ECONFLICT},
        {STORE_UPDATE, 0, 0}, /* 4 */
        {STORE_DELETE, 4, 0}, /* 5 */
        {STORE_DELETE, 0, -HK_ENOTFOUND},
        {STORE_UPDATE, 5, -HK_ENOTFOUND},
        {STORE_CREATE, 0, 0}, /* 6 */
    };

    /* First with all of them staged, then with each published before the next. */
    for (int flushed = 0; flushed < 2; flushed++) {
        const uint64_t base = store_rv(f->s) - 1;
        for (size_t i = 0; i < HK_LEN(steps); i++) {
            const uint64_t rv = steps[i].expect_rv ? steps[i].expect_rv + base : 0;
            const int rc = write_to(f, steps[i].verb, f->pods, D, "a", 0, rv);
            if (rc != steps[i].rc) {
                fail_msg("step %zu: %s, want %s", i, code_word(rc), code_word(steps[i].rc));
            }
            if (flushed) {
                store_flush(f->s);
            }
        }
        store_flush(f->s);
        expect_seen(f, flushed ? "ok:a@8 ok:a@9 ok:a@10 ok:a@11 ok:a@12 "
                               : "ok:a@2 ok:a@3 ok:a@4 ok:a@5 ok:a@6 ");
        if (!flushed) {
            assert_int_equal(delete_pod(f, "a", 0), 0);
            flush_quietly(f);
        }
    }
}

static void writes_that_are_no_objects_are_refused(void **state)
{
    struct fixture *f = *state;
    struct json root = json_make_array();
    struct hk_err err = {0};
    const struct store_write w = {.verb = STORE_CREATE,
                                  .res = f->pods,
                                  .ns = D,
                                  .name = HK_STR("a"),
                                  .root = &root,
                                  .mem = &f->arena};

    assert_int_equal(store_submit(f->s, &w, on_done, f, &err), -HK_EINVAL);
    assert_string_equal(err.text, "an object is a JSON object, not array");
    root = json_make_object();
    assert_int_equal(store_submit(f->s, &w, on_done, f, &err), 0);
    store_flush(f->s);
    assert_string_equal(get_text(f, "a"), "{\"metadata\":{\"resourceVersion\":\"2\"}}");
}

static void events_come_in_order_with_what_was_before(void **state)
{
    struct fixture *f = *state;
    uint64_t all = 1, elsewhere = 1, nodes = 1;

    assert_int_equal(create(f, "a"), 0);
    assert_int_equal(write_to(f, STORE_CREATE, f->nodes, NOWHERE, "n", 0, 0), 0);
    assert_int_equal(update(f, "a", 1, 0), 0);
    store_flush(f->s);
    assert_int_equal(write_to(f, STORE_CREATE, f->pods, HK_STR("other"), "b", 0, 0), 0);
    assert_int_equal(delete_pod(f, "a", 0), 0);
    flush_quietly(f);

    drain(f, f->pods, NOWHERE, &all);
    expect_seen(f, "+a@2 *a@4<2 +b@5 -a@6<4 .");
    drain(f, f->pods, HK_STR("other"), &elsewhere);
    expect_seen(f, "+b@5 .");
    drain(f, f->nodes, NOWHERE, &nodes);
    expect_seen(f, "+n@3 .");
    assert_int_equal(all, 6);
    assert_int_equal(elsewhere, 6); /* other resources' events advance it */
    assert_int_equal(nodes, 6);

    all = 4;
    drain(f, f->pods, NOWHERE, &all);
    expect_seen(f, "+b@5 -a@6<4 .");
    all = 1000; /* in the future */
    drain(f, f->pods, NOWHERE, &all);
    expect_seen(f, ".");
    assert_int_equal(all, 1000);
}

static void deletions_show_the_last_state(void **state)
{
    struct fixture *f = *state;
    struct store_event e;
    uint64_t rv = 3;
    struct hk_err err = {0};
    const struct store_write w = {.verb = STORE_DELETE,
                                  .res = f->pods,
                                  .ns = D,
                                  .name = HK_STR("b"),
                                  .root = manifest(f, HK_STR("b"), 9),
                                  .mem = &f->arena};

    assert_int_equal(create(f, "a"), 0);
    assert_int_equal(create(f, "b"), 0);
    assert_int_equal(delete_pod(f, "a", 0), 0);
    assert_int_equal(store_submit(f->s, &w, on_done, f, &err), 0);
    store_flush(f->s);
    expect_seen(f, "ok:a@2 ok:b@3 ok:a@4 ok:b@5 ");

    assert_int_equal(store_next(f->s, f->pods, NOWHERE, &rv, &e), STORE_NEXT_EVENT);
    assert_string_equal(e.obj->text.s,
                        "{\"kind\":\"K\",\"metadata\":{\"name\":\"a\",\"uid\":\"u-a\","
                        "\"resourceVersion\":\"4\"},\"v\":0}");
    assert_int_equal(e.obj->created_rv, 2);
    assert_int_equal(store_next(f->s, f->pods, NOWHERE, &rv, &e), STORE_NEXT_EVENT);
    assert_string_equal(e.obj->text.s,
                        "{\"kind\":\"K\",\"metadata\":{\"name\":\"b\",\"uid\":\"u-b\","
                        "\"resourceVersion\":\"5\"},\"v\":9}");
    assert_int_equal(store_count(f->s, f->pods), 0);
}

static void history_older_than_the_ring_is_gone(void **state)
{
    struct fixture *f = *state;
    uint64_t rv;

    f->opts.ring_events = 4;
    reopen(f);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(i == 0 ? create(f, "a") : update(f, "a", i, 0), 0);
    }
    flush_quietly(f);

    assert_int_equal(store_oldest_rv(f->s), 3);
    rv = 2;
    drain(f, f->pods, NOWHERE, &rv);
    expect_seen(f, "gone");
    assert_int_equal(rv, 2);
    drain(f, f->nodes, NOWHERE, &rv);
    expect_seen(f, "gone");
    rv = 3;
    drain(f, f->pods, NOWHERE, &rv);
    expect_seen(f, "*a@4<3 *a@5<4 *a@6<5 *a@7<6 .");
}

static void history_is_bounded_in_bytes(void **state)
{
    struct fixture *f = *state;
    const size_t each = sizeof(struct store_obj) + 100; /* about */

    f->opts.ring_bytes = 10 * each;
    reopen(f);
    for (int i = 0; i < 100; i++) {
        char name[NAME_ROOM];
        snprintf(name, sizeof(name), "p%d", i % 20);
        assert_int_equal(i < 20 ? create(f, name) : update(f, name, i, 0), 0);
    }
    flush_quietly(f);
    assert_in_range(store_rv(f->s) - store_oldest_rv(f->s), 4, 12);
    for (int i = 0; i < 20; i++) {
        char name[NAME_ROOM];
        snprintf(name, sizeof(name), "p%d", i);
        assert_int_equal(delete_pod(f, name, 0), 0);
    }
    flush_quietly(f);
    assert_in_range(store_rv(f->s) - store_oldest_rv(f->s), 4, 12);

    f->opts.ring_bytes = 1; /* the newest stays */
    reopen(f);
    assert_int_equal(create(f, "a"), 0);
    assert_int_equal(create(f, "b"), 0);
    flush_quietly(f);
    assert_int_equal(store_rv(f->s) - store_oldest_rv(f->s), 1);
}

static void scans_are_ordered_and_resume(void **state)
{
    struct fixture *f = *state;
    static const char *const keys[][2] = {
        {"b", "x"}, {"a", "z"}, {"b", "a"}, {"a", "y"}, {"ab", "a"}, {"c", "m"},
    };
    static const struct {
        const char *ns, *after_ns, *after_name, *want;
    } cases[] = {
        {"", "", "", "a/y a/z ab/a b/a b/x c/m "},
        {"", "a", "z", "ab/a b/a b/x c/m "},
        {"", "b", "m", "b/x c/m "}, /* need not exist */
        {"", "b", "", "b/a b/x c/m "},
        {"", "c", "m", ""},
        {"b", "", "", "b/a b/x "},
        {"b", "b", "a", "b/x "},
        {"b", "b", "x", ""},
        {"b", "a", "zz", "b/a b/x "},
        {"b", "c", "", ""},
        {"aa", "", "", ""},
    };

    for (size_t i = 0; i < HK_LEN(keys); i++) {
        assert_int_equal(write_to(f, STORE_CREATE, f->pods, hk_str(keys[i][0]), keys[i][1], 0, 0),
                         0);
    }
    flush_quietly(f);
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        store_scan(f->s, f->pods, hk_str(cases[i].ns), hk_str(cases[i].after_ns),
                   hk_str(cases[i].after_name), add_name, f);
        if (strcmp(hk_buf_str(&f->seen).s, cases[i].want) != 0) {
            fail_msg("case %zu: '%s', want '%s'", i, hk_buf_str(&f->seen).s, cases[i].want);
        }
        hk_buf_clear(&f->seen);
    }
    store_scan(f->s, f->nodes, NOWHERE, NOWHERE, NOWHERE, add_name, f);
    expect_seen(f, "");
}

struct page {
    uint32_t len, want;
    char last[NAME_ROOM];
};

static bool add_to_page(void *ctx, const struct store_obj *o)
{
    struct page *p = ctx;

    assert_true(strcmp(p->last, o->name.s) < 0);
    snprintf(p->last, sizeof(p->last), "%s", o->name.s);
    return ++p->len < p->want;
}

static void big_scans_come_in_pages(void **state)
{
    struct fixture *f = *state;
    enum { OBJECTS = 5000, PAGE = 333 };
    struct page p = {.want = PAGE};
    uint32_t total = 0;

    for (uint32_t i = 0; i < OBJECTS; i++) {
        char name[NAME_ROOM];
        snprintf(name, sizeof(name), "p%04u", (i * 7919) % OBJECTS);
        assert_int_equal(create(f, name), 0);
        hk_arena_clear(&f->arena);
    }
    store_flush(f->s);
    assert_int_equal(store_count(f->s, f->pods), OBJECTS);
    do {
        p.len = 0;
        store_scan(f->s, f->pods, D, p.last[0] ? D : NOWHERE, hk_str(p.last), add_to_page, &p);
        total += p.len;
    } while (p.len == PAGE);
    assert_int_equal(total, OBJECTS);
}

static void objects_live_as_long_as_they_are_referenced(void **state)
{
    struct fixture *f = *state;
    struct store_obj *held;

    f->opts.ring_events = 1;
    reopen(f);
    assert_int_equal(create(f, "a"), 0);
    flush_quietly(f);
    held = store_obj_ref(store_get(f->s, f->pods, D, HK_STR("a")));
    assert_int_equal(delete_pod(f, "a", 0), 0);
    assert_int_equal(create(f, "b"), 0);
    flush_quietly(f);
    store_close(f->s);
    f->s = NULL;
    assert_string_equal(held->name.s, "a");
    assert_int_equal(held->refs, 1);
    store_obj_unref(held);
}

static void submit_next(void *ctx, int rc, const struct store_obj *obj, const struct hk_err *err)
{
    struct fixture *f = ctx;

    on_done(ctx, rc, obj, err);
    if (obj->rv < 5) {
        /* Published before its caller gets the answer. */
        assert_ptr_equal(store_get(f->s, f->pods, D, obj->name), obj);
        const struct store_write w = {.verb = STORE_UPDATE,
                                      .res = f->pods,
                                      .ns = D,
                                      .name = obj->name,
                                      .root = manifest(f, obj->name, 1),
                                      .mem = &f->arena,
                                      .expect_rv = obj->rv};
        assert_int_equal(store_submit(f->s, &w, submit_next, f, NULL), 0);
    }
}

static void count_call(void *ctx)
{
    (*(uint32_t *)ctx)++;
}

static void callers_may_submit_from_their_answer(void **state)
{
    struct fixture *f = *state;
    uint32_t published = 0;
    const struct store_write w = {.verb = STORE_CREATE,
                                  .res = f->pods,
                                  .ns = D,
                                  .name = HK_STR("a"),
                                  .root = manifest(f, HK_STR("a"), 1),
                                  .mem = &f->arena};

    store_on_publish(f->s, count_call, &published);
    assert_int_equal(store_poll(f->s), 0);
    assert_int_equal(published, 0);
    assert_int_equal(store_submit(f->s, &w, submit_next, f, NULL), 0);
    for (uint32_t i = 1; i <= 4; i++) {
        store_flush(f->s);
        assert_int_equal(published, i);
    }
    expect_seen(f, "ok:a@2 ok:a@3 ok:a@4 ok:a@5 ");
}

struct hearer {
    struct fixture *f;
    uint64_t rv;
    uint32_t events;
};

static void hear_events(void *ctx)
{
    struct hearer *h = ctx;
    struct store_event ev;
    enum store_next next;

    while ((next = store_next(h->f->s, h->f->pods, NOWHERE, &h->rv, &ev)) == STORE_NEXT_EVENT) {
        h->events++;
    }
    assert_int_equal(next, STORE_NEXT_NONE);
}

/* A garbage collector that missed a deletion would never recover. */
static void hooks_see_a_whole_batch_that_exceeds_the_history(void **state)
{
    struct fixture *f = *state;
    enum { WRITES = 30 };
    struct hearer h = {.f = f};

    f->opts.ring_events = 4;
    reopen(f);
    h.rv = store_rv(f->s);
    store_on_publish(f->s, hear_events, &h);
    for (uint32_t i = 0; i < WRITES; i++) {
        char name[NAME_ROOM];
        snprintf(name, sizeof(name), "p%u", i);
        assert_int_equal(create(f, name), 0);
    }
    store_flush(f->s);
    assert_int_equal(h.events, WRITES);
    assert_int_equal(store_rv(f->s) - store_oldest_rv(f->s), 4); /* and then it is short again */
}

/* Without a thread, the poll after the one that sent a write commits it, and no earlier one. */
static void without_a_thread_polls_commit(void **state)
{
    struct fixture *f = *state;

    f->opts.no_thread = true;
    reopen(f);
    assert_int_equal(create(f, "a"), 0);
    assert_int_equal(store_poll(f->s), f->on_disk ? 0 : 1);
    store_flush(f->s);
    expect_seen(f, "ok:a@2 ");
    assert_int_equal(create(f, "b"), 0);
    hk_buf_clear(&f->seen);
    reopen(f);
    assert_int_equal(store_count(f->s, f->pods), f->on_disk ? 2 : 0);
}

static void closing_ends_calls_in_flight(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(create(f, "a"), 0);
    store_poll(f->s);
    assert_int_equal(create(f, "b"), 0);
    hk_buf_clear(&f->seen);
    reopen(f);
    expect_seen(f, "");
    assert_int_equal(store_count(f->s, f->pods), f->on_disk ? 2 : 0);
}

/* A watcher with random delays sees every revision once, in order. */
static void watches_have_no_gaps(void **state)
{
    struct fixture *f = *state;
    enum { KEYS = 50, WRITES = 3000 };
    uint64_t seen = store_rv(f->s), rv = seen;
    struct hk_rand rand;

    hk_rand_seed(&rand, 1);
    for (uint32_t i = 0; i < WRITES; i++) {
        char name[NAME_ROOM];
        bool staged;
        snprintf(name, sizeof(name), "p%u", hk_rand_below(&rand, KEYS));
        if (head_rv(f, name, &staged) == 0) {
            assert_int_equal(create(f, name), 0);
        } else if (hk_rand_below(&rand, 4) == 0) {
            assert_int_equal(delete_pod(f, name, 0), 0);
        } else {
            assert_int_equal(update(f, name, (int)i, 0), 0);
        }
        hk_arena_clear(&f->arena);
        if (i == WRITES - 1) {
            store_flush(f->s);
        } else if (hk_rand_below(&rand, 8) == 0) {
            store_poll(f->s);
        }
        if (i == WRITES - 1 || hk_rand_below(&rand, 20) == 0) {
            struct store_event e;
            while (store_next(f->s, f->pods, NOWHERE, &rv, &e) == STORE_NEXT_EVENT) {
                assert_int_equal(e.rv, ++seen);
                assert_int_equal(e.prev == NULL, e.type == STORE_ADDED);
            }
        }
    }
    assert_int_equal(seen, 1 + WRITES);
}

/* ---- tests of the index ---- */

static void end_obj(const struct store_obj *o)
{
    store_obj_unref(o);
}

static bool in_order(void *ctx, const struct store_obj *o)
{
    const struct store_obj **last = ctx;

    assert_true(!*last || hk_str_cmp((*last)->name, o->name) < 0);
    *last = o;
    return true;
}

static void the_index_agrees_with_a_plain_array(void **state)
{
    enum { KEYS = 2000, STEPS = 60000 };
    static const struct store_obj *model[KEYS];
    struct store_index ix = {0};
    struct hk_rand rand;
    uint32_t len = 0;

    hk_rand_seed(&rand, 7);
    for (uint32_t i = 0; i < STEPS; i++) {
        const uint32_t k = hk_rand_below(&rand, KEYS);
        /* The tree alternately grows and shrinks. */
        const bool put = hk_rand_below(&rand, 10) < (i / (STEPS / 6) % 2 == 0 ? 8u : 2u);
        char name[NAME_ROOM];
        const int n = snprintf(name, sizeof(name), "k%u", k);
        struct store_obj like = {.name = {name, (size_t)n}};
        const struct store_obj *old, *now = NULL;

        assert_ptr_equal(store_index_get(&ix, (struct store_key){.name = like.name}), model[k]);
        if (put) {
            now = store_obj_new(&like);
            old = store_index_put(&ix, now);
        } else {
            old = store_index_del(&ix, (struct store_key){.name = like.name});
        }
        assert_ptr_equal(old, model[k]);
        len += (now != NULL) - (old != NULL);
        assert_int_equal(ix.len, len);
        model[k] = now;
        store_obj_unref(old);
        if (i % 5000 == 0) {
            const struct store_obj *last = NULL;
            store_index_scan(&ix, (struct store_key){0}, in_order, &last);
        }
    }
    for (uint32_t k = 0; k < KEYS; k++) {
        if (model[k] && k % 2 == 0) {
            store_obj_unref(store_index_del(&ix, (struct store_key){.name = model[k]->name}));
        }
    }
    store_index_fini(&ix, end_obj);
}

/* ---- tests of the file ---- */

static void files_come_back_as_they_were_left(void **state)
{
    struct fixture *f = *state;
    const uint32_t pods = f->pods, nodes = f->nodes;
    uint64_t rv = 1;

    assert_int_equal(create(f, "a"), 0);
    assert_int_equal(create(f, "b"), 0);
    assert_int_equal(write_to(f, STORE_CREATE, f->nodes, NOWHERE, "n", 0, 0), 0);
    assert_int_equal(update(f, "a", 1, 0), 0);
    assert_int_equal(delete_pod(f, "b", 0), 0);
    store_flush(f->s);
    store_close(f->s);
    f->s = NULL;
    assert_int_equal(store_open(&f->opts, &f->s, NULL), 0);
    /* In a different order than before. */
    f->nodes = store_res(f->s, HK_STR(""), HK_STR("nodes"));
    f->pods = store_res(f->s, HK_STR(""), HK_STR("pods"));
    assert_int_equal(f->pods, pods);
    assert_int_equal(f->nodes, nodes);

    assert_int_equal(store_rv(f->s), 6);
    assert_int_equal(store_count(f->s, f->pods), 1);
    assert_int_equal(store_get(f->s, f->pods, D, HK_STR("a"))->created_rv, 2);
    assert_string_equal(store_get(f->s, f->pods, D, HK_STR("a"))->uid.s, "u-a");
    hk_buf_clear(&f->seen);
    drain(f, f->pods, NOWHERE, &rv);
    expect_seen(f, "+a@2 +b@3 *a@5<2 -b@6<3 .");
    assert_int_equal(create(f, "b"), 0);
    store_flush(f->s);
    expect_seen(f, "ok:b@7 ");
}

static void a_store_in_use_is_busy(void **state)
{
    struct fixture *f = *state;
    struct store *second = NULL;
    struct hk_err err = {0};

    assert_int_equal(store_open(&f->opts, &second, &err), -HK_EBUSY);
    assert_non_null(strstr(err.text, "in use by another process"));
    assert_null(second);
    assert_int_equal(create(f, "a"), 0);
    store_flush(f->s);
    expect_seen(f, "ok:a@2 ");
}

static void a_path_without_a_directory_fails(void **state)
{
    struct store *s = NULL;
    struct hk_err err = {0};

    assert_int_equal(store_open(&(struct store_opts){.path = "/nowhere/db"}, &s, &err), -HK_EIO);
    assert_string_equal(err.text, "store '/nowhere/db': cannot create: No such file or directory");
}

static void change_file(struct fixture *f, const char *sql)
{
    sqlite3 *db;

    store_close(f->s);
    f->s = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t ask_file(struct fixture *f, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    int64_t n;

    store_close(f->s);
    f->s = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    reopen(f);
    return n;
}

static void damaged_files_are_refused(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *sql, *want;
        int rc;
    } cases[] = {
        {"UPDATE log SET text = replace(text, '\"v\":1', '\"v\":0') WHERE rev = 3",
         "revision 3 of pods default/a", -HK_EIO},
        {"UPDATE log SET rev = 9 WHERE rev = 3", "revision 9 of pods default/a", -HK_EIO},
        {"DELETE FROM log WHERE rev = 2", "revision 3 does not follow from those before it",
         -HK_EIO},
        {"DELETE FROM resources", "its list of resources is damaged", -HK_EIO},
        {"UPDATE resources SET id = id + 4", "resource 'pods' has number 5, out of order", -HK_EIO},
        {"UPDATE resources SET name = 'podz' WHERE id = 1", "its list of resources is damaged",
         -HK_EIO},
        {"UPDATE marks SET rev = rev + 1 WHERE name = 'compacted'", "its marks are damaged",
         -HK_EIO},
        {"PRAGMA user_version = 3", "format 3, want 2", -HK_EUNSUP},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct hk_err err = {0};
        int rc;

        assert_int_equal(create(f, "a"), 0);
        assert_int_equal(update(f, "a", 1, 0), 0);
        store_flush(f->s);
        change_file(f, cases[i].sql);
        rc = store_open(&f->opts, &f->s, &err);
        if (rc != cases[i].rc || !strstr(err.text, cases[i].want)) {
            fail_msg("case %zu: %d '%s', want %d '%s'", i, rc, err.text, cases[i].rc,
                     cases[i].want);
        }
        unlink_store(f->path);
        reopen(f);
    }
}

static void compact_fully(struct fixture *f)
{
    /* Slices follow one another; a write after the last one shows that all are done. */
    for (int i = 0; i < 10; i++) {
        store_compact(f->s);
        assert_int_equal(write_to(f, STORE_CREATE, f->nodes, NOWHERE, "n", 0, 0), 0);
        store_flush(f->s);
        assert_int_equal(write_to(f, STORE_DELETE, f->nodes, NOWHERE, "n", 0, 0), 0);
        store_flush(f->s);
    }
    hk_buf_clear(&f->seen);
}

static void compaction_keeps_state_and_history(void **state)
{
    struct fixture *f = *state;
    uint64_t rv, oldest;

    f->opts.ring_events = 10;
    reopen(f);
    assert_int_equal(create(f, "kept"), 0); /* 2, and never changed again */
    for (int i = 0; i < 300; i++) {
        char name[NAME_ROOM];
        snprintf(name, sizeof(name), "p%d", i % 3);
        assert_int_equal(i < 3 ? create(f, name) : update(f, name, i, 0), 0);
    }
    assert_int_equal(delete_pod(f, "p0", 0), 0);
    flush_quietly(f);
    compact_fully(f);

    /* kept, p1, p2; the ring's ten and the rows they replaced. */
    assert_in_range(ask_file(f, "SELECT count(*) FROM log"), 12, 26);
    assert_int_equal(store_rv(f->s), 303 + 20);
    assert_int_equal(store_count(f->s, f->pods), 3);
    assert_int_equal(store_get(f->s, f->pods, D, HK_STR("kept"))->rv, 2);
    assert_string_equal(get_text(f, "p2"),
                        "{\"kind\":\"K\",\"metadata\":{\"name\":\"p2\",\"uid\":\"u-p2\","
                        "\"resourceVersion\":\"302\"},\"v\":299}");
    oldest = store_oldest_rv(f->s);
    assert_int_equal(oldest, 313);

    /* Dropped history does not return, even if the limit is larger now. */
    f->opts.ring_events = 1000;
    reopen(f);
    assert_in_range(store_oldest_rv(f->s), 300, 313);
    rv = 299;
    drain(f, f->pods, NOWHERE, &rv);
    expect_seen(f, "gone");
    rv = store_oldest_rv(f->s);
    drain(f, f->pods, NOWHERE, &rv);
    expect_seen(f, ".");
    assert_int_equal(store_count(f->s, f->pods), 3);
}

static void files_are_private(void **state)
{
    struct fixture *f = *state;
    char wal[64];

    assert_int_equal(create(f, "a"), 0);
    store_flush(f->s);
    snprintf(wal, sizeof(wal), "%s-wal", f->path);
    assert_int_equal(access(wal, F_OK), 0);
    for (int i = 0; i < 2; i++) {
        struct stat st;
        assert_int_equal(stat(i == 0 ? f->path : wal, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
}

int main(void)
{
#define MEMORY(name) cmocka_unit_test_setup_teardown(name, setup_memory, teardown)
#define DISK(name)                                                                                 \
    {                                                                                              \
#name " (disk)", name, setup_disk, teardown, NULL                                          \
    }
#define BOTH(name) MEMORY(name), DISK(name)
    const struct CMUnitTest tests[] = {
        BOTH(nothing_shows_before_poll),
        BOTH(objects_carry_their_revision),
        BOTH(writes_are_checked_against_the_staged_head),
        BOTH(writes_that_are_no_objects_are_refused),
        BOTH(events_come_in_order_with_what_was_before),
        BOTH(deletions_show_the_last_state),
        BOTH(history_older_than_the_ring_is_gone),
        BOTH(history_is_bounded_in_bytes),
        BOTH(scans_are_ordered_and_resume),
        BOTH(big_scans_come_in_pages),
        BOTH(objects_live_as_long_as_they_are_referenced),
        BOTH(callers_may_submit_from_their_answer),
        BOTH(hooks_see_a_whole_batch_that_exceeds_the_history),
        BOTH(without_a_thread_polls_commit),
        BOTH(closing_ends_calls_in_flight),
        BOTH(watches_have_no_gaps),
        cmocka_unit_test(the_index_agrees_with_a_plain_array),
        DISK(files_come_back_as_they_were_left),
        DISK(a_store_in_use_is_busy),
        cmocka_unit_test(a_path_without_a_directory_fails),
        DISK(damaged_files_are_refused),
        DISK(compaction_keeps_state_and_history),
        DISK(files_are_private),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("store/store", tests, NULL, NULL);
}
