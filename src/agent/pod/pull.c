// SPDX-License-Identifier: Apache-2.0
// Starts pulls, watches them, and spaces out those that fail, as kubelet does: after 10 s, 20 s, ...
// at most 5 minutes. The credentials of imagePullSecrets go through a file in the pod's directory.
#include "agent/pod/pull.h"

#include "base/file.h"
#include "codec/timefmt.h"
#include "net/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define BACKOFF_FIRST_NS (10 * SECOND_NS)
#define BACKOFF_LAST_NS (300 * SECOND_NS)
#define SHOW_NS SECOND_NS /* how long ErrImagePull is shown before ImagePullBackOff */
#define PULLS_MAX 3       /* at a time */
#define SAID_MAX 2048
#define SAID_PREFIX "hekla: image pull: "

extern char **environ;

struct pull {
    struct container *c;
    pid_t pid; /* 0: not started */
    int pidfd, out;
    struct net_watch *watch;
    int64_t begun_ns;
    char *name, *authfile;
};

static void pull_free(struct pull *l)
{
    struct host *h = l->c->pod->host;

    net_watch_del(l->watch);
    if (l->pid > 0) {
        h->npull--;
        close(l->pidfd);
        close(l->out);
    }
    if (l->authfile) {
        unlink(l->authfile);
    }
    l->c->pull = NULL;
    hk_free(l->name);
    hk_free(l->authfile);
    hk_free(l);
}

/* ---- credentials ---- */

/* Adds the registries of one secret. */
static void add_auths(const struct ref *r, struct json *auths, struct hk_arena *a)
{
    struct hk_str text;
    struct json doc;
    const struct json *from = NULL;

    if (ref_data(r, HK_STR(".dockerconfigjson"), a, &text) &&
        json_parse(text, 0, a, &doc, NULL) == 0) {
        from = json_get(&doc, "auths");
    } else if (ref_data(r, HK_STR(".dockercfg"), a, &text) &&
               json_parse(text, 0, a, &doc, NULL) == 0) {
        from = &doc;
    }
    for (uint32_t i = 0; json_is(from, JSON_OBJECT) && i < from->len; i++) {
        json_put(auths, a, from->members[i].key, from->members[i].value);
    }
}

static void write_auths(struct pull *l)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const struct pod *p = l->c->pod;
    struct hk_arena *a = &p->host->mem;
    const struct json *secrets = pod_spec(p, "imagePullSecrets");
    struct json doc = json_make_object(), auths = json_make_object();

    for (uint32_t i = 0; json_item(secrets, i); i++) {
        const struct ref *r =
            ref_find(p, API_SECRET, json_str_field(json_item(secrets, i), "name"));

        if (r && r->obj) {
            add_auths(r, &auths, a);
        }
    }
    if (auths.len == 0 || !p->dir) {
        return;
    }
    json_set(&doc, a, "auths", auths);
    json_write(&doc, &text);
    l->authfile = hk_strdup(hk_arena_printf(a, "%s/.auth.%.*s", p->dir, HK_FMT(l->c->name)));
    const int fd = open(l->authfile, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)!write(fd, text.data, text.len); /* skopeo reports a file that is not complete */
        close(fd);
    }
}

/* ---- ends ---- */

/* What the program said, without its name. */
static struct hk_str message_of(const struct hk_buf *said)
{
    const struct hk_str text = hk_str_trim(hk_buf_str(said));
    const size_t n = sizeof(SAID_PREFIX) - 1;

    return hk_str_starts(text, SAID_PREFIX) ? (struct hk_str){text.s + n, text.n - n} : text;
}

static void read_said(const struct pull *l, struct hk_buf *out)
{
    char buf[SAID_MAX];
    const ssize_t n = read(l->out, buf, sizeof(buf));

    hk_buf_add(out, buf, (size_t)HK_MAX(n, 0));
}

static void pull_failed(struct container *c, const char *name, struct hk_str why)
{
    struct hk_arena *a = &c->pod->host->mem;
    const char *text = hk_arena_printf(a, "Failed to pull image \"%s\": %.*s", name,
                                       HK_FMT(hk_str_head(why, 700)));

    c->pull_backoff_ns = c->pull_backoff_ns == 0 ? BACKOFF_FIRST_NS
                                                 : HK_MIN(2 * c->pull_backoff_ns, BACKOFF_LAST_NS);
    c->pull_again_ns = host_mono_ns(c->pod->host) + c->pull_backoff_ns;
    c->due_ns = host_mono_ns(c->pod->host) + SHOW_NS;
    c->pull_shown = false;
    pod_note(c->pod, true, "Failed", text);
    pod_note(c->pod, true, "Failed", "Error: ErrImagePull");
    container_wait(c, "ErrImagePull", hk_arena_strndup(a, why.s, why.n));
}

static void pull_succeeded(struct container *c, const char *name, int64_t took_ns)
{
    HK_AUTO(hk_buf_fini) struct hk_buf took = {0};

    duration_write(took_ns / 1000000 * 1000000, &took);
    c->pulled = true;
    c->pull_backoff_ns = 0;
    c->due_ns = 0;
    pod_note(c->pod, false, "Pulled",
             hk_arena_printf(&c->pod->host->mem, "Successfully pulled image \"%s\" in %s", name,
                             took.data));
}

static void pull_on_end(void *ctx, uint32_t events)
{
    HK_AUTO(hk_buf_fini) struct hk_buf said = {0};
    struct pull *l = ctx;
    struct container *c = l->c;
    int status = 0;

    if (waitpid(l->pid, &status, WNOHANG) != l->pid) {
        return;
    }
    read_said(l, &said);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        pull_succeeded(c, l->name, host_mono_ns(c->pod->host) - l->begun_ns);
    } else {
        pull_failed(c, l->name, message_of(&said));
    }
    pod_touch(c->pod);
    pull_free(l);
}

void pod_pull_end(struct container *c)
{
    struct pull *l = c->pull;

    if (!l) {
        return;
    }
    if (l->pid > 0) {
        kill(-l->pid, SIGKILL); /* skopeo is in its process group */
        waitpid(l->pid, NULL, 0);
    }
    pull_free(l);
}

/* ---- starts ---- */

static int spawn_pull(struct pull *l, const char *const *argv, int out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    int rc;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                       POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
    rc = posix_spawn(&l->pid, "/proc/self/exe", &files, &how, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return rc;
}

static int pull_start(struct pull *l)
{
    struct host *h = l->c->pod->host;
    const char *argv[] = {"hekla",
                          "image",
                          "pull",
                          "--data-dir",
                          h->o.images,
                          l->authfile ? "--authfile" : l->name,
                          l->authfile ? l->authfile : NULL,
                          l->name,
                          NULL};
    int ends[2], rc;

    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -1;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    rc = spawn_pull(l, argv, ends[1]);
    close(ends[1]);
    l->pidfd = rc == 0 ? pidfd_open(l->pid, 0) : -1;
    if (l->pidfd < 0) {
        close(ends[0]);
        if (rc == 0) {
            kill(-l->pid, SIGKILL);
            waitpid(l->pid, NULL, 0);
        }
        l->pid = 0;
        return -1;
    }
    l->out = ends[0];
    h->npull++;
    l->watch = net_watch_add(h->o.loop, l->pidfd, EPOLLIN, pull_on_end, l);
    return 0;
}

static void pull_begin(struct container *c, const struct image_name *name)
{
    struct pull *l = hk_zalloc(sizeof(*l));
    struct host *h = c->pod->host;
    const char *given = hk_arena_str(&h->mem, json_str_field(c->spec, "image")).s;

    *l = (struct pull){
        .c = c, .name = hk_strdup(name->text), .begun_ns = host_mono_ns(h), .pidfd = -1, .out = -1};
    c->pull = l;
    c->due_ns = INT64_MAX;
    write_auths(l);
    pod_note(c->pod, false, "Pulling", hk_arena_printf(&h->mem, "Pulling image \"%s\"", given));
    if (pull_start(l) < 0) {
        pull_failed(c, given, HK_STR("cannot start another process"));
        pull_free(l);
    }
}

/* The wait after a failure, shown once ErrImagePull has been. */
static void show_back_off(struct container *c)
{
    struct hk_arena *a = &c->pod->host->mem;
    const char *text =
        hk_arena_printf(a, "Back-off pulling image \"%.*s\": ErrImagePull: %s",
                        HK_FMT(json_str_field(c->spec, "image")), c->why_text ? c->why_text : "");

    c->due_ns = c->pull_again_ns;
    if (c->pull_shown) {
        return;
    }
    c->pull_shown = true;
    pod_note(c->pod, false, "BackOff",
             hk_arena_printf(a, "Back-off pulling image \"%.*s\"",
                             HK_FMT(json_str_field(c->spec, "image"))));
    pod_note(c->pod, true, "Failed", "Error: ImagePullBackOff");
    container_wait(c, "ImagePullBackOff", text);
}

enum pull_state pod_pull(struct container *c, const struct image_name *name)
{
    const int64_t now_ns = host_mono_ns(c->pod->host);

    if (c->pulled) {
        return PULL_DONE;
    }
    if (c->pull) {
        return PULL_RUNS;
    }
    if (c->pull_backoff_ns > 0 && c->pull_again_ns > now_ns) {
        show_back_off(c);
        return PULL_FAILED;
    }
    if (c->pod->host->npull >= PULLS_MAX) {
        c->due_ns = now_ns + SECOND_NS;
        return PULL_RUNS;
    }
    pull_begin(c, name);
    return c->pull ? PULL_RUNS : PULL_FAILED;
}
