// SPDX-License-Identifier: Apache-2.0
// Probes for controllers over a real loop: each is answered once, under its id, unless it was
// cancelled.
#include "daemon/prober.h"

#include "net/http_rig_test.h"

struct probes {
    struct fixture http;
    struct prober *prober;
    struct hk_buf told; /* "1:good " per answer */
};

static int setup(void **state)
{
    struct probes *p = hk_zalloc(sizeof(*p));

    start(&p->http, NULL);
    p->prober = loop_prober_new(p->http.loop);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct probes *p = *state;

    loop_prober_free(p->prober);
    finish(&p->http);
    hk_buf_fini(&p->told);
    hk_free(p);
    return 0;
}

static void on_done(void *ctx, uint64_t id, bool good)
{
    struct probes *p = ctx;

    hk_buf_addf(&p->told, "%llu:%s ", (unsigned long long)id, good ? "good" : "bad");
}

static uint64_t probe(struct probes *p, uint16_t port, const char *path)
{
    const struct probe one = {.host = HK_STR("127.0.0.1"),
                              .port = port,
                              .http = path != NULL,
                              .path = hk_str(path ? path : ""),
                              .timeout_ns = (int64_t)1000 * 1000 * 1000};

    return p->prober->ops->start(p->prober, &one, (struct prober_sink){on_done, p});
}

static const char *told(const struct probes *p)
{
    return hk_buf_str(&p->told).s;
}

static void a_connection_or_a_good_status_is_good(void **state)
{
    struct probes *p = *state;
    const uint16_t port = http_server_port(p->http.server);

    assert_int_equal(probe(p, port, NULL), 1);
    AWAIT(&p->http, strstr(told(p), "1:"));
    assert_int_equal(probe(p, port, "/live"), 2);
    AWAIT(&p->http, strstr(told(p), "2:"));
    assert_string_equal(told(p), "1:good 2:good ");
}

static void a_closed_port_is_bad(void **state)
{
    struct probes *p = *state;

    probe(p, 1, NULL);
    AWAIT(&p->http, p->told.len > 0);
    assert_string_equal(told(p), "1:bad ");
}

static void a_cancelled_probe_is_not_answered(void **state)
{
    struct probes *p = *state;
    const uint16_t port = http_server_port(p->http.server);
    const uint64_t first = probe(p, port, "/later"), second = probe(p, port, "/live");

    p->prober->ops->cancel(p->prober, first);
    p->prober->ops->cancel(p->prober, first); /* late cancels are harmless */
    p->prober->ops->cancel(p->prober, 77);
    AWAIT(&p->http, p->told.len > 0);
    assert_string_equal(told(p), "2:good ");
    p->prober->ops->cancel(p->prober, second);
}

static void probes_in_flight_end_with_the_prober(void **state)
{
    struct probes *p = *state;

    probe(p, http_server_port(p->http.server), "/live");
    loop_prober_free(p->prober);
    p->prober = NULL;
    rig_turn(&p->http);
    assert_string_equal(told(p), "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_connection_or_a_good_status_is_good),
        TEST(a_closed_port_is_bad),
        TEST(a_cancelled_probe_is_not_answered),
        TEST(probes_in_flight_end_with_the_prober),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("daemon/prober", tests, NULL, NULL);
}
