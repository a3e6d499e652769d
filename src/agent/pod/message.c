// SPDX-License-Identifier: Apache-2.0
// The termination message of a container: the end of a file in the container, by default
// /dev/termination-log. With FallbackToLogsOnError a failed container without a message gets the
// end of its log instead.
#include "agent/pod/message.h"

#include "agent/pod/hosts.h"
#include "agent/pod/output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_DEFAULT "/dev/termination-log"
#define MESSAGE_MAX 4096

static const char *pod_message_file_path(const struct container *c, struct hk_arena *a)
{
    return pod_hosts_file(c->pod,
                          hk_arena_printf(a, "%.*s.%u.message", HK_FMT(c->name), c->attempt), a);
}

static int pod_message_create_file(const char *path, struct hk_err *err)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0) {
        return hk_fail(err, HK_EIO, "cannot make '%s': %s", path, strerror(errno));
    }
    fchmod(fd, 0666); /* the container may run as any user */
    close(fd);
    return 0;
}

int pod_message_mount(const struct container *c, struct runtime_container *rc, struct hk_err *err)
{
    struct hk_arena *a = &c->pod->host->mem;
    const struct hk_str at =
        json_str(json_get(c->spec, "terminationMessagePath"), HK_STR(PATH_DEFAULT));
    const char *file = pod_message_file_path(c, a);
    int ret;

    if (at.n == 0) {
        return 0;
    }
    ret = pod_message_create_file(file, err);
    if (ret < 0) {
        return ret;
    }
    runtime_add_mount(rc,
                      (struct runtime_mount){
                          .from = file, .at = hk_arena_str(a, at).s, .optional = true, .own = true},
                      a);
    return 0;
}

void pod_message_set(struct container_end *e, struct hk_str text)
{
    text = hk_str_head(text, MESSAGE_MAX);
    hk_free(e->message);
    e->message = text.n > 0 ? hk_strndup(text.s, text.n) : NULL;
}

void pod_message_collect(struct container *c)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    struct hk_arena *a = &c->pod->host->mem;
    const struct hk_str policy =
        json_str(json_get(c->spec, "terminationMessagePolicy"), HK_STR("File"));

    if (!c->pod->dir) {
        return;
    }
    output_last_bytes(pod_message_file_path(c, a), MESSAGE_MAX, &text);
    if (text.len == 0 && c->end.code != 0 && hk_str_is(policy, "FallbackToLogsOnError")) {
        output_log_end(pod_log_path(c, c->attempt, a), &text);
    }
    pod_message_set(&c->end, hk_buf_str(&text));
    pod_message_remove(c);
}

void pod_message_remove(const struct container *c)
{
    unlink(pod_message_file_path(c, &c->pod->host->mem));
}
