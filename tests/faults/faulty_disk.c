// SPDX-License-Identifier: Apache-2.0
// A disk that fails on demand, put under the real server with LD_PRELOAD. The first byte of the
// file that FAULTY_DISK names says how the store's files fail: 's' no sync works, 'w' no space is
// left for a write, anything else not at all. Other files are left alone.
#undef _FILE_OFFSET_BITS /* which would give pwrite the name of pwrite64: callers use both */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const volatile char *control;

__attribute__((constructor)) static void faulty_disk_open(void)
{
    const char *path = getenv("FAULTY_DISK");
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (at == MAP_FAILED) {
        fprintf(stderr, "faulty_disk: cannot map FAULTY_DISK\n");
        abort();
    }
    close(fd);
    control = at;
}

static bool strikes(char fault, int fd)
{
    char link[64], path[PATH_MAX];

    if (*control != fault) {
        return false;
    }
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    return strstr(path, "/store.db") != NULL;
}

static int fail(int code)
{
    errno = code;
    return -1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fsync(int fd)
{
    return strikes('s', fd) ? fail(EIO) : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
    return strikes('s', fd) ? fail(EIO) : REAL(fdatasync)(fd);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return strikes('w', fd) ? fail(ENOSPC) : REAL(pwrite)(fd, p, n, at);
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    return strikes('w', fd) ? fail(ENOSPC) : REAL(pwrite64)(fd, p, n, at);
}
