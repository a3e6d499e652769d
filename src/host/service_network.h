// SPDX-License-Identifier: Apache-2.0
// The network of a server's Services: a /16 of loopback addresses that no other server of this machine
// uses, so that several users can each run `hekla up`.
#pragma once

#include "base/err.h"
#include "store/rest.h"

struct service_network {
    bool automatic; /* choose one; otherwise the range as given */
    bool shared;    /* another server has it as well */
    struct rest_service_range range;
};

/* Reads "auto" or a network such as "127.128.0.0/16". */
int service_network_parse(const char *text, struct service_network *ret,
                          struct hk_err *err) HK_CHECKED;

/* Holds the network against other servers as long as *ret, a descriptor to keep open. An automatic one
 * is chosen at the first start in the directory and recorded there, since Services keep their addresses.
 * If another server has the network that is given or recorded, or if all are held, it is shared, and
 * *ret is -1. */
int service_network_claim(struct service_network *n, const char *dir, int *ret,
                          struct hk_err *err) HK_CHECKED;

/* Logs that the network is shared, if so: for a server that has started. */
void service_network_warn(const struct service_network *n);
