// SPDX-License-Identifier: Apache-2.0
// The dnsConfig of a pod, as validatePodDNSConfig of Kubernetes.
#include "admission/admission_priv.h"

#include <arpa/inet.h>

enum { SERVERS_MAX = 3, SEARCH_MAX = 32, SEARCH_BYTES_MAX = 2048 };

static void pod_dns_check_servers(struct admission_request *q, const struct path *p,
                                  const struct json *list)
{
    struct in6_addr parsed;

    if (edit_len(list) > SERVERS_MAX) {
        cause_invalid(q, p, list, "must not have more than %d nameservers", SERVERS_MAX);
    }
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct path at = path_index(p, i);
        const struct hk_str ip = json_str(json_item(list, i), HK_STR(""));
        const char *text = hk_arena_str(q->mem, ip).s;

        if (inet_pton(AF_INET, text, &parsed) != 1 && inet_pton(AF_INET6, text, &parsed) != 1) {
            cause_invalid_str(q, &at, ip,
                              "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        }
    }
}

/* A domain may have underscores, end with a dot, or be the root (RelaxedDNSSearchValidation). */
static void pod_dns_check_search(struct admission_request *q, const struct path *p,
                                 struct hk_str domain)
{
    HK_AUTO(hk_buf_fini) struct hk_buf plain = {0}, errors = {0};

    if (hk_str_is(domain, ".")) {
        return;
    }
    domain.n -= hk_str_ends(domain, ".");
    hk_buf_addstr(&plain, domain);
    for (size_t i = 0; i < plain.len; i++) {
        plain.data[i] = plain.data[i] == '_' ? 'a' : plain.data[i];
    }
    if (!name_write_errors(hk_buf_str(&plain), NAME_SUBDOMAIN, "; ", &errors)) {
        name_check(q, p, domain, NAME_SUBDOMAIN);
    }
}

static void pod_dns_check_searches(struct admission_request *q, const struct path *p,
                                   const struct json *list)
{
    size_t bytes = edit_len(list) > 0 ? edit_len(list) - 1 : 0; /* blanks between them */

    if (edit_len(list) > SEARCH_MAX) {
        cause_invalid(q, p, list, "must not have more than %d search paths", SEARCH_MAX);
    }
    for (uint32_t i = 0; i < edit_len(list); i++) {
        bytes += json_str(json_item(list, i), HK_STR("")).n;
    }
    if (bytes > SEARCH_BYTES_MAX) {
        cause_invalid(q, p, list,
                      "must not have more than %d characters (including spaces) in the search list",
                      SEARCH_BYTES_MAX);
    }
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct path at = path_index(p, i);

        pod_dns_check_search(q, &at, json_str(json_item(list, i), HK_STR("")));
    }
}

static void pod_dns_check_options(struct admission_request *q, const struct path *p,
                                  const struct json *list)
{
    for (uint32_t i = 0; i < edit_len(list); i++) {
        const struct path at = path_index(p, i);

        if (edit_str(json_item(list, i), "name").n == 0) {
            cause_required(q, &at, "must not be empty");
        }
    }
}

void admit_pod_validate_dns(struct admission_request *q, const struct path *up,
                            const struct json *spec)
{
    const struct json *config = json_get(spec, "dnsConfig");
    const struct path p = path_field(up, "dnsConfig");
    const struct path servers = path_field(&p, "nameservers"),
                      searches = path_field(&p, "searches");
    const struct path options = path_field(&p, "options");
    const bool none = hk_str_is(edit_str(spec, "dnsPolicy"), "None");

    if (none && !json_is(config, JSON_OBJECT)) {
        cause_required(q, &p, "must provide `dnsConfig` when `dnsPolicy` is None");
    } else if (none && edit_len(json_get(config, "nameservers")) == 0) {
        cause_required(q, &servers,
                       "must provide at least one DNS nameserver when `dnsPolicy` is None");
    } else {
        pod_dns_check_servers(q, &servers, json_get(config, "nameservers"));
        pod_dns_check_searches(q, &searches, json_get(config, "searches"));
        pod_dns_check_options(q, &options, json_get(config, "options"));
    }
}
