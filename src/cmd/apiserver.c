// SPDX-License-Identifier: Apache-2.0
// hekla apiserver: the store and the Kubernetes API over it, in one process.
#include "cmd/verb.h"

#include "apiserver/bootstrap.h"
#include "apiserver/server.h"
#include "apiserver/setup.h"
#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum {
    DEFAULT_PORT = 6443,
    STOP_GRACE_MS = 5000,
    MAX_TIMEOUT_S = 86400,
    MAX_CONNECTIONS = 1000000,
    MAX_HISTORY = 10000000,
};

struct request {
    const char *dir;
    char addr[64];
    uint16_t port;
    int64_t header_timeout_s, idle_timeout_s, max_connections, history;
};

static const struct option_row options[] = {
    {'d', "data-dir", "DIR", NULL,
     "Where everything is kept: the database, certificates, tokens and the kubeconfig. Made, with "
     "access for its owner only, when it does not exist. One server at a time can use it."},
    {'l', "listen", "ADDR:PORT", NULL,
     "The address to serve on (default 127.0.0.1:6443). An IPv6 address is written in brackets; "
     "port 0 takes a free one. 0.0.0.0 or [::] makes the API reachable from other machines."},
    {0, "header-timeout", "SECONDS", NULL,
     "How long a request may take to arrive whole, the TLS handshake included, before its "
     "connection is cut (default 30)."},
    {0, "idle-timeout", "SECONDS", NULL,
     "How long a connection may stay without a request, and a client may leave an answer unread, "
     "before the connection is closed (default 90). A watch without events is not idle."},
    {0, "max-connections", "N", NULL,
     "How many connections may be open at a time (default 8192, or what the limit of descriptors "
     "allows when that is less). Further ones are closed at once."},
    {0, "history", "N", NULL,
     "How many of the latest changes are kept for watches to begin from (default 100000, of at "
     "most 256 MiB). A watch that falls behind them is told 410 and begins anew."},
};

static int take_listen(struct request *q, const char *value, struct hk_err *err)
{
    struct hk_str host = hk_str(value);
    const char *colon = strrchr(value, ':');
    int64_t port;

    if (!colon || !hk_str_int(hk_str(colon + 1), &port) || port < 0 || port > UINT16_MAX) {
        return hk_fail(err, HK_EINVAL, "option --listen is '%s', want ADDR:PORT", value);
    }
    host.n = (size_t)(colon - value);
    if (host.n > 1 && host.s[0] == '[' && host.s[host.n - 1] == ']') {
        host = (struct hk_str){host.s + 1, host.n - 2};
    }
    if (host.n == 0 || host.n >= sizeof(q->addr)) {
        return hk_fail(err, HK_EINVAL, "option --listen is '%s', want ADDR:PORT", value);
    }
    snprintf(q->addr, sizeof(q->addr), "%.*s", HK_FMT(host));
    q->port = (uint16_t)port;
    return 0;
}

static int take_number(const char *name, const char *value, int64_t max, int64_t *ret,
                       struct hk_err *err)
{
    if (!hk_str_int(hk_str(value), ret) || *ret < 1 || *ret > max) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want a number from 1 to %lld", name,
                       value, (long long)max);
    }
    return 0;
}

static int take(void *ctx, const struct option_row *row, const char *value, struct hk_err *err)
{
    struct request *q = ctx;

    if (!row) {
        return hk_fail(err, HK_EINVAL, "unexpected '%s'", value);
    }
    if (strcmp(row->name, "listen") == 0) {
        return take_listen(q, value, err);
    }
    if (strcmp(row->name, "header-timeout") == 0) {
        return take_number(row->name, value, MAX_TIMEOUT_S, &q->header_timeout_s, err);
    }
    if (strcmp(row->name, "idle-timeout") == 0) {
        return take_number(row->name, value, MAX_TIMEOUT_S, &q->idle_timeout_s, err);
    }
    if (strcmp(row->name, "max-connections") == 0) {
        return take_number(row->name, value, MAX_CONNECTIONS, &q->max_connections, err);
    }
    if (strcmp(row->name, "history") == 0) {
        return take_number(row->name, value, MAX_HISTORY, &q->history, err);
    }
    q->dir = value;
    return 0;
}

/* ---- running ---- */

struct daemon {
    struct hk_clock *clock;
    struct hk_rand rand;
    struct net_loop *loop;
    struct store *store;
    struct rest *rest;
    struct setup setup;
    struct server *server;
};

static void on_signal(void *ctx, int signo)
{
    struct daemon *d = ctx;

    net_loop_stop(d->loop);
}

static int catch_signals(struct daemon *d, struct hk_err *err)
{
    static const int signals[] = {SIGTERM, SIGINT};

    signal(SIGPIPE, SIG_IGN);
    return net_signals(d->loop, signals, HK_LEN(signals), on_signal, d, err);
}

/* Each watch holds a connection: take as many descriptors as the machine allows. */
static void raise_limits(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static int make_dir(const char *dir, struct hk_err *err)
{
    if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
        return hk_fail(err, HK_EIO, "cannot make the directory '%s': %m", dir);
    }
    return 0;
}

static int open_store(struct daemon *d, const struct request *q, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    uint64_t seed;

    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        return hk_fail(err, HK_EIO, "cannot get random bytes: %m");
    }
    hk_rand_seed(&d->rand, seed);
    hk_buf_addf(&path, "%s/store.db", q->dir);
    const struct store_opts store = {.path = path.data, .ring_events = (uint32_t)q->history};
    const int rc = store_open(&store, &d->store, err);

    if (rc < 0) {
        return rc;
    }
    d->rest = rest_new(&(struct rest_opts){.store = d->store, .clock = d->clock, .rand = &d->rand});
    int made = bootstrap_crds(d->rest, err);
    made = made < 0 ? made : bootstrap_objects(d->rest, err);
    return made < 0 ? made : bootstrap_roles(d->rest, err);
}

static int serve(struct daemon *d, const struct request *q, struct hk_err *err)
{
    const struct server_opts o = {
        .loop = d->loop,
        .rest = d->rest,
        .store = d->store,
        .clock = d->clock,
        .rand = &d->rand,
        .addr = hk_str(q->addr),
        .port = q->port,
        .cert_pem = d->setup.serving.cert_pem,
        .key_pem = d->setup.serving.key_pem,
        .client_ca_pem = d->setup.ca.cert_pem,
        .auth = d->setup.auth,
        .token_key = hk_str(d->setup.account_key),
        .header_timeout_ms = q->header_timeout_s * 1000,
        .idle_timeout_ms = q->idle_timeout_s * 1000,
        .max_connections = (uint32_t)q->max_connections,
    };

    return server_new(&o, &d->server, err);
}

/* What a client on this machine dials. */
static void write_url(const struct daemon *d, const struct request *q, struct hk_buf *out)
{
    const bool any = strcmp(q->addr, "0.0.0.0") == 0 || strcmp(q->addr, "::") == 0;
    const char *host = any ? "127.0.0.1" : q->addr;

    hk_buf_addf(out, strchr(host, ':') ? "https://[%s]:%u" : "https://%s:%u", host,
                server_port(d->server));
}

static int announce(const struct daemon *d, const struct request *q, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf url = {0}, line = {0};

    write_url(d, q, &url);
    const int rc = setup_write_kubeconfig(&d->setup, q->dir, url.data, err);
    if (rc < 0) {
        return rc;
    }
    hk_buf_addf(&line, "hekla apiserver ready at %s, kubeconfig %s/kubeconfig\n", url.data, q->dir);
    return verb_print(&line) == EXIT_OK ? 0 : -HK_EIO;
}

static int work(struct daemon *d, const struct request *q, struct hk_err *err)
{
    int rc = catch_signals(d, err);

    rc = rc < 0 ? rc : make_dir(q->dir, err);
    rc = rc < 0 ? rc : open_store(d, q, err);
    rc = rc < 0 ? rc : setup_load(q->dir, q->addr, d->clock, &d->setup, err);
    if (rc == 0) {
        rest_publish_ca(d->rest, d->setup.ca.cert_pem);
    }
    rc = rc < 0 ? rc : serve(d, q, err);
    rc = rc < 0 ? rc : announce(d, q, err);
    rc = rc < 0 ? rc : net_loop_run(d->loop, err);
    if (d->server) {
        server_stop(d->server, STOP_GRACE_MS);
    }
    return rc;
}

static int apiserver(const struct request *q)
{
    struct daemon d = {.clock = hk_clock_system()};
    struct hk_err err = {0};

    umask(077); /* keys, tokens and everybody's secrets */
    raise_limits();
    d.loop = net_loop_new(d.clock);
    const int rc = work(&d, q, &err);
    server_free(d.server);
    rest_free(d.rest);
    store_close(d.store);
    setup_fini(&d.setup);
    net_loop_free(d.loop);
    if (rc < 0 && err.text[0] != '\0') {
        verb_complain("apiserver: %s", err.text);
    }
    return rc < 0 ? EXIT_BAD : EXIT_OK;
}

static int run(const struct verb *v, int argc, char **argv)
{
    struct request q = {.addr = "127.0.0.1", .port = DEFAULT_PORT};
    const int rc = verb_parse(v, argc, argv, take, &q);

    if (rc != 0) {
        return rc < 0 ? EXIT_BAD : EXIT_OK;
    }
    if (!q.dir) {
        return verb_complain("apiserver: want --data-dir DIR (see 'hekla help apiserver')");
    }
    return apiserver(&q);
}

const struct verb verb_apiserver = {
    .name = "apiserver",
    .args = "--data-dir DIR",
    .about = "serve the Kubernetes API from a directory on this machine",
    .options = options,
    .noption = HK_LEN(options),
    .text =
        "A Kubernetes API server without the cluster: keeps objects of the built-in kinds, of "
        "Volcano's kinds and of any CustomResourceDefinition in a durable database, and serves "
        "them "
        "to kubectl, client-go and everything else that speaks the API. A write that was answered "
        "survives a crash of the program and of the machine.\n"
        "The first start makes an authority, a serving certificate for localhost, 127.0.0.1, the "
        "host name and the listen address, and a token for the user admin. When the server is "
        "ready it prints one line with its address and the kubeconfig to use. Later starts keep "
        "the credentials; the kubeconfig always names the current address.\n"
        "The API is served over TLS only. Requests need a bearer token from DIR/tokens.csv, or a "
        "client certificate signed by DIR/ca.crt, or a token of a service account (kubectl create "
        "token). Members of the group system:masters may do everything, others what Roles, "
        "ClusterRoles and their bindings allow; the usual roles (cluster-admin, admin, edit, view) "
        "are there from the start. /version, /healthz, /livez and /readyz answer everybody; "
        "/metrics is in Prometheus' format.\n"
        "While the disk is full or fails, writes are answered with an error and /readyz says that "
        "the server is not ready; reads go on. Writes work again as soon as the disk does.\n"
        "SIGTERM and SIGINT end the server: watches are closed, requests under way are answered, "
        "and everything is on disk when the program exits.",
    .rest = "FILES\n"
            "       DIR/store.db               the objects and their history\n"
            "       DIR/kubeconfig             for kubectl; holds the administrator's token\n"
            "       DIR/tokens.csv             token,user,uid,\"group,group\" one per line, read "
            "at start\n"
            "       DIR/ca.crt, DIR/ca.key     the authority\n"
            "       DIR/sa.key                 signs the tokens of service accounts\n"
            "       DIR/server.crt, server.key the serving certificate; made anew before it ends\n"
            "\n"
            "EXIT STATUS\n"
            "       0  ended by a signal\n"
            "       1  could not start, or could not go on; one line on standard error says why\n"
            "\n"
            "EXAMPLES\n"
            "       An API server for a test, on a free port:\n"
            "           hekla apiserver --data-dir /tmp/api --listen 127.0.0.1:0\n"
            "\n"
            "       Use it:\n"
            "           export KUBECONFIG=/tmp/api/kubeconfig\n"
            "           kubectl create configmap greeting --from-literal=word=hello\n"
            "           kubectl get configmaps\n"
            "\n"
            "       The same with curl:\n"
            "           token=$(cut -d, -f1 /tmp/api/tokens.csv)\n"
            "           curl --cacert /tmp/api/ca.crt -H \"Authorization: Bearer $token\" \\\n"
            "               https://127.0.0.1:6443/api/v1/namespaces\n",
    .run = run,
};
