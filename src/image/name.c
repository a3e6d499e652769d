// SPDX-License-Identifier: Apache-2.0
// Parses names of images by the grammar of github.com/distribution/reference, and completes them
// as Kubernetes and Docker do.
#include "image/name.h"

#define DEFAULT_DOMAIN "docker.io"
#define DEFAULT_PATH "library/"
#define REPOSITORY_MAX 255
#define TAG_MAX 128

static bool is_lower(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_letter(char c)
{
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}

/* The length of the separator at the start of text: ".", "_", "__" or any number of "-". */
static size_t separator_len(struct hk_str text)
{
    size_t n = 0;

    if (text.n == 0) {
        return 0;
    }
    while (n < text.n && text.s[n] == '-') {
        n++;
    }
    if (n > 0) {
        return n;
    }
    if (text.s[0] == '.') {
        return 1;
    }
    return text.s[0] != '_' ? 0 : text.n > 1 && text.s[1] == '_' ? 2 : 1;
}

static bool is_path_part(struct hk_str part)
{
    if (part.n == 0 || !is_lower(part.s[0]) || !is_lower(part.s[part.n - 1])) {
        return false;
    }
    while (part.n > 0) {
        const size_t n = is_lower(part.s[0]) ? 1 : separator_len(part);

        if (n == 0 || (n < part.n && !is_lower(part.s[0]) && !is_lower(part.s[n]))) {
            return false;
        }
        part = (struct hk_str){part.s + n, part.n - n};
    }
    return true;
}

static bool is_path(struct hk_str path)
{
    struct hk_str part;

    if (path.n == 0) {
        return false;
    }
    while (hk_str_cut(&path, '/', &part)) {
        if (!is_path_part(part)) {
            return false;
        }
    }
    return true;
}

static bool is_domain(struct hk_str domain)
{
    for (size_t i = 0; i < domain.n; i++) {
        if (!is_letter(domain.s[i]) && !strchr(".-:[]", domain.s[i])) {
            return false;
        }
    }
    return domain.n > 0 && domain.s[0] != '-' && domain.s[0] != '.' && domain.s[0] != ':';
}

static bool is_tag(struct hk_str tag)
{
    for (size_t i = 0; i < tag.n; i++) {
        if (!is_letter(tag.s[i]) && tag.s[i] != '_' && (i == 0 || !strchr(".-", tag.s[i]))) {
            return false;
        }
    }
    return tag.n > 0 && tag.n <= TAG_MAX;
}

/* The first part of a name is a host if it cannot be part of a path at Docker Hub. */
static bool has_domain(struct hk_str name, struct hk_str *ret_domain, struct hk_str *ret_path)
{
    struct hk_str rest = name, first;

    if (!memchr(name.s, '/', name.n) || !hk_str_cut(&rest, '/', &first)) {
        return false;
    }
    if (!hk_str_contains(first, ".") && !hk_str_contains(first, ":") &&
        !hk_str_is(first, "localhost")) {
        return false;
    }
    *ret_domain = first;
    *ret_path = rest;
    return true;
}

/* Cuts ":TAG" from the end; a colon before the last slash belongs to the host's port. */
static bool cut_tag(struct hk_str *name, struct hk_str *ret_tag)
{
    const char *slash = memrchr(name->s, '/', name->n), *colon = memrchr(name->s, ':', name->n);

    if (!colon || (slash && colon < slash)) {
        return false;
    }
    *ret_tag = (struct hk_str){colon + 1, (size_t)(name->s + name->n - colon) - 1};
    name->n = (size_t)(colon - name->s);
    return true;
}

static bool parse_name(struct hk_str text, struct image_name *ret)
{
    struct hk_str domain = HK_STR(DEFAULT_DOMAIN), tag = HK_STR("latest"), rest = text, name, path;
    const char *at = text.s ? memchr(text.s, '@', text.n) : NULL;
    const char *library = "";

    if (text.n == 0 || !hk_str_cut(&rest, '@', &name) ||
        (at && !image_digest_parse(rest, &ret->digest))) {
        return false;
    }
    if (cut_tag(&name, &tag) && !is_tag(tag)) {
        return false;
    }
    path = name;
    if (!has_domain(name, &domain, &path) && !memchr(name.s, '/', name.n)) {
        library = DEFAULT_PATH;
    }
    if (hk_str_is(domain, "index.docker.io")) {
        domain = HK_STR(DEFAULT_DOMAIN);
    }
    if (!is_domain(domain) || !is_path(path) ||
        domain.n + 1 + strlen(library) + path.n > REPOSITORY_MAX) {
        return false;
    }
    ret->repository_len = (size_t)snprintf(ret->text, sizeof(ret->text), "%.*s/%s%.*s",
                                           HK_FMT(domain), library, HK_FMT(path));
    snprintf(ret->text + ret->repository_len, sizeof(ret->text) - ret->repository_len,
             at ? "@%.*s" : ":%.*s", HK_FMT(at ? rest : tag));
    return true;
}

int image_name_parse(struct hk_str text, struct image_name *ret, struct hk_err *err)
{
    struct image_name name = {0};

    if (!parse_name(text, &name)) {
        return hk_fail(err, HK_EINVAL,
                       "couldn't parse image name \"%.*s\": invalid reference format",
                       (int)HK_MIN(text.n, IMAGE_NAME_MAX), text.s ? text.s : "");
    }
    *ret = name;
    return 0;
}
