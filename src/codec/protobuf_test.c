// SPDX-License-Identifier: Apache-2.0
// Fields of hand-made messages.
#include "codec/protobuf.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define BYTES(lit)                                                                                 \
    {                                                                                              \
        lit, sizeof(lit) - 1                                                                       \
    }

static void fields_are_cut_in_order(void **state)
{
    struct hk_str rest = BYTES("\x08\x96\x01"                                 /* 1: 150 */
                               "\x12\x03"                                     /* 2: "abc" */
                               "abc"                                          /* */
                               "\x19\x01\0\0\0\0\0\0\x80"                     /* 3: fixed64 */
                               "\x25\x02\0\0\0"                               /* 4: fixed32 */
                               "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" /* 5: -1 */
                               "\xfa\x01\0");                                 /* 31: "" */
    struct protobuf_field f;

    assert_int_equal(protobuf_next(&rest, &f, NULL), 1);
    assert_int_equal(f.number, 1);
    assert_int_equal(f.value, 150);
    assert_int_equal(protobuf_next(&rest, &f, NULL), 1);
    assert_int_equal(f.number, 2);
    assert_true(hk_str_is(f.bytes, "abc"));
    assert_int_equal(protobuf_next(&rest, &f, NULL), 1);
    assert_int_equal(f.value, 0x8000000000000001u);
    assert_int_equal(protobuf_next(&rest, &f, NULL), 1);
    assert_int_equal(f.value, 2);
    assert_int_equal(protobuf_next(&rest, &f, NULL), 1);
    assert_int_equal((int64_t)f.value, -1);
    assert_int_equal(protobuf_next(&rest, &f, NULL), 1);
    assert_int_equal(f.number, 31);
    assert_int_equal(f.bytes.n, 0);
    assert_int_equal(protobuf_next(&rest, &f, NULL), 0);
}

static void packed_integers_are_cut_one_by_one(void **state)
{
    struct hk_str rest = BYTES("\x01\x80\x01");
    uint64_t v;

    assert_int_equal(protobuf_next_varint(&rest, &v, NULL), 1);
    assert_int_equal(v, 1);
    assert_int_equal(protobuf_next_varint(&rest, &v, NULL), 1);
    assert_int_equal(v, 128);
    assert_int_equal(protobuf_next_varint(&rest, &v, NULL), 0);
}

static const struct {
    const char *name;
    struct hk_str bytes;
} broken[] = {
    {"a tag without its end", BYTES("\x80")},
    {"an integer without its end", BYTES("\x08\x80")},
    {"an integer that never ends", BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
    {"bytes longer than the message", BYTES("\x12\x04"
                                            "abc")},
    {"bytes longer than memory", BYTES("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
    {"half a fixed64", BYTES("\x19\x01\0")},
    {"half a fixed32", BYTES("\x25\x01")},
    {"field number zero", BYTES("\x02\0")},
    {"a field number that is too large", BYTES("\x80\x80\x80\x80\x7f\x01")},
    {"a group", BYTES("\x0b\x0c")},
};

static void broken_messages_are_refused(void **state)
{
    for (size_t i = 0; i < HK_LEN(broken); i++) {
        struct hk_str rest = broken[i].bytes;
        struct protobuf_field f;
        struct hk_err err = {0};
        const int rc = protobuf_next(&rest, &f, &err);

        if (rc != -HK_EINVAL) {
            fail_msg("%s: expected a refusal, got %d", broken[i].name, rc);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_cut_in_order),
        cmocka_unit_test(packed_integers_are_cut_one_by_one),
        cmocka_unit_test(broken_messages_are_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
