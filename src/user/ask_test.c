// SPDX-License-Identifier: Apache-2.0
// Reaching a server: which one is asked when options, the environment and files name several, and
// one request at a time over the client.
#include "user/ask.h"

#include "base/file.h"
#include "client/script_test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A home directory with files that name servers, and nothing else in the environment. */
struct fixture {
    char home[32], config[64], other[64], state[64];
    struct hk_err err;
};

static void write_config(const char *path, const char *server)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    hk_buf_addf(&text,
                "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: "
                "{cluster: k, user: u}}], clusters: [{name: k, cluster: {server: '%s', "
                "insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: t}}]}\n",
                server);
    assert_int_equal(hk_write_file(path, hk_buf_str(&text), NULL), 0);
}

static int setup(void **state)
{
    struct fixture *f = hk_zalloc(sizeof(*f));
    char dir[64];

    snprintf(f->home, sizeof(f->home), "/tmp/ask-XXXXXX");
    assert_non_null(mkdtemp(f->home));
    snprintf(dir, sizeof(dir), "%s/.kube", f->home);
    assert_int_equal(mkdir(dir, 0700), 0);
    snprintf(f->config, sizeof(f->config), "%s/.kube/config", f->home);
    snprintf(f->other, sizeof(f->other), "%s/other", f->home);
    snprintf(f->state, sizeof(f->state), "%s/state", f->home);
    setenv("HOME", f->home, 1);
    setenv("XDG_STATE_HOME", f->state, 1);
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_MASTER");
    unsetenv("KUBERNETES_SERVICE_HOST");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char dir[64];

    unlink(f->config);
    unlink(f->other);
    snprintf(dir, sizeof(dir), "%s/.kube", f->home);
    rmdir(dir);
    rmdir(f->home);
    hk_free(f);
    return 0;
}

static const char *server_of(struct fixture *f, const char *kubeconfig, const char *master)
{
    static char server[128];
    struct ask a;

    f->err = (struct hk_err){0};
    const int rc = ask_open(&a, kubeconfig, master, &f->err);
    snprintf(server, sizeof(server), "%s", rc < 0 ? "none" : client_config(a.client)->server);
    ask_close(&a);
    return server;
}

/* ---- which server ---- */

static void the_file_in_the_home_directory_is_the_default(void **state)
{
    struct fixture *f = *state;

    write_config(f->config, "https://home:1");
    assert_string_equal(server_of(f, "", ""), "https://home:1");
}

static void a_given_file_precedes_the_environment_and_that_the_default(void **state)
{
    struct fixture *f = *state;
    char env[80];

    write_config(f->config, "https://home:1");
    write_config(f->other, "https://other:1");
    snprintf(env, sizeof(env), "%s", f->other);
    setenv("KUBECONFIG", env, 1);
    assert_string_equal(server_of(f, "", ""), "https://other:1");
    assert_string_equal(server_of(f, f->config, ""), "https://home:1");
}

static void a_given_address_precedes_that_of_the_file(void **state)
{
    struct fixture *f = *state;

    write_config(f->config, "https://home:1");
    assert_string_equal(server_of(f, "", "https://given:1"), "https://given:1");
}

static void volcanos_variable_is_the_last_resort(void **state)
{
    struct fixture *f = *state;

    setenv("KUBERNETES_MASTER", "https://master:1", 1);
    assert_string_equal(server_of(f, "", ""), "https://master:1");
    write_config(f->config, "https://home:1");
    assert_string_equal(server_of(f, "", ""), "https://home:1");
}

static void a_given_file_must_exist(void **state)
{
    struct fixture *f = *state;

    assert_string_equal(server_of(f, "/no/such/file", ""), "none");
    assert_string_equal(f->err.text, "stat /no/such/file: no such file or directory");
}

/* ---- requests ---- */

#define POD                                                                                        \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\",\"namespace\":\"d\","    \
    "\"resourceVersion\":\"1\"}}"
#define ANSWER(status, type, body)                                                                 \
    "HTTP/1.1 " status "\r\nContent-Type: " type "\r\nConnection: close\r\n\r\n" body

/* A connection to a server on this machine, which listens on the loop of the connection: the port
 * number comes first. */
static void open_server(struct fixture *f, struct ask *a, struct script *s,
                        const struct script_line *lines, uint32_t n)
{
    struct net_loop *before = net_loop_new(hk_clock_system());
    char url[64];

    script_open(s, before);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", s->port);
    net_watch_del(s->watch);
    net_loop_free(before);
    assert_int_equal(ask_open(a, "", url, &f->err), 0);
    s->loop = a->loop;
    s->watch = net_watch_add(a->loop, s->fd, EPOLLIN, script_on_dial, s);
    script_play(s, lines, n);
}

static void close_server(struct ask *a, struct script *s)
{
    script_close(s);
    ask_close(a);
}

static void a_request_returns_its_answer(void **state)
{
    static const struct script_line lines[] = {
        {ANSWER("200 OK", "application/json", POD), SCRIPT_CLOSE}};
    const struct port_request q = {.verb = PORT_GET, .ns = HK_STR("d"), .name = HK_STR("p")};
    struct fixture *f = *state;
    HK_AUTO(port_answer_fini) struct port_answer pod = {0};
    struct port_request get = q;
    struct script s = {0};
    struct ask a;

    get.kind = api_kind(API_POD);
    open_server(f, &a, &s, lines, HK_LEN(lines));
    assert_int_equal(ask(&a, &get, &pod, &f->err), 0);
    assert_int_equal(pod.objects.len, 1);
    assert_true(hk_str_is(pod.objects.at[0]->name, "p"));
    assert_string_equal(s.log.data, "GET /api/v1/namespaces/d/pods/p\n");
    close_server(&a, &s);
}

static void a_text_is_cut_at_its_limit(void **state)
{
    static const struct script_line lines[] = {
        {ANSWER("200 OK", "text/plain", "0123456789"), SCRIPT_CLOSE},
        {ANSWER("403 Forbidden", "text/plain", "no"), SCRIPT_CLOSE}};
    struct fixture *f = *state;
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct script s = {0};
    struct ask a;

    open_server(f, &a, &s, lines, HK_LEN(lines));
    assert_int_equal(ask_text(&a, "/readyz?verbose", 4, &text, &f->err), 0);
    assert_string_equal(text.data, "0123");
    assert_string_equal(s.log.data, "GET /readyz?verbose\n");
    assert_int_equal(ask_text(&a, "/readyz?verbose", 4, &text, &f->err), -HK_EDENIED);
    close_server(&a, &s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_file_in_the_home_directory_is_the_default),
        TEST(a_given_file_precedes_the_environment_and_that_the_default),
        TEST(a_given_address_precedes_that_of_the_file),
        TEST(volcanos_variable_is_the_last_resort),
        TEST(a_given_file_must_exist),
        TEST(a_request_returns_its_answer),
        TEST(a_text_is_cut_at_its_limit),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("user/ask", tests, NULL, NULL);
}
