// SPDX-License-Identifier: Apache-2.0
// Decodes answers of an API server for the port: objects, pages of lists, watch events, refusals.
// Each object is parsed on its own, so that keeping one does not keep the others.
#pragma once

#include "api/port.h"

/* Copies the text. text_only fills in only the names, without a tree. */
int decode_object(const struct api_kind *kind, struct hk_str text, bool text_only,
                  struct api_object **ret, struct hk_err *err) HK_CHECKED;

/* Whether the text is an object of kind Status. */
bool decode_is_status(struct hk_str text);
/* Decodes a Status; for any other text makes a message from the HTTP code and the start of the
 * text. Strings live in mem. */
void decode_status(struct hk_str text, int http, struct hk_arena *mem, struct port_status *ret);

struct decode_list {
    struct api_object **items; /* in mem, one reference each */
    uint32_t nitems;
    uint64_t rv;
    struct hk_str cont; /* in mem */
    int64_t remaining;
};
/* Decodes a list without its items, which must have been removed. */
int decode_list_shell(struct hk_str text, struct hk_arena *mem, struct decode_list *ret,
                      struct hk_err *err) HK_CHECKED;
/* Adds kind and apiVersion to an item without them, as most servers send. Here and in events,
 * objects with a tree lose metadata.managedFields. */
int decode_item(const struct api_kind *kind, struct hk_str text, bool text_only,
                struct api_object **ret, struct hk_err *err) HK_CHECKED;

struct decode_event {
    enum port_msg_type type; /* PORT_DONE: an ERROR event, described by status */
    struct api_object *obj;  /* one reference; NULL for bookmarks and errors */
    uint64_t rv;
    bool initial_end;
    struct port_status status; /* in mem */
};
int decode_event(const struct api_kind *kind, struct hk_str text, bool text_only,
                 struct hk_arena *mem, struct decode_event *ret, struct hk_err *err) HK_CHECKED;
