// SPDX-License-Identifier: Apache-2.0
// The gRPC part of a probe (probe_grpc.c), for probe.c.
#pragma once

#include "net/probe.h"

/* Writes the whole request about the service: HTTP/2 from its preface to the message. */
void probe_grpc_request(const struct net_probe_opts *o, struct hk_buf *out);
/* Parses what was received so far: 1 it serves, 0 it does not, -1 incomplete. */
int probe_grpc_answer(const struct hk_buf *in);
