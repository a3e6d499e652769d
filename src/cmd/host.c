// SPDX-License-Identifier: Apache-2.0
// Opening a data directory, serving it, and ending well.
#include "cmd/host.h"

#include "apiserver/bootstrap.h"
#include "cmd/node_proxy.h"
#include "cmd/notify.h"

#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DEFAULT_PORT = 6443,
    STOP_GRACE_MS = 5000,
    MAX_TIMEOUT_S = 86400,
    MAX_CONNECTIONS = 1000000,
    MAX_HISTORY = 10000000,
};

/* ---- options ---- */

struct host_opts host_opts_default(void)
{
    return (struct host_opts){.addr = "127.0.0.1", .port = DEFAULT_PORT};
}

static int take_listen(struct host_opts *o, const char *value, struct hk_err *err)
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
    if (host.n == 0 || host.n >= sizeof(o->addr)) {
        return hk_fail(err, HK_EINVAL, "option --listen is '%s', want ADDR:PORT", value);
    }
    snprintf(o->addr, sizeof(o->addr), "%.*s", HK_FMT(host));
    o->port = (uint16_t)port;
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

bool host_take(struct host_opts *o, const struct option_row *row, const char *value, int *ret,
               struct hk_err *err)
{
    const struct {
        const char *name;
        int64_t max, *at;
    } numbers[] = {
        {"header-timeout", MAX_TIMEOUT_S, &o->header_timeout_s},
        {"idle-timeout", MAX_TIMEOUT_S, &o->idle_timeout_s},
        {"max-connections", MAX_CONNECTIONS, &o->max_connections},
        {"history", MAX_HISTORY, &o->history},
    };

    *ret = 0;
    if (strcmp(row->name, "listen") == 0) {
        *ret = take_listen(o, value, err);
        return true;
    }
    if (strcmp(row->name, "data-dir") == 0) {
        o->dir = value;
        return true;
    }
    for (size_t i = 0; i < HK_LEN(numbers); i++) {
        if (strcmp(row->name, numbers[i].name) == 0) {
            *ret = take_number(row->name, value, numbers[i].max, numbers[i].at, err);
            return true;
        }
    }
    return false;
}

/* ---- running ---- */

void host_stop(struct host *h)
{
    h->stopping = true;
    notify("STOPPING=1");
    net_loop_stop(h->loop);
}

static void on_signal(void *ctx, int signo)
{
    struct host *h = ctx;

    if (signo == SIGUSR1 && h->has_pods) {
        h->clearing = true;
    } else {
        host_stop(h);
    }
}

static int catch_signals(struct host *h, struct hk_err *err)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGUSR1};

    signal(SIGPIPE, SIG_IGN);
    return net_signals(h->loop, signals, HK_LEN(signals), on_signal, h, err);
}

void host_raise_limits(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static int open_store(struct host *h, const struct host_opts *o, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    uint64_t seed;

    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        return hk_fail(err, HK_EIO, "cannot get random bytes: %m");
    }
    hk_rand_seed(&h->rand, seed);
    hk_buf_addf(&path, "%s/store.db", o->dir);
    const struct store_opts store = {.path = path.data, .ring_events = (uint32_t)o->history};
    const int rc = store_open(&store, &h->store, err);

    if (rc < 0) {
        return rc;
    }
    h->rest = rest_new(&(struct rest_opts){.store = h->store, .clock = h->clock, .rand = &h->rand});
    int made = bootstrap_crds(h->rest, err);
    made = made < 0 ? made : bootstrap_objects(h->rest, err);
    return made < 0 ? made : bootstrap_roles(h->rest, err);
}

static int serve(struct host *h, const struct host_opts *o, struct hk_err *err)
{
    const struct server_opts opts = {
        .loop = h->loop,
        .rest = h->rest,
        .store = h->store,
        .clock = h->clock,
        .rand = &h->rand,
        .addr = hk_str(o->addr),
        .port = o->port,
        .cert_pem = h->setup.serving.cert_pem,
        .key_pem = h->setup.serving.key_pem,
        .client_ca_pem = h->setup.ca.cert_pem,
        .auth = h->setup.auth,
        .token_key = hk_str(h->setup.account_key),
        .node_api = node_proxy_api(h->node_proxy),
        .metrics = o->metrics,
        .header_timeout_ms = o->header_timeout_s * 1000,
        .idle_timeout_ms = o->idle_timeout_s * 1000,
        .max_connections = (uint32_t)o->max_connections,
    };

    return server_new(&opts, &h->server, err);
}

int host_open(struct host *h, const struct host_opts *o, struct hk_err *err)
{
    int rc;

    umask(077); /* keys, tokens and everybody's secrets */
    host_raise_limits();
    h->claim = -1;
    h->clock = hk_clock_system();
    h->loop = net_loop_new(h->clock);
    rc = catch_signals(h, err);
    rc = rc < 0 ? rc : where_make(o->dir, err);
    rc = rc < 0 ? rc : where_claim(o->dir, &h->claim, err);
    rc = rc < 0 ? rc : open_store(h, o, err);
    rc = rc < 0 ? rc : setup_load(o->dir, o->addr, h->clock, &h->setup, err);
    if (rc < 0) {
        return rc;
    }
    rest_publish_ca(h->rest, h->setup.ca.cert_pem);
    rc = node_proxy_new(&(struct node_proxy_opts){.loop = h->loop,
                                                  .clock = h->clock,
                                                  .rand = &h->rand,
                                                  .port = rest_port(h->rest),
                                                  .ca = &h->setup.ca,
                                                  .local = o->node_api},
                        &h->node_proxy, err);
    return rc < 0 ? rc : serve(h, o, err);
}

const char *host_address(const struct host_opts *o)
{
    const bool any = strcmp(o->addr, "0.0.0.0") == 0 || strcmp(o->addr, "::") == 0;

    return any ? "127.0.0.1" : o->addr;
}

static void write_url(const struct host *h, const struct host_opts *o, struct hk_buf *out)
{
    const char *host = host_address(o);

    hk_buf_addf(out, strchr(host, ':') ? "https://[%s]:%u" : "https://%s:%u", host,
                server_port(h->server));
}

int host_announce(const struct host *h, const struct host_opts *o, const char *verb,
                  struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf url = {0}, line = {0};

    write_url(h, o, &url);
    int rc = setup_write_kubeconfig(&h->setup, o->dir, url.data, err);
    if (rc < 0) {
        return rc;
    }
    rc = where_tell(h->claim, verb, url.data, h->clock->wall_ns(h->clock), err);
    if (rc < 0) {
        return rc;
    }
    hk_buf_addf(&line, "hekla %s ready at %s, kubeconfig %s/kubeconfig\n", verb, url.data, o->dir);
    if (verb_print(&line) != EXIT_OK) {
        return hk_fail(err, HK_EIO, "cannot write to stdout");
    }
    notify("READY=1");
    return 0;
}

void host_close(struct host *h)
{
    if (h->server) {
        server_stop(h->server, STOP_GRACE_MS);
    }
    server_free(h->server);
    node_proxy_free(h->node_proxy);
    rest_free(h->rest);
    store_close(h->store);
    setup_fini(&h->setup);
    net_loop_free(h->loop);
    if (h->claim >= 0) {
        close(h->claim);
    }
}
