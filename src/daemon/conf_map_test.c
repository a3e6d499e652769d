// SPDX-License-Identifier: Apache-2.0
// The scheduler's configuration in the API: written when it changes, once, and again after a
// failure.
#include "daemon/conf_map.h"

#include "api/port_mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define S_NS ((int64_t)1000 * 1000 * 1000)

struct fixture {
    struct port_mem *mem;
    struct port *port;
    struct hk_clock_manual clock;
    struct conf_map map;
};

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));

    f->mem = port_mem_new(0);
    f->port = port_mem_port(f->mem);
    hk_clock_manual_init(&f->clock, 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    port_free(f->port);
    hk_free(f);
    return 0;
}

static void advance(struct fixture *f)
{
    f->clock.now_ns += 5 * S_NS;
}

/* One call of conf_map_keep, and its answers. Returns the requests it made. */
static const char *keep(struct fixture *f, const char *text, int64_t *ret_next_ns)
{
    static char log[512];
    const int64_t next_ns = conf_map_keep(&f->map, f->port, &f->clock.clock, hk_str(text));

    port_poll(f->port, UINT32_MAX);
    snprintf(log, sizeof(log), "%.*s", HK_FMT(port_mem_log(f->mem)));
    port_mem_log_clear(f->mem);
    if (ret_next_ns) {
        *ret_next_ns = next_ns;
    }
    return log;
}

static const char *stored(struct fixture *f)
{
    static char text[64];
    const struct api_object *o =
        port_mem_peek(f->mem, api_kind(API_CONFIGMAP), HK_STR(CONF_MAP_NS), HK_STR(CONF_MAP_NAME));

    snprintf(text, sizeof(text), "%.*s",
             HK_FMT(o ? json_str_field(json_at(&o->root, "data"), CONF_MAP_KEY) : HK_STR("none")));
    return text;
}

/* The port for tests patches only objects that exist; a server creates what is applied. */
static void make_objects(struct fixture *f)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};

    for (int i = 0; i < 2; i++) {
        struct json doc = json_make_object();
        struct json *meta = json_set_object(&doc, &a, "metadata");
        json_set_cstr(meta, &a, "name", i == 0 ? CONF_MAP_NS : CONF_MAP_NAME);
        if (i == 1) {
            json_set_cstr(meta, &a, "namespace", CONF_MAP_NS);
        }
        json_set_cstr(&doc, &a, "apiVersion", "v1");
        json_set_cstr(&doc, &a, "kind", i == 0 ? "Namespace" : "ConfigMap");
        assert_int_equal(port_mem_put(f->mem, &doc, NULL), 0);
    }
}

#define APPLIED                                                                                    \
    "patch namespaces " CONF_MAP_NS "\npatch configmaps " CONF_MAP_NS "/" CONF_MAP_NAME "\n"

static void a_new_text_is_written_once(void **state)
{
    struct fixture *f = *state;

    make_objects(f);
    assert_string_equal(keep(f, "actions: allocate", NULL), APPLIED);
    assert_string_equal(stored(f), "actions: allocate");
    assert_string_equal(keep(f, "actions: allocate", NULL), "");
}

static void a_changed_text_is_written_after_a_pause(void **state)
{
    struct fixture *f = *state;
    int64_t next_ns;

    make_objects(f);
    keep(f, "one", NULL);
    assert_string_equal(keep(f, "two", &next_ns), "");
    assert_int_equal(next_ns, 5 * S_NS);
    advance(f);
    assert_string_equal(keep(f, "two", &next_ns), APPLIED);
    assert_int_equal(next_ns, INT64_MAX);
    assert_string_equal(stored(f), "two");
}

static void a_failed_write_is_tried_again(void **state)
{
    struct fixture *f = *state;

    make_objects(f);
    port_mem_fail(f->mem, PORT_PATCH, 2, HK_EIO);
    assert_string_equal(keep(f, "text", NULL), APPLIED);
    assert_string_equal(stored(f), "");
    advance(f);
    assert_string_equal(keep(f, "text", NULL), APPLIED);
    assert_string_equal(stored(f), "text");
}

static void the_built_in_configuration_is_no_object(void **state)
{
    struct fixture *f = *state;

    make_objects(f);
    assert_string_equal(keep(f, "", NULL), "delete configmaps " CONF_MAP_NS "/" CONF_MAP_NAME "\n");
    assert_string_equal(stored(f), "none");
    advance(f);
    assert_string_equal(keep(f, "", NULL), "");
}

static void one_write_at_a_time(void **state)
{
    struct fixture *f = *state;

    make_objects(f);
    conf_map_keep(&f->map, f->port, &f->clock.clock, HK_STR("one")); /* not answered yet */
    port_mem_log_clear(f->mem);
    advance(f);
    assert_int_equal(conf_map_keep(&f->map, f->port, &f->clock.clock, HK_STR("two")), INT64_MAX);
    assert_int_equal(port_mem_log(f->mem).n, 0);
    port_poll(f->port, UINT32_MAX);
    assert_string_equal(keep(f, "two", NULL), APPLIED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_new_text_is_written_once),    TEST(a_changed_text_is_written_after_a_pause),
        TEST(a_failed_write_is_tried_again), TEST(the_built_in_configuration_is_no_object),
        TEST(one_write_at_a_time),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("daemon/conf_map", tests, NULL, NULL);
}
