// SPDX-License-Identifier: Apache-2.0
// Runs a credential plugin: spawned with its output on a pipe and a pidfd. The run is over when the
// plugin has exited (output of its own children is ignored) or its time is up.
#include "client/exec_plugin.h"

#include "base/file.h"
#include "base/vec.h"
#include "codec/timefmt.h"
#include "net/cert.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MAX_OUTPUT = 1 << 20, MAX_AUTHORITY = 1 << 20 };

struct exec_plugin {
    struct exec_plugin_opts o;
    int pidfd, out; /* -1: none */
    struct net_watch *exit_watch, *out_watch;
    struct net_timer *timer;
    struct hk_buf text;
};

/* ---- input and output of the plugin ---- */

static void exec_plugin_write_member(const char *key, const char *value, struct hk_buf *out)
{
    if (value) {
        hk_buf_addf(out, ",\"%s\":", key);
        json_write_str(hk_str(value), out);
    }
}

/* Passes the contents, also of a file: the plugin may not be able to open our files. */
static void write_authority(const struct kubeconfig *k, struct hk_buf *out)
{
    HK_AUTO(hk_buf_fini) struct hk_buf file = {0};
    const char *pem = k->ca_pem;

    if (k->ca_file && hk_read_file(k->ca_file, MAX_AUTHORITY, &file, NULL) == 0) {
        pem = file.data;
    }
    if (pem) {
        hk_buf_adds(out, ",\"certificate-authority-data\":\"");
        cert_write_base64(pem, out);
        hk_buf_addc(out, '"');
    }
}

static void write_cluster(const struct kubeconfig *k, struct hk_buf *out)
{
    hk_buf_adds(out, ",\"cluster\":{\"server\":");
    json_write_str(hk_str(k->server), out);
    exec_plugin_write_member("tls-server-name", k->tls_server_name, out);
    exec_plugin_write_member("proxy-url", k->proxy_url, out);
    if (k->insecure) {
        hk_buf_adds(out, ",\"insecure-skip-tls-verify\":true");
    }
    write_authority(k, out);
    if (k->disable_compression) {
        hk_buf_adds(out, ",\"disable-compression\":true");
    }
    if (k->exec->config) {
        hk_buf_addf(out, ",\"config\":%s", k->exec->config);
    }
    hk_buf_addc(out, '}');
}

void exec_plugin_info(const struct kubeconfig *k, bool interactive, struct hk_buf *out)
{
    hk_buf_adds(out, "{\"kind\":\"ExecCredential\",\"apiVersion\":");
    json_write_str(hk_str(k->exec->api_version), out);
    hk_buf_addf(out, ",\"spec\":{\"interactive\":%s", interactive ? "true" : "false");
    if (k->exec->cluster_info) {
        write_cluster(k, out);
    }
    hk_buf_adds(out, "}}");
}

void exec_credential_fini(struct exec_credential *c)
{
    hk_free(c->token);
    hk_free(c->cert_pem);
    hk_free(c->key_pem);
    *c = (struct exec_credential){0};
}

static char *copy_member(const struct json *obj, const char *key)
{
    const struct hk_str s = json_str_field(obj, key);

    return s.n > 0 ? hk_strndup(s.s, s.n) : NULL;
}

/* A token becomes a header: it must not contain blanks or control characters. */
static bool token_clean(const char *token)
{
    for (const char *p = token; p && *p; p++) {
        if ((unsigned char)*p <= ' ' || *p == 0x7f) {
            return false;
        }
    }
    return true;
}

static int check_credential(const struct exec_credential *c, struct hk_err *err)
{
    if (!c->token && !c->cert_pem) {
        return hk_fail(err, HK_EINVAL, "the credential has neither token nor certificate");
    }
    if (!c->cert_pem != !c->key_pem) {
        return hk_fail(err, HK_EINVAL, "the credential has only one of certificate and key");
    }
    if (!token_clean(c->token)) {
        return hk_fail(err, HK_EINVAL, "the credential's token holds blanks");
    }
    return 0;
}

int exec_credential_parse(struct hk_str text, const char *api_version, struct exec_credential *ret,
                          struct hk_err *err)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    struct json doc;
    int rc = json_parse(text, 0, &a, &doc, err);

    if (rc < 0) {
        return rc;
    }
    const struct hk_str version = json_str_field(&doc, "apiVersion");
    if (!hk_str_is(json_str_field(&doc, "kind"), "ExecCredential") ||
        !hk_str_is(version, api_version)) {
        return hk_fail(err, HK_EINVAL, "want an ExecCredential of %s, have apiVersion '%.*s'",
                       api_version, HK_FMT(version));
    }
    const struct json *status = json_get(&doc, "status");
    const struct hk_str expires = json_str_field(status, "expirationTimestamp");
    struct exec_credential c = {.token = copy_member(status, "token"),
                                .cert_pem = copy_member(status, "clientCertificateData"),
                                .key_pem = copy_member(status, "clientKeyData"),
                                .expires_ns = INT64_MAX};
    rc = check_credential(&c, err);
    if (rc == 0 && expires.n > 0) {
        rc = time_parse(expires, &c.expires_ns, err);
    }
    if (rc < 0) {
        exec_credential_fini(&c);
        return rc;
    }
    *ret = c;
    return 0;
}

/* ---- the end ---- */

static void close_out(struct exec_plugin *p)
{
    net_watch_del(p->out_watch);
    p->out_watch = NULL;
    if (p->out >= 0) {
        close(p->out);
    }
    p->out = -1;
}

static void close_child(struct exec_plugin *p)
{
    net_watch_del(p->exit_watch);
    p->exit_watch = NULL;
    if (p->pidfd >= 0) {
        close(p->pidfd);
    }
    p->pidfd = -1;
}

static void kill_child(struct exec_plugin *p)
{
    siginfo_t info;

    if (p->pidfd >= 0) {
        pidfd_send_signal(p->pidfd, SIGKILL, NULL, 0);
        while (waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED) < 0 && errno == EINTR) {
        }
    }
}

/* Reports to the owner, who may free p. */
static void exec_plugin_finish(struct exec_plugin *p, int rc, struct exec_credential *cred,
                               struct hk_err *err)
{
    const struct kubeconfig_exec *e = p->o.config->exec;

    close_out(p);
    close_child(p);
    net_timer_off(p->timer);
    if (rc < 0) {
        hk_wrap(err, rc, "exec plugin '%s'", e->command);
    }
    p->o.done(p->o.ctx, rc, rc < 0 ? NULL : cred, err);
}

static void on_timeout(void *ctx)
{
    struct exec_plugin *p = ctx;
    struct hk_err err = {0};

    kill_child(p);
    exec_plugin_finish(
        p, hk_fail(&err, HK_ETIMEOUT, "no answer after %lld ms", (long long)p->o.timeout_ms), NULL,
        &err);
}

/* Reads the pipe; false: the output is too large. */
static bool exec_plugin_read_output(struct exec_plugin *p)
{
    for (;;) {
        char chunk[4096];
        const ssize_t n = read(p->out, chunk, sizeof(chunk));
        if (n > 0) {
            hk_buf_add(&p->text, chunk, (size_t)n);
            if (p->text.len > MAX_OUTPUT) {
                return false;
            }
        } else if (n == 0 || errno != EINTR) {
            if (n == 0) {
                close_out(p);
            }
            return true;
        }
    }
}

static void on_output(void *ctx, uint32_t events)
{
    struct exec_plugin *p = ctx;
    struct hk_err err = {0};

    if (!exec_plugin_read_output(p)) {
        kill_child(p);
        exec_plugin_finish(p, hk_fail(&err, HK_ELIMIT, "printed more than %d bytes", MAX_OUTPUT),
                           NULL, &err);
    }
}

static int read_outcome(struct exec_plugin *p, struct exec_credential *ret, struct hk_err *err)
{
    siginfo_t info = {0};

    if (waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED) < 0) {
        return hk_fail(err, HK_EIO, "cannot wait for it: %m");
    }
    if (info.si_code != CLD_EXITED || info.si_status != 0) {
        return hk_fail(err, HK_EIO, "%s %d",
                       info.si_code == CLD_EXITED ? "failed with exit code" : "died of signal",
                       info.si_status);
    }
    if (p->out >= 0 && !exec_plugin_read_output(p)) {
        return hk_fail(err, HK_ELIMIT, "printed more than %d bytes", MAX_OUTPUT);
    }
    return exec_credential_parse(hk_buf_str(&p->text), p->o.config->exec->api_version, ret, err);
}

static void on_exit_of_child(void *ctx, uint32_t events)
{
    struct exec_plugin *p = ctx;
    struct exec_credential cred = {0};
    struct hk_err err = {0};
    const int rc = read_outcome(p, &cred, &err);

    exec_plugin_finish(p, rc, &cred, &err);
    exec_credential_fini(&cred);
}

/* ---- starting ---- */

static char **make_env(const struct kubeconfig *k, bool interactive, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf info = {0};
    const struct kubeconfig_exec *e = k->exec;
    uint32_t n = 0, have = 0;

    while (environ[have]) {
        have++;
    }
    char **env = hk_arena_array(a, have + e->nenv + 2, sizeof(*env));
    exec_plugin_info(k, interactive, &info);
    /* getenv finds the first of two variables with the same name. */
    env[n++] = hk_arena_printf(a, "KUBERNETES_EXEC_INFO=%s", info.data);
    for (uint32_t i = 0; i < e->nenv; i++) {
        env[n++] = hk_arena_printf(a, "%s=%s", e->env[i].name, e->env[i].value);
    }
    for (uint32_t i = 0; i < have; i++) {
        env[n++] = environ[i];
    }
    env[n] = NULL;
    return env;
}

static char **make_args(const struct kubeconfig_exec *e, struct hk_arena *a)
{
    char **args = hk_arena_array(a, e->nargs + 2, sizeof(*args));

    args[0] = hk_arena_strndup(a, e->command, strlen(e->command));
    for (uint32_t i = 0; i < e->nargs; i++) {
        args[i + 1] = hk_arena_strndup(a, e->args[i], strlen(e->args[i]));
    }
    args[e->nargs + 1] = NULL;
    return args;
}

/* Resets the signal mask and SIGPIPE: the loop blocks signals that it reads itself. */
static int exec_plugin_spawn(const struct kubeconfig *k, bool interactive, int out, pid_t *ret)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, pipe_only;

    sigemptyset(&none);
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &pipe_only);
    if (!interactive) {
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    const int rc = posix_spawnp(ret, k->exec->command, &files, &attr, make_args(k->exec, &a),
                                make_env(k, interactive, &a));
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

static int exec_plugin_start_command(struct exec_plugin *p, bool interactive, struct hk_err *err)
{
    const struct kubeconfig_exec *e = p->o.config->exec;
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC) < 0) {
        return hk_fail(err, HK_EIO, "cannot make a pipe: %m");
    }
    p->out = fds[0];
    const int rc = exec_plugin_spawn(p->o.config, interactive, fds[1], &pid);
    close(fds[1]);
    if (rc != 0) {
        return hk_fail(err, HK_ENOTFOUND, "cannot start it: %s%s%s", strerror(rc),
                       e->install_hint ? ": " : "", e->install_hint ? e->install_hint : "");
    }
    p->pidfd = pidfd_open(pid, 0);
    hk_assert(p->pidfd >= 0); /* our child, not yet waited for: it exists, dead or alive */
    fcntl(p->out, F_SETFL, O_NONBLOCK);
    p->exit_watch = net_watch_add(p->o.loop, p->pidfd, EPOLLIN, on_exit_of_child, p);
    p->out_watch = net_watch_add(p->o.loop, p->out, EPOLLIN, on_output, p);
    net_timer_at(p->timer, net_loop_now_ns(p->o.loop) + p->o.timeout_ms * 1000000);
    return 0;
}

int exec_plugin_start(const struct exec_plugin_opts *o, struct exec_plugin **ret,
                      struct hk_err *err)
{
    const struct kubeconfig_exec *e = o->config->exec;
    const bool can_ask = o->terminal && isatty(STDIN_FILENO);
    int rc = 0;

    if (e->interactive == KUBECONFIG_INTERACTIVE_ALWAYS && !can_ask) {
        return hk_fail(err, HK_EDENIED, "exec plugin '%s' cannot support interactive mode",
                       e->command);
    }
    struct exec_plugin *p = hk_zalloc(sizeof(*p));
    p->o = *o;
    p->pidfd = p->out = -1;
    p->timer = net_timer_new(o->loop, on_timeout, p);
    rc = exec_plugin_start_command(p, can_ask && e->interactive != KUBECONFIG_INTERACTIVE_NEVER,
                                   err);
    if (rc < 0) {
        exec_plugin_free(p);
        return hk_wrap(err, rc, "exec plugin '%s'", e->command);
    }
    *ret = p;
    return 0;
}

void exec_plugin_free(struct exec_plugin *p)
{
    if (!p) {
        return;
    }
    kill_child(p);
    close_out(p);
    close_child(p);
    net_timer_free(p->timer);
    hk_buf_fini(&p->text);
    hk_free(p);
}
