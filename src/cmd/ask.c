// SPDX-License-Identifier: Apache-2.0
// Runs one call at a time over the HTTP client, and runs the loop until the answer arrives.
#include "cmd/ask.h"

#include "client/get_stream.h"

#include "cmd/where.h"

#include <ctype.h>
#include <errno.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define POLL_MAX 16u

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

void answer_fini(struct answer *n)
{
    for (uint32_t i = 0; i < n->objects.len; i++) {
        api_object_unref(n->objects.at[i]);
    }
    hk_vec_fini(&n->objects);
}

struct waiting {
    struct answer *answer;
    struct hk_buf *text; /* for raw answers, up to max bytes */
    size_t max;
    struct hk_err *err;
    bool done;
    int rc;
};

static void ask_on_msg(void *ctx, const struct port_msg *m)
{
    struct waiting *w = ctx;

    if (m->type != PORT_DONE) {
        return;
    }
    w->done = true;
    w->rc = m->rc;
    if (m->rc < 0) {
        *w->err = *m->err;
    }
    if (m->obj) {
        hk_vec_push(&w->answer->objects, api_object_ref(m->obj));
    }
    for (uint32_t i = 0; i < m->nitems; i++) {
        hk_vec_push(&w->answer->objects, api_object_ref(m->items[i]));
    }
}

static int await_answer(struct ask *a, uint64_t call, struct waiting *w, struct hk_err *err)
{
    while (!w->done) {
        if (port_poll(a->port, POLL_MAX) > 0) {
            continue; /* also messages for other users of the port */
        }
        const int rc = net_loop_turn(a->loop, -1, err);
        if (rc < 0) {
            port_cancel(a->port, call);
            return rc;
        }
    }
    return w->rc;
}

int ask(struct ask *a, const struct port_request *req, struct answer *ret, struct hk_err *err)
{
    struct waiting w = {.answer = ret, .err = err};
    const uint64_t call = port_submit(a->port, req, (struct port_sink){ask_on_msg, &w});

    return await_answer(a, call, &w, err);
}

static void ask_on_bytes(void *ctx, struct hk_str bytes)
{
    struct waiting *w = ctx;

    hk_buf_addstr(w->text, (struct hk_str){bytes.s, HK_MIN(bytes.n, w->max - w->text->len)});
}

int ask_text(struct ask *a, const char *path, size_t max, struct hk_buf *ret, struct hk_err *err)
{
    struct waiting w = {.text = ret, .max = max, .err = err};
    const uint64_t call =
        get_stream_open(a->client, &(struct get_stream){.kind = api_kind(API_NAMESPACE),
                                                        .path = path,
                                                        .on_bytes = ask_on_bytes,
                                                        .done = {ask_on_msg, &w}});

    return await_answer(a, call, &w, err);
}
