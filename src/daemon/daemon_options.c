// SPDX-License-Identifier: Apache-2.0
// The options that daemons share, with the names and defaults of Volcano's programs.
#include "daemon/daemon.h"

#include <stdlib.h>

#define S_NS ((int64_t)1000 * 1000 * 1000)

const struct option_row daemon_server_options[] = {
    ROW_TEXT(0, "master", "URL", struct daemon_opts, master, NULL,
             "The address of the API server. It replaces the address in the kubeconfig."),
    ROW_TEXT_OR(0, "kubeconfig", "FILE", struct daemon_opts, kubeconfig,
                "the service account of the pod, unless --master is given",
                "The file with the address of the API server and the credentials for it."),
    ROW_END,
};

/* API servers write to every watch at least once a minute. A limit below a second would end watches
 * without events again and again. */
const struct option_row daemon_watch_options[] = {
    ROW_DURATION(0, "watch-stall", struct daemon_opts, watch_stall_ns, S_NS, "100s",
                 "Restart a watch after this time without a message. API servers send a message "
                 "every minute."),
    ROW_END,
};

const struct option_row daemon_tls_options[] = {
    ROW_TEXT(0, "ca-cert-file", "FILE", struct daemon_opts, ca_file, NULL,
             "The certificate authority, PEM. With this, --tls-cert-file and "
             "--tls-private-key-file, health is served over TLS."),
    ROW_TEXT(0, "tls-cert-file", "FILE", struct daemon_opts, cert_file, NULL,
             "The serving certificate, PEM."),
    ROW_TEXT(0, "tls-private-key-file", "FILE", struct daemon_opts, key_file, NULL,
             "The key of the serving certificate, PEM."),
    ROW_END,
};

const struct option_row daemon_election_options[] = {
    ROW_BOOL("leader-elect", struct daemon_opts, elect, "true",
             "Work only while holding a lease, so that several processes can run and one works."),
    ROW_DURATION(0, "leader-elect-lease-duration", struct daemon_opts, lease_duration_ns, 0, "15s",
                 "Take over when the leader has not renewed the lease for this time."),
    ROW_DURATION(0, "leader-elect-renew-deadline", struct daemon_opts, renew_deadline_ns, 0, "10s",
                 "Stop leading when the lease could not be renewed for this time."),
    ROW_DURATION(0, "leader-elect-retry-period", struct daemon_opts, retry_period_ns, 0, "2s",
                 "The time between attempts to get or renew the lease."),
    ROW_IGNORED_CHOICE("leader-elect-resource-lock", "KIND", "leases"),
    ROW_TEXT(0, "leader-elect-resource-namespace", "NAMESPACE", struct daemon_opts, lease_ns,
             "volcano-system", "The namespace of the lease."),
    ROW_TEXT(0, "lock-object-namespace", "NAMESPACE", struct daemon_opts, lease_ns, NULL,
             "Deprecated: use --leader-elect-resource-namespace."),
    ROW_END,
};

const struct option_row daemon_log_options[] = {
    ROW_INT('v', "v", "N", struct daemon_opts, verbosity, 0, INT32_MAX, "0",
            "How much to log. From 4 on, failures that are tried again are logged too."),
    ROW_BOOL("version", struct daemon_opts, version, "false", "Print the version and exit."),
    ROW_TEXT_OR(0, "log-file", "FILE", struct daemon_opts, log_file, "standard error",
                "Append the log to this file once the program has started. SIGHUP opens the file "
                "again, so that it can be renamed; without a file SIGHUP does nothing."),
    ROW_IGNORED(OPTION_BOOL, "logtostderr", "BOOL"),
    ROW_IGNORED(OPTION_BOOL, "alsologtostderr", "BOOL"),
    ROW_IGNORED(OPTION_TEXT, "stderrthreshold", "LEVEL"),
    ROW_IGNORED(OPTION_TEXT, "log-flush-frequency", "DURATION"),
    ROW_IGNORED(OPTION_TEXT, "log-dir", "DIR"),
    ROW_IGNORED(OPTION_TEXT, "log-file-max-size", "N"),
    ROW_IGNORED(OPTION_TEXT, "log-backtrace-at", "WHERE"),
    ROW_IGNORED(OPTION_TEXT, "vmodule", "LIST"),
    ROW_IGNORED(OPTION_BOOL, "add-dir-header", "BOOL"),
    ROW_IGNORED(OPTION_BOOL, "skip-headers", "BOOL"),
    ROW_IGNORED(OPTION_BOOL, "skip-log-headers", "BOOL"),
    ROW_IGNORED(OPTION_BOOL, "one-output", "BOOL"),
    ROW_END,
};

int daemon_parse_qps(void *at, const struct option_row *row, const char *value, struct hk_err *err)
{
    char *end;
    const double qps = strtod(value, &end);

    if (end == value || *end != '\0' || !(qps > 0 || qps < 0) || qps > DAEMON_MAX_BURST) {
        return hk_fail(err, HK_EINVAL,
                       "option --%s is '%s', want a number greater than 0, or a negative one for "
                       "no limit",
                       row->name, value);
    }
    *(double *)at = qps;
    return 0;
}

int daemon_split_address(const char *text, char *host, size_t room, uint16_t *ret_port)
{
    struct hk_str part = hk_str(text);
    const char *colon = strrchr(text, ':');
    int64_t port;

    if (!colon || !hk_str_int(hk_str(colon + 1), &port) || port < 0 || port > UINT16_MAX) {
        return -HK_EINVAL;
    }
    part.n = (size_t)(colon - text);
    if (part.n > 1 && part.s[0] == '[' && part.s[part.n - 1] == ']') {
        part = (struct hk_str){part.s + 1, part.n - 2};
    }
    if (part.n >= room) {
        return -HK_EINVAL;
    }
    snprintf(host, room, "%.*s", HK_FMT(part));
    *ret_port = (uint16_t)port;
    return 0;
}

int daemon_parse_address(void *at, const struct option_row *row, const char *value,
                         struct hk_err *err)
{
    char host[64];
    uint16_t port;

    if (daemon_split_address(value, host, sizeof(host), &port) < 0) {
        return hk_fail(err, HK_EINVAL, "option --%s is '%s', want ADDR:PORT", row->name, value);
    }
    *(const char **)at = value;
    return 0;
}

int daemon_accept_word(void *at, const struct option_row *row, const char *value,
                       struct hk_err *err)
{
    return strcmp(value, "2>&1") == 0 ? 0 : hk_fail(err, HK_EINVAL, "unexpected '%s'", value);
}
