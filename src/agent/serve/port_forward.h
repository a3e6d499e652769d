// SPDX-License-Identifier: Apache-2.0
// pods/portforward: connections of clients to what the processes of a pod listen on.
#pragma once

#include "agent/serve/serve.h"

/* Answers the call, now or later. On failure the caller must answer it. */
int port_forward_serve(struct serve *s, const struct node_call *call,
                       struct hk_err *err) HK_CHECKED;
/* Ends the connections of clients to pods that are over. */
void port_forward_tick(struct serve *s);
/* Ends all connections of the node. */
void port_forward_end_all(struct serve *s);
