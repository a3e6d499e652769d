// SPDX-License-Identifier: Apache-2.0
// The records that outlive the agent, from arbitrary bytes: a disk that was full or broken, or
// somebody else's files. What is accepted is within the bounds that the runtime builds on.

#include "agent/process/state.h"
#include "fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

static void check_end(const char *path)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct runtime_end end;
    struct hk_err err = {0};

    if (process_state_end(path, &text, &end, &err) < 0) {
        hk_assert(err.text[0] != '\0');
        return;
    }
    hk_assert(end.code >= 0 && end.code <= 255 && end.signo >= 0 && end.signo <= 255);
    hk_assert(!end.again || end.never_ran);
    hk_assert(strlen(end.message) <= text.len);
}

static void check_shim(const char *path)
{
    struct process_shim shim;
    struct hk_err err = {0};

    if (process_state_shim(path, &shim, &err) < 0) {
        hk_assert(err.text[0] != '\0');
        return;
    }
    hk_assert(shim.pid > 0 && shim.pid <= INT32_MAX);
}

static void check_spec(const char *path)
{
    HK_AUTO(process_spec_fini) struct process_spec spec = {0};
    struct hk_err err = {0};

    if (process_state_load_spec(path, &spec, &err) < 0) {
        hk_assert(err.text[0] != '\0');
        return;
    }
    hk_assert(strlen(spec.cwd) <= spec.text.len);
    hk_assert(spec.env.len > 0 && !spec.env.at[spec.env.len - 1]);
    for (uint32_t k = 0; k + 1 < spec.env.len; k++) {
        hk_assert(spec.env.at[k][0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fd = memfd_create("record", MFD_CLOEXEC);
    int64_t pid, ticks;
    char path[64];

    hk_assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    check_end(path);
    check_shim(path);
    check_spec(path);
    process_state_stat((struct hk_str){(const char *)data, size}, &pid, &ticks);
    close(fd);
    return 0;
}
