// SPDX-License-Identifier: Apache-2.0
// libcurl's multi interface on our loop: its sockets become watches, its single timeout a timer.
// Idle connections belong to it, so any transfer can use any of them.
#pragma once

#include "net/loop.h"

#include <curl/curl.h>

struct curl_loop;

/* done gets each transfer that libcurl has finished, from the loop. */
struct curl_loop *curl_loop_new(struct net_loop *loop, uint32_t max_idle_connections,
                                void (*done)(void *ctx, CURL *easy, CURLcode rc), void *ctx);
/* First remove all transfers. Takes NULL. */
void curl_loop_free(struct curl_loop *l);
/* Add and remove transfers here. */
CURLM *curl_loop_multi(const struct curl_loop *l);
/* Sets the options that a handle needs to run on this loop. */
void curl_loop_set_up(struct curl_loop *l, CURL *easy);
