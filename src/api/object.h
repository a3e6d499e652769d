// SPDX-License-Identifier: Apache-2.0
// API objects as they cross the port: counted, and immutable from the moment they are shared.
#pragma once

#include "api/registry.h"

struct api_object {
    _Atomic uint32_t refs;
    const struct api_kind *kind;
    struct hk_str ns, name, uid; /* borrowed from root */
    uint64_t rv;                 /* metadata.resourceVersion; 0 when unset */
    struct hk_str text;          /* its JSON, ready to be sent; "" when it was made from a tree */
    struct json root;
    struct hk_arena arena; /* holds root, and the text unless it is somebody's */
    void *owner;           /* of a borrowed text, with how to let go of it; NULL: our own */
    void (*release)(void *owner);
};

/* Parses JSON text, copying it. kind NULL: found from apiVersion and kind. One reference. */
int api_object_parse(const struct api_kind *kind, struct hk_str text, struct api_object **ret,
                     struct hk_err *err) HK_CHECKED;
/* The same from a tree, which is copied deeply. */
int api_object_new(const struct api_kind *kind, const struct json *doc, struct api_object **ret,
                   struct hk_err *err) HK_CHECKED;
/* The same from text that lives until release(owner), which is called when the object ends, and
 * when this fails. Without tree the root stays null, and the names and the revision are the
 * caller's to fill in. */
int api_object_borrow(const struct api_kind *kind, struct hk_str text, bool tree, void *owner,
                      void (*release)(void *owner), struct api_object **ret,
                      struct hk_err *err) HK_CHECKED;
struct api_object *api_object_ref(struct api_object *o);
/* Takes NULL. */
void api_object_unref(struct api_object *o);
/* For HK_AUTO. */
void api_object_unrefp(struct api_object **o);
