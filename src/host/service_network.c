// SPDX-License-Identifier: Apache-2.0
// Chooses networks for Services. A network is held by a Unix socket whose abstract name contains it:
// such names belong to a network namespace, as loopback addresses do, every user may bind one, and the
// kernel releases them however the server ends.
#include "host/service_network.h"

#include "base/file.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RECORD "service-network" /* in the data directory */

enum {
    FIRST = 128, /* 127.128.0.0/16; pods use 127.64.0.0/10 */
    LAST = 254,
    PREFIX = 16,
    TEXT_MAX = 32,
};

int service_network_parse(const char *text, struct service_network *ret, struct hk_err *err)
{
    *ret = (struct service_network){.automatic = strcmp(text, "auto") == 0};
    return ret->automatic ? 0 : rest_service_range_parse(text, &ret->range, err);
}

static void write_range(const struct rest_service_range *range, char out[TEXT_MAX])
{
    const struct in_addr in = {htonl(range->net)};
    char net[INET_ADDRSTRLEN];

    snprintf(out, TEXT_MAX, "%s/%u", inet_ntop(AF_INET, &in, net, sizeof(net)), range->prefix);
}

/* -HK_EBUSY: another server has it. */
static int hold_range(const struct rest_service_range *range, int *ret, struct hk_err *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char text[TEXT_MAX];
    int fd, n;

    write_range(range, text);
    n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "hekla-services-%s", text);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return hk_fail(err, HK_EIO, "cannot create a socket: %s", strerror(errno));
    }
    if (bind(fd, (struct sockaddr *)&name,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) < 0) {
        const int code = errno == EADDRINUSE ? HK_EBUSY : HK_EIO;

        hk_fail(err, code, "cannot hold network %s for Services: %s", text, strerror(errno));
        close(fd);
        return -code;
    }
    *ret = fd;
    return 0;
}

/* A server goes on without the hold: its Services lead nowhere while the other one runs, but nothing
 * else is lost. */
static int hold_known(struct service_network *n, int *ret, struct hk_err *err)
{
    const int rc = hold_range(&n->range, ret, err);

    n->shared = rc == -HK_EBUSY;
    return n->shared ? 0 : rc;
}

/* If all are held, which any user of the machine can bring about, the first one is shared. */
static int choose_range(struct service_network *n, int *ret, struct hk_err *err)
{
    for (uint32_t k = FIRST; k <= LAST; k++) {
        int rc;

        n->range = (struct rest_service_range){.net = 127u << 24 | k << 16, .prefix = PREFIX};
        rc = hold_range(&n->range, ret, err);
        if (rc != -HK_EBUSY) {
            return rc;
        }
    }
    n->range.net = 127u << 24 | (uint32_t)FIRST << 16;
    n->shared = true;
    return 0;
}

/* Whether the directory has a record. */
static bool read_record(const char *path, struct rest_service_range *ret)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};

    if (access(path, F_OK) < 0 || hk_read_file(path, TEXT_MAX, &text, NULL) < 0) {
        return false;
    }
    text.data[strcspn(text.data, "\n")] = '\0';
    if (rest_service_range_parse(text.data, ret, NULL) < 0) {
        hk_log(HK_LOG_WARN, "a damaged record is replaced: Services may get other addresses",
               "file=\"%s\"", path);
        return false;
    }
    return true;
}

int service_network_claim(struct service_network *n, const char *dir, int *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    char text[TEXT_MAX];
    int rc;

    *ret = -1;
    hk_buf_addf(&path, "%s/" RECORD, dir);
    if (!n->automatic) {
        return n->range.prefix == 0 ? 0 : hold_known(n, ret, err);
    }
    if (read_record(path.data, &n->range)) {
        return hold_known(n, ret, err);
    }
    rc = choose_range(n, ret, err);
    if (rc < 0) {
        return rc;
    }
    write_range(&n->range, text);
    return hk_write_file(path.data, hk_str(text), err);
}

void service_network_warn(const struct service_network *n)
{
    char text[TEXT_MAX];

    if (n->shared) {
        write_range(&n->range, text);
        hk_log(HK_LOG_WARN, "another server on this machine uses the same network for Services",
               "network=%s hint=\"give one of them another --service-cluster-ip-range\"", text);
    }
}
