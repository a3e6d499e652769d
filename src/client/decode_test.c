// SPDX-License-Identifier: Apache-2.0
// Bytes to answers: streams cut at every position, lists of real servers, events, and all kinds of
// errors.
#include "client/decode.h"

#include "api/port_status.h"
#include "client/frame.h"
#include "client/list_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- cutting ---- */

static int on_frame(void *ctx, struct hk_str text)
{
    hk_buf_addf(ctx, "<%.*s>", HK_FMT(text));
    return 0;
}

static void test_streams_are_cut_alike_however_they_arrive(void **state)
{
    static const char stream[] =
        "{\"a\":\"}{\\\"\"}\n {\"b\":[{},{\"c\":\"\\\\\"}]}{}\r\n\t{\"d\":1}";
    static const char want[] = "<{\"a\":\"}{\\\"\"}><{\"b\":[{},{\"c\":\"\\\\\"}]}><{}><{\"d\":1}>";

    for (size_t part = 1; part <= sizeof(stream); part++) {
        HK_AUTO(hk_buf_fini) struct hk_buf have = {0};
        HK_AUTO(frame_fini) struct frame f = {.max = 100};
        for (size_t at = 0; at < sizeof(stream) - 1; at += part) {
            const size_t n = HK_MIN(part, sizeof(stream) - 1 - at);
            assert_int_equal(frame_feed(&f, (struct hk_str){stream + at, n}, on_frame, &have, NULL),
                             0);
        }
        assert_false(frame_partial(&f));
        assert_string_equal(have.data, want);
    }
}

static void test_streams_that_are_not_objects_fail(void **state)
{
    static const struct {
        const char *first, *second;
        int rc;
        bool partial;
    } cases[] = {
        {"{} x", "", -HK_EINVAL, false},
        {"[1]", "", -HK_EINVAL, false},
        {"}", "", -HK_EINVAL, false},
        {"{\"0123456789\":1}", "", -HK_ELIMIT, true},
        {"{\"01234", "56789\":1}", -HK_ELIMIT, true},
        {"{\"a\":", "", 0, true},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf have = {0};
        HK_AUTO(frame_fini) struct frame f = {.max = 10};
        int rc = frame_feed(&f, hk_str(cases[i].first), on_frame, &have, NULL);
        if (rc == 0) {
            rc = frame_feed(&f, hk_str(cases[i].second), on_frame, &have, NULL);
        }
        assert_int_equal(rc, cases[i].rc);
        if (rc == 0) {
            assert_int_equal(frame_partial(&f), cases[i].partial);
        }
    }
}

/* ---- lists ---- */

/* Reads the list in pieces of `part` bytes. */
static int read_list(struct hk_str text, size_t part, bool text_only, struct hk_arena *mem,
                     struct decode_list *ret, struct hk_err *err)
{
    size_t held = 0;
    HK_AUTO(list_reader_fini)
    struct list_reader r = {.kind = api_kind(API_CONFIGMAP),
                            .text_only = text_only,
                            .max_item = 10000,
                            .max_held = 100000,
                            .held_all = &held,
                            .max_held_all = 100000};
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < text.n; at += part) {
        const struct hk_str bytes = {text.s + at, HK_MIN(part, text.n - at)};
        rc = list_reader_feed(&r, bytes, err);
    }
    return rc < 0 ? rc : list_reader_finish(&r, mem, ret, err);
}

static void test_lists(void **state)
{
    static const struct {
        const char *text, *want; /* items, rv, continue, remaining; or the message */
    } cases[] = {
        {"{\"kind\":\"ConfigMapList\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[]}",
         "9 '' 0"},
        {"{\"metadata\":{\"resourceVersion\":\"9\",\"continue\":\"t\",\"remainingItemCount\":3},"
         "\"items\":[{\"metadata\":{\"name\":\"a\"}},{}]}",
         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}} "
         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"} 9 't' 3"},
        {" { \"items\" : [ {} , {\"a\":\"]}\\\"{\"} ] , \"x\":[[],{\"items\":[1]}] }\n",
         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"} "
         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"a\":\"]}\\\"{\"} 0 '' 0"},
        {"{\"items\":[{\"kind\":\"K\",\"apiVersion\":\"v\",\"x\":[\"]\"]}]}",
         "{\"kind\":\"K\",\"apiVersion\":\"v\",\"x\":[\"]\"]} 0 '' 0"},
        {"{\"items\":null}", "0 '' 0"},
        {"{}", "0 '' 0"},
        {"{\"items\":{}}", "the items of the list are not a JSON array"},
        {"{\"items\":[{} {}]}", "the items of the list are not a JSON array"},
        {"{\"items\":[{\"a\":1,}]}", "items[0]"},
        {"{\"items\":[{},[]]}", "items[1]"},
        {"{\"metadata\":{\"resourceVersion\":\"x\"}}", "bad value 'x'"},
        {"[]", "the answer is not a JSON object"},
        {"{\"items\":[", "the items of the list are not a JSON array"},
        {"{\"items\":[{}", "the items of the list are not a JSON array"},
        {"{\"items\":[{},,{}]}", "items[1]"},
        {"{\"items\":7}", "the items of the list are not a JSON array"},
        {"{\"items\":[]", "the answer is not a JSON object"},
        {"", "the answer is not a JSON object"},
    };

    for (size_t k = 0; k < 40 * HK_LEN(cases); k++) {
        const size_t i = k / 20, part = k % 20 < 19 ? k % 20 + 1 : 10000;
        const bool text_only = i % 2 == 1;
        HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
        HK_AUTO(hk_buf_fini) struct hk_buf have = {0};
        struct decode_list list;
        struct hk_err err = {0};
        if (read_list(hk_str(cases[i / 2].text), part, text_only, &mem, &list, &err) < 0) {
            hk_buf_adds(&have, err.text);
        } else {
            for (uint32_t n = 0; n < list.nitems; n++) {
                hk_buf_addf(&have, "%.*s ", HK_FMT(list.items[n]->text));
                assert_int_equal(list.items[n]->root.type, text_only ? JSON_NULL : JSON_OBJECT);
                api_object_unref(list.items[n]);
            }
            hk_buf_addf(&have, "%llu '%.*s' %lld", (unsigned long long)list.rv, HK_FMT(list.cont),
                        (long long)list.remaining);
        }
        if (!strstr(have.data, cases[i / 2].want)) {
            fail_msg("%s: want '%s', have '%s'", cases[i / 2].text, cases[i / 2].want, have.data);
        }
    }
}

/* The memory that an endless answer can use. */
static void test_lists_have_their_bounds(void **state)
{
    static const struct {
        const char *head, *again, *want;
    } cases[] = {
        {"{\"items\":[{\"a\":\"", "xxxxxxxxxxxxxxxx", "items[0] is larger than 10000 bytes"},
        {"{\"items\":[{\"a\":", "[[[[[[[[[[[[[[[[", "items[0] is larger than 10000 bytes"},
        {"{\"items\":[{}", ",{}", "items take more than 100000 bytes of memory"},
        {"{\"items\":[{}", ",{\"a\":\"0123456789\"}", "items take more than 100000 bytes"},
        {"{\"metadata\":{\"continue\":\"", "xxxxxxxxxxxxxxxx",
         "the list without its items is larger than"},
        {"{", "\"a\":[{}],", "the list without its items is larger than"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        size_t held = 0, held_most = 0, bytes = 0;
        struct hk_err err = {0};
        HK_AUTO(list_reader_fini)
        struct list_reader r = {.kind = api_kind(API_CONFIGMAP),
                                .max_item = 10000,
                                .max_held = 100000,
                                .held_all = &held,
                                .max_held_all = 1000000};
        int rc = list_reader_feed(&r, hk_str(cases[i].head), &err);
        while (rc == 0 && bytes < 100 << 20) {
            rc = list_reader_feed(&r, hk_str(cases[i].again), &err);
            bytes += strlen(cases[i].again);
            held_most = HK_MAX(held_most, held + r.shell.cap + r.item.cap);
        }
        assert_int_equal(rc, -HK_ELIMIT);
        assert_in_range(held_most, 1, 3 << 20);
        if (!strstr(err.text, cases[i].want)) {
            fail_msg("want '%s', have '%s'", cases[i].want, err.text);
        }
    }
}

/* The memory of several lists together is limited, too, and released. */
static void test_lists_share_a_bound(void **state)
{
    size_t held = 0;
    struct list_reader two[2];
    struct hk_err err = {0};
    int rc = 0;

    for (size_t i = 0; i < HK_LEN(two); i++) {
        two[i] = (struct list_reader){.kind = api_kind(API_CONFIGMAP),
                                      .max_item = 1000,
                                      .max_held = 100000,
                                      .held_all = &held,
                                      .max_held_all = 150000};
        rc = list_reader_feed(&two[i], HK_STR("{\"items\":[{}"), &err);
        for (size_t n = 0; rc == 0 && two[i].held < 90000; n++) {
            rc = list_reader_feed(&two[i], HK_STR(",{}"), &err);
        }
        assert_int_equal(rc, i == 0 ? 0 : -HK_ELIMIT);
    }
    assert_non_null(strstr(err.text, "unfinished lists take more than 150000 bytes"));
    list_reader_clear(&two[0]);
    list_reader_fini(&two[0]);
    list_reader_fini(&two[1]);
    assert_int_equal(held, 0);
}

/* ---- managers ---- */

static void test_listed_and_watched_objects_lose_managed_fields(void **state)
{
    static const struct {
        const char *meta, *want;
    } cases[] = {
        {"\"name\":\"a\",\"managedFields\":[{\"fieldsV1\":{\"f:a\":{\".\":{}}}}]",
         "\"name\":\"a\""},
        {"\"managedFields\":[],\"name\":\"a\"", "\"name\":\"a\""},
        {"\"name\":\"a\" , \"managedFields\" : [ ] , \"uid\":\"u\"",
         "\"name\":\"a\" , \"uid\":\"u\""},
        {"\"managedFields\":null", ""},
        {"\"labels\":{\"managedFields\":\"x\"}", "\"labels\":{\"managedFields\":\"x\"}"},
        {"", ""},
    };
    for (size_t i = 0; i < 4 * HK_LEN(cases); i++) {
        const bool text_only = i % 2, list = i / 2 % 2;
        const char *meta = cases[i / 4].meta;
        HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
        const char *head = "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{";
        const char *object = hk_arena_printf(&mem, "%s%s},\"data\":{}}", head, meta);
        const char *want =
            hk_arena_printf(&mem, "%s%s},\"data\":{}}", head, text_only ? meta : cases[i / 4].want);
        const char *whole = hk_arena_printf(
            &mem, list ? "{\"items\":[%s]}" : "{\"type\":\"ADDED\",\"object\":%s}", object);
        struct decode_list items = {0};
        struct decode_event event = {0};

        const int rc = list ? read_list(hk_str(whole), 1000, text_only, &mem, &items, NULL)
                            : decode_event(api_kind(API_CONFIGMAP), hk_str(whole), text_only, &mem,
                                           &event, NULL);
        assert_int_equal(rc, 0);
        struct api_object *o = list ? items.items[0] : event.obj;
        assert_string_equal(hk_arena_str(&mem, o->text).s, want);
        api_object_unref(o);
    }
}

/* ---- errors ---- */

static void test_codes_of_refusals(void **state)
{
    static const struct {
        const char *reason;
        int http;
        enum hk_code code;
    } cases[] = {
        {"NotFound", 404, HK_ENOTFOUND},
        {"AlreadyExists", 409, HK_EEXIST},
        {"Conflict", 409, HK_ECONFLICT},
        {"Invalid", 422, HK_EINVAL},
        {"BadRequest", 400, HK_EINVAL},
        {"Expired", 410, HK_EGONE},
        {"Gone", 410, HK_EGONE},
        {"Forbidden", 403, HK_EDENIED},
        {"Unauthorized", 401, HK_EDENIED},
        {"TooManyRequests", 429, HK_EBUSY},
        {"ServerTimeout", 500, HK_EBUSY},
        {"ServiceUnavailable", 503, HK_EBUSY},
        {"Timeout", 504, HK_ETIMEOUT},
        {"InternalError", 500, HK_EIO},
        {"MethodNotAllowed", 405, HK_EUNSUP},
        {"", 404, HK_ENOTFOUND},
        {"", 409, HK_ECONFLICT},
        {"", 410, HK_EGONE},
        {"", 418, HK_EINVAL},
        {"", 502, HK_EBUSY},
        {"", 599, HK_EIO},
        {"", 302, HK_EIO},
        {"Unheard", 422, HK_EINVAL},
        {"NotFound", 500, HK_ENOTFOUND}, /* the reason takes precedence */
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const enum hk_code have = port_status_code(hk_str(cases[i].reason), cases[i].http);
        if (have != cases[i].code) {
            fail_msg("'%s' %d: want %d, have %d", cases[i].reason, cases[i].http, cases[i].code,
                     have);
        }
    }
    /* Our server's reason for a code maps back to that code. */
    for (int code = HK_EINVAL; code < HK_NCODES; code++) {
        assert_int_equal(port_status_code(hk_str(hk_code_reason(code)), hk_code_http(code)), code);
    }
}

static void test_statuses(void **state)
{
    HK_AUTO(hk_arena_fini) struct hk_arena mem = {0};
    struct port_status s;

    decode_status(HK_STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{\"continue\":"
                         "\"t\"},\"status\":\"Failure\",\"message\":\"m\",\"reason\":\"Invalid\","
                         "\"details\":{\"name\":\"n\",\"group\":\"g\",\"kind\":\"k\",\"uid\":\"u\","
                         "\"retryAfterSeconds\":4,\"causes\":[{\"reason\":\"r\",\"field\":\"f\","
                         "\"message\":\"w\"},{}]},\"code\":422}"),
                  500, &mem, &s);
    assert_int_equal(s.code, 422);
    assert_false(s.success);
    assert_string_equal(s.reason, "Invalid");
    assert_string_equal(s.message, "m");
    assert_string_equal(s.name, "n");
    assert_string_equal(s.group, "g");
    assert_string_equal(s.kind, "k");
    assert_string_equal(s.uid, "u");
    assert_string_equal(s.cont, "t");
    assert_int_equal(s.retry_after_s, 4);
    assert_int_equal(s.ncauses, 2);
    assert_string_equal(s.causes[0].field, "f");
    assert_null(s.causes[1].field);

    decode_status(HK_STR("Too many requests, please try again later.\n"), 429, &mem, &s);
    assert_int_equal(s.code, 429);
    assert_string_equal(s.reason, "TooManyRequests");
    assert_string_equal(s.message, "Too many requests, please try again later.");
    decode_status(HK_STR(""), 502, &mem, &s);
    assert_int_equal(s.code, 502);
    assert_string_equal(s.message, "the server answered with HTTP code 502");
    decode_status(HK_STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Success\"}"), 201,
                  &mem, &s);
    assert_true(s.success);
    assert_int_equal(s.code, 201);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_are_cut_alike_however_they_arrive),
        cmocka_unit_test(test_streams_that_are_not_objects_fail),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_lists_have_their_bounds),
        cmocka_unit_test(test_lists_share_a_bound),
        cmocka_unit_test(test_listed_and_watched_objects_lose_managed_fields),
        cmocka_unit_test(test_codes_of_refusals),
        cmocka_unit_test(test_statuses),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
