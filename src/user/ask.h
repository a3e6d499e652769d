// SPDX-License-Identifier: Apache-2.0
// The port for commands that send a request, wait for the answer and exit.
#pragma once

#include "api/port_call.h"
#include "client/client.h"

/* Text for --help. */
#define ASK_WHERE_TEXT                                                                             \
    "Without --kubeconfig, --master and $KUBECONFIG the server of the default directory of "       \
    "'hekla "                                                                                      \
    "up' is used while it runs, else the one in ~/.kube/config."

struct ask {
    struct net_loop *loop;
    struct hk_rand rand;
    struct client *client; /* NULL: not connected */
    struct port *port;
};

/* Finds the server as Volcano's commands do: kubeconfig and master are their options, "": not
 * given. Without them and KUBECONFIG, a server of the default directory (where.h) precedes
 * ~/.kube/config. Does not connect. On failure, call ask_close() anyway. */
int ask_open(struct ask *a, const char *kubeconfig, const char *master,
             struct hk_err *err) HK_CHECKED;
void ask_close(struct ask *a);

/* How to wait for the port. */
struct port_waiter ask_waiter(struct ask *a);

/* Appends the answer to a GET of path (with its query), up to max bytes. */
int ask_text(struct ask *a, const char *path, size_t max, struct hk_buf *ret,
             struct hk_err *err) HK_CHECKED;

/* Passes the answer to a GET of path to on_bytes as it arrives; returns at its end. */
int ask_stream(struct ask *a, const char *path, void (*on_bytes)(void *ctx, struct hk_str bytes),
               void *ctx, struct hk_err *err) HK_CHECKED;

/* Returns once the answer is there. A refusal has the server's message. */
int ask(struct ask *a, const struct port_request *req, struct port_answer *ret,
        struct hk_err *err) HK_CHECKED;
