// SPDX-License-Identifier: Apache-2.0
// Implements the protocol of sd_notify(3): one datagram.
#include "daemon/notify.h"

#include "base/log.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify(const char *state)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    const size_t n = path ? strlen(path) : 0;
    const socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    int fd;

    if (n < 2 || n >= sizeof(to.sun_path) || !strchr("/@", path[0])) {
        return;
    }
    memcpy(to.sun_path, path, n);
    if (path[0] == '@') {
        to.sun_path[0] = '\0'; /* abstract socket */
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, len) < 0) {
        hk_log(HK_LOG_WARN, "cannot tell the service manager", "socket=%s err=\"%m\"", path);
    }
    if (fd >= 0) {
        close(fd);
    }
}
