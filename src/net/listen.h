// SPDX-License-Identifier: Apache-2.0
// Opens a listening socket.
#pragma once

#include "base/err.h"
#include "base/str.h"

/* addr is numeric, "": every address; port 0: any, and *ret_port says which. */
int listen_on(struct hk_str addr, uint16_t port, int *ret_fd, uint16_t *ret_port,
              struct hk_err *err) HK_CHECKED;
