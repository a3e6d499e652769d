// SPDX-License-Identifier: Apache-2.0
// Pulls with "skopeo copy ... dir:", which keeps the manifest as the registry has it, and imports
// the result. The digest in the name of an image is checked here as well: it is that of the
// manifest, or that of an index that lists the manifest.
#include "image/pull.h"

#include "base/file.h"
#include "codec/base64.h"
#include "image/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKOPEO "skopeo"
#define SKOPEO_TIMEOUT "30m"
#define OUTPUT_MAX ((size_t)1 << 20)
#define WORDS_MAX 16

extern char **environ;

struct pull {
    const struct image_pull *o;
    struct hk_arena *a;
    struct image_name name;
    struct image_store store;
    const char *dir, *tmp_name; /* temporary; the name is below images */
    const char *authfile;
};

/* ---- skopeo ---- */

static bool has_policy(struct hk_arena *a)
{
    const char *home = getenv("HOME");

    return access("/etc/containers/policy.json", F_OK) == 0 ||
           (home &&
            access(hk_arena_printf(a, "%s/.config/containers/policy.json", home), F_OK) == 0);
}

/* Reads to the end; keeps the first part only. */
static void read_output(int fd, struct hk_buf *out)
{
    char buf[4096];
    ssize_t n;

    while ((n = read(fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR)) {
        if (n > 0 && out->len + (size_t)n <= OUTPUT_MAX) {
            hk_buf_add(out, buf, (size_t)n);
        }
    }
}

/* The message of the last line: time="..." level=fatal msg="..." */
static struct hk_str last_message(struct hk_str text)
{
    struct hk_str line, last = HK_STR("it says nothing");
    const char *at;

    while (hk_str_cut(&text, '\n', &line)) {
        last = line.n > 0 ? line : last;
    }
    at = memmem(last.s, last.n, "msg=\"", 5);
    if (at) {
        last = (struct hk_str){at + 5, (size_t)(last.s + last.n - at) - 5};
        last.n -= last.n > 0 && last.s[last.n - 1] == '"';
    }
    return last;
}

static int spawn_skopeo(const char *const *argv, int out, int err_out, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    int rc;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, err_out, STDERR_FILENO);
    rc = posix_spawnp(ret, SKOPEO, &files, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

static int fail_spawn(const struct pull *p, int why, struct hk_err *err)
{
    if (why == ENOENT) {
        return hk_fail(err, HK_EUNSUP,
                       "cannot pull \"%s\": skopeo is not installed (apt install "
                       "skopeo), or use 'hekla image import' with an archive",
                       p->name.text);
    }
    return hk_fail(err, HK_EIO, "cannot run skopeo: %s", strerror(why));
}

/* Runs skopeo with its standard output in the file. */
static int run_skopeo(const struct pull *p, const char *const *words, int out, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf said = {0};
    const char *argv[WORDS_MAX + 8] = {SKOPEO, "--command-timeout", SKOPEO_TIMEOUT};
    uint32_t n = 3;
    int ends[2], rc, status = 0;
    pid_t pid;

    if (!has_policy(p->a)) {
        argv[n++] = "--insecure-policy"; /* without the file it refuses to work */
    }
    for (uint32_t i = 0; words[i] && i < WORDS_MAX; i++) {
        argv[n++] = words[i];
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return hk_fail(err, HK_EIO, "cannot make a pipe: %m");
    }
    rc = spawn_skopeo(argv, out, ends[1], &pid);
    close(ends[1]);
    if (rc == 0) {
        read_output(ends[0], &said);
    }
    close(ends[0]);
    if (rc != 0) {
        return fail_spawn(p, rc, err);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return 0;
    }
    return hk_fail(err, HK_EIO, "cannot pull \"%s\": %.*s", p->name.text,
                   HK_FMT(hk_str_head(last_message(hk_buf_str(&said)), 350)));
}

/* "skopeo WHAT" with the options that both of its commands take. */
static int skopeo(const struct pull *p, const char *what, const char *option, const char *verify,
                  const char *to, int out, struct hk_err *err)
{
    const char *words[WORDS_MAX + 1] = {what, option};
    uint32_t n = 2;

    if (p->authfile) {
        words[n++] = "--authfile";
        words[n++] = p->authfile;
    }
    if (p->o->insecure) {
        words[n++] = verify;
    }
    words[n++] = hk_arena_printf(p->a, "docker://%s", p->name.text);
    words[n++] = to;
    words[n] = NULL;
    return run_skopeo(p, words, out, err);
}

static int copy_image(const struct pull *p, struct hk_err *err)
{
    HK_AUTO(image_close) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    return null < 0 ? hk_fail(err, HK_EIO, "cannot open /dev/null: %m")
                    : skopeo(p, "copy", "--quiet", "--src-tls-verify=false",
                             hk_arena_printf(p->a, "dir:%s/image", p->dir), null, err);
}

/* ---- digests ---- */

static int read_text(const struct pull *p, const char *name, struct hk_str *ret, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0};
    const char *path = hk_arena_printf(p->a, "%s/%s", p->dir, name);
    int rc = hk_read_file(path, IMAGE_DOCUMENT_MAX, &text, err);

    if (rc < 0) {
        return rc;
    }
    *ret = hk_arena_str(p->a, hk_buf_str(&text));
    return 0;
}

static bool lists_manifest(const struct json *index, const struct image_digest *manifest)
{
    for (uint32_t i = 0; i < json_len(json_get(index, "manifests")); i++) {
        struct image_descriptor d;

        if (image_index_item(index, i, &d, NULL) == 0 && image_digest_is(&d.digest, manifest)) {
            return true;
        }
    }
    return false;
}

/* Asks the registry for what the name stands for: a manifest or an index. */
static int read_remote(const struct pull *p, struct image_digest *ret, struct json *ret_doc,
                       struct hk_err *err)
{
    const char *path = hk_arena_printf(p->a, "%s/remote", p->dir);
    HK_AUTO(image_close) int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct hk_str text;
    int rc;

    if (out < 0) {
        return hk_fail(err, HK_EIO, "cannot make '%s': %m", path);
    }
    rc = skopeo(p, "inspect", "--raw", "--tls-verify=false", NULL, out, err);
    if (rc < 0) {
        return rc;
    }
    rc = read_text(p, "remote", &text, err);
    if (rc < 0) {
        return rc;
    }
    *ret = image_digest_of(text);
    return image_document_parse(text, p->a, ret_doc, err);
}

/* The name has the digest of an index: looks the manifest up in it. */
static int check_index(const struct pull *p, const struct image_digest *manifest,
                       struct hk_err *err)
{
    struct image_digest is;
    struct json doc;
    int rc = read_remote(p, &is, &doc, err);

    if (rc < 0) {
        return rc;
    }
    if (!image_digest_is(&is, &p->name.digest) || !lists_manifest(&doc, manifest)) {
        return hk_fail(err, HK_EINVAL,
                       "the registry answered for \"%s\" with another image: its "
                       "manifest is sha256:%s",
                       p->name.text, manifest->hex);
    }
    return 0;
}

static int check_digest(const struct pull *p, struct hk_err *err)
{
    struct image_digest is;
    struct hk_str text;
    int rc = read_text(p, "image/manifest.json", &text, err);

    if (rc < 0 || !p->name.digest.hex[0]) {
        return rc;
    }
    is = image_digest_of(text);
    return image_digest_is(&is, &p->name.digest) ? 0 : check_index(p, &is, err);
}

/* ---- the whole ---- */

/* Credentials go through a file: command lines are public. */
static int write_creds(struct pull *p, struct hk_err *err)
{
    HK_AUTO(hk_buf_fini) struct hk_buf text = {0}, auth = {0};
    const char *slash = strchr(p->name.text, '/');
    struct json doc = json_make_object(), *one;

    p->authfile = p->o->authfile;
    if (!p->o->creds) {
        return 0;
    }
    if (!strchr(p->o->creds, ':')) {
        return hk_fail(err, HK_EINVAL, "option --creds: want USER:PASSWORD");
    }
    base64_write(hk_str(p->o->creds), &auth);
    one = json_set_object(json_set_object(&doc, p->a, "auths"), p->a,
                          hk_arena_strndup(p->a, p->name.text, (size_t)(slash - p->name.text)));
    json_set_cstr(one, p->a, "auth", auth.data);
    json_write(&doc, &text);
    p->authfile = hk_arena_printf(p->a, "%s/auth.json", p->dir);
    HK_AUTO(image_close) int fd = open(p->authfile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len
               ? hk_fail(err, HK_EIO, "cannot write '%s': %m", p->authfile)
               : 0;
}

/* 1 if the store has what the name stands for now, 0 if not. */
static int is_current(const struct pull *p, struct image_record *ret, struct hk_err *err)
{
    struct image_digest is;
    struct json doc;
    int rc = image_store_find(p->o->data_dir, &p->name, p->a, ret, err);

    if (rc < 0 || !ret->manifest.hex[0]) {
        return rc == -HK_ENOTFOUND ? 0 : HK_MIN(rc, 0);
    }
    rc = read_remote(p, &is, &doc, err);
    return rc < 0 ? rc
                  : image_digest_is(&is, &ret->manifest) || lists_manifest(&doc, &ret->manifest);
}

/* The image may have been there under a tag only. */
static int keep_current(const struct pull *p, struct image_record *r, struct image_imported *ret,
                        struct hk_err *err)
{
    int rc = 0;

    if (!hk_str_is(r->name, p->name.text)) {
        r->name = hk_str(p->name.text);
        rc = image_store_put(&p->store, r, err);
    }
    r->name = hk_arena_str(p->a, r->name);
    hk_vec_push(&ret->images, *r);
    return rc;
}

static int pull_into(struct pull *p, struct image_imported *ret, struct hk_err *err)
{
    const struct image_pull *o = p->o;
    struct image_record old;
    int rc = write_creds(p, err);

    if (rc < 0) {
        return rc;
    }
    rc = is_current(p, &old, err);
    if (rc < 0) {
        return rc;
    }
    if (rc > 0) {
        return keep_current(p, &old, ret, err);
    }
    rc = copy_image(p, err);
    if (rc < 0) {
        return rc;
    }
    rc = check_digest(p, err);
    if (rc < 0) {
        return rc;
    }
    return image_import(&(struct image_import){.data_dir = o->data_dir,
                                               .from = hk_arena_printf(p->a, "%s/image", p->dir),
                                               .name = p->name.text,
                                               .max_bytes = o->max_bytes,
                                               .now_s = o->now_s},
                        p->a, ret, err);
}

static int make_pull_dir(struct pull *p, struct hk_err *err)
{
    char *real = realpath(p->o->data_dir, NULL);

    p->tmp_name = hk_arena_printf(p->a, "tmp/pull-%d", (int)getpid());
    p->dir = hk_arena_printf(p->a, "%s/images/%s", real ? real : p->o->data_dir, p->tmp_name);
    free(real);
    image_tree_remove(p->store.dir, p->tmp_name); /* of a process that had this number */
    return mkdirat(p->store.dir, p->tmp_name, 0700) < 0
               ? hk_fail(err, HK_EIO, "cannot make '%s': %m", p->dir)
               : 0;
}

static int pull_run(struct pull *p, struct image_imported *ret, struct hk_err *err)
{
    int rc = image_store_open(&p->store, p->o->data_dir, IMAGE_SHARED, err);

    if (rc < 0) {
        return rc;
    }
    rc = make_pull_dir(p, err);
    if (rc < 0) {
        return rc;
    }
    rc = pull_into(p, ret, err);
    image_tree_remove(p->store.dir, p->tmp_name);
    return rc;
}

int image_pull(const struct image_pull *o, struct hk_arena *a, struct image_imported *ret,
               struct hk_err *err)
{
    struct pull p = {.o = o, .a = a, .store = {.dir = -1, .data = -1, .lock = -1}};
    int rc = image_name_parse(hk_str(o->name), &p.name, err);

    if (rc < 0) {
        return rc;
    }
    rc = pull_run(&p, ret, err);
    image_store_close(&p.store);
    return rc;
}
