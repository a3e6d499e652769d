// SPDX-License-Identifier: Apache-2.0
// The whole webhook manager over a port in memory and a manual clock: certificates are created,
// shared, published and renewed, also when calls fail.
#include "webhook/manager.h"

#include "api/port_mem.h"
#include "codec/yaml.h"
#include "webhook/publish.c"
#include "webhook/rig_test.h"

#define BEGIN_S INT64_C(1800000000)
#define DAY_NS ((int64_t)86400 * 1000000000)

static const char secret_name[] = "volcano-admission-secret";
static const char hook_name[] = "volcano-admission-service-jobs-validate";

struct rig {
    struct hk_clock_manual clock;
    struct net_loop *loop;
    struct port_mem *mem;
    struct hk_arena arena;
};

struct replica {
    struct rig *rig;
    struct webhook_manager *manager;
    uint16_t port; /* 0: not yet ready */
    struct hk_err failure;
};

static void on_ready(void *ctx, uint16_t port, uint16_t health_port)
{
    struct replica *p = ctx;

    p->port = port;
}

static void on_failed(void *ctx, const struct hk_err *err)
{
    struct replica *p = ctx;

    p->failure = *err;
}

static void replica_open(struct rig *r, struct replica *p)
{
    struct webhook_manager_opts o = {.loop = r->loop,
                                     .clock = &r->clock.clock,
                                     .port = port_mem_port(r->mem),
                                     .addr = HK_STR("127.0.0.1"),
                                     .ns = "vs",
                                     .service = "hooks",
                                     .ready = on_ready,
                                     .failed = on_failed,
                                     .ctx = p};
    struct hk_err err = {0};

    *p = (struct replica){.rig = r};
    assert_int_equal(volcano_parse_enabled(HK_STR("/jobs/validate"), &o.options.disabled, &err), 0);
    if (webhook_manager_new(&o, &p->manager, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

/* Runs everything that can happen without time passing. */
static void settle(struct replica *p, uint32_t n)
{
    uint32_t heard;

    do {
        rig_turn(p->rig->loop);
        heard = port_poll(port_mem_port(p->rig->mem), 100);
        for (uint32_t i = 0; i < n; i++) {
            (void)webhook_manager_run(p[i].manager);
        }
    } while (heard > 0);
}

static void pass(struct replica *p, uint32_t n, int64_t ns)
{
    p->rig->clock.now_ns += ns;
    port_mem_set_now(p->rig->mem, p->rig->clock.now_ns);
    settle(p, n);
    settle(p, n); /* a call from a timer is answered one turn later */
}

static int begin(void **state)
{
    struct rig *r = hk_zalloc(sizeof(*r));

    hk_clock_manual_init(&r->clock, BEGIN_S * 1000000000);
    r->loop = net_loop_new(&r->clock.clock);
    r->mem = port_mem_new(r->clock.now_ns);
    *state = r;
    return 0;
}

static int end(void **state)
{
    struct rig *r = *state;

    port_free(port_mem_port(r->mem));
    net_loop_free(r->loop);
    hk_arena_fini(&r->arena);
    hk_free(r);
    return 0;
}

/* ---- checks ---- */

static void make_hook(struct rig *r)
{
    const char *text = "{apiVersion: admissionregistration.k8s.io/v1, kind: "
                       "ValidatingWebhookConfiguration, metadata: {name: "
                       "volcano-admission-service-jobs-validate}, webhooks: [{name: a}, {name: b, "
                       "clientConfig: {caBundle: b2xk, url: 'https://x'}}]}";
    struct yaml_docs docs = {0};

    assert_int_equal(yaml_parse(hk_str(text), 0, &r->arena, &docs, NULL), 0);
    port_create(port_mem_port(r->mem), &kinds[VALIDATING], HK_STR(""), &docs.at[0],
                (struct port_sink){0});
}

static const char *bundle_at(struct rig *r, uint32_t i)
{
    const struct api_object *o =
        port_mem_peek(r->mem, &kinds[VALIDATING], HK_STR(""), hk_str(hook_name));
    const struct json *hook = o ? json_item(json_get(&o->root, "webhooks"), i) : NULL;
    const struct hk_str coded = json_str(json_at(hook, "clientConfig.caBundle"), HK_STR(""));
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    assert_int_equal(cert_read_base64(coded, &text, NULL), 0);
    return hk_arena_str(&r->arena, hk_buf_str(&text)).s;
}

/* A value of the Secret; "" when there is none. */
static const char *part(struct rig *r, const char *key)
{
    const struct api_object *o =
        port_mem_peek(r->mem, api_kind(API_SECRET), HK_STR("vs"), hk_str(secret_name));
    const struct json *data = o ? json_get(&o->root, "data") : NULL;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (!json_get(data, key)) {
        return "";
    }
    assert_int_equal(cert_read_base64(json_str(json_get(data, key), HK_STR("")), &text, NULL), 0);
    return hk_arena_str(&r->arena, hk_buf_str(&text)).s;
}

static void expect_shown(const struct replica *p, const char *cert_pem)
{
    struct rig_client c;

    rig_connect(&c, p->rig->loop, p->port);
    const bool shown = rig_shows(&c, cert_pem);
    rig_hang_up(&c);
    assert_true(shown);
}

/* ---- tests ---- */

static void certificates_are_made_stored_and_published(void **state)
{
    struct rig *r = *state;
    struct replica p;

    make_hook(r);
    replica_open(r, &p);
    assert_int_equal(p.port, 0);
    settle(&p, 1);
    assert_int_not_equal(p.port, 0);
    assert_true(cert_serves(part(r, "tls.crt"), part(r, "ca.crt"), "hooks.vs.svc"));
    assert_true(cert_serves(part(r, "tls.crt"), part(r, "ca.crt"), "hooks.vs"));
    assert_true(cert_serves(part(r, "tls.crt"), part(r, "ca.crt"), "hooks"));
    assert_string_equal(bundle_at(r, 0), part(r, "ca.crt"));
    assert_string_equal(bundle_at(r, 1), part(r, "ca.crt"));
    expect_shown(&p, part(r, "tls.crt"));
    webhook_manager_free(p.manager);
}

static void a_configuration_may_come_late(void **state)
{
    struct rig *r = *state;
    struct replica p;

    replica_open(r, &p);
    settle(&p, 1);
    assert_int_not_equal(p.port, 0);
    make_hook(r);
    settle(&p, 1);
    assert_string_equal(bundle_at(r, 1), part(r, "ca.crt"));
    webhook_manager_free(p.manager);
}

static void a_refused_publication_is_tried_again(void **state)
{
    static const enum hk_code codes[] = {HK_ECONFLICT, HK_EIO, HK_EDENIED};

    for (size_t i = 0; i < HK_LEN(codes); i++) {
        void *fresh = NULL;
        begin(&fresh);
        struct rig *r = fresh;
        struct replica p;

        make_hook(r);
        port_mem_fail(r->mem, PORT_UPDATE, 1, codes[i]);
        replica_open(r, &p);
        settle(&p, 1);
        assert_string_equal(bundle_at(r, 1), "old");
        pass(&p, 1, (int64_t)2 * 1000000000);
        assert_string_equal(bundle_at(r, 1), part(r, "ca.crt"));
        webhook_manager_free(p.manager);
        end(&fresh);
    }
}

static void a_secret_out_of_reach_is_waited_for(void **state)
{
    struct rig *r = *state;
    struct replica p;

    port_mem_fail(r->mem, PORT_GET, 1, HK_EDENIED);
    port_mem_fail(r->mem, PORT_CREATE, 1, HK_EIO);
    replica_open(r, &p);
    settle(&p, 1);
    assert_int_equal(p.port, 0);
    pass(&p, 1, (int64_t)1 * 1000000000); /* the read succeeds, the write fails */
    assert_int_equal(p.port, 0);
    pass(&p, 1, (int64_t)2 * 1000000000);
    assert_int_not_equal(p.port, 0);
    webhook_manager_free(p.manager);
}

static void replicas_share_one_certificate(void **state)
{
    struct rig *r = *state;
    struct replica p[2];

    replica_open(r, &p[0]);
    replica_open(r, &p[1]); /* both find no Secret; one creates it first */
    settle(p, 2);
    assert_int_not_equal(p[0].port, 0);
    assert_int_not_equal(p[1].port, 0);
    expect_shown(&p[0], part(r, "tls.crt"));
    expect_shown(&p[1], part(r, "tls.crt"));
    webhook_manager_free(p[0].manager);
    webhook_manager_free(p[1].manager);
}

static void certificates_that_expire_soon_are_renewed_everywhere(void **state)
{
    struct rig *r = *state;
    struct replica p[2];

    make_hook(r);
    replica_open(r, &p[0]);
    replica_open(r, &p[1]);
    settle(p, 2);
    const char *cert = part(r, "tls.crt"), *ca = part(r, "ca.crt");
    pass(p, 2, 300 * DAY_NS);
    assert_string_equal(part(r, "tls.crt"), cert);
    pass(p, 2, 10 * DAY_NS);
    assert_string_not_equal(part(r, "tls.crt"), cert);
    assert_true(cert_serves(part(r, "tls.crt"), part(r, "ca.crt"), "hooks.vs.svc"));
    assert_non_null(strstr(part(r, "ca.crt"), ca)); /* the previous CA is still trusted */
    assert_string_equal(bundle_at(r, 0), part(r, "ca.crt"));
    pass(p, 2, DAY_NS);
    expect_shown(&p[0], part(r, "tls.crt"));
    expect_shown(&p[1], part(r, "tls.crt"));

    const char *second = part(r, "ca.crt");
    pass(p, 2, 310 * DAY_NS);
    assert_null(strstr(part(r, "ca.crt"), ca)); /* the CA before that is not */
    assert_int_equal(strncmp(strstr(part(r, "ca.crt") + 1, "-----BEGIN"), second, 200), 0);
    webhook_manager_free(p[0].manager);
    webhook_manager_free(p[1].manager);
}

static void a_replica_that_is_behind_leaves_the_bundle_alone(void **state)
{
    struct rig *r = *state;
    struct replica p[2];

    make_hook(r);
    replica_open(r, &p[0]);
    replica_open(r, &p[1]);
    settle(p, 2);
    port_mem_log_clear(r->mem);
    pass(p, 2, 310 * DAY_NS);
    pass(p, 2, DAY_NS);
    uint32_t writes = 0;
    struct hk_str rest = port_mem_log(r->mem), line;
    while (hk_str_cut(&rest, '\n', &line)) {
        writes += hk_str_starts(line, "update validatingwebhookconfigurations");
    }
    assert_in_range(writes, 1, 2); /* one, or both at the same time; never alternating */
    assert_string_equal(bundle_at(r, 0), part(r, "ca.crt"));
    webhook_manager_free(p[0].manager);
    webhook_manager_free(p[1].manager);
}

static void a_renewal_is_shown_only_when_it_is_trusted(void **state)
{
    struct rig *r = *state;
    struct replica p;

    make_hook(r);
    replica_open(r, &p);
    settle(&p, 1);
    const char *cert = part(r, "tls.crt");
    port_mem_fail(r->mem, PORT_UPDATE, 2, HK_EDENIED); /* the first update is that of the Secret */
    pass(&p, 1, 310 * DAY_NS);
    assert_string_not_equal(part(r, "tls.crt"), cert);
    expect_shown(&p, cert);
    pass(&p, 1, (int64_t)2 * 1000000000);
    assert_string_equal(bundle_at(r, 0), part(r, "ca.crt"));
    expect_shown(&p, part(r, "tls.crt"));
    webhook_manager_free(p.manager);
}

static void a_secret_of_no_use_is_replaced(void **state)
{
    static const char *const data[] = {
        "{}",
        "{tls.crt: '!', tls.key: '!', ca.crt: '!'}",
        "{tls.crt: Y2VydA==, tls.key: a2V5, ca.crt: Y2E=, mine: a2VwdA==}",
    };

    for (size_t i = 0; i < HK_LEN(data); i++) {
        void *fresh = NULL;
        begin(&fresh);
        struct rig *r = fresh;
        struct replica p;
        struct yaml_docs docs = {0};
        const char *text = hk_arena_printf(
            &r->arena,
            "{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: vs}, data: %s}",
            secret_name, data[i]);

        assert_int_equal(yaml_parse(hk_str(text), 0, &r->arena, &docs, NULL), 0);
        assert_int_equal(port_mem_put(r->mem, &docs.at[0], NULL), 0);
        replica_open(r, &p);
        settle(&p, 1);
        assert_int_not_equal(p.port, 0);
        assert_true(cert_serves(part(r, "tls.crt"), part(r, "ca.crt"), "hooks.vs.svc"));
        assert_string_equal(part(r, "mine"), i == 2 ? "kept" : "");
        webhook_manager_free(p.manager);
        end(&fresh);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(certificates_are_made_stored_and_published, begin, end),
        cmocka_unit_test_setup_teardown(a_configuration_may_come_late, begin, end),
        cmocka_unit_test(a_refused_publication_is_tried_again),
        cmocka_unit_test_setup_teardown(a_secret_out_of_reach_is_waited_for, begin, end),
        cmocka_unit_test_setup_teardown(replicas_share_one_certificate, begin, end),
        cmocka_unit_test_setup_teardown(certificates_that_expire_soon_are_renewed_everywhere, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_replica_that_is_behind_leaves_the_bundle_alone, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_renewal_is_shown_only_when_it_is_trusted, begin, end),
        cmocka_unit_test(a_secret_of_no_use_is_replaced),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
