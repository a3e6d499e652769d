// SPDX-License-Identifier: Apache-2.0
// Reads the documents of an image. The fields are those of the OCI Image Specification 1.1 and of
// Docker's Image Manifest Version 2, Schema 2, which agree in all that is used here.
#include "image/manifest.h"

#include <sys/utsname.h>

const char *image_architecture(void)
{
    static const struct {
        const char *machine, *name;
    } known[] = {{"x86_64", "amd64"},    {"aarch64", "arm64"},      {"armv7l", "arm"},
                 {"armv6l", "arm"},      {"i686", "386"},           {"i386", "386"},
                 {"ppc64le", "ppc64le"}, {"s390x", "s390x"},        {"riscv64", "riscv64"},
                 {"mips64", "mips64le"}, {"loongarch64", "loong64"}};
    struct utsname u;

    uname(&u);
    for (size_t i = 0; i < HK_LEN(known); i++) {
        if (strcmp(u.machine, known[i].machine) == 0) {
            return known[i].name;
        }
    }
    return "unknown";
}

bool image_platform_fits(struct hk_str os, struct hk_str architecture)
{
    return (os.n == 0 || hk_str_is(os, "linux")) &&
           (architecture.n == 0 || hk_str_is(architecture, image_architecture()));
}

static bool is_deep(const struct json *v, uint32_t depth)
{
    if (v->type != JSON_ARRAY && v->type != JSON_OBJECT) {
        return false;
    }
    if (depth == 0) {
        return true;
    }
    for (uint32_t i = 0; i < v->len; i++) {
        if (is_deep(v->type == JSON_ARRAY ? &v->items[i] : &v->members[i].value, depth - 1)) {
            return true;
        }
    }
    return false;
}

int image_document_parse(struct hk_str text, struct hk_arena *a, struct json *ret,
                         struct hk_err *err)
{
    struct json doc;
    int rc;

    if (text.n > IMAGE_DOCUMENT_MAX) {
        return hk_fail(err, HK_ELIMIT, "%zu bytes, at most %d are read", text.n,
                       IMAGE_DOCUMENT_MAX);
    }
    rc = json_parse(text, 0, a, &doc, err);
    if (rc < 0) {
        return rc;
    }
    if (is_deep(&doc, IMAGE_DEPTH_MAX)) {
        return hk_fail(err, HK_ELIMIT, "nested more than %d levels deep", IMAGE_DEPTH_MAX);
    }
    *ret = doc;
    return 0;
}

bool image_is_index(const struct json *doc)
{
    return json_is(json_get(doc, "manifests"), JSON_ARRAY);
}

static int parse_descriptor(const struct json *v, struct image_descriptor *ret, struct hk_err *err)
{
    const struct hk_str digest = json_str_field(v, "digest");
    struct image_descriptor d = {
        .size = json_int(json_get(v, "size"), -1),
        .media_type = json_str_field(v, "mediaType"),
        .platform = json_get(v, "platform"),
        .annotations = json_get(v, "annotations"),
    };

    if (!image_digest_parse(digest, &d.digest)) {
        return hk_fail(err, HK_EINVAL, "digest \"%.*s\" is not sha256: and 64 digits",
                       (int)HK_MIN(digest.n, 100), digest.s);
    }
    if (d.size < 0) {
        return hk_fail(err, HK_EINVAL, "sha256:%s has no size", d.digest.hex);
    }
    *ret = d;
    return 0;
}

int image_index_item(const struct json *index, uint32_t i, struct image_descriptor *ret,
                     struct hk_err *err)
{
    return parse_descriptor(json_item(json_get(index, "manifests"), i), ret, err);
}

/* "application/vnd.oci.image.layer.v1.tar+gzip", "...docker.image.rootfs.diff.tar.gzip" */
static bool is_layer_type(struct hk_str type)
{
    static const char *const ends[] = {".tar", ".tar+gzip", ".tar+zstd", ".tar.gzip", ".tar.zstd"};

    for (size_t i = 0; i < HK_LEN(ends); i++) {
        if (hk_str_ends(type, ends[i])) {
            return true;
        }
    }
    return type.n == 0;
}

int image_manifest_parse(const struct json *doc, struct hk_arena *a, struct image_manifest *ret,
                         struct hk_err *err)
{
    const struct json *layers = json_get(doc, "layers");
    struct image_manifest m = {.nlayer = json_len(layers)};
    int rc = parse_descriptor(json_get(doc, "config"), &m.config, err);

    if (rc < 0) {
        return hk_wrap(err, rc, "config");
    }
    if (m.nlayer > IMAGE_LAYERS_MAX) {
        return hk_fail(err, HK_ELIMIT, "%u layers, at most %d are taken", m.nlayer,
                       IMAGE_LAYERS_MAX);
    }
    m.layers = hk_arena_array(a, m.nlayer, sizeof(*m.layers));
    for (uint32_t i = 0; i < m.nlayer; i++) {
        rc = parse_descriptor(json_item(layers, i), &m.layers[i], err);
        if (rc < 0) {
            return hk_wrap(err, rc, "layer %u", i);
        }
        if (!is_layer_type(m.layers[i].media_type)) {
            return hk_fail(err, HK_EUNSUP,
                           "layer %u is of type \"%.*s\", want tar, tar+gzip or "
                           "tar+zstd",
                           i, HK_FMT(hk_str_head(m.layers[i].media_type, 100)));
        }
    }
    *ret = m;
    return 0;
}

static int copy_words(const struct json *list, const char *what, struct hk_arena *a,
                      struct hk_str **ret, uint32_t *ret_n, struct hk_err *err)
{
    const uint32_t n = json_len(list);

    if (n > IMAGE_WORDS_MAX) {
        return hk_fail(err, HK_ELIMIT, "%s has %u entries, at most %d are taken", what, n,
                       IMAGE_WORDS_MAX);
    }
    *ret = hk_arena_array(a, n, sizeof(**ret));
    for (uint32_t i = 0; i < n; i++) {
        if (!json_is(json_item(list, i), JSON_STRING)) {
            return hk_fail(err, HK_EINVAL, "%s has an entry that is not a string", what);
        }
        (*ret)[i] = json_str(json_item(list, i), HK_STR(""));
    }
    *ret_n = n;
    return 0;
}

static int copy_layers(const struct json *list, struct hk_arena *a, struct image_config *c,
                       struct hk_err *err)
{
    c->nlayer = json_len(list);
    if (c->nlayer > IMAGE_LAYERS_MAX) {
        return hk_fail(err, HK_ELIMIT, "%u layers, at most %d are taken", c->nlayer,
                       IMAGE_LAYERS_MAX);
    }
    c->layers = hk_arena_array(a, c->nlayer, sizeof(*c->layers));
    for (uint32_t i = 0; i < c->nlayer; i++) {
        const struct hk_str digest = json_str(json_item(list, i), HK_STR(""));

        if (!image_digest_parse(digest, &c->layers[i])) {
            return hk_fail(err, HK_EINVAL,
                           "rootfs.diff_ids[%u] is \"%.*s\", want sha256: and 64 "
                           "digits",
                           i, (int)HK_MIN(digest.n, 100), digest.s);
        }
    }
    return 0;
}

int image_config_parse(const struct json *doc, struct hk_arena *a, struct image_config *ret,
                       struct hk_err *err)
{
    const struct json *config = json_get(doc, "config");
    struct image_config c = {
        .os = json_str_field(doc, "os"),
        .architecture = json_str_field(doc, "architecture"),
        .user = json_str_field(config, "User"),
        .cwd = json_str_field(config, "WorkingDir"),
        .stop_signal = json_str_field(config, "StopSignal"),
    };
    int rc;

    if (!json_is(doc, JSON_OBJECT)) {
        return hk_fail(err, HK_EINVAL, "not an object");
    }
    rc = copy_words(json_get(config, "Env"), "Env", a, &c.env, &c.nenv, err);
    if (rc < 0) {
        return rc;
    }
    rc = copy_words(json_get(config, "Entrypoint"), "Entrypoint", a, &c.entrypoint, &c.nentrypoint,
                    err);
    if (rc < 0) {
        return rc;
    }
    rc = copy_words(json_get(config, "Cmd"), "Cmd", a, &c.cmd, &c.ncmd, err);
    if (rc < 0) {
        return rc;
    }
    rc = copy_layers(json_at(doc, "rootfs.diff_ids"), a, &c, err);
    if (rc < 0) {
        return rc;
    }
    *ret = c;
    return 0;
}

int image_saved_parse(const struct json *entry, struct hk_arena *a, struct image_saved *ret,
                      struct hk_err *err)
{
    struct image_saved s = {.config = json_str_field(entry, "Config")};
    int rc;

    if (s.config.n == 0) {
        return hk_fail(err, HK_EINVAL, "an image has no Config");
    }
    rc = copy_words(json_get(entry, "Layers"), "Layers", a, &s.layers, &s.nlayer, err);
    if (rc < 0) {
        return rc;
    }
    rc = copy_words(json_get(entry, "RepoTags"), "RepoTags", a, &s.names, &s.nname, err);
    if (rc < 0) {
        return rc;
    }
    *ret = s;
    return 0;
}
