// SPDX-License-Identifier: Apache-2.0
#include "host/cluster_dns.h"

#include "base/log.h"
#include "net/resolv.h"

#include <arpa/inet.h>

enum { PORT = 53, INDEX = 10 /* in the range */ };

#define AUTO "auto"
#define OFF "off"

const struct option_row cluster_dns_options[] = {
    ROW_TEXT(0, "cluster-dns", "auto|ADDRESS|off", struct cluster_dns_opts, address, AUTO,
             "Where the DNS server of the cluster listens, on port 53: the resolv.conf of pods "
             "names it. ADDRESS is a loopback address of IPv4. auto takes the tenth address of "
             "--service-cluster-ip-range, and starts no server where port 53 is not permitted or "
             "in use; pods then see the resolv.conf of this machine, as with off."),
    ROW_TEXT(0, "cluster-domain", "DOMAIN", struct cluster_dns_opts, domain, "cluster.local",
             "The domain of the names of Services and pods."),
    ROW_END,
};

static bool cluster_dns_is_label(struct hk_str label)
{
    static const char ends[] = "abcdefghijklmnopqrstuvwxyz0123456789";

    for (size_t i = 0; i < label.n; i++) {
        const bool edge = i == 0 || i == label.n - 1;

        if (label.s[i] == '\0' || (!strchr(ends, label.s[i]) && (edge || label.s[i] != '-'))) {
            return false;
        }
    }
    return label.n > 0 && label.n <= DNS_LABEL_MAX;
}

/* Leaves room for the longest names below it, and for the kernel's limits of hosts. */
static bool cluster_dns_is_domain(const char *text)
{
    struct hk_str rest = hk_str(text), label;

    if (rest.n == 0 || rest.n > DNS_NAME_MAX / 2) {
        return false;
    }
    while (hk_str_cut(&rest, '.', &label)) {
        if (!cluster_dns_is_label(label)) {
            return false;
        }
    }
    return true;
}

int cluster_dns_check(const struct cluster_dns_opts *o, struct hk_err *err)
{
    struct in_addr at;

    if (!cluster_dns_is_domain(o->domain)) {
        return hk_fail(err, HK_EINVAL,
                       "option --cluster-domain is '%s', want a domain such as cluster.local, in "
                       "lower case and of at most %d characters",
                       o->domain, DNS_NAME_MAX / 2);
    }
    if (strcmp(o->address, AUTO) == 0 || strcmp(o->address, OFF) == 0) {
        return 0;
    }
    if (inet_pton(AF_INET, o->address, &at) != 1 || ntohl(at.s_addr) >> 24 != IN_LOOPBACKNET) {
        return hk_fail(err, HK_EINVAL,
                       "option --cluster-dns is '%s', want auto, off or a loopback address of IPv4 "
                       "such as 127.0.0.10",
                       o->address);
    }
    return 0;
}

void cluster_dns_log_off(const struct hk_err *why)
{
    if (why->text[0] != '\0') {
        hk_log(HK_LOG_INFO,
               "there is no DNS server: pods find Services through their hosts files only",
               "err=\"%s\"", why->text);
    }
}

int cluster_dns_start(const struct cluster_dns_opts *o, struct rest_service_range range,
                      struct net_loop *loop, const struct dns_zone_opts *zone, struct dns **ret,
                      struct hk_err *ret_off, struct hk_err *err)
{
    const struct in_addr tenth = {htonl(range.net + INDEX)};
    const bool automatic = strcmp(o->address, AUTO) == 0;
    struct dns_opts opts = {.loop = loop,
                            .zone = *zone,
                            .address = o->address,
                            .port = PORT,
                            .resolv_conf = RESOLV_FILE};
    char address[INET_ADDRSTRLEN];
    int rc;

    if (strcmp(o->address, OFF) == 0 || (automatic && range.prefix == 0)) {
        return 0;
    }
    if (automatic) {
        opts.address = inet_ntop(AF_INET, &tenth, address, sizeof(address));
    }
    opts.zone.domain = o->domain;
    rc = dns_new(&opts, ret, err);
    if (rc < 0 && automatic) {
        *ret_off = *err;
        return 0;
    }
    return rc < 0 ? hk_wrap(err, rc, "option --cluster-dns") : 0;
}
