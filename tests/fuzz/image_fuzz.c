// SPDX-License-Identifier: Apache-2.0
// Names, documents and users of images from arbitrary bytes: what is accepted holds what imports
// and containers build on.

#include "image/manifest.h"
#include "image/name.h"
#include "image/user.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(struct hk_str text)
{
    struct image_name name, again;
    struct hk_err err = {0};

    if (image_name_parse(text, &name, &err) < 0) {
        hk_assert(err.text[0] != '\0');
        return;
    }
    hk_assert(name.repository_len < strlen(name.text) && strchr(name.text, '/'));
    hk_assert(!strstr(name.text, "..") && !strstr(name.text, "//"));
    /* A full name stays as it is. */
    hk_assert(image_name_parse(hk_str(name.text), &again, NULL) == 0);
    hk_assert(strcmp(name.text, again.text) == 0);
}

static void check_digests(const struct image_digest *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        hk_assert(strspn(list[i].hex, "0123456789abcdef") == IMAGE_HEX);
    }
}

static void check_document(struct hk_str text, struct hk_arena *a)
{
    struct image_manifest manifest;
    struct image_config config;
    struct image_descriptor item;
    struct image_saved saved;
    struct json doc;

    if (image_document_parse(text, a, &doc, NULL) < 0) {
        return;
    }
    if (image_manifest_parse(&doc, a, &manifest, NULL) == 0) {
        hk_assert(manifest.nlayer <= IMAGE_LAYERS_MAX && manifest.config.size >= 0);
        check_digests(&manifest.config.digest, 1);
    }
    if (image_config_parse(&doc, a, &config, NULL) == 0) {
        hk_assert(config.nlayer <= IMAGE_LAYERS_MAX && config.nenv <= IMAGE_WORDS_MAX);
        check_digests(config.layers, config.nlayer);
    }
    if (image_is_index(&doc) && image_index_item(&doc, 0, &item, NULL) == 0) {
        check_digests(&item.digest, 1);
    }
    if (image_saved_parse(&doc, a, &saved, NULL) == 0) {
        hk_assert(saved.config.n > 0 && saved.nlayer <= IMAGE_WORDS_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HK_AUTO(hk_arena_fini) struct hk_arena a = {0};
    const struct hk_str text = {(const char *)data, size};

    check_name(text);
    check_document(text, &a);
    (void)image_user_is_number(text);
    return 0;
}
