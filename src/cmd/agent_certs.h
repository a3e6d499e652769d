// SPDX-License-Identifier: Apache-2.0
// A serving certificate for a node that was given none: made by itself and kept in its directory,
// so that whoever came to trust it goes on to.
//
//   DIR/kubelet.crt, with its authority behind it, and DIR/kubelet.key
#pragma once

#include "base/err.h"
#include "base/str.h"

struct agent_certs_opts {
    const char *dir;
    const char *const *names; /* what it has to stand for, the node's name first */
    uint32_t nnames;
    int64_t now_s;
};

/* Appends the paths. A pair that ends within a month or lacks a name is replaced. */
int agent_certs_keep(const struct agent_certs_opts *o, struct hk_buf *ret_cert,
                     struct hk_buf *ret_key, struct hk_err *err) HK_CHECKED;
