// SPDX-License-Identifier: Apache-2.0
// The DNS server of `hekla up`: its options, its address, and what happens when it cannot start.
#pragma once

#include "base/err.h"
#include "cli/option.h"
#include "dns/dns.h"
#include "store/rest.h"

struct cluster_dns_opts {
    const char *address; /* "auto", "off" or a loopback address */
    const char *domain;
};

extern const struct option_row cluster_dns_options[];
/* Checks the values. */
int cluster_dns_check(const struct cluster_dns_opts *o, struct hk_err *err) HK_CHECKED;

/* Starts the server on the address of the options, or on the tenth of the range, as kubeadm does.
 * zone lacks its domain. *ret is NULL when it is off; with auto also when it cannot start, which
 * *ret_off says. */
int cluster_dns_start(const struct cluster_dns_opts *o, struct rest_service_range range,
                      struct net_loop *loop, const struct dns_zone_opts *zone, struct dns **ret,
                      struct hk_err *ret_off, struct hk_err *err) HK_CHECKED;
/* Logs why the server is off, if *why says something. Most users may not listen on port 53: call it
 * when the log is no longer their terminal. */
void cluster_dns_log_off(const struct hk_err *why);
