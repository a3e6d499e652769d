// SPDX-License-Identifier: Apache-2.0
// Answers of an API server, from bytes to what the port hands out: objects, pages of lists, watch
// events, refusals. Each object is parsed once, by itself, so that keeping one keeps no other.
#pragma once

#include "api/port.h"

/* The text is copied. text_only leaves the tree away and fills in the names alone. */
int decode_object(const struct api_kind *kind, struct hk_str text, bool text_only,
                  struct api_object **ret, struct hk_err *err) HK_CHECKED;

/* Whether the text is an object of kind Status. */
bool decode_is_status(struct hk_str text);
/* A Status, or whatever else came with the HTTP code: then the words are made from the code and the
 * beginning of the text. Strings live in mem. */
void decode_status(struct hk_str text, int http, struct hk_arena *mem, struct port_status *ret);

struct decode_list {
    struct api_object **items; /* in mem, one reference each */
    uint32_t nitems;
    uint64_t rv;
    struct hk_str cont; /* in mem */
    int64_t remaining;
};
/* Items without kind and apiVersion, as most servers send them, get them. Here and in events,
 * metadata.managedFields are left out of objects with a tree. */
int decode_list(const struct api_kind *kind, struct hk_str text, bool text_only,
                struct hk_arena *mem, struct decode_list *ret, struct hk_err *err) HK_CHECKED;

struct decode_event {
    enum port_msg_type type; /* PORT_DONE: an ERROR event, status says what */
    struct api_object *obj;  /* one reference; NULL for bookmarks and errors */
    uint64_t rv;
    bool initial_end;
    struct port_status status; /* in mem */
};
int decode_event(const struct api_kind *kind, struct hk_str text, bool text_only,
                 struct hk_arena *mem, struct decode_event *ret, struct hk_err *err) HK_CHECKED;
