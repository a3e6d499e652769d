// SPDX-License-Identifier: Apache-2.0
// The resolv.conf of a pod, by the kubelet's rules: the policy says where it begins, and the pod's
// dnsConfig is merged into that.
//
//   ClusterFirst             the cluster's DNS server; names of the cluster come before the
//                            machine's in the search list. On the host's network: Default
//   ClusterFirstWithHostNet  the same on any network
//   Default                  the machine's file
//   None                     empty
//
// A node without a DNS server of the cluster takes ClusterFirst as Default. Where the result would be
// the machine's file, the pod sees that file itself; in the root of an image, a copy.
#include "agent/pod/dns.h"

#include "agent/pod/hosts.h"
#include "agent/pod/volume_dir.h"
#include "net/resolv.h"

enum {
    SERVERS_MAX = 3,
    SEARCH_MAX = 32,
    SEARCH_NAME_MAX = 253,
    SEARCH_BYTES_MAX = 2048, /* with a blank between each two */
};

enum dns_base { DNS_BASE_NONE, DNS_BASE_MACHINE, DNS_BASE_CLUSTER };

static enum dns_base pod_dns_base(const struct pod *p)
{
    const struct hk_str policy = json_str(pod_spec(p, "dnsPolicy"), HK_STR("ClusterFirst"));
    const bool host = json_bool(pod_spec(p, "hostNetwork"), false);

    if (hk_str_is(policy, "None")) {
        return DNS_BASE_NONE;
    }
    if (!p->host->o.dns || hk_str_is(policy, "Default") ||
        (host && hk_str_is(policy, "ClusterFirst"))) {
        return DNS_BASE_MACHINE;
    }
    return DNS_BASE_CLUSTER;
}

/* ---- merging ---- */

static void pod_dns_set_cluster(const struct pod *p, struct resolv *r)
{
    const char *domain = p->host->o.domain;
    struct hk_arena *a = &p->host->mem;
    struct resolv machine = {0};

    resolv_read(RESOLV_FILE, &machine);
    resolv_add(&r->servers, hk_str(p->host->o.dns));
    resolv_add(&r->search, hk_str(hk_arena_printf(a, "%.*s.svc.%s", HK_FMT(p->ns), domain)));
    resolv_add(&r->search, hk_str(hk_arena_printf(a, "svc.%s", domain)));
    resolv_add(&r->search, hk_str(domain));
    for (uint32_t i = 0; i < machine.search.len; i++) {
        resolv_add(&r->search, hk_str(machine.search.at[i]));
    }
    resolv_add(&r->options, HK_STR("ndots:5"));
    resolv_fini(&machine);
}

static void pod_dns_add_all(const struct json *list, resolv_words *to)
{
    for (uint32_t i = 0; json_item(list, i); i++) {
        resolv_add(to, json_str(json_item(list, i), HK_STR("")));
    }
}

static struct hk_str pod_dns_option_name(struct hk_str option)
{
    struct hk_str name = {0};

    hk_str_cut(&option, ':', &name);
    return name;
}

/* Replaces an option of the same name. */
static void pod_dns_set_option(resolv_words *options, struct hk_str option)
{
    const struct hk_str name = pod_dns_option_name(option);

    for (uint32_t i = 0; i < options->len; i++) {
        if (hk_str_eq(name, pod_dns_option_name(hk_str(options->at[i])))) {
            hk_free(options->at[i]);
            options->at[i] = hk_strndup(option.s, option.n);
            return;
        }
    }
    resolv_add(options, option);
}

static void pod_dns_merge(const struct pod *p, const struct json *config, struct resolv *r)
{
    const struct json *options = json_get(config, "options");

    pod_dns_add_all(json_get(config, "nameservers"), &r->servers);
    pod_dns_add_all(json_get(config, "searches"), &r->search);
    for (uint32_t i = 0; json_item(options, i); i++) {
        const struct hk_str name = json_str_field(json_item(options, i), "name");
        const struct hk_str value = json_str_field(json_item(options, i), "value");

        pod_dns_set_option(&r->options,
                           hk_str(hk_arena_printf(&p->host->mem, "%.*s%s%.*s", HK_FMT(name),
                                                  value.n > 0 ? ":" : "", HK_FMT(value))));
    }
}

/* ---- limits ---- */

static void pod_dns_cut(resolv_words *list, uint32_t max)
{
    while (list->len > max) {
        hk_free(hk_vec_pop(list));
    }
}

static const char *pod_dns_join(const resolv_words *list, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    for (uint32_t i = 0; i < list->len; i++) {
        hk_buf_addf(&text, "%s%s", i > 0 ? " " : "", list->at[i]);
    }
    return hk_arena_str(a, hk_buf_str(&text)).s;
}

static void pod_dns_remove_long_names(resolv_words *search)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < search->len; i++) {
        if (strlen(search->at[i]) > SEARCH_NAME_MAX) {
            hk_free(search->at[i]);
        } else {
            search->at[n++] = search->at[i];
        }
    }
    search->len = n;
}

static void pod_dns_limit(const struct pod *p, struct resolv *r)
{
    struct hk_arena *a = &p->host->mem;
    const uint32_t nsearch = r->search.len;

    if (r->servers.len > SERVERS_MAX) {
        pod_dns_cut(&r->servers, SERVERS_MAX);
        pod_note(p, true, "DNSConfigForming",
                 hk_arena_printf(a,
                                 "Nameserver limits were exceeded, some nameservers have been "
                                 "omitted, the applied nameserver line is: %s",
                                 pod_dns_join(&r->servers, a)));
    }
    pod_dns_cut(&r->search, SEARCH_MAX);
    pod_dns_remove_long_names(&r->search);
    while (strlen(pod_dns_join(&r->search, a)) > SEARCH_BYTES_MAX) {
        pod_dns_cut(&r->search, r->search.len - 1);
    }
    if (r->search.len < nsearch) {
        pod_note(p, true, "DNSConfigForming",
                 hk_arena_printf(a,
                                 "Search Line limits were exceeded, some search paths have been "
                                 "omitted, the applied search line is: %s",
                                 pod_dns_join(&r->search, a)));
    }
}

/* ---- the file ---- */

static int pod_dns_write(const char *path, const struct resolv *r, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    resolv_write(r, &text);
    return volume_write_file(path, hk_buf_str(&text), err); /* other containers have it mounted */
}

int pod_dns_mount(const struct pod *p, struct runtime_container *rc, struct hk_err *err)
{
    HK_AUTO(resolv_fini) struct resolv r = {0};
    const struct json *config = pod_spec(p, "dnsConfig");
    const enum dns_base base = pod_dns_base(p);
    const char *path = pod_hosts_file(p, "resolv.conf", &p->host->mem);
    int ret;

    if (base == DNS_BASE_MACHINE && !config && !rc->root) {
        return 0;
    }
    if (base == DNS_BASE_CLUSTER) {
        pod_dns_set_cluster(p, &r);
    } else if (base == DNS_BASE_MACHINE) {
        resolv_read(RESOLV_FILE, &r);
    }
    pod_dns_merge(p, config, &r);
    pod_dns_limit(p, &r);
    ret = pod_dns_write(path, &r, err);
    if (ret == 0) {
        runtime_add_mount(rc,
                          (struct runtime_mount){.from = path,
                                                 .at = RESOLV_FILE,
                                                 .own = true,
                                                 .optional = !config && base == DNS_BASE_CLUSTER},
                          &p->host->mem);
    }
    return ret;
}
