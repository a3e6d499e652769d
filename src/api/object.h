// SPDX-License-Identifier: Apache-2.0
// API objects that pass the port: reference-counted, and immutable once shared.
#pragma once

#include "api/registry.h"

struct api_object {
    _Atomic uint32_t refs;
    const struct api_kind *kind;
    struct hk_str ns, name, uid; /* borrowed from root */
    uint64_t rv;                 /* metadata.resourceVersion; 0 when unset */
    struct hk_str text;          /* its JSON text; "" when made from a tree */
    struct json root;
    struct hk_arena arena; /* holds root, and text unless borrowed */
    void *owner;           /* owner of a borrowed text, passed to release; NULL: our own text */
    void (*release)(void *owner);
};

/* Parses JSON text, copying it. kind NULL: found from apiVersion and kind. One reference. */
int api_object_parse(const struct api_kind *kind, struct hk_str text, struct api_object **ret,
                     struct hk_err *err) HK_CHECKED;
/* The same from a tree, which is copied deeply. */
int api_object_new(const struct api_kind *kind, const struct json *doc, struct api_object **ret,
                   struct hk_err *err) HK_CHECKED;
/* The same from text that lives until release(owner), which is called when the object is freed and
 * when this function fails. Without tree, root stays null and the caller fills in names and
 * revision. */
int api_object_borrow(const struct api_kind *kind, struct hk_str text, bool tree, void *owner,
                      void (*release)(void *owner), struct api_object **ret,
                      struct hk_err *err) HK_CHECKED;
struct api_object *api_object_ref(struct api_object *o);
/* Takes NULL. */
void api_object_unref(struct api_object *o);
/* For HK_AUTO. */
void api_object_unrefp(struct api_object **o);
