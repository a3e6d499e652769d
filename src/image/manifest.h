// SPDX-License-Identifier: Apache-2.0
// The JSON documents of an image: indexes, manifests and configurations of OCI and Docker. Whoever
// made them is not trusted: each function checks what its caller relies on.
#pragma once

#include "codec/json.h"
#include "image/digest.h"

enum {
    IMAGE_DOCUMENT_MAX = 4 << 20, /* bytes of a document */
    IMAGE_DEPTH_MAX = 24,         /* nested objects and lists of a document */
    IMAGE_LAYERS_MAX = 256,
    IMAGE_WORDS_MAX = 4096, /* entries of Env, Entrypoint and Cmd, each */
};

/* A document or a layer that another document refers to. */
struct image_descriptor {
    struct image_digest digest;
    int64_t size;
    struct hk_str media_type;
    const struct json *platform;    /* or NULL */
    const struct json *annotations; /* or NULL */
};

struct image_manifest {
    struct image_descriptor config;
    struct image_descriptor *layers;
    uint32_t nlayer;
};

struct image_config {
    struct hk_str os, architecture;
    struct hk_str user, cwd, stop_signal;
    struct hk_str *env, *entrypoint, *cmd;
    uint32_t nenv, nentrypoint, ncmd;
    struct image_digest *layers; /* digests of the unpacked layers */
    uint32_t nlayer;
};

/* An image in the archive of "docker save". */
struct image_saved {
    struct hk_str config; /* the path of its configuration */
    struct hk_str *layers, *names;
    uint32_t nlayer, nname;
};

/* Parses text that must live as long as the document. */
int image_document_parse(struct hk_str text, struct hk_arena *a, struct json *ret,
                         struct hk_err *err) HK_CHECKED;
/* The document is an index: a list of manifests. */
bool image_is_index(const struct json *doc);
int image_index_item(const struct json *index, uint32_t i, struct image_descriptor *ret,
                     struct hk_err *err) HK_CHECKED;
int image_manifest_parse(const struct json *doc, struct hk_arena *a, struct image_manifest *ret,
                         struct hk_err *err) HK_CHECKED;
int image_config_parse(const struct json *doc, struct hk_arena *a, struct image_config *ret,
                       struct hk_err *err) HK_CHECKED;
/* One entry of the manifest.json of "docker save". */
int image_saved_parse(const struct json *entry, struct hk_arena *a, struct image_saved *ret,
                      struct hk_err *err) HK_CHECKED;
/* This machine runs images of that platform; an empty or missing value fits. */
bool image_platform_fits(struct hk_str os, struct hk_str architecture);
/* The name of this machine's architecture in images: "amd64". */
const char *image_architecture(void);
