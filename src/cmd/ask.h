// SPDX-License-Identifier: Apache-2.0
// The port for commands that ask, wait for the answer and end.
#pragma once

#include "base/vec.h"
#include "client/client.h"

/* For help. */
#define ASK_WHERE_TEXT                                                                             \
    "Where neither --kubeconfig nor --master nor the environment's KUBECONFIG says which server "  \
    "to ask, it is the one of the default directory of 'hekla up' while that runs, and else the "  \
    "one in ~/.kube/config."

struct ask {
    struct net_loop *loop;
    struct hk_rand rand;
    struct client *client; /* NULL: not connected */
    struct port *port;
};

/* Reads where the server is, as Volcano's commands do: kubeconfig and master are their options, ""
 * when not given. Where neither they nor KUBECONFIG say, a server of the default directory
 * (where.h) comes before ~/.kube/config. Does not connect. What there is after a failure is
 * ask_close's. */
int ask_open(struct ask *a, const char *kubeconfig, const char *master,
             struct hk_err *err) HK_CHECKED;
void ask_close(struct ask *a);

/* The objects of an answer. Ready when zeroed. */
struct answer {
    HK_VEC(struct api_object *) objects;
};
void answer_fini(struct answer *n);

/* Returns when the outcome is there. Refusals are told in the server's words. */
int ask(struct ask *a, const struct port_request *req, struct answer *ret,
        struct hk_err *err) HK_CHECKED;
