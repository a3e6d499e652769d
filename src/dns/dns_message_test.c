// SPDX-License-Identifier: Apache-2.0
// Names, queries and replies as bytes.
#include "dns/dns_message.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define BYTES(lit) ((struct hk_str){lit, sizeof(lit) - 1})
/* Header: id 7, RD, then the counts. */
#define HEAD(counts) "\0\7\1\0" counts
#define ONE "\0\1\0\0\0\0\0\0"
#define ONE_AND_OPT "\0\1\0\0\0\0\0\1"
#define A_EXAMPLE "\1a\7eXample\0"
#define A_IN "\0\1\0\1"

/* ---- names ---- */

static void test_names_are_written_in_lower_case(void **state)
{
    struct dns_name a, b;
    struct hk_str labels[DNS_LABELS_MAX];

    assert_true(dns_name_parse(HK_STR("WWW.Example"), &a));
    assert_true(dns_name_parse(HK_STR("www.example."), &b));
    assert_true(dns_name_equal(&a, &b));
    assert_int_equal(dns_name_labels(&a, labels), 2);
    assert_true(hk_str_is(labels[1], "example"));
    assert_true(dns_name_parse(HK_STR("."), &a));
    assert_int_equal(a.len, 1);
}

static void test_names_have_limits(void **state)
{
    char text[260];
    struct dns_name name;

    assert_false(dns_name_parse(HK_STR("a..b"), &name));
    memset(text, 'x', sizeof(text));
    assert_true(dns_name_parse((struct hk_str){text, 63}, &name));
    assert_false(dns_name_parse((struct hk_str){text, 64}, &name));
    for (size_t i = 63; i < sizeof(text); i += 64) {
        text[i] = '.';
    }
    assert_true(dns_name_parse((struct hk_str){text, 253}, &name)); /* 255 bytes */
    assert_int_equal(name.len, DNS_NAME_MAX);
    assert_false(dns_name_prepend(&name, HK_STR("y")));
    assert_false(dns_name_parse((struct hk_str){text, 254}, &name));
}

static void test_pointers_lead_backwards(void **state)
{
    static const struct {
        struct hk_str message;
        size_t at;
        bool ok;
    } cases[] = {
        {BYTES(HEAD(ONE) "\1b\0\1a\300\14"), 15, true},   /* a.b */
        {BYTES(HEAD(ONE) "\1b\0\1a\300\17"), 15, false},  /* to its own begin */
        {BYTES(HEAD(ONE) "\1b\0\1a\300\21"), 15, false},  /* to itself */
        {BYTES(HEAD(ONE) "\1b\0\1a\300\377"), 15, false}, /* beyond the end */
        {BYTES(HEAD(ONE) "\1b\0\1a\300\0"), 15, false},   /* into the header */
        {BYTES(HEAD(ONE) "\1b\0\1a\300"), 15, false},     /* half a pointer */
        {BYTES(HEAD(ONE) "\1b\0\1a\100x"), 15, false},    /* no kind of label */
        {BYTES(HEAD(ONE) "\5b\0"), 12, false},            /* a label beyond the end */
        {BYTES(HEAD(ONE) "\1b"), 12, false},              /* no end */
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct dns_name name;
        size_t at = cases[i].at;

        assert_int_equal(dns_name_read(cases[i].message, &at, &name), cases[i].ok);
        assert_int_equal(at, cases[i].ok ? cases[i].message.n : cases[i].at);
    }
}

/* ---- queries ---- */

static void test_queries(void **state)
{
    static const struct {
        struct hk_str message;
        enum dns_rcode code;
    } cases[] = {
        {BYTES(HEAD(ONE) A_EXAMPLE A_IN), DNS_NOERROR},
        {BYTES(HEAD(ONE_AND_OPT) A_EXAMPLE A_IN "\0\0\51\20\0\0\0\0\0\0\0"), DNS_NOERROR},
        {BYTES(HEAD(ONE_AND_OPT) A_EXAMPLE A_IN "\0\0\51\20\0\0\1\0\0\0\0"), DNS_BADVERS},
        {BYTES(HEAD(ONE_AND_OPT) A_EXAMPLE A_IN "\0\0\51\20\0\0\0\0\0\0\1"), DNS_FORMERR},
        {BYTES(HEAD(ONE_AND_OPT) A_EXAMPLE A_IN), DNS_FORMERR},
        {BYTES(HEAD("\0\1\0\0\0\0\0\2") A_EXAMPLE A_IN
               "\0\0\51\20\0\0\0\0\0\0\0\0\0\51\20\0\0\0\0\0\0\0"),
         DNS_FORMERR}, /* two OPTs */
        {BYTES(HEAD("\0\2\0\0\0\0\0\0") A_EXAMPLE A_IN A_EXAMPLE A_IN), DNS_FORMERR},
        {BYTES(HEAD("\0\0\0\0\0\0\0\0")), DNS_FORMERR},
        {BYTES(HEAD("\0\1\0\1\0\0\0\0") A_EXAMPLE A_IN), DNS_FORMERR}, /* with an answer */
        {BYTES(HEAD(ONE) A_EXAMPLE "\0\1"), DNS_FORMERR},
        {BYTES("\0\7\50\0" ONE A_EXAMPLE A_IN), DNS_NOTIMP},    /* an update */
        {BYTES("\0\7\200\0" ONE A_EXAMPLE A_IN), DNS_NO_REPLY}, /* a reply */
        {BYTES(HEAD("\0\1\0\0\0\0\0")), DNS_NO_REPLY},          /* shorter than a header */
        {BYTES(""), DNS_NO_REPLY},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct dns_query q;

        assert_int_equal(dns_query_parse(cases[i].message, &q), cases[i].code);
    }
}

/* ---- replies ---- */

static void test_a_reply_repeats_the_question_as_it_was(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct dns_query q;
    struct dns_reply r;

    assert_int_equal(dns_query_parse(BYTES(HEAD(ONE) A_EXAMPLE A_IN), &q), DNS_NOERROR);
    dns_reply_init(&r, &q, dns_reply_udp_max(&q), &out);
    assert_true(dns_reply_add(&r, DNS_ANSWER, &q.name, DNS_TYPE_A, 5, BYTES("\177\0\0\1")));
    r.authoritative = true;
    dns_reply_finish(&r);
    assert_int_equal(out.len, 12 + 15 + 16);
    assert_memory_equal(out.data,
                        "\0\7\205\200\0\1\0\1\0\0\0\0" A_EXAMPLE A_IN
                        "\300\14\0\1\0\1\0\0\0\5\0\4\177\0\0\1",
                        out.len);
}

static void test_what_does_not_fit_is_cut_off(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf out = {0};
    struct dns_query q;
    struct dns_reply r;
    uint32_t n = 0;

    assert_int_equal(
        dns_query_parse(BYTES(HEAD(ONE_AND_OPT) A_EXAMPLE A_IN "\0\0\51\0\1\0\0\0\0\0\0"), &q),
        DNS_NOERROR);
    assert_int_equal(dns_reply_udp_max(&q), 512); /* the client's 1 is nonsense */
    dns_reply_init(&r, &q, dns_reply_udp_max(&q), &out);
    while (dns_reply_add(&r, DNS_ANSWER, &q.name, DNS_TYPE_A, 5, BYTES("\177\0\0\1"))) {
        n++;
    }
    dns_reply_add_soa(&r, DNS_AUTHORITY, &q.name, 5); /* does not follow what was cut off */
    dns_reply_finish(&r);
    assert_int_equal(n, (512 - 11 - 27) / 16);
    assert_int_equal(r.count[DNS_AUTHORITY], 0);
    assert_true(out.len <= 512);
    assert_true(dns_message_is_truncated(hk_buf_str(&out)));
}

/* ---- answers of others ---- */

static void test_answers_are_compared_with_the_question(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf sent = {0};
    const struct hk_str answer =
        BYTES("\0\7\201\200\0\1\0\2\0\0\0\0" A_EXAMPLE A_IN "\300\14\0\5\0\1\0\0\0\5\0\4\1b\300\16"
              "\1b\300\16\0\1\0\1\0\0\0\5\0\4\177\0\0\1");
    struct dns_walk w = {.message = answer};
    struct dns_record record;
    struct dns_name name;
    struct dns_query q;

    assert_true(dns_name_parse(HK_STR("a.example"), &name));
    dns_query_write(7, &name, DNS_TYPE_A, &sent);
    assert_int_equal(dns_query_parse(hk_buf_str(&sent), &q), DNS_NOERROR);
    assert_true(dns_walk_open(&w, &q));
    assert_true(dns_walk_next(&w, &record));
    assert_int_equal(record.type, DNS_TYPE_CNAME);
    assert_true(dns_name_parse(HK_STR("b.example"), &name));
    assert_true(dns_name_equal(&record.target, &name));
    assert_true(dns_walk_next(&w, &record));
    assert_true(dns_name_equal(&record.owner, &name));
    assert_true(hk_str_eq(record.data, BYTES("\177\0\0\1")));
    assert_false(dns_walk_next(&w, &record));
    q.type = DNS_TYPE_AAAA;
    assert_false(dns_walk_open(&w, &q));
    w.message.n = 20;
    assert_false(dns_walk_open(&w, &q));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_written_in_lower_case),
        cmocka_unit_test(test_names_have_limits),
        cmocka_unit_test(test_pointers_lead_backwards),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_a_reply_repeats_the_question_as_it_was),
        cmocka_unit_test(test_what_does_not_fit_is_cut_off),
        cmocka_unit_test(test_answers_are_compared_with_the_question),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
