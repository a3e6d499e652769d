// SPDX-License-Identifier: Apache-2.0
// The names of Services in hosts files of pods:
//
//   with a cluster IP   NAME NAME.NS NAME.NS.svc NAME.NS.svc.DOMAIN, its cluster IP
//   headless            the same names, a line for each ready endpoint; and HOST.NAME... for
//                       endpoints with a hostname
//
// The bare NAME is for pods of the Service's own namespace.
#pragma once

#include "base/str.h"

struct services;
struct service_names;

/* changed is called when hosts files must be written again. s and the domain outlive the names. */
struct service_names *service_names_new(struct services *s, const char *domain,
                                        void (*changed)(void *ctx), void *ctx);
/* Takes NULL. */
void service_names_free(struct service_names *n);
/* Appends the lines for pods of the namespace; the hostnames of the Service `listed` are in the
 * file already. n NULL: none. */
void service_names_write(struct service_names *n, struct hk_str ns, struct hk_str listed,
                         struct hk_buf *out);
