// SPDX-License-Identifier: Apache-2.0
// The subresource proxy of pods, Services and nodes: forwards requests to what they name.
#pragma once

#include "net/http.h"

struct exchange;
struct route;

/* Whether the path is one of these subresources. */
bool subproxy_matches(const struct route *r);
/* Answers the request, now or later; x is freed. */
void subproxy_serve(struct exchange *x);
/* Answers with a Status of that code. */
void subproxy_refuse(struct http_request *q, int status, const char *why);
