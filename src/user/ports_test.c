// SPDX-License-Identifier: Apache-2.0
// Which ports a user asks for, and the request for one of them.
#include "user/ports.c" /* the path of the request is not public */

#include "user/rig_test.h"

static void ports_are_read(void **state)
{
    static const struct {
        const char *text;
        int local, port; /* port 0: refused */
    } cases[] = {
        {"8080", 8080, 8080}, {"80:8080", 80, 8080}, {":8080", 0, 8080}, {"65535", 65535, 65535},
        {"", 0, 0},           {":", 0, 0},           {"0", 0, 0},        {"65536", 0, 0},
        {"80:", 0, 0},        {"0:80", 0, 0},        {"x:80", 0, 0},     {"80:81:82", 0, 0},
        {"-1", 0, 0},         {"80x", 0, 0},
    };

    for (size_t k = 0; k < HK_LEN(cases); k++) {
        uint16_t local = 0, port = 0;
        struct hk_err err = {0};
        const int rc = ports_parse(cases[k].text, &local, &port, &err);

        if (cases[k].port == 0) {
            assert_true(rc < 0);
            assert_non_null(strstr(err.text, "want PORT, LOCAL:PORT or :PORT"));
        } else {
            assert_int_equal(rc, 0);
            assert_int_equal(local, cases[k].local);
            assert_int_equal(port, cases[k].port);
        }
    }
}

static void the_request_names_the_pod_and_the_port(void **state)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    const struct remote r = {.user = {.ns = "d"}, .pod = "a/b"};

    ports_write_path(&r, 80, &path);
    assert_string_equal(path.data, "/api/v1/namespaces/d/pods/a%2Fb/portforward?ports=80");
}

/* The first message of a channel is its port, in any pieces. */
static void the_port_is_no_data(void **state)
{
    struct ports_link l = {.skip = {2, 2}};

    ports_on_data(&l, DATA, (struct hk_str){"\x50", 1});
    ports_on_data(&l, DATA, (struct hk_str){"\0hel", 4});
    ports_on_data(&l, DATA, HK_STR("lo"));
    ports_on_data(&l, ERROR, (struct hk_str){"\x50\0", 2});
    ports_on_data(&l, ERROR, HK_STR("no"));
    ports_on_data(&l, 7, HK_STR("what"));
    assert_string_equal(l.out.data, "hello");
    assert_string_equal(l.error.data, "no");
    hk_buf_fini(&l.out);
    hk_buf_fini(&l.error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_are_read),
        cmocka_unit_test(the_request_names_the_pod_and_the_port),
        cmocka_unit_test(the_port_is_no_data),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("user/ports", tests, NULL, NULL);
}
