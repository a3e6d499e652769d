// SPDX-License-Identifier: Apache-2.0
// Certificates and keys in memory files, because libcurl with GnuTLS accepts only file names.
#include "client/pem_file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

void pem_file_fini(struct pem_file *p)
{
    if (p->fd >= 0) {
        close(p->fd);
    }
    p->fd = -1;
}

int pem_file_set(struct pem_file *p, const char *text, struct hk_err *err)
{
    const size_t n = strlen(text);
    const int fd = memfd_create("pem", MFD_CLOEXEC);
    size_t done = 0;

    while (fd >= 0 && done < n) {
        const ssize_t part = write(fd, text + done, n - done);
        if (part < 0 && errno != EINTR) {
            break;
        }
        done += part > 0 ? (size_t)part : 0;
    }
    if (fd < 0 || done < n) {
        const int rc = hk_fail(err, HK_EIO, "cannot keep a certificate in memory: %m");
        if (fd >= 0) {
            close(fd);
        }
        return rc;
    }
    pem_file_fini(p);
    p->fd = fd;
    snprintf(p->path, sizeof(p->path), "/proc/self/fd/%d", fd);
    return 0;
}
