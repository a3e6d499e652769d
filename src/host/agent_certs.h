// SPDX-License-Identifier: Apache-2.0
// A self-made serving certificate for a node that has none. It is kept in the node's directory, so
// that clients that trust it continue to do so.
//
//   DIR/kubelet.crt (followed by its CA) and DIR/kubelet.key
#pragma once

#include "base/err.h"
#include "base/str.h"

struct agent_certs_opts {
    const char *dir;
    const char *const *names; /* its host names and addresses, the node's name first */
    uint32_t nnames;
    int64_t now_s;
};

/* Appends the paths. Replaces a pair that expires within a month or lacks a name. */
int agent_certs_keep(const struct agent_certs_opts *o, struct hk_buf *ret_cert,
                     struct hk_buf *ret_key, struct hk_err *err) HK_CHECKED;
