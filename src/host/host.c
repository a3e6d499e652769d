// SPDX-License-Identifier: Apache-2.0
// Opens a data directory, serves it, and shuts down in order.
#include "host/host.h"

#include "api/webhook_caller.h"
#include "apiserver/bootstrap.h"
#include "base/crumb.h"
#include "base/log.h"
#include "client/poster.h"
#include "codec/quantity.h"
#include "daemon/daemon.h"
#include "daemon/notify.h"
#include "relay/node_proxy.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STOP_GRACE_MS = 5000,
    MAX_TIMEOUT_S = 86400,
    MAX_CONNECTIONS = 1000000,
    MAX_HISTORY = 10000000,
    MAX_BALLAST_MIB = 1 << 20,
};

/* ---- options ---- */

static int host_parse_listen(void *at, const struct option_row *row, const char *value,
                             struct hk_err *err)
{
    struct host_opts *o = at;
    char addr[sizeof(o->addr)];
    uint16_t port;

    if (daemon_split_address(value, addr, sizeof(addr), &port) < 0 || addr[0] == '\0') {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want ADDR:PORT", row->name, value);
    }
    memcpy(o->addr, addr, sizeof(addr));
    o->port = port;
    return 0;
}

const struct option_row host_listen_options[] = {
    ROW_CALL_ALL(
        'l', "listen", "ADDR:PORT", host_parse_listen, "127.0.0.1:6443",
        "The address to serve on. Write an IPv6 address in brackets; port 0 takes a free "
        "port. 0.0.0.0 or [::] makes the API reachable from other machines, which 'hekla up' "
        "refuses to root unless --trust-all-users is given."),
    ROW_END,
};

/* 300 seconds, as in kube-apiserver. */
const struct option_row host_toleration_options[] = {
    ROW_INT(0, "default-not-ready-toleration-seconds", "N", struct host_opts,
            tolerations.not_ready_s, 0, INT32_MAX, "300",
            "How long a pod stays on a node that is not ready before it is evicted, unless its own "
            "tolerations say otherwise. The number is written into each new pod."),
    ROW_INT(0, "default-unreachable-toleration-seconds", "N", struct host_opts,
            tolerations.unreachable_s, 0, INT32_MAX, "300",
            "The same for a node that cannot be reached."),
    ROW_END,
};

static int host_parse_service_range(void *at, const struct option_row *row, const char *value,
                                    struct hk_err *err)
{
    const int rc = service_network_parse(value, at, err);

    return rc < 0 ? hk_wrap(err, rc, "option --%s", row->name) : 0;
}

const struct option_row host_service_options[] = {
    ROW_CALL(0, "service-cluster-ip-range", "auto|NETWORK", struct host_opts, services,
             host_parse_service_range, "auto",
             "Where the addresses of Services come from: a network of IPv4, best one of loopback "
             "addresses, outside of 127.64.0.0/10, which pods use. The first address is that of "
             "the Service kubernetes. auto takes 127.128.0.0/16, or the next /16 that no other "
             "server of this machine uses, and keeps it."),
    ROW_END,
};

const struct option_row host_store_options[] = {
    ROW_FLAG(0, "accept-data-loss", struct host_opts, accept_loss,
             "Start although the database lacks acknowledged changes, and continue with the rest. "
             "Revisions continue behind all that were given out, so watches start again. Pods that "
             "run here and are no longer known continue to run; see --end-unknown-pods. Try 'hekla "
             "check' and 'hekla restore' first."),
    ROW_INT(0, "ballast", "MIB", struct host_opts, ballast_mib, 0, MAX_BALLAST_MIB, "8",
            "How much disk space to keep in reserve, in MiB; 0 keeps none. On a full disk the "
            "reserve is released, so that objects can be deleted and the server can start. Other "
            "writes are refused with 507 until the reserve fits again."),
    ROW_END,
};

static int host_parse_memory_limit(void *at, const struct option_row *row, const char *value,
                                   struct hk_err *err)
{
    int64_t *ret = at;
    struct quantity size;

    if (strcmp(value, "auto") == 0) {
        *ret = 0;
        return 0;
    }
    if (strcmp(value, "off") == 0) {
        *ret = -1;
        return 0;
    }
    if (quantity_parse(hk_str(value), &size, NULL) < 0 || quantity_value(size) <= 0) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want auto, off or a size such as 2Gi",
                       row->name, value);
    }
    *ret = quantity_value(size);
    return 0;
}

const struct option_row host_limit_options[] = {
    ROW_INT(0, "header-timeout", "SECONDS", struct host_opts, header_timeout_s, 1, MAX_TIMEOUT_S,
            "30",
            "Close a connection whose request, TLS handshake included, has not arrived after this "
            "time."),
    ROW_INT(0, "idle-timeout", "SECONDS", struct host_opts, idle_timeout_s, 1, MAX_TIMEOUT_S, "90",
            "Close a connection without a request, or with an unread answer, after this time. A "
            "watch without events is not idle."),
    ROW_INT_OR(
        0, "max-connections", "N", struct host_opts, max_connections, 1, MAX_CONNECTIONS,
        "8192, or fewer when the limit of open files is lower",
        "How many connections may be open at a time. For each further one an idle one is "
        "closed, of callers who have not authenticated first; without an idle one the new one "
        "is closed. One user may have half of them, and so may one address before its callers "
        "authenticate."),
    ROW_INT(0, "max-replicas", "N", struct host_opts, max_replicas, 1, INT32_MAX, "100000",
            "The most replicas that one object may ask for, all its tasks together. More are "
            "refused with 422."),
    ROW_INT(
        0, "max-objects-per-namespace", "N", struct host_opts, max_per_namespace, 1, INT32_MAX,
        "500000",
        "The most objects of one kind that a namespace may hold. One more is refused with 403."),
    ROW_CALL(
        0, "memory-limit", "auto|SIZE|off", struct host_opts, memory_limit_bytes,
        host_parse_memory_limit, "auto",
        "How much memory the server may use. When three quarters of it are used, or all but "
        "512 MiB, writes that create or enlarge objects are refused with 507 until objects are "
        "deleted. 'auto' takes the least of ulimit -v and -d, the memory limits of the server's "
        "control groups and the memory of the machine. A SIZE, for instance 2Gi, is one more "
        "limit. 'off' sets none."),
    ROW_INT(0, "history", "N", struct host_opts, history, 1, MAX_HISTORY, "100000",
            "How many of the latest changes are kept for watches to start from, up to 256 MiB. A "
            "watch that falls behind them gets 410 and starts again."),
    ROW_END,
};

/* ---- running ---- */

void host_stop(struct host *h)
{
    h->stopping = true;
    notify("STOPPING=1");
    net_loop_stop(h->loop);
}

static void host_on_signal(void *ctx, int signo)
{
    struct host *h = ctx;

    if (signo == SIGHUP) {
        hk_log_reopen();
    } else if (signo == SIGUSR1 && h->has_pods) {
        h->clearing = true;
    } else {
        host_stop(h);
    }
}

static int host_catch_signals(struct host *h, struct hk_err *err)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};

    signal(SIGPIPE, SIG_IGN);
    return net_signals(h->loop, signals, HK_LEN(signals), host_on_signal, h, err);
}

void host_raise_limits(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static int bootstrap_all(struct rest *r, struct hk_err *err)
{
    int rc = bootstrap_crds(r, err);

    if (rc < 0) {
        return rc;
    }
    rc = bootstrap_objects(r, err);
    return rc < 0 ? rc : bootstrap_roles(r, err);
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
    const struct store_opts store = {.path = path.data,
                                     .budget = h->budget,
                                     .ring_events = (uint32_t)o->history,
                                     .ballast_bytes = (uint64_t)o->ballast_mib << 20,
                                     .must_exist = setup_exists(o->dir),
                                     .now_s = h->clock->wall_ns(h->clock) / 1000000000,
                                     .accept_loss = o->accept_loss};
    int rc = store_open(&store, &h->store, err);

    if (rc < 0) {
        return rc;
    }
    h->volcano.max_replicas = o->max_replicas;
    h->tolerations = o->tolerations;
    h->rest = rest_new(&(struct rest_opts){.store = h->store,
                                           .clock = h->clock,
                                           .rand = &h->rand,
                                           .volcano = &h->volcano,
                                           .budget = h->budget,
                                           .max_per_namespace = (uint32_t)o->max_per_namespace,
                                           .tolerations = &h->tolerations,
                                           .services = h->services.range});
    rest_suspend_policies(h->rest, true);
    rc = bootstrap_all(h->rest, err);
    rest_suspend_policies(h->rest, false);
    return rc;
}

static int host_serve(struct host *h, const struct host_opts *o, struct hk_err *err)
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
        .ca = &h->setup.ca,
        .auth = h->setup.auth,
        .token_key = hk_str(h->setup.account_key),
        .node_api = node_proxy_api(h->node_proxy),
        .kubelet_client = node_proxy_cert(h->node_proxy),
        .front_client = &h->setup.front_client,
        .front_ca_pem = h->setup.front_ca.cert_pem,
        .metrics = o->metrics,
        .budget = h->budget,
        .header_timeout_ms = o->header_timeout_s * 1000,
        .idle_timeout_ms = o->idle_timeout_s * 1000,
        .max_connections = (uint32_t)o->max_connections,
    };

    return server_new(&opts, &h->server, err);
}

void host_open_crumbs(const char *dir)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    struct hk_err err = {0};

    hk_buf_addf(&path, "%s/" HOST_CRUMBS, dir);
    if (hk_crumb_open(path.data, &err) < 0) {
        hk_log(HK_LOG_WARN, "objects that crash the program will not be skipped", "err=\"%s\"",
               err.text);
    }
}

/* The address of the Service default/kubernetes: the first of the range. NULL: none. */
static const char *write_service_address(const struct rest_service_range *range,
                                         char out[INET_ADDRSTRLEN])
{
    const struct in_addr first = {htonl(range->net + 1)};

    return range->prefix > 0 ? inet_ntop(AF_INET, &first, out, INET_ADDRSTRLEN) : NULL;
}

int host_open(struct host *h, const struct host_opts *o, struct hk_err *err)
{
    char address[INET_ADDRSTRLEN];
    int rc;

    umask(077); /* files here hold keys, tokens and secrets */
    host_raise_limits();
    h->claim = -1;
    h->network = -1;
    h->clock = hk_clock_system();
    hk_log_set_clock(h->clock);
    if (o->memory_limit_bytes >= 0) {
        h->budget =
            hk_budget_new(&(struct hk_budget_opts){.limit_bytes = (uint64_t)o->memory_limit_bytes});
    }
    h->loop = net_loop_new(h->clock);
    rc = host_catch_signals(h, err);
    if (rc < 0) {
        return rc;
    }
    rc = where_make(o->dir, err);
    if (rc < 0) {
        return rc;
    }
    rc = where_claim(o->dir, &h->claim, err);
    if (rc < 0) {
        return rc;
    }
    h->services = o->services;
    rc = service_network_claim(&h->services, o->dir, &h->network, err);
    if (rc < 0) {
        return rc;
    }
    rc = open_store(h, o, err);
    if (rc < 0) {
        return rc;
    }
    const struct setup_service service = {write_service_address(&h->services.range, address),
                                          o->cluster_domain};
    rc = setup_load(o->dir, o->addr, &service, h->clock, &h->setup, err);
    if (rc < 0) {
        return rc;
    }
    service_network_warn(&h->services);
    host_open_crumbs(o->dir); /* a full disk has already been reported */
    rest_publish_ca(h->rest, h->setup.ca.cert_pem);
    h->poster = poster_new(h->loop, WEBHOOK_MAX_REPLY);
    rest_call_webhooks(h->rest, poster_caller(h->poster));
    rc = node_proxy_new(&(struct node_proxy_opts){.loop = h->loop,
                                                  .clock = h->clock,
                                                  .rand = &h->rand,
                                                  .port = rest_port(h->rest),
                                                  .ca = &h->setup.ca,
                                                  .local = o->node_api},
                        &h->node_proxy, err);
    return rc < 0 ? rc : host_serve(h, o, err);
}

bool host_is_loopback(const struct host_opts *o)
{
    struct in6_addr v6;
    struct in_addr v4;

    if (inet_pton(AF_INET, o->addr, &v4) == 1) {
        return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (inet_pton(AF_INET6, o->addr, &v6) == 1) {
        return IN6_IS_ADDR_LOOPBACK(&v6) ||
               (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET);
    }
    return strcmp(o->addr, "localhost") == 0;
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
    poster_free(h->poster);
    store_close(h->store);
    hk_budget_free(h->budget);
    hk_crumb_close();
    setup_fini(&h->setup);
    net_loop_free(h->loop);
    if (h->network >= 0) {
        close(h->network);
    }
    if (h->claim >= 0) {
        close(h->claim);
    }
    hk_log_set_clock(NULL);
}
