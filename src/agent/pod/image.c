// SPDX-License-Identifier: Apache-2.0
// Decides what a container runs in. Images are in the server's store (image/store.h). --images says
// what happens with other ones:
//
//     machine  the command runs in the machine's own files; without a command the container waits
//     store    the container waits until the image is imported
//     pull     the image is pulled, as imagePullPolicy says
#include "agent/pod/image.h"

#include "agent/pod/pull.h"
#include "agent/pod/volume_dir.h"
#include "base/file.h"
#include "image/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MISSING_AGAIN_NS (5 * SECOND_NS)

static struct hk_str image_of(const struct container *c)
{
    return json_str_field(c->spec, "image");
}

const char *pod_image_mapped_root(const struct container *c, struct hk_arena *a)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const char *path = c->pod->host->o.image_roots;
    struct hk_str rest, line, word;

    if (!path || hk_read_file(path, 1 << 20, &text, NULL) < 0) {
        return NULL;
    }
    rest = hk_buf_str(&text);
    while (hk_str_cut(&rest, '\n', &line)) {
        line = hk_str_trim(line);
        if (hk_str_cut(&line, ' ', &word) && line.s && hk_str_eq(word, image_of(c))) {
            return hk_arena_str(a, hk_str_trim(line)).s;
        }
    }
    return NULL;
}

/* ---- waiting ---- */

/* Reports each reason once. */
static int wait_with(struct container *c, const char *why, const char *text)
{
    struct hk_arena *a = &c->pod->host->mem;

    c->due_ns = host_mono_ns(c->pod->host) + MISSING_AGAIN_NS;
    if (!c->why_text || strcmp(c->why_text, text) != 0) {
        pod_note(c->pod, true, strcmp(why, "ErrImageNeverPull") == 0 ? why : "Failed", text);
        pod_note(c->pod, true, "Failed", hk_arena_printf(a, "Error: %s", why));
        container_wait(c, why, text);
    }
    return -HK_EBUSY;
}

static int wait_for_import(struct container *c)
{
    const bool machine = c->pod->host->o.image_policy == AGENT_IMAGES_MACHINE;

    return wait_with(
        c, "ErrImageNeverPull",
        hk_arena_printf(&c->pod->host->mem,
                        "Container image \"%.*s\" is not present with pull policy of Never: bring "
                        "it to this node with 'hekla image import FILE' or 'hekla image pull "
                        "%.*s'%s",
                        HK_FMT(image_of(c)), HK_FMT(image_of(c)),
                        machine ? ", or give the container a command to run on this machine" : ""));
}

static int wait_for_name(struct container *c, const struct hk_err *err)
{
    return wait_with(c, "InvalidImageName",
                     hk_arena_printf(&c->pod->host->mem,
                                     "Failed to apply default image tag \"%.*s\": %s",
                                     HK_FMT(image_of(c)), err->text));
}

/* ---- finding ---- */

static bool has_command(const struct container *c)
{
    return json_len(json_get(c->spec, "command")) > 0;
}

/* The container may run in the machine's files instead. */
static bool may_use_machine(const struct container *c)
{
    return c->pod->host->o.image_policy == AGENT_IMAGES_MACHINE && has_command(c);
}

static int64_t run_as(const struct container *c, const char *key)
{
    const struct json *own = json_get(json_get(c->spec, "securityContext"), key);

    return json_int(own ? own : json_get(pod_spec(c->pod, "securityContext"), key), -1);
}

static int load_image(const struct container *c, struct pod_image *i, struct hk_err *err)
{
    struct hk_arena *a = &c->pod->host->mem;
    const char *data_dir = c->pod->host->o.images;
    const int64_t uid = run_as(c, "runAsUser");
    const char *root = image_store_root(data_dir, &i->record, a);
    int rc = image_store_config(data_dir, &i->record, a, &i->config, err);

    if (rc < 0) {
        return rc;
    }
    rc = image_user_find(
        root, uid < 0 ? i->config.user : hk_str(hk_arena_printf(a, "%lld", (long long)uid)), a,
        &i->user, err);
    if (rc == 0) {
        i->root = root;
    }
    return rc;
}

/* ---- pulling ---- */

static bool is_always(const struct container *c, const struct image_name *name)
{
    const struct hk_str policy = json_str_field(c->spec, "imagePullPolicy");

    return policy.n > 0 ? hk_str_is(policy, "Always") : hk_str_ends(hk_str(name->text), ":latest");
}

static bool is_never(const struct container *c)
{
    return hk_str_is(json_str_field(c->spec, "imagePullPolicy"), "Never");
}

/* Negative: the container waits. */
static int pull_if_needed(struct container *c, const struct image_name *name, bool present)
{
    if (c->pod->host->o.image_policy != AGENT_IMAGES_PULL || is_never(c) ||
        (present && !is_always(c, name))) {
        return 0;
    }
    return pod_pull(c, name) == PULL_DONE ? 0 : -HK_EBUSY;
}

static void tell_present(struct container *c)
{
    if (!c->pulled) {
        pod_note(c->pod, false, "Pulled",
                 hk_arena_printf(&c->pod->host->mem,
                                 "Container image \"%.*s\" already present on machine",
                                 HK_FMT(image_of(c))));
    }
}

int pod_image_choose(struct container *c, struct pod_image *ret)
{
    struct host *h = c->pod->host;
    struct image_name name;
    struct hk_err err = {0};
    int rc;

    *ret = (struct pod_image){0};
    if (!h->o.images || pod_image_mapped_root(c, &h->mem)) {
        return 0;
    }
    if (image_name_parse(image_of(c), &name, &err) < 0) {
        return may_use_machine(c) ? 0 : wait_for_name(c, &err);
    }
    rc = image_store_find(h->o.images, &name, &h->mem, &ret->record, &err);
    if (pull_if_needed(c, &name, rc == 0) < 0) {
        return -HK_EBUSY;
    }
    if (c->pulled) {
        rc = image_store_find(h->o.images, &name, &h->mem, &ret->record, &err);
    }
    if (rc == -HK_ENOTFOUND) {
        return may_use_machine(c) ? 0 : wait_for_import(c);
    }
    if (rc == 0) {
        rc = load_image(c, ret, &err);
    }
    if (rc < 0) {
        return wait_with(c, "CreateContainerError", hk_arena_str(&h->mem, hk_str(err.text)).s);
    }
    hk_free(c->image_id);
    c->image_id = hk_strdup(image_record_id(&ret->record, &h->mem));
    tell_present(c);
    return 0;
}

/* ---- what the image says ---- */

void pod_image_env(const struct pod_image *i, struct env *e, struct hk_arena *a)
{
    for (uint32_t k = 0; k < i->config.nenv; k++) {
        struct hk_str value = i->config.env[k], name;

        if (hk_str_cut(&value, '=', &name) && name.n > 0) {
            env_set(e, name, value.s ? value : HK_STR(""));
        }
    }
    if (!env_has(e, HK_STR("HOME"))) {
        env_set(e, HK_STR("HOME"), hk_str(i->user.home ? i->user.home : "/"));
    }
}

static uint32_t add_words(const char **argv, uint32_t n, const struct hk_str *words, uint32_t nword,
                          struct hk_arena *a)
{
    for (uint32_t k = 0; k < nword; k++) {
        argv[n++] = hk_arena_str(a, words[k]).s;
    }
    return n;
}

const char *const *pod_image_argv(const struct pod_image *i, const struct container *c,
                                  const struct env *e, struct hk_arena *a)
{
    const struct json *args = json_get(c->spec, "args");
    const struct image_config *g = &i->config;
    const char **argv;
    uint32_t n;

    if (has_command(c)) {
        return env_argv(e, c->spec, a);
    }
    argv = hk_arena_array(a, g->nentrypoint + g->ncmd + json_len(args) + 1, sizeof(*argv));
    n = add_words(argv, 0, g->entrypoint, g->nentrypoint, a);
    for (uint32_t k = 0; k < json_len(args); k++) {
        argv[n++] = env_expand(e, json_str(json_item(args, k), HK_STR("")), a).s;
    }
    if (json_len(args) == 0) {
        n = add_words(argv, n, g->cmd, g->ncmd, a);
    }
    argv[n] = NULL;
    return n > 0 ? argv : NULL;
}

/* ---- files ---- */

/* Removes a directory of the store's uses; a container that ended leaves only files. */
static void remove_changes(const char *uses, const char *name)
{
    HK_AUTO(image_close) int dir = open(uses, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir >= 0) {
        image_tree_remove(dir, name);
    }
}

int pod_image_prepare(const struct container *c, const struct pod_image *i, uint32_t attempt,
                      const char **ret, struct hk_err *err)
{
    struct hk_arena *a = &c->pod->host->mem;
    const char *uses = hk_arena_printf(a, "%s/" IMAGE_USES, c->pod->dir);
    const char *name = hk_arena_printf(a, "%.*s.%u", HK_FMT(c->name), attempt);
    const char *path = hk_arena_printf(a, "%s/%s", uses, name);
    int rc;

    if (attempt > 0) {
        remove_changes(uses, hk_arena_printf(a, "%.*s.%u", HK_FMT(c->name), attempt - 1));
    }
    remove_changes(uses, name); /* of a start that did not happen */
    rc = volume_mkdir(uses, 0700, err);
    if (rc < 0) {
        return rc;
    }
    rc = volume_mkdir(path, 0700, err);
    if (rc < 0) {
        return rc;
    }
    *ret = path;
    return image_store_use(c->pod->host->o.images, &i->record, path, err);
}

int pod_image_mount_hostname(const struct pod *p, struct runtime_container *rc, struct hk_err *err)
{
    struct hk_arena *a = &p->host->mem;
    const char *path = hk_arena_printf(a, "%s/.hostname", p->dir);
    int ret = volume_write_file(
        path, hk_str(hk_arena_printf(a, "%.*s\n", HK_FMT(hk_str_head(p->hostname, 63)))), err);

    if (ret < 0) {
        return ret;
    }
    runtime_add_mount(rc, (struct runtime_mount){.from = path, .at = "/etc/hostname", .own = true},
                      a);
    return 0;
}

bool pod_image_remove(const char *pod_dir)
{
    HK_AUTO(image_close) int dir = open(pod_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return dir < 0 || image_tree_remove(dir, IMAGE_USES) == 0;
}
