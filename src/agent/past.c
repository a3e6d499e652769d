// SPDX-License-Identifier: Apache-2.0
// Records the newest resourceVersion that the node has seen. When the server's store goes back in
// time (restored from a backup, or after data loss), the server does not know pods that run here;
// the agent must not treat those as deleted. The record is next to the records of running
// containers. Like those, it need not survive a reboot, so it is not synced.
#include "agent/past.h"

#include "agent/agent.h"
#include "api/revision.h"
#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

enum { MAX_TEXT = 32 };

void past_init(struct past *p, const char *dir)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0};
    char text[MAX_TEXT];
    int64_t rv;
    ssize_t n;

    *p = (struct past){.dir = dir, .fd = -1};
    if (!dir) {
        return;
    }
    hk_buf_addf(&path, "%s/" AGENT_REVISION_FILE, dir);
    p->fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    n = p->fd < 0 ? 0 : pread(p->fd, text, sizeof(text), 0);
    if (n > 0 && hk_str_int(hk_str_trim((struct hk_str){text, (size_t)n}), &rv) && rv > 0) {
        p->rv = (uint64_t)rv;
    }
}

void past_fini(struct past *p)
{
    if (p->fd >= 0) {
        close(p->fd);
    }
}

bool past_is_ahead(const struct past *p, uint64_t rv)
{
    return p->rv != 0 && (rv < p->rv || revision_generation(rv) != revision_generation(p->rv));
}

/* Has a fixed length, so that a shorter record overwrites a longer one completely. */
void past_note(struct past *p, uint64_t rv)
{
    char text[MAX_TEXT];

    if (p->fd < 0 || rv == p->rv || rv == 0) {
        return;
    }
    const int n = snprintf(text, sizeof(text), "%020llu\n", (unsigned long long)rv);
    if (pwrite(p->fd, text, (size_t)n, 0) == n) {
        p->rv = rv;
    }
}

void past_tell_kept(const struct past *p, const struct json *uids)
{
    HK_AUTO(hk_buf_fini) struct hk_buf path = {0}, text = {0};

    if (!p->dir) {
        return;
    }
    hk_buf_addf(&path, "%s/" AGENT_KEPT_FILE, p->dir);
    for (uint32_t i = 0; i < uids->len; i++) {
        hk_buf_addf(&text, "%.*s\n", HK_FMT(json_str(&uids->items[i], HK_STR(""))));
    }
    if (uids->len == 0) {
        unlink(path.data);
    } else {
        (void)!hk_write_file(path.data, hk_buf_str(&text), NULL); /* the log has them, too */
    }
}
