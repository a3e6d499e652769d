// SPDX-License-Identifier: Apache-2.0
// hekla port-forward: listens on ports of this machine and relays each connection to a port of a
// pod.
#pragma once

#include "user/remote.h"

struct ports_opts {
    struct remote_opts remote;
    const char *target;        /* as in remote_find */
    struct option_list wanted; /* "8080", "80:8080", ":8080" */
};

/* Reads LOCAL:PORT, :PORT (*ret_local is 0: any) or PORT (the same). */
int ports_parse(const char *text, uint16_t *ret_local, uint16_t *ret_port,
                struct hk_err *err) HK_CHECKED;
/* Runs until the pod cannot be reached any more, or for ever. */
int ports_forward(const struct ports_opts *o, struct hk_err *err) HK_CHECKED;
