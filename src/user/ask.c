// SPDX-License-Identifier: Apache-2.0
// Runs one call at a time over the HTTP client, and runs the loop until the answer arrives.
#include "user/ask.h"

#include "client/get_stream.h"
#include "daemon/where.h"

#include <ctype.h>
#include <errno.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* The user is waiting: report an unreachable server at once. */
enum { RETRIES = 1, RETRY_MS = 1 };

/* ---- where the server is ---- */

/* A file named by the user must exist; the message is Go's. */
static int check_file(const char *path, struct hk_err *err)
{
    struct stat st;

    if (path[0] == '\0' || stat(path, &st) == 0) {
        return 0;
    }
    const char *why = strerror(errno);
    return hk_fail(err, HK_ENOTFOUND, "stat %s: %c%s", path, tolower((unsigned char)why[0]),
                   why + 1);
}

/* Without a given server, a running one of the default directory precedes ~/.kube/config. */
static void find_local(const struct kubeconfig_opts *o, struct hk_buf *path)
{
    struct where_server s;

    if (o->path || o->server || (o->env_paths && o->env_paths[0] != '\0')) {
        return;
    }
    if (where_default(path, NULL) == 0 && where_find(path->data, &s, NULL) == 0) {
        hk_buf_adds(path, "/kubeconfig");
        where_server_fini(&s);
    } else {
        hk_buf_clear(path);
    }
}

static int load_config(const char *kubeconfig, const char *master, struct kubeconfig *ret,
                       struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf local = {0};
    struct kubeconfig_opts o = {0};
    int rc = check_file(kubeconfig, err);

    if (rc < 0) {
        return rc;
    }
    kubeconfig_env(&o);
    o.path = kubeconfig[0] != '\0' ? kubeconfig : NULL;
    o.server = master[0] != '\0' ? master : NULL;
    find_local(&o, &local);
    o.path = local.len > 0 ? local.data : o.path;
    rc = kubeconfig_load(&o, ret, err);
    const char *fallback = getenv("KUBERNETES_MASTER");
    if (rc < 0 || o.server || !fallback || ret->in_cluster || ret->context[0] != '\0') {
        return rc;
    }
    kubeconfig_fini(ret);
    o.server = fallback;
    return kubeconfig_load(&o, ret, err);
}

int ask_open(struct ask *a, const char *kubeconfig, const char *master, struct hk_err *err)
{
    struct kubeconfig config = {0};
    uint64_t seed;
    int rc;

    *a = (struct ask){0};
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        return hk_fail(err, HK_EIO, "cannot get random bytes: %m");
    }
    hk_rand_seed(&a->rand, seed);
    rc = load_config(kubeconfig, master, &config, err);
    if (rc < 0) {
        return rc;
    }
    a->loop = net_loop_new(hk_clock_system());
    const struct client_opts o = {.loop = a->loop,
                                  .clock = hk_clock_system(),
                                  .rand = &a->rand,
                                  .terminal = isatty(STDIN_FILENO) == 1,
                                  .retries = RETRIES,
                                  .retry_first_ms = RETRY_MS};
    rc = client_new(&o, &config, &a->client, err);
    if (rc == 0) {
        a->port = client_port(a->client);
    }
    return rc;
}

void ask_close(struct ask *a)
{
    port_free(a->port);
    net_loop_free(a->loop);
    *a = (struct ask){0};
}

/* ---- requests ---- */

static int ask_turn(void *ctx, int timeout_ms, struct hk_err *err)
{
    return net_loop_turn(ctx, timeout_ms, err);
}

struct port_waiter ask_waiter(struct ask *a)
{
    return (struct port_waiter){.port = a->port, .wait = ask_turn, .ctx = a->loop};
}

int ask(struct ask *a, const struct port_request *req, struct port_answer *ret, struct hk_err *err)
{
    const struct port_waiter w = ask_waiter(a);

    return port_call(&w, req, ret, err);
}

/* ---- streams ---- */

struct ask_stream {
    struct port_outcome outcome; /* first: a stream has one context for its bytes and its end */
    void (*on_bytes)(void *ctx, struct hk_str bytes);
    void *ctx;
};

static void ask_on_bytes(void *ctx, struct hk_str bytes)
{
    struct ask_stream *s = ctx;

    s->on_bytes(s->ctx, bytes);
}

int ask_stream(struct ask *a, const char *path, void (*on_bytes)(void *ctx, struct hk_str bytes),
               void *ctx, struct hk_err *err)
{
    struct ask_stream s = {.on_bytes = on_bytes, .ctx = ctx};
    const struct port_waiter w = ask_waiter(a);
    const uint64_t call =
        get_stream_open(a->client, &(struct get_stream){.kind = api_kind(API_NAMESPACE),
                                                        .path = path,
                                                        .on_bytes = ask_on_bytes,
                                                        .done = port_outcome_sink(&s.outcome)});

    return port_await(&w, call, &s.outcome, err);
}

struct ask_text {
    struct hk_buf *text;
    size_t max;
};

static void ask_keep_text(void *ctx, struct hk_str bytes)
{
    struct ask_text *t = ctx;

    hk_buf_addstr(t->text, (struct hk_str){bytes.s, HK_MIN(bytes.n, t->max - t->text->len)});
}

int ask_text(struct ask *a, const char *path, size_t max, struct hk_buf *ret, struct hk_err *err)
{
    struct ask_text t = {ret, max};

    return ask_stream(a, path, ask_keep_text, &t, err);
}
