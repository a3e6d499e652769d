// SPDX-License-Identifier: Apache-2.0
// The way to an API server: what its URL says, and the address this machine has on that way.
#pragma once

#include "base/err.h"

#include <stdint.h>

struct reach {
    char host[256]; /* without brackets */
    uint16_t port;
};

/* The parts of "https://host:port/prefix"; the port is that of the scheme when there is none. */
int reach_parse(const char *url, struct reach *ret, struct hk_err *err) HK_CHECKED;
/* The address that packets to it would come from, as text; "127.0.0.1" when there is no way. */
void reach_from(const struct reach *r, char *ret, size_t room);
