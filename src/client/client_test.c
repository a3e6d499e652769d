// SPDX-License-Identifier: Apache-2.0
// The client with the real server over TLS: authentication, errors with Kubernetes' messages, a
// server restart, credentials that change, and many writes at once.
#include "client/rig_test.h"

#include "base/file.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

static int begin(void **state)
{
    struct rig *g = hk_zalloc(sizeof(*g));

    *state = g;
    rig_open(g, 0);
    return 0;
}

static int end(void **state)
{
    rig_close(*state);
    hk_free(*state);
    return 0;
}

static void connect_as(struct rig *g, const char *cluster, const char *user)
{
    const struct client_opts o = rig_client_opts(g);

    port_free(g->port);
    rig_client(g, &o, rig_config(g, cluster, user));
}

static struct outcome ask(struct rig *g, struct port_request req, enum api_kind_id kind,
                          const char *body)
{
    req.kind = api_kind(kind);
    req.body = body ? rig_json(&g->mem, body) : NULL;
    return rig_ask(g, &req);
}

#define NS HK_STR("default")
#define LIST ((struct port_request){.verb = PORT_LIST, .ns = NS})
#define CREATE ((struct port_request){.verb = PORT_CREATE, .ns = NS})

/* ---- authentication ---- */

static void test_the_server_must_prove_itself(void **state)
{
    struct rig *g = *state;
    struct cert_pair other = {0};
    const struct cert_opts o = {.cn = "other", .now_s = rig_now_s(), .days = 1};
    HK_AUTO(hk_buf_fini) struct hk_buf good = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf wrong = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf named = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf misnamed = {0};

    assert_int_equal(cert_make_ca(&o, &other, NULL), 0);
    hk_buf_adds(&good, "    certificate-authority-data: ");
    cert_write_base64(g->ca.cert_pem, &good);
    hk_buf_adds(&wrong, "    certificate-authority-data: ");
    cert_write_base64(other.cert_pem, &wrong);
    hk_buf_addf(&named, "%s\n    tls-server-name: kubernetes.default", good.data);
    hk_buf_addf(&misnamed, "%s\n    tls-server-name: elsewhere", good.data);
    const struct {
        const char *what, *cluster;
        bool ok;
    } cases[] = {
        {"its authority", good.data, true},
        {"another authority", wrong.data, false},
        {"the authorities of the system", "", false},
        {"no questions asked", "    insecure-skip-tls-verify: true", true},
        {"by another name of its own", named.data, true},
        {"by a name it does not have", misnamed.data, false},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        connect_as(g, cases[i].cluster, NULL);
        const struct outcome out = ask(g, LIST, API_CONFIGMAP, NULL);
        if (out.rc != (cases[i].ok ? 0 : -HK_EIO)) {
            fail_msg("%s: have %d %s", cases[i].what, out.rc, out.text);
        }
        const struct outcome write =
            ask(g, CREATE, API_CONFIGMAP, "{'metadata':{'generateName':'a'}}");
        assert_int_equal(write.rc, cases[i].ok ? 0 : -HK_EBUSY); /* certainly not executed */
        api_object_unref(write.obj);
    }
    cert_pair_fini(&other);
}

static void test_the_user_must_prove_himself(void **state)
{
    static const char *const orgs[] = {"system:masters"}, *const nobody[] = {"dev"};
    struct rig *g = *state;
    struct cert_pair admin = {0}, weak = {0};
    struct cert_opts o = {
        .cn = "me", .orgs = orgs, .norgs = 1, .client = true, .now_s = rig_now_s(), .days = 1};
    HK_AUTO(hk_buf_fini) struct hk_buf strong_user = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf weak_user = {0};

    assert_int_equal(cert_make(&o, &g->ca, &admin, NULL), 0);
    o.orgs = nobody;
    assert_int_equal(cert_make(&o, &g->ca, &weak, NULL), 0);
    hk_buf_adds(&strong_user, "    client-certificate-data: ");
    cert_write_base64(admin.cert_pem, &strong_user);
    hk_buf_adds(&strong_user, "\n    client-key-data: ");
    cert_write_base64(admin.key_pem, &strong_user);
    hk_buf_adds(&weak_user, "    client-certificate-data: ");
    cert_write_base64(weak.cert_pem, &weak_user);
    hk_buf_adds(&weak_user, "\n    client-key-data: ");
    cert_write_base64(weak.key_pem, &weak_user);
    const struct {
        const char *what, *user;
        int rc, code;
    } cases[] = {
        {"a token", "    token: secret", 0, 0},
        {"a wrong token", "    token: wrong", -HK_EDENIED, 401},
        {"nothing", "    {}", -HK_EDENIED, 401},
        {"a certificate", strong_user.data, 0, 0},
        {"a certificate of no weight", weak_user.data, -HK_EDENIED, 403},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        connect_as(g, NULL, cases[i].user);
        const struct outcome out = ask(g, LIST, API_CONFIGMAP, NULL);
        if (out.rc != cases[i].rc || out.code != cases[i].code) {
            fail_msg("%s: want %d (%d), have %d (%d) %s", cases[i].what, cases[i].rc, cases[i].code,
                     out.rc, out.code, out.text);
        }
    }
    cert_pair_fini(&admin);
    cert_pair_fini(&weak);
}

/* ---- errors ---- */

static void test_refusals_keep_their_words(void **state)
{
    static const struct {
        struct port_request req;
        enum api_kind_id kind;
        const char *body;
        int rc, code;
        const char *reason, *text;
    } cases[] = {
        {{.verb = PORT_GET, .ns = NS, .name = HK_STR("none")},
         API_CONFIGMAP,
         NULL,
         HK_ENOTFOUND,
         404,
         "NotFound",
         "configmaps \"none\" not found"},
        {{.verb = PORT_CREATE, .ns = HK_STR("void")},
         API_CONFIGMAP,
         "{'metadata':{'name':'a'}}",
         HK_ENOTFOUND,
         404,
         "NotFound",
         "namespaces \"void\" not found"},
        {{.verb = PORT_CREATE, .ns = NS},
         API_CONFIGMAP,
         "{'metadata':{'name':'BAD!'}}",
         HK_EINVAL,
         422,
         "Invalid",
         NULL},
        {{.verb = PORT_CREATE, .ns = NS},
         API_CONFIGMAP,
         "{'kind':'Pod','apiVersion':'v1'}",
         HK_EINVAL,
         400,
         "BadRequest",
         NULL},
        {{.verb = PORT_LIST, .ns = NS, .cont = HK_STR("rubbish")},
         API_CONFIGMAP,
         NULL,
         HK_EINVAL,
         400,
         "BadRequest",
         NULL},
        {{.verb = PORT_GET, .ns = NS, .name = HK_STR("a"), .subresource = "status"},
         API_CONFIGMAP,
         NULL,
         HK_ENOTFOUND,
         404,
         "NotFound",
         NULL},
    };
    struct rig *g = *state;

    connect_as(g, NULL, NULL);
    for (size_t i = 0; i < HK_LEN(cases); i++) {
        const struct outcome out = ask(g, cases[i].req, cases[i].kind, cases[i].body);
        if (out.rc != -cases[i].rc || out.code != cases[i].code ||
            strcmp(out.reason, cases[i].reason) != 0 ||
            (cases[i].text && strcmp(out.text, cases[i].text) != 0)) {
            print_error("case %zu: want %d %d %s, have %d %d %s: %s\n", i, -cases[i].rc,
                        cases[i].code, cases[i].reason, out.rc, out.code, out.reason, out.text);
        }
        assert_int_equal(out.rc, -cases[i].rc);
        assert_int_equal(out.code, cases[i].code);
        assert_string_equal(out.reason, cases[i].reason);
    }
}

static void test_answers_describe_the_outcome(void **state)
{
    struct rig *g = *state;

    connect_as(g, NULL, NULL);
    struct outcome out = ask(g, CREATE, API_CONFIGMAP, "{'metadata':{'name':'a'}}");
    assert_true(out.created);
    assert_int_equal(out.rv, out.obj->rv);
    assert_string_equal(rig_look(&g->mem, out.obj, "kind"), "ConfigMap");
    outcome_fini(&out);
    out = ask(g, (struct port_request){.verb = PORT_GET, .ns = NS, .name = HK_STR("a")},
              API_CONFIGMAP, NULL);
    assert_false(out.created);
    outcome_fini(&out);
    /* Unknown fields, reported as a header. */
    out =
        ask(g, (struct port_request){.verb = PORT_CREATE, .ns = NS, .validate = PORT_VALIDATE_WARN},
            API_POD,
            "{'metadata':{'name':'p'},'spec':{'containers':[{'name':'c','image':'i'}],"
            "'colour':'red'}}");
    assert_int_equal(out.rc, 0);
    assert_int_equal(out.nwarnings, 1);
    outcome_fini(&out);
    /* An object without a tree still has its names. */
    out = ask(
        g,
        (struct port_request){.verb = PORT_GET, .ns = NS, .name = HK_STR("a"), .text_only = true},
        API_CONFIGMAP, NULL);
    assert_int_equal(out.obj->root.type, JSON_NULL);
    assert_true(hk_str_is(out.obj->name, "a") && hk_str_is(out.obj->ns, "default"));
    assert_true(out.obj->rv > 0 && out.obj->uid.n > 0);
    assert_true(hk_str_starts(out.obj->text, "{"));
    outcome_fini(&out);
    out = ask(g,
              (struct port_request){.verb = PORT_DELETE_COLLECTION,
                                    .ns = NS,
                                    .field_selector = HK_STR("metadata.name=a")},
              API_CONFIGMAP, NULL);
    assert_int_equal(out.rc, 0);
    assert_string_equal(out.names, "a");
}

/* ---- server restarts ---- */

static void test_a_watch_goes_on_after_its_server_came_back(void **state)
{
    struct rig *g = *state;
    struct heard h = {0}, again = {0};
    struct port_request watch = {.verb = PORT_WATCH, .kind = api_kind(API_SECRET), .ns = NS};

    connect_as(g, NULL, NULL);
    watch.rv = ask(g, LIST, API_SECRET, NULL).rv;
    port_submit(g->port, &watch, (struct port_sink){heard_on_msg, &h});
    struct outcome out = ask(g, CREATE, API_SECRET, "{'metadata':{'name':'a'}}");
    outcome_fini(&out);
    rig_until(g, h.events == 1);
    rig_stop_server(g);
    rig_until(g, h.done);
    assert_int_equal(h.rc, -HK_EIO);
    assert_int_equal(ask(g, LIST, API_SECRET, NULL).rc, -HK_EIO);
    assert_int_equal(ask(g, CREATE, API_SECRET, "{'metadata':{'name':'x'}}").rc, -HK_EBUSY);
    rig_start_server(g);
    out = ask(g, CREATE, API_SECRET, "{'metadata':{'name':'b'}}");
    assert_int_equal(out.rc, 0);
    outcome_fini(&out);
    watch.rv = h.rv;
    port_submit(g->port, &watch, (struct port_sink){heard_on_msg, &again});
    rig_until(g, again.events == 1);
    assert_string_equal(h.text.data, "+a");
    assert_string_equal(again.text.data, "+b");
    heard_fini(&h);
    heard_fini(&again);
}

struct crowd {
    uint32_t left, failed;
};

static void on_one_of_many(void *ctx, const struct port_msg *m)
{
    struct crowd *c = ctx;

    c->left--;
    c->failed += m->rc < 0;
}

static void test_thousands_of_writes_at_once(void **state)
{
    enum { N = 3000 };
    struct rig *g = *state;
    struct crowd c = {.left = N};
    struct heard h = {0};
    const struct port_request watch = {
        .verb = PORT_WATCH, .kind = api_kind(API_CONFIGMAP), .ns = HK_STR("kube-public")};

    connect_as(g, NULL, NULL);
    const struct json *body = rig_json(&g->mem, "{'metadata':{'generateName':'many-'}}");
    port_submit(g->port, &watch, (struct port_sink){heard_on_msg, &h});
    for (int i = 0; i < N; i++) {
        port_create(g->port, api_kind(API_CONFIGMAP), HK_STR("kube-public"), body,
                    (struct port_sink){on_one_of_many, &c});
    }
    rig_until(g, c.left == 0);
    assert_int_equal(c.failed, 0);
    rig_until(g, h.events >= N);
    struct port_request list = {.verb = PORT_LIST,
                                .kind = api_kind(API_CONFIGMAP),
                                .ns = HK_STR("kube-public"),
                                .limit = 1000};
    char cont[512] = "";
    uint32_t total = 0;
    do {
        list.cont = hk_str(cont);
        const struct outcome out = rig_ask(g, &list);
        assert_int_equal(out.rc, 0);
        total += out.nitems;
        snprintf(cont, sizeof(cont), "%s", out.cont);
    } while (cont[0] != '\0');
    assert_int_equal(total, h.events);
    heard_fini(&h);
}

/* ---- credentials that change ---- */

static void put_file(struct rig *g, const char *path, const char *text)
{
    assert_int_equal(hk_write_file(path, hk_str(text), NULL), 0);
    assert_int_equal(chmod(path, 0700), 0);
}

static void test_a_token_file_is_read_again(void **state)
{
    struct rig *g = *state;
    char path[] = "/tmp/client-test-XXXXXX", user[64];
    const int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    put_file(g, path, "secret\n");
    snprintf(user, sizeof(user), "    tokenFile: %s", path);
    connect_as(g, NULL, user);
    assert_int_equal(ask(g, LIST, API_CONFIGMAP, NULL).rc, 0);
    /* The server drops the token, and the file has a new one: one call detects both. */
    auth_free(g->auth);
    assert_int_equal(auth_parse(HK_STR("fresh,admin,1,system:masters\n"), &g->auth, NULL), 0);
    rig_stop_server(g);
    rig_start_server(g);
    put_file(g, path, "fresh");
    assert_int_equal(ask(g, LIST, API_CONFIGMAP, NULL).rc, 0);
    unlink(path);
}

static void test_a_plugin_makes_credentials(void **state)
{
    struct rig *g = *state;
    char dir[] = "/tmp/client-test-XXXXXX";
    HK_AUTO(hk_buf_fini) struct hk_buf user = {0};
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct outcome outs[10] = {0};

    assert_non_null(mkdtemp(dir));
    char plugin[64], count[64];
    snprintf(plugin, sizeof(plugin), "%s/plugin", dir);
    snprintf(count, sizeof(count), "%s/count", dir);
    hk_buf_addf(&text,
                "#!/bin/sh\necho x >>%s\n"
                "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":"
                "\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"secret\"}}'\n",
                count);
    put_file(g, plugin, text.data);
    hk_buf_addf(&user,
                "    exec: {apiVersion: client.authentication.k8s.io/v1, command: %s, "
                "interactiveMode: Never}",
                plugin);
    connect_as(g, NULL, user.data);
    const struct port_request req = {.verb = PORT_LIST, .kind = api_kind(API_CONFIGMAP), .ns = NS};
    for (size_t i = 0; i < HK_LEN(outs); i++) {
        port_submit(g->port, &req, (struct port_sink){outcome_on_msg, &outs[i]});
    }
    for (size_t i = 0; i < HK_LEN(outs); i++) {
        rig_until(g, outs[i].done);
        assert_int_equal(outs[i].rc, 0);
    }
    hk_buf_clear(&text);
    assert_int_equal(hk_read_file(count, 100, &text, NULL), 0);
    assert_string_equal(text.data, "x\n"); /* one run for all of them */

    /* Its token is refused from now on: the plugin runs once more, then the 401 is final. */
    auth_free(g->auth);
    assert_int_equal(auth_parse(HK_STR("fresh,admin,1,system:masters\n"), &g->auth, NULL), 0);
    rig_stop_server(g);
    rig_start_server(g);
    const struct outcome out = rig_ask(g, &req);
    assert_int_equal(out.rc, -HK_EDENIED);
    assert_int_equal(out.code, 401);
    hk_buf_clear(&text);
    assert_int_equal(hk_read_file(count, 100, &text, NULL), 0);
    assert_string_equal(text.data, "x\nx\n");

    put_file(g, plugin, "#!/bin/sh\nexit 1\n");
    connect_as(g, NULL, user.data);
    const struct outcome failed = rig_ask(g, &req);
    assert_int_equal(failed.rc, -HK_EIO);
    assert_non_null(strstr(failed.text, "failed with exit code 1"));
    unlink(plugin);
    unlink(count);
    rmdir(dir);
}

/* As in a pod whose cluster changes its CA: the file changes before the server does. */
static void test_a_new_authority_is_trusted_when_its_file_says_so(void **state)
{
    struct rig *g = *state;
    char path[] = "/tmp/client-test-XXXXXX", cluster[96];
    const int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    put_file(g, path, g->ca.cert_pem);
    snprintf(cluster, sizeof(cluster), "    certificate-authority: %s", path);
    connect_as(g, cluster, NULL);
    assert_int_equal(ask(g, LIST, API_CONFIGMAP, NULL).rc, 0);
    rig_stop_server(g);
    cert_pair_fini(&g->ca);
    cert_pair_fini(&g->serving);
    rig_make_certs(g);
    rig_start_server(g);
    assert_true(ask(g, LIST, API_CONFIGMAP, NULL).rc < 0);
    put_file(g, path, g->ca.cert_pem);
    assert_int_equal(ask(g, LIST, API_CONFIGMAP, NULL).rc, 0);
    unlink(path);
}

/* The number of our sockets to the server, and the dead-peer timeout of the first. */
static int count_sockets(const struct rig *g, unsigned *ret_dead_after_ms)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t len = sizeof(peer), four = sizeof(*ret_dead_after_ms);
        if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sin_family == AF_INET &&
            ntohs(peer.sin_port) == g->tcp_port) {
            n++;
            assert_int_equal(
                getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ret_dead_after_ms, &four), 0);
        }
    }
    return n;
}

static void test_a_peer_that_vanishes_is_noticed(void **state)
{
    struct rig *g = *state;
    unsigned dead_after_ms = 0;

    connect_as(g, NULL, NULL);
    assert_int_equal(ask(g, LIST, API_CONFIGMAP, NULL).rc, 0);
    assert_int_equal(count_sockets(g, &dead_after_ms), 1);
    assert_int_equal(dead_after_ms, 30000);
}

static void test_requests_are_counted(void **state)
{
    static const char *const lines[] = {
        "rest_client_requests_total{code=\"201\",host=\"%s\",method=\"POST\"} 1\n",
        "rest_client_requests_total{code=\"409\",host=\"%s\",method=\"POST\"} 1\n",
        "rest_client_requests_total{code=\"200\",host=\"%s\",method=\"GET\"} 2\n",
        "rest_client_request_duration_seconds_count{host=\"%s\",verb=\"POST\"} 2\n",
        "rest_client_request_duration_seconds_count{host=\"%s\",verb=\"GET\"} 1\n",
        "rest_client_request_duration_seconds_bucket{host=\"%s\",verb=\"GET\",le=\"60\"} 1\n",
        "rest_client_rate_limiter_duration_seconds_count{host=\"%s\",verb=\"POST\"} 2\n",
        "rest_client_rate_limiter_duration_seconds_count{host=\"%s\",verb=\"GET\"} 1\n",
        "rest_client_request_size_bytes_bucket{host=\"%s\",verb=\"POST\",le=\"64\"} 2\n",
        "rest_client_response_size_bytes_count{host=\"%s\",verb=\"GET\"} 1\n",
    };
    struct rig *g = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct heard h = {0};
    char host[32];

    connect_as(g, NULL, NULL);
    snprintf(host, sizeof(host), "127.0.0.1:%u", g->tcp_port);
    for (int i = 0; i < 2; i++) {
        struct outcome made = ask(g, CREATE, API_CONFIGMAP, "{'metadata':{'name':'a'}}");
        assert_int_equal(made.rc, i == 0 ? 0 : -HK_EEXIST);
        outcome_fini(&made);
    }
    assert_int_equal(ask(g, LIST, API_CONFIGMAP, NULL).rc, 0);
    const uint64_t call =
        port_watch(g->port, api_kind(API_CONFIGMAP), NS, 0, (struct port_sink){heard_on_msg, &h});
    rig_until(g, h.events > 0); /* a watch counts when it is answered, not when it ends */
    client_write_metrics(g->client, &text);
    for (size_t i = 0; i < HK_LEN(lines); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf want = {0};
        hk_buf_addf(&want, lines[i], host);
        if (!strstr(text.data, want.data)) {
            fail_msg("no %sin\n%s", want.data, text.data);
        }
    }
    port_cancel(g->port, call);
    heard_fini(&h);
}

/* A call without an answer has no code, and is repeated. */
static void test_failures_are_counted(void **state)
{
    struct rig *g = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    connect_as(g, NULL, NULL);
    rig_stop_server(g);
    assert_true(ask(g, LIST, API_CONFIGMAP, NULL).rc < 0);
    client_write_metrics(g->client, &text);
    assert_non_null(strstr(text.data, "rest_client_requests_total{code=\"<error>\""));
    assert_non_null(strstr(text.data, "method=\"GET\"} 7\n"));
    assert_non_null(strstr(text.data, "rest_client_request_retries_total{code=\"<error>\""));
    assert_non_null(strstr(text.data, "verb=\"GET\"} 6\n"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_the_server_must_prove_itself),
        TEST(test_the_user_must_prove_himself),
        TEST(test_refusals_keep_their_words),
        TEST(test_answers_describe_the_outcome),
        TEST(test_a_watch_goes_on_after_its_server_came_back),
        TEST(test_thousands_of_writes_at_once),
        TEST(test_a_token_file_is_read_again),
        TEST(test_a_plugin_makes_credentials),
        TEST(test_a_new_authority_is_trusted_when_its_file_says_so),
        TEST(test_a_peer_that_vanishes_is_noticed),
        TEST(test_requests_are_counted),
        TEST(test_failures_are_counted),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
