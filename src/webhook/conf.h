// SPDX-License-Identifier: Apache-2.0
// The resource-group file of --admission-conf: read at start and after each change. Problems are
// logged, and the last good content stays in use.
#pragma once

#include "admission/volcano.h"
#include "net/loop.h"

struct webhook_conf;

/* Sets options->conf to the last good content, NULL before the first. Fails only when the file
 * cannot be watched. The path is borrowed. */
int webhook_conf_new(struct net_loop *loop, const char *path, struct volcano_options *options,
                     struct webhook_conf **ret, struct hk_err *err) HK_CHECKED;
/* Takes NULL. */
void webhook_conf_free(struct webhook_conf *c);
