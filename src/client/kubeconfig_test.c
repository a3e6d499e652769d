// SPDX-License-Identifier: Apache-2.0
// Real-life kubeconfig files: merged, overridden, incomplete, wrong; service accounts of pods; and
// input and output of credential plugins.
#include "client/exec_plugin.h"

#include "base/clock.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define CHOICE(cluster_, user_)                                                                    \
    "current-context: c\n"                                                                         \
    "contexts: [{name: c, context: {cluster: k, user: u, namespace: ns1}}]\n"                      \
    "clusters: [{name: k, cluster: {" cluster_ "}}]\n"                                             \
    "users: [{name: u, user: {" user_ "}}]\n"

/* The configuration in one line, without unset members. */
static void write_config(const struct kubeconfig *k, struct hk_buf *out)
{
    const struct kubeconfig_pair fields[] = {
        {"ca_file", k->ca_file},
        {"ca", k->ca_pem},
        {"name", k->tls_server_name},
        {"proxy", k->proxy_url},
        {"cert_file", k->cert_file},
        {"cert", k->cert_pem},
        {"key_file", k->key_file},
        {"key", k->key_pem},
        {"token", k->token},
        {"token_file", k->token_file},
        {"username", k->username},
        {"password", k->password},
        {"as", k->as},
        {"uid", k->as_uid},
        {"exec", k->exec ? k->exec->command : NULL},
    };

    hk_buf_addf(out, "%s %s", k->server, k->ns);
    for (size_t i = 0; i < HK_LEN(fields); i++) {
        if (fields[i].value) {
            hk_buf_addf(out, " %s=%s", fields[i].name, fields[i].value);
        }
    }
    for (uint32_t i = 0; i < k->nas_groups; i++) {
        hk_buf_addf(out, " group=%s", k->as_groups[i]);
    }
    for (uint32_t i = 0; i < k->nas_extra; i++) {
        hk_buf_addf(out, " extra:%s=%s", k->as_extra[i].name, k->as_extra[i].value);
    }
    hk_buf_adds(out, k->insecure ? " insecure" : "");
    hk_buf_adds(out, k->disable_compression ? " uncompressed" : "");
    hk_buf_adds(out, k->in_cluster ? " in-cluster" : "");
    hk_buf_adds(out, k->is_guess ? " guess" : "");
}

/* want: the configuration in one line, or part of the message. */
static void expect(const char *what, int rc, struct kubeconfig *k, const struct hk_err *err,
                   const char *want)
{
    HK_AUTO(hk_buf_fini) struct hk_buf have = {0};

    if (rc < 0) {
        hk_buf_adds(&have, err->text);
    } else {
        write_config(k, &have);
        kubeconfig_fini(k);
    }
    if (rc < 0 ? !strstr(have.data, want) : strcmp(have.data, want) != 0) {
        fail_msg("%s:\nwant %s\nhave %s", what, want, have.data);
    }
}

static void test_one_file(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "http://localhost:8080 default guess"},
        {"clusters: null\n", "http://localhost:8080 default guess"},
        {CHOICE("server: 'https://h:6443/'", "token: t"), "https://h:6443 ns1 token=t"},
        {CHOICE("server: 'https://h/prefix/', tls-server-name: nm, proxy-url: 'socks5://p'", ""),
         "https://h/prefix ns1 name=nm proxy=socks5://p"},
        {CHOICE("server: 'h:8080'", ""), "http://h:8080 ns1"},
        {CHOICE("server: 'h:8080', insecure-skip-tls-verify: true, disable-compression: true", ""),
         "https://h:8080 ns1 insecure uncompressed"},
        {CHOICE("server: 'https://h', certificate-authority: ca.crt",
                "client-certificate: /abs/c, client-key: sub/k"),
         "https://h ns1 ca_file=/dir/ca.crt cert_file=/abs/c key_file=/dir/sub/k"},
        {CHOICE("server: 'https://h', certificate-authority: f, certificate-authority-data: Q0E=",
                "client-certificate-data: Qw==, client-key-data: Sw=="),
         "https://h ns1 ca=CA cert=C key=K"},
        {CHOICE("server: 'https://h'", "token: t, tokenFile: tok"),
         "https://h ns1 token=t token_file=/dir/tok"},
        {CHOICE("server: 'https://h'", "username: me, password: p"),
         "https://h ns1 username=me password=p"},
        {CHOICE("server: 'https://h'",
                "as: a, as-uid: i, as-groups: [g, h], as-user-extra: {k: [v, w]}"),
         "https://h ns1 as=a uid=i group=g group=h extra:k=v extra:k=w"},
        {CHOICE("server: 'https://h'",
                "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./bin/x}"),
         "https://h ns1 exec=/dir/./bin/x"},
        {CHOICE("server: 'https://h'",
                "token: t, exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: x}"),
         "https://h ns1 token=t"},
        {CHOICE("server: 'https://h'", "exec: {apiVersion: client.authentication.k8s.io/v1, "
                                       "command: aws, interactiveMode: Never}, unknown: 1"),
         "https://h ns1 exec=aws"},
        {"{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":"
         "{\"cluster\":\"k\"}}],\"clusters\":[{\"name\":\"k\",\"cluster\":"
         "{\"server\":\"https://h\"}}]}",
         "https://h default"},
        {"[]", "want a configuration"},
        {"a: [", "did not find expected node content"},
        {"current-context: c", "context \"c\" does not exist"},
        {"current-context: c\ncontexts: [{name: c, context: {cluster: k}}]",
         "cluster \"k\" does not exist"},
        {"current-context: c\ncontexts: [{name: c, context: {user: u}}]",
         "user \"u\" does not exist"},
        {CHOICE("server: 1", ""), "server: want string, have integer"},
        {CHOICE("server: 'ftp://h'", ""), "server 'ftp://h'"},
        {CHOICE("server: 'https://'", ""), "want http:// or https:// and a host"},
        {CHOICE("server: 'https://h', certificate-authority: f, insecure-skip-tls-verify: true",
                ""),
         "specifying a root certificates file with the insecure flag is not allowed"},
        {CHOICE("server: 'https://h', certificate-authority-data: '*'", ""),
         "cluster \"k\": certificate-authority-data: not base64"},
        {CHOICE("server: 'https://h'", "client-certificate: c"),
         "user \"u\": client-certificate and client-key must be specified together"},
        {CHOICE("server: 'https://h'", "as-groups: [g]"), "without impersonating a user"},
        {CHOICE("server: 'https://h'", "token: \"a\\nX: y\""), "control characters"},
        {CHOICE("server: 'https://h'", "as: a, as-groups: [\"g\\r\"]"), "control characters"},
        {CHOICE("server: 'https://h'", "exec: {command: x}"), "apiVersion ''"},
        {CHOICE("server: 'https://h'", "exec: {apiVersion: client.authentication.k8s.io/v1beta1}"),
         "command must be specified"},
        {CHOICE("server: 'https://h'",
                "exec: {apiVersion: client.authentication.k8s.io/v1, command: x}"),
         "interactiveMode must be specified"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct kubeconfig k = {0};
        struct hk_err err = {0};
        const int rc =
            kubeconfig_parse(hk_str(cases[i].text), "/dir", &(struct kubeconfig_opts){0}, &k, &err);
        expect(cases[i].text, rc, &k, &err, cases[i].want);
    }
}

static void test_options_override(void **state)
{
    static const char text[] =
        "current-context: c\n"
        "contexts: [{name: c, context: {cluster: k, user: u}}, {name: d, context: {cluster: l}}]\n"
        "clusters: [{name: k, cluster: {server: 'https://k'}}, {name: l, cluster: {server: "
        "'https://l'}}]\n"
        "users: [{name: u, user: {token: t, tokenFile: /f}}, {name: v, user: {token: w}}]\n";
    static const struct {
        struct kubeconfig_opts o;
        const char *want;
    } cases[] = {
        {{0}, "https://k default token=t token_file=/f"},
        {{.context = "d"}, "https://l default"},
        {{.cluster = "l"}, "https://l default token=t token_file=/f"},
        {{.user = "v"}, "https://k default token=w"},
        {{.server = "https://s", .ns = "n"}, "https://s n token=t token_file=/f"},
        {{.token = "x"}, "https://k default token=x"},
        {{.context = "e"}, "context \"e\" does not exist"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct kubeconfig k = {0};
        struct hk_err err = {0};
        const int rc = kubeconfig_parse(hk_str(text), "/", &cases[i].o, &k, &err);
        expect(cases[i].want, rc, &k, &err, cases[i].want);
    }
}

/* ---- files ---- */

static char dir[] = "/tmp/kubeconfig-test-XXXXXX";

static int make_dir(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static const char *path(const char *name)
{
    static char buf[4][128];
    static unsigned at;

    snprintf(buf[at % 4], sizeof(buf[0]), "%s/%s", dir, name);
    return buf[at++ % 4];
}

static void put(const char *name, const char *text)
{
    assert_int_equal(hk_write_file(path(name), hk_str(text), NULL), 0);
}

static int remove_dir(void **state)
{
    static const char *const names[] = {"a",     "b",      "empty",     "home/.kube/config",
                                        "token", "ca.crt", "namespace", "plugin"};

    for (size_t i = 0; i < HK_LEN(names); i++) {
        unlink(path(names[i]));
    }
    rmdir(path("home/.kube"));
    rmdir(path("home"));
    return rmdir(dir);
}

static void expect_load(const struct kubeconfig_opts *o, const char *want)
{
    struct kubeconfig k = {0};
    struct hk_err err = {0};
    const int rc = kubeconfig_load(o, &k, &err);

    expect(want, rc, &k, &err, want);
}

static void test_several_files_are_one(void **state)
{
    char list[512], want[512];

    put("a", "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
             "users: [{name: u, user: {token: first}}]\n");
    put("b", "current-context: c\n"
             "users: [{name: u, user: {token: second, username: lost}}]\n"
             "clusters: [{name: k, cluster: {server: 'https://h', certificate-authority: x}}]\n");
    put("empty", "");
    snprintf(list, sizeof(list), "%s::%s:%s:%s", path("missing"), path("empty"), path("a"),
             path("b"));
    snprintf(want, sizeof(want), "https://h default ca_file=%s/x token=first", dir);
    expect_load(&(struct kubeconfig_opts){.env_paths = list}, want);
    expect_load(&(struct kubeconfig_opts){.env_paths = list, .path = path("empty")},
                "http://localhost:8080 default guess");
    expect_load(&(struct kubeconfig_opts){.path = path("missing")}, "missing");
    assert_int_equal(mkdir(path("home"), 0700), 0);
    assert_int_equal(mkdir(path("home/.kube"), 0700), 0);
    put("home/.kube/config", CHOICE("server: 'https://home'", "token: t"));
    expect_load(&(struct kubeconfig_opts){.home = path("home")}, "https://home ns1 token=t");
    expect_load(&(struct kubeconfig_opts){.home = path("nowhere")},
                "http://localhost:8080 default guess");
}

static void test_in_a_pod(void **state)
{
    struct kubeconfig_opts o = {
        .service_host = "10.0.0.1", .service_port = "443", .account_dir = dir};
    char want[512];

    expect_load(&o, "http://localhost:8080 default guess"); /* no token: not in a pod */
    put("token", "t1");
    put("namespace", "work\n");
    snprintf(want, sizeof(want),
             "https://10.0.0.1:443 work ca_file=%s/ca.crt token_file=%s/token"
             " in-cluster",
             dir, dir);
    expect_load(&o, want);
    o.service_host = "fd00::1";
    snprintf(want, sizeof(want),
             "https://[fd00::1]:443 work ca_file=%s/ca.crt token_file=%s/token"
             " in-cluster",
             dir, dir);
    expect_load(&o, want);
    o.service_port = "";
    expect_load(&o, "http://localhost:8080 default guess");
}

/* ---- plugins ---- */

#define CREDENTIAL(status_)                                                                        \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","             \
    "\"status\":{" status_ "}}"

static void test_what_a_plugin_may_say(void **state)
{
    static const struct {
        const char *text, *want; /* "token cert key expiry" or the message */
    } cases[] = {
        {CREDENTIAL("\"token\":\"t\""), "t - - never"},
        {CREDENTIAL("\"token\":\"t\",\"expirationTimestamp\":\"1970-01-01T00:00:05Z\""), "t - - 5"},
        {CREDENTIAL("\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\""), "- c k never"},
        {CREDENTIAL("\"clientCertificateData\":\"c\""), "only one of certificate and key"},
        {CREDENTIAL(""), "neither token nor certificate"},
        {CREDENTIAL("\"token\":\"a\\nX: y\""), "holds blanks"},
        {CREDENTIAL("\"token\":\"t\",\"expirationTimestamp\":\"soon\""), "soon"},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}",
         "want an ExecCredential of client.authentication.k8s.io/v1"},
        {"{}", "want an ExecCredential"},
        {"oops", "line 1"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        struct exec_credential c = {0};
        struct hk_err err = {0};
        char have[600], when[32] = "never";
        const int rc = exec_credential_parse(hk_str(cases[i].text),
                                             "client.authentication.k8s.io/v1", &c, &err);
        if (c.expires_ns != INT64_MAX) {
            snprintf(when, sizeof(when), "%lld", (long long)(c.expires_ns / 1000000000));
        }
        snprintf(have, sizeof(have), "%s %s %s %s", c.token ? c.token : "-",
                 c.cert_pem ? c.cert_pem : "-", c.key_pem ? c.key_pem : "-", when);
        if (!strstr(rc < 0 ? err.text : have, cases[i].want)) {
            fail_msg("%s: want '%s', have '%s'", cases[i].text, cases[i].want,
                     rc < 0 ? err.text : have);
        }
        exec_credential_fini(&c);
    }
}

struct run {
    bool done;
    int rc;
    char token[1024], text[512];
};

static void on_done(void *ctx, int rc, struct exec_credential *cred, const struct hk_err *err)
{
    struct run *r = ctx;

    r->done = true;
    r->rc = rc;
    snprintf(r->token, sizeof(r->token), "%s", cred && cred->token ? cred->token : "");
    snprintf(r->text, sizeof(r->text), "%s", err->text);
}

static struct run run_plugin(const char *script, int64_t timeout_ms)
{
    struct net_loop *loop = net_loop_new(hk_clock_system());
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct kubeconfig k = {0};
    struct exec_plugin *p = NULL;
    struct run r = {0};
    struct hk_err err = {0};

    put("plugin", script);
    assert_int_equal(chmod(path("plugin"), 0700), 0);
    hk_buf_addf(&text,
                CHOICE("server: 'https://h'",
                       "exec: {apiVersion: client.authentication.k8s.io/v1, command: %s/plugin, "
                       "args: [a1], env: [{name: EXTRA, value: e1}], provideClusterInfo: true, "
                       "interactiveMode: IfAvailable}"),
                dir);
    assert_int_equal(
        kubeconfig_parse(hk_buf_str(&text), "/", &(struct kubeconfig_opts){0}, &k, &err), 0);
    const struct exec_plugin_opts o = {
        .loop = loop, .config = &k, .timeout_ms = timeout_ms, .done = on_done, .ctx = &r};
    r.rc = exec_plugin_start(&o, &p, &err);
    snprintf(r.text, sizeof(r.text), "%s", err.text);
    while (p && !r.done) {
        assert_int_equal(net_loop_turn(loop, 100, &err), 0);
    }
    exec_plugin_free(p);
    kubeconfig_fini(&k);
    net_loop_free(loop);
    return r;
}

static void test_what_a_plugin_hears(void **state)
{
    static const char user[] = "exec: {apiVersion: client.authentication.k8s.io/v1, command: p, "
                               "interactiveMode: Never, provideClusterInfo: %s}";
    static const struct {
        const char *cluster, *wants, *told;
    } cases[] = {
        {"server: 'https://h'", "false", ""},
        {"server: 'https://h'", "true", ",\"cluster\":{\"server\":\"https://h\"}"},
        {"server: 'https://h', certificate-authority-data: Q0E=, tls-server-name: api, "
         "proxy-url: 'http://p', disable-compression: true, "
         "extensions: [{name: other, extension: 1}, "
         "{name: client.authentication.k8s.io/exec, extension: {audience: a}}]",
         "true",
         ",\"cluster\":{\"server\":\"https://h\",\"tls-server-name\":\"api\",\"proxy-url\":"
         "\"http://p\",\"certificate-authority-data\":\"Q0E=\",\"disable-compression\":true,"
         "\"config\":{\"audience\":\"a\"}}"},
        {"server: 'https://h', insecure-skip-tls-verify: true", "true",
         ",\"cluster\":{\"server\":\"https://h\",\"insecure-skip-tls-verify\":true}"},
    };

    for (size_t i = 0; i < HK_LEN(cases); i++) {
        HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, who = {0}, info = {0}, want = {0};
        struct kubeconfig k = {0};
        struct hk_err err = {0};

        hk_buf_addf(&who, user, cases[i].wants);
        hk_buf_addf(&text, CHOICE("%s", "%s"), cases[i].cluster, who.data);
        if (kubeconfig_parse(hk_buf_str(&text), "/", &(struct kubeconfig_opts){0}, &k, &err) < 0) {
            fail_msg("%s in %s", err.text, text.data);
        }
        exec_plugin_info(&k, false, &info);
        hk_buf_addf(&want,
                    "{\"kind\":\"ExecCredential\",\"apiVersion\":"
                    "\"client.authentication.k8s.io/v1\",\"spec\":{\"interactive\":false%s}}",
                    cases[i].told);
        assert_string_equal(info.data, want.data);
        kubeconfig_fini(&k);
    }
}

static void test_plugins_run(void **state)
{
    struct run r = run_plugin(
        "#!/bin/sh\n"
        "case \"$KUBERNETES_EXEC_INFO\" in *'\"interactive\":false,\"cluster\":{\"server\":"
        "\"https://h\"}'*) ;; *) exit 9;; esac\n"
        "printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
        "\"status\":{\"token\":\"%s-%s\"}}' \"$1\" \"$EXTRA\"\n",
        10000);
    assert_string_equal(r.text, "");
    assert_int_equal(r.rc, 0);
    assert_string_equal(r.token, "a1-e1");
    r = run_plugin("#!/bin/sh\nexit 3\n", 10000);
    assert_int_equal(r.rc, -HK_EIO);
    assert_non_null(strstr(r.text, "failed with exit code 3"));
    r = run_plugin("#!/bin/sh\necho nonsense\n", 10000);
    assert_int_equal(r.rc, -HK_EINVAL);
    r = run_plugin("#!/bin/sh\nexec sleep 100\n", 50);
    assert_int_equal(r.rc, -HK_ETIMEOUT);
    r = run_plugin("#!/bin/sh\nexec cat /dev/zero\n", 10000);
    assert_int_equal(r.rc, -HK_ELIMIT);
    r = run_plugin("#!/nowhere/interpreter\n", 10000);
    assert_int_equal(r.rc, -HK_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_file),
        cmocka_unit_test(test_options_override),
        cmocka_unit_test(test_several_files_are_one),
        cmocka_unit_test(test_in_a_pod),
        cmocka_unit_test(test_what_a_plugin_may_say),
        cmocka_unit_test(test_what_a_plugin_hears),
        cmocka_unit_test(test_plugins_run),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
