// SPDX-License-Identifier: Apache-2.0
// The way to an API server: the parts of its URL, and this machine's address on that way.
#pragma once

#include "base/err.h"

#include <stdint.h>

struct reach {
    char host[256]; /* without brackets */
    uint16_t port;
};

/* The parts of "https://host:port/prefix"; without a port, the scheme's default. */
int reach_parse(const char *url, struct reach *ret, struct hk_err *err) HK_CHECKED;
/* The source address of packets to the server, as text; "127.0.0.1" if there is no route. */
void reach_from(const struct reach *r, char *ret, size_t room);
